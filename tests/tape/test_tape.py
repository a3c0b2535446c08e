"""The tape by hand: what it records, differentiates and refuses."""

from __future__ import annotations

import inspect

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad import _c


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values, dtype=float), dtype=dtype, requires_grad=True)


# ---- accumulation --------------------------------------------------------------------------------


def test_a_tensor_used_often_gets_the_sum():
    x = leaf(3.0)
    (x * x + x * 2 + x).backward()
    assert x.grad.item() == 2 * 3 + 2 + 1


def test_a_diamond():
    x = leaf(2.0)
    a = x * x
    b, c = a * 3, a * a
    (b * c).backward()  # 3 x^6
    assert x.grad.item() == 18 * 2.0**5


def test_a_ladder_of_shared_results_is_walked_once():
    x = leaf(1.0)
    y = x
    for _ in range(200):  # 2^200 paths
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**200


SLICED = {
    "pieces": lambda x: [x[:2] * 2, x[2:] * 3],
    "pieces that leave a gap": lambda x: [x[:1] * 2, x[3:] * 3],
    "overlapping": lambda x: [x[1:] * x[:-1]],
    "interleaved": lambda x: [x[::2] * 2, x[1::2].sin()],
    "from the end": lambda x: [x[::-1][:2] * 5, x[-1:] * 2],
    "rows": lambda x: [x[i] * i for i in range(4)],
    "numbers": lambda x: [x[i, j] * (i + j) for i in range(4) for j in range(3)],
    "again and again": lambda x: [x[1:3] * i for i in range(9)],
    "beside the whole": lambda x: [x[0] * 2, x * 3, x[1] * 4, x.sin(), x[1:] * 5],
    "nothing": lambda x: [x[2:2], x[0]],
    "new axes": lambda x: [x[None, 1:, None, 2] * 2, x[..., 0]],
    "split": lambda x: [p * i for i, p in enumerate(x.split(1, 1))],
    "of a slice": lambda x: [x[1:][:, 1:] * 2, x[1:][0]],
}


@pytest.mark.parametrize("name", SLICED)
def test_gradients_of_slices(name, rng):
    def f(x):
        return mg.cat([y.reshape(-1) for y in SLICED[name](x * 2)])

    oracle.check_gradients(f, [rng.normal(size=(4, 3))], rng)
    x = mg.tensor(rng.normal(size=(4, 3)), requires_grad=True)
    mg.cat([y.reshape(-1) for y in SLICED[name](x)]).sum().backward(retain_graph=True)
    (g,) = mg.grad(mg.cat([y.reshape(-1) for y in SLICED[name](x)]).sum(), x, create_graph=True)
    np.testing.assert_allclose(x.grad.numpy(), g.detach().numpy(), 1e-15)


def test_gradients_of_slices_cost_what_the_slices_hold():
    def made(n):
        """How many elements a backward over the rows of a table makes."""
        x = mg.ones(n, 3, requires_grad=True)
        y = mg.stack([x[i] for i in range(n)]).sum()
        sizes = []
        with _c.trace(lambda kernel, args, made: sizes.append(made.size if made else 0)):
            y.backward()
        assert x.grad.tolist() == [[1, 1, 1]] * n
        return sum(sizes)

    assert made(400) < 2.1 * made(200)


def test_repeated_backward_calls_add_up():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_accumulation_spares_a_gradient_that_a_graph_has_saved():
    x, c = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    (x * x).sum().backward()
    y = (c * x.grad).sum()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    y.backward()
    assert c.grad.tolist() == [2.0, 4.0]


def test_setting_grad_to_none_starts_over():
    x = leaf(2.0)
    (x * x).backward()
    x.grad = None
    (x * 5).backward()
    assert x.grad.item() == 5.0


def test_an_upstream_gradient():
    x = leaf([1.0, 2.0])
    (x * x).backward(mg.tensor([1.0, 10.0], dtype=mg.float64))
    assert x.grad.tolist() == [2.0, 40.0]
    with pytest.raises(RuntimeError, match=r"only for a single element, not for shape \(2,\)"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"the gradient has shape \(3,\), the tensor \(2,\)"):
        (x * x).backward(mg.ones(3))


def test_backward_on_a_leaf():
    x = leaf(2.0)
    x.backward()
    assert x.grad.item() == 1.0


def test_without_a_graph():
    with pytest.raises(RuntimeError, match="does not require grad and has no graph"):
        mg.tensor(1.0).backward()


def test_untouched_leaves_have_no_gradient():
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    _ = z * 2
    (x * y.detach()).backward()
    assert x.grad.item() == 2.0
    assert y.grad is None
    assert z.grad is None


def test_a_fixed_operand_gets_no_gradient():
    x, c = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0])
    (x * c).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert c.grad is None
    assert (c * c).grad_fn is None


@pytest.mark.parametrize(
    "operation",
    [
        lambda a, b: a + b,
        lambda a, b: b + a + a * 0,
        lambda a, b: mg.cat((a, b)),
        lambda a, b: (a + b).reshape(3, 1),
        lambda a, b: a + b.clone(),
    ],
)
def test_leaf_gradients_never_share_memory(operation):
    a, b = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
    operation(a, b).sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [1.0] * 3
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())
    a.grad.zero_()
    assert b.grad.tolist() == [1.0] * 3


