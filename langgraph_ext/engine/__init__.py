"""The engine: agents as persisted state machines on the ledger's database."""
