"""Costs of kernels: the bytes that a call reads and writes, and its floating-point operations.

Products, convolutions, attention, recurrent layers and linear systems are counted by their formula,
a multiplication and an addition as two operations. Elementwise kernels and reductions count one for
each element that they compute or read, also a transcendental function. Softmax, variances and norms
count several. Moving data counts none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minigrad.runtime.dtypes import by_code
from minigrad.runtime.native import Array, Saved, lib, names, signatures

__all__ = ["REDUCTIONS", "Sized", "chain_members", "cost"]

_ITEMSIZE = {code: dtype.itemsize for code, dtype in by_code.items()}


class Sized(NamedTuple):
    """An array of which only the dtype and the shape are known, as of a planned step."""

    dtype: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


def cost(name: str, args: Sequence[Any], made: Any) -> tuple[int, int]:
    """Bytes and operations of a call that is known by its arguments and its result.

    Arrays may be given as :class:`Sized`, and saved arrays as a list.
    """
    if name in _FREE:
        return 0, 0
    given = _arrays(args)
    out = _arrays((made,))
    count = sum([x.size * _ITEMSIZE[x.dtype] for x in given])
    written = sum([x.size * _ITEMSIZE[x.dtype] for x in out])
    count += written
    if any(isinstance(x, Saved) for x in args):
        count += written  # of what was saved the sizes are not known: about those of the gradients
    if name in _MOVES:
        return count, 0
    formula = _FORMULAS.get(name)
    if formula is not None:
        return count, formula(args, out)
    return count, _STEPS.get(name, 1) * max([x.size for x in (*given, *out)], default=0)


def _arrays(given: Sequence[Any]) -> list[Any]:
    """The arrays among arguments."""
    found: list[Any] = []
    for x in given:
        if isinstance(x, (Array, Sized)):
            found.append(x)
        elif isinstance(x, (tuple, list)):
            found += _arrays(x)
    return found


# Kernels that move no memory: views, numbers, and what is not yet filled. Questions count as none.
_FREE = {name for name in names if name.startswith("view_")}
_FREE |= {name for name, kind in zip(names, signatures, strict=True) if kind.endswith("?")}
_FREE |= {"empty", "borrow", "python_float", "python_int", "python_bool", "set_num_threads"}
# Kernels that move or fill memory and compute nothing.
_MOVES = {
    *("full", "arange", "copy", "cast", "write", "concatenate", "stack", "triangle", "where"),
    *("gather", "gather_last", "scatter_write", "reshape", "nonzero", "one_hot", "spans"),
    *("repeat_positions", "triangle_indices", "index_previous"),
}


# Operations for each element, of kernels that take several.
_STEPS = dict.fromkeys(("var", "std", "logsumexp", "logcumsumexp"), 4)
_STEPS |= dict.fromkeys(("softmax", "log_softmax", "cross_entropy"), 5)
_STEPS |= dict.fromkeys(("norm_rows", "norm_channels"), 8)


def _product(args: Any, out: Any) -> int:
    """``a @ b``, or ``x @ w^T``: the last axis of the first operand is summed over."""
    return 2 * out[0].size * args[0].shape[-1]


def _linear(args: Any, out: Any) -> int:
    return _product(args, out) + _bias(args, out)


def _bias(args: Any, out: Any) -> int:
    """The additions of a bias, the third argument."""
    return out[0].size if len(args) > 2 and args[2] is not None else 0


def _product_vjp(args: Any, out: Any) -> int:
    """Each gradient of a factor costs what the product does; that of a bias is a sum."""
    which, g = args[:2]
    bits = [k for k in range(3) if which >> k & 1]
    made = dict(zip(bits, out, strict=False))
    if 0 in made:
        inner = made[0].shape[-1]
    elif 1 in made:
        shape = made[1].shape
        rows_first = 2 not in made and len(shape) > 1 and shape[-1] == g.shape[-1]
        inner = shape[-2] if rows_first else shape[-1]
    else:
        inner = 0
    return sum([g.size if k == 2 else 2 * g.size * inner for k in made])


def _convolution(args: Any, out: Any) -> int:
    return 2 * out[0].size * math.prod(args[1].shape[1:]) + _bias(args, out)


def _convolution_data(args: Any, out: Any) -> int:
    return 2 * args[0].size * math.prod(args[1].shape[1:])


def _convolution_weights(args: Any, out: Any) -> int:
    return 2 * args[0].size * math.prod(out[0].shape[1:])


def _attention(args: Any, out: Any) -> int:
    """Two products with the scores; a causal mask is not taken off."""
    q, k, v = args[:3]
    queries = out[0].size // v.shape[-1] if v.shape[-1] else 0
    return queries * k.shape[-2] * (2 * q.shape[-1] + 2 * v.shape[-1] + _STEPS["softmax"])


def _attention_vjp(args: Any, out: Any) -> int:
    """The scores again, and two products for each of both."""
    g, q, k, v = args[:4]
    queries = g.size // v.shape[-1] if v.shape[-1] else 0
    return 2 * queries * k.shape[-2] * (3 * q.shape[-1] + 2 * v.shape[-1])


def _recurrent(args: Any, out: Any) -> int:
    return 2 * args[1].size * args[3].shape[-1]


def _recurrent_vjp(args: Any, out: Any) -> int:
    return 4 * args[2].size * args[4].shape[-1]


def _cubic(factor: float) -> Callable[[Any, Any], int]:
    """The count for a stack of n x n matrices, ``factor`` n^3 each."""
    return lambda args, out: int(factor * args[0].size * args[0].shape[-1])


def _solve(args: Any, out: Any) -> int:
    return _cubic(2 / 3)(args, out) + 2 * args[1].size * args[0].shape[-1]


def _triangular(args: Any, out: Any) -> int:
    return args[1].size * args[0].shape[-1]


def _distances(args: Any, out: Any) -> int:
    return 3 * out[0].size * args[0].shape[-1]


def _distances_vjp(args: Any, out: Any) -> int:
    return 6 * args[0].size * args[1].shape[-1]


def chain_members(code: Sequence[int]) -> list[str]:
    """The kernels of a chain from its code, which chain.inc.c describes.

    A derivative by both operands is two instructions of one kernel.
    """
    found: list[str] = []
    at, before = 2 + code[1], None
    while at < len(code):
        kind, op, place, count = code[at : at + 4]
        inputs = code[at + 4 : at + 4 + count]
        at += 5 + count
        if kind == lib.MG_CHAIN_WHERE or kind == lib.MG_CHAIN_CLAMP:
            found.append("where" if kind == lib.MG_CHAIN_WHERE else "clamp")
        elif kind == lib.MG_CHAIN_FORWARD:
            found.append(names[op])
        elif not place or before != (op, inputs):
            found.append(f"{names[op]}_vjp")
        before = (op, inputs) if kind == lib.MG_CHAIN_VJP and not place else None
    return found


# Reductions that end a chain, by their number in C.
REDUCTIONS = {lib.MG_SUM: "sum", lib.MG_MEAN: "mean", lib.MG_MAX: "amax", lib.MG_MIN: "amin"}


def _chain(args: Any, out: Any) -> int:
    """One operation for each element of each kernel in it that computes."""
    size = max([x.size for x in (*args[1], *out)], default=0)
    return sum([name not in _MOVES for name in chain_members(args[2])]) * size


def _chain_reduce(args: Any, out: Any) -> int:
    """Operations of the chain, and one for each element that is reduced."""
    return _chain(args[4:], out) + max([x.size for x in args[5]], default=0)


def _optimizer(*counts: int) -> Callable[[Any, Any], int]:
    """The count for a step of an optimizer, by how many arrays of state it has."""

    def count(args: Any, out: Any) -> int:
        kept = sum([isinstance(x, (list, tuple)) and bool(x) for x in args[2:5]])
        return counts[kept] * sum([p.size for p in args[0]])

    return count


_FORMULAS: dict[str, Callable[[Any, Any], int]] = {
    "matmul": _product,
    "linear": _linear,
    "matmul_vjp": _product_vjp,
    "linear_vjp": _product_vjp,
    "conv_forward": _convolution,
    "conv_backward_data": _convolution_data,
    "conv_backward_weights": _convolution_weights,
    "attention": _attention,
    "attention_vjp": _attention_vjp,
    "recurrent": _recurrent,
    "recurrent_vjp": _recurrent_vjp,
    "cholesky": _cubic(1 / 3),
    "det": _cubic(2 / 3),
    "inv": _cubic(2),
    "qr": _cubic(4 / 3),
    "solve": _solve,
    "solve_triangular": _triangular,
    "cdist": _distances,
    "cdist_vjp": _distances_vjp,
    "chain": _chain,
    "chain_reduce": _chain_reduce,
    # p -= lr * g, and the update of each running mean, with a root and a division where squares
    # are among them. Weight decay is not counted.
    "sgd_step": _optimizer(2, 5),
    "adam_step": _optimizer(0, 0, 13, 14),
    "rmsprop_step": _optimizer(0, 9, 11, 13),
}
