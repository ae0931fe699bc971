"""The simulator: seeded schedules of several workers in one thread, over a store that fails.

world.py      one seed: agent runs, workers that come and go, what is asked of the runs meanwhile, and the checks
loop.py       an event loop in virtual time; the seed chooses which step is next, and where a process dies or stalls
store.py      one process's door to the database, which fails
working.py    a process: it takes leases, drives trees with engine/working.py, fails, and comes back
program.py    behaviours, hooks and calls, with a count of everything asked outside
clerk.py      the same for ReAct: models that decide as the seed has it, tools of every policy
doubting.py   somebody who says, now and then, what came of a call that nobody knows the end of
witness.py    what must hold after each commit
histories.py  what must hold of a ReAct run's slots and history
endings.py    what must hold at the end
locks.py      which commits could have waited for each other in a circle (rule E3)
planted.py    bugs that it has to find
"""
