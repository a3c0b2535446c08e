"""Files of programs: the same results in another process, and an error for any damaged file."""

from __future__ import annotations

import json
import struct
from contextlib import suppress

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("restore_random")


def trained(optimizer, dropout=0.5):
    """A compiled step of a small classifier, its model and its optimizer."""
    mg.manual_seed(3)
    model = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.Dropout(dropout), mg.nn.Linear(8, 3))
    chosen = optimizer(model.parameters())

    def train(x, y):
        chosen.zero_grad()
        loss = mg.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        chosen.step()
        return loss

    return mg.compile(train), model, chosen


def data():
    """A batch and its classes."""
    rng = np.random.default_rng(0)
    return mg.tensor(rng.normal(size=(6, 4)).astype("float32")), mg.tensor([0, 1, 2, 0, 1, 2])


OPTIMIZERS = {
    "sgd": lambda p: mg.optim.SGD(p, lr=0.1),
    "momentum": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: mg.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: mg.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: mg.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loaded_training_step_goes_on_bit_by_bit(name, tmp_path):
    step, model, optimizer = trained(OPTIMIZERS[name])
    x, y = data()
    for _ in range(4):
        step(x, y)
    step.save(tmp_path / "step.safetensors")
    program = mg.load_program(tmp_path / "step.safetensors")
    start = mg.get_rng_state()
    wanted = [step(x, y).item() for _ in range(3)]
    optimizer.param_groups[0]["lr"] = 0.003
    wanted.append(step(x, y).item())
    mg.set_rng_state(start)
    got = [program(x, y).item() for _ in range(3)]
    program.optimizers[0].param_groups[0]["lr"] = 0.003
    got.append(program(x, y).item())
    assert got == wanted
    assert step.recordings < 8
    own = program.state_dict()
    for key, p in model.named_parameters():
        assert own[f"model.{key}"].tolist() == p.tolist()
        assert own[f"model.{key}"].grad.tolist() == p.grad.tolist()
    states = optimizer.state_dict()["state"].values()
    kept = program.optimizers[0].state_dict()["state"].values()
    steps = {state.get("step") for state in states}
    assert steps == {state.get("step") for state in kept}


SCRIPT = """
import minigrad as mg
program = mg.load_program("step.safetensors")
mg.manual_seed(5)
x = mg.tensor([[0.5, -1.0, 2.0, 0.25]] * 6)
y = mg.tensor([0, 1, 2, 0, 1, 2])
print([program(x, y).item() for _ in range(3)])
"""


def test_another_process_computes_the_same(tmp_path, fresh):
    step, *_ = trained(OPTIMIZERS["adam"])
    x, y = data()
    for _ in range(4):
        step(x, y)
    step.save(tmp_path / "step.safetensors")
    shown = fresh(SCRIPT)
    mg.manual_seed(5)
    x = mg.tensor([[0.5, -1.0, 2.0, 0.25]] * 6)
    assert json.loads(shown) == [step(x, y).item() for _ in range(3)]


def saved(function, tmp_path, *args, **kwargs):
    """A function's program, after a call with these arguments, saved and loaded."""
    compiled = mg.compile(function, fullgraph=True)
    compiled(*args, **kwargs)
    compiled.save(tmp_path / "p.safetensors")
    return mg.load_program(tmp_path / "p.safetensors")


def test_arguments_and_results_keep_their_form(tmp_path):
    def function(pair, *, scale, flags):
        a, b = pair["ab"]
        assert flags == (True, None, "x", 2)
        return {"sum": (a + b, [a * scale]), 3: None, "same": a, "half": 0.5}

    a, b = mg.tensor([1.0, 2.0]), mg.tensor([[3.0]])
    given = {"scale": 1.5, "flags": (True, None, "x", 2)}
    program = saved(function, tmp_path, {"ab": [a, b]}, **given)
    c = mg.tensor([5.0, 7.0])
    made = program({"ab": [c, b]}, **given)
    assert list(made) == ["sum", 3, "same", "half"]
    assert made["sum"][0].tolist() == [[8.0, 10.0]]
    assert made["sum"][1][0].tolist() == [7.5, 10.5]
    assert made["same"] is c
    assert (made[3], made["half"]) == (None, 0.5)
    with pytest.raises(ValueError, match="not like the recorded ones"):
        program({"ab": [c, b]}, scale=2.5, flags=(True, None, "x", 2))
    with pytest.raises(ValueError, match="shape"):
        program({"ab": [mg.ones(3), b]}, **given)
    with pytest.raises(ValueError, match="dtype"):
        program({"ab": [c.double(), b]}, **given)


def test_an_argument_of_another_layout_is_an_error(tmp_path):
    program = saved(lambda x: x @ x, tmp_path, mg.ones(2, 2))
    with pytest.raises(ValueError, match="strides"):
        program(mg.tensor([[1.0, 2.0], [3.0, 4.0]]).T)
    assert program(mg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[7, 10], [15, 22]]


def test_what_a_program_writes_stays(tmp_path):
    total = mg.zeros(2)

    def add(x):
        total.add_(x)
        return total * 1

    program = saved(add, tmp_path, mg.ones(2))
    assert program(mg.ones(2)).tolist() == [2, 2]
    assert program(mg.ones(2)).tolist() == [3, 3]
    assert program.state_dict()["total"].tolist() == [3, 3]
    assert total.tolist() == [1, 1]
    program.load_state_dict({"total": mg.tensor([10.0, 20.0])})
    assert program(mg.ones(2)).tolist() == [11, 21]
    with pytest.raises(KeyError, match="no tensor 'other'"):
        program.load_state_dict({"other": mg.ones(2)})


def test_grads_accumulate_in_a_loaded_program(tmp_path):
    w = mg.tensor([2.0, 3.0], requires_grad=True)

    def backward(x):
        (w * x).sum().backward()

    step = mg.compile(backward, fullgraph=True)
    step(mg.ones(2))
    step(mg.ones(2))
    step.save(tmp_path / "p.safetensors")
    program = mg.load_program(tmp_path / "p.safetensors")
    assert program(mg.tensor([10.0, 20.0])) is None
    assert program.state_dict()["w"].grad.tolist() == [12, 22]
    assert w.grad.tolist() == [2, 2]
    program.state_dict()["w"].grad = None
    with pytest.raises(ValueError, match="grad"):
        program(mg.ones(2))


DRAWS = {
    "rand": lambda x: mg.rand(3) + x,
    "rand_double": lambda x: mg.rand(5000, dtype=mg.float64).sum() + x,
    "randn": lambda x: mg.randn(3) + x,
    "randint": lambda x: mg.randint(2, 9, (3,)) + x,
    "randperm": lambda x: mg.randperm(3) + x,
    "bernoulli": lambda x: mg.nn.functional.dropout(x, 0.3),
    "gumbel": lambda x: mg.nn.functional.gumbel_softmax(x),
    "rrelu": lambda x: mg.nn.functional.rrelu(-x, training=True),
    "uniform_": lambda x: mg.zeros(3).uniform_(-1.0, 4.0) + x,
    "normal_": lambda x: mg.zeros(3).normal_(1.0, 4.0) + x,
    "exponential_": lambda x: mg.zeros(3).exponential_(2.0) + x,
    "log_normal_": lambda x: mg.zeros(3).log_normal_(0.5, 0.25) + x,
    "cauchy_": lambda x: mg.zeros(3).cauchy_(0.5, 2.0) + x,
    "geometric_": lambda x: mg.zeros(3).geometric_(0.25) + x,
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_come_from_the_calling_thread(name, tmp_path):
    x = mg.tensor([1.0, 2.0, 3.0])
    program = saved(DRAWS[name], tmp_path, x)
    mg.manual_seed(11)
    wanted = [DRAWS[name](x).tolist() for _ in range(2)]
    mg.manual_seed(11)
    assert [program(x).tolist() for _ in range(2)] == wanted


def test_a_draw_without_a_recipe_is_refused(tmp_path):
    own = mg.Generator().manual_seed(1)
    step = mg.compile(lambda x: x + mg.rand(2, generator=own))
    step(mg.ones(2))
    with pytest.raises(ValueError, match="generator"):
        step.save(tmp_path / "p")
    step = mg.compile(lambda x: x + mg.nn.init.trunc_normal_(mg.zeros(2)))
    step(mg.ones(2))
    with pytest.raises(ValueError, match="recipe"):
        step.save(tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_what_no_file_holds_is_refused(tmp_path):
    class Own:
        pass

    step = mg.compile(lambda x, y: x + 1)
    with pytest.raises(ValueError, match="call the function first"):
        step.save(tmp_path / "p")
    step(mg.ones(2), Own())
    with pytest.raises(ValueError, match="class Own"):
        step.save(tmp_path / "p")


def test_a_differentiable_result_comes_without_its_history(tmp_path):
    w = mg.tensor([2.0, 3.0], requires_grad=True)

    def function(x):
        y = w * x
        return y, y, y.sum()

    program = saved(function, tmp_path, mg.ones(2))
    first, second, total = program(mg.tensor([1.0, 10.0]))
    assert first is second or first.tolist() == second.tolist()
    assert first.tolist() == [2, 30]
    assert total.item() == 32
    assert not total.requires_grad


def test_example_arguments_choose_a_recording(tmp_path):
    step = mg.compile(lambda x, power: x**power)
    for x in (mg.ones(2), mg.ones(3)):
        for power in (2, 3):
            step(x, power)
    step.save(tmp_path / "p", mg.ones(2), 2)
    program = mg.load_program(tmp_path / "p")
    assert program(mg.tensor([3.0, 4.0]), 2).tolist() == [9, 16]
    with pytest.raises(ValueError, match="arguments like these"):
        step.save(tmp_path / "p", mg.ones(4), 2)


def test_arrays_that_share_written_memory_are_refused(tmp_path):
    whole = mg.zeros(4)
    part = whole[:2]

    def write(x):
        part.add_(x)
        return whole.sum()

    step = mg.compile(write, fullgraph=True)
    step(mg.ones(2))
    with pytest.raises(ValueError, match="shares memory"):
        step.save(tmp_path / "p")


def test_a_transposed_parameter_keeps_its_layout(tmp_path):
    w = mg.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3)).T
    program = saved(lambda x: x @ w, tmp_path, mg.ones(2, 3))
    assert program(mg.ones(2, 3)).tolist() == (mg.ones(2, 3) @ w).tolist()
    assert program.state_dict()["w"].stride() == w.stride()


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32"]


def test_every_dtype_is_kept(tmp_path):
    held = {name: mg.tensor([0, 1, 3]).to(getattr(mg, name)) for name in DTYPES}
    program = saved(lambda x: [h.to(mg.float64) + x for h in held.values()], tmp_path, mg.ones(3))
    for made, (name, h) in zip(program(mg.zeros(3)), held.items(), strict=True):
        assert made.tolist() == h.to(mg.float64).tolist()
        assert program.state_dict()[f"held[{name!r}]"].dtype is h.dtype


# ---- damaged and hostile files -------------------------------------------------------------------


@pytest.fixture
def content(tmp_path):
    """The bytes of a file, and the place for others."""
    step, *_ = trained(OPTIMIZERS["adam"])
    x, y = data()
    for _ in range(4):
        step(x, y)
    path = tmp_path / "step.safetensors"
    step.save(path)
    return path.read_bytes(), tmp_path / "other"


EXPECTED = (ValueError, TypeError, IndexError, RuntimeError, MemoryError, ArithmeticError)


def attempt(path, content):
    """Load and run a file; True if it was refused. Nothing else than an error may come of it."""
    path.write_bytes(content)
    try:
        program = mg.load_program(path)
    except ValueError as error:
        text = str(error)
    else:
        with suppress(*EXPECTED):
            program(*data())
        return False
    assert text.startswith(("[load_program]", "[compile]"))
    return True


def test_truncated_files_are_refused(content):
    whole, path = content
    for end in (*range(0, 200), *range(200, len(whole), 97), len(whole) - 1):
        assert attempt(path, whole[:end])
    assert attempt(path, whole + b"\0")
    assert not attempt(path, whole)


def test_huge_sizes_are_refused_before_memory_is_taken(content):
    whole, path = content
    assert attempt(path, struct.pack("<Q", 2**63) + whole[8:])
    assert attempt(path, struct.pack("<Q", 10**8 + 1) + whole[8:])
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length])
    for name in list(header)[1:4]:
        for shape in ([2**40], [-1], [2**63], [1] * 17, 3, [True], ["2"], [10**30]):
            changed = {**header, name: {**header[name], "shape": shape}}
            assert attempt(path, packed(changed, whole[8 + length :]))


