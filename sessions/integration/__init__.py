"""Telling the agents on this machine to call ``memoryd-hook``: their settings, edited with care."""
