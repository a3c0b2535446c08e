"""Packed and padded sequences of several lengths, for recurrent layers.

A packed sequence has the rows of all sequences at step 0. Then come the rows at step 1 of all
sequences with a step 1, and so on. Its sequences are sorted, the longest first, so the sequences of
a step are the first ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from minigrad import functions as f
from minigrad.functions.arguments import integer, listed_tensors, tensor_operand
from minigrad.functions.creation import arange, full, tensor
from minigrad.runtime.dtypes import int64

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Fields):
    """Sequences of several lengths as rows, step by step, made by :func:`pack_padded_sequence`.

    ``data`` has shape (sum of lengths, ...). ``batch_sizes``, int64, has the number of rows of each
    step. ``sorted_indices`` are the sequences' numbers from the longest to the shortest.
    ``unsorted_indices`` is the inverse permutation. Both are None if the sequences were sorted.

    >>> import minigrad as mg
    >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1.0, 2.0]), mg.tensor([3.0])])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1.0, 3.0, 2.0], [2, 1])
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """A packed sequence of four fields. A missing inverse of ``sorted_indices`` is computed."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The packed sequence with ``data.to(...)``."""
        return PackedSequence(self.data.to(*args, **kwargs), *self[1:])

    def float(self) -> PackedSequence:
        """The packed sequence in float32."""
        return PackedSequence(self.data.float(), *self[1:])

    def double(self) -> PackedSequence:
        """The packed sequence in float64."""
        return PackedSequence(self.data.double(), *self[1:])

    def cpu(self) -> PackedSequence:
        """This sequence, which is on the CPU."""
        return self

    def pin_memory(self) -> PackedSequence:
        """This sequence: all memory is the CPU's."""
        return self

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of an int64 permutation, or None for None.

    >>> import minigrad as mg
    >>> mg.nn.utils.rnn.invert_permutation(mg.tensor([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    return None if permutation is None else f.argsort(permutation)


def _lengths(op: str, lengths: Any) -> list[int]:
    values: Any = lengths.tolist() if hasattr(lengths, "tolist") else lengths
    if not isinstance(values, Sequence) and not hasattr(values, "__iter__"):
        raise TypeError(f"[{op}] lengths is {values!r}, not a list of integers or a tensor of them")
    return [integer(op, "a length", n) for n in values]


def _present(lengths: Sequence[int], steps: int) -> Tensor:
    """A bool array (steps, sequences): True if a sequence has a step."""
    return arange(steps).unsqueeze(1) < tensor(list(lengths), dtype=int64)


def pack_padded_sequence(
    input: Tensor,
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack sequences (T, B, ...), or (B, T, ...) with ``batch_first``, without their padding.

    ``lengths`` has a positive length for each sequence, in falling order if ``enforce_sorted``.

    Raises ValueError for invalid lengths, and for lengths that must be sorted and are not.

    >>> import minigrad as mg
    >>> x = mg.tensor([[1.0, 3.0], [2.0, 0.0]])
    >>> mg.nn.utils.rnn.pack_padded_sequence(x, [2, 1]).data.tolist()
    [1.0, 3.0, 2.0]
    """
    op = "pack_padded_sequence"
    x = tensor_operand(op, input)
    if x.ndim < 2:
        raise ValueError(f"[{op}] the input has shape {x.shape}, but needs time and batch")
    if batch_first:
        x = x.transpose(0, 1)
    sizes, order = _lengths(op, lengths), None
    if len(sizes) != x.shape[1]:
        raise ValueError(f"[{op}] {len(sizes)} lengths do not fit a batch of {x.shape[1]}")
    if not sizes:
        raise ValueError(f"[{op}] a batch of 0 sequences cannot be packed")
    for n in sizes:
        if not 0 < n <= x.shape[0]:
            raise ValueError(f"[{op}] length {n} is not in 1..{x.shape[0]}, the number of steps")
    if enforce_sorted:
        if any(a < b for a, b in itertools.pairwise(sizes)):
            raise ValueError(
                f"[{op}] lengths {sizes} must fall, longest first; or pass enforce_sorted=False"
            )
    else:
        places = sorted(range(len(sizes)), key=lambda i: -sizes[i])
        order = tensor(places, dtype=int64)
        x, sizes = x.index_select(1, order), [sizes[i] for i in places]
    present = _present(sizes, sizes[0])
    return PackedSequence(x[: sizes[0]][present], present.sum(1), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences padded to one length, (T, B, ...) or (B, T, ...), and their lengths.

    T is ``total_length``, by default the longest length. Raises ValueError if ``total_length`` is
    less.

    >>> import minigrad as mg
    >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1.0, 2.0]), mg.tensor([3.0])])
    >>> x, lengths = mg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    >>> x.tolist(), lengths.tolist()
    ([[1.0, 2.0], [3.0, 0.0]], [2, 1])
    """
    op = "pad_packed_sequence"
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"[{op}] the sequence is {type(sequence).__name__}, not a PackedSequence")
    counts = sequence.batch_sizes.tolist()
    steps = len(counts)
    if total_length is not None:
        steps = integer(op, "total_length", total_length)
        if steps < len(counts):
            raise ValueError(f"[{op}] total_length {steps} is less than the longest, {len(counts)}")
    lengths = [sum(b < count for count in counts) for b in range(counts[0])]
    data = sequence.data
    padded = full((steps, counts[0], *data.shape[1:]), padding_value, dtype=data.dtype)
    padded[_present(lengths, steps)] = data
    sizes = tensor(lengths, dtype=int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        sizes = sizes[sequence.unsorted_indices]
    return padded.transpose(0, 1) if batch_first else padded, sizes


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad sequences (L_i, ...) to one tensor (T, B, ...) or (B, T, ...). T is the longest length.

    Raises ValueError for an empty list, for shapes that differ after the first dimension, and for a
    ``padding_side`` other than "right" and "left".

    >>> import minigrad as mg
    >>> rows = [mg.tensor([1.0, 2.0]), mg.tensor([3.0])]
    >>> mg.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_side="left").tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    op = "pad_sequence"
    rows = listed_tensors(op, sequences)
    if padding_side not in ("left", "right"):
        raise ValueError(f'[{op}] padding_side is {padding_side!r}, but may be "left" or "right"')
    if not rows:
        raise ValueError(f"[{op}] needs at least one sequence")
    for row in rows:
        if row.ndim == 0 or row.shape[1:] != rows[0].shape[1:]:
            raise ValueError(
                f"[{op}] shapes {rows[0].shape} and {row.shape} may differ in their length alone"
            )
    longest = max(row.shape[0] for row in rows)
    padded = []
    for row in rows:
        missing = longest - row.shape[0]
        rest = full((missing, *row.shape[1:]), padding_value, dtype=row.dtype)
        whole = [row, rest] if padding_side == "right" else [rest, row]
        padded.append(f.cat(whole) if missing else row)
    return f.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of (T, B, ...), or (B, T, ...) with ``batch_first``, cut to their lengths.

    >>> import minigrad as mg
    >>> x = mg.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> [y.tolist() for y in mg.nn.utils.rnn.unpad_sequence(x, [2, 1], batch_first=True)]
    [[1.0, 2.0], [3.0]]
    """
    op = "unpad_sequence"
    x = tensor_operand(op, padded_sequences)
    if x.ndim < 2:
        raise ValueError(f"[{op}] the input has shape {x.shape}, but needs time and batch")
    x = x if batch_first else x.transpose(0, 1)
    sizes = _lengths(op, lengths)
    if len(sizes) != x.shape[0]:
        raise ValueError(f"[{op}] {len(sizes)} lengths do not fit a batch of {x.shape[0]}")
    return [row[:n] for row, n in zip(x, sizes, strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L_i, ...). See :func:`pack_padded_sequence`.

    >>> import minigrad as mg
    >>> rows = [mg.tensor([3.0]), mg.tensor([1.0, 2.0])]
    >>> mg.nn.utils.rnn.pack_sequence(rows, enforce_sorted=False).data.tolist()
    [1.0, 3.0, 2.0]
    """
    rows = listed_tensors("pack_sequence", sequences)
    lengths = [row.shape[0] for row in rows]
    return pack_padded_sequence(pad_sequence(rows), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed sequence, in the order in which they were packed.

    >>> import minigrad as mg
    >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1.0, 2.0]), mg.tensor([3.0])])
    >>> [x.tolist() for x in mg.nn.utils.rnn.unpack_sequence(packed)]
    [[1.0, 2.0], [3.0]]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), True)
