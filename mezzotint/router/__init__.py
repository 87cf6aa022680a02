"""Which arm answers a request: estimates, policy, attempts and the ledger they are read from."""
