"""Jacobians, Hessians and their products with vectors, of functions of tensors.

Each function takes ``func`` and its ``inputs``, a tensor or a tuple of tensors, and does not touch
their ``grad``. Names, arguments and the structure of results are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.autograd.recording import Recording, columns, rows, zeros_for
from minigrad.functions.creation import zeros_like
from minigrad.functions.grad_modes import enable_grad
from minigrad.tape.tensor_base import TensorBase

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Any  # a tensor, or a tuple of tensors


def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensors:
    """The Jacobian of ``func``: the derivative of each element of its output by each of its input.

    Its shape is that of the output, followed by that of the input. For a tuple of inputs it is a
    tuple with one for each, and for a tuple of outputs a tuple of those. With ``create_graph`` it
    can be differentiated again. ``strict`` raises RuntimeError where an output does not depend on
    an input, which otherwise gives zeros. Upstream gradients for all elements of the output are
    pulled together, as by ``mg.func.jacrev``. With ``strategy="forward-mode"`` a tangent is pushed
    for each element of the inputs. ``vectorize`` is PyTorch's and changes nothing.

    >>> import minigrad as mg
    >>> mg.autograd.functional.jacobian(lambda x: x**2, mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    op = "jacobian"
    forward = _is_forward(op, "strategy", strategy)
    call = _Call(op, func, inputs, create_graph)
    return call.by_output(_jacobians(call, forward, strict))


def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensors:
    """The second derivatives of ``func``, whose output has one element.

    Its shape is twice that of the input; for a tuple of inputs entry [i][j] has the shapes of
    inputs i and j. Options are as for :func:`jacobian`; ``outer_jacobian_strategy`` says how the
    gradient is differentiated. Raises RuntimeError where the output has
    not one element.

    >>> import minigrad as mg
    >>> mg.autograd.functional.hessian(lambda x: (x**3).sum(), mg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    op = "hessian"
    forward = _is_forward(op, "outer_jacobian_strategy", outer_jacobian_strategy)
    call = _Call(op, _gradients_of(op, func, strict), inputs, create_graph)
    found = _jacobians(call, forward, strict)
    return found[0][0] if call.one_input else tuple(found)


def vjp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Tensors]:
    """The output of ``func``, and the product of the vector ``v`` with its Jacobian.

    ``v`` has the shape of the output and may be left out for one element. The product has the
    shape of the input.

    >>> import minigrad as mg
    >>> y, product = mg.autograd.functional.vjp(mg.exp, mg.zeros(2), mg.tensor([1.0, 3.0]))
    >>> product
    tensor([1., 3.])
    """
    op = "vjp"
    call = _Call(op, func, inputs, create_graph)
    vs = _vectors(op, v, call.outputs, "output")
    return call.result(), call.by_input(_pulled(call, vs, strict))


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Tensors]:
    """The output of ``func``, and the product of its Jacobian with the vector ``v``.

    ``v`` has the shape of the input and may be left out for one element. The product has the shape
    of the output. It is computed by forward mode.

    >>> import minigrad as mg
    >>> y, product = mg.autograd.functional.jvp(mg.exp, mg.zeros(2), mg.tensor([1.0, 3.0]))
    >>> product
    tensor([1., 3.])
    """
    op = "jvp"
    call = _Call(op, func, inputs, create_graph)
    vs = _vectors(op, v, call.inputs, "input")
    if strict:
        _pulled(call, call.outputs, strict)
    found = call.recording.push(vs, create_graph)
    made = [zeros_like(y) if t is None else t for t, y in zip(found, call.outputs, strict=True)]
    return call.result(), made[0] if call.one_output else tuple(made)


def vhp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Tensors]:
    """The output of ``func``, one element, and the product of the vector ``v`` with its Hessian.

    >>> import minigrad as mg
    >>> x, v = mg.tensor([1.0, 2.0]), mg.tensor([1.0, 0.0])
    >>> mg.autograd.functional.vhp(lambda x: (x**3).sum(), x, v)[1]
    tensor([6., 0.])
    """
    return _hessian_product("vhp", False, func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Tensors]:
    """The output of ``func``, one element, and the product of its Hessian with the vector ``v``.

    The Hessian is symmetric, so this is the product of :func:`vhp`, by forward over reverse.

    >>> import minigrad as mg
    >>> x, v = mg.tensor([1.0, 2.0]), mg.tensor([0.0, 1.0])
    >>> mg.autograd.functional.hvp(lambda x: (x**3).sum(), x, v)[1]
    tensor([ 0., 12.])
    """
    return _hessian_product("hvp", True, func, inputs, v, create_graph, strict)


def _hessian_product(
    op: str,
    forward: bool,
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors,
    create_graph: bool,
    strict: bool,
) -> tuple[Any, Tensors]:
    values: list[Any] = []
    call = _Call(op, _gradients_of(op, func, strict, values), inputs, create_graph)
    vs = _vectors(op, v, call.inputs, "input")
    if forward and not strict:
        pushed = call.recording.push(vs, create_graph)
        found = [
            zeros_like(x) if t is None else t for t, x in zip(pushed, call.inputs, strict=True)
        ]
    else:
        found = _pulled(call, vs, strict)
    value = values[0] if create_graph else values[0].detach()
    return value, call.by_input(found)


# ---- calls ---------------------------------------------------------------------------------------


class _Call:
    """A call of ``func``, recorded, and whether it takes and returns one tensor or several."""

    def __init__(
        self, op: str, func: Callable[..., Any], inputs: Tensors, create_graph: bool
    ) -> None:
        xs, self.one_input = _listed(op, "inputs", inputs)
        self.op, self.create_graph = op, create_graph
        with enable_grad():
            self.recording = Recording(xs, create_graph)
            self.inputs = tuple(self.recording.inputs)
            self.recording.run(lambda: func(*self.recording.given), self._split)

    def _split(self, result: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        self.outputs, self.one_output = _listed(self.op, "the outputs of func", result)
        return self.outputs, ()

    def result(self) -> Tensors:
        """The result of func."""
        found = self.outputs if self.create_graph else tuple(y.detach() for y in self.outputs)
        return found[0] if self.one_output else found

    def by_input(self, found: Sequence[Any]) -> Tensors:
        """One value for each input."""
        return found[0] if self.one_input else tuple(found)

    def by_output(self, found: Sequence[Sequence[Any]]) -> Tensors:
        """For each output a value for each input."""
        made = tuple(self.by_input(each) for each in found)
        return made[0] if self.one_output else made


def _gradients_of(
    op: str, func: Callable[..., Any], strict: bool, values: list[Any] | None = None
) -> Callable[..., tuple[Any, ...]]:
    """The gradients of the one element that func gives, to be differentiated again.

    The element is added to ``values``.
    """

    def gradients(*xs: Any) -> tuple[Any, ...]:
        inner = _Call(op, lambda *ys: _one_element(op, func(*ys)), xs, True)
        if values is not None:
            values.append(inner.outputs[0])
        return tuple(_pulled(inner, (zeros_like(inner.outputs[0]) + 1.0,), strict))

    return gradients


# ---- inputs, outputs and vectors -----------------------------------------------------------------


def _outputs(op: str, outputs: Tensors) -> tuple[tuple[Any, ...], bool]:
    return _listed(op, "the outputs of func", outputs)


def _listed(op: str, what: str, given: Tensors) -> tuple[tuple[Any, ...], bool]:
    one = isinstance(given, TensorBase)
    found = (given,) if one else given
    if not isinstance(found, (tuple, list)):
        raise TypeError(
            f"[{op}] {what} must be a tensor or a tuple of tensors, not {type(given).__name__}"
        )
    for place, x in enumerate(found):
        if not isinstance(x, TensorBase):
            raise TypeError(f"[{op}] {what}: number {place} is {type(x).__name__}, not a tensor")
    return tuple(found), one


def _one_element(op: str, output: Tensors) -> Any:
    (y, *more), _ = _outputs(op, output)
    if more or y.size != 1:
        found = "several tensors" if more else f"the shape {y.shape}"
        raise RuntimeError(f"[{op}] the output of func has {found}, but must have one element")
    return y


def _vectors(op: str, v: Tensors, like: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """The vectors, which have the shapes of these tensors."""
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise RuntimeError(f"[{op}] v may be left out only if the {what} has one element")
        return (zeros_like(like[0]) + 1.0,)
    vs, _ = _listed(op, "v", v)
    if [x.shape for x in vs] != [x.shape for x in like]:
        raise RuntimeError(
            f"[{op}] v has the shapes {[x.shape for x in vs]}, the {what} "
            f"{[x.shape for x in like]}: they must be equal"
        )
    return vs


# ---- derivatives ---------------------------------------------------------------------------------


def _pulled(call: _Call, vs: Sequence[Any], strict: bool) -> list[Any]:
    """The gradients by the inputs; zeros where nothing depends on one, or an error if strict."""
    if strict and any(not y.requires_grad for y in call.outputs):
        raise _no_output_error(call.op)
    found = call.recording.pull(vs, graph=call.create_graph)
    if strict and any(g is None for g in found):
        raise _no_input_error(call.op)
    return [zeros_like(x) if g is None else g for g, x in zip(found, call.inputs, strict=True)]


def _jacobians(call: _Call, forward: bool, strict: bool) -> list[tuple[Any, ...]]:
    """For each output its Jacobians by all inputs."""
    if strict and any(not y.requires_grad for y in call.outputs):
        raise _no_output_error(call.op)
    recording, graph = call.recording, call.create_graph
    with enable_grad():  # a graph is created under no_grad, too
        if forward:
            by_input = [columns(recording, k, graph) for k in range(len(call.inputs))]
            found = [[column[i] for column in by_input] for i in range(len(call.outputs))]
        else:
            found = [rows(recording, i, graph) for i in range(len(call.outputs))]
    if strict and any(each is None for row in found for each in row):
        raise _no_input_error(call.op)
    return [
        tuple(
            zeros_for(each, (*y.shape, *x.shape), x.dtype)
            for each, x in zip(row, call.inputs, strict=True)
        )
        for y, row in zip(call.outputs, found, strict=True)
    ]


def _no_output_error(op: str) -> RuntimeError:
    return RuntimeError(f"[{op}] an output of func does not depend on the inputs")


def _no_input_error(op: str) -> RuntimeError:
    return RuntimeError(f"[{op}] the output of func does not depend on one of the inputs")


def _is_forward(op: str, name: str, given: str) -> bool:
    if given not in ("forward-mode", "reverse-mode"):
        raise ValueError(f'[{op}] {name} is {given!r}: give "forward-mode" or "reverse-mode"')
    return given == "forward-mode"
