"""Benchmarks of minigrad against hand-written NumPy and, if installed, torch and jax.

``python -m benchmarks`` measures and prints a table. ``pytest benchmarks`` runs the same cases
under pytest-benchmark. Both need the benchmark extra: ``python -m pip install '.[bench]'``.
"""
