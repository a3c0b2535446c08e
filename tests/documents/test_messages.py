"""Error messages name the operation, show the values, state the rule and offer the way out."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import minigrad as mg
from minigrad.runtime.native import kernels, title_of

F = mg.nn.functional
X = mg.ones(2, 3)
LONG = mg.tensor(1.0).expand(2**40)
TRACKED = mg.ones(2, requires_grad=True)


def frozen():
    a = np.ones(3)
    a.flags.writeable = False
    return mg.from_numpy(a)


MESSAGES = [
    # usual slips in programs written for PyTorch
    (
        lambda: F.cross_entropy(mg.tensor([0, 1]), X),
        TypeError,
        "[cross_entropy] the input holds int64, the target float32: are they swapped? "
        "It is cross_entropy(scores, classes)",
    ),
    (
        lambda: F.nll_loss(mg.tensor([0, 1]), X),
        TypeError,
        "[nll_loss] the input holds int64, the target float32: are they swapped?",
    ),
    (
        lambda: mg.nn.Sequential([mg.nn.ReLU()]),
        TypeError,
        "[Sequential] expected a Module, not list: give the modules one by one, "
        "Sequential(*modules)",
    ),
    (
        lambda: mg.nn.Sequential(mg.nn.Tanh(), mg.nn.ReLU),
        TypeError,
        "[Sequential] expected a Module, not type: ReLU is the class, ReLU() a module of it",
    ),
    (
        lambda: mg.optim.SGD([TRACKED], lr=0.1).step(0.5),
        TypeError,
        "[SGD.step] a closure is a function that returns the loss, not float; the learning rate "
        "is an option, mg.optim.SGD(params, lr=0.1)",
    ),
    (
        lambda: mg.nn.CrossEntropyLoss(X, mg.tensor([0, 1])),
        TypeError,
        "[CrossEntropyLoss] a loss is made first and called with the tensors then: "
        "nn.CrossEntropyLoss()(input, target)",
    ),
    (
        lambda: X.sum().data[0],
        IndexError,
        "[index] 1 indices for 0 dimensions: the number that a 0-d tensor holds is x.item()",
    ),
    (
        lambda: mg.optim.Adam([]),
        ValueError,
        "[Adam] there are no parameters to optimize: a module finds no layers in a Python list or "
        "dict, but in mg.nn.ModuleList or ModuleDict; and model.parameters() can be gone through "
        "once",
    ),
    (
        lambda: F.embedding(mg.tensor([5]), mg.ones(5, 2)),
        IndexError,
        "[embedding] indices from 5 to 5 are not in 0..4",
    ),
    # shapes
    (lambda: X + mg.ones(4), ValueError, "[add] shapes (2, 3) and (4,) do not fit: 3 != 4"),
    (
        lambda: mg.maximum(X, mg.ones(3, 3)),
        ValueError,
        "[maximum] shapes (2, 3) and (3, 3) do not fit: 2 != 3",
    ),
    (lambda: mg.eq(X, mg.ones(4)), ValueError, "[eq] shapes (2, 3) and (4,) do not fit: 3 != 4"),
    (lambda: mg.where(X > 0, X, mg.ones(4)), ValueError, "[where] shapes"),
    (lambda: X @ X, ValueError, "[matmul] inner dimensions differ: (2, 3) @ (2, 3), 3 != 2"),
    (lambda: X.reshape(5), ValueError, "[reshape] cannot turn shape (2, 3) (6 elements) into (5,)"),
    (
        lambda: X.expand(4, 3),
        ValueError,
        "[expand] shape (2, 3) cannot expand to (4, 3): 2 is neither 1 nor 4",
    ),
    (lambda: X.copy_(mg.ones(5)), ValueError, "[copy_] shapes (2, 3) and (5,) do not fit: 3 != 5"),
    # dtypes and types
    (lambda: mg.exp("a"), TypeError, "[exp] expected a Tensor, a number or an array, not str"),
    (
        lambda: mg.add(X, None),
        TypeError,
        "[add] expected a Tensor, a number or an array, not NoneType",
    ),
    (
        lambda: mg.sum(object()),
        TypeError,
        "[sum] expected a Tensor, a number or an array, not object",
    ),
    (lambda: -mg.tensor([True]), TypeError, "[neg] not offered for bool"),
    (
        lambda: mg.randn(2, generator=np.random.default_rng(0)),
        TypeError,
        "[generator] expected a mg.Generator, not Generator: from a seed it is "
        "mg.Generator().manual_seed(seed)",
    ),
    (lambda: mg.ones(2).uniform_(generator=0), TypeError, "[generator] expected a mg.Generator"),
    (lambda: F.huber_loss(X, X, delta=None), TypeError, "[huber_loss] delta must be a number, not"),
    (lambda: F.smooth_l1_loss(X, X, beta="1"), TypeError, "[smooth_l1_loss] beta must be a number"),
    (
        lambda: F.cross_entropy(X, mg.tensor([0, 1]), None, None),
        TypeError,
        "[cross_entropy] ignore_index must be an integer, not NoneType",
    ),
    (
        lambda: F.cross_entropy(X, mg.tensor([0, 1]), label_smoothing=None),
        TypeError,
        "[cross_entropy] label_smoothing must be a number, not NoneType",
    ),
    (
        lambda: F.nll_loss(X, mg.tensor([0, 1]), ignore_index=0.0),
        TypeError,
        "[nll_loss] ignore_index must be an integer, not float",
    ),
    (lambda: mg.round(X, decimals="2"), TypeError, "[round] decimals must be an integer, not str"),
    (
        lambda: mg.nn.utils.clip_grad_norm_([X, None], 1.0),
        TypeError,
        "[clip_grad_norm_] parameter 1 is NoneType, not a Tensor",
    ),
    (
        lambda: mg.nn.utils.clip_grad_value_(None, 1.0),
        TypeError,
        "[clip_grad_value_] expected a list of tensors, not NoneType",
    ),
    (
        lambda: mg.nn.ModuleDict(["a", "b"]),
        TypeError,
        "[ModuleDict] expected a dict or pairs of a name and a Module, not list",
    ),
    (
        lambda: mg.tensor([True]) - mg.tensor([True]),
        TypeError,
        "[sub] not offered for bool and bool",
    ),
    (
        lambda: mg.where(X, X, X),
        TypeError,
        "[where] the condition must be bool, not float32: compare it first",
    ),
    (lambda: mg.tensor([1, 2]) ** mg.tensor([-1, 1]), ValueError, "[pow] "),
    # axes and indices
    (lambda: X.sum(2), IndexError, "[sum] dim 2 is out of range for 2 dimensions: use -2..1"),
    (
        lambda: mg.tensor(1.0).sum(1),
        IndexError,
        "[sum] dim 1 is out of range for 1 dimensions: use -1..0",
    ),
    (lambda: X.sum((0, -2)), ValueError, "[sum] dim 0 is given twice in (0, -2)"),
    (lambda: X[2], IndexError, "[index] index 2 is out of range for dim 0 of size 2"),
    (lambda: X[[0, 5]], IndexError, "[index] index 5 is out of range for size 2"),
    # sizes
    (
        lambda: X.reshape((1,) * 15 + (2, 3)),
        ValueError,
        "17 dimensions where at most 16 are possible",
    ),
    (
        lambda: X.expand((1,) * 15 + (2, 3)),
        ValueError,
        "17 dimensions where at most 16 are possible",
    ),
    (
        lambda: mg.ones((1,) * 16).unsqueeze(0),
        ValueError,
        "17 dimensions where at most 16 are possible",
    ),
    (
        lambda: mg.ones((1,) * 10)[(None,) * 7],
        ValueError,
        "17 dimensions where at most 16 are possible",
    ),
    (
        lambda: mg.ones((1,) * 9)[mg.zeros((1,) * 9, dtype=mg.int64)],
        ValueError,
        "17 dimensions where at most 16",
    ),
    (lambda: mg.empty(2**40, 2**40), ValueError, "its size in bytes overflows 63 bits"),
    (lambda: mg.zeros(2**61), ValueError, "its size in bytes overflows 63 bits"),
    (lambda: mg.tensor(1.0).expand(2**40, 2**40), ValueError, "overflows 63 bits"),
    (lambda: mg.ones(1, 1, dtype=bool).expand(2**31, 2**33), ValueError, "overflows 63 bits"),
    (lambda: mg.empty(2**46), MemoryError, "[empty] no memory for 281474976710656 bytes"),
    (lambda: mg.zeros(0).reshape(0, 2**62, 2**62), ValueError, "overflows 63 bits"),
    (lambda: mg.zeros(0).view(2**31, 2**31, 0), ValueError, "overflows 63 bits"),
    (lambda: mg.zeros(0, 2**62) + mg.zeros(1, 2**62), (ValueError, MemoryError), "["),
    (lambda: mg.ones(2**70), ValueError, "] "),
    (lambda: X.expand(2**63, 2, 3), ValueError, "[expand] "),
    (lambda: X.reshape(2**63, 6), ValueError, "[reshape] "),
    (lambda: mg.arange(0, 1e30), (ValueError, MemoryError), "[arange] "),
    (lambda: mg.tensor(np.zeros((1,) * 20)), ValueError, "[tensor] 20 dimensions where at most 16"),
    (lambda: mg.zeros(2, -1), ValueError, "[zeros] negative size -1 in dimension 1"),
    (lambda: mg.ones(2**61), ValueError, "[ones] the result is too large"),
    (lambda: mg.ones(3).split(2.5), TypeError, "[split] "),
    # numbers and ranges without bounds
    (lambda: mg.pad(X, range(10**12)), ValueError, "[pad] 6 amounts for 2 dimensions"),
    (lambda: mg.zeros(range(1, 10**30)), ValueError, "[zeros] 17 dimensions where at most 16"),
    (lambda: X.repeat(10**24, 1), ValueError, "[repeat] a size or index is beyond int64"),
    (lambda: X.tile(2**40, 2**30), ValueError, "[tile] "),
    (lambda: X.repeat_interleave(2**45), MemoryError, "[repeat_interleave] no memory for"),
    # more pieces than there could be room for are not begun with
    (lambda: X.tensor_split(10**24), MemoryError, f"[tensor_split] no memory for {10**24} tensors"),
    (lambda: mg.zeros(0).chunk(10**12), MemoryError, f"[chunk] no memory for {10**12} tensors"),
    (lambda: LONG.split(3), MemoryError, f"[split] no memory for {-(-(2**40) // 3)} tensors"),
    (lambda: LONG.chunk(2**39), MemoryError, f"[chunk] no memory for {2**39} tensors"),
    (lambda: LONG.unbind(), MemoryError, f"[unbind] no memory for {2**40} tensors"),
    (lambda: mg.ones(2).expand(()), ValueError, "[expand] shape (2,) cannot expand to ()"),
    # writes
    (
        lambda: frozen().fill_(1),
        ValueError,
        "the memory is read-only (it came from a read-only NumPy array); clone() it first",
    ),
    (
        lambda: mg.ones(1).expand(3).fill_(1),
        ValueError,
        "several elements share one place in memory",
    ),
    (
        lambda: TRACKED.fill_(1),
        RuntimeError,
        "cannot write in place into a tensor that requires grad: do it under no_grad()",
    ),
    # the tape
    (
        lambda: TRACKED.backward(),
        RuntimeError,
        "[backward] a gradient can be left out only for a single element, not for shape (2,)",
    ),
    (
        lambda: X.sum().backward(),
        RuntimeError,
        "[backward] this tensor does not require grad and has no graph",
    ),
    (
        lambda: TRACKED.numpy(),
        RuntimeError,
        "[numpy] this tensor requires grad, which NumPy cannot follow; use x.detach().numpy()",
    ),
    # arguments that are not what they are for
    (
        lambda: X.sum(X),
        TypeError,
        "[sum] dim must be an integer, not Tensor",
    ),
    (lambda: X.mean(dim="a"), TypeError, "[mean] dim must be an integer, not str"),
    (lambda: X.topk(2.0), TypeError, "[topk] k must be an integer, not float"),
    (lambda: X.select(0, X), TypeError, "[select] index must be an integer, not Tensor"),
    (lambda: X.reshape(X), TypeError, "[reshape] sizes are integers, got (tensor"),
    (lambda: mg.eye("a"), TypeError, "[eye] n must be an integer, not str"),
    (lambda: mg.eye(-1), ValueError, "[eye] n is -1, but must be at least 0"),
    (lambda: mg.linspace(0, 1, 2.5), TypeError, "[linspace] steps must be an integer, not float"),
    (lambda: mg.randint(0, 2**70, (2,)), ValueError, "[randint] the range [0, 11805916207174"),
    (lambda: mg.set_rng_state({}), TypeError, "[set_state] takes what get_state gives, not dict"),
    (lambda: mg.arange(None), TypeError, "[arange] a bound or the step must be a number"),
    (lambda: mg.full(2, "a"), TypeError, "[full] fill_value must be a number, not str"),
    (lambda: mg.full(None, 1), TypeError, "[full] sizes are integers, got (None,)"),
    (lambda: X.norm((1, 2)), TypeError, "[norm] p must be a number, not tuple"),
    (lambda: X.var(correction="a"), TypeError, "[var] correction must be a number, not str"),
    (lambda: X.isclose(X, None), TypeError, "[isclose] rtol must be a number, not NoneType"),
    (lambda: X.nan_to_num("1"), TypeError, "[nan_to_num] nan must be a number, not str"),
    (lambda: F.elu(X, None), TypeError, "[elu] alpha must be a number, not NoneType"),
    (
        lambda: F.leaky_relu(X, mg.tensor(0.1, requires_grad=True)),
        TypeError,
        "[leaky_relu] negative_slope is a tensor that requires grad, but gets none: give a number",
    ),
    (lambda: F.dropout(X, "a"), TypeError, "[dropout] p must be a number, not str"),
    (lambda: mg.nn.Dropout(None), TypeError, "[Dropout] p must be a number, not NoneType"),
    (lambda: mg.nn.Linear(2.5, 3), TypeError, "[Linear] in_features must be an integer, not float"),
    (
        lambda: mg.nn.Sequential()["a"],
        TypeError,
        "[Sequential] an index must be an integer, not str",
    ),
    (lambda: mg.cat(None), TypeError, "[cat] expected a list of tensors, not NoneType"),
    (lambda: mg.hstack(1), TypeError, "[hstack] expected a list of tensors, not int"),
    (lambda: mg.linalg.multi_dot(None), TypeError, "[multi_dot] expected a list of tensors"),
    (lambda: mg.grad(TRACKED.sum(), None), TypeError, "[grad] expected a list of tensors, not"),
    (lambda: mg.grad([None], TRACKED), TypeError, "[grad] output 0 is NoneType, not a Tensor"),
    (lambda: TRACKED.sum().backward("a"), TypeError, "[backward] cannot make a tensor from str"),
    (lambda: mg.zeros_like(None), TypeError, "[zeros_like] expected a Tensor, a number or an"),
    (lambda: X.expand_as(2.5j), TypeError, "[expand_as] expected a Tensor, a number or an array"),
    (lambda: X.type_as(None), TypeError, "[type_as] expected a Tensor, a number or an array"),
    (lambda: X.take(None), TypeError, "[take] expected a Tensor, a number or an array, not None"),
    (lambda: X.quantile("a"), TypeError, "[quantile] expected a Tensor, a number or an array"),
    (lambda: mg.pad(X, 2), TypeError, "[pad] pad is a list of amounts, not int"),
    (lambda: X.rot90(1, 2), ValueError, "[rot90] dims are two dimensions, not 2"),
    (lambda: mg.tensor([1, None]), TypeError, "[tensor] cannot make a tensor from NoneType data"),
    (lambda: mg.tensor(1.0, X), TypeError, "[dtype] a Tensor is not supported: use float32"),
    (lambda: X.to(None), TypeError, "[to] a dtype is needed: x.to(mg.float32)"),
    (lambda: X * 2**70, OverflowError, "[int64] 1180591620717411303424 does not fit; use a float"),
    (
        lambda: (TRACKED * 2).register_hook(None),
        TypeError,
        "[register_hook] a hook is a function, not NoneType",
    ),
    (lambda: mg.no_grad()(5), TypeError, "[no_grad] decorates functions, not int"),
    (
        lambda: mg.linalg.pinv(X, rtol=X),
        ValueError,
        "[pinv] rtol has shape (2, 3), but must be one number or of shape (), one for each matrix",
    ),
    (
        lambda: mg.optim.Adam([TRACKED]).load_state_dict({}),
        TypeError,
        "[Adam] a state is what state_dict gives: a dict with 'state' and 'param_groups', not dict",
    ),
    # of nothing, in the name of what was called
    (lambda: mg.zeros(0).amax(), ValueError, "[amax] no result for an empty dim 0"),
    (lambda: mg.zeros(0).max(), ValueError, "[max] no result for an empty dim 0"),
    (lambda: mg.zeros(0, 3).min((0, 1)), ValueError, "[min] no result for an empty dim 0"),
    (lambda: mg.vector_norm(mg.zeros(0), inf), ValueError, "[vector_norm] no result for an empty"),
    # the process
    (
        lambda: mg.set_num_threads(0),
        ValueError,
        "[set_num_threads] 0 is not a number of threads from 1 to 256",
    ),
    (lambda: mg.set_num_threads(1.5), ValueError, "[set_num_threads] 1.5 is not"),
]


@pytest.mark.parametrize(
    ("action", "error", "text"), MESSAGES, ids=[f"{n}-{m[2][:40]}" for n, m in enumerate(MESSAGES)]
)
def test_message(action, error, text):
    with pytest.raises(error) as caught:
        action()
    assert text in str(caught.value)
    assert str(caught.value).startswith("[")
    assert caught.value.__cause__ is None


PLAIN = {
    "reshape": lambda x: mg.reshape(x, 2, 1),
    "permute": lambda x: mg.permute(x, 0),
    "transpose": lambda x: mg.transpose(x),
    "squeeze": lambda x: mg.squeeze(x),
    "unsqueeze": lambda x: mg.unsqueeze(x, 0),
    "flatten": lambda x: mg.flatten(x),
    "flip": lambda x: mg.flip(x, 0),
    "narrow": lambda x: mg.narrow(x, 0, 0, 1),
    "clone": lambda x: mg.clone(x),
    "nonzero": lambda x: mg.nonzero(x)[0],
    "take_along_dim": lambda x: mg.take_along_dim(mg.ones(2), x, 0),
    "masked_fill": lambda x: mg.masked_fill(x, mg.tensor([True, False]), 0),
    "sum": lambda x: mg.sum(x),
    "exp": lambda x: mg.exp(x),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("plain", [[1, 0], np.array([1, 0])], ids=["list", "array"])
def test_functions_take_or_refuse_plain_data(name, plain):
    """A function on a list or an array computes, or says what it wants; it never just breaks."""
    want = PLAIN[name](mg.tensor([1, 0]))
    try:
        got = PLAIN[name](plain)
    except TypeError as error:
        assert str(error).startswith(f"[{name}] ")  # noqa: PT017 - either outcome is right
    else:
        assert got.tolist() == want.tolist()


def test_operators_leave_unknown_types_to_themselves():
    class Other:
        def __radd__(self, other):
            return "theirs"

    assert X + Other() == "theirs"
    with pytest.raises(TypeError, match="unsupported operand"):
        X + "text"
    with pytest.raises(TypeError, match="unsupported operand"):
        None * X
    with pytest.raises(TypeError, match="not supported between"):
        assert X < "text"


def test_a_failed_write_leaves_everything_as_it_was():
    x = mg.ones(2, 3)
    version = x._version
    for wrong in (
        lambda: x.copy_(mg.ones(4)),
        lambda: x.__setitem__((0, 5), 1),
        lambda: x.__setitem__(0, mg.ones(2)),
    ):
        with pytest.raises((ValueError, IndexError)):
            wrong()
    assert x.tolist() == [[1, 1, 1]] * 2
    assert x._version == version


def test_no_memory_in_the_middle_of_an_operation():
    x = mg.ones(1, requires_grad=True).expand(2**45)
    with pytest.raises(MemoryError, match=r"\[exp\] no memory for 140737488355328 bytes"):
        x.exp()
    assert x[:3].tolist() == [1, 1, 1]


def test_lack_of_memory_names_what_was_called_and_no_kernel():
    image = mg.ones(1).expand(2**40, 1, 4, 4)
    for op, name in (
        (lambda: mg.nn.functional.conv2d(image, mg.ones(1, 1, 3, 3)), "convolution"),
        (lambda: mg.nn.functional.max_pool2d(image, 2), "max_pool"),
        (lambda: mg.nn.functional.avg_pool2d(image, 2), "avg_pool"),
    ):
        with pytest.raises(MemoryError, match=rf"\[{name}\] no memory for"):
            op()
    assert title_of(kernels.cross_entropy_vjp) == "cross_entropy"  # nor a direction


def test_the_values_survive_lack_of_memory():
    x = mg.tensor([1.0, 2.0])
    for op in (
        lambda: mg.empty(2**46),
        lambda: x.expand(2**45, 2).clone(),
        lambda: x.expand(2**45, 2) + 1,
        lambda: mg.cat([x.expand(2**45, 2)] * 2),
        lambda: x.expand(2**45, 2).to(mg.float64),
    ):
        with pytest.raises(MemoryError, match="no memory for"):
            op()
    assert (x + x).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("MINIGRAD_ISA", "sse9", "MINIGRAD_ISA='sse9' is not available here; choose one of: "),
        (
            "MINIGRAD_NUM_THREADS",
            "many",
            "MINIGRAD_NUM_THREADS='many' is not a number of threads from 1 to 256",
        ),
        (
            "MINIGRAD_NUM_THREADS",
            "0",
            "MINIGRAD_NUM_THREADS='0' is not a number of threads from 1 to 256",
        ),
        *[
            (variable, value, f"{variable}='{value}' is not a number of bytes")
            for variable in ("MINIGRAD_STREAM_BYTES", "MINIGRAD_CACHE_LIMIT")
            for value in ("much", "1e6", "-1", "64M", "4,2", str(2**63))
        ],
    ],
)
def test_bad_environment(variable, value, message, fresh):
    assert f"ImportError: {message}" in fresh("import minigrad", fails=True, **{variable: value})


@pytest.mark.parametrize("value", ["", "1"])
def test_an_environment_that_is_empty_or_right(value, fresh):
    names = "MINIGRAD_NUM_THREADS", "MINIGRAD_STREAM_BYTES", "MINIGRAD_CACHE_LIMIT"
    numbers = dict.fromkeys(names, value) | {"OMP_NUM_THREADS": "1"}
    assert fresh("import minigrad as mg; print(mg.get_num_threads())", **numbers) == "1\n"


def test_sizes_and_amounts_come_from_arrays_too():
    sizes = np.array([1, 2])
    for given in (sizes, mg.tensor(sizes), range(1, 3)):
        assert mg.full(given, 1.0).shape == mg.zeros(given).shape == (1, 2)
        assert F.pad(mg.ones(3), given).shape == (6,)
    assert mg.full(np.array([2]), 1.0).shape == (2,)
    with pytest.raises(TypeError, match="sizes are integers"):
        mg.full(np.array([1.0, 2.0]), 1.0)
    with pytest.raises(TypeError, match=r"\[PReLU\] num_parameters must be an integer, not tuple"):
        mg.nn.PReLU((1, 2))


def test_a_number_may_be_an_array_of_one_element():
    x = mg.tensor([-1.0, 2.0])
    for slope in (np.array([0.5]), np.array(0.5), mg.tensor([0.5]), np.float32(0.5)):
        assert F.leaky_relu(x, slope).tolist() == [-0.5, 2.0]
    for wrong in (np.array([0.5, 0.5]), mg.tensor([0.5, 0.5]), b"2", "2", 0.5j, np.array(0.5j)):
        with pytest.raises(TypeError, match=r"\[leaky_relu\] negative_slope must be a number"):
            F.leaky_relu(x, wrong)
    with pytest.raises(OverflowError, match=r"\[leaky_relu\] negative_slope is too large"):
        F.leaky_relu(x, 10**400)
    with pytest.raises(TypeError, match=r"\[logit\] eps is a tensor that requires grad"):
        mg.logit(x, eps=mg.tensor(0.1, requires_grad=True))


@pytest.mark.usefixtures("restore_random")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("full", lambda t: mg.full((2,), t)),
        ("linspace", lambda t: mg.linspace(0, t, 3)),
        ("nan_to_num", lambda t: mg.nan_to_num(mg.ones(2), t)),
        ("normal_", lambda t: mg.ones(2).normal_(0, t)),
        ("dropout", lambda t: mg.nn.functional.dropout(mg.ones(2), t)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_number_that_requires_grad_is_refused(name, call):
    half = mg.tensor(0.5)
    call(half)
    with pytest.raises(TypeError, match=rf"\[{name}\] .* requires grad, but gets none"):
        call(half.requires_grad_())


def test_a_name_that_is_not_there_brings_no_guess(fresh):
    """Python would add "Did you mean: 'divide'?" to what is no misspelling."""
    code = """
import sys, traceback
import minigrad as mg
for module, name in ((mg, "divice"), (mg.nn, "Linea"), (mg.optim, "SGDD")):
    try:
        getattr(module, name)
    except AttributeError as error:
        print("".join(traceback.format_exception(error)))
"""
    shown = fresh(code)
    assert "module 'minigrad' has no divice" in shown
    assert "module 'minigrad.nn' has no Linea" in shown
    assert "Did you mean" not in shown


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, t: x + t,
        lambda x, t: x * t,
        lambda x, t: x @ t,
        lambda x, t: x < t,
        lambda x, t: mg.exp(t),
        lambda x, t: F.linear(t, x),
    ],
)
def test_pytorchs_tensors_are_named(mix):
    torch = pytest.importorskip("torch")
    text = r"a Tensor of torch's: take its values with mg.tensor\(x.detach\(\).numpy\(\)\)"
    with pytest.raises(TypeError, match=text):
        mix(mg.ones(2, 2), torch.ones(2, 2))
