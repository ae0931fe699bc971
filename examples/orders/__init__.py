"""A morning's orders of an office furniture shop, from a file to a shipping report.

`graph` is the application, which charges at `bank` and knows nothing of crashes.  `demo` runs it, kills it twice and
resumes it: `python -m examples.orders.demo`.
"""
