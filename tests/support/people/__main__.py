"""`python -m tests.support.people 17`: one seed, told; `17 400`: those in which something is found, from 17 to 399."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from langgraph_ext.database import open_database
from tests.support.people.cast import Cast
from tests.support.people.seed import play, story_of
from tests.support.people.witness import findings


def main() -> None:
    first, end = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    acts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, Cast() as cast:
        folder = Path(name)
        database = open_database(folder / "empty.db")
        database.open()
        database.close()
        for seed in range(first, first + 1 if end is None else end):
            played = play(story_of(seed), cast, folder / str(seed), folder / "empty.db")
            found = findings(played)
            acts.update(f"{act.kind}: {act.code}" for act in played.acts)
            acts["killed"] += played.kills
            if found or end is None:
                print(played.told(found or ["all is well"]))
    if end is not None:
        print(*(f"{number:6} {what}" for what, number in sorted(acts.items())), sep="\n")


if __name__ == "__main__":
    main()
