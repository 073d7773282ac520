"""The commands, thin and lazy, and the hook."""
