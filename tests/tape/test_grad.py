"""``grad``, gradients of gradients, and hooks, by hand."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import minigrad as mg


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values, dtype=float), dtype=dtype, requires_grad=True)


# ---- what is assigned to grad --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda x: 3.0, TypeError, r"\[grad\] expected a Tensor or None, not float"),
        (lambda x: np.ones((2, 3)), TypeError, r"\[grad\] .* not ndarray"),
        (lambda x: x, ValueError, r"\[grad\] a tensor cannot be its own gradient"),
        (lambda x: mg.ones(3, 2), ValueError, r"shape \(3, 2\), the tensor \(2, 3\)"),
        (lambda x: mg.ones(1, 3), ValueError, r"shape \(1, 3\), the tensor \(2, 3\)"),
        (lambda x: mg.ones(0), ValueError, r"shape \(0,\), the tensor \(2, 3\)"),
        (
            lambda x: mg.ones(2, 3),
            TypeError,
            r"is float32, the tensor float64: convert it with .to\(mg.float64\)",
        ),
    ],
)
@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2, lambda x: x.detach()])
def test_a_grad_that_does_not_fit_is_refused(make, wrong, error, says):
    x = make(leaf(np.ones((2, 3))))
    x.grad = held = leaf(np.full((2, 3), 5.0)).detach()
    with pytest.raises(error, match=says):
        x.grad = wrong(x)
    assert x.grad is held


def test_a_grad_that_fits_is_kept_as_it_is():
    x = leaf(np.ones((2, 3)))
    others = x * 2, x.detach(), leaf(np.ones((3, 2))).T, leaf(np.ones((1, 3))).expand(2, 3)
    for g in (*others, mg.nn.Parameter(leaf(np.ones((2, 3))).detach())):
        x.grad = g
        assert x.grad is g
    del x.grad
    assert x.grad is None
    whole = mg.tensor([1, 2])
    whole.grad = g = mg.tensor([3, 4])
    assert whole.grad is g
    none = mg.ones(0, 3, requires_grad=True)
    none.grad = mg.ones(0, 3)
    none.sum().backward()
    assert none.grad.shape == (0, 3)


@pytest.mark.parametrize("graph", [False, True])
def test_a_backward_adds_what_arrives_whatever_the_leaf_holds_by_then(graph):
    x = leaf([1.0, 2.0], mg.float32)
    y = (x * x).sum()
    x.data = mg.tensor([3.0, 4.0], dtype=mg.float64)
    y.backward(create_graph=graph)
    assert x.grad.dtype is mg.float32
    assert x.grad.tolist() == [2.0, 4.0]


# ---- gradients of gradients ----------------------------------------------------------------------


def test_derivatives_to_fifth_order():
    x = leaf(3.0)
    y = x**4
    for expected in (4 * 27.0, 12 * 9.0, 24 * 3.0, 24.0, 0.0):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_third_order_of_several_operations():
    x = leaf([0.3, 0.7])
    y = (x.sin() * x.exp()).sum()
    for _ in range(3):
        (g,) = mg.grad(y, x, create_graph=True)
        y = g.sum()
    v = np.array([0.3, 0.7])
    np.testing.assert_allclose(
        g.detach().numpy(), 2 * np.exp(v) * (np.cos(v) - np.sin(v)), rtol=1e-13
    )


def test_backward_with_create_graph():
    x = leaf(2.0)
    (x * x * x).backward(create_graph=True)
    assert x.grad.item() == 12.0
    assert x.grad.requires_grad
    first, x.grad = x.grad, None
    first.backward()
    assert x.grad.item() == 12.0  # 6 x


def test_without_create_graph_gradients_have_no_history():
    x = leaf(2.0)
    (g,) = mg.grad(x * x, x)
    assert not g.requires_grad
    (x * x).backward()
    assert not x.grad.requires_grad


def test_a_gradient_penalty():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (g,) = mg.grad((x * w * w).sum(), x, create_graph=True)  # w^2
    (g * g).sum().backward()  # w^4
    assert w.grad.tolist() == [4 * 27.0, 4 * 64.0]
    assert x.grad is None


# ---- grad ----------------------------------------------------------------------------------------


def test_grad_of_results_in_between():
    x = leaf(2.0)
    a = x * x
    b = a * 3
    y = b * a
    ga, gb, gx = mg.grad(y, [a, b, x])
    assert (ga.item(), gb.item(), gx.item()) == (6 * 4.0, 4.0, 12 * 8.0)
    assert x.grad is None
    assert a.grad is None


def test_grad_of_a_result_leaves_what_is_before_it_alone():
    x = leaf(2.0)
    a = x.exp()
    (ga,) = mg.grad(a * a, a)
    assert ga.item() == 2 * a.item()
    a.backward()  # the graph behind a was not used, so it is not used up
    assert x.grad.item() == a.item()


def test_grad_of_a_result_does_not_need_what_it_saved():
    x = leaf(2.0)
    a = x.exp()
    a.detach().fill_(3.0)
    assert mg.grad(a * a, a)[0].item() == 6.0


def test_grad_of_a_result_whose_own_graph_is_used_up():
    x = leaf(2.0)
    a = x.exp()
    a.backward()
    assert mg.grad(a * a * 3, a)[0].item() == 6 * a.item()
    with pytest.raises(RuntimeError, match="the graph was freed at 'exp'"):
        mg.grad(a * a, [a, x])


def test_grad_of_the_output_itself():
    x = leaf([1.0, 2.0])
    y = x * 2
    g = mg.tensor([3.0, 4.0], dtype=mg.float64)
    assert mg.grad(y, y, g)[0].tolist() == [3.0, 4.0]
    assert mg.grad(x, x, g)[0].tolist() == [3.0, 4.0]


def test_grad_of_several_outputs_and_inputs():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    g = mg.tensor([1.0, 10.0], dtype=mg.float64)
    gx, gy = mg.grad([(x * y).sum(), x * x], [x, y], [None, g])
    assert gx.tolist() == [3 + 2.0, 4 + 40.0]
    assert gy.tolist() == [1.0, 2.0]
    assert [v.tolist() for v in mg.grad(x.sum(), [x, x])] == [[1.0, 1.0]] * 2


def test_the_same_output_twice():
    x = leaf(2.0)
    y = x * x
    assert mg.grad([y, y], x)[0].item() == 8.0


def test_unused_inputs_are_zeros_or_none():
    x, unused = leaf([1.0, 2.0]), leaf([[1.0], [2.0]])
    gx, gu = mg.grad((x * x).sum(), [x, unused])
    assert gx.tolist() == [2.0, 4.0]
    assert gu.tolist() == [[0.0], [0.0]]
    assert gu.dtype is unused.dtype
    assert mg.grad((x * x).sum(), [unused], allow_unused=True) == (None,)


def test_grad_takes_what_pytorchs_takes():
    x, unused = mg.tensor([2.0, 3.0], requires_grad=True), mg.ones(2, requires_grad=True)
    y = (x * x).sum()
    (dx,) = mg.grad(y, x, None, True, True, True, False)  # the sixth is only_inputs
    assert dx.tolist() == [4.0, 6.0]
    assert mg.grad(dx.sum(), x, only_inputs=True)[0].tolist() == [2.0, 2.0]
    found = mg.grad(y, [x, unused], allow_unused=True, materialize_grads=True)
    assert [g.tolist() for g in found] == [[4.0, 6.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match=r"^\[grad\] only_inputs is False, and grad writes"):
        mg.grad((x * x).sum(), x, only_inputs=False)


def test_grad_refuses():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="input 1 does not require grad"):
        mg.grad(x.sum(), [x, mg.ones(2)])
    with pytest.raises(TypeError, match=r"\[grad\] .*float"):
        mg.grad(x.sum(), [3.0])
    with pytest.raises(ValueError, match="2 grad_outputs for 1 outputs"):
        mg.grad([x.sum()], [x], [None, None])


def test_gradients_have_the_inputs_dtype():
    x, y = leaf([1.0, 2.0], mg.float32), leaf([3.0, 4.0], mg.float64)
    (x * y).sum().backward()
    assert x.grad.dtype is mg.float32
    assert y.grad.dtype is mg.float64
    assert x.grad.tolist() == [3.0, 4.0]


def test_gradients_have_the_inputs_shape():
    x, row, one = leaf(np.ones((2, 3))), leaf([1.0, 2.0, 3.0]), leaf([[2.0]])
    (x * row * one).sum().backward()
    assert x.grad.tolist() == [[2.0, 4.0, 6.0]] * 2
    assert row.grad.tolist() == [4.0, 4.0, 4.0]
    assert one.grad.tolist() == [[12.0]]


# ---- hooks ---------------------------------------------------------------------------------------


def test_hooks_see_and_replace_gradients():
    x = leaf(2.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3).backward()
    assert seen == [3.0, 30.0]
    assert x.grad.item() == 120.0


def test_hooks_see_the_whole_gradient_once():
    x = leaf(2.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3 + y * 4).backward()
    assert seen == [7.0]


def test_gradients_that_hooks_keep_stay_as_they_are():
    """A gradient is added to only in memory that nobody else has seen."""
    x, kept = leaf([1.0, 2.0]), []
    y = x * 2
    parts = y.exp(), y.reshape(2), y * 3, y[:]
    for part in parts:
        part.register_hook(kept.append)
    upstream = leaf([3.0, 4.0]).detach()
    mg.stack(parts).sum(0).backward(upstream, retain_graph=True)
    assert [g.tolist() for g in kept] == [[3.0, 4.0]] * 4
    assert upstream.tolist() == [3.0, 4.0]
    want = 2 * upstream.numpy() * (y.detach().exp().numpy() + 5)
    np.testing.assert_allclose(x.grad.numpy(), want)


def test_a_backward_without_a_graph_leaves_none():
    x = leaf(2.0)
    (x * x * x).backward(create_graph=True)
    (x * x).backward()
    assert x.grad.item() == 16.0
    assert not x.grad.requires_grad


def test_gradients_with_a_graph_are_each_leafs_own():
    a, b, g = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])
    (a + b).backward(g, create_graph=True)
    with mg.no_grad():
        a.grad.zero_()
    assert (b.grad.tolist(), g.tolist()) == ([5.0, 6.0], [5.0, 6.0])
    assert mg.grad(b.grad.sum(), g)[0].tolist() == [1.0, 1.0]


def test_a_removed_hook_is_not_called():
    x = leaf(2.0)
    y = x * x
    seen = []
    remove = y.register_hook(lambda g: seen.append(g))
    remove()
    remove()
    y.backward()
    assert seen == []


def test_each_of_two_registrations_of_a_hook_is_removed_by_its_own_handle():
    x, seen = mg.tensor(1.0, requires_grad=True), []
    y = x * 2
    for tensor in (x, y):
        first, _ = tensor.register_hook(seen.append), tensor.register_hook(seen.append)
        first.remove()
        first.remove()
    y.backward()
    assert [g.item() for g in seen] == [1, 2]


def test_hooks_and_kept_gradients_are_for_what_requires_grad():
    for method in (lambda x: x.register_hook(print), mg.Tensor.retain_grad):
        with pytest.raises(RuntimeError, match="this tensor does not require grad"):
            method(mg.ones(2))


def recorder(seen, factor=None):
    def hook(g):
        seen.append(g.tolist())
        return None if factor is None else g * factor

    return hook


@pytest.mark.parametrize("graph", [False, True])
def test_hooks_of_a_leaf_see_and_replace_all_that_one_backward_adds(graph):
    x, seen = leaf([1.0, 2.0]), []
    x.grad = leaf([100.0, 100.0]).detach()
    first = x.register_hook(recorder(seen, 10))
    x.register_hook(recorder(seen))
    y = (x * 2).sum() + (x * x).sum() + x[1]
    y.backward(retain_graph=True, create_graph=graph)
    assert seen == [[4.0, 7.0], [40.0, 70.0]]
    assert x.grad.tolist() == [140.0, 170.0]
    assert x.grad.requires_grad is graph
    first.remove()
    y.backward()
    assert seen[2:] == [[4.0, 7.0]]
    assert x.grad.tolist() == [144.0, 177.0]


def test_hooks_of_a_leaf_change_what_grad_returns():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: g * x)
    y = (x * x).sum()
    (g,) = mg.grad(y, x, create_graph=True)
    assert g.tolist() == [2.0, 8.0]
    assert mg.grad(g.sum(), x)[0].tolist() == [4.0, 16.0]  # (2 x^2)' x
    assert x.grad is None


def test_hooks_of_a_leaf_are_called_if_its_gradient_is_wanted():
    x, w, seen = leaf([1.0, 2.0]), leaf([3.0, 4.0]), []
    w.register_hook(recorder(seen))
    y = (x * w).sum()
    y.backward(inputs=x, retain_graph=True)
    mg.grad(y, x, retain_graph=True)
    assert (seen, w.grad) == ([], None)
    y.backward(inputs=[w, x])
    assert seen == [[1.0, 2.0]]


def test_a_hook_is_called_for_a_leaf_alone_and_one_that_came_late():
    x, seen = leaf(2.0), []
    x.register_hook(recorder(seen, 5))
    x.backward()
    assert (x.grad.item(), mg.grad(x, x)[0].item()) == (5.0, 5.0)
    w = leaf(3.0)
    y = w * w
    w.register_hook(recorder(seen))
    y.backward()
    assert seen == [1.0, 1.0, 6.0]


@pytest.mark.parametrize("graph", [False, True])
def test_leaves_that_ceased_to_require_grad_get_none(graph):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = (x + w).sum()
    x.requires_grad_(False)
    y.backward(create_graph=graph)
    assert x.grad is None
    assert w.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("graph", [False, True])
def test_a_leafs_hook_that_fails_changes_no_gradient(graph):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    w.register_hook(lambda g: 3.0)
    with pytest.raises(TypeError, match=r"\[backward\] a hook returned float, not"):
        (x + w).sum().backward(create_graph=graph)
    assert (x.grad, w.grad) == (None, None)
    v = leaf([1.0, 2.0])
    v.register_hook(lambda g: g[:1])
    with pytest.raises(ValueError, match=r"\[backward\] a hook returned float64 of shape \(1,\)"):
        v.sum().backward(create_graph=graph)


def test_gradients_of_leaves_that_hooks_keep_stay_as_they_are():
    a, b, kept = leaf([1.0, 2.0]), leaf([3.0, 4.0]), []
    fixed = mg.ones(2, dtype=mg.float64)
    a.register_hook(kept.append)
    b.register_hook(lambda g: fixed)
    for _ in range(3):
        (a * b).sum().backward()
    assert [g.tolist() for g in kept] == [[3.0, 4.0]] * 3
    assert fixed.tolist() == [1.0, 1.0]
    assert (a.grad.tolist(), b.grad.tolist()) == ([9.0, 12.0], [3.0, 3.0])


def test_gradients_of_parts_come_to_a_leafs_hook_whole():
    x, seen = leaf([1.0, 2.0, 3.0]), []
    x.register_hook(recorder(seen))
    (x[0] * 5).backward()
    assert seen == [[5.0, 0.0, 0.0]]


def test_a_copy_of_a_leaf_has_none_of_its_hooks():
    x, seen = leaf([1.0, 2.0]), []
    x.register_hook(recorder(seen))
    for other in (copy.copy(x), copy.deepcopy(x), x.detach().requires_grad_()):
        other.sum().backward()
    assert not seen


def test_a_hook_that_holds_its_leaf_is_garbage():
    x = leaf(2.0)
    x.register_hook([x].count)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_hooks_must_return_tensors():
    y = leaf(2.0) * 2
    y.register_hook(lambda g: 3.0)
    with pytest.raises(TypeError, match="hook"):
        y.backward()


@pytest.mark.parametrize("wrong", [mg.zeros(2, dtype=mg.float64), mg.zeros(2, 2)])
def test_hooks_must_return_gradients_of_the_same_kind(wrong):
    y = leaf([[1.0, 2.0], [3.0, 4.0]]) @ leaf([[1.0, 2.0], [3.0, 4.0]])
    y.register_hook(lambda g: wrong)
    with pytest.raises(ValueError, match=r"\[matmul\] a hook returned float.. of shape"):
        y.sum().backward()


def test_retain_grad_keeps_what_hooks_make():
    y = leaf(2.0) * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert y.grad.item() == 10.0


def test_retain_grad():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    z = y * 3
    z.backward()
    assert y.grad.item() == 3.0
    assert z.grad is None
    assert x.grad.item() == 12.0
    x.retain_grad()  # nothing to do for a leaf


def test_retain_grad_makes_no_cycle(no_gc):
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    gone = weakref.ref(y)
    del y
    assert gone() is None


def test_backward_by_some_inputs():
    x, w, b = (mg.tensor(v, requires_grad=True) for v in (3.0, 2.0, 1.0))
    h = x * w
    y = h * h + b
    y.backward(retain_graph=True, inputs=[w, w])
    assert (w.grad.item(), x.grad, b.grad, h.grad) == (36.0, None, None, None)
    held = w.grad
    y.backward(retain_graph=True, inputs=w)
    assert held is w.grad
    assert held.item() == 72.0
    y.backward(retain_graph=True, inputs=(h, b))
    assert (h.grad.item(), b.grad.item(), x.grad, w.grad.item()) == (12.0, 1.0, None, 72.0)
    y.backward(inputs=x)
    assert x.grad.item() == 24.0
    with pytest.raises(RuntimeError, match="freed"):
        y.backward(inputs=x)


def test_backward_by_inputs_runs_through_nothing_else():
    """Nodes that reach no input are neither run nor freed, and their hooks see nothing."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seen = []
    beside = w.exp()
    beside.register_hook(seen.append)
    (x.sin() * beside).sum().backward(inputs=x)
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.detach().numpy()) * np.exp([3.0, 4.0]))
    assert w.grad is None
    assert not seen
    beside.sum().backward()
    assert w.grad is not None


