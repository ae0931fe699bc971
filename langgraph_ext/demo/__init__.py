"""The demo that comes with the package: a shop charges an order and lets an agent refund it, killed on the way.

`langgraph-ext demo` runs it (story.py): docs/demo.md says what it shows. The application (graph.py) and its processes
(worker.py) use the package as its users do. The bank and what starts, kills and reads are lent to `examples/orders`.
"""
