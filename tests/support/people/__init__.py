"""Two people and a worker: seeded acts of two processes on a run, while a third one runs it and is killed.

seed.py       what a seed chooses, and one seed from its beginning to its end
clock.py      what the processes go by: the worker's commits, and whether it runs, waits or is dead
graph.py      the graph
worker.py     who runs it, dies at a commit, and is followed by the next
person.py     what a person does, and was told
cast.py       the processes, which serve many seeds
witness.py    what must hold at the end

`python -m tests.support.people 17` plays one seed, and tells it.
"""
