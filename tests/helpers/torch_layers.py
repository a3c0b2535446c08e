"""Comparison of a layer with PyTorch's layer of the same name, with equal weights and inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigrad as mg


def _ours(x: Any) -> Any:
    return mg.tensor(x.detach().numpy(), requires_grad=x.requires_grad)


def _flat(outputs: Any) -> list[Any]:
    if isinstance(outputs, (tuple, list)):
        return [y for each in outputs for y in _flat(each)]
    return [] if outputs is None else [outputs]


def _alike(ours: Any, theirs: Any, said: str, rtol: float) -> None:
    theirs = theirs.detach().numpy()
    assert ours.shape == theirs.shape, said
    assert ours.dtype.name == theirs.dtype.name, said
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs, rtol=rtol, atol=rtol / 100, err_msg=said
    )


def same_as_torch(make: Any, *inputs: Any, call: Any = None, rtol: float = 1e-9) -> None:
    """Check repr, names, shapes, outputs and gradients in float64.

    ``make(nn)`` gives the layer of a package. Inputs are shapes of normal numbers, or arrays.
    ``call(layer, *tensors)`` replaces the plain call with the inputs. Numbers may differ by
    ``rtol``.
    """
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    state = mg.get_rng_state()
    theirs, ours = make(torch.nn).double(), make(mg.nn).double()
    mg.set_rng_state(state)
    assert repr(ours) == repr(theirs).replace("torch.", "minigrad.")
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    assert ours.load_state_dict(state) == ([], [])
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    given = [
        torch.randn(x, dtype=torch.float64, requires_grad=True)
        if isinstance(x, tuple)
        else torch.tensor(x)
        for x in inputs
    ]
    own = [_ours(x) for x in given]
    call = call or (lambda layer, *tensors: layer(*tensors))
    expected, found = _flat(call(theirs, *given)), _flat(call(ours, *own))
    assert len(expected) == len(found)
    for a, b in zip(found, expected, strict=True):
        _alike(a, b, "output", rtol)
    loss, own_loss = 0.0, 0.0
    for a, b in zip(found, expected, strict=True):
        if b.requires_grad:
            cotangent = torch.randn(b.shape, dtype=b.dtype)
            loss = loss + (b * cotangent).sum()
            own_loss = own_loss + (a * _ours(cotangent)).sum()
    if not isinstance(loss, float):
        loss.backward()
        own_loss.backward()
    for place, (a, b) in enumerate(zip(own, given, strict=True)):
        if b.grad is not None:
            _alike(a.grad, b.grad, f"gradient of input {place}", rtol)
    named = dict(ours.named_parameters())
    for name, p in theirs.named_parameters():
        if p.grad is not None:
            _alike(named[name].grad, p.grad, f"gradient of {name}", rtol)
    buffers = dict(ours.named_buffers())
    for name, b in theirs.named_buffers():
        _alike(buffers[name], b, name, rtol)
