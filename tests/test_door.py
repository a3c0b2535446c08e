"""Every kernel call passes through one door, where it can be watched."""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest

import minigrad as mg
from minigrad import _c, nn, optim
from minigrad.tape.apply import operation
from minigrad.tape.tensor_base import wrap

pytestmark = pytest.mark.usefixtures("restore_random")


def calls(action):
    """The names of the kernels that an action calls, in order."""
    seen = []
    with _c.trace(lambda kernel, args, result: seen.append(kernel.__name__)):
        action()
    return seen


def test_an_operation_is_one_call():
    a, b = mg.ones(3), mg.ones(3)
    assert calls(lambda: a + b) == ["mg_binary"]
    assert calls(lambda: a.exp()) == ["mg_unary"]
    assert calls(lambda: a.sum()) == ["mg_reduce"]
    assert calls(lambda: mg.ones(2, 3) @ a)[-1] == "mg_bilinear"


def test_a_backward_passes_through_too():
    x = mg.ones(3, requires_grad=True)
    (x * x).sum().backward()  # what is made once for all, is made
    x.grad = None
    y = (x * x).sum()
    assert calls(y.backward) == [
        "mg_view_spread",
        "mg_binary_vjp",
        "mg_accumulate",  # the two gradients of x, added
    ]


def test_an_optimiser_step_is_one_call():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    methods = {
        optim.SGD: "mg_sgd_step",
        optim.Adam: "mg_adam_step",
        optim.RMSprop: "mg_rmsprop_step",
    }
    for make, kernel in methods.items():
        optimizer = make(model.parameters(), lr=0.1)
        for _ in range(2):  # the first makes the state
            optimizer.zero_grad()
            model(mg.ones(5, 4)).sum().backward()
            seen = calls(optimizer.step)
        assert seen == [kernel]


def test_watching_ends_with_the_block_also_on_errors():
    seen = []
    with pytest.raises(ValueError, match="matmul"), _c.trace(lambda *call: seen.append(call)):
        mg.ones(2, 3) @ mg.ones(2, 3)
    mg.ones(2)
    assert [kernel.__name__ for kernel, _, _ in seen] == ["mg_full", "mg_full"]


def test_a_handle_shows_its_fields():
    h = mg.zeros(4, 6, dtype=mg.float64)[1::2, None, 3]._h
    assert (h.shape, h.strides) == ((2, 1), (12, h.strides[1]))
    assert (h.size, h.ndim, h.dtype) == (2, 2, _c.lib.MG_FLOAT64)
    assert (h.weak, h.adapted) == (0, 0)
    assert h.data == h.buffer + 64 + 9 * 8
    assert h.pointer.data == _c.ffi.cast("char *", h.data)
    assert (mg.ones(3) + mg.ones(2, 3))._h.adapted == 1


def test_handles_are_told_apart():
    h = mg.ones(3)._h
    saved = _c.save(h)
    for kernel, wrong in ((_c.lib.mg_unsave, h), (_c.lib.mg_contiguous_now, saved)):
        with pytest.raises(TypeError, match="cdata pointer"):
            kernel(wrong)
    for known in (h, saved):
        with pytest.raises(TypeError, match="come from kernels"):
            type(known)()


def test_handles_in_a_list_are_an_array_of_them():
    a, b = mg.ones(2)._h, mg.zeros(3)._h
    for several in ([a, b], (a, b)):
        assert _c.lib.mg_concatenate(2, several, 0).shape == (5,)
    many = [mg.full((1,), float(k))._h for k in range(200)]  # more than cffi puts on the stack
    assert wrap(_c.lib.mg_concatenate(200, many, 0)).tolist() == list(range(200))
    for wrong in ([a, 1], [a, mg.ones(2)], [_c.save(a)], [1, a]):
        with pytest.raises(TypeError):
            _c.lib.mg_concatenate(2, wrong, 0)
    with pytest.raises(TypeError):
        _c.lib.mg_empty(_c.lib.MG_FLOAT32, 2, [a, b])  # where a shape should be


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("wrong", ["list", "number"])
def test_a_refused_argument_leaves_nothing_behind(count, wrong):
    """What was made of the lists before it is freed."""
    many = [mg.ones(2)._h] * count
    second = [*many[1:], 1] if wrong == "list" else many
    rate = "much" if wrong == "number" else 0.1

    def refused():
        with contextlib.suppress(TypeError):
            _c.lib.mg_sgd_step(count, many, second, many, rate, 0.0, 0.0, 0.0, 0, 0)

    refused()
    tracemalloc.start()
    for _ in range(100):
        refused()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert left < 5000  # and not 100 arrays


