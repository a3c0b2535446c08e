"""Jacobians, Hessians and their products with vectors, by reverse mode, of functions of tensors.

Each function takes ``func`` and its ``inputs``, a tensor or a tuple of tensors, and does not touch
their ``grad``. Names, arguments and the structure of results are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.autograd import grad
from minigrad.functions.creation import zeros, zeros_like
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
    an input, which otherwise gives zeros. There is one backward pass for each element of the
    output; ``vectorize`` and ``strategy`` are accepted and change nothing.

    >>> import minigrad as mg
    >>> mg.autograd.functional.jacobian(lambda x: x**2, mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    op = "jacobian"
    xs, one_input = _inputs(op, inputs, create_graph)
    with enable_grad():
        ys, one_output = _outputs(op, func(*xs))
        rows = [_rows(op, y, xs, create_graph, strict) for y in ys]
    found = tuple(made[0] if one_input else made for made in rows)
    return found[0] if one_output else found


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
    inputs i and j. Options are as for :func:`jacobian`. Raises RuntimeError where the output has
    not one element.

    >>> import minigrad as mg
    >>> mg.autograd.functional.hessian(lambda x: (x**3).sum(), mg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    op = "hessian"
    xs, one_input = _inputs(op, inputs, create_graph)
    with enable_grad():
        gradients = _function_gradients(op, func, xs, strict)
        found = tuple(_rows(op, gradient, xs, create_graph, strict) for gradient in gradients)
    return found[0][0] if one_input else found


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
    xs, one_input = _inputs(op, inputs, create_graph)
    with enable_grad():
        ys, one_output = _outputs(op, func(*xs))
        vs = _vectors(op, v, ys, "output")
        found = _gradients(op, ys, xs, vs, create_graph, strict)
    return _given_back(ys, one_output, create_graph), found[0] if one_input else found


def jvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Tensors]:
    """The output of ``func``, and the product of its Jacobian with the vector ``v``.

    ``v`` has the shape of the input and may be left out for one element. The product has the shape
    of the output. It is computed by two backward passes, the second through the first.

    >>> import minigrad as mg
    >>> y, product = mg.autograd.functional.jvp(mg.exp, mg.zeros(2), mg.tensor([1.0, 3.0]))
    >>> product
    tensor([1., 3.])
    """
    op = "jvp"
    xs, _ = _inputs(op, inputs, create_graph)
    vs = _vectors(op, v, xs, "input")
    with enable_grad():
        ys, one_output = _outputs(op, func(*xs))
        ws = tuple(zeros_like(y).requires_grad_() for y in ys)
        gradients = _gradients(op, ys, xs, ws, True, strict)
        found = _gradients(op, gradients, ws, vs, create_graph, False)
    return _given_back(ys, one_output, create_graph), found[0] if one_output else found


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
    op = "vhp"
    xs, one_input = _inputs(op, inputs, create_graph)
    vs = _vectors(op, v, xs, "input")
    with enable_grad():
        y = _one_element(op, func(*xs))
        gradients = _gradients(op, (y,), xs, None, True, strict)
        found = _gradients(op, gradients, xs, vs, create_graph, strict)
    return _given_back((y,), True, create_graph), found[0] if one_input else found


def hvp(
    func: Callable[..., Any],
    inputs: Tensors,
    v: Tensors = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Tensors]:
    """The output of ``func``, one element, and the product of its Hessian with the vector ``v``.

    The Hessian is symmetric, so this is :func:`vhp`.

    >>> import minigrad as mg
    >>> x, v = mg.tensor([1.0, 2.0]), mg.tensor([0.0, 1.0])
    >>> mg.autograd.functional.hvp(lambda x: (x**3).sum(), x, v)[1]
    tensor([ 0., 12.])
    """
    return vhp(func, inputs, v, create_graph, strict)


# ---- inputs, outputs and vectors -----------------------------------------------------------------


def _inputs(op: str, inputs: Tensors, create_graph: bool) -> tuple[tuple[Any, ...], bool]:
    """Tensors to differentiate by, in place of the inputs, and whether it was one alone."""
    xs, one = _listed(op, "inputs", inputs)
    fresh = []
    for x in xs:
        if create_graph and x.requires_grad:
            fresh.append(x.view(x.shape))  # a place of its own on the graph of the input
        else:
            fresh.append(x.detach().requires_grad_())
    return tuple(fresh), one


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


def _given_back(ys: tuple[Any, ...], one: bool, create_graph: bool) -> Tensors:
    found = ys if create_graph else tuple(y.detach() for y in ys)
    return found[0] if one else found


# ---- derivatives ---------------------------------------------------------------------------------


def _gradients(
    op: str,
    ys: tuple[Any, ...],
    xs: tuple[Any, ...],
    vs: tuple[Any, ...] | None,
    create_graph: bool,
    strict: bool,
    retain_graph: bool | None = None,
) -> tuple[Any, ...]:
    """The gradients by xs; zeros where nothing depends on one, or an error if that is wanted."""
    places = [k for k, y in enumerate(ys) if y.requires_grad]
    if strict and len(places) < len(ys):
        raise RuntimeError(f"[{op}] an output of func does not depend on the inputs")
    if not places:
        return tuple(zeros_like(x) for x in xs)
    found = grad(
        [ys[k] for k in places],
        xs,
        None if vs is None else [vs[k] for k in places],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    if strict and any(g is None for g in found):
        raise RuntimeError(f"[{op}] the output of func does not depend on one of the inputs")
    return tuple(zeros_like(x) if g is None else g for g, x in zip(found, xs, strict=True))


def _function_gradients(
    op: str, func: Callable[..., Any], xs: tuple[Any, ...], strict: bool
) -> tuple[Any, ...]:
    """The gradients of the one element that func gives, to be differentiated again."""
    return _gradients(op, (_one_element(op, func(*xs)),), xs, None, True, strict)


def _rows(
    op: str, y: Any, xs: tuple[Any, ...], create_graph: bool, strict: bool
) -> tuple[Any, ...]:
    """The Jacobians of y by each of xs, a backward pass for each element of y."""
    rows = [
        _gradients(op, (one,), xs, None, create_graph, strict, retain_graph=True)
        for one in y.reshape(-1).unbind()
    ]
    if not rows:
        return tuple(zeros((*y.shape, *x.shape), dtype=x.dtype) for x in xs)
    return tuple(_stacked(column, y.shape) for column in zip(*rows, strict=True))


def _stacked(rows: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    from minigrad.functions import stack

    return stack(rows).reshape(*shape, *rows[0].shape)
