"""References of operators of tensors: the same operators of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOATS = (np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -5.0]]), np.array([2.0, 0.5, 3.0]))
INTEGERS = (np.array([[1, 2, 3], [7, 4, 5]]), np.array([2, 1, 3]))
MATRICES = (FLOATS[0], np.array([[1.0, -1.0], [2.0, 0.5], [0.25, 3.0]]))
SQUARE = (np.array([[1.0, -1.0], [2.0, 0.5]]), np.array([[3.0, 1.0], [-2.0, 0.25]]))


def _each(names: str, *operands: Any) -> dict[str, tuple[Any, ...]]:
    return {f"__{name}__": operands for name in names.split()}


# The name of each operator, and its arguments. The first is the tensor whose method it is.
OPERATORS: dict[str, tuple[Any, ...]] = {
    **_each("add sub mul truediv floordiv mod divmod eq ne lt le gt ge", *FLOATS),
    **_each("radd rsub rmul rtruediv rfloordiv rmod rdivmod", *FLOATS),
    **_each("iadd isub imul itruediv ifloordiv imod", *FLOATS),
    **_each("pow rpow ipow", abs(FLOATS[0]), FLOATS[1]),
    **_each("and or xor lshift rshift rand ror rxor rlshift rrshift", *INTEGERS),
    **_each("iand ior ixor ilshift irshift", *INTEGERS),
    **_each("matmul", *MATRICES),
    **_each("rmatmul", *MATRICES[::-1]),
    **_each("imatmul", *SQUARE),
    **_each("neg pos abs", FLOATS[0]),
    **_each("invert", INTEGERS[0]),
    **_each("contains", FLOATS[0], 4.0),
    **_each("len iter", FLOATS[0]),
    **_each("getitem", FLOATS[0], (slice(None), [2, 0])),
    **_each("bool float int complex", np.array(2.0)),
    **_each("index", np.array(2)),
    **_each("array copy", FLOATS[0]),
    **_each("deepcopy", FLOATS[0], {}),
}
