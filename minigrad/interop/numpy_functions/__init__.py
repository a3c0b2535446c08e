"""NumPy's functions on tensors, made of operations of ours; ``table`` says which there are."""
