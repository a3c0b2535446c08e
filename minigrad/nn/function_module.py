"""Base class of modules that call one function of minigrad.nn.functional."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from minigrad.functions.arguments import tensor_operand
from minigrad.nn.functional.operands import legacy_reduction
from minigrad.nn.module import Module
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Stand-in for typing.dataclass_transform, which tells type checkers of the dataclass."""
        return lambda cls: cls


__all__ = ["FunctionModule"]


class _OfDataclass:
    """Attribute of a class that becomes a dataclass when one of these attributes is first read.

    A dataclass compiles its ``__init__``. For fifty classes this would take half of an import.
    """

    def __init__(self, of: type, name: str) -> None:
        self.of, self.name = of, name

    def __get__(self, module: Any, cls: type) -> Any:
        # A copy of the class is turned into a dataclass, so other threads see the class before or
        # after the change. The loop runs over a copy of the names, as another thread may add names.
        own = {
            name: value
            for name, value in vars(self.of).copy().items()
            if type(value) is not _OfDataclass and name not in ("__dict__", "__weakref__")
        }
        made: Any = dataclasses.dataclass(eq=False, repr=False)(
            type(self.of.__name__, self.of.__bases__, own)
        )
        made._arguments = tuple([field.name for field in dataclasses.fields(made)])
        if "reduction" in made._arguments:
            made.__init__ = _of_a_loss(made.__init__)
        for name, value in vars(made).items():
            if own.get(name) is not value and name not in ("__dict__", "__weakref__"):
                setattr(self.of, name, value)
        found = getattr(self.of, self.name)
        return found.__get__(module, cls) if hasattr(found, "__get__") else found


def _of_a_loss(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap the ``__init__`` of a loss so that it takes PyTorch's older arguments too.

    Tensors as arguments raise TypeError: passing the tensors to compare is a common mistake.
    """

    @functools.wraps(init)
    def __init__(  # noqa: N807 - it becomes that method
        self: Any, *args: Any, size_average: Any = None, reduce: Any = None, **kwargs: Any
    ) -> None:
        if len(args) > 1 and all(isinstance(x, TensorBase) for x in args[:2]):
            name = type(self).__name__
            raise TypeError(
                f"[{name}] a loss is made first and called with the tensors then: "
                f"nn.{name}()(input, target)"
            )
        if size_average is not None or reduce is not None:
            kwargs["reduction"] = legacy_reduction(size_average, reduce)
        init(self, *args, **kwargs)

    return __init__


@dataclass_transform(eq_default=False)
class FunctionModule(Module):
    """Base of modules that call a function. The fields of the class are the function's arguments.

    Fields are declared as in a dataclass, which makes ``__init__``. They have the names of the
    function's parameters. Fields named in ``buffers`` are tensors or None, and part of the module's
    state.

    >>> from minigrad.nn import functional as F
    >>> class Clipped(FunctionModule, function=F.hardtanh):
    ...     min_val: float = -1.0
    ...     max_val: float = 1.0
    >>> Clipped(max_val=2.0)(5.0).item()
    2.0
    """

    _function: ClassVar[Callable[..., Any]]
    _arguments: ClassVar[tuple[str, ...]]

    def __init_subclass__(
        cls, function: Callable[..., Any] | None = None, buffers: tuple[str, ...] = ()
    ) -> None:
        super().__init_subclass__()
        if function is None:  # a subclass that only extends another class
            return
        for name in ("__init__", "_arguments", "__dataclass_fields__"):
            setattr(cls, name, _OfDataclass(cls, name))
        cls._function = staticmethod(function)
        cls._buffers = dict.fromkeys(buffers, True)

    def __post_init__(self) -> None:
        for name in self._buffers:
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, tensor_operand(type(self).__name__, value))

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Apply the function to the inputs."""
        kept = {name: getattr(self, name) for name in self._arguments}
        return self._function(*inputs, **named, **kept)