def packed(header, rest):
    """A file with another header."""
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + rest


def test_no_pickle_and_no_other_file_is_read(tmp_path):
    path = tmp_path / "x"
    for content in (b"", b"\x80\x02.", b"PK\x03\x04", b"[" * 100_000, packed([], b"")):
        assert attempt(path, content)
    deep = b"[" * 50_000
    assert attempt(path, struct.pack("<Q", len(deep)) + deep)
    with pytest.raises(FileNotFoundError):
        mg.load_program(tmp_path / "missing")


def changed(rng, x):
    """JSON with one value changed somewhere."""
    if isinstance(x, dict) and x and rng.random() < 0.95:
        key = list(x)[rng.integers(len(x))]
        if rng.random() < 0.05:
            return {k: v for k, v in x.items() if k != key}
        return {**x, key: changed(rng, x[key])}
    if isinstance(x, list) and x and rng.random() < 0.95:
        k = int(rng.integers(len(x)))
        if rng.random() < 0.1:
            return x[:k] + x[k + 1 :]
        if rng.random() < 0.1:
            return [*x[:k], x[k], *x[k:]]
        return [*x[:k], changed(rng, x[k]), *x[k + 1 :]]
    if type(x) is int and rng.random() < 0.7:
        return x + int(rng.integers(-3, 4))
    others = [None, -1, 0, 1, 2, 7, 40, -5, 2**31, 2**63, -(2**63), 0.5, "", "add", "inf", [], {}]
    return others[rng.integers(len(others))]


