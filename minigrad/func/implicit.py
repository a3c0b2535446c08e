"""Roots and fixed points, differentiated by the implicit function theorem.

Source: M. Blondel and others, Efficient and Modular Implicit Differentiation (2022). At a root x of
F(x, p) the derivative of x with respect to p is -J^-1 dF/dp, where J is dF/dx. A backward solves
one linear system with the transpose of J, however x was found. The solution of that system is
itself a root, of a function of x, p and the upstream gradient. It can be differentiated again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

from minigrad import linalg
from minigrad.autograd.before import Before
from minigrad.functions.creation import tensor, zeros
from minigrad.functions.grad_modes import enable_grad, no_grad
from minigrad.functions.predicates import is_tensor
from minigrad.functions.promotion import finfo
from minigrad.functions.shaping import contiguous, stack
from minigrad.runtime.batched import by_rules, running
from minigrad.runtime.dtypes import get_default_dtype
from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import Saved, call, kernels, save_as_is, saved_handle
from minigrad.tape.engine import ends, gradients
from minigrad.tape.grad_mode import is_grad_enabled
from minigrad.tape.node import Node, record
from minigrad.tape.tensor_base import TensorBase, parent_of, wrap

__all__ = ["custom_root", "fixed_point"]

_DENSE = 256  # up to so many unknowns the Jacobian is formed, above that GMRES needs products alone


def custom_root(
    residual: Callable[..., Any], solve: Callable[..., Any], *, tol: float = 1e-3
) -> Callable[..., Any]:
    """The function of ``params`` that returns the root x of ``residual(x, *params)``.

    ``solve(*params)`` finds x, by any means: nothing of it is recorded, and it gets tensors without
    a history. It returns a tensor, an array or numbers. ``residual`` is written in tensor
    operations, and has x's shape. The gradients with respect to ``params`` are those of the exact
    root, and cost one linear solve with the transposed Jacobian. Leaves that ``residual`` uses
    without being given them, such as a module's parameters, get theirs too. The gradients can be
    differentiated again. Keyword arguments go to both functions, and have no gradient.

    Up to 256 unknowns the Jacobian is formed row by row. For more, GMRES solves the system by
    vector-Jacobian products.

    Raises RuntimeError where ``residual`` at x is above ``tol * (1 + max|x|)``, or is not finite;
    where it uses a tensor that is neither given nor a leaf; and where GMRES does not converge.
    ValueError for a residual of another shape, LinAlgError for a singular Jacobian.

    >>> import minigrad as mg
    >>> root = mg.func.custom_root(lambda x, a: x**2 - a, lambda a: a.numpy() ** 0.5)
    >>> a = mg.tensor(4.0, requires_grad=True)
    >>> x = root(a)
    >>> x.backward()
    >>> x.item(), a.grad.item()
    (2.0, 0.25)
    """
    return _root("custom_root", residual, solve, tol)


def fixed_point(
    function: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float | None = None,
    max_iter: int = 1000,
    **kwargs: Any,
) -> Any:
    """The x with ``function(x, *params) = x``, iterated from ``x0``; nothing of that is recorded.

    Iteration ends once no element of x moves by more than ``tol * (1 + max|x|)``. The default of
    ``tol`` is 8 units in the last place. Gradients with respect to ``params``, and to leaves that
    ``function`` uses, are as those of :func:`custom_root`. ``x0`` gets none.

    Raises RuntimeError after ``max_iter`` steps, and as :func:`custom_root`.

    >>> import minigrad as mg
    >>> a = mg.tensor(2.0, dtype=mg.float64, requires_grad=True)
    >>> x = mg.func.fixed_point(lambda x, a: (x + a / x) / 2, mg.tensor(1.0, dtype=mg.float64), a)
    >>> x.backward()
    >>> f"{x.item():.6f} {a.grad.item():.6f}"
    '1.414214 0.353553'
    """

    if running and by_rules("level_of")((x0, params, kwargs)) is not None:

        def alone(x0: Any, params: Any, kwargs: Any) -> Any:
            return fixed_point(function, x0, *params, tol=tol, max_iter=max_iter, **kwargs)

        return by_rules("looped")("fixed_point", alone, x0, params, kwargs)

    def solve(*given: Any, **named: Any) -> Any:
        x = (x0 if is_tensor(x0) else tensor(x0)).detach()
        x = x if x.dtype.is_floating_point else x.to(get_default_dtype())
        within = 8 * finfo(x.dtype).eps if tol is None else tol
        for _ in range(max_iter):
            before, x = x, function(x, *given, **named)
            if not isinstance(x, TensorBase):
                raise TypeError(
                    f"[fixed_point] the function returned {type(x).__name__}, not a Tensor"
                )
            moved = _largest(x - before)
            if moved <= within * (1 + _largest(x)):
                return x
        raise RuntimeError(
            f"[fixed_point] x still moves by {moved:.3g} after {max_iter} steps: start nearer, "
            "allow more steps, or give a tol that they reach"
        )

    def residual(x: Any, *given: Any, **named: Any) -> Any:
        return function(x, *given, **named) - x

    find = _root("fixed_point", residual, solve, max(1e-3, 10 * (tol or 0)))
    return find(*params, **kwargs)


def _root(op: str, residual: Any, solve: Any, tol: float) -> Callable[..., Any]:
    for function in (residual, solve):
        if not callable(function):
            raise TypeError(f"[{op}] expected a function, not {type(function).__name__}")

    def root(*params: Any, **kwargs: Any) -> Any:
        if running and by_rules("level_of")((params, kwargs)) is not None:
            return by_rules("looped")(op, lambda p, named: root(*p, **named), params, kwargs)
        with no_grad():
            x = solve(*[p.detach() if is_tensor(p) else p for p in params], **kwargs)
        if not is_tensor(x):
            x = tensor(x)
        x = wrap(call(kernels.copy, x._h))  # solve may write into its own again
        problem = _Problem(op, residual, kwargs)
        used = problem.checked(x, params, tol)
        return _recorded(problem, x, params, used)

    root.__name__ = root.__qualname__ = getattr(residual, "__name__", "root")
    return root


class _Problem:
    """A residual, with what does not change from one backward to the next."""

    before: Before  # of the call that checked the root
    digest: int | None = None  # of the residual's values at the root

    def __init__(self, op: str, residual: Callable[..., Any], kwargs: dict[str, Any]) -> None:
        self.op, self.residual, self.kwargs = op, residual, kwargs

    def __call__(self, x: Any, params: Sequence[Any]) -> Any:
        """The residual, recorded."""
        with enable_grad():
            r = self.residual(x, *params, **self.kwargs)
        if not isinstance(r, TensorBase):
            raise TypeError(f"[{self.op}] the residual is {type(r).__name__}, not a Tensor")
        if r.shape != x.shape:
            raise ValueError(
                f"[{self.op}] the residual has shape {r.shape}, and x has {x.shape}: one equation "
                "for each unknown"
            )
        if self.digest is not None and _digest(r) != self.digest:
            raise RuntimeError(
                f"[{self.op}] the residual has other values than when the root was found: memory "
                "that NumPy can write changed, or another value that it reads; pass it as an "
                "argument, or clone() it"
            )
        return _alias(r, True)  # of its own, also where it is x or a parameter

    def checked(self, x: Any, params: Sequence[Any], tol: float) -> list[Any]:
        """The leaves that the residual uses beside x and the parameters, if x is a root of it."""
        if not x.dtype.is_floating_point:
            raise TypeError(f"[{self.op}] solve returned {x.dtype.name}: unknowns are floats")
        at, given = _fresh(x), [_fresh(p) for p in params]
        self.before = Before()
        r = self(at, given)
        own = {id(at), *map(id, given)}
        roots = [r._edge] if type(r._edge) is Node else []
        used = [end for end in ends(roots, self.before.serial) if id(end) not in own]
        older = [end for end in used if type(end) is Node]
        if older:
            raise RuntimeError(
                f"[{self.op}] the residual uses a result of {older[0].op.name!r} that is not given "
                "to it: pass that tensor as an argument"
            )
        size = _largest(r)
        if not size <= tol * (1 + _largest(x)):
            raise RuntimeError(
                f"[{self.op}] the residual is up to {size:.3g} at what solve returned, which is no "
                f"root: the gradient would be wrong; solve further, or allow tol > {tol:g}"
            )
        self.digest = _digest(r)
        self.before.keep(roots)
        for leaf in used:
            self.before.pin_shared(leaf._h)
        return used if is_grad_enabled() else []


def _digest(x: Any) -> int:
    """A number that is another one for other values, but once in four billion."""
    return zlib.crc32(contiguous(x.detach()).numpy().data)


def _largest(x: Any) -> float:
    """The largest magnitude; NaN if there is one."""
    return float(x.detach().abs().amax().item()) if x.numel() else 0.0


def _fresh(x: Any) -> Any:
    """A leaf with the values of a float tensor; anything else as it is."""
    floats = isinstance(x, TensorBase) and x.dtype.is_floating_point
    return x.detach().requires_grad_() if floats else x


class _RootOp:
    """A root on the tape; what the node saved are pins of x and of the parameters."""

    lends = True  # the residual's hooks and Functions may write over the gradient

    def __init__(self, problem: _Problem, count: int, meta: Any) -> None:
        self.problem, self.count = problem, count  # of the parameters that are given
        self.meta = meta  # shape and dtype of the root, which forward mode asks for
        self.name = problem.op

    @no_grad
    def vjp(self, node: Node, g: Any) -> list[Any]:
        """The gradients of the parameters, by a linear solve."""
        return self._run(node, g, False)

    def graph_vjp(self, node: Node, g: Any) -> list[Any]:
        """The same on the tape."""
        return self._run(node, g, True)

    def _run(self, node: Node, g: Any, graph: bool) -> list[Any]:
        self.problem.before.check(self.name)
        edges = (node, *(node.parents or ()))
        x, *params = [
            wrap(saved_handle(kept, 0, self.name), edge) if type(kept) is Saved else kept
            for kept, edge in zip(node.saved, edges, strict=True)
        ]
        given = params[: self.count]
        w = (_adjoint if graph else _solved)(self.problem, g, x, given)
        at, given = _alias(x, graph), [_alias(p, graph) for p in given]
        r = self.problem(at, given)
        by = [None if edge is None else p for p, edge in zip(given, edges[1:], strict=False)]
        return _partial(r, [at, *by, *edges[1 + self.count :]], -w, graph)[1:]


def _recorded(problem: _Problem, x: Any, params: Sequence[Any], used: Sequence[Any]) -> Any:
    """The root with a place on the tape."""
    every = (*params, *used)
    parents = [parent_of(p) if isinstance(p, TensorBase) else None for p in every]
    out = wrap(call(kernels.view_alias, x._h))
    if is_grad_enabled() and any(p is not None for p in parents):
        kept = [save_as_is(p._h) if isinstance(p, TensorBase) else p for p in (out, *every)]
        op = _RootOp(problem, len(params), (x.shape, x.dtype))
        out._edge = record(op, tuple(kept), (problem.before,), None, *parents)
    return out


def _alias(x: Any, graph: bool) -> Any:
    """A tensor to differentiate by: with a history of its own that goes on to x's, or none."""
    if not isinstance(x, TensorBase) or not x.dtype.is_floating_point:
        return x
    if not graph or x._edge is None:
        return x.detach().requires_grad_()  # type: ignore[attr-defined]
    with enable_grad():
        return x.view(x.shape)  # type: ignore[attr-defined]


