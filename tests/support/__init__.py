"""What the tests share: builders, the two-form driver, the reference model, real processes."""
