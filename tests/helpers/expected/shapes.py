"""References of shapes, selection and scattering."""

from __future__ import annotations

import itertools

import numpy as np

from expected.base import each


def _numbers(args):
    """The numbers of ``f(1, 2)`` or ``f((1, 2))``."""
    return tuple(args[0]) if len(args) == 1 and not np.isscalar(args[0]) else tuple(args)


def _expand(x, *sizes):
    sizes = _numbers(sizes)
    own = (1,) * (len(sizes) - x.ndim) + x.shape
    return np.broadcast_to(x, [o if s == -1 else s for o, s in zip(own, sizes, strict=True)])


def _sum_to_size(x, *sizes):
    sizes = _numbers(sizes)
    y = x.sum(tuple(range(x.ndim - len(sizes))))
    return y.sum(tuple(k for k, n in enumerate(sizes) if n == 1), keepdims=True)


def _flatten(x, start_dim=0, end_dim=-1, order="C"):
    if order != "C":
        return x.ravel(order)
    start, end = start_dim % max(x.ndim, 1), end_dim % max(x.ndim, 1)
    return x.reshape(*x.shape[:start], -1, *x.shape[end + 1 :])


def _squeeze(x, dim=None):
    dims = range(x.ndim) if dim is None else np.atleast_1d(dim)
    return x.reshape([n for k, n in enumerate(x.shape) if n != 1 or k not in dims])


def _unflatten(x, dim, sizes):
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def _to(x, to):
    return x.astype(to if isinstance(to, np.dtype) else to.dtype)


def _narrow(x, dim, start, length):
    return x.take(range(start, start + length), dim)


def _unfold(x, dim, size, step):
    starts = range(0, x.shape[dim] - size + 1, step)
    return np.stack([np.moveaxis(_narrow(x, dim, s, size), dim, -1) for s in starts], dim)


def _atleast(f):
    return lambda *xs: [f(x) for x in xs]


def _atleast_3d(*xs):
    return [x[None, :, None] if x.ndim == 1 else np.atleast_3d(x) for x in xs]


def _chunk(x, chunks, dim=0):
    size = -(-x.shape[dim] // chunks)
    return np.split(x, range(size, x.shape[dim], size), dim)


def _split(x, sizes, dim=0):
    if np.isscalar(sizes):
        return np.split(x, range(sizes, x.shape[dim], sizes), dim)
    return np.split(x, np.cumsum(sizes)[:-1], dim)


def _combinations(x, r=2, with_replacement=False):
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(pick(x, r)))


def _repeat_interleave(x, repeats, dim=None):
    return np.repeat(x, repeats, dim)


def _diag(x, offset=0):
    return np.diag(x, offset)


def _diag_embed(x, offset=0, dim1=-2, dim2=-1):
    n = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], n, n))
    for k in range(x.shape[-1]):
        y[..., k + max(-offset, 0), k + max(offset, 0)] = x[..., k]
    return np.moveaxis(y, (-2, -1), (dim1, dim2))


def _diagonal_scatter(x, v, offset=0, dim1=0, dim2=1):
    y = x.copy()
    planes = np.moveaxis(y, (dim1, dim2), (0, 1))
    for k in range(len(v)):
        planes[k + max(-offset, 0), k + max(offset, 0)] = v[k]
    return y