def _partial(r: Any, by: Sequence[Any], g: Any, graph: bool, retain: bool = False) -> list[Any]:
    """The partial gradients of r with respect to these tensors: the pass ends at all of them."""
    edges = [parent_of(x) if isinstance(x, TensorBase) else None for x in by]
    if r._edge is None:
        return [None] * len(edges)
    asked = {edge for edge in edges if edge is not None}
    found = gradients((parent_of(r),), (g.to(r.dtype),), graph or retain, graph, asked, ends=True)
    return [None if edge is None else found.get(edge) for edge in edges]


# ---- the linear system ---------------------------------------------------------------------------


def _solved(problem: _Problem, g: Any, x: Any, params: Sequence[Any]) -> Any:
    """The w with J^T w = g, where J is the residual's Jacobian at x."""
    at = x.detach().requires_grad_()
    with no_grad():
        r = problem(at, [p.detach() if isinstance(p, TensorBase) else p for p in params])  # type: ignore[attr-defined]

        def transposed(w: Any) -> Any:
            """J^T w, flat."""
            (found,) = _partial(r, [at], w.reshape(x.shape), False, retain=True)
            return zeros(x.numel(), dtype=x.dtype) if found is None else found.reshape(-1)

        g = g.detach().reshape(-1).to(x.dtype)
        n = x.numel()
        if n > _DENSE:
            return _gmres(problem.op, transposed, g).reshape(x.shape)
        units = np.eye(n)
        jacobian = stack([transposed(tensor(units[k], x.dtype)) for k in range(n)]) if n else None
        return g.reshape(x.shape) if jacobian is None else _dense(problem.op, jacobian, g, x.shape)


