"""Tests of save and load: what comes back, damaged and hostile files, PyTorch's files."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim

pytestmark = pytest.mark.usefixtures("restore_random")  # layers draw their weights


def saved(obj):
    file = io.BytesIO()
    mg.save(obj, file)
    return file.getvalue()


def again(obj):
    return mg.load(io.BytesIO(saved(obj)))


def same(a, b):
    """Whether two objects have the same classes, dtypes and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, mg.Tensor):
        flags = (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
        a, b = (x.detach().view(mg.int16) if x.dtype == "bfloat16" else x for x in (a, b))
        return flags and same(a.detach().numpy(), b.detach().numpy())
    if isinstance(a, (np.ndarray, np.generic)):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


# ---- what comes back -----------------------------------------------------------------------------

VALUES = [
    None,
    True,
    -(2**80),
    0.1,
    -0.0,
    float("inf"),
    float("nan"),
    1.5 - 2j,
    "a\ud800\n\u00e9",
    b"\0\xff",
    mg.float64,
    {1: "int", None: 0, (1, ("a",)): [], 2.5: {}, "x": OrderedDict([("b", 1), ("a", 2)])},
    ({1, 2}, frozenset(["a"]), [[], ()]),
    np.float32(0.1),
    np.bool_(True),
    np.arange(6, dtype=np.uint16).reshape(2, 3).T,
    np.array(["ab", "c"]),
    np.array(3.5, dtype=">f8"),
    np.zeros((0, 3)),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_objects_come_back(value):
    assert same(again(value), value)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_all_dtypes_come_back(dtype):
    x = mg.tensor([[0, 1, 3], [2, 5, 1]]).to(dtype)
    for value in (x, x.T, x[:, 1], x[0, 0], x[:0]):
        assert same(again(value), value)


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_floats_come_back_bit_by_bit(dtype):
    x = mg.tensor([0.1, -0.0, float("nan"), float("inf"), 1e-45, 3e38], dtype=dtype)
    assert same(again(x), x)
    assert same(again(x.requires_grad_()), x)
    back = again((x * 2)["None" == "x" :])  # with a graph
    assert back.requires_grad
    assert back.is_leaf


def test_a_parameter_stays_one():
    p = nn.Parameter(mg.ones(2), requires_grad=False)
    assert same(again(p), p)


def test_what_was_one_tensor_is_one_again():
    x, a = mg.ones(3), np.zeros(2)
    back = again({"a": x, "b": [x, x.clone()], "c": (a, a)})
    assert back["a"] is back["b"][0]
    assert back["a"] is not back["b"][1]
    assert back["c"][0] is back["c"][1]
    back["c"][0][0] = 1  # it is writable


def train(model, optimizer, schedule, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(mg.randn(8, 4)), mg.zeros(8, 1))
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def test_training_goes_on_bit_by_bit(tmp_path):
    def parts():
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        optimizer = optim.AdamW(net.parameters(), lr=0.01)
        return net, optimizer, optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)

    one = parts()
    train(*one, 5)
    states = [x.state_dict() for x in one]
    mg.save({"states": states, "random": mg.get_rng_state(), "epoch": 5}, tmp_path / "at5.pt")
    wanted = train(*one, 5)
    two = parts()
    checkpoint = mg.load(tmp_path / "at5.pt", map_location="cpu")
    for x, state in zip(two, checkpoint["states"], strict=True):
        x.load_state_dict(state)
    mg.set_rng_state(checkpoint["random"])
    assert train(*two, 5) == wanted


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    mg.save([1], path)
    with pytest.raises(TypeError):
        mg.save([mg.ones(2), lambda: 0], path)
    assert mg.load(path) == [1]

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space left"):
        mg.save(mg.ones(2), path)
    monkeypatch.undo()
    assert mg.load(str(path)) == [1]
    assert os.listdir(tmp_path) == ["x.pt"]  # noqa: PTH208 - also the hidden ones


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX's")
def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "x.pt", tmp_path / "link.pt"
    mg.save(1, path)
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    mg.save(2, link)
    assert link.is_symlink()
    assert mg.load(path) == 2
    assert path.stat().st_mode & 0o777 == 0o640


def test_streams_without_a_place():
    class Stream(io.RawIOBase):
        def __init__(self):
            self.parts = []

        def writable(self):
            return True

        def write(self, part):
            self.parts.append(bytes(part))
            return len(part)

    out = Stream()
    mg.save({"a": mg.ones(3)}, out)

    class Source:
        def read(self):
            return b"".join(out.parts)

    assert mg.load(Source())["a"].tolist() == [1, 1, 1]


Pair = namedtuple("Pair", "a b")
LOOP: list = []
LOOP.append({"x": LOOP})
DEEP: list = []
for _ in range(100_000):
    DEEP = [DEEP]


def local():
    class _Local:
        """A class that pickle does not find."""

    return _Local()


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (
            {"a": [1, lambda: 0]},
            TypeError,
            r"the object\['a'\]\[1\] is of the class function, which files do not hold: make it of "
            ".*; nor can it be pickled: .*lambda",
        ),
        ([local()], TypeError, r"the object\[0\] is of the class _Local, which .*; nor can it be"),
        (np.array([local()]), TypeError, "the object is an array of Python objects: .*; nor can"),
        (LOOP, ValueError, r"the object\[0\]\['x'\] holds itself"),
        (DEEP, ValueError, "the containers are nested too deeply"),
    ],
    ids=["function", "class", "objects", "loop", "deep"],
)
def test_what_is_not_saved(value, error, text):
    with pytest.raises(error, match=rf"^\[save\] {text}"):
        saved(value)


