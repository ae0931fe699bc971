"""Tools for testing your own graphs: a crash harness, an effect log, a clock that stands still, ids that count.

    crash_at_every_commit("tests.orders:scenario", db=tmp_path / "crash.db").assert_sound()

Nothing else in the package imports this one, but the command line.
"""

from langgraph_ext.testing.effects import EffectLog
from langgraph_ext.testing.fixed import FixedClock, fixed_ids
from langgraph_ext.testing.harness import crash_at_every_commit
from langgraph_ext.testing.progress import CrashProgress
from langgraph_ext.testing.report import CrashFinding, CrashReport

__all__ = [
    "CrashFinding",
    "CrashProgress",
    "CrashReport",
    "EffectLog",
    "FixedClock",
    "crash_at_every_commit",
    "fixed_ids",
]
