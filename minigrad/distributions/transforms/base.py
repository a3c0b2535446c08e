"""Transform, the base class, and transforms that compose others or change shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad import functions as f
from minigrad.distributions import constraints
from minigrad.functions.creation import zeros_like
from minigrad.tape.tensor_base import Size, TensorBase

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "broadcast",
    "identity_transform",
    "last_added",
]


def last_added(x: Any, dims: int) -> Any:
    """The sum over the last dimensions."""
    return f.sum(x, tuple(range(-dims, 0))) if dims else x


def broadcast(shape: Sequence[int], *others: Any) -> Sequence[int]:
    """The shape, broadcast with the shapes of other tensors. Numbers have no shape."""
    from minigrad.functions.predicates import broadcast_shapes

    return broadcast_shapes(tuple(shape), *(tuple(getattr(x, "shape", ())) for x in others))


def _alike(a: Any, b: Any) -> bool:
    """True if two parameters are equal. Tensors are compared by shape and values."""
    if isinstance(a, TensorBase) or isinstance(b, TensorBase):
        same: Any = a is b or a == b
        return same if isinstance(same, bool) else bool(same.all())
    return bool(a == b)


class Transform:
    """A function with an inverse.

    A subclass defines ``_call``, ``_inverse`` and ``log_abs_det_jacobian``. It sets the constraints
    ``domain`` and ``codomain``, ``bijective``, and ``sign``, the sign of its derivative. With
    ``cache_size=1`` the inverse of the last result is the tensor that it was computed from, which
    costs no digits.
    """

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective: Any = True
    sign: Any = 1
    _cache_size = 0
    _last: Any = (None, None)

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"[{type(self).__name__}] cache_size is {cache_size}, not 0 or 1")
        self._cache_size = cache_size

    @property
    def event_dim(self) -> int:
        """The number of last dimensions that are transformed together."""
        found: int = self.domain.event_dim
        if found != self.codomain.event_dim:
            raise ValueError(
                f"[{type(self).__name__}] values of {found} dimensions become values of "
                f"{self.codomain.event_dim}: ask domain.event_dim or codomain.event_dim"
            )
        return found

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with or without a cache of its last pair of values."""
        if self._cache_size == cache_size:
            return self
        made = self._rebuilt(cache_size)
        made._last = (None, None)
        return made

    def _rebuilt(self, cache_size: int) -> Transform:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._cache_size = cache_size
        return made

    def __call__(self, x: Any) -> Any:
        """Apply the transform to x."""
        if not self._cache_size:
            return self._call(x)
        last = self._last
        if last[0] is not x:
            self._last = last = x, self._call(x)
        return last[1]

    def _inv_call(self, y: Any) -> Any:
        if not self._cache_size:
            return self._inverse(y)
        last = self._last
        if last[1] is not y:
            self._last = last = self._inverse(y), y
        return last[0]

    def __getstate__(self) -> dict[str, Any]:
        """The attributes without the last pair of values, which may have a history."""
        return {k: v for k, v in self.__dict__.items() if k != "_last"}

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] _call")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] has no inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log|dy / dx|, in the shape without the dimensions that are transformed together."""
        raise NotImplementedError(f"[{type(self).__name__}] log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of y for the shape of x."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of x for the shape of y."""
        return shape

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _Inverse(self)

    def _state(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_last", "_cache_size")}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Transform) or type(self) is not type(other):
            return False
        own, their = self._state(), other._state()
        return own.keys() == their.keys() and all(_alike(own[k], their[k]) for k in own)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """The inverse of a transform."""

    def __init__(self, of: Transform) -> None:
        self._of = of

    @property
    def domain(self) -> Any:
        """The codomain of the transform."""
        return self._of.codomain

    @property
    def codomain(self) -> Any:
        """The domain of the transform."""
        return self._of.domain

    @property
    def bijective(self) -> Any:
        """Taken from the transform."""
        return self._of.bijective

    @property
    def sign(self) -> Any:
        """Taken from the transform."""
        return self._of.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The inverse of the transform with a cache."""
        return self._of.with_cache(cache_size).inv

    def __call__(self, x: Any) -> Any:
        """Apply the inverse transform to x."""
        return self._of._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._of(y)

    _call, _inverse = __call__, _inv_call

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Minus the log-determinant of the transform."""
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The inverse_shape of the transform."""
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The forward_shape of the transform."""
        return self._of.forward_shape(shape)

    @property
    def inv(self) -> Transform:
        """The transform."""
        return self._of

    def __repr__(self) -> str:
        return f"{self._of}.inv"


# ---- shapes --------------------------------------------------------------------------------------


class IndependentTransform(Transform):
    """A transform whose last ``reinterpreted_batch_ndims`` dimensions make up one value."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        """The base's constraint, for arrays."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        """The base's constraint, for arrays."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> Any:
        """Taken from the base."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        """Taken from the base."""
        return self.base_transform.sign

    def _rebuilt(self, cache_size: int) -> Transform:
        return type(self)(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Any) -> Any:
        self._check("x", x, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        self._check("y", y, self.codomain.event_dim)
        return self.base_transform._inv_call(y)

    @staticmethod
    def _check(name: str, value: Any, least: int) -> None:
        if value.ndim < least:
            raise ValueError(
                f"[IndependentTransform] {name} has {value.ndim} dimensions, not {least} or more"
            )

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of the base's log-determinants over the parts."""
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return last_added(found, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Taken from the base."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Taken from the base."""
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Reshape values of ``in_shape`` to ``out_shape``, with the same number of elements."""

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(in_shape) != math.prod(out_shape):
            raise ValueError(
                f"[ReshapeTransform] {self.in_shape} and {self.out_shape} have different sizes"
            )

    @property
    def domain(self) -> Any:
        """Arrays of in_shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        """Arrays of out_shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return f.reshape(x, tuple(self.forward_shape(x.shape)))

    def _inverse(self, y: Any) -> Any:
        return f.reshape(y, tuple(self.inverse_shape(y.shape)))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """0."""
        return last_added(zeros_like(x), len(self.in_shape))

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape with out_shape in place of in_shape. Raises ValueError if it ends otherwise."""
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape with in_shape in place of out_shape. Raises ValueError if it ends otherwise."""
        return self._exchanged(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _exchanged(shape: Sequence[int], old: Sequence[int], new: Sequence[int]) -> Sequence[int]:
        at = len(shape) - len(old)
        if at < 0 or tuple(shape[at:]) != tuple(old):
            raise ValueError(f"[ReshapeTransform] the shape {tuple(shape)} must end in {old}")
        return Size((*shape[:at], *new))


class ComposeTransform(Transform):
    """Composition of transforms, the first one first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def _dims(self, first: str, last: str, parts: Sequence[Transform]) -> int:
        """The number of dimensions of a value before all parts, counted back from the last part."""
        if not parts:
            return 0
        dims: int = getattr(parts[-1], last).event_dim
        for part in reversed(parts):
            came, went = getattr(part, first).event_dim, getattr(part, last).event_dim
            dims = max(dims + came - went, came)
        return dims

    @property
    def domain(self) -> Any:
        """The domain of the first part, with as many dimensions as later parts need."""
        if not self.parts:
            return constraints.real
        return _raised(self.parts[0].domain, self._dims("domain", "codomain", self.parts))

    @property
    def codomain(self) -> Any:
        """The codomain of the last part, with as many dimensions as earlier parts give."""
        if not self.parts:
            return constraints.real
        return _raised(self.parts[-1].codomain, self._dims("codomain", "domain", self.parts[::-1]))

    @property
    def bijective(self) -> Any:
        """True if all parts are bijective."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        return math.prod([part.sign for part in self.parts])

    def _rebuilt(self, cache_size: int) -> Transform:
        return type(self)(self.parts, cache_size)

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of the parts' log-determinants."""
        if not self.parts:
            return zeros_like(x)
        total: Any = 0.0
        dims = self.domain.event_dim
        for n, part in enumerate(self.parts):
            z = y if n == len(self.parts) - 1 else part(x)
            found = part.log_abs_det_jacobian(x, z)
            total = total + last_added(found, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = z
        return total

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape after all parts."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape before all parts."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


def _raised(constraint: Any, dims: int) -> Any:
    """The constraint for values with more dimensions."""
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


identity_transform = ComposeTransform([])
