"""Import hook that answers ``import torch`` with minigrad."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, TracebackType
from typing import Any

from minigrad.interop.torch_places import PLACES

__all__ = ["TorchNames", "as_torch"]

_LEVEL = "2.13.0+minigrad"  # the release of PyTorch whose names minigrad follows


class _Named(ModuleType):
    """A module under PyTorch's name with the attributes of a module of minigrad.

    It is a separate module because imports set attributes of a module. minigrad's modules stay
    unchanged.
    """

    def __init__(self, name: str, names: TorchNames) -> None:
        super().__init__(name, f"minigrad under the name {name}.")
        self.__dict__["_names"] = names
        self.__dict__["_own"] = import_module(_of_minigrad(name))
        # Names of one PyTorch module may lie in several modules of minigrad. The package has all of
        # them.
        package = name.rpartition(".")[0] if name in PLACES else name
        self.__dict__["_all"] = import_module(_of_minigrad(package))
        self.__path__: list[str] = []
        if name == "torch":
            self.__version__ = _LEVEL

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if name.startswith("__"):  # names that the interpreter asks for
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            found = getattr(self._own if hasattr(self._own, name) else self._all, name)
        except AttributeError:
            if full in PLACES:
                return import_module(full)
            self._names.missing.setdefault(full)
            raise AttributeError(f"minigrad has no {full}", name=name, obj=self) from None
        return self._names.named(full, found) if isinstance(found, ModuleType) else found

    def __dir__(self) -> list[str]:
        return dir(self._own)


class TorchNames(MetaPathFinder, Loader):
    """The import hook that :func:`as_torch` returns, and the names that it did not find.

    ``missing`` has the names, such as "torch.fft.rfft", in the order of their first use.
    ``remove()``, or the end of a ``with``, removes the hook and its modules.
    """

    def __init__(self) -> None:
        self.missing: dict[str, None] = {}

    def named(self, name: str, own: ModuleType) -> ModuleType:
        """The module with this name, or ``own`` if minigrad has it under another name."""
        return import_module(name) if _is_there(name) else own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module that minigrad has, or None for other names."""
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        if not _is_there(fullname):
            self.missing.setdefault(fullname)
            return None
        return ModuleSpec(fullname, self, origin="minigrad", is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module under PyTorch's name."""
        return _Named(spec.name, self)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""

    def remove(self) -> None:
        """Remove the hook and the modules that it made."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in list(sys.modules.items()):
            if isinstance(module, _Named) and module._names is self:
                del sys.modules[name]

    def __enter__(self) -> TorchNames:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()


def _of_minigrad(name: str) -> str:
    """The module of minigrad for a PyTorch module, under the same or another name."""
    same = "minigrad" + name.removeprefix("torch")
    return same if _found(same) else PLACES.get(name, same)


def _is_there(name: str) -> bool:
    """True if minigrad has a module for this PyTorch module."""
    return name in PLACES or _found(_of_minigrad(name))


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent is no package
        return False


def as_torch() -> TorchNames:
    """Answer ``import torch``, ``import torch.nn`` and so on with minigrad from now on.

    Nothing else in the process changes. ``remove()`` of the result, or the end of a ``with``,
    undoes it. A name of PyTorch's that minigrad lacks raises an AttributeError, and is added to
    ``missing`` of the result. ``python -m minigrad program.py`` runs a whole program in this way.

    Raises RuntimeError if PyTorch itself was imported before.

    ::

        with mg.as_torch() as names:
            import torch

            torch.ones(2) + 1  # tensor([2., 2.])
            hasattr(torch, "spam")  # False
        list(names.missing)  # ["torch.spam"]
    """
    there = sys.modules.get("torch")
    if isinstance(there, _Named):
        found: TorchNames = there._names
        return found
    if there is not None:
        raise RuntimeError(
            "[as_torch] PyTorch itself has been imported: call as_torch() before `import torch`"
        )
    for finder in sys.meta_path:
        if isinstance(finder, TorchNames):
            return finder
    names = TorchNames()
    sys.meta_path.insert(0, names)
    return names
