"""NumPy's functions on tensors, made of minigrad's operations. ``table`` lists them."""
