"""Samples of shapes, selection and scattering."""

from __future__ import annotations

import minigrad as mg
from samples.base import (
    S,
    Z,
    bools,
    each,
    ints,
)

SHAPES = {
    **each(
        "concat concatenate stack",
        lambda f: (
            S(lambda a, b: f([a, b]), (2, 3), (2, 3)),
            S(lambda a, b: f([a, b, a], dim=-1), (2, 1, 3), (2, 1, 3)),
        ),
    ),
    **each(
        "hstack vstack row_stack dstack column_stack",
        lambda f: (
            S(lambda a, b: f([a, b]), (2, 3), (2, 3)),
            S(lambda a, b: f([a, b]), (3,), (3,)),
        ),
    ),
    "cat": (
        S(lambda a, b: mg.cat([a, b], dim=1), (2, 1), (2, 3)),
        S(lambda a, b: mg.cat([a, b, a]), (2, 3), (1, 3)),
    ),
    "broadcast_tensors": (S(mg.broadcast_tensors, (2, 1), (3,)),),
    "broadcast_to": (S(lambda x: mg.broadcast_to(x, (2, 3, 2)), (3, 1)),),
    "expand": (S(lambda x: mg.expand(x, 2, -1, 2), (3, 1)),),
    "expand_as": (S(lambda x: mg.expand_as(x, mg.zeros(2, 3)), (3,)),),
    "sum_to_size": (S(lambda x: mg.sum_to_size(x, 3, 1), (2, 3, 2)),),
    **each("clone contiguous ravel flatten squeeze", lambda f: (S(f, (2, 1, 3)), S(f, ()))),
    "flatten": (
        S(lambda x: mg.flatten(x, 1, 2), (2, 1, 2, 2)),
        S(mg.flatten, (2, 3)),
        S(mg.flatten, ()),
    ),
    "squeeze": (S(mg.squeeze, (2, 1, 3, 1)), S(lambda x: mg.squeeze(x, (0, 2)), (1, 2, 1, 1))),
    "unsqueeze": (S(lambda x: mg.unsqueeze(x, 1), (2, 3)),),
    **each("reshape view", lambda f: (S(lambda x: f(x.contiguous(), 3, -1), (2, 3)),)),
    "reshape": (
        S(lambda x: mg.reshape(x, (3, -1)), (2, 3)),
        S(lambda x: mg.reshape(x.T, 4), (2, 2)),
    ),
    "reshape_as": (S(lambda x: mg.reshape_as(x, mg.zeros(3, 2)), (2, 3)),),
    "view_as": (S(lambda x: mg.view_as(x.contiguous(), mg.zeros(3, 2)), (2, 3)),),
    "unflatten": (S(lambda x: mg.unflatten(x, 1, (2, -1)), (2, 6)),),
    "movedim": (S(lambda x: mg.movedim(x, (0, 1), (-1, 0)), (2, 3, 2)),),
    "moveaxis": (S(lambda x: mg.moveaxis(x, 0, -1), (2, 3, 2)),),
    "permute": (S(lambda x: mg.permute(x, 2, 0, 1), (2, 3, 2)),),
    "adjoint": (S(mg.adjoint, (2, 3, 2)),),
    **each("conj real", lambda f: (S(f, (2, 3)),)),
    "imag": (Z(mg.imag, (2, 3)),),
    **each("transpose swapaxes swapdims", lambda f: (S(lambda x: f(x, 0, -1), (2, 3, 2)),)),
    "t": (S(mg.t, (2, 3)), S(mg.t, (3,))),
    "to": (S(lambda x: mg.to(x, x.dtype), (2, 3)), Z(lambda x: mg.to(x, mg.int64), (2, 3))),
    "type_as": (S(lambda x: mg.type_as(x, x), (2, 3)),),
    "narrow": (S(lambda x: mg.narrow(x, 1, 1, 2), (2, 4)),),
    "narrow_copy": (S(lambda x: mg.narrow_copy(x, 1, 1, 2), (2, 4)),),
    "select": (S(lambda x: mg.select(x, 1, -2), (2, 3)),),
    "unbind": (S(lambda x: mg.unbind(x, 1), (2, 3)),),
    "unfold": (
        S(lambda x: mg.unfold(x, 1, 3, 2), (2, 7)),
        S(lambda x: mg.unfold(x, 0, 2, 1), (4,)),
    ),
    **each(
        "atleast_1d atleast_2d atleast_3d",
        lambda f: (S(f, ()), S(f, (3,)), S(lambda a, b: f(a, b), (2, 3), ())),
    ),
    "cartesian_prod": (S(mg.cartesian_prod, (2,), (3,)),),
    "meshgrid": (
        S(mg.meshgrid, (2,), (3,)),
        S(lambda a, b: mg.meshgrid(a, b, indexing="xy"), (2,), (3,)),
    ),
    "chunk": (S(lambda x: mg.chunk(x, 3, dim=1), (2, 5)),),
    "combinations": (
        S(mg.combinations, (4,)),
        S(lambda x: mg.combinations(x, 3, with_replacement=True), (3,)),
    ),
    "split": (S(lambda x: mg.split(x, 2), (5, 2)), S(lambda x: mg.split(x, [1, 3], dim=1), (2, 4))),
    "split_with_sizes": (S(lambda x: mg.split_with_sizes(x, [1, 3], 1), (2, 4)),),
    "tensor_split": (
        S(lambda x: mg.tensor_split(x, 3), (5, 2)),
        S(lambda x: mg.tensor_split(x, (1, 3), 1), (2, 4)),
    ),
    "hsplit": (S(lambda x: mg.hsplit(x, 2), (2, 4)),),
    "vsplit": (S(lambda x: mg.vsplit(x, (1,)), (3, 2)),),
    "dsplit": (S(lambda x: mg.dsplit(x, 2), (2, 1, 4)),),
    "flip": (S(lambda x: mg.flip(x, (0, -1)), (2, 2, 3)),),
    **each("fliplr flipud", lambda f: (S(f, (2, 3)),)),
    "roll": (S(lambda x: mg.roll(x, 2), (2, 3)), S(lambda x: mg.roll(x, (1, -1), (0, 1)), (2, 3))),
    "rot90": tuple(S(lambda x, k=k: mg.rot90(x, k, (0, 2)), (2, 1, 3)) for k in (1, 2, -1)),
    "repeat": (S(lambda x: mg.repeat(x, 2, 1, 3), (2, 2)),),
    "tile": (S(lambda x: mg.tile(x, (2,)), (2, 3)), S(lambda x: mg.tile(x, 2, 1, 2), (3,))),
    "repeat_interleave": (
        S(lambda x: mg.repeat_interleave(x, 2), (2, 3)),
        S(lambda x: mg.repeat_interleave(x, ints(2, 0, 1), dim=1), (2, 3)),
    ),
    "diag": (
        S(mg.diag, (3,)),
        S(lambda x: mg.diag(x, 1), (3, 4)),
        S(lambda x: mg.diag(x, -1), (2,)),
    ),
    "diag_embed": (S(mg.diag_embed, (2, 3)), S(lambda x: mg.diag_embed(x, -1, 0, 2), (2, 3))),
    "diagflat": (S(lambda x: mg.diagflat(x, 1), (2, 2)),),
    "diagonal": (S(mg.diagonal, (3, 4)), S(lambda x: mg.diagonal(x, -1, 0, 2), (3, 2, 3))),
    "linalg.diagonal": (S(lambda x: mg.linalg.diagonal(x, offset=1), (2, 3, 3)),),
    "diagonal_scatter": (S(lambda x, v: mg.diagonal_scatter(x, v, 1), (3, 4), (3,)),),
    "block_diag": (S(mg.block_diag, (2, 2), (1, 3), (2,)),),
    **each("tril triu", lambda f: (S(f, (3, 4)), S(lambda x: f(x, -1), (2, 3, 3)))),
    **each("tril_indices triu_indices", lambda f: (Z(lambda: f(3, 4, 1)),)),
    "pad": (
        S(lambda x: mg.pad(x, (1, 2)), (2, 3)),
        S(lambda x: mg.pad(x, (1, -1, 0, 2), value=0.5), (2, 3)),
        S(lambda x: mg.pad(x, (2, 1, 1, 0), "reflect"), (1, 2, 2, 3)),
        S(lambda x: mg.pad(x, (2, 1), "replicate"), (1, 2, 3)),
        S(lambda x: mg.pad(x, (2, 1), "circular"), (1, 2, 3)),
    ),
    "constant_pad_nd": (S(lambda x: mg.constant_pad_nd(x, (1, -1, 0, 2), 0.5), (2, 3)),),
}

