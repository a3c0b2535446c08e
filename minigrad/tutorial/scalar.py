"""micrograd's API: ``Value``, a scalar with a gradient, and ``Neuron``, ``Layer`` and ``MLP``.

A :class:`Value` is a thin face over a 0-d float64 tensor: the numbers, the graph and the backward
are those of the one engine. The spelling is that of Andrej Karpathy's micrograd and its lecture.

>>> a, b = Value(2.0), Value(-3.0)
>>> y = (a * b + 10.0).tanh()
>>> y.backward()
>>> round(a.grad, 4), round(b.grad, 4)
(-0.004, 0.0027)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from minigrad import functions as f
from minigrad._tensor import Tensor
from minigrad.functions.arguments import integer, piece_count
from minigrad.functions.creation import tensor
from minigrad.functions.grad_modes import no_grad
from minigrad.random import drawing
from minigrad.runtime.dtypes import float64
from minigrad.tape.tensor_base import TensorBase

__all__ = ["MLP", "Layer", "Neuron", "Value"]

Number = Any  # a Value, or a Python or NumPy number


class Value:
    """A number that remembers what it was computed from.

    ``data`` is a float and may be assigned, as in ``p.data -= 0.1 * p.grad``; ``grad`` is a float
    that starts at 0.0 and to which every ``backward()`` adds, for results as well as for inputs.

    >>> x = Value(2.0)
    >>> y = x**2 + 3 * x
    >>> y.backward()
    >>> y.data, x.grad
    (10.0, 7.0)
    """

    __slots__ = ("label", "tensor")

    def __init__(self, data: Any, label: str = "") -> None:
        """A new input. TypeError for what is no number."""
        if isinstance(data, (Value, TensorBase)) or not hasattr(data, "__float__"):
            raise TypeError(f"[Value] expected a number, not {type(data).__name__}")
        self.tensor: Tensor = tensor(float(data), float64, requires_grad=True)
        self.label = label

    @property
    def data(self) -> float:
        """The number."""
        return float(self.tensor.item())

    @data.setter
    def data(self, number: float) -> None:
        with no_grad():
            self.tensor.fill_(float(number))

    @property
    def grad(self) -> float:
        """The gradient that backward calls have added up."""
        return 0.0 if self.tensor.grad is None else float(self.tensor.grad.item())

    @grad.setter
    def grad(self, number: float) -> None:
        self.tensor.grad = tensor(float(number), float64)

    def backward(self) -> None:
        """Add the gradient of this number to the ``grad`` of everything it was computed from.

        The graph is kept, so this can be called again.
        """
        self.tensor.backward(retain_graph=True)

    def __repr__(self) -> str:
        return f"Value(data={self.data}, grad={self.grad})"

    def __float__(self) -> float:
        return self.data

    # ---- operations ----

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        return _result(f.tanh(self.tensor))

    def exp(self) -> Value:
        """e to the power of this number."""
        return _result(f.exp(self.tensor))

    def log(self) -> Value:
        """The natural logarithm."""
        return _result(f.log(self.tensor))

    def relu(self) -> Value:
        """The number itself where it is positive, else 0."""
        return _result(f.relu(self.tensor))

    def __neg__(self) -> Value:
        return _result(f.neg(self.tensor))

    def __add__(self, other: Number) -> Any:
        return _combine(f.add, self, other)

    def __radd__(self, other: Number) -> Any:
        return _combine(f.add, other, self)

    def __sub__(self, other: Number) -> Any:
        return _combine(f.sub, self, other)

    def __rsub__(self, other: Number) -> Any:
        return _combine(f.sub, other, self)

    def __mul__(self, other: Number) -> Any:
        return _combine(f.mul, self, other)

    def __rmul__(self, other: Number) -> Any:
        return _combine(f.mul, other, self)

    def __truediv__(self, other: Number) -> Any:
        return _combine(f.div, self, other)

    def __rtruediv__(self, other: Number) -> Any:
        return _combine(f.div, other, self)

    def __pow__(self, other: Number) -> Any:
        return _combine(f.pow, self, other)

    def __rpow__(self, other: Number) -> Any:
        return _combine(f.pow, other, self)


def _result(y: Tensor) -> Value:
    """A result; unlike a tensor it keeps its gradient too."""
    value = object.__new__(Value)
    value.tensor = y
    value.label = ""
    y.retain_grad()
    return value


def _combine(function: Callable[[Any, Any], Tensor], a: Number, b: Number) -> Any:
    x, y = (v.tensor if isinstance(v, Value) else v for v in (a, b))
    if not all(isinstance(v, TensorBase) or hasattr(v, "__float__") for v in (x, y)):
        return NotImplemented
    return _result(function(x, y))


# ---- neurons -------------------------------------------------------------------------------------


class _Parts:
    """Base class of objects with parameters."""

    def parameters(self) -> list[Value]:
        """All Values that training changes."""
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Set the gradients of all parameters back to 0.0."""
        for p in self.parameters():
            p.tensor.grad = None


class Neuron(_Parts):
    """tanh(w . x + b) with weights drawn from U(-1, 1), seeded by ``mg.manual_seed``, and b = 0."""

    def __init__(self, nin: int) -> None:
        """A neuron with ``nin`` inputs."""
        count = piece_count("Neuron", integer("Neuron", "nin", nin, 0))
        self.w = [Value(u) for u in drawing().uniform(-1.0, 1.0, count)]
        self.b = Value(0.0)

    def __call__(self, x: Sequence[Number]) -> Value:
        """The output for a list of numbers or Values; ValueError if there are not nin of them."""
        if len(x) != len(self.w):
            raise ValueError(f"[Neuron] {len(x)} inputs for {len(self.w)} weights")
        total = self.b
        for wi, xi in zip(self.w, x, strict=True):
            total = total + wi * xi
        return total.tanh()

    def parameters(self) -> list[Value]:
        """The weights, then the bias."""
        return [*self.w, self.b]

    def __repr__(self) -> str:
        return f"Neuron({len(self.w)})"


class Layer(_Parts):
    """``nout`` neurons side by side, with ``nin`` inputs each; a single one's output is no list."""

    def __init__(self, nin: int, nout: int) -> None:
        """A layer from nin to nout numbers."""
        count = piece_count("Layer", integer("Layer", "nout", nout, 0))
        self.neurons = [Neuron(nin) for _ in range(count)]

    def __call__(self, x: Sequence[Number]) -> Any:
        """The outputs of all neurons."""
        outputs = [neuron(x) for neuron in self.neurons]
        return outputs[0] if len(outputs) == 1 else outputs

    def parameters(self) -> list[Value]:
        """The parameters of the neurons."""
        return [p for neuron in self.neurons for p in neuron.parameters()]

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(map(repr, self.neurons))}]"


class MLP(_Parts):
    """Layers one after the other: ``MLP(3, [4, 4, 1])`` has 3 inputs, 1 output, 41 parameters."""

    def __init__(self, nin: int, nouts: Sequence[int]) -> None:
        """A network with nin inputs and layers of the sizes nouts."""
        sizes = [nin, *nouts]
        self.layers = [Layer(a, b) for a, b in pairwise(sizes)]

    def __call__(self, x: Sequence[Number]) -> Any:
        """The last layer's output."""
        for layer in self.layers:
            x = layer(x if isinstance(x, (list, tuple)) else _listed(x))
        return x

    def parameters(self) -> list[Value]:
        """The parameters of the layers."""
        return [p for layer in self.layers for p in layer.parameters()]

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(map(repr, self.layers))}]"


def _listed(x: Any) -> list[Any]:
    return [x] if isinstance(x, Value) else list(x)
