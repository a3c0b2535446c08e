"""Optimizers, schedules of their learning rates in :mod:`minigrad.optim.lr_scheduler`, and averages
of weights in :mod:`minigrad.optim.swa_utils`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad.optim.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop

if TYPE_CHECKING:
    from minigrad.optim import lr_scheduler, swa_utils
    from minigrad.optim.adaptive import Adadelta, Adafactor, Adagrad, Rprop
    from minigrad.optim.asgd import ASGD
    from minigrad.optim.lbfgs import LBFGS
    from minigrad.optim.moments import Adamax, Lion, NAdam, RAdam, SparseAdam
    from minigrad.optim.muon import Muon

# What is loaded when it is first asked for, and from which module; or a module itself.
_HOMES = {
    "adaptive": "Adadelta Adafactor Adagrad Rprop",
    "asgd": "ASGD",
    "lbfgs": "LBFGS",
    "moments": "Adamax Lion NAdam RAdam SparseAdam",
    "muon": "Muon",
    "": "lr_scheduler optimizer swa_utils",
}
_LATER = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]


def __getattr__(name: str) -> Any:
    home = _LATER.get(name)
    if home is None:
        # Without an object Python adds no guess, as "divide" for "device".
        raise AttributeError(f"module {__name__!r} has no {name}", name=name, obj=None)
    found = import_module(f"{__name__}.{home or name}")
    if home:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
