"""The graph as programs see it: neighbours, names, metadata, saved tensors, hooks of nodes."""

import gc
import weakref

import pytest

import minigrad as mg


def leaf(values):
    return mg.tensor(values, dtype=mg.float64, requires_grad=True)


class Swapped(mg.Function):
    """Two outputs: both inputs, doubled, in the other order."""

    @staticmethod
    def forward(ctx, a, b):
        return b * 2, a * 2

    @staticmethod
    def backward(ctx, ga, gb):
        return gb * 2, ga * 2


# ---- neighbours ----------------------------------------------------------------------------------


def test_next_functions_are_pairs_down_to_the_leaves():
    x = leaf([1.0, 2.0])
    y = (x * x + 1).sum()
    assert repr(y.grad_fn) == "<sum>"
    ((add, place),) = y.grad_fn.next_functions
    assert (add.name(), place) == ("add", 0)
    (mul, _), (none, _) = add.next_functions
    assert none is None
    (first, _), (second, _) = mul.next_functions
    assert first is second
    assert first.variable is x
    assert (first.name(), repr(first), first.next_functions) == (
        "AccumulateGrad",
        "<AccumulateGrad>",
        (),
    )
    assert mul.next_functions[0][0] is first
    y.backward()
    assert y.grad_fn.next_functions == ()


def test_a_walk_over_the_graph_as_drawing_programs_do_it():
    w, b = leaf([[1.0, 2.0]]), leaf([3.0])
    loss = ((mg.ones(4, 2, dtype=mg.float64) @ w.T + b).tanh() ** 2).mean()
    seen, found = set(), []

    def walk(fn):
        if fn in seen:
            return
        seen.add(fn)
        if hasattr(fn, "variable"):
            found.append(fn.variable)
        for below, place in fn.next_functions:
            assert place == 0
            if below is not None:
                walk(below)

    walk(loss.grad_fn)
    assert {id(x) for x in found} == {id(w), id(b)}


@pytest.mark.parametrize("lib", ["minigrad", "torch"])
def test_the_graph_of_an_introduction(lib):
    lib = pytest.importorskip(lib)
    a = lib.linspace(0.0, 6.28, 5, requires_grad=True)
    c = 2 * lib.sin(a)
    fn, names = (1 + c).grad_fn, []
    while fn.next_functions:
        names.append(fn.name().removesuffix("Backward0").lower())
        fn = fn.next_functions[0][0]
    assert names == ["add", "mul", "sin"]
    assert fn.variable is a
    seen = []
    c.grad_fn.register_hook(lambda ins, outs: seen.append([g if g is None else 1 for g in ins]))
    c.sum().backward()
    assert seen == [[1, None]]


@pytest.mark.usefixtures("no_gc")
def test_the_end_at_a_leaf_holds_it_and_goes():
    x = leaf(1.0)
    end, gone = (x * 2).grad_fn.next_functions[0][0], weakref.ref(x)
    del x
    assert gone() is end.variable
    del end
    assert gone() is None


def test_leaves_whose_place_in_memory_is_the_same_have_ends_of_their_own():
    for value in range(50):
        x = leaf(float(value))
        assert (x * 2).grad_fn.next_functions[0][0].variable is x


# ---- metadata and saved values -------------------------------------------------------------------


def test_metadata_is_a_dict_of_each_node():
    x = leaf(2.0)
    a, b = (x * 2).grad_fn, (x * 3).grad_fn
    a.metadata["note"] = 1
    assert (a.metadata, b.metadata) == ({"note": 1}, {})
    end = a.next_functions[0][0]
    end.metadata["note"] = 2
    assert b.next_functions[0][0].metadata == {"note": 2}


def test_saved_values():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    assert (x * w).grad_fn._saved_self.tolist() == [1, 2]
    assert (x * w).grad_fn._saved_other.tolist() == [3, 4]
    assert (2 * x).grad_fn._saved_other.item() == 2
    assert not hasattr((2 * x).grad_fn, "_saved_self")
    y = x.exp()
    assert mg.equal(y.grad_fn._saved_result, y)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert not hasattr(y.grad_fn, "_saved_self")
    assert not hasattr(x.sum().grad_fn, "_saved_result")
    with pytest.raises(AttributeError, match="the node of 'exp' has no attribute '_saved_self'"):
        y.grad_fn._saved_self  # noqa: B018
    y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn._saved_result  # noqa: B018


# ---- hooks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_sees_and_replaces_the_gradients_of_the_inputs(create_graph):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * w
    seen = []

    def hook(grad_inputs, grad_outputs):
        seen.append([g.tolist() for g in (*grad_inputs, *grad_outputs)])
        return grad_inputs[0] * 10, grad_inputs[1]

    handle = y.grad_fn.register_hook(hook)
    assert y.grad_fn.name() == "mul"
    got = mg.grad(y.sum(), [x, w], create_graph=create_graph, retain_graph=True)
    assert seen == [[[3, 4], [1, 2], [1, 1]]]
    assert [g.tolist() for g in got] == [[30, 40], [1, 2]]
    if create_graph:  # d(10 w + x) by x and w
        again = mg.grad(got[0].sum() + got[1].sum(), [x, w], retain_graph=True)
        assert [g.tolist() for g in again] == [[1, 1], [10, 10]]
    handle.remove()
    handle.remove()
    got = mg.grad(y.sum(), [x, w])
    assert [g.tolist() for g in got] == [[3, 4], [1, 2]]