def test_backward_by_inputs_makes_gradients_of_their_own():
    """Two leaves that get the same gradient do not share its memory."""
    a, b, c = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])
    (a + b + c).backward(mg.tensor([1.0, 1.0], dtype=mg.float64), inputs=[a, c])
    a.grad.zero_()
    assert c.grad.tolist() == [1.0, 1.0]
    assert b.grad is None


def test_backward_by_inputs_with_a_graph():
    x, w = mg.tensor(3.0, requires_grad=True), mg.tensor(2.0, requires_grad=True)
    (x**3 * w).backward(create_graph=True, inputs=[x])
    (second,) = mg.grad(x.grad, x)
    assert (x.grad.item(), second.item(), w.grad) == (54.0, 36.0, None)


def test_backward_by_inputs_refuses():
    x, y = leaf([1.0]), mg.tensor([1.0])
    z = (x * 2).sum()
    with pytest.raises(ValueError, match="inputs is empty"):
        z.backward(inputs=[])
    with pytest.raises(RuntimeError, match=r"\[backward\] input 1 does not require grad"):
        z.backward(inputs=[x, y])
    with pytest.raises(TypeError, match=r"\[backward\] input 0 is float"):
        z.backward(inputs=[1.0])
    with pytest.raises(TypeError, match=r"\[backward\] expected a list of tensors"):
        z.backward(inputs=1.0)
    z.backward(inputs=leaf([1.0]))  # it does not depend on that
    assert x.grad is None


