"""``Variable``: a tensor that tracks by default and says what created it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from minigrad import functions
from minigrad._tensor import Tensor
from minigrad.creation import require_grad, tensor
from minigrad.dtypes import float32
from minigrad.inplace import replace
from minigrad.tape.grad_mode import mode
from minigrad.tape.node import Node
from minigrad.tape.tensor_base import Fields, TensorBase, link, mark

__all__ = ["Variable"]

_GRAD: Any = vars(Fields)["grad"]  # which Variable covers with a property


class Variable(Tensor):
    """A Tensor in the wrapper spelling: it requires a gradient unless told otherwise.

    It holds a copy of the data, integers as floats where it is to track them. Operators, methods
    and indexing give Variables, and so is ``grad`` one; functions such as ``mg.tanh(x)`` give plain
    tensors, which take part in the same graph. ``data`` is the tensor behind it, on the same memory
    and outside the graph, and ``creator`` the recorded operation that it is the result of.

    >>> import minigrad as mg
    >>> x = Variable(2.0)
    >>> y = x**2 + 3 * x
    >>> y.backward()
    >>> y.data, x.grad.data
    (tensor(10.), tensor(7.))
    >>> y.creator, x.creator
    (<add>, None)
    """

    __slots__ = ()

    def __new__(cls, data: Any, dtype: Any = None, requires_grad: bool = True) -> Variable:
        """A variable that holds a copy of a number, nested sequences, an array or a tensor."""
        values = tensor(data, dtype)
        if requires_grad and dtype is None and not values.dtype.is_floating_point:
            values = values.to(float32)
        self = _lifted(values, cls)
        require_grad(self, requires_grad)
        return self

    @property
    def data(self) -> Tensor:
        """The values: a tensor on the same memory that is not tracked."""
        return Tensor.detach(self)

    @data.setter
    def data(self, values: Any) -> None:
        source: Any = values if isinstance(values, TensorBase) else tensor(values, self.dtype)
        replace(self, source.to(self.dtype)._h)

    @property
    def grad(self) -> Variable | None:
        """The gradient that backward calls have added up, or None."""
        g = self._grad
        return None if g is None else _lifted(g)

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        _GRAD.__set__(self, g)

    @property
    def creator(self) -> Node | None:
        """The operation it is the result of; None for what the user made."""
        return self.grad_fn

    def __repr__(self) -> str:
        return "Variable" + super().__repr__().removeprefix("tensor")


def _lifted(x: Tensor, cls: type[Variable] = Variable) -> Variable:
    """The same array at the same place on the tape, as a Variable."""
    out: Variable = object.__new__(cls)
    out._h, out._edge, out._shape = x._h, x._edge, x._shape
    out._grad = None
    alias = getattr(x, "_alias", None)
    if alias is not None and len(alias) == 3:
        link(out, *alias)
    elif alias is not None:
        mark(out, alias)
    return out


def _lifting(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with Variables in place of the tensors it returns."""

    @wraps(method)
    def lifting(self: Variable, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        if type(result) is Tensor:
            return _lifted(result)
        if isinstance(result, tuple):
            items = [_lifted(r) if type(r) is Tensor else r for r in result]
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        return result

    return lifting


def _augmented(name: str) -> Callable[[Variable, Any], Any]:
    """``x += y``: a new Variable where x requires a gradient, as the wrapper spelling has it."""
    operator, in_place = getattr(Tensor, f"__{name}__"), getattr(Tensor, f"__i{name}__")

    def augmented(self: Variable, other: Any) -> Any:
        rebinds = mode.enabled and self._edge is not None
        return (operator if rebinds else in_place)(self, other)

    return augmented


_OPERATORS = (
    "neg abs pos add radd sub rsub mul rmul truediv rtruediv pow rpow "
    "matmul rmatmul eq ne lt le gt ge and or xor rand ror rxor invert getitem"
)
_METHODS = ("detach", "float", "double", "astype", "type_as", "copy")

for _name in (
    *(f"__{operator}__" for operator in _OPERATORS.split()),
    *(name for name in functions.__all__ if hasattr(Tensor, name)),
    *_METHODS,
):
    setattr(Variable, _name, _lifting(getattr(Tensor, _name)))
for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(Variable, f"__i{_name}__", _lifting(_augmented(_name)))
for _name in ("T", "mT"):
    setattr(Variable, _name, property(_lifting(vars(Tensor)[_name].fget)))
