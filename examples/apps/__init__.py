"""Five small graphs in their usual shapes, each before and after it became durable: see docs/examples.md."""