def test_a_graph_of_gradients_in_grad_is_a_cycle_and_a_warning_says_so():
    x = mg.tensor(3.0, requires_grad=True)
    with pytest.warns(UserWarning, match="makes a cycle of each leaf and its grad"):
        (x * x).backward(create_graph=True)
    x.grad = None


@pytest.mark.parametrize("graph", [False, True])
def test_backward_of_several_tensors(graph):
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y, z = (x * x).sum(), x * 3.0
    v = mg.tensor([10.0, 100.0])
    mg.autograd.backward([y, z], [None, v], create_graph=graph)
    assert x.grad.tolist() == [32.0, 304.0]
    x.grad = None
    mg.autograd.backward(((x * x).sum(), (x * 3.0).sum()), create_graph=graph)
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad = None
    with pytest.raises(ValueError, match="1 gradients for 2 tensors"):
        mg.autograd.backward([x * 1.0, x * 2.0], [v])
    with pytest.raises(TypeError, match="output 1 is int"):
        mg.autograd.backward([x.sum(), 3])


@pytest.mark.parametrize("lib", ["minigrad", "torch"])
def test_backward_takes_pytorchs_names_and_lists(lib):
    lib = pytest.importorskip(lib)
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    backward, g = lib.autograd.backward, lib.tensor([1.0, 10.0])
    for call in (
        lambda y: backward(tensors=[y], grad_tensors=[g]),
        lambda y: backward(tensors=y, grad_tensors=g),
        lambda y: backward(y, [g]),
        lambda y: backward(y, grad_tensors=(g,)),
        lambda y: backward((y, y.sum() * 0), (g, None)),
        lambda y: backward([y, y], [g * 0.5, g * 0.5], inputs=[x]),
        lambda y: backward((y * g).sum(), [None]),
    ):
        call(x * x)
        assert x.grad.tolist() == [2, 40]
        x.grad = None


