"""A morning's orders of an office furniture shop, from a file to a shipping report.

`graph` is the application and knows nothing of crashes.  `demo` runs it, kills it half-way and resumes it:
`python -m examples.orders.demo`.
"""
