"""DLPack exchange: tensors and other libraries' arrays on the same memory, by NumPy's capsules.

The protocol is that of the Python array API standard. The structures are those of DLPack 1.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minigrad.functions.arguments import tensor_operand
from minigrad.functions.creation import asarray
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import bfloat16
from minigrad.runtime.lazy_numpy import is_numpys, np
from minigrad.tape.tensor_base import TensorBase

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["CPU_DEVICE", "capsule", "from_dlpack"]

CPU_DEVICE = 1, 0  # kDLCPU, and the device's index


def capsule(x: Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """A capsule from which another library makes an array, on the memory of x unless ``copy``."""
    if stream is not None:
        raise ValueError(f"[__dlpack__] stream is {stream!r}, but the CPU has none: give None")
    if dl_device is not None and tuple(dl_device) != CPU_DEVICE:
        raise BufferError(f"[__dlpack__] a tensor is on the CPU, {CPU_DEVICE}, not on {dl_device}")
    if x.requires_grad:
        raise BufferError(
            "[__dlpack__] this tensor requires grad, which other libraries cannot follow; use "
            "x.detach()"
        )
    if x.dtype is bfloat16:
        raise BufferError(
            "[__dlpack__] NumPy makes the capsule, and has no bfloat16: use x.float(), or "
            "x.view(mg.int16) for the bits"
        )
    view = x.numpy()
    options = {} if max_version is None else {"max_version": max_version}
    return (view.copy() if copy else view).__dlpack__(**options)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an object with ``__dlpack__``, such as a NumPy or JAX array.

    A write to one is seen in the other. A copy is made with ``copy``, and for a dtype that minigrad
    lacks. Read-only memory stays read-only. Before NumPy 2.1 all memory except NumPy's is
    read-only.

    Raises TypeError for other objects and for dtypes that NumPy lacks. Raises BufferError for
    memory of another device than the CPU, and ValueError if ``copy=False`` is impossible.

    >>> import minigrad as mg
    >>> import numpy as np
    >>> a = np.zeros(2, np.float32)
    >>> mg.from_dlpack(a).add_(1)
    tensor([1., 1.])
    >>> a.tolist()
    [1.0, 1.0]
    """
    on_cpu(device)
    if isinstance(ext_tensor, TensorBase):
        x = tensor_operand("from_dlpack", ext_tensor).detach()
        return x.clone() if copy else x
    if is_numpys("ndarray", ext_tensor):
        return asarray(ext_tensor, copy=copy)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            f"[from_dlpack] a {type(ext_tensor).__name__} has no __dlpack__: use mg.tensor"
        )
    if hasattr(ext_tensor, "__dlpack_device__"):
        where = ext_tensor.__dlpack_device__()
        if int(where[0]) != CPU_DEVICE[0]:
            raise BufferError(f"[from_dlpack] the array is on device {where}: move it to the CPU")
    try:
        array = np.from_dlpack(ext_tensor)
    except RuntimeError as error:  # bfloat16, which NumPy lacks
        raise TypeError(
            f"[from_dlpack] NumPy, which reads the memory, cannot: {error} Convert the array first"
        ) from None
    return asarray(array, copy=copy)
