"""Conversion of parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from minigrad import functions as f
from minigrad.functions.arguments import listed_tensors, tensor_operand
from minigrad.functions.grad_modes import no_grad

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """One vector of all elements of the parameters, in order.

    >>> import minigrad as mg
    >>> mg.nn.utils.parameters_to_vector([mg.ones(2, 2), mg.zeros(1)]).tolist()
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """
    given = listed_tensors("parameters_to_vector", parameters)
    found: Tensor = f.cat([f.reshape(p, -1) for p in given])
    return found


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the elements of a vector into the parameters, in order, off the tape.

    Raises ValueError if the numbers of elements differ.

    >>> import minigrad as mg
    >>> p = mg.zeros(2, 1)
    >>> mg.nn.utils.vector_to_parameters(mg.tensor([1.0, 2.0]), [p])
    >>> p.tolist()
    [[1.0], [2.0]]
    """
    op = "vector_to_parameters"
    vector, given = tensor_operand(op, vec), listed_tensors(op, parameters)
    sizes = [p.numel() for p in given]
    if vector.shape != (sum(sizes),):
        raise ValueError(
            f"[{op}] the vector has shape {vector.shape}, but the parameters have {sum(sizes)} "
            "elements"
        )
    with no_grad():
        parts: Any = f.split(vector.detach(), sizes) if sizes else ()
        for p, part in zip(given, parts, strict=True):
            p.copy_(part.reshape(p.shape))