# ---- objects of other classes --------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3))
        self.register_buffer("steps", mg.zeros(1))

    def forward(self, x):
        return self.layers(x) + self.steps


def test_a_module_comes_back_where_the_file_is_trusted(tmp_path):
    net, x = Net(), mg.randn(4, 2)
    net(x).sum().backward()
    mg.save({"net": net, "weight": net.layers[0].weight}, tmp_path / "net.pt")
    found = mg.load(tmp_path / "net.pt", weights_only=False)
    again = found["net"]
    assert type(again) is Net
    assert found["weight"] is again.layers[0].weight
    assert same(again.state_dict(), net.state_dict())
    assert same(again.eval()(x), net.eval()(x))


@pytest.mark.parametrize("given", [{}, {"weights_only": None}, {"weights_only": True}], ids=str)
def test_no_code_is_run_for_who_does_not_trust_the_file(given, tmp_path):
    file = io.BytesIO(saved(Planted(tmp_path / "ran")))
    text = r"^\[load\] the file: it holds an object of other classes .*weights_only=False\) if you"
    with pytest.raises(ValueError, match=text):
        mg.load(file, **given)
    assert not (tmp_path / "ran").exists()


class Planted:
    """An object whose pickle makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (os.fspath(self.path),))


class Broken:
    def __reduce__(self):
        return (int, ("x",))


def test_objects_nested_too_deeply_and_a_damaged_pickle():
    outer = Box(None)
    for _ in range(20_000):
        outer = Box(outer)
    with pytest.raises(ValueError, match=r"^\[save\] the objects are nested too deeply$"):
        saved(outer)
    while outer is not None:  # one by one, as freeing it at once is as deep
        inner, outer.inner = outer.inner, None
        outer = inner
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("minigrad/object.pickle", b"\x80\x05junk")
    with pytest.raises(ValueError, match=r"^\[load\] the file is damaged: "):
        mg.load(io.BytesIO(file.getvalue()), weights_only=False)


class Box:
    def __init__(self, inner):
        self.inner = inner


def test_an_error_of_trusted_code_is_its_own():
    with pytest.raises(ValueError, match=r"^invalid literal for int"):
        mg.load(io.BytesIO(saved(Broken())), weights_only=False)


@pytest.mark.parametrize(
    "value", [Pair(1, mg.ones(2)), [np.array([None, 1])], {"at": mg.device("cpu")}], ids=type
)
def test_objects_of_other_classes_come_back(value):
    found = mg.load(io.BytesIO(saved(value)), weights_only=False)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


# ---- damaged and hostile files -------------------------------------------------------------------


def loaded_or_refused(content):
    try:
        return mg.load(io.BytesIO(content))
    except ValueError as error:
        if not str(error).startswith("[load] the file"):
            raise
        return None


def test_a_file_that_is_cut_is_refused():
    content = saved({"a": mg.ones(3), "b": [1, 2]})
    for end in range(len(content)):
        assert loaded_or_refused(content[:end]) is None, end


def test_a_damaged_file_is_refused_or_right(rng):
    value = {"a": mg.arange(4.0), "b": [1, "x"]}
    content = saved(value)
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << int(rng.integers(8))
        found = loaded_or_refused(bytes(damaged))
        assert found is None or same(found, value), at


def zipped(entries, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        for name, content in entries.items():
            out.writestr(name, content)
    return file.getvalue()


def structured(code, npy=b""):
    parts = {"minigrad/structure.json": json.dumps([1, code])}
    return zipped(parts | ({"minigrad/arrays/0.npy": npy} if npy else {}))


def npy(shape, descr="<f4", content=b""):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + content


TENSOR = ["tensor", 0, "float32", False]
HOSTILE = {
    "empty": b"",
    "text": b"hello, world, this is no file of tensors",
    "pickle": pickle.dumps([1]),
    "other zip": zipped({"a.txt": "a"}),
    "compressed": zipped({"minigrad/structure.json": "[1, " + " " * 10**6 + "1]"}, 8),
    "version": zipped({"minigrad/structure.json": "[99, 1]"}),
    "no json": zipped({"minigrad/structure.json": "{"}),
    "deep": zipped({"minigrad/structure.json": "[" * 10**5 + "]" * 10**5}),
    "kind": structured(["eval", "1"]),
    "arguments": structured(["tensor"]),
    "key": structured(["dict", [[["list", []], 1]]]),
    "number": structured(["float", "one"]),
    "no array": structured(TENSOR),
    "huge": structured(TENSOR, npy((2**40,))),
    "negative": structured(TENSOR, npy((-1,), content=b"\0" * 4)),
    "objects": structured(["array", 0], npy((1,), "|O", b"\0" * 8)),
    "dtype": structured(TENSOR, npy((1,), "<f8", b"\0" * 8)),
    "long header": structured(TENSOR, npy((1,) * 10**4, content=b"\0" * 4)),
    "requires grad": structured(["tensor", 0, "int64", True], npy((1,), "<i8", b"\0" * 8)),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused(content):
    with pytest.raises(ValueError, match=r"^\[load\] the file"):
        mg.load(io.BytesIO(content))


class _Shell:
    def __reduce__(self):
        return os.mkdir, ("made by a file",)


TORCH = {
    "code": pickle.dumps(_Shell(), 2),
    "a class": pickle.dumps(Pair(1, 2), 2),
    "a module": b"ctorch.nn\nLinear\n.",
    "no storage": b"\x80\x02(K\x01K\x02tQ.",
    "a cut one": b"\x80\x02]",
    "two": b"\x80\x02K\x01K\x02.",
    "no mark": b"\x80\x02t.",
    "no memo": b"\x80\x02h\x05.",
    "text of a huge length": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "a state": b"\x80\x02]}b.",
    "a call of a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "sizes": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NK\x00K\x01\x85K\x01\x85tR.",
}


@pytest.mark.parametrize("content", TORCH.values(), ids=TORCH)
def test_a_hostile_file_of_pytorchs_kind_is_refused(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^\[load\] the file"):
        mg.load(io.BytesIO(zipped({"x/data.pkl": content, "x/version": "3\n"})))
    assert not list(tmp_path.iterdir())


def torch_file(size, stride, count=6, offset=0, content=b"\0" * 24):
    """A file in PyTorch's format that holds a tensor of float32, made by hand."""

    def integers(values):
        return b"(" + b"".join(b"J" + struct.pack("<i", n) for n in values) + b"t"

    storage = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuJ" + struct.pack("<i", count)
    pickled = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"tQJ"
        + struct.pack("<i", offset) + integers(size) + integers(stride)
        + b"\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip
    return io.BytesIO(zipped({"x/data.pkl": pickled, "x/data/0": content, "x/byteorder": "little"}))


