"""The functions ``save`` and ``load``: choice of the file format, and atomic writing of files."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from minigrad.io import archive, pickled, safetensors, torch_archive

__all__ = ["load", "save", "write_whole"]

_SUFFIX = ".safetensors"
# Errors of the standard library, NumPy and minigrad that a damaged file may cause.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, TypeError),
    *(LookupError, AttributeError, ArithmeticError, RuntimeError),
)
_ZIP = b"PK\x03\x04"
_PICKLE = b"\x80"


def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object to a file: tensors, arrays, numbers, strings and nested containers of them.

    State dicts of modules, optimizers and schedules are such objects. A dict of these and of
    ``get_rng_state()`` lets training resume bit by bit. The file is a zip of NPY arrays and their
    structure as JSON. A flat dict of tensors is written in the safetensors format if the name ends
    in ".safetensors". A tensor that occurs twice is one tensor again after loading. Views of one
    tensor become separate tensors.

    Objects of other classes, such as modules, are pickled. Loading then needs their code and
    ``weights_only=False``. It is better to save the ``state_dict()``.

    The file is written under a temporary name and then renamed, so the old file survives an error
    or a crash. ``f`` may also be an open binary file. The last three arguments are PyTorch's and
    change nothing.

    Raises TypeError for objects that cannot be pickled, and ValueError for containers that contain
    themselves.

    >>> import io
    >>> import minigrad as mg
    >>> file = io.BytesIO()
    >>> mg.save({"step": 3, "weights": [mg.ones(2), mg.zeros(1)]}, file)
    >>> mg.load(io.BytesIO(file.getvalue()))
    {'step': 3, 'weights': [tensor([1., 1.]), tensor([0.])]}
    """
    if not isinstance(f, (str, os.PathLike)):
        _write(obj, f)
        return
    path = Path(f)
    if path.suffix == _SUFFIX:
        content = safetensors.content(obj)
        write_whole(path, lambda file: file.write(content))
    else:
        write_whole(path, lambda file: _write(obj, file))


def _write(obj: Any, file: Any) -> None:
    try:
        archive.write(obj, file)
    except archive.OtherClassError as error:
        pickled.write(obj, file, str(error))


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a file of :func:`save`, a ".safetensors" file, or a ``.pt`` file of PyTorch's.

    By default no code of a file is run. Use ``weights_only=False``, only for trusted files, to load
    pickled objects such as modules: this runs code that the file names. Tensors, parameters,
    numbers, strings and containers of PyTorch's files are read. Any other class in such a file is
    an error. The other arguments are PyTorch's. ``map_location`` may name the CPU, or be a function
    or a dict. The rest changes nothing.

    Raises FileNotFoundError for a missing file, and RuntimeError for a device other than the CPU.
    Raises ValueError for damaged or truncated files, other formats, and forbidden classes.

    >>> import io
    >>> import minigrad as mg
    >>> file = io.BytesIO()
    >>> mg.save(mg.nn.Linear(2, 1), file)
    >>> mg.load(io.BytesIO(file.getvalue()), weights_only=False)
    Linear(in_features=2, out_features=1, bias=True)
    """
    trusted = weights_only is not None and not weights_only
    _check_location(map_location)
    if not isinstance(f, (str, os.PathLike)):
        return _read(f if _seeks(f) else io.BytesIO(f.read()), "the file", trusted)
    with Path(f).open("rb") as file:
        return _read(file, str(f), trusted)


def _seeks(f: Any) -> bool:
    return bool(getattr(f, "seekable", lambda: False)())


def _check_location(given: Any) -> None:
    if given is None or callable(given) or isinstance(given, dict):
        return
    if str(getattr(given, "type", given)).split(":")[0] != "cpu":
        raise RuntimeError(f"[load] map_location is {given}, but minigrad computes on the CPU")


def _read(file: IO[bytes], name: str, trusted: bool) -> Any:
    """Read an open file. The first bytes determine the format."""
    begin = file.tell()
    head = file.read(16)
    file.seek(begin)
    code = None
    try:
        if head.startswith(_ZIP):
            with zipfile.ZipFile(file) as zipped:
                if pickled.PICKLE not in zipped.namelist():
                    return _read_zip(zipped)
                code = pickled.content(zipped, trusted)
        elif head[8:9] == b"{":
            return safetensors.read(file.read())
    except archive.FormatError as error:
        raise ValueError(f"[load] {name}: {error}") from None
    except _DAMAGE as error:
        raise ValueError(f"[load] {name} is damaged: {error}") from None
    if code is not None:
        try:
            return pickle.loads(code)  # the caller trusts the code and handles its errors
        except pickle.UnpicklingError as error:
            raise ValueError(f"[load] {name} is damaged: {error}") from None
    if head.startswith(_PICKLE):
        raise ValueError(
            f"[load] {name} is a pickle, which may run any code: with PyTorch 1.6 or later, load "
            "and save it again"
        )
    raise ValueError(f"[load] {name} is empty, or neither a file of minigrad's nor of PyTorch's")


def _read_zip(zipped: zipfile.ZipFile) -> Any:
    names = zipped.namelist()
    if archive.STRUCTURE in names:
        return archive.read(zipped)
    pickled = [name for name in names if name.split("/")[-1] == torch_archive.PICKLE]
    if len(pickled) == 1:
        return torch_archive.read(zipped, pickled[0])
    raise archive.FormatError("a zip, but neither minigrad's nor PyTorch's")


# ---- whole or not at all -------------------------------------------------------------------------


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a temporary file next to the path, and rename it when it is complete."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or a device
        with target.open("wb") as file:
            write(file)
        return
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode(target))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """The permissions of the replaced file, or of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
