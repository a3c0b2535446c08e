"""Kernel calls pass through one function, where a tracer sees them."""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.runtime import native
from minigrad.runtime.native import call, kernels
from minigrad.tape.apply import operation
from minigrad.tape.tensor_base import wrap

pytestmark = pytest.mark.usefixtures("restore_random")


def calls(action):
    """The names of the kernels that an action calls, in order."""
    seen = []
    with native.trace(lambda kernel, args, result: seen.append(kernel)):
        action()
    return seen


def test_an_operation_is_one_call():
    a, b = mg.ones(3), mg.ones(3)
    assert calls(lambda: a + b) == ["add"]
    assert calls(lambda: a.exp()) == ["exp"]
    assert calls(lambda: a.sum()) == ["sum"]
    assert calls(lambda: mg.ones(2, 3) @ a)[-1] == "matmul"


def test_a_backward_passes_through_too():
    x = mg.ones(3, requires_grad=True)
    (x * x).sum().backward()  # what is made once for all, is made
    x.grad = None
    y = (x * x).sum()
    assert calls(y.backward) == [
        "view_repeat",
        "mul_vjp",
        "accumulate",  # the two gradients of x, added
    ]


def test_an_optimiser_step_is_one_call():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    methods = {
        optim.SGD: "sgd_step",
        optim.Adam: "adam_step",
        optim.RMSprop: "rmsprop_step",
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
    with pytest.raises(ValueError, match="matmul"), native.trace(lambda *call: seen.append(call)):
        mg.ones(2, 3) @ mg.ones(2, 3)
    mg.ones(2)
    assert [kernel for kernel, _, _ in seen] == ["full", "full"]


def test_a_handle_shows_its_fields():
    h = mg.zeros(4, 6, dtype=mg.float64)[1::2, None, 3]._h
    assert (h.shape, h.strides) == ((2, 1), (12, h.strides[1]))
    assert (h.size, h.ndim, h.dtype) == (2, 2, native.lib.MG_FLOAT64)
    assert (h.weak, h.adapted) == (0, 0)
    assert h.data == h.buffer + 64 + 9 * 8
    assert (mg.ones(3) + mg.ones(2, 3))._h.adapted == 1


def test_handles_are_told_apart():
    h = mg.ones(3)._h
    saved = native.save(h)
    for kernel, wrong in ((kernels.saved_array, (h, 0)), (kernels.copy, (saved,))):
        with pytest.raises(TypeError, match="takes"):
            call(kernel, *wrong)
    for known in (h, saved):
        with pytest.raises(TypeError):
            type(known)()


def test_handles_in_a_list_are_an_array_of_them():
    a, b = mg.ones(2)._h, mg.zeros(3)._h
    for several in ([a, b], (a, b)):
        assert call(kernels.concatenate, several, 0).shape == (5,)
    many = [mg.full((1,), float(k))._h for k in range(200)]  # more than have room on the stack
    assert wrap(call(kernels.concatenate, many, 0)).tolist() == list(range(200))
    for wrong in ([a, 1], [a, mg.ones(2)], [native.save(a)], [1, a]):
        with pytest.raises(TypeError):
            call(kernels.concatenate, wrong, 0)
    with pytest.raises(TypeError):
        call(kernels.empty, native.lib.MG_FLOAT32, [a, b])  # where a shape should be


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("wrong", ["list", "number"])
def test_a_refused_argument_leaves_nothing_behind(count, wrong):
    """Arrays that were made of lists before the failure are freed."""
    many = [mg.ones(2)._h] * count
    second = [*many[1:], 1] if wrong == "list" else many
    rate = "much" if wrong == "number" else 0.1

    def refused():
        with contextlib.suppress(TypeError):
            call(kernels.sgd_step, many, second, many, rate, 0.0, 0.0, 0.0, 0, 0)

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

    with native.trace(replace):
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


# ---- one calling convention ----------------------------------------------------------------------


def array(*values, dtype=mg.float64):
    return mg.tensor(list(values), dtype=dtype)._h


def listed(x):
    return wrap(x).tolist()


def test_every_operation_has_a_name_a_title_and_a_signature():
    assert len(native.names) == len(native.signatures)
    assert all(map(native.title_of, range(len(native.names))))
    assert len(set(native.names)) == len(native.names)
    assert all(kernels.__dict__[name] == number for number, name in enumerate(native.names))
    for signature in native.signatures:
        letters, _, result = signature.partition(":")
        assert set(letters) <= set("asmASkidpILD")
        assert result in ("1", "n", "s", "?")


def test_arguments_are_read_by_the_signature():
    x = array(1.0, 2.0, 3.0, 4.0)
    assert listed(call(kernels.reshape, x, (2, 2))) == [[1.0, 2.0], [3.0, 4.0]]  # a list
    assert listed(call(kernels.sum, x, None, True)) == [10.0]  # no list: all axes
    assert listed(call(kernels.gather, x, [array(3, 0, dtype=mg.int64)])) == [4.0, 1.0]
    assert listed(call(kernels.elu, (x,), (2.0, 1.0, 1.0))) == [1.0, 2.0, 3.0, 4.0]  # floats
    assert call(kernels.roots_extreme, x) is False  # an answer
    made = call(
        kernels.distinct, call(kernels.reshape, array(2, 1, 2, dtype=mg.int64), (3, 1)), 1, 1
    )
    assert [listed(one) for one in made] == [[1, 0], [1, 2], [1, 0, 1]]  # several arrays
    y = call(kernels.copy, x)
    assert call(kernels.accumulate, y, x) is None  # a write
    assert listed(y) == [2.0, 4.0, 6.0, 8.0]


def test_arrays_at_the_end_may_be_left_out():
    x, w = mg.ones(2, 3)._h, mg.ones(4, 3)._h
    assert listed(call(kernels.linear, x, w)) == listed(call(kernels.linear, x, w, None))
    with pytest.raises(TypeError, match=r"\[linear\] takes"):
        call(kernels.linear, x)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "takes"),
        ((None,), r"\[exp\] takes arrays, not <class 'NoneType'>"),
        (([1.0],), r"\[exp\] takes arrays, not <class 'list'>"),
        ((1, 2), "takes"),
    ],
)
def test_wrong_arguments_are_named(args, said):
    with pytest.raises(TypeError, match=said):
        call(kernels.exp, *args)


