"""DLPack, in both directions, and the names of NumPy's arrays that other libraries ask for."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg

OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.1.0"
DTYPES = [mg.float32, mg.float64, mg.int64, mg.int32, mg.int16, mg.int8, mg.uint8, mg.float16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_to_numpy_and_back_on_one_memory(dtype):
    x = mg.arange(6).to(dtype).reshape(2, 3).mT
    a = np.from_dlpack(x)
    assert (a.dtype.name, a.shape, a.strides) == (dtype.name, (3, 2), x.numpy().strides)
    assert np.shares_memory(a, x.numpy())
    back = mg.from_dlpack(a)
    assert (back.dtype, back.strides, back.tolist()) == (dtype, x.strides, x.tolist())
    x[0, 1] = 7
    assert a[0, 1] == back[0, 1].item() == 7


def test_empty_and_0d():
    for shape in ((), (0,), (2, 0, 3)):
        x = mg.ones(shape)
        assert mg.from_dlpack(np.from_dlpack(x)).shape == shape


def test_bool():
    x = mg.tensor([True, False])
    assert np.from_dlpack(x).tolist() == [True, False]


def test_memory_outlives_its_tensor():
    a = np.from_dlpack(mg.arange(1000.0))
    b = mg.from_dlpack(np.arange(1000.0))
    assert a.sum() == b.sum().item() == 499500


def test_memory_that_a_graph_needs_is_read_only():
    w = mg.ones(3, requires_grad=True)
    x = mg.arange(3.0)
    y = (w * x).sum()
    try:
        shared = np.from_dlpack(x)
    except BufferError:  # before NumPy 2.1 a capsule did not know of it
        pass
    else:
        assert not shared.flags.writeable
    y.backward()
    assert w.grad.tolist() == [0.0, 1.0, 2.0]
    assert np.from_dlpack(mg.arange(3.0)).flags.writeable in (True, False)


def test_memory_that_is_shared_is_copied_for_a_graph():
    x, w = mg.arange(3.0), mg.ones(3, requires_grad=True)
    torch = pytest.importorskip("torch")
    shared = torch.from_dlpack(x)
    y = (w * x).sum()
    shared += 10
    y.backward()
    assert w.grad.tolist() == [0.0, 1.0, 2.0]


def test_pytorch_on_one_memory():
    torch = pytest.importorskip("torch")
    x = mg.arange(3.0)
    t = torch.from_dlpack(x)
    t += 1
    assert x.tolist() == [1.0, 2.0, 3.0]
    y = mg.from_dlpack(t)
    if OLD_NUMPY:
        pytest.skip("before NumPy 2.1 the memory is read-only")
    y += 1
    assert t.tolist() == x.tolist() == [2.0, 3.0, 4.0]
    assert torch.as_tensor(x).tolist() == [2.0, 3.0, 4.0]


def test_copies():
    x, a = mg.arange(3.0), np.arange(3.0)
    if OLD_NUMPY:
        x.__dlpack__(copy=True)
    else:
        assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    assert not np.shares_memory(mg.from_dlpack(a, copy=True).numpy(), a)
    assert not np.shares_memory(mg.from_dlpack(x, copy=True).numpy(), x.numpy())
    assert mg.from_dlpack(x).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="needs a copy here"):
        mg.from_dlpack(np.arange(3, dtype=np.uint16), copy=False)
    assert mg.from_dlpack(np.arange(3, dtype=np.uint16)).dtype is mg.int64


class _Foreign:
    """An array that knows DLPack alone."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_objects_with_dlpack_alone():
    given = _Foreign(np.arange(3.0))
    assert mg.tensor(given).tolist() == mg.asarray(given).tolist() == [0.0, 1.0, 2.0]
    assert mg.from_dlpack(given).tolist() == [0.0, 1.0, 2.0]


def test_errors_of_dlpack():
    with pytest.raises(BufferError, match=r"\[__dlpack__\] this tensor requires grad"):
        np.from_dlpack(mg.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match=r"\[__dlpack__\] .* has no bfloat16"):
        np.from_dlpack(mg.ones(2, dtype=mg.bfloat16))
    with pytest.raises(BufferError, match="is on the CPU"):
        mg.ones(2).__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match=r"stream is 1, but the CPU has none"):
        mg.ones(2).__dlpack__(stream=1)
    with pytest.raises(TypeError, match=r"\[from_dlpack\] a list has no __dlpack__"):
        mg.from_dlpack([1.0])
    with pytest.raises(BufferError, match=r"\[from_dlpack\] the array is on device \(2, 0\)"):
        mg.from_dlpack(_Foreign(np.ones(2), (2, 0)))


def test_a_dtype_that_numpy_has_not():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"\[from_dlpack\] NumPy, which reads the memory, cannot"):
        mg.from_dlpack(torch.ones(2, dtype=torch.bfloat16))


def test_asarray_with_and_without_a_copy():
    x, a = mg.arange(3.0), np.arange(3.0)
    assert mg.asarray(x, copy=False) is x
    assert mg.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert np.shares_memory(mg.asarray(a, copy=False).numpy(), a)
    assert not np.shares_memory(mg.asarray(a, copy=True).numpy(), a)
    for data, dtype in (([1.0], None), (x, mg.int64), (a, mg.float32)):
        with pytest.raises(ValueError, match=r"\[asarray\] .* data needs a copy here"):
            mg.asarray(data, dtype, copy=False)
    assert mg.asarray([1.0], requires_grad=True).requires_grad
    leaf = mg.asarray(x * 2, requires_grad=True)
    assert leaf.is_leaf
    assert leaf.requires_grad
