"""``torch.compile`` for PyTorch programs: each operation runs when it is called.

Results and times are those of the function or module itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["compile", "disable", "is_compiling"]


def compile(  # noqa: A001 - PyTorch's name
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return the given module or function: nothing is compiled.

    Without a model this is a decorator that does the same. The arguments are PyTorch's and change
    nothing. Raises TypeError unless the model can be called.

    >>> import minigrad as mg
    >>> model = mg.nn.Linear(2, 1)
    >>> mg.compile(model, mode="reduce-overhead") is model
    True
    """
    if model is None:
        return compile
    return _called("compile", model)


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Return the given function, or a decorator that does so."""
    return _called("disable", fn) if fn is not None else disable


def is_compiling() -> bool:
    """False."""
    return False


def _called(name: str, given: Any) -> Callable[..., Any]:
    if not callable(given):
        raise TypeError(
            f"[{name}] {type(given).__name__} cannot be called: give a module or a function"
        )
    found: Callable[..., Any] = given
    return found
