"""The class Sampled: a reference of random numbers by their distribution in SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats


class Sampled:
    """Values drawn from a distribution of SciPy: all lie in its support, with the right shares."""

    def __init__(self, distribution: Any) -> None:
        self.distribution = distribution

    def check(self, drawn: Any) -> None:
        """Raises Raise an AssertionError for values that are unlikely for this distribution."""
        x, d = np.asarray(drawn, np.float64).ravel(), self.distribution
        if hasattr(d.dist, "pmf"):
            values, counts = np.unique(x, return_counts=True)
            p = d.pmf(values)
            assert (p > 0).all(), f"{values[p == 0]} cannot be drawn"
            assert (abs(counts - len(x) * p) < 5 * np.sqrt(len(x) * p)).all()
        else:
            assert stats.kstest(x, d.cdf).pvalue > 1e-4
