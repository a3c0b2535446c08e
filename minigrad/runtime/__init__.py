"""Runtime: the C core, dtypes, devices, settings and the lazily loaded NumPy.

No module here knows a tensor.
"""
