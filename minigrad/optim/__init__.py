"""Optimizers, learning rate schedules and averages of weights.

Schedules are in :mod:`minigrad.optim.lr_scheduler`, averages in :mod:`minigrad.optim.swa_utils`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minigrad.optim.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop

# Names that are loaded at first use, by module; a name may be a module itself.
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


if TYPE_CHECKING:  # type checkers see these names and no others
    from minigrad.optim import lr_scheduler as lr_scheduler
    from minigrad.optim import optimizer as optimizer
    from minigrad.optim import swa_utils as swa_utils
    from minigrad.optim.adaptive import Adadelta as Adadelta
    from minigrad.optim.adaptive import Adafactor as Adafactor
    from minigrad.optim.adaptive import Adagrad as Adagrad
    from minigrad.optim.adaptive import Rprop as Rprop
    from minigrad.optim.asgd import ASGD as ASGD
    from minigrad.optim.lbfgs import LBFGS as LBFGS
    from minigrad.optim.moments import Adamax as Adamax
    from minigrad.optim.moments import Lion as Lion
    from minigrad.optim.moments import NAdam as NAdam
    from minigrad.optim.moments import RAdam as RAdam
    from minigrad.optim.moments import SparseAdam as SparseAdam
    from minigrad.optim.muon import Muon as Muon
else:

    def __getattr__(name: str) -> Any:
        home = _LATER.get(name)
        if home is None:
            # Without ``obj`` Python's message suggests no other name, such as "divide" for
            # "device".
            raise AttributeError(f"module {__name__!r} has no {name}", name=name, obj=None)
        found = import_module(f"{__name__}.{home or name}")
        if home:
            found = getattr(found, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
