"""What must happen: the ledger, intake, leases, retry and the doorbell."""
