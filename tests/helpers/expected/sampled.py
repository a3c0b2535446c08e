"""Reference for random numbers: a distribution of SciPy's that they are drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats


class Sampled:
    """Values drawn from a distribution of SciPy's: none lies elsewhere, and shares are right."""

    def __init__(self, distribution: Any) -> None:
        self.distribution = distribution

    def check(self, drawn: Any) -> None:
        """AssertionError for values that this distribution hardly gives."""
        x, d = np.asarray(drawn, np.float64).ravel(), self.distribution
        if hasattr(d.dist, "pmf"):
            values, counts = np.unique(x, return_counts=True)
            p = d.pmf(values)
            assert (p > 0).all(), f"{values[p == 0]} cannot be drawn"
            assert (abs(counts - len(x) * p) < 5 * np.sqrt(len(x) * p)).all()
        else:
            assert stats.kstest(x, d.cdf).pvalue > 1e-4
