"""`python -m tests.support.simulated 17`: one seed, told; `17 400`: those that fail, from 17 to 399."""

from __future__ import annotations

import sys
from collections import Counter

from langgraph_ext.database import open_database
from tests.support.simulated.seeds import shortened
from tests.support.simulated.world import simulate


def main() -> None:
    first, end = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    if end is None:
        outcome = simulate(first)
        print((shortened(outcome) if outcome.found else outcome).told())
        return
    database = open_database(":memory:", fsync="normal")
    statuses: Counter[str] = Counter()
    for seed in range(first, end):
        outcome = simulate(seed, database=database)
        statuses.update(outcome.statuses)
        if outcome.found:
            print(shortened(outcome, database).told())
    database.close()
    print(dict(statuses))


main()