def _dense(op: str, jacobian: Any, g: Any, shape: tuple[int, ...]) -> Any:
    try:
        return linalg.solve(jacobian.mT, g).reshape(shape)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(
            f"[{op}] the Jacobian of the residual is singular at the root, which is then no "
            "differentiable function of the parameters"
        ) from None


def _gmres(op: str, transposed: Callable[[Any], Any], g: Any, most: int = 500) -> Any:
    """The w with ``transposed(w) = g``, in float64 but for the products.

    Source: Y. Saad and M. H. Schultz, GMRES (1986), without restarts. The basis is made orthogonal
    twice.
    """
    b = g.numpy().astype(np.float64)
    size = np.linalg.norm(b)
    if size == 0:
        return g
    within = 8 * finfo(g.dtype).eps * size
    basis = [b / size]
    columns = np.zeros((most + 1, most))
    for k in range(min(most, b.size)):
        v = transposed(tensor(basis[k], g.dtype)).numpy().astype(np.float64)
        for _ in range(2):
            for j, q in enumerate(basis):
                part = q @ v
                columns[j, k] += part
                v = v - part * q
        columns[k + 1, k] = np.linalg.norm(v)
        target = np.zeros(k + 2)
        target[0] = size
        y = np.linalg.lstsq(columns[: k + 2, : k + 1], target, rcond=None)[0]
        left = np.linalg.norm(columns[: k + 2, : k + 1] @ y - target)
        if left <= within or columns[k + 1, k] <= within:
            break
        basis.append(v / columns[k + 1, k])
    if not left <= 100 * within:
        raise RuntimeError(
            f"[{op}] GMRES reaches a relative error of {left / size:.3g} after {k + 1} steps: the "
            "Jacobian is singular or ill-conditioned"
        )
    return tensor(np.stack(basis[: y.size], 1) @ y, g.dtype)


def _adjoint(problem: _Problem, g: Any, x: Any, params: Sequence[Any]) -> Any:
    """The same w on the tape: the root of J(x, params)^T w - g."""

    def residual(w: Any, x: Any, g: Any, *params: Any) -> Any:
        at = _alias(x if x._edge is not None else x.detach().requires_grad_(), True)
        (found,) = _partial(problem(at, params), [at], w, True)
        return (found if found is not None else zeros(x.shape, dtype=x.dtype)) - g

    def solve(x: Any, g: Any, *params: Any) -> Any:
        return _solved(problem, g, x, params)

    return _root(problem.op, residual, solve, float("inf"))(x, g, *params)
