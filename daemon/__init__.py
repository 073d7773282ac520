"""The gateway process: lifecycle, watcher, schedule and socket."""
