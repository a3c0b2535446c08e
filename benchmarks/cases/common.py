"""Builders of timed calls that several groups share.

minigrad and torch have the same interface, so they share code: ``lib.xp`` is either of the two.
NumPy is written by hand, with gradients in new arrays. Jitted jax also returns the forward result,
so that the forward cannot be optimised away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import ChannelsLast, fastest
from benchmarks.registry import BACKWARD, Builder, Case, register

__all__ = [
    "both_ways",
    "by_hand",
    "eager_backward",
    "jax_backward",
    "jitted",
    "plain",
]


def _arrays(lib: Any, inputs: Sequence[Any]) -> list[Any]:
    return [lib.array(v) for v in inputs]


def _recorded(lib: Any, inputs: Sequence[Any]) -> list[Any]:
    """Float arrays as leaves that require grad. Other arrays (labels, indices) are unchanged."""
    return [lib.array(v, requires_grad=np.asarray(v).dtype.kind == "f") for v in inputs]


def plain(pick: Callable[[Any], Callable[..., Any]]) -> Builder:
    """The operation that ``pick`` takes from a library, called on the arrays alone."""

    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        return partial(pick(lib), *_arrays(lib, inputs))

    return build


def jitted(function: Callable[..., Any]) -> Builder:
    """``function(jax, *arrays)`` under jax.jit."""

    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        return partial(lib.xp.jit(partial(function, lib.xp)), *_arrays(lib, inputs))

    return build


def eager_backward(pick: Callable[[Any], Callable[..., Any]]) -> Builder:
    """``y = pick(lib)(*xs)``, then backward from the upstream gradient, the first of the inputs."""

    def build(lib: Any, upstream: Any, *inputs: Any) -> Callable[[], Any]:
        function, g, xs = pick(lib), lib.array(upstream), _recorded(lib, inputs)
        leaves = [x for x in xs if x.requires_grad]

        def call() -> Any:
            for x in leaves:
                x.grad = None
            y = function(*xs)
            y.backward(g)
            return (y, *[x.grad for x in leaves])

        return call

    return build


def jax_backward(function: Callable[..., Any]) -> Builder:
    """Like :func:`eager_backward`, with jax.vjp of ``function(jax, *xs)`` under jax.jit."""

    def build(lib: Any, upstream: Any, *inputs: Any) -> Callable[[], Any]:
        wanted = [np.asarray(v).dtype.kind == "f" for v in inputs]

        def both(g: Any, *xs: Any) -> Any:
            y, vjp = lib.xp.vjp(partial(function, lib.xp), *xs)
            return (y, *[d for d, is_wanted in zip(vjp(g), wanted, strict=True) if is_wanted])

        return partial(lib.xp.jit(both), *_arrays(lib, (upstream, *inputs)))

    return build


def by_hand(function: Callable[..., Any]) -> Builder:
    """``function(*arrays)``, hand-written for NumPy."""

    def build(lib: Any, *inputs: Any) -> Callable[[], Any]:
        return partial(function, *_arrays(lib, inputs))

    return build


def _either_layout(build: Builder) -> Builder:
    """torch's call with the channels first or last: the faster one of the first build."""
    chosen: list[str] = []

    def built(lib: Any, *inputs: Any) -> Callable[[], Any]:
        layouts = {"channels first": lib, "channels last": ChannelsLast(lib.xp.get_num_threads())}
        ways = {name: partial(build, library, *inputs) for name, library in layouts.items()}
        if chosen:
            return ways[chosen[0]]()
        call = fastest(ways)
        chosen.append(call.way)  # type: ignore[attr-defined]
        return call

    return built


def both_ways(
    group: str,
    name: str,
    inputs: Callable[[Any], Sequence[Any]],
    eager: Callable[[Any], Callable[..., Any]],
    jax: Callable[..., Any],
    numpy: Callable[..., Any] | None = None,
    gradients: Callable[..., Any] | None = None,
    work: Mapping[str, tuple[float, float]] | None = None,
    quick: tuple[bool, bool] = (True, True),
    jax_layout: Callable[[Sequence[Any]], Sequence[Any]] = lambda inputs: inputs,
    images: bool = False,
    **shared: Any,
) -> None:
    """Register a function's forward row, and its row with gradients.

    ``inputs(rng)`` has the upstream gradient first. ``eager(lib)`` is minigrad's and torch's
    function. ``jax(jax, *xs)`` is jitted. ``numpy(*xs)`` and ``gradients(g, *xs)`` (the result and
    all gradients) are hand-written if a few lines are enough. ``work`` maps names of a case's
    fields to pairs for the two rows: ``{"flops": (forward, both)}``. ``jax_layout`` converts the
    inputs to jax's fastest layout. With ``images`` torch is timed with the channels first and last.
    """

    def laid_out(build: Builder) -> Builder:
        return lambda lib, *given: build(lib, *jax_layout(given))

    forward: dict[str, Builder] = dict.fromkeys(("minigrad", "torch"), plain(eager))
    both: dict[str, Builder] = dict.fromkeys(("minigrad", "torch"), eager_backward(eager))
    if images:
        forward["torch"], both["torch"] = map(_either_layout, (forward["torch"], both["torch"]))
    forward["jax"], both["jax"] = laid_out(jitted(jax)), laid_out(jax_backward(jax))
    if numpy is not None:
        forward["numpy"] = by_hand(numpy)
    if gradients is not None:
        both["numpy"] = by_hand(gradients)
    one, two = ({field: pair[way] for field, pair in (work or {}).items()} for way in (0, 1))
    alone = lambda rng: inputs(rng)[1:]  # noqa: E731 - without the upstream gradient
    register(Case(group, name, alone, forward, quick=quick[0], **one, **shared))
    register(Case(group, name + BACKWARD, inputs, both, quick=quick[1], **two, **shared))
