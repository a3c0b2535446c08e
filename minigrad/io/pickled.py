"""File format of arbitrary Python objects: a zip with a pickle.

A pickle names classes and functions, and loading calls them. The object is loaded only if the
caller trusts the file and passes ``weights_only=False``.
"""

from __future__ import annotations

import pickle
import zipfile
from typing import Any

from minigrad.io.archive import FormatError, entry

__all__ = ["PICKLE", "content", "write"]

PICKLE = "minigrad/object.pickle"


def write(obj: Any, file: Any, why: str) -> None:
    """Write an object to an open binary file. ``why`` is the reason for the pickle, for errors."""
    try:
        code = pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"{why}; nor can it be pickled: {error}") from None
    except RecursionError:
        raise ValueError("[save] the objects are nested too deeply") from None
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as zipped:
        zipped.writestr(PICKLE, code)


def content(zipped: zipfile.ZipFile, trusted: bool) -> bytes:
    """The pickle of a file, if the caller trusts the file."""
    if not trusted:
        raise FormatError(
            "it holds an object of other classes than tensors and containers, which runs code: "
            "load(..., weights_only=False) if you trust the file, or save its state_dict()"
        )
    return entry(zipped, PICKLE)
