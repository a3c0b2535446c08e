"""Every public function gives the values of a reference that is independent of the engine."""

from __future__ import annotations

import numpy as np
import pytest
from expected import FUNCTIONS, Given
from expected.recording import calls_of, flat
from samples import CATALOGUE, function


def reference(name):
    """By the name of the catalogue, or by the last part of it: ``special.erf`` is that of erf."""
    return FUNCTIONS.get(name) or FUNCTIONS.get(name.rpartition(".")[2])


def assert_expected(got, want, what):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    assert got.dtype.kind == want.dtype.kind, f"{what}: dtype {got.dtype}, not {want.dtype}"
    if got.dtype.kind == "f":
        scale = np.abs(want[np.isfinite(want)]).max(initial=0)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-14 + 1e-12 * scale, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def check(call, expected, what):
    with np.errstate(all="ignore"):
        before = (call.results,) if isinstance(expected, Given) else ()
        wanted = flat(expected(*before, *call.args, **call.kwargs))
    assert len(call.results) == len(wanted), f"{what}: {len(call.results)} results"
    for got, want in zip(call.results, wanted, strict=True):
        assert_expected(got, want, what)


@pytest.mark.parametrize("name", CATALOGUE)
def test_functions(name):
    target, expected = function(name), reference(name)
    assert expected, f"{name} has no reference in tests/expected"
    calls = [c for sample in CATALOGUE[name] for c in calls_of(target, sample)]
    assert calls, f"no sample calls {name} itself"
    for k, call in enumerate(calls):
        check(call, expected, f"{name}, call {k}")
