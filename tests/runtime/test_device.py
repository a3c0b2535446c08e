"""Tests of the CPU as a device, of shapes as a class, and of sizes that are called."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn

pytestmark = pytest.mark.usefixtures("restore_random")

CPUS = ["cpu", "cpu:0", mg.device("cpu"), mg.device("cpu", 1), None]
OTHERS = ["cuda", "cuda:1", "mps", "xpu", "meta"]
NOT_THERE = r"^\[device\] '.*' is not there: minigrad computes on the CPU$"


def test_the_cpu():
    cpu = mg.device("cpu")
    assert (cpu.type, cpu.index, str(cpu), repr(cpu)) == ("cpu", None, "cpu", "device(type='cpu')")
    one = mg.device("cpu", 1)
    assert (one.index, str(one), repr(one)) == (1, "cpu:1", "device(type='cpu', index=1)")
    assert one == mg.device("cpu:1") != cpu
    assert len({cpu, mg.device(cpu), mg.device(type="cpu")}) == 1
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    with cpu as entered:
        assert entered is cpu
    assert cpu != "cpu"


@pytest.mark.parametrize("name", [*OTHERS, "spam", "cpu:x", 0])
def test_other_devices(name):
    with pytest.raises(RuntimeError, match=NOT_THERE):
        mg.device(name)


x = mg.ones(2, 3)
MADE = {
    "tensor": lambda d: mg.tensor([1.0], device=d),
    "as_tensor": lambda d: mg.as_tensor([1.0], device=d),
    "zeros": lambda d: mg.zeros(2, device=d),
    "ones": lambda d: mg.ones(2, device=d, layout=None, pin_memory=False),
    "empty": lambda d: mg.empty(2, device=d),
    "full": lambda d: mg.full((2,), 1.0, device=d),
    "arange": lambda d: mg.arange(3, device=d),
    "linspace": lambda d: mg.linspace(0, 1, 3, device=d),
    "eye": lambda d: mg.eye(2, device=d),
    "zeros_like": lambda d: mg.zeros_like(input=x, device=d),
    "ones_like": lambda d: mg.ones_like(x, device=d),
    "empty_like": lambda d: mg.empty_like(x, device=d),
    "full_like": lambda d: mg.full_like(x, 1.0, device=d),
    "rand": lambda d: mg.rand(2, device=d),
    "randn": lambda d: mg.randn(2, device=d),
    "randint": lambda d: mg.randint(3, (2,), device=d),
    "randperm": lambda d: mg.randperm(3, device=d),
    "rand_like": lambda d: mg.rand_like(x, device=d),
    "randn_like": lambda d: mg.randn_like(x, device=d),
    "randint_like": lambda d: mg.randint_like(x, 3, device=d),
    "normal": lambda d: mg.normal(0.0, 1.0, (2,), device=d),
    "new_zeros": lambda d: x.new_zeros(2, device=d),
    "new_ones": lambda d: x.new_ones(2, device=d),
    "new_empty": lambda d: x.new_empty(2, device=d),
    "new_full": lambda d: x.new_full((2,), 1.0, device=d),
    "new_tensor": lambda d: x.new_tensor([1.0], device=d),
    "Tensor": lambda d: mg.Tensor([1.0], device=d),
    "to": lambda d: x.to(device=d, dtype=mg.float64),
    "Linear": lambda d: nn.Linear(2, 2, device=d).weight,
    "Conv2d": lambda d: nn.Conv2d(1, 1, 1, device=d).weight,
    "ConvTranspose2d": lambda d: nn.ConvTranspose2d(1, 1, 1, device=d).weight,
    "BatchNorm1d": lambda d: nn.BatchNorm1d(2, device=d).weight,
    "InstanceNorm1d": lambda d: nn.InstanceNorm1d(2, affine=True, device=d).weight,
    "GroupNorm": lambda d: nn.GroupNorm(1, 2, device=d).weight,
    "LayerNorm": lambda d: nn.LayerNorm(2, device=d).weight,
    "RMSNorm": lambda d: nn.RMSNorm(2, device=d).weight,
    "Embedding": lambda d: nn.Embedding(2, 2, device=d).weight,
    "PReLU": lambda d: nn.PReLU(device=d).weight,
    "MultiheadAttention": lambda d: nn.MultiheadAttention(2, 1, device=d).in_proj_weight,
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_device_is_taken_wherever_tensors_are_made(make):
    for where in CPUS:
        made = make(where)
        assert made.device == mg.device("cpu")
    for where in OTHERS:
        with pytest.raises(RuntimeError, match=NOT_THERE):
            make(where)


def test_to():
    assert x.to("cpu") is x
    assert x.to(mg.device("cpu"), non_blocking=True) is x
    assert x.to("cpu", mg.float64).dtype is mg.float64
    assert x.to("float64").dtype is x.to(mg.ones(1, dtype=mg.float64)).dtype is mg.float64
    assert x.to(mg.int64, True, True).dtype is mg.int64
    y = x.to("cpu", copy=True)
    assert y is not x
    for where in OTHERS:
        with pytest.raises(RuntimeError, match=NOT_THERE):
            x.to(where)
    for call in (lambda: x.to(0), x.cuda, lambda: x.cuda(1), nn.ReLU().cuda):
        with pytest.raises(RuntimeError, match=NOT_THERE):
            call()
    with pytest.raises(TypeError, match=r"^\[dtype\] spam is not supported"):
        x.to("spam")
    net = nn.Linear(2, 2)
    assert net.to("cpu") is net.to(device="cpu") is net.cpu() is net
    assert net.to("cpu", mg.float64).weight.dtype is mg.float64
    with pytest.raises(RuntimeError, match=NOT_THERE):
        net.to("cuda:0")


def test_facts_of_a_tensor():
    assert x.is_cpu
    others = (x.is_cuda, x.is_mps, x.is_xpu, x.is_meta, x.is_sparse, x.is_quantized)
    assert others == (False,) * 6
    assert x.cpu() is x.pin_memory() is x
    assert not x.is_pinned()
    assert x.get_device() == -1


def test_what_programs_ask_of_other_devices():
    assert not mg.cuda.is_available()
    assert not mg.accelerator.is_available()
    assert not mg.backends.mps.is_available()
    assert not mg.mps.is_available()
    assert not mg.xpu.is_available()
    assert mg.cuda.device_count() == 0
    assert mg.accelerator.current_accelerator() is None
    mg.backends.cudnn.benchmark = mg.backends.cudnn.deterministic = True
    mg.cuda.empty_cache()
    mg.cuda.synchronize()
    mg.cuda.manual_seed_all(3)
    first = mg.rand(2)
    mg.cuda.manual_seed(3)
    assert (mg.rand(2) == first).all()
    where = mg.device("cuda" if mg.cuda.is_available() else "cpu")
    assert where == mg.zeros(1).device
    with pytest.raises(RuntimeError, match=NOT_THERE):
        mg.cuda.set_device(0)


def test_mixed_precision_and_parallel_modules_pass_through():
    from minigrad.cuda.amp import GradScaler, autocast

    assert GradScaler is mg.amp.GradScaler
    p = nn.Parameter(mg.ones(1))
    optimizer, scaler = mg.optim.SGD([p], lr=0.5), GradScaler("cuda", enabled=True)

    @autocast(enabled=False)
    def loss():
        return (p * 2).sum()

    with mg.autocast("cuda", dtype=mg.float16):
        scaler.scale(loss()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.item() == 0
    net = nn.DataParallel(nn.Linear(2, 2), device_ids=[0])
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert net(mg.ones(1, 2)).shape == (1, 2)


# ---- shapes --------------------------------------------------------------------------------------


def test_a_shape_is_a_tuple_with_numel():
    shape = mg.zeros(2, 3, 4).shape
    assert type(shape) is mg.Size
    assert shape == (2, 3, 4)
    assert (2, 3, 4) == shape  # noqa: SIM300 - both ways
    assert hash(shape) == hash((2, 3, 4))
    assert repr(shape) == str(shape) == f"{shape}" == "(2, 3, 4)"
    assert (shape.numel(), shape[1:].numel(), mg.Size().numel()) == (24, 12, 1)
    assert type(shape[::-1]) is type(shape + (5,)) is mg.Size
    assert (shape[::-1], shape + (5,), (5, *shape)) == ((4, 3, 2), (2, 3, 4, 5), (5, 2, 3, 4))
    assert (shape[0], shape[-1], shape[np.int64(1)]) == (2, 4, 3)
    assert mg.Size([2, 3]) == mg.Size((2, 3)) == (2, 3)
    again = pickle.loads(pickle.dumps(shape))
    assert type(again) is type(copy.deepcopy(shape)) is mg.Size
    assert again == shape
    assert np.zeros(shape).shape == mg.ones(shape).shape == mg.ones(*shape).shape == shape
    for index, error in ((3, IndexError), (-4, IndexError), ("a", TypeError)):
        with pytest.raises(error):
            shape[index]
    with pytest.raises(TypeError):
        shape + [1]


def test_size_is_a_number_and_is_called():
    assert x.size == 6
    assert isinstance(x.size, int)
    assert (x.size(), x.size(0), x.size(-1), x.size(dim=1)) == ((2, 3), 2, 3, 3)
    assert type(x.size()) is mg.Size
    assert mg.tensor(1.0).size() == ()
    assert (range(x.size)[-1], f"{x.size:3d}", json.dumps(x.size), repr(x.size)) == (
        *(5, "  6", "6", "6"),
    )
    assert type(pickle.loads(pickle.dumps(x.size))) is int
    for dim in (2, -3):
        with pytest.raises(IndexError, match=rf"^\[size\] dim {dim} is out of range"):
            x.size(dim)
    with pytest.raises(TypeError, match=r"^\[size\] dim must be an integer, not str"):
        x.size("a")


def test_sizes_by_name():
    for make in (mg.zeros, mg.ones, mg.empty, mg.rand, mg.randn, x.new_zeros, x.new_ones):
        assert make(size=(2, 5)).shape == (2, 5)
    assert mg.randint(5, size=(3,)).shape == (3,)
    assert mg.randint(2, 5, size=(3,)).shape == (3,)
    assert mg.normal(0.0, 1.0, size=(3,), requires_grad=True).requires_grad


def test_the_class_makes_tensors_as_pytorchs():
    made = mg.Tensor([1, 2])
    assert (made.dtype, made.tolist()) == (mg.float32, [1, 2])
    assert mg.Tensor(2, 3).shape == (2, 3)
    assert mg.Tensor(5).shape == (5,)
    assert mg.Tensor().shape == (0,)
    assert mg.Tensor(np.arange(2)).dtype is mg.float32
    with pytest.raises(TypeError, match=r"^\[Tensor\] takes sizes or one argument of data"):
        mg.Tensor([1.0], mg.float64)


def test_the_default_dtype():
    assert mg.get_default_dtype() is mg.float32
    try:
        mg.set_default_dtype(mg.float64)
        made = [mg.tensor([0.5]), mg.tensor(1.0), mg.zeros(2), mg.rand(2), mg.Tensor([1])]
        made += [mg.arange(0, 1, 0.5), mg.linspace(0, 1, 3), mg.full((1,), 2.0), mg.eye(2)]
        made += [nn.Linear(2, 2).weight, mg.normal(0.0, 1.0, (2,)), mg.tensor([])]
        assert [v.dtype.name for v in made] == ["float64"] * len(made)
        assert mg.arange(3).dtype is mg.int64
    finally:
        mg.set_default_dtype("float32")
    with pytest.raises(TypeError, match=r"^\[set_default_dtype\] int64 is not float32 or float64"):
        mg.set_default_dtype(mg.int64)
