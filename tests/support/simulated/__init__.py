"""The simulator: seeded schedules of several workers in one thread, over a store that fails.

world.py      one seed: agent runs, workers that come and go, what is asked of the runs meanwhile, and the checks
loop.py       an event loop in virtual time; the seed chooses which step is next, and where a process dies or stalls
store.py      one process's door to the database, which fails
working.py    a process: it takes leases, drives trees with engine/working.py, fails, and comes back
program.py    behaviours, hooks and calls, with a count of everything asked outside
witness.py    what must hold after each commit
locks.py      which commits could have waited for each other in a circle (rule E3)
planted.py    bugs that it has to find
"""
