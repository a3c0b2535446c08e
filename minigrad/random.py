"""Random numbers from one shared generator, NumPy's Philox, whose state can be saved and restored.

A seed gives the same numbers as ``numpy.random.Generator(numpy.random.Philox(seed))``.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad import functions as f
from minigrad._tensor.inplace import check_writable, overwrite, shows_tracked
from minigrad.functions.arguments import common_shape, integer, real, size_of, tensor_operand
from minigrad.functions.creation import asarray, check_room, numpy_dtype, require_grad, tensor
from minigrad.functions.operands import check_range, tensor_operands
from minigrad.runtime.devices import on_cpu
from minigrad.runtime.dtypes import DType, as_dtype, bool_, default_dtype, float16, float64, int64
from minigrad.runtime.lazy_numpy import np
from minigrad.runtime.native import call, ffi, kernels
from minigrad.runtime.recorders import drawn, draws_from, give_up
from minigrad.runtime.recorders import running as recording
from minigrad.tape.grad_mode import mode
from minigrad.tape.tensor_base import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]


# ---- generators ----------------------------------------------------------------------------------


class Generator:
    """A stream of random numbers (Philox 4x64, Salmon et al. 2011).

    It starts with a seed from the operating system. :meth:`manual_seed` sets another seed. Every
    random function takes a generator as ``generator=``. Without it all functions share one
    generator.

    A forked child has its own copy. A generator with a seed from the operating system gets a new
    seed in the child, so that children differ. After :meth:`manual_seed` or :meth:`set_state`,
    parent and child continue with the same numbers, as in PyTorch and NumPy. Give each worker its
    own seed: ``mg.manual_seed(seed + worker)``.

    >>> import minigrad as mg
    >>> g = mg.Generator().manual_seed(0)
    >>> state = g.get_state()
    >>> a = mg.rand(3, generator=g)
    >>> g.set_state(state)
    >>> bool((a == mg.rand(3, generator=g)).all())
    True
    """

    __slots__ = ("__weakref__", "_chosen", "_numpy", "_seed")

    def __init__(self) -> None:
        self.seed()

    def seed(self) -> int:
        """Start again with a seed from the operating system, and return the seed."""
        self._start(_new_seed(), False)
        return self._seed

    def manual_seed(self, seed: int) -> Generator:
        """Start again with an integer seed, and return the generator.

        A negative seed from -2**63 on counts from 2**64 down, as in PyTorch.
        """
        given = integer("manual_seed", "seed", seed, -(2**63))
        self._start(given + 2**64 if given < 0 else given, True)
        return self

    def _start(self, seed: int, chosen: bool) -> None:
        if recording:
            give_up("a generator", "starts anew")
        self._begin(seed, chosen)

    def _begin(self, seed: int, chosen: bool) -> None:
        _generators.add(self)
        self._numpy = np.random.Generator(np.random.Philox(seed))
        self._seed = seed
        self._chosen = chosen  # True if the program chose the seed

    def initial_seed(self) -> int:
        """The seed of the last start."""
        return self._seed

    def get_state(self) -> dict[str, Any]:
        """The state: the position in the stream."""
        return {"seed": self._seed, "philox": self._numpy.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state of :meth:`get_state`.

        Anything else raises an error and changes nothing.
        """
        if not isinstance(state, dict) or state.keys() != {"seed", "philox"}:
            raise TypeError(f"[set_state] takes what get_state gives, not {type(state).__name__}")
        seed, philox = integer("set_state", "seed", state["seed"], 0), state["philox"]
        try:
            np.random.Philox(0).state = philox
            known = philox["buffer_pos"] in range(5)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            known = False
        if not known:
            raise ValueError("[set_state] no generator has such a state: take what get_state gives")
        if recording and repr(philox) != repr(self._numpy.bit_generator.state):
            give_up("the state of a generator", "is set")
        self._numpy.bit_generator.state = philox
        self._seed = seed
        self._chosen = True

    def clone_state(self) -> Generator:
        """Another generator at the same position of the same stream."""
        other = Generator()
        other.set_state(self.get_state())
        return other

    @property
    def numpy(self) -> np.random.Generator:
        """The NumPy generator that draws the numbers."""
        return self._numpy

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.get_state(),)


def _restored(state: dict[str, Any]) -> Generator:
    generator = Generator()
    generator.set_state(state)
    return generator


class Draws(NamedTuple):
    """How a vmap draws random numbers; ``chunked`` if it calls its function several times."""

    randomness: str
    chunked: bool


