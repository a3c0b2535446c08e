"""The accelerator under the names of the tape's modules; None if the tape in Python runs.

Every module of the tape defines its names in Python. At its end it takes the accelerator's version
of a name, if there is one. :mod:`minigrad.runtime.accelerator` chooses the tape.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from minigrad.ops.table import Row
from minigrad.runtime.accelerator import speed
from minigrad.runtime.native import kernels, lib, vjp_of

__all__ = ["accelerator"]

# How an operation's function takes its arguments: apply_style in csrc/python/apply.c.
_INPUTS, _ONE_AND_ARGS, _LIST_AND_ARGS = range(3)
# How a rule computes its gradients: rule_kind in csrc/python/vjp.c.
_LINEAR, _UNARY, _SEVERAL = range(3)
# Python functions that C calls, nearly all in the backward pass, each with its module.
_CALLBACKS = {
    "freed_error": "runtime.errors",
    "misfit_error": "runtime.errors",
    "nested_error": "runtime.errors",
    "start": "autograd.upstream",
    "rules": "tape.vjp",
    "added": "tape.engine",
    "accumulated_off_tape": "tape.engine",
    "hooked": "tape.engine",
    "hooked_off_tape": "tape.engine",
    "pause": "tape.engine",
    "recorded": "tape.watching",
    "unbroadcast": "tape.engine",
    "batched_row": "runtime.batched",
    "batched_call": "runtime.batched",
    "batched_wrap": "runtime.batched",
    "batched_parent": "runtime.batched",
    "batched_index": "runtime.batched",
    "batched_lists": "runtime.batched",
    "batched_split": "runtime.batched",
}


class _Callbacks:
    """The callbacks of the accelerator, each loaded when first called."""

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(f"minigrad.{_CALLBACKS[name]}")
        function = getattr(module, name)
        setattr(self, name, function)
        return function


def _saved_places(row: Row) -> bytes:
    """For each set of inputs that need gradients, the positions of the three arrays to save.

    A position below the arity is an input. The arity stands for the result, and arity + 1 for no
    array. Each set has three bytes, in the order of its bits.
    """
    arity = max(row.arity, 0)
    places = [bytes([arity + 1] * 3)]
    for needed in range(1, 1 << arity):
        saved_places = bytearray(places[0])
        for name in row.saves([bool(needed >> i & 1) for i in range(arity)]):
            place = row.place_of(name)
            saved_places[place] = arity if name == "y" else place
        places.append(bytes(saved_places))
    return b"".join(places)


def _operation(row: Row, kernel: int, style: int, reduces: bool = False) -> Any:
    return speed.operation(
        row,
        row.forward,
        kernel,
        style,
        1 if reduces else row.arity,
        row.fits,
        row.id >= 0 or row.takes is not None,
        bool(row.derivatives),
        row.wants_shape,
        reduces,
        row.takes is not None,
        _saved_places(row),
    )


def _operation_of(row: Row) -> Callable[..., Any]:
    """The function that applies a row to tensors: see ``operation`` in apply."""
    if row.run is None:
        style = _INPUTS if row.alone else _ONE_AND_ARGS if row.arity == 1 else _LIST_AND_ARGS
        row.run = _operation(row, row.kernel, style)
    return row.run


def _of_all(row: Row, number: int) -> Any:
    return _operation(row, number, _INPUTS, reduces=True)


def _apply(row: Row, inputs: Sequence[Any], args: tuple[Any, ...] = ()) -> Any:
    run = row.run or _operation_of(row)
    if row.alone:
        return run(*inputs)
    return run(inputs[0], args) if row.arity == 1 else run(tuple(inputs), args)


for _function, _name in ((_apply, "apply"), (_operation_of, "operation"), (_of_all, "of_all")):
    _function.__module__ = "minigrad.tape.apply"
    _function.__name__ = _function.__qualname__ = _name


def _kernel_rule(row: Row, partials: tuple[Any, ...]) -> Any:
    if row.family != "pointwise":
        return speed.rule(None, partials, _SEVERAL, row.vjp_kernel, -1)
    kernel = vjp_of(row.id)
    if kernel is None:  # all partials are constants: this kernel is never called
        kernel = row.id
    over_gradient = kernel + lib.mg_elementwise_count()
    return speed.rule(None, partials, _UNARY if row.arity == 1 else _SEVERAL, kernel, over_gradient)


def _linear_rule(row: Row) -> Any:
    kernel = {"sum": kernels.view_repeat, "mean": kernels.repeat_mean}.get(row.name, -1)
    return speed.rule(row.fused[0], (None,), _LINEAR, kernel, -1)


def _new_node(op: Any, saved: Any, args: Any, meta: Any, parents: tuple[Any, ...]) -> Any:
    return speed.Node.record(op, saved, args, meta, *parents)


def _accelerator() -> Any:
    names = (
        "Node Fields Size wrap parent_of link basic_index split from_lists to_lists use commit "
        "into_grads run_pass one grad_uses"
    )
    return SimpleNamespace(
        **{name: getattr(speed, name) for name in names.split()},
        new_node=_new_node,
        apply=_apply,
        operation=_operation_of,
        of_all=_of_all,
        kernel_rule=_kernel_rule,
        linear_rule=_linear_rule,
        callbacks=_Callbacks(),
    )


accelerator: Any = None if speed is None else _accelerator()
