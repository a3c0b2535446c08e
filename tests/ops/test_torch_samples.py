"""PyTorch's own catalogue of sample inputs: values, gradients and second derivatives agree."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # PyTorch's catalogue imports it

import torch_samples  # noqa: E402

SHARED = torch_samples.shared()


def test_the_catalogue_is_there_and_explanations_are_needed():
    titles = {torch_samples.title(op) for op in SHARED}
    assert len(titles) > 300
    assert set(torch_samples.EXPLAINED) <= titles


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("op", SHARED, ids=torch_samples.title)
def test_samples(op, dtype):
    found = torch_samples.outcome(op, dtype)
    assert found.samples or found.outside
    assert not found.different, "\n".join(found.different)
