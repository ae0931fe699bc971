"""The benchmark: LedgerSaver beside the SQLite savers of LangGraph, as ratios taken in one run (`make bench`)."""
