"""Command line: shows the configuration, or runs a PyTorch program with minigrad.

``python -m minigrad`` prints what :func:`minigrad.show_config` returns. ``python -m minigrad
program.py ...`` runs a program in which ``import torch`` gives minigrad. At its end the names of
PyTorch that minigrad lacks are printed to standard error.
"""

import atexit
import runpy
import sys
from pathlib import Path
from types import ModuleType

import minigrad
from minigrad.interop.torch_names import as_torch


def _note(missing: dict[str, None], error: AttributeError) -> None:
    """Note an attribute that an object of minigrad lacks."""
    kind = type(error.obj)
    if kind.__module__.split(".")[0] == "minigrad" and not isinstance(error.obj, ModuleType):
        missing.setdefault(f"torch.{kind.__name__}.{error.name}")


def _report(missing: dict[str, None]) -> None:
    for name in missing:
        print(f"minigrad has no {name}", file=sys.stderr)


def main(arguments: list[str]) -> None:
    """Run the command with these arguments."""
    if not arguments:
        print(minigrad.show_config())
        return
    program = arguments[0]
    if program in ("-h", "--help"):
        print(__doc__)
        return
    if not Path(program).exists():
        sys.exit(f"[minigrad] there is no program {program!r}: python -m minigrad program.py ...")
    sys.argv = arguments
    sys.path[0] = str(Path(program).resolve().parent)
    names = as_torch()
    atexit.register(_report, names.missing)  # printed after the traceback of an error
    try:
        runpy.run_path(program, run_name="__main__")
    except AttributeError as error:
        _note(names.missing, error)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
