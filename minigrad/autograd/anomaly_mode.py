"""Detection of anomalies: the first NaN or infinity that an operation or a backward pass makes.

Every kernel's result is summed: the sum is finite if all elements are, and only then nothing more
is done. A sum costs one reading of the result.
"""

from __future__ import annotations

import linecache
import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from minigrad.ops.table import Row
from minigrad.runtime.batched import BatchedArray
from minigrad.runtime.caller import caller
from minigrad.runtime.dtypes import by_code, float32
from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import Array, Saved, call, kernels, names, saved_handle, title_of
from minigrad.runtime.numpy_view import numpy_view
from minigrad.tape.node import Node
from minigrad.tape.slice_grad import SliceGrad
from minigrad.tape.tensor_base import TensorBase
from minigrad.tape.watching import Watcher, lines

__all__ = ["AnomalyError", "detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]


class AnomalyError(RuntimeError):
    """An operation made a NaN or an infinity.

    ``operation`` is its name, ``line`` the source line as "file:number" or None, and ``index`` the
    place of the first bad element in the result or in the gradient.
    """

    def __init__(
        self, message: str, operation: str, line: str | None, index: tuple[int, ...]
    ) -> None:
        super().__init__(message)
        self.operation, self.line, self.index = operation, line, index

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.operation, self.line, self.index)


