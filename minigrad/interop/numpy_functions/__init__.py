"""NumPy's functions on tensors, built from minigrad's operations; ``table`` lists them."""
