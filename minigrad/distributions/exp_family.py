"""Base class of exponential families: entropy and divergence from the log-normaliser."""

from __future__ import annotations

from typing import Any

from minigrad import functions as f
from minigrad.autograd import grad
from minigrad.distributions.distribution import Distribution
from minigrad.distributions.transforms.base import last_added
from minigrad.functions.grad_modes import enable_grad

__all__ = ["ExponentialFamily", "bregman"]


class ExponentialFamily(Distribution):
    """A distribution whose density is exp(<t(x), theta> - F(theta) + k(x)).

    A subclass may define ``_natural_params``, the tuple theta, ``_log_normalizer(*theta)``, which
    is F, and ``_mean_carrier_measure``, the mean of k(x). The derivative of F then gives the
    entropy, and the divergence from a distribution of the same class (Nielsen and Nock 2010).
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError(f"[{type(self).__name__}] _natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] _log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] _mean_carrier_measure")

    def _normalizer_and_gradients(self) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
        """theta, F(theta), and the derivatives of F by theta, which are the means of t(x)."""
        with enable_grad():
            theta = tuple(
                p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params
            )
            value = self._log_normalizer(*theta)
            gradients = grad(f.sum(value), theta, create_graph=True)
        tracked = any(p.requires_grad for p in self._natural_params)
        if not tracked:
            return self._natural_params, value.detach(), tuple(s.detach() for s in gradients)
        return theta, value, tuple(gradients)

    def entropy(self) -> Any:
        """F(theta) - <theta, F'(theta)> - the mean of k(x)."""
        theta, value, gradients = self._normalizer_and_gradients()
        result = value - self._mean_carrier_measure
        for p, gradient in zip(theta, gradients, strict=True):
            result = result - last_added(p * gradient, len(self.event_shape))
        return result


def bregman(p: ExponentialFamily, q: ExponentialFamily) -> Any:
    """The divergence of p from q of the same class: F(theta_q) - F(theta_p) - <.., F'(theta_p)>."""
    theta, value, gradients = p._normalizer_and_gradients()
    other = q._natural_params
    result = q._log_normalizer(*other) - value
    for a, b, gradient in zip(theta, other, gradients, strict=True):
        result = result - last_added((b - a) * gradient, len(q.event_shape))
    return result