def test_an_operation_takes_tensors_only():
    run = operation(mg.ops.pointwise.ADD)
    assert run(mg.ones(2), mg.ones(2)).tolist() == [2.0, 2.0]
    for operands in ((mg.ones(2), True), ([1.0], mg.ones(2)), (mg.ones(2),), ([1.0], [2.0])):
        assert run(*operands) is NotImplemented
    with pytest.raises(ValueError, match=r"\[add\] shapes"):
        run(mg.ones(2), mg.ones(3))


def test_operators_leave_other_types_to_their_methods():
    class Other:
        def __radd__(self, x):
            return "radd"

        __rsub__ = __rmul__ = __rtruediv__ = __radd__
        __add__ = __sub__ = __mul__ = __truediv__ = __radd__

    x, other = mg.ones(2), Other()
    for operator in "+-*/":
        for left, right in ((x, other), (other, x)):
            assert eval(f"left {operator} right", {"left": left, "right": right}) == "radd"
        for text in (f"x {operator} 'text'", f"'text' {operator} x"):
            with pytest.raises(TypeError):
                eval(text, {"x": x})


def test_a_subclass_may_have_operators_of_its_own():
    class Mine(mg.nn.Parameter):
        def __add__(self, other):
            return "mine", super().__add__(other).tolist()

        def __radd__(self, other):
            return "reflected", super().__radd__(other).tolist()

    x = Mine(mg.ones(1))
    assert x + mg.ones(1) == ("mine", [2.0])
    assert mg.ones(1) + x == ("reflected", [2.0])
    assert 3 + x == ("reflected", [4.0])
    assert type(x * 2) is mg.Tensor
    assert (x * 2).requires_grad


@pytest.mark.parametrize("f", [mg.exp, lambda x: x * 2, lambda x: x * x])
def test_an_operand_replaced_meanwhile_has_no_say_in_the_shape(f):
    """As another thread may while the kernel runs."""
    x = mg.ones(3, requires_grad=True)
    assert x.shape == (3,)
    other = [mg.ones(2, 2)]

    def replace(*_):
        while other:
            x._h, x._shape = other.pop()._h, (2, 2)

    with _c.trace(replace):
        y = f(x)
    assert y.shape == y._h.shape == (3,)


def linear(x):
    return mg.nn.functional.linear(x, x)


@pytest.mark.parametrize(
    "f", [mg.exp, lambda x: x + x, lambda x: 1 - x, lambda x: mg.add(x, 1), lambda x: x @ x, linear]
)
def test_a_tensor_made_of_nothing_is_refused(f):
    x = object.__new__(mg.Tensor)
    with pytest.raises(AttributeError):
        f(x)
    x._h, x._shape = mg.ones(2, 2)._h, None
    with pytest.raises(AttributeError, match="_edge"):
        f(x)
    x._edge = None
    del x._shape
    assert f(x).tolist() == f(mg.ones(2, 2)).tolist()


@pytest.mark.only_tape("C", "kernels called from Python refuse what is no array with a TypeError")
@pytest.mark.parametrize("handle", [None, 5])
def test_a_tensor_that_holds_no_array_is_refused(handle):
    x = mg.ones(2, 2)
    x._h = handle
    for f in (mg.exp, lambda x: x + x, lambda x: mg.add(x, 1), lambda x: x @ x, linear):
        with pytest.raises(AttributeError):
            f(x)