def drawing_error() -> RuntimeError:
    """The error of a draw in a vmap that was not told how slices draw."""
    return RuntimeError(
        '[vmap] the function draws random numbers: give randomness="different" for numbers '
        'of its own at each slice, or "same"'
    )


class _InVmap(Generator):
    """The shared generator inside a vmap, by whose ``randomness`` numbers are drawn."""

    __slots__ = ("draws", "outer")

    def __init__(self, draws: Draws, outer: Generator) -> None:
        self.draws = draws
        self.outer = outer

    def check(self, explicit: bool = False) -> None:
        """Go on only where all slices are to have the same numbers."""
        if self.draws.randomness == "error":
            raise drawing_error()
        if explicit and self.draws.chunked:
            raise RuntimeError(
                "[vmap] with chunk_size a generator of one's own would give each chunk other "
                'numbers: leave generator out, or call vmap with fallback="loop"'
            )
        if isinstance(self.outer, _InVmap):
            self.outer.check(explicit)

    @property
    def numpy(self) -> np.random.Generator:
        """The NumPy generator that draws."""
        self.check()
        return self.outer.numpy

    def seed(self) -> int:
        return self.outer.seed()

    def manual_seed(self, seed: int) -> Generator:
        return self.outer.manual_seed(seed)

    def initial_seed(self) -> int:
        return self.outer.initial_seed()

    def get_state(self) -> dict[str, Any]:
        return self.outer.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        self.outer.set_state(state)


@contextmanager
def drawn_by(draws: Draws) -> Iterator[None]:
    """While this lasts, this thread is in a vmap that draws so."""
    before = getattr(_own, "generator", None)
    try:
        _own.generator = _InVmap(draws, default_generator())
        yield
    finally:
        _own.generator = before


_default: Generator | None = None
_generators: weakref.WeakSet[Generator] = weakref.WeakSet()


_own = threading.local()


@contextmanager
def own_generator(seed: int) -> Iterator[None]:
    """Context manager: this thread draws from its own generator, started with the seed."""
    before = getattr(_own, "generator", None)
    try:
        _own.generator = Generator().manual_seed(seed)
        yield
    finally:
        _own.generator = before


def default_generator() -> Generator:
    """The generator that all random functions share, or the one of :func:`own_generator`."""
    global _default
    if (own := getattr(_own, "generator", None)) is not None:
        return own
    if _default is None:
        made = Generator.__new__(Generator)
        made._begin(_new_seed(), False)
        _default = made
    return _default


def _new_seed() -> int:
    """A seed from the operating system."""
    return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]


def _begin_child() -> None:
    """In a forked child, free the generators' locks, and seed unseeded generators again.

    A thread that was drawing does not exist in the child, and cannot release NumPy's lock. Even
    reading a state takes this lock. Python frees its own locks in the same way.
    """
    for generator in list(_generators):
        lock: Any = generator._numpy.bit_generator.lock
        lock._at_fork_reinit()
        if not generator._chosen:
            generator.seed()


os.register_at_fork(after_in_child=_begin_child)


def manual_seed(seed: int) -> Generator:
    """Start the shared generator again with an integer seed >= -2**63, and return it."""
    return default_generator().manual_seed(seed)