def test_a_list_of_numbers_is_a_gradient():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward([1.0, 10.0])
    assert x.grad.tolist() == [2, 40]
    with pytest.raises(TypeError, match=r"\[backward\] gradient and grad_tensors are two names"):
        mg.autograd.backward(x * x, x, grad_tensors=x)


def test_grad_wants_inputs():
    x = mg.tensor(2.0, requires_grad=True)
    with pytest.raises(ValueError, match="no inputs are given"):
        mg.grad(x * x, [])


# ---- results share no memory ---------------------------------------------------------------------


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradients_of_grad_share_no_memory(create_graph):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = (a + b) * 3.0
    first, second, same = mg.grad(y.sum(), [a, b, a], create_graph=create_graph)
    first.mul_(5.0)
    assert first.tolist() == [15.0, 15.0]
    assert second.tolist() == same.tolist() == [3.0, 3.0]


def test_a_copied_gradient_keeps_its_history():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = (a + b) ** 3
    first, second = mg.grad(y.sum(), [a, b], create_graph=True)
    first.mul_(5.0)
    assert mg.grad(second.sum(), a, retain_graph=True)[0].tolist() == [24.0, 36.0]
    assert mg.grad(first.sum(), a)[0].tolist() == [120.0, 180.0]


def test_the_gradients_of_grad_share_no_memory_with_the_one_given():
    a, given = leaf([1.0, 2.0]), mg.ones(2, dtype=mg.float64)
    (g,) = mg.grad(a + 0.0, a, given)
    g.mul_(5.0)
    assert given.tolist() == [1.0, 1.0]


def test_a_given_leaf_that_is_the_gradient_keeps_its_place():
    a, given = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    (g,) = mg.grad(a + 0.0, a, given, create_graph=True)
    assert mg.grad((g * g).sum(), given)[0].tolist() == [2.0, 2.0]
