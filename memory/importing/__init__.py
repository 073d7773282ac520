"""Import: what other memories on the machine hold becomes notes. Reads, plans, then writes once."""