def seed() -> int:
    """Start the shared generator again with a seed from the operating system. Returns the seed."""
    return default_generator().seed()


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: Any = None) -> Iterator[None]:
    """Context manager that restores the shared generator's state at the end of the block.

    ``enabled=False`` changes nothing. The other arguments choose devices, of which there is one.

    >>> import minigrad as mg
    >>> with mg.random.fork_rng():
    ...     first = mg.rand(2)
    >>> mg.equal(mg.rand(2), first)
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)


def initial_seed() -> int:
    """The seed of the shared generator."""
    return default_generator().initial_seed()


def get_rng_state() -> dict[str, Any]:
    """The state of the shared generator."""
    return default_generator().get_state()


def set_rng_state(state: dict[str, Any]) -> None:
    """Restore a state of the shared generator from :func:`get_rng_state`."""
    default_generator().set_state(state)


def drawing(generator: Generator | None = None) -> np.random.Generator:
    """The bit generator of a ``generator`` argument, or of the shared one for None.

    Raises TypeError for anything else.
    """
    if recording:
        draws_from(generator)
    if generator is None:
        generator = default_generator()
    elif isinstance(generator, Generator):
        own = getattr(_own, "generator", None)
        if isinstance(own, _InVmap):
            own.check(explicit=True)
    else:
        raise TypeError(
            f"[generator] expected a mg.Generator, not {type(generator).__name__}: "
            "from a seed it is mg.Generator().manual_seed(seed)"
        )
    return generator.numpy


# ---- uniform numbers, by C where they are many ---------------------------------------------------

_MANY = 1 << 12  # from here on passing NumPy's state to C and back pays


def _drawn(kernel: Any, option: Any, shape: tuple[int, ...], draw: np.random.Generator) -> Tensor:
    """Numbers that a kernel draws from NumPy's stream, which continues after them."""
    bits: Any = draw.bit_generator
    if math.prod(shape) < _MANY:
        source = bits.ctypes.bit_generator.value
        with bits.lock:
            return wrap(call(kernel, option, shape, 0, source))
    with bits.lock:
        state = bits.state
        philox = state["state"]
        words = [*philox["counter"], *philox["key"], *state["buffer"]]
        rest = [state["buffer_pos"], state["has_uint32"], state["uinteger"]]
        at = ffi.new("uint64_t[]", [int(word) for word in (*words, *rest)])
        made = wrap(call(kernel, option, shape, int(ffi.cast("intptr_t", at)), 0))
        after = np.array(ffi.unpack(at, len(at)), np.uint64)
        philox["counter"], philox["key"], state["buffer"] = after[:4], after[4:6], after[6:10]
        state["buffer_pos"], state["has_uint32"], state["uinteger"] = map(int, after[10:])
        bits.state = state
    return made


# ---- draws: random numbers as a recorded program draws them again --------------------------------


class Draw:
    """A draw of random numbers, which makes a new tensor for each call.

    ``kind`` is a name in :data:`DRAWS`, and ``numbers`` are the parameters of that kind. A
    generator of None stands for the shared one.
    """

    __slots__ = ("dtype", "generator", "kind", "numbers", "shape")

    def __init__(
        self,
        kind: str,
        shape: tuple[int, ...],
        dtype: DType,
        numbers: tuple[float, ...] = (),
        generator: Generator | None = None,
    ) -> None:
        self.kind, self.shape, self.dtype = kind, shape, dtype
        self.numbers, self.generator = numbers, generator

    def is_shared(self) -> bool:
        """True if it draws from the shared generator."""
        return self.generator is None or self.generator is default_generator()

    def is_like(self, other: Draw) -> bool:
        """True if the other one draws as many numbers of this kind."""
        own = self.kind, self.shape, self.dtype, self.numbers
        return own == (other.kind, other.shape, other.dtype, other.numbers)

    def __call__(self) -> Tensor:
        """A new tensor."""
        _, draw = DRAWS[self.kind]
        values: Any = draw(drawing(self.generator), self.shape, self.dtype, *self.numbers)
        if isinstance(values, TensorBase):
            made: Any = values
            return made
        return tensor(np.asarray(values), self.dtype)


def _single(dtype: DType) -> Any:
    """The type of NumPy's numbers in which a dtype is drawn."""
    return numpy_dtype(dtype.wide).type


def _between(draw: Any, shape: tuple[int, ...], dtype: DType, low: float, high: float) -> Any:
    kind = _single(dtype)
    first, beyond = kind(low), kind(high)
    with np.errstate(over="ignore", invalid="ignore"):
        length = beyond - first
    if not np.isfinite(length):
        raise ValueError(f"[uniform_] the range [{low}, {high}) is not finite")
    values = draw.random(shape, kind) * length + first
    return np.minimum(values, np.nextafter(beyond, first))  # rounding up may give ``high``


def _normal(draw: Any, shape: tuple[int, ...], dtype: DType, mean: float, std: float) -> Any:
    kind = _single(dtype)
    return draw.standard_normal(shape, kind) * kind(std) + kind(mean)


def _exponential(draw: Any, shape: tuple[int, ...], dtype: DType, rate: float) -> Any:
    kind = _single(dtype)
    values, limits = draw.standard_exponential(shape, kind), np.finfo(kind)
    # NumPy gives 0 for all values below one step: in float32 once in 9 million draws.
    values = np.where(values == 0, limits.eps / 2, values).astype(kind, copy=False)
    with np.errstate(all="ignore"):
        return np.maximum(values / kind(rate), limits.smallest_subnormal)


