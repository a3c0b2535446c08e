"""Record of the calls of a model's modules: which called which, and what each computed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from minigrad.functions import equal
from minigrad.functions.grad_modes import no_grad
from minigrad.nn.module import Module
from minigrad.random import get_rng_state, set_rng_state
from minigrad.tape.node import record
from minigrad.tape.tensor_base import TensorBase

__all__ = ["ModuleCall", "check_depth", "run_model", "shapes_of", "unchanged", "watched_calls"]


class ModuleCall:
    """One call of a module, and the nodes that were recorded meanwhile, by their serials."""

    def __init__(self, module: Module, name: str, outer: ModuleCall | None, args: Any) -> None:
        self.module = module
        self.name = name  # within the model; "" for the model itself
        self.outer = outer
        self.level: int = 0 if outer is None else outer.level + 1
        self.inputs = {id(x) for x in _tensors(args)}
        self.output: Any = None
        self.first = _serial()
        self.last = -1
        self.flops = 0  # of its own kernels, without those of modules that it called

    def around(self) -> list[ModuleCall]:
        """The calls that this one lies in, outermost first, and itself."""
        chain: list[ModuleCall] = []
        call: ModuleCall | None = self
        while call is not None:
            chain.append(call)
            call = call.outer
        return chain[::-1]


@contextmanager
def watched_calls(model: Module) -> Iterator[tuple[list[ModuleCall], list[ModuleCall]]]:
    """All calls of the model's modules in this scope, in order, and the stack of open ones."""
    calls: list[ModuleCall] = []
    stack: list[ModuleCall] = []

    def before(name: str, module: Module, args: Any, kwargs: Any) -> None:
        outer = stack[-1] if stack else None
        stack.append(ModuleCall(module, name, outer, (args, kwargs)))
        calls.append(stack[-1])

    def after(module: Module, args: Any, output: Any) -> None:
        call = stack.pop()
        call.output = output
        call.last = _serial()

    handles = []
    try:
        for name, module in model.named_modules():
            hook = partial(before, name)
            handles.append(module.register_forward_pre_hook(hook, prepend=True, with_kwargs=True))
            handles.append(module.register_forward_hook(after, always_call=True))
        yield calls, stack
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def unchanged(model: Module) -> Iterator[None]:
    """Put back the model's buffers and the state of the random generator at the end."""
    state = get_rng_state()
    buffers = [(b, b.detach().clone()) for b in model.buffers()]
    try:
        yield
    finally:
        set_rng_state(state)
        with no_grad():
            for buffer, before in buffers:
                if not equal(buffer, before):
                    buffer.copy_(before)


def run_model(model: Module, input: Any) -> Any:
    """Call a model on one tensor, on several arguments, or on keyword arguments."""
    if isinstance(input, Mapping):
        try:
            inspect.signature(type(model).forward).bind(model, **input)
        except TypeError:
            return model(input)
        return model(**input)
    if input is None:
        return model()
    return model(*input) if isinstance(input, (tuple, list)) else model(input)


def check_depth(op: str, depth: int | None) -> None:
    """ValueError for a negative number of levels."""
    if depth is not None and depth < 0:
        raise ValueError(f"[{op}] depth is {depth}: give 0 or more levels, or None for all")


def shapes_of(output: Any) -> list[tuple[int, ...]]:
    """The shapes of the tensors in an output."""
    return [tuple(x.shape) for x in _tensors(output)]


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from _tensors(x)


def _serial() -> int:
    """The number of a node that is made now."""
    return record(None, None, (), None, None).serial
