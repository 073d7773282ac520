"""What is known: stores, notes, policy, providers, and the base that all share."""