def _cauchy(draw: Any, shape: tuple[int, ...], dtype: DType, median: float, sigma: float) -> Any:
    kind = _single(dtype)
    return draw.standard_cauchy(shape).astype(kind) * kind(sigma) + kind(median)


# The kinds of draws: how many numbers each takes, and the function that draws. Files of programs
# name them.
DRAWS: dict[str, tuple[int, Callable[..., Any]]] = {
    "uniform": (0, lambda draw, shape, dtype: _drawn(kernels.uniform, dtype.code, shape, draw)),
    "keep": (1, lambda draw, shape, _, p: _drawn(kernels.dropout_mask, p, shape, draw)),
    "standard_normal": (
        0,
        lambda draw, shape, dtype: draw.standard_normal(shape, _single(dtype)),
    ),
    "integers": (2, lambda draw, shape, _, low, high: draw.integers(low, high, shape)),
    "permutation": (0, lambda draw, shape, _: draw.permutation(*shape)),
    "double": (2, lambda draw, shape, _, low, high: draw.uniform(low, high, shape)),
    "gumbel": (0, lambda draw, shape, _: draw.gumbel(size=shape)),
    "geometric": (1, lambda draw, shape, _, p: draw.geometric(p, shape)),
    "between": (2, _between),
    "normal": (2, _normal),
    "exponential": (1, _exponential),
    "log_normal": (2, lambda *given: np.exp(_normal(*given))),
    "cauchy": (2, _cauchy),
}


def _uniform(shape: tuple[int, ...], kind: DType, generator: Generator | None) -> Tensor:
    """Values in [0, 1) of a float dtype."""
    return drawn(Draw("uniform", shape, kind, (), generator))


def keep(shape: tuple[int, ...], p: float) -> Tensor:
    """False with probability p, from the shared generator."""
    return drawn(Draw("keep", shape, bool_, (p,)))


# ---- new tensors ---------------------------------------------------------------------------------


def _floats(op: str, size: Sequence[Any], dtype: Any) -> tuple[tuple[int, ...], DType]:
    kind = as_dtype(dtype)
    if not kind.is_floating_point:
        raise TypeError(f"[{op}] draws floats, not {kind.name}")
    return _shape(op, size, kind), kind


def _shape(op: str, size: Sequence[Any], kind: DType = int64) -> tuple[int, ...]:
    shape = size_of(op, size)
    if min(shape, default=0) < 0:
        raise ValueError(f"[{op}] negative size in {shape}")
    check_room(op, shape, kind)
    return shape


def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform values in [0, 1)."""
    if device is not None:
        on_cpu(device)
    shape, kind = _floats("rand", sizes if size is None else (size,), dtype)
    made = _uniform(shape, kind.wide, generator)
    if kind.is_storage:  # below 1 also after rounding
        made = f.clamp(made, max=1.0 - 2.0 ** (-11 if kind is float16 else -8)).to(kind)
    return require_grad(made) if requires_grad else made


def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Values from the standard normal distribution."""
    if device is not None:
        on_cpu(device)
    shape, kind = _floats("randn", sizes if size is None else (size,), dtype)
    made = drawn(Draw("standard_normal", shape, kind, (), generator))
    return require_grad(made, requires_grad)


def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = int64,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Integers in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``."""
    if device is not None:
        on_cpu(device)
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise TypeError("[randint] a size is needed: randint(high, (2, 3))")
    if high is None:
        low, high = 0, low
    low, high = integer("randint", "low", low), integer("randint", "high", high)
    if low >= high:
        raise ValueError(f"[randint] the range [{low}, {high}) is empty")
    if low < -(2**63) or high > 2**63:
        raise ValueError(f"[randint] the range [{low}, {high}) is beyond int64")
    shape, kind = _shape("randint", (size,)), as_dtype(dtype or int64)
    if kind.is_storage and kind.kind == 1:
        check_range("randint", tensor([low, high - 1])._h, kind.code)
    return require_grad(drawn(Draw("integers", shape, kind, (low, high), generator)), requires_grad)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = int64,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """The integers from 0 to n - 1 in random order."""
    if device is not None:
        on_cpu(device)
    shape, kind = _shape("randperm", (integer("randperm", "n", n, 0),)), as_dtype(dtype or int64)
    return require_grad(drawn(Draw("permutation", shape, kind, (), generator)), requires_grad)


def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Uniform values in [0, 1) in the input's shape and dtype."""
    if device is not None:
        on_cpu(device)
    x = tensor_operand("rand_like", input)
    kind = dtype or x.dtype
    return rand(x.shape, generator=generator, dtype=kind, requires_grad=requires_grad)