MASK = (1, 0, 1), (0, 0, 1)

SELECTION = {
    **each("argwhere nonzero", lambda f: (Z(lambda x: f(x > 0), (2, 3)),)),
    "gather": (
        S(lambda x: mg.gather(x, 1, ints([0, 2, 2, 1], [1, 1, 0, -1])), (2, 3)),
        S(lambda x: mg.gather(x, 0, ints([1], [0], [1])), (2, 3)),
    ),
    "index_select": (S(lambda x: mg.index_select(x, 1, ints(2, 0, 2)), (2, 3)),),
    "masked_fill": (
        S(lambda x: mg.masked_fill(x, bools(*MASK), 1.5), (2, 3)),
        S(lambda x, v: mg.masked_fill(x, bools(*MASK), v), (2, 3), ()),
    ),
    "masked_select": (S(lambda x: mg.masked_select(x, bools(*MASK)), (2, 3)),),
    "take": (S(lambda x: mg.take(x, ints([5, 0], [0, -2])), (2, 3)),),
    "take_along_dim": (
        S(lambda x: mg.take_along_dim(x, ints([0, 2], [1, 1]), 1), (2, 3)),
        S(lambda x: mg.take_along_dim(x, ints(5, 0, 0)), (2, 3)),
    ),
    "where": (
        S(lambda a, b: mg.where(bools(*MASK), a, b), (2, 3), (3,)),
        S(lambda a: mg.where(bools(*MASK), a, 0.5), (1, 3)),
    ),
    "scatter": (
        S(lambda x, v: mg.scatter(x, 1, ints([0, 2], [1, 0]), v), (2, 3), (2, 2)),
        S(lambda x: mg.scatter(x, 0, ints([1, 0, 1]), 1.5), (2, 3)),
        S(lambda x, v: mg.scatter(x, 1, ints([0, 0], [1, 0]), v, "add"), (2, 3), (2, 2)),
        S(lambda x, v: mg.scatter(x, 1, ints([0, 0], [1, 0]), v, "multiply"), (2, 3), (2, 2)),
    ),
    "scatter_add": (S(lambda x, v: mg.scatter_add(x, 1, ints([0, 0], [1, 0]), v), (2, 3), (2, 2)),),
    "scatter_reduce": (
        *[
            S(lambda x, v, r=r: mg.scatter_reduce(x, 1, ints([0, 0], [1, 0]), v, r), (2, 3), (2, 2))
            for r in ("sum", "prod", "mean", "amax", "amin")
        ],
        *[
            S(
                lambda x, v, r=r: mg.scatter_reduce(x, 0, ints([0, 1]), v, r, include_self=False),
                (3, 2),
                (1, 2),
            )
            for r in ("sum", "prod", "mean", "amax")
        ],
    ),
    "index_add": (
        S(lambda x, v: mg.index_add(x, 0, ints(1, 1), v), (2, 3), (2, 3)),
        S(lambda x, v: mg.index_add(x, 1, ints(2, 0), v, alpha=-2), (2, 3), (2, 2)),
    ),
    "index_copy": (S(lambda x, v: mg.index_copy(x, 1, ints(2, 0), v), (2, 3), (2, 2)),),
    "index_fill": (
        S(lambda x: mg.index_fill(x, 1, ints(2, 0), 1.5), (2, 3)),
        S(lambda x, v: mg.index_fill(x, 0, ints(1), v), (2, 3), ()),
    ),
    "index_put": (
        S(lambda x, v: mg.index_put(x, (ints(1, 0), ints(2, 0)), v), (2, 3), (2,)),
        S(lambda x, v: mg.index_put(x, (ints(1, 1),), v, accumulate=True), (2, 3), (3,)),
    ),
    "index_reduce": tuple(
        S(
            lambda x, v, r=r, own=own: mg.index_reduce(x, 1, ints(2, 0, 2), v, r, include_self=own),
            (2, 3),
            (2, 3),
        )
        for r in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    ),
    "put": (
        S(lambda x, v: mg.put(x, ints([5, 0], [1, -2]), v), (2, 3), (2, 2)),
        S(lambda x, v: mg.put(x, ints(1, 1, 4), v, accumulate=True), (2, 3), (3,)),
    ),
    "unravel_index": (Z(lambda: mg.unravel_index(ints([4, 5], [0, 3]), (2, 3))),),
    "masked_scatter": (S(lambda x, v: mg.masked_scatter(x, bools(*MASK), v), (2, 3), (4,)),),
    "select_scatter": (S(lambda x, v: mg.select_scatter(x, v, 1, -1), (2, 3), (2,)),),
    "slice_scatter": (S(lambda x, v: mg.slice_scatter(x, v, 1, 0, 4, 2), (2, 4), (2, 2)),),
}