def test_a_hook_sees_gradients_in_the_shape_of_the_inputs():
    x, b = leaf([[1.0, 2.0], [3.0, 4.0]]), mg.tensor([1.0, 1.0], requires_grad=True)
    y = x + b
    seen = []
    y.grad_fn.register_hook(lambda ins, outs: seen.extend([(g.shape, g.dtype) for g in ins]))
    y.sum().backward()
    assert seen == [((2, 2), mg.float64), ((2,), mg.float32)]
    assert b.grad.tolist() == [2, 2]
    z = leaf([1.0, 2.0, 3.0])[1:]  # its gradient is that of a slice
    z.grad_fn.register_hook(lambda ins, outs: seen.append(ins[0].tolist()))
    z.sum().backward()
    assert seen[-1] == [0, 1, 1]


def test_a_prehook_replaces_the_gradient_of_the_output():
    x = leaf([1.0, 2.0])
    y = x * 3
    order = []
    y.register_hook(lambda g: order.append(("tensor", g.tolist())))
    first = y.grad_fn.register_prehook(lambda gs: order.append(("first", gs[0].tolist())))
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_hook(lambda ins, outs: order.append(("after", outs[0].tolist())))
    y.sum().backward(retain_graph=True)
    assert order == [("tensor", [1, 1]), ("first", [1, 1]), ("after", [2, 2])]
    assert x.grad.tolist() == [6, 6]
    first.remove()
    order.clear()
    y.sum().backward()
    assert [name for name, _ in order] == ["tensor", "after"]


def test_hooks_may_write_over_their_copies():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x + w

    def spoil(*groups):
        for g in [g for group in groups for g in group]:
            g.zero_()

    y.grad_fn.register_prehook(spoil)
    y.grad_fn.register_hook(spoil)
    y.sum().backward()
    assert x.grad.tolist() == w.grad.tolist() == [1, 1]


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_nodes_of_a_function_share_hooks(create_graph):
    a, b = leaf([1.0]), leaf([2.0])
    p, q = Swapped.apply(a, b)
    seen = []
    p.grad_fn.register_prehook(lambda gs: seen.append([g and g.tolist() for g in gs]))
    p.grad_fn.register_prehook(lambda gs: (gs[0] * 5, gs[1]))
    q.grad_fn.register_hook(lambda ins, outs: (ins[0], ins[1] + 1))
    got = mg.grad(p.sum(), [a, b], create_graph=create_graph, retain_graph=True)
    assert seen == [[[1], None]]
    assert [g.tolist() for g in got] == [[0], [11]]
    got = mg.grad((p * q).sum(), [a, b])
    assert [g.tolist() for g in got] == [[8], [2 * 2 * 5 + 1]]


def test_a_prehook_of_a_leaf_changes_what_is_added():
    x = leaf([1.0, 2.0])
    y = x * 3
    end = y.grad_fn.next_functions[0][0]
    handle = end.register_prehook(lambda gs: (gs[0] * 2,))
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [6, 6]
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [9, 9]


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (1, TypeError, "[mul] a hook returned int, not a tuple of Tensors or None"),
        ((1, None), TypeError, "[mul] a hook returned int as gradient 0, not a Tensor"),
        ((None,), ValueError, "[mul] a hook returned 1 gradients for 2"),
        (
            (mg.ones(3), None),
            ValueError,
            "[mul] a hook returned float32 of shape (3,) as gradient 0, which is float64 of shape "
            "(2,)",
        ),
    ],
)
def test_what_a_hook_may_not_return(returned, error, message):
    y = leaf([1.0, 2.0]) * 2
    y.grad_fn.register_hook(lambda ins, outs: returned)
    with pytest.raises(error) as caught:
        y.sum().backward()
    assert str(caught.value) == message


def test_a_hook_can_stop_the_gradient_of_an_input_but_not_of_the_output():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * w
    y.grad_fn.register_hook(lambda ins, outs: (None, ins[1]))
    y.sum().backward(retain_graph=True)
    assert x.grad is None
    assert w.grad.tolist() == [1, 2]
    y.grad_fn.register_prehook(lambda gs: (None,))
    with pytest.raises(TypeError, match=r"\[mul\] a hook returned None as gradient 0"):
        y.sum().backward()


def test_what_is_no_hook_and_no_graph():
    y = leaf(1.0) * 2
    for register in (y.grad_fn.register_hook, y.grad_fn.register_prehook):
        with pytest.raises(TypeError, match="a hook is a function, not int"):
            register(1)
    y.backward()
    with pytest.raises(RuntimeError, match="the graph was freed at 'mul'"):
        y.grad_fn.register_hook(lambda ins, outs: None)


def test_a_hook_that_holds_its_result_is_collected():
    y = leaf(1.0) * 2
    y.grad_fn.register_hook(lambda ins, outs, held=y: None)
    gone = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert gone() is None


def test_hooks_see_what_pytorch_shows():
    torch = pytest.importorskip("torch")
    shown = []
    for lib in (mg, torch):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x.exp()
        z = y * y
        log = []
        for tag, node in enumerate((z.grad_fn, y.grad_fn)):
            node.register_prehook(lambda gs, tag=tag, log=log: log.append([tag, *gs[0].tolist()]))
            node.register_hook(
                lambda ins, outs, tag=tag, log=log: log.append(
                    [tag, *ins[0].tolist(), *outs[0].tolist()]
                )
            )
        y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
        y.grad_fn.next_functions[0][0].register_prehook(lambda gs: (gs[0] + 1,))
        z.sum().backward()
        shown.append([*log, x.grad.tolist()])
    for ours, theirs in zip(*shown, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6)