def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Standard normal values in the input's shape and dtype."""
    if device is not None:
        on_cpu(device)
    x = tensor_operand("randn_like", input)
    kind = dtype or x.dtype
    return randn(x.shape, generator=generator, dtype=kind, requires_grad=requires_grad)


def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Integers in [low, high), or in [0, low), in the input's shape and dtype.

    Raises ValueError for an empty range.
    """
    if device is not None:
        on_cpu(device)
    x = tensor_operand("randint_like", input)
    low, high = (0, low) if high is None else (low, high)
    kind = dtype or x.dtype
    return randint(low, high, x.shape, generator=generator, dtype=kind, requires_grad=requires_grad)


def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Normally distributed values with a mean and a standard deviation for each element.

    ``mean`` and ``std`` are tensors, broadcast together, or numbers. Two numbers need a ``size``.
    The result is not differentiable, but ``mean + std * randn(...)`` is. Raises ValueError for a
    negative standard deviation.
    """
    if device is not None:
        on_cpu(device)
    m, s = (v.detach() for v in tensor_operands("normal", mean, std))
    if size is not None:
        shape = _shape("normal", (size,))
    elif not m._h.ndim and not s._h.ndim and not hasattr(mean, "shape"):
        raise TypeError("[normal] two numbers need a size: normal(0.0, 1.0, (2, 3))")
    else:
        shape = common_shape("normal", m, s)
    if bool((s < 0).any()):
        raise ValueError("[normal] a standard deviation is negative")
    numbers = not hasattr(mean, "shape") and not hasattr(std, "shape")
    kind = as_dtype(dtype) if dtype is not None or numbers else (m + s).dtype
    kind = kind if kind.is_floating_point else default_dtype()
    values = m + s * randn(shape, generator=generator, dtype=kind)
    return require_grad(values, requires_grad)


def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """1 with the probability in ``input`` (or ``p`` everywhere), else 0, in the input's dtype.

    Raises ValueError unless all values are probabilities.
    """
    x = tensor_operand("bernoulli", input).detach()
    chance = x if p is None else tensor(real("bernoulli", "p", p))
    if bool(((chance >= 0) & (chance <= 1)).logical_not().any()):
        raise ValueError("[bernoulli] probabilities lie in [0, 1]")
    below = _uniform(x.shape, float64, generator)
    return (below < chance).to(x.dtype)


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn in proportion to the weights in ``input``, (n,) or (rows, n), as int64.

    The weights of a row need not add up to 1. Without replacement the indices are those with the
    largest log(weight) plus Gumbel noise (Efraimidis and Spirakis 2006), so none occurs twice.

    Raises ValueError for negative, infinite or NaN weights, and for rows without a positive weight.
    Without replacement it is raised for more samples than positive weights.
    """
    op = "multinomial"
    weights = tensor_operand(op, input).detach().numpy().astype(np.float64)
    if weights.ndim not in (1, 2):
        raise ValueError(f"[{op}] input has {weights.ndim} dimensions, but must have 1 or 2")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"[{op}] weights are finite and not negative")
    rows = np.atleast_2d(weights)
    positive = (rows > 0).sum(1)
    if integer(op, "num_samples", num_samples) < 1 or (positive == 0).any():
        raise ValueError(f"[{op}] needs at least one sample and a positive weight in each row")
    if not replacement and (positive < num_samples).any():
        raise ValueError(
            f"[{op}] cannot draw {num_samples} different positions from {int(positive.min())} "
            "positive weights: use replacement=True"
        )
    draw = drawing(generator)
    check_room(op, (len(rows), num_samples))
    if replacement:
        powers = np.frexp(rows.max(1, keepdims=True))[1]  # scaled by these no sum overflows
        ends = np.cumsum(np.ldexp(rows, -powers), 1)
        at = draw.random((len(rows), num_samples)) * ends[:, -1:]
        last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, 1)
        found = f.searchsorted(asarray(ends), asarray(at), right=True).numpy()
        picked = np.minimum(found, last[:, None])
    else:
        with np.errstate(divide="ignore"):
            keys = np.log(rows) + draw.gumbel(size=rows.shape)
        picked = f.topk(asarray(keys), num_samples).indices.numpy()
    return tensor(picked if weights.ndim == 2 else picked[0], int64)


# ---- in place ------------------------------------------------------------------------------------


def filled(op: str, x: Tensor, draw: Callable[[tuple[int, ...], Any], Any]) -> Tensor:
    """``x`` overwritten with new values. Nothing is drawn if x cannot be written."""

    def make(shape: tuple[int, ...], kind: DType) -> Callable[[], Any]:
        return lambda: asarray(np.asarray(draw(shape, _single(kind))))

    return _overwritten(op, x, make)


def _overwritten(op: str, x: Tensor, make: Callable[..., Callable[[], Any]]) -> Tensor:
    shape, kind = _floats(op, (x.shape,), x.dtype)
    if mode.enabled and (x.requires_grad or shows_tracked(x)):
        check_writable(op, x)
    return overwrite(op, x, drawn(make(shape, kind)))


def _refilled(
    op: str, x: Tensor, kind: str, numbers: tuple[float, ...], generator: Generator | None
) -> Tensor:
    """``x`` overwritten with a draw of a kind."""
    return _overwritten(
        op, x, lambda shape, dtype: Draw(kind, shape, dtype.wide, numbers, generator)
    )


def uniform_(
    x: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with uniform values in [from, to), and return the tensor."""
    if real("uniform_", "from", from_) > real("uniform_", "to", to):
        raise ValueError(f"[uniform_] the range [{from_}, {to}) is empty")
    return _refilled("uniform_", x, "between", (from_, to), generator)


