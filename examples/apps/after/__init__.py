"""The same graphs, with a durable agent or node."""