def test_a_leaf_gradient_does_not_share_the_callers_memory():
    x = leaf([1.0, 2.0])
    g = mg.tensor([3.0, 4.0], dtype=mg.float64)
    x.backward(g)
    (x + 0).backward(g)
    assert x.grad.tolist() == [6.0, 8.0]
    assert g.tolist() == [3.0, 4.0]
    assert not np.shares_memory(x.grad.numpy(), g.numpy())


def test_the_default_upstream_gradient_stays_one():
    x, y = leaf(1.0), leaf(1.0)
    x.backward()
    x.grad.fill_(7.0)
    (y * 2).backward()
    assert y.grad.item() == 2.0


# ---- the graph is used up ------------------------------------------------------------------------


def test_a_second_backward_is_refused():
    x = leaf(2.0)
    y = x.exp() * x
    y.backward()
    with pytest.raises(
        RuntimeError,
        match=r"\[backward\] the graph was freed at 'mul' by an earlier backward; .*retain_graph",
    ):
        y.backward()


def test_a_second_backward_through_a_shared_part_is_refused_and_changes_nothing():
    x = leaf(2.0)
    shared = x.exp()
    (shared * 2).backward()
    first = x.grad.item()
    with pytest.raises(RuntimeError, match="the graph was freed at 'exp'"):
        (shared * 3 + x).backward()
    assert x.grad.item() == first


def test_retain_graph():
    x = leaf(2.0)
    y = x * x * x
    y.backward(retain_graph=True)
    assert x.grad.item() == 12.0
    y.backward()
    assert x.grad.item() == 24.0
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


def test_grad_keeps_or_frees_as_backward_does():
    x = leaf(2.0)
    y = x * x
    assert mg.grad(y, x, retain_graph=True)[0].item() == 4.0
    assert mg.grad(y, x)[0].item() == 4.0
    with pytest.raises(RuntimeError, match="freed"):
        mg.grad(y, x)
    assert x.grad is None


# ---- saved, then overwritten ---------------------------------------------------------------------


def test_an_overwritten_saved_tensor_names_the_operation_and_the_line():
    x = leaf([1.0, 2.0])
    c = mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x * c).sum()
    c.fill_(5.0)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    message = str(caught.value)
    assert message.startswith("[mul] a tensor saved for backward was overwritten in place")
    assert f"{__file__}:{line}" in message
    assert x.grad is None


@pytest.mark.parametrize(
    "write",
    [
        lambda c: c.copy_(mg.zeros(2)),
        lambda c: c.zero_(),
        lambda c: c.__setitem__(0, 9.0),
        lambda c: c[:1].fill_(9.0),
        lambda c: c.__iadd__(1),
        lambda c: c.detach().fill_(1.0),
        lambda c: c.reshape(1, 2).zero_(),
    ],
    ids=["copy_", "zero_", "setitem", "slice", "iadd", "detached", "view"],
)
def test_every_way_of_overwriting_is_noticed(write):
    x = leaf([1.0, 2.0])
    c = mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x * c).sum()
    write(c)
    with pytest.raises(RuntimeError, match=r"\[mul\] .*overwritten in place at .*test_tape.py:\d+"):
        y.backward()


def test_an_overwritten_output_is_noticed():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match=r"\[exp\] .*overwritten"):
        y.sum().backward()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("op", ["cumprod", "log_softmax", "relu", "softmax"])
def test_the_operation_is_named_whatever_its_rule(op, create_graph):
    x = leaf([1.0, 2.0])
    y = getattr(mg, op)(x, *[0] * (op != "relu"))
    y.add_(1.0)
    with pytest.raises(RuntimeError, match=rf"\[{op}\] .*overwritten"):
        mg.grad(y.sum(), x, create_graph=create_graph)


def test_overwriting_what_was_not_saved_is_allowed():
    x = leaf([1.0, 2.0])
    c = mg.tensor([3.0, 4.0], dtype=mg.float64)
    y = (x + c).sum() + (c * 2).sum()
    c.fill_(5.0)
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_overwriting_another_tensor_is_allowed():
    x, c, other = leaf([1.0, 2.0]), mg.ones(2), mg.ones(2)
    y = (x * c).sum()
    other.fill_(3.0)
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_writing_before_saving_is_allowed():
    x, c = leaf([1.0, 2.0]), mg.ones(2)
    c.fill_(3.0)
    (x * c).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_leaf_changes_under_no_grad_only():
    x = leaf([1.0, 2.0])
    with pytest.raises(
        RuntimeError, match="cannot write in place into a tensor that requires grad"
    ):
        x.fill_(0.0)
    with pytest.raises(
        RuntimeError, match="cannot write in place into a tensor that requires grad"
    ):
        x[0] = 1.0
    assert x.tolist() == [1.0, 2.0]
    before = x._version
    with mg.no_grad():
        x -= 0.5
    assert x._version > before
    assert x.tolist() == [0.5, 1.5]
    assert x.requires_grad
    assert x.is_leaf


def test_a_leaf_written_between_forward_and_backward_is_noticed():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with mg.no_grad():
        x -= 0.5
    with pytest.raises(RuntimeError, match=r"\[mul\] .*overwritten"):
        y.backward()


def test_versions_only_grow_with_writes_and_are_shared_by_views():
    c = mg.zeros(3)
    view = c[1:]
    start = c._version
    _ = c + 1
    assert c._version == view._version == start
    view.fill_(1.0)
    assert c._version == view._version > start