def normal_(
    x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normally distributed values, and return the tensor."""
    mean, std = real("normal_", "mean", mean), real("normal_", "std", std)
    if std < 0:
        raise ValueError(f"[normal_] the standard deviation {std} is negative")
    return _refilled("normal_", x, "normal", (mean, std), generator)


def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed values with a rate, and return the tensor.

    No value is 0, so all logarithms are finite.
    """
    if real("exponential_", "lambd", lambd) <= 0:
        raise ValueError(f"[exponential_] the rate {lambd} is not positive")
    return _refilled("exponential_", x, "exponential", (lambd,), generator)


def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability p, a number or a tensor, else 0. Returns the tensor."""
    if mode.enabled and (x.requires_grad or shows_tracked(x)):
        check_writable("bernoulli_", x)
    chance = tensor_operand("bernoulli_", p).expand(x.shape)
    return overwrite("bernoulli_", x, bernoulli(chance, generator=generator))


def random_(
    x: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill with integers in [from, to), and return the tensor.

    ``random_(to)`` begins at 0. Without bounds the integers are all non-negative ones of the dtype,
    for floats up to 2**24 or 2**53. Raises ValueError for an empty range.
    """
    if to is None and from_:
        from_, to = 0, from_
    if to is None:
        digits = {"float32": 24, "float64": 53, "float16": 11, "bfloat16": 8, "bool": 1}
        bits = 8 * x.dtype.itemsize - x.dtype.is_signed
        to = 2 ** digits.get(x.dtype.name, bits)
    low, high = integer("random_", "from", from_), integer("random_", "to", to)
    if low >= high:
        raise ValueError(f"[random_] the range [{low}, {high}) is empty")
    if mode.enabled and (x.requires_grad or shows_tracked(x)):
        check_writable("random_", x)
    return overwrite("random_", x, randint(low, high, x.shape, generator=generator))


def geometric_(x: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of trials up to the first success with probability p. Returns the tensor.

    Raises ValueError unless 0 < p < 1.
    """
    if not 0 < real("geometric_", "p", p) < 1:
        raise ValueError(f"[geometric_] p is {p}, but must be between 0 and 1")
    if mode.enabled and (x.requires_grad or shows_tracked(x)):
        check_writable("geometric_", x)
    trials = drawn(Draw("geometric", x.shape, int64, (p,), generator))
    return overwrite("geometric_", x, trials)


def log_normal_(
    x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers whose logarithm is normally distributed, and return the tensor."""
    if real("log_normal_", "std", std) < 0:
        raise ValueError(f"[log_normal_] the standard deviation {std} is negative")
    middle = real("log_normal_", "mean", mean)
    return _refilled("log_normal_", x, "log_normal", (middle, std), generator)


def cauchy_(
    x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers of the Cauchy distribution, and return the tensor.

    Raises ValueError for a width that is not positive.
    """
    if not real("cauchy_", "sigma", sigma) > 0:
        raise ValueError(f"[cauchy_] the width {sigma} is not positive")
    middle = real("cauchy_", "median", median)
    return _refilled("cauchy_", x, "cauchy", (middle, sigma), generator)