def test_a_tensor_of_pytorchs():
    content = np.arange(6, dtype="<f4").tobytes()
    x = mg.load(torch_file((2, 2), (1, 2), offset=1, content=content))
    assert x.dtype is mg.float32
    assert x.tolist() == [[1, 3], [2, 4]]
    assert mg.load(torch_file((2**31 - 1,), (0,))).shape == (2**31 - 1,)  # in 4 bytes
    assert mg.load(torch_file((0, 3), (3, 1))).shape == (0, 3)


@pytest.mark.parametrize(
    "given",
    [
        {"size": (7,), "stride": (1,)},
        {"size": (2, 2), "stride": (1, 5)},
        {"size": (1,), "stride": (1,), "offset": 6},
        {"size": (1,), "stride": (1,), "offset": -1},
        {"size": (-1,), "stride": (1,)},
        {"size": (2,), "stride": (-1,), "offset": 3},
        {"size": (2,), "stride": ()},
        {"size": (2**31 - 1,) * 9, "stride": (2**31 - 1,) * 9},
        {"size": (1,), "stride": (1,), "count": 2**31 - 1},
        {"size": (1,), "stride": (1,), "count": -5},
    ],
)
def test_a_tensor_outside_its_storage_is_refused(given):
    with pytest.raises(ValueError, match=r"^\[load\] the file"):
        mg.load(torch_file(**given))


def test_devices():
    for place in (None, "cpu", "cpu:0", lambda storage, where: storage, {"cuda:0": "cpu"}):
        assert mg.load(io.BytesIO(saved(1)), map_location=place) == 1
    with pytest.raises(RuntimeError, match=r"^\[load\] map_location is cuda, but"):
        mg.load(io.BytesIO(saved(1)), map_location="cuda")