class detect_anomaly:  # noqa: N801 - PyTorch's name
    """Context in which the first NaN or infinity is an error where it is made, in forward too.

    The error, an AnomalyError, which is a RuntimeError, names the operation and its source line. It
    shows the index of the first bad element, and minimum, maximum and the count of what is not
    finite of the operation's inputs. For a backward pass it names the line that recorded the
    operation, as far as that ran within the context.

    An operation makes a NaN if its result has one and no input has. It makes an infinity if its
    result has one and no input has. Masks of -inf are therefore no errors. A NaN that was there
    before is a warning where it is first met. ``check_nan=False`` and ``check_inf=False`` let one
    kind pass.

    Operations of all threads are watched. A kernel's result is read once more, so a run takes up
    to twice as long.

    >>> import minigrad as mg
    >>> x = mg.tensor([4.0, 0.0], requires_grad=True)
    >>> with mg.detect_anomaly():
    ...     try:
    ...         x.log()
    ...     except RuntimeError as error:
    ...         print(error.operation, error.index)
    log (1,)
    """

    def __init__(self, check_nan: bool = True, *, check_inf: bool = True) -> None:
        self.check_nan, self.check_inf = bool(check_nan), bool(check_inf)
        self._detectors: list[_Detector] = []

    def __enter__(self) -> None:
        self._detectors.append(_Detector(self.check_nan, self.check_inf))
        self._detectors[-1].begin()

    def __exit__(self, *error: object) -> None:
        self._detectors.pop().end()


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Detect anomalies from here on; or, with ``mode`` False, nowhere, not even in a context.

    Both hold for the whole process, or, as a context, until its end. With False a part that makes
    infinities on purpose is left out.

    >>> import minigrad as mg
    >>> with mg.autograd.detect_anomaly():
    ...     with mg.autograd.set_detect_anomaly(False):
    ...         mg.zeros(2).log()
    tensor([-inf, -inf])
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf: bool = True) -> None:
        self._before = _switched.detector, _switched.off
        _switched.to(_Detector(check_nan, check_inf) if mode else None, not mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _switched.to(*self._before)


def is_anomaly_enabled() -> bool:
    """Whether anomalies are detected now.

    >>> import minigrad as mg
    >>> with mg.detect_anomaly():
    ...     mg.autograd.anomaly_mode.is_anomaly_enabled()
    True
    """
    return _Detector.running > 0 and not _switched.off


class _Detector(Watcher):
    """Looks at what kernels and rules make, and raises the error."""

    wants_lines = True
    running = 0

    def __init__(self, check_nan: bool, check_inf: bool) -> None:
        self.check_nan, self.check_inf = check_nan, check_inf
        self.warned = False
        self.thread = threading.local()  # ``rules``: is each rule that runs one of our own?

    def begin(self) -> None:
        super().begin()
        _Detector.running += 1

    def end(self) -> None:
        super().end()
        _Detector.running -= 1

    # ---- forward ----

    def on_kernel(self, name: str, args: tuple[Any, ...], made: Any, place: Any) -> None:
        if getattr(self.thread, "rules", ()) and self.thread.rules[-1]:
            return  # its gradients are looked at as a whole
        if name in _NO_RESULT or _switched.off:
            return
        inputs, results = args, made
        if name in _WRITES:
            results, *inputs = args  # type: ignore[assignment]
        bad = self._first_bad(_arrays(results), inputs)
        if bad is None:
            return
        if bad.born:
            self._raise_forward(_TITLES[name], bad, inputs, place)
        self._warn(_TITLES[name], place)

    def _first_bad(self, results: Iterator[Array], inputs: Any) -> _Bad | None:
        """The first result with a NaN or an infinity that counts, if there is one."""
        for place, array in enumerate(results):
            if array.dtype < _FIRST_FLOAT or math.isfinite(_total(array)):
                continue
            nans, infs = _counts(array)
            if not nans + infs:
                continue  # finite numbers whose sum overflowed
            nans_in, infs_in = _given(inputs)
            nan_born = nans > 0 and nans_in == 0 and self.check_nan
            inf_born = infs > 0 and infs_in == 0 and self.check_inf
            if nan_born or inf_born:
                return _Bad(array, place, nan_born, True)
            if nans and nans_in and self.check_nan:
                return _Bad(array, place, True, False)
        return None

    def _raise_forward(self, op: str, bad: _Bad, inputs: Any, place: Any) -> None:
        index, value, part = bad.described()
        message = [
            f"[detect_anomaly] {op} made {value} at index {index} of its result, {part}",
            f"  at {_shown(place)}",
            *_ranges(inputs, "input"),
        ]
        self._raise(message, op, place, index, bad)

    def _raise(
        self, message: list[str], op: str, place: Any, index: tuple[int, ...], bad: _Bad
    ) -> None:
        if not bad.nan:
            message.append("  check_inf=False lets infinities pass")
        line = None if place is None else f"{place[0]}:{place[1]}"
        raise AnomalyError("\n".join(message), op, line, index)

    def _warn(self, op: str, place: Any) -> None:
        if self.warned:
            return
        self.warned = True
        warnings.warn(
            f"[detect_anomaly] {op} was given a NaN that no watched operation made, at "
            f"{_shown(place)}",
            stacklevel=1,
        )

    # ---- backward ----

    def before_node(self, node: Node, g: Any) -> None:
        if not hasattr(self.thread, "rules"):
            self.thread.rules = []
        self.thread.rules.append(not hasattr(node.op, "lends"))

    def after_node(self, node: Node, g: Any, made: Sequence[Any] | None) -> None:
        self.thread.rules.pop()
        if made is None or _switched.off:
            return
        inputs = (*_of_gradient(g), node.saved if type(node.saved) is Saved else None)
        for place, gi in enumerate(made):
            bad = self._first_bad(_arrays(_of_gradient(gi)), inputs)
            if bad is not None and bad.born:
                self._raise_backward(node, place, bad, inputs)
            elif bad is not None:
                self._warn(f"the backward of {node.op.name}", caller())

    def _raise_backward(self, node: Node, place: int, bad: _Bad, inputs: tuple[Any, ...]) -> None:
        index, value, part = bad.described()
        recorded = lines.of(node)
        op = node.op.name
        *upstream, saved = inputs
        message = [
            f"[detect_anomaly] the backward of {op} made {value} at index {index} of the gradient "
            f"of input {place}, {part}",
            f"  recorded at {_shown(recorded)}",
            f"  backward at {_shown(caller())}",
            *_ranges(upstream, "upstream gradient"),
            *_ranges(_saved_by_name(node, saved), "saved"),
        ]
        self._raise(message, op, recorded, index, bad)


class _Switch:
    """State of set_detect_anomaly: the detector that it started, or that it is off."""

    detector: _Detector | None = None
    off = False

    def to(self, detector: _Detector | None, off: bool) -> None:
        if self.detector is not None:
            self.detector.end()
        self.detector, self.off = detector, off
        if detector is not None:
            detector.begin()


_switched = _Switch()


# ---- what a kernel was given and made ------------------------------------------------------------

_FIRST_FLOAT = float32.code
_TITLES = {name: title_of(number) or name for number, name in enumerate(names)}
# Kernels that write into their first argument, or the arrays in it, and the rest is what they read.
_WRITES = {"accumulate", "sgd_step", "adam_step", "rmsprop_step", "norm_track"}
# Kernels whose result is not computed: memory that is not yet filled, views, copies into a tensor.
_NO_RESULT = {"empty", "borrow", "saved_array", "write", "scatter_write", "python_float"}
_NO_RESULT |= {name for name in names if name.startswith("view_")}


class _Bad(NamedTuple):
    """A result with elements that are not finite."""

    array: Array
    place: int  # among the results
    nan: bool  # is it a NaN that counts?
    born: bool

    def described(self) -> tuple[tuple[int, ...], str, str]:
        """The index of the first such element, it itself, and how many there are."""
        values = _numpy(self.array)
        wrong = np.isnan(values) if self.nan else np.isinf(values)
        index = tuple(map(int, np.unravel_index(np.argmax(wrong), values.shape)))
        count = int((~np.isfinite(values)).sum())
        dtype = by_code[self.array.dtype].name
        part = f"{dtype} of shape {values.shape}: {count} of {values.size} elements not finite"
        return index, str(float(values[index])), part


def _numpy(array: Array) -> Any:
    return np.asarray(numpy_view(array))


def _total(array: Array) -> float:
    return call(kernels.sum, array, None, 0).item()


def _counts(array: Array) -> tuple[int, int]:
    """How many elements are NaN, and how many infinite."""
    return tuple(  # type: ignore[return-value]
        int(call(kernels.sum, call(kernel, array), None, 0).item())
        for kernel in (kernels.isnan, kernels.isinf)
    )


def _arrays(given: Any) -> Iterator[Array]:
    """The arrays in the arguments or the result of a kernel, also those that the tape saved."""
    while type(given) is BatchedArray:  # in vmap: that of all slices
        given = given.held
    if isinstance(given, Array):
        yield given
    elif isinstance(given, (tuple, list)):
        for x in given:
            yield from _arrays(x)
    elif isinstance(given, Saved):
        yield from (saved_handle(given, k) for k in range(3) if given.buffer(k))


def _given(inputs: Any) -> tuple[int, int]:
    """How many NaNs and infinities the arguments of a kernel hold, numbers included."""
    nans = infs = 0
    for x in inputs if isinstance(inputs, (tuple, list)) else ():
        if isinstance(x, float):
            nans, infs = nans + math.isnan(x), infs + math.isinf(x)
    for array in _arrays(inputs):
        if array.dtype >= _FIRST_FLOAT and not math.isfinite(_total(array)):
            more_nans, more_infs = _counts(array)
            nans, infs = nans + more_nans, infs + more_infs
    return nans, infs


def _of_gradient(g: Any) -> list[Array]:
    """The arrays of a gradient: of a tensor, of slices, or of several outputs."""
    if isinstance(g, TensorBase):
        return [g._h]
    if type(g) is SliceGrad:
        return [values for values, *_ in g.slices]
    return [gk._h for gk in getattr(g, "parts", {}).values()]


# ---- the message ---------------------------------------------------------------------------------


def _saved_by_name(node: Node, saved: Saved | None) -> Any:
    """The values that a node saved, by the names that its derivative gives them."""
    if saved is None:
        return ()
    row = getattr(node.op, "op", node.op)
    found = [(k, saved_handle(saved, k)) for k in range(3) if saved.buffer(k)]
    if type(row) is not Row:
        return [array for _, array in found]
    known = {row.place_of(name): name for names in row.needs for name in names if name in "abcxy"}
    return {known.get(k, str(k)): array for k, array in found}


def _shown(place: tuple[str, int] | None) -> str:
    """A source line with its text."""
    if place is None:
        return "a line that was not noted: it ran before this context"
    text = linecache.getline(*place).strip()
    return f"{place[0]}:{place[1]}" + (f": {text}" if text else "")


def _ranges(inputs: Any, title: str) -> list[str]:
    """A line for each input: dtype, shape, the range of what is finite, and how many are not."""
    given = inputs.items() if isinstance(inputs, dict) else enumerate(_arrays(inputs))
    return [f"  {title} {name}: {_range(array)}" for name, array in given]


def _range(array: Array) -> str:
    dtype = by_code[array.dtype]
    start = f"{dtype.name} of shape {array.shape}"
    values = _numpy(array)
    if not values.size:
        return f"{start}, no elements"
    if array.dtype < _FIRST_FLOAT:
        return f"{start}, {values.min()} to {values.max()}"
    finite = values[np.isfinite(values)]
    between = f"{finite.min():.6g} to {finite.max():.6g}" if finite.size else "nothing finite"
    wrong = values.size - finite.size
    return f"{start}, {between}, {wrong} of {values.size} not finite"
