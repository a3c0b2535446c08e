"""Bridges to other libraries: PyTorch's names, NumPy's functions, DLPack."""
