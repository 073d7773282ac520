"""The soak: ``make soak MINUTES=10``."""
