"""A shop that charges an order and lets an agent refund it, and the demo that kills it twice: docs/demo.md."""