# ---- neighbours ----------------------------------------------------------------------------------


def test_pytorchs_files(tmp_path):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    tensors = {
        name: torch.arange(6).reshape(2, 3).to(getattr(torch, name)).t()
        for name in [*DTYPES, "float32", "float64"]
    }
    base = torch.arange(4.0)
    more = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "parameter": net[0].weight,
        "views": (base, base[1:]),
        "plain": [1, 2**80, -1.5, "x", b"abc", None, True, {1, 2}, (1,), torch.Size([2, 3])],
        "numpy": [np.float64(1.5), np.arange(3, dtype=np.int16), np.ones((2, 2), order="F")],
        "dtype": torch.float16,
        "nothing": torch.zeros(0, 3),
    }
    torch.save({"tensors": tensors, **more}, tmp_path / "x.pt")
    found = mg.load(tmp_path / "x.pt", map_location=mg.load)
    for name, x in found["tensors"].items():
        assert x.dtype.name == name
        assert x.tolist() == tensors[name].tolist()
    assert isinstance(found["parameter"], nn.Parameter)
    first, second = found["views"]
    first[1] = 9
    assert second[0].item() == 9
    assert found["plain"] == more["plain"]
    assert all(map(same, found["numpy"], more["numpy"]))
    assert found["dtype"] is mg.float16
    assert found["nothing"].shape == (0, 3)
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    ours.load_state_dict(found["net"])
    optim.Adam(ours.parameters()).load_state_dict(found["optimizer"])
    for name, x in ours.state_dict().items():
        np.testing.assert_array_equal(x.numpy(), net.state_dict()[name].numpy())
    torch.save(net, tmp_path / "net.pt")
    with pytest.raises(ValueError, match=r"an object of torch.nn.modules.container.Sequ"):
        mg.load(tmp_path / "net.pt", weights_only=False)
    torch.save([1], tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="is a pickle, which may run any code"):
        mg.load(tmp_path / "old.pt")


def test_safetensors(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    state = {"w": mg.arange(6.0).reshape(2, 3).T, "b": mg.tensor(3), "e": mg.zeros(0, 2)}
    state["h"] = mg.tensor([1.0, 2.0]).to("bfloat16")
    mg.save(state, tmp_path / "x.safetensors")
    found = mg.load(tmp_path / "x.safetensors")
    assert sorted(found) == sorted(state)
    assert all(same(found[name], state[name].contiguous()) for name in state)
    del state["h"]
    mg.save(state, tmp_path / "y.safetensors")
    for name, x in theirs.load_file(tmp_path / "y.safetensors").items():
        np.testing.assert_array_equal(x, state[name].numpy())
    with pytest.raises(TypeError, match=r"^\[save\] a .safetensors file holds a dict of names"):
        mg.save([mg.ones(1)], tmp_path / "z.safetensors")
    with pytest.raises(TypeError, match=r"^\[save\] 'a' is int: .safetensors files hold tensors"):
        mg.save({"a": 1}, tmp_path / "z.safetensors")
    content = (tmp_path / "x.safetensors").read_bytes()
    for end in range(9, len(content), 7):
        with pytest.raises(ValueError, match=r"^\[load\] the file"):
            mg.load(io.BytesIO(content[:end]))


def test_numpys_and_safetensors_own_functions_take_tensors(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    state = {"w": mg.arange(6.0).reshape(2, 3), "n": mg.tensor([1, 2]).to("uint8")}
    theirs.save_file(state, tmp_path / "x.safetensors")
    for name, x in theirs.load_file(tmp_path / "x.safetensors").items():
        np.testing.assert_array_equal(x, state[name].numpy())
    with pytest.raises(ValueError, match=r"^\[ctypes\] a tensor that is not contiguous"):
        theirs.save_file({"w": state["w"].T}, tmp_path / "x.safetensors")
    np.save(tmp_path / "x.npy", state["w"])
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), state["w"].numpy())
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", state["w"], np.ones(2), **state)
        with np.load(tmp_path / "x.npz") as found:
            assert sorted(found) == ["arr_0", "arr_1", "n", "w"]
            np.testing.assert_array_equal(found["arr_0"], state["w"].numpy())
            assert found["n"].dtype == np.uint8
    with pytest.raises(RuntimeError, match="requires grad"):
        np.save(tmp_path / "x.npy", mg.ones(1, requires_grad=True))


def test_safetensors_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match="pip install safetensors"):
        mg.save({"a": mg.ones(1)}, tmp_path / "x.safetensors")