def mutated(content, seeds):
    """Files whose program has some values changed."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    program = json.loads(header["__metadata__"]["program"])
    for seed in seeds:
        rng = np.random.default_rng(seed)
        made = program
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.6 and isinstance(made, dict) and "steps" in made:
                made = {**made, "steps": changed(rng, made["steps"])}
            else:
                made = changed(rng, made)
        about = {**header["__metadata__"], "program": json.dumps(made)}
        yield packed({**header, "__metadata__": about}, content[8 + length :])


def test_changed_programs_are_refused_or_run(content):
    whole, path = content
    refused = sum(attempt(path, made) for made in mutated(whole, range(600)))
    assert refused > 300


def test_changed_bytes_are_refused_or_run(content):
    whole, path = content
    rng = np.random.default_rng(1)
    for _ in range(300):
        made = bytearray(whole)
        made[rng.integers(len(made))] = rng.integers(256)
        attempt(path, bytes(made))


def test_writing_replaces_the_file_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "p.safetensors"
    step = mg.compile(lambda x: x + 1)
    step(mg.ones(2))
    step.save(path)
    before = path.read_bytes()
    with pytest.raises(FileNotFoundError):
        step.save(tmp_path / "no" / "folder")
    step.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_state_is_a_safetensors_file(content):
    safetensors = pytest.importorskip("safetensors.numpy")
    whole, _ = content
    assert safetensors.load(whole)["model.0.weight"].shape == (8, 4)