def _block_diag(*blocks):
    blocks = [np.atleast_2d(b) for b in blocks]
    y = np.zeros(sum(np.array(b.shape) for b in blocks))
    row = column = 0
    for b in blocks:
        y[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return y


def _pad(x, pad, mode="constant", value=0.0):
    value = value or 0.0
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2)
    pairs += [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -2, -2)]
    for axis, pair in enumerate(pairs):
        cut = [slice(None)] * x.ndim
        cut[axis] = slice(max(-pair[0], 0), x.shape[axis] - max(-pair[1], 0))
        x = x[tuple(cut)]
    added = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode == "constant":
        return np.pad(x, added, constant_values=value)
    return np.pad(x, added, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


SHAPES = {
    **each("cat concat concatenate", lambda xs, dim=0: np.concatenate(xs, dim)),
    "stack": lambda xs, dim=0: np.stack(xs, dim),
    "hstack": np.hstack,
    **each("vstack row_stack", np.vstack),
    "dstack": np.dstack,
    "column_stack": np.column_stack,
    "broadcast_tensors": lambda *xs: list(np.broadcast_arrays(*xs)),
    "broadcast_to": np.broadcast_to,
    "expand": _expand,
    "expand_as": lambda x, other: np.broadcast_to(x, other.shape),
    "sum_to_size": _sum_to_size,
    **each("clone contiguous conj real", lambda x: x),
    "imag": np.zeros_like,
    "ravel": np.ravel,
    "flatten": _flatten,
    "squeeze": _squeeze,
    "unsqueeze": np.expand_dims,
    **each("reshape view", lambda x, *sizes: x.reshape(_numbers(sizes))),
    **each("reshape_as view_as", lambda x, other: x.reshape(other.shape)),
    "unflatten": _unflatten,
    **each("movedim moveaxis", np.moveaxis),
    "permute": lambda x, *dims: x.transpose(_numbers(dims)),
    "adjoint": lambda x: np.swapaxes(x, -1, -2),
    **each("transpose swapaxes swapdims", np.swapaxes),
    "t": np.transpose,
    "to": _to,
    "type_as": _to,
    **each("narrow narrow_copy", _narrow),
    "select": lambda x, dim, index: x.take(index, dim),
    "unbind": lambda x, dim=0: list(np.moveaxis(x, dim, 0)),
    "unfold": _unfold,
    "atleast_1d": _atleast(np.atleast_1d),
    "atleast_2d": _atleast(np.atleast_2d),
    "atleast_3d": _atleast_3d,
    "cartesian_prod": lambda *xs: np.array(list(itertools.product(*xs))),
    "meshgrid": lambda *xs, indexing="ij": list(np.meshgrid(*xs, indexing=indexing)),
    "chunk": _chunk,
    "combinations": _combinations,
    **each("split split_with_sizes", _split),
    "tensor_split": np.array_split,
    "hsplit": np.hsplit,
    "vsplit": np.vsplit,
    "dsplit": np.dsplit,
    "flip": np.flip,
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "roll": np.roll,
    "rot90": np.rot90,
    "repeat": lambda x, *times: np.tile(x, _numbers(times)),
    "tile": lambda x, *times: np.tile(x, _numbers(times)),
    "repeat_interleave": _repeat_interleave,
    "diag": _diag,
    "diag_embed": _diag_embed,
    "diagflat": np.diagflat,
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    "linalg.diagonal": lambda x, offset=0, dim1=-2, dim2=-1: np.diagonal(x, offset, dim1, dim2),
    "diagonal_scatter": _diagonal_scatter,
    "block_diag": _block_diag,
    "tril": np.tril,
    "triu": np.triu,
    "tril_indices": lambda n, m, k: np.array(np.tril_indices(n, k, m)),
    "triu_indices": lambda n, m, k: np.array(np.triu_indices(n, k, m)),
    "pad": _pad,
    "constant_pad_nd": lambda x, pad, value=0: _pad(x, pad, value=value),
}


def _along(index, dim, at):
    """The full index of the element for position ``at`` of an index along ``dim``."""
    place = list(at)
    place[dim] = index[at]
    return tuple(place)


REDUCE = {
    "add": np.add,
    "sum": np.add,
    "multiply": np.multiply,
    "prod": np.multiply,
    "mean": np.add,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _scatter(x, dim, index, src=None, reduce=None, include_self=True, *, value=None):
    value = src if value is None else value
    y, count = x.copy(), np.ones(x.shape) * include_self
    value = np.broadcast_to(value, index.shape) if np.ndim(value) == 0 else value
    for at in np.ndindex(index.shape):
        to = _along(index, dim, at)
        fresh = reduce is None or (not include_self and not count[to])
        y[to] = value[at] if fresh else REDUCE[reduce](y[to], value[at])
        count[to] += 1
    return y / np.maximum(count, 1) if reduce == "mean" else y


def _by_slices(x, dim, index, value, put):
    y = x.copy()
    lines = np.moveaxis(y, dim, 0)
    values = (
        np.broadcast_to(value, (len(index), *lines.shape[1:]))
        if np.ndim(value) == 0
        else (np.moveaxis(value, dim, 0))
    )
    for k, to in enumerate(index):
        lines[to] = put(lines[to], values[k])
    return y


def _index_reduce(x, dim, index, value, reduce, include_self=True):
    shape = [1] * x.ndim
    shape[dim] = -1
    index = np.broadcast_to(index.reshape(shape), value.shape)
    return _scatter(x, dim, index, value, reduce, include_self)


def _index_put(x, indices, value, accumulate=False):
    y = x.copy()
    if accumulate:
        np.add.at(y, tuple(indices), value)
    else:
        y[tuple(indices)] = value
    return y


def _put(x, index, value, accumulate=False):
    return _index_put(x.ravel(), (index,), value, accumulate).reshape(x.shape)


def _masked_scatter(x, mask, value):
    y, mask = x.copy(), np.broadcast_to(mask, x.shape)
    y[mask] = value.ravel()[: mask.sum()]
    return y


def _slice_scatter(x, v, dim=0, start=0, end=None, step=1):
    y = x.copy()
    np.moveaxis(y, dim, 0)[start:end:step] = np.moveaxis(v, dim, 0)
    return y


def _select_scatter(x, v, dim, index):
    y = x.copy()
    np.moveaxis(y, dim, 0)[index] = v
    return y


def _gather(x, dim, index):
    y = np.empty(index.shape)
    for at in np.ndindex(index.shape):
        y[at] = x[_along(index, dim, at)]
    return y


def _take_along_dim(x, index, dim=None):
    return x.ravel()[index] if dim is None else np.take_along_axis(x, index, dim)


SELECTION = {
    "argwhere": np.argwhere,
    "nonzero": lambda x, as_tuple=False: list(x.nonzero()) if as_tuple else np.argwhere(x),
    "gather": _gather,
    "index_select": lambda x, dim, index: x.take(index, dim),
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "masked_select": lambda x, mask: x[np.broadcast_to(mask, x.shape)],
    "take": np.take,
    "take_along_dim": _take_along_dim,
    "where": np.where,
    "scatter": _scatter,
    "scatter_add": lambda x, dim, index, value: _scatter(x, dim, index, value, "add"),
    "scatter_reduce": _scatter,
    "index_add": lambda x, dim, index, value, alpha=1: _by_slices(
        x, dim, index, alpha * value, np.add
    ),
    "index_copy": lambda x, dim, index, value: _by_slices(x, dim, index, value, lambda _, new: new),
    "index_fill": lambda x, dim, index, value: _by_slices(x, dim, index, value, lambda _, new: new),
    "index_put": _index_put,
    "index_reduce": _index_reduce,
    "put": _put,
    "unravel_index": lambda index, shape: list(np.unravel_index(index, shape)),
    "masked_scatter": _masked_scatter,
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
}
