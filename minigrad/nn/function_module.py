"""Modules that are a function of minigrad.nn.functional with its arguments."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from minigrad.arguments import tensor_operand
from minigrad.nn.functional.operands import legacy_reduction
from minigrad.nn.module import Module
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Tells type checkers what ``__init_subclass__`` does."""
        return lambda cls: cls


__all__ = ["FunctionModule"]


class _OfDataclass:
    """An attribute of a class that becomes a dataclass when one of these is first asked for.

    A dataclass compiles its ``__init__``; for fifty of them that would be half of an import.
    """

    def __init__(self, of: type, name: str) -> None:
        self.of, self.name = of, name

    def __get__(self, module: Any, cls: type) -> Any:
        # The class is copied: other threads find this one as it was, or as it will be. Another
        # maker adds names meanwhile, so the loop goes over a copy of the names.
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
    """The ``__init__`` of a loss, with PyTorch's older arguments too.

    A loss that is given the tensors that it is to compare is a common mistake: TypeError.
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
    """A module that calls a function; the fields of the class are the arguments it keeps.

    They are declared as in a dataclass, which makes ``__init__``, under the names that the function
    gives them. Those named in ``buffers`` are tensors, or None, and part of the module's state.

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
        if function is None:  # a class that only adds to another
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
        """The function of the inputs."""
        kept = {name: getattr(self, name) for name in self._arguments}
        return self._function(*inputs, **named, **kept)