def test_lists_of_other_lengths_are_refused():
    x = mg.ones(2, 3)._h
    for start in ((0,), (0, 0, 0), None):
        with pytest.raises(ValueError, match=r"\[index\]"):
            call(kernels.view_slice, x, start, (1, 1), (1, 1))
    with pytest.raises(ValueError, match=r"\[index\]|negative"):
        call(kernels.view_slice, x, (0, 0), (1, 1), (-1, 1))


def test_integers_beyond_int64_and_axes_beyond_int32_are_refused():
    x = mg.ones(2, 3)._h
    with pytest.raises(ValueError, match=r"\[reshape\] a size or index is beyond int64"):
        call(kernels.reshape, x, (2**63,))
    for axis in (2**40, -(2**40), 2**31, 17):
        with pytest.raises(IndexError, match="out of range for 2 dimensions"):
            call(kernels.sum, x, (axis,), False)
    with pytest.raises((IndexError, ValueError), match="dim"):
        call(kernels.sum, x, tuple(range(1000)), False)


@pytest.mark.parametrize("wrong", [(), (0,), (4, 1), (1, 2, 1, 0, 1), (2, 1, 1, 1, 1, 0, 1)])
def test_wrong_pooling_windows_and_geometries_are_refused(wrong):
    x = mg.ones(1, 1, 4)._h
    for kernel in (kernels.pool_sum, kernels.pool_max, kernels.pool_argmax):
        with pytest.raises(ValueError, match="pool"):
            call(kernel, x, wrong)
    with pytest.raises(ValueError, match="convolution"):
        call(kernels.conv_forward, x, mg.ones(1, 1, 2)._h, None, wrong)


def test_numbers_that_no_operation_has_are_refused():
    for number in (-1, len(native.names), 10**6):
        with pytest.raises((ValueError, IndexError)):
            call(number, mg.ones(2)._h)
