"""``autograd.Function``: operations with their own derivative."""

from __future__ import annotations

import gc
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.runtime import native


def leaf(values, dtype=mg.float64):
    return mg.tensor(np.asarray(values, dtype=float), dtype=dtype, requires_grad=True)


def live_bytes():
    return int(native.lib.mg_live_bytes())


class StaticCube(mg.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * ctx.factor * g, None


class Cube(mg.Function):
    def forward(self, x, factor):
        self.save_for_backward(x)
        self.factor = factor
        return x * x * x * factor

    def backward(self, g):
        (x,) = self.saved_tensors
        return 3 * x * x * self.factor * g, None


SPELLINGS = [
    pytest.param(StaticCube.apply, id="static"),
    pytest.param(Cube.apply, id="instance-apply"),
    pytest.param(lambda *args: Cube()(*args), id="instance"),
    pytest.param(lambda *args: StaticCube()(*args), id="static-called"),
]


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_in_both_spellings(cube):
    x = leaf([1.0, 2.0])
    y = cube(x, 2.0)
    assert y.tolist() == [2.0, 16.0]
    assert y.grad_fn.name() in ("StaticCube", "Cube")
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_to_third_order(cube):
    y = x = leaf(2.0)
    y = cube(x, 2.0)
    for expected in (24.0, 24.0, 12.0):
        (y,) = mg.grad(y, x, create_graph=True)
        assert y.item() == expected


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_records_nothing_without_need(cube):
    assert not cube(mg.ones(2), 2.0).requires_grad
    with mg.no_grad():
        assert not cube(leaf([1.0]), 2.0).requires_grad


def test_one_instance_called_twice():
    cube, x, y = Cube(), leaf(1.0), leaf(2.0)
    (cube(x, 1.0) + cube(y, 10.0)).backward()
    assert x.grad.item() == 3.0
    assert y.grad.item() == 120.0


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_watches_what_it_saved(cube):
    x = leaf([1.0, 2.0])
    y = cube(x, 2.0).sum()
    with mg.no_grad():
        x += 1
    with pytest.raises(RuntimeError, match=r"Cube\] .*overwritten in place at .*test_function\.py"):
        y.backward()


@pytest.mark.parametrize("cube", SPELLINGS)
def test_function_is_used_up_and_can_be_retained(cube):
    x = leaf(1.0)
    y = cube(x, 1.0)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 6.0
    with pytest.raises(RuntimeError, match=r"freed at '(Static)?Cube'"):
        y.backward()


class SinCos(mg.Function):
    """Both outputs are saved, and each is the other's derivative."""

    @staticmethod
    def forward(ctx, x):
        s, c = x.sin(), x.cos()
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        return gs * c - gc * s


def test_function_with_several_outputs():
    v = np.array([0.5, 1.0])
    for choose, expected in (
        (lambda s, c: s * c, np.cos(2 * v)),
        (lambda s, c: s, np.cos(v)),
        (lambda s, c: c * 2, -2 * np.sin(v)),
    ):
        x = leaf(v)
        choose(*SinCos.apply(x)).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("materialize", [None, True, False])
def test_outputs_that_were_not_used_have_zeros_or_none(materialize):
    class Four(mg.Function):
        @staticmethod
        def forward(ctx, x):
            if materialize is not None:
                ctx.set_materialize_grads(materialize)
            fixed = x * 0
            ctx.mark_non_differentiable(fixed)
            return x * 2, mg.tensor([1, 2, 3]), fixed, (x * 3).float()[:1]

        @staticmethod
        def backward(ctx, *gradients):
            seen.extend(g if g is None else (g.tolist(), g.dtype) for g in gradients)
            return gradients[0] * 2

    x, seen = leaf([1.0, 2.0]), []
    Four.apply(x)[0].sum().backward()
    assert seen[0] == ([1.0, 1.0], mg.float64)
    unused = ([0, 0, 0], mg.int64), ([0.0, 0.0], mg.float64), ([0.0], mg.float32)
    assert seen[1:] == ([None] * 3 if materialize is False else [*unused])
    assert x.grad.tolist() == [2.0, 2.0]


def test_saved_outputs_can_be_differentiated_again_though_their_tensors_are_gone():
    x = leaf(0.5)
    (g,) = mg.grad(SinCos.apply(x)[0], x, create_graph=True)  # cos
    (g,) = mg.grad(g * x, x, create_graph=True)  # cos - x sin
    assert g.item() == pytest.approx(np.cos(0.5) - 0.5 * np.sin(0.5), rel=1e-14)
    (g,) = mg.grad(g, x)
    assert g.item() == pytest.approx(-2 * np.sin(0.5) - 0.5 * np.cos(0.5), rel=1e-14)


def test_saved_outputs_can_be_differentiated_again():
    x = leaf(0.5)
    s, _ = SinCos.apply(x)
    for expected in (np.cos(0.5), -np.sin(0.5), -np.cos(0.5)):
        (s,) = mg.grad(s, x, create_graph=True)
        assert s.item() == pytest.approx(expected, rel=1e-14)


class Exp(mg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@pytest.mark.parametrize("function", [Exp.apply, lambda x: SinCos.apply(x)[0], mg.exp, mg.sqrt])
def test_a_saved_output_makes_no_cycle(no_gc, function):
    x = leaf(0.5)
    before = live_bytes()
    y = function(x)
    node = weakref.ref(y.grad_fn)
    tensor = weakref.ref(y)
    del y
    assert node() is None
    assert tensor() is None
    assert live_bytes() == before


def test_a_saved_output_after_its_tensor_is_gone():
    x = leaf(0.5)
    z = Exp.apply(x) * 2
    z = z.sum()
    z.backward()
    assert x.grad.item() == pytest.approx(2 * np.exp(0.5), rel=1e-14)


def test_wrong_number_of_gradients():
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(
        RuntimeError, match=r"\[Wrong\] backward returned 1 gradients for 2 arguments"
    ):
        Wrong.apply(leaf(1.0), leaf(2.0)).backward()


def test_wrong_gradients():
    def spoiled(gradient):
        class Spoiled(mg.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return gradient

        return Spoiled.apply(leaf([1.0, 2.0])).sum()

    with pytest.raises(RuntimeError, match=r"\[Spoiled\] .* shape \(3,\) as gradient 0 .* \(2,\)"):
        spoiled(mg.ones(3)).backward()
    with pytest.raises(TypeError, match=r"\[Spoiled\] backward returned float as gradient 0"):
        spoiled(1.0).backward()


def test_function_parts_without_gradients():
    class Pair(mg.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.needs = ctx.needs_input_grad
            largest = x.argmax()
            rounded = x * 0
            ctx.mark_non_differentiable(rounded)
            return x * n, largest, rounded

        @staticmethod
        def backward(ctx, g, *_):
            assert ctx.needs == (True, False)
            return g * 3, None

    x = leaf([1.0, 2.0])
    y, largest, rounded = Pair.apply(x, 3)
    assert y.requires_grad
    assert not largest.requires_grad
    assert not rounded.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_gradients_of_a_function_are_not_shared():
    held = []

    class Add(mg.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            held.append(g * 2)
            return held[-1], held[-1]

    a, b = leaf([1.0]), leaf([1.0])
    Add.apply(a, b).backward()
    (a * 1).backward()
    assert (a.grad.item(), b.grad.item(), held[0].item()) == (3.0, 2.0, 2.0)


def test_function_returning_its_input():
    class Flip(mg.Function):
        """The identity, with the gradient reversed."""

        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = leaf([1.0, 2.0])
    Flip.apply(x).sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]
    assert x.is_leaf


def test_memory_is_flat_with_functions_hooks_and_second_order(no_gc):
    x = leaf([0.5, 0.7])

    def steps(n):
        for _ in range(n):
            s, c = SinCos.apply(x)
            y = s * Exp.apply(c)
            y.register_hook(lambda g: g * 2)
            y.retain_grad()
            (g,) = mg.grad(y.sum(), x, create_graph=True)
            (g * g).sum().backward()
            x.grad = None

    steps(10)
    held, objects = live_bytes(), len(gc.get_objects())
    steps(300)
    assert live_bytes() == held
    assert len(gc.get_objects()) - objects < 10


# ---- what forward keeps outside the tape ---------------------------------------------------------


class Kept(mg.Function):
    """x^3 by an intermediate, kept in one of several ways; its second derivative would be 6 x."""

    how: str

    @staticmethod
    def forward(ctx, x, how):
        square = x * x
        if how == "saved":
            ctx.save_for_backward(square)
        elif how == "attribute":
            ctx.square = square
        elif how == "list":
            ctx.square = [1, {"square": square}]
        elif how == "view of the input":
            ctx.square = x.detach()[:]
        elif how == "object":
            ctx.square = SimpleNamespace(square=square)
        elif how == "function":
            ctx.square = lambda: square
        elif how == "array":
            ctx.square = square.numpy()
        elif how == "numbers":
            ctx.square = square.tolist()
        elif how == "item":
            ctx.square = square.sum().item()
        ctx.how = how
        return square * x

    @staticmethod
    def backward(ctx, g):
        if ctx.how == "saved":
            (square,) = ctx.saved_tensors
        elif ctx.how == "list":
            square = ctx.square[1]["square"]
        elif ctx.how == "view of the input":
            square = ctx.square * ctx.square
        elif ctx.how == "object":
            square = ctx.square.square
        elif ctx.how == "function":
            square = ctx.square()
        elif ctx.how in ("attribute", "item"):
            square = ctx.square
        else:
            square = mg.tensor(ctx.square, mg.float64)
        return 3.0 * square * g, None


class KeptByMethods(mg.Function):
    def forward(self, x, how):
        self.square = x * x
        return self.square * x

    def backward(self, g):
        return 3.0 * self.square * g, None


WAYS = [
    "object",
    "function",
    "saved",
    "attribute",
    "list",
    "view of the input",
    "array",
    "numbers",
    "item",
]


@pytest.mark.parametrize("upstream", ["constant", "on the tape"])
@pytest.mark.parametrize("kind", [Kept, KeptByMethods])
@pytest.mark.parametrize("how", WAYS)
def test_a_second_derivative_through_what_forward_kept_is_refused(how, kind, upstream):
    x = leaf([3.0])
    y = kind.apply(x * 1.0, how)
    y = y.sum() if upstream == "constant" else (y * y).sum()
    (plain,) = mg.grad(y, x, retain_graph=True)
    (g,) = mg.grad(y, x, create_graph=True)
    assert g.tolist() == plain.tolist()
    with pytest.raises(RuntimeError, match="second derivative is not known"):
        mg.grad(g.sum(), x, retain_graph=True)
    with pytest.raises(RuntimeError, match="second derivative is not known"):
        g.sum().backward()


def test_only_a_derivative_that_runs_through_what_was_kept_is_refused():
    x = leaf([3.0])
    v = leaf([2.0])
    (g,) = mg.grad(Kept.apply(x, "attribute"), x, v, create_graph=True)
    assert mg.grad(g.sum(), v)[0].tolist() == [27.0]


class ByConstants(mg.Function):
    """Function that keeps only constants: older values, whole numbers, detached values."""

    scale = mg.tensor([2.0], mg.float64)

    @staticmethod
    def forward(ctx, x, factor):
        assert x.detach().numpy().size == 1  # which leaves the tape, but is not kept
        ctx.save_for_backward(x, ByConstants.scale)
        ctx.factor, ctx.scale, ctx.grid = factor, ByConstants.scale, 3
        ctx.positive = (x > 0).to(x.dtype)
        return mg.tensor(x.detach().numpy() ** 3) * factor * 2.0

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return 3.0 * x * x * ctx.factor * (scale + ctx.scale) / 2 * ctx.positive.detach() * g, None


def test_constants_that_forward_kept_are_no_obstacle():
    x = leaf([3.0])
    (g,) = mg.grad(ByConstants.apply(x, 0.5).sum(), x, create_graph=True)
    assert g.tolist() == [27.0]
    assert mg.grad(g.sum(), x)[0].tolist() == [18.0]


def test_nested_functions_are_refused_or_right():
    class Outer(mg.Function):
        @staticmethod
        def forward(ctx, x, how):
            ctx.save_for_backward(x)
            ctx.how = how
            return x * x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 4.0 * Kept.apply(x, ctx.how) * g, None

    x = leaf([3.0])
    (g,) = mg.grad(Outer.apply(x, "attribute").sum(), x, create_graph=True)
    (second,) = mg.grad(g.sum(), x, create_graph=True)
    assert second.tolist() == [12.0 * 9.0]
    with pytest.raises(RuntimeError, match="second derivative is not known"):
        mg.grad(second.sum(), x)


class Split(mg.Function):
    """x^2 y in the spelling whose forward has no context."""

    @staticmethod
    def forward(x, y):
        return x * x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y = inputs
        assert output.tolist() == (x.detach() * x.detach() * y.detach()).tolist()
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2.0 * x * y * g, x * x * g


def test_setup_context():
    x, y = leaf([3.0]), leaf([5.0])
    first = mg.grad(Split.apply(x, y).sum(), [x, y], create_graph=True)
    assert [g.tolist() for g in first] == [[30.0], [9.0]]
    assert [g.tolist() for g in mg.grad(first[0].sum(), [x, y])] == [[10.0], [6.0]]


def test_once_differentiable():
    class Square(StaticCube):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @mg.autograd.once_differentiable
        def backward(ctx, g):
            assert not mg.is_grad_enabled()
            (x,) = ctx.saved_tensors
            return mg.tensor(2.0 * x.detach().numpy() * g.numpy())

    x, v = leaf([3.0]), leaf([2.0])
    Square.apply(x).backward()
    assert x.grad.tolist() == [6.0]
    (g,) = mg.grad(Square.apply(x), x, v, create_graph=True)
    assert g.tolist() == [12.0]
    for wanted in (x, v):
        with pytest.raises(RuntimeError, match="once_differentiable"):
            mg.grad(g.sum(), wanted, retain_graph=True)


class ReluInPlace(mg.Function):
    @staticmethod
    def forward(ctx, x):
        x.relu_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (y > 0)


def test_mark_dirty_gives_the_input_itself_a_new_history():
    x = leaf([-1.0, 2.0, 3.0])
    h = x * 1.0
    view = h[1:]
    y = ReluInPlace.apply(h)
    assert y is h
    assert y.grad_fn.name() == "ReluInPlace"
    ((y * y).sum() + view.sum()).backward()
    assert x.grad.tolist() == [0.0, 5.0, 7.0]
    part = (z := x * 1.0)[:2]
    ReluInPlace.apply(part)
    assert mg.grad((z * z).sum(), x)[0].tolist() == [0.0, 4.0, 6.0]
    assert ReluInPlace.apply(mg.tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        ReluInPlace.apply(x)


def test_mark_dirty_wants_what_is_returned():
    class Wrong(ReluInPlace):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x + 1.0

    with pytest.raises(RuntimeError, match="mark_dirty"):
        Wrong.apply(leaf([1.0]) * 1.0)


class Nests(mg.Function):
    """The identity, whose backward runs another one, to a depth."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x + 0.0

    @staticmethod
    def backward(ctx, g):
        if ctx.depth:
            with mg.enable_grad():
                x = leaf(1.0)
                Nests.apply(x, ctx.depth - 1).backward()
            g = g * x.grad
        return g, None


@pytest.mark.parametrize("limit", [1000, 1_000_000])
def test_backwards_that_run_inside_one_another_without_end_are_an_error(limit):
    before = sys.getrecursionlimit()
    x = leaf(2.0)
    Nests.apply(x, 20).backward()
    assert x.grad.item() == 1.0
    sys.setrecursionlimit(limit)
    try:
        with pytest.raises(RecursionError):
            Nests.apply(x, 100_000).backward()
    finally:
        sys.setrecursionlimit(before)
    Nests.apply(x, 20).backward()  # and it goes on
    assert x.grad.item() == 2.0


class LeavesInBackward(mg.Function):
    """x^3, with a backward that computes with numbers."""

    @staticmethod
    def forward(ctx, x, read):
        ctx.save_for_backward(x)
        ctx.read = read
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * ctx.read(x) * g, None


class OutputAsAttribute(mg.Function):
    @staticmethod
    def forward(ctx, x, _):
        ctx.y = x.exp()
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return ctx.y * g, None


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        (LeavesInBackward, lambda x: x.item() ** 2),
        (LeavesInBackward, lambda x: (x * x).sum().item()),
        (LeavesInBackward, lambda x: mg.tensor(x.detach().numpy() ** 2)),
        (LeavesInBackward, lambda x: mg.tensor(x.tolist(), mg.float64) * x),
        (OutputAsAttribute, None),
    ],
)
def test_a_second_derivative_through_values_that_left_in_backward_is_refused(kind, read):
    x = leaf([3.0])
    (g,) = mg.grad(kind.apply(x, read).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivative is not known"):
        mg.grad(g.sum(), x)


# ---- what is kept and written later --------------------------------------------------------------

elsewhere = {}


class KeptInGlobal(mg.Function):
    """x^3, with an intermediate in a global variable or the class."""

    square = None

    @staticmethod
    def forward(ctx, x, how):
        square = x * x
        ctx.how = how
        ctx.save_for_backward(x)
        elsewhere.clear()
        KeptInGlobal.square = None
        if how in ("global", "helper"):
            elsewhere["square"] = square
        elif how == "class":
            KeptInGlobal.square = square
        return square * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if ctx.how == "saved":
            return 3.0 * x * x * g, None
        if ctx.how == "class":
            return 3.0 * KeptInGlobal.square * g, None
        return 3.0 * kept_square() * g, None


def kept_square():
    return elsewhere["square"]


@pytest.mark.parametrize("how", ["global", "class", "helper"])
def test_a_second_derivative_through_what_forward_left_outside_is_refused(how):
    x = leaf([3.0])
    (g,) = mg.grad(KeptInGlobal.apply(x, how).sum(), x, create_graph=True)
    assert g.tolist() == [27.0]
    with pytest.raises(RuntimeError, match="second derivative is not known"):
        mg.grad(g.sum(), x)


def test_global_constants_are_no_obstacle_to_a_second_derivative():
    x = leaf([3.0])
    (g,) = mg.grad(KeptInGlobal.apply(x, "saved").sum(), x, create_graph=True)
    assert mg.grad(g.sum(), x)[0].tolist() == [18.0]


class KeepsGradient(mg.Function):
    """x + y, with a backward that keeps the gradient it is given, or what it returns."""

    @staticmethod
    def forward(ctx, x, y, box, made):
        ctx.box, ctx.made = box, made
        return x + y

    @staticmethod
    def backward(ctx, g):
        g = g * 1.0 if ctx.made else g
        ctx.box.append(g)
        return g, g, None, None


def keep_by_hook(c, box):
    c.register_hook(box.append)


def keep_returned_by_hook(c, box):
    def hook(g):
        box.append(g * 1.0)
        return box[-1]

    c.register_hook(hook)


def keep_by_node(c, box):
    def hook(inputs, outputs):
        box.extend(inputs + outputs)
        return inputs

    c.grad_fn.register_hook(hook)


def keep_before_node(c, box):
    def hook(outputs):
        box.extend(outputs)
        return outputs

    c.grad_fn.register_prehook(hook)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "keep",
    [keep_by_hook, keep_returned_by_hook, keep_by_node, keep_before_node, False, True],
)
def test_a_kept_gradient_that_is_written_later_changes_no_other(keep, create_graph):
    x, y, box = leaf([3.0, 1.0]), leaf([1.0, 1.0]), []
    b = x * 2.0
    if isinstance(keep, bool):
        c = KeepsGradient.apply(b, y, box, keep)
    else:
        c = b + y
        keep(c, box)

    def write(g):
        for kept in box:
            kept.mul_(100.0)

    b.register_hook(write)
    dx, dy, dc = mg.grad((c * c).sum(), [x, y, c], create_graph=create_graph)
    assert dx.tolist() == [28.0, 12.0]
    assert dy.tolist() == [14.0, 6.0]
    assert dc.tolist() == [14.0, 6.0]
    assert box


def test_mark_dirty_of_a_view_made_under_no_grad_is_refused():
    base = leaf([1.0, 2.0]) * 1.0
    with mg.no_grad():
        part = base[:1]
        assert Dirty.apply(part) is part
    with pytest.raises(RuntimeError, match="made under no_grad"):
        Dirty.apply(part)


class Dirty(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3.0)

    @staticmethod
    def backward(ctx, g):
        return 3.0 * g


class Same(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x, x * 2.0

    @staticmethod
    def backward(ctx, g, h):
        return g + 2.0 * h


def test_an_input_returned_under_no_grad_has_no_history():
    x = leaf([3.0])
    with mg.no_grad():
        y, z = Same.apply(x)
        w = Dirty.apply(x)
    assert [r.requires_grad for r in (y, z, w)] == [False] * 3
    assert x.requires_grad
    assert w.tolist() == x.tolist() == [9.0]
    (w * x).sum().backward()
    assert x.grad.tolist() == [9.0]


def test_integer_gradients_are_refused():
    class Steps(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g > 0

    x = leaf([1.0, 2.0])
    text = r"\[Steps\] backward returned bool as gradient 0 for a float64 argument"
    with pytest.raises(TypeError, match=text):
        Steps.apply(x).sum().backward()
    assert x.grad is None


def test_gradients_of_another_float_dtype_are_cast():
    class Wide(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.double() * 2

    x = mg.ones(2, requires_grad=True)
    Wide.apply(x).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (mg.float32, [2, 2])


@pytest.mark.parametrize("materialize", [True, False])
def test_outputs_that_are_no_tensors_pass_through(materialize):
    seen = []

    class Mixed(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, None, "text", x * 3

        @staticmethod
        def backward(ctx, *upstream):
            seen.append([None if g is None else g.tolist() for g in upstream])
            return upstream[0] * 2

    x = leaf([1.0, 2.0])
    y, nothing, text, _ = Mixed.apply(x)
    assert (nothing, text) == (None, "text")
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert seen == [[[1, 1], None, None, [0, 0] if materialize else None]]
    with mg.no_grad():
        assert Mixed.apply(x)[2] == "text"


def test_a_forward_without_tensors_is_an_error():
    class Number(mg.Function):
        @staticmethod
        def forward(ctx, x, kind):
            return x.sum().item() if kind else ()

        @staticmethod
        def backward(ctx, g):
            return g, None

    for kind, text in ((1, "float"), (0, "nothing")):
        with pytest.raises(TypeError, match=rf"\[Number\] forward returned {text} as output 0"):
            Number.apply(leaf([1.0]), kind)


def test_only_tensors_are_saved():
    class Saves(mg.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x, None, n)
            return x * n

    text = r"\[Saves\] save_for_backward takes tensors or None, not int: keep it as an attribute"
    with pytest.raises(TypeError, match=text):
        Saves.apply(leaf([1.0]), 3)


class SineByNumPy(mg.Function):
    """The sine by arrays, whose backward applies another Function."""

    @staticmethod
    def forward(ctx, x, quarters):
        ctx.save_for_backward(x)
        ctx.quarters = quarters
        return mg.tensor(np.sin(x.detach().numpy() + quarters * np.pi / 2))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * SineByNumPy.apply(x, ctx.quarters + 1), None


def test_a_backward_that_applies_a_function_has_derivatives_of_any_order():
    x = mg.tensor([0.3, 1.1], dtype=mg.float64, requires_grad=True)
    y = SineByNumPy.apply(x, 0)
    for want in (x.cos(), -x.sin(), -x.cos()):
        (y,) = mg.grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(y.tolist(), want.tolist(), rtol=1e-12)
    assert mg.gradgradcheck(lambda x: SineByNumPy.apply(x, 0), (x,))


def test_values_that_leave_a_backward_beside_a_function_are_not_known():
    class Mixed(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin() * 1

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            SineByNumPy.apply(x, 0)
            return g * mg.tensor(np.cos(x.detach().numpy()))

    x = mg.tensor([0.3, 1.1], dtype=mg.float64, requires_grad=True)
    (g,) = mg.grad(Mixed.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"\[Mixed\] the second derivative is not known"):
        mg.grad(g.sum(), x)


@pytest.mark.parametrize("way", ["closure", "attribute", "kept", "custom_vjp"])
def test_what_a_function_gets_beside_its_arguments_is_not_known(way):
    """The second derivative would lack the part by x."""

    class Outer(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin() * 1

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors

            class Inner(mg.Function):
                @staticmethod
                def forward(ctx, g):
                    held = x if way == "closure" else ctx.held
                    return mg.tensor(g.detach().numpy() * np.cos(held.detach().numpy()))

                @staticmethod
                def backward(ctx, gg):
                    return gg * x.cos()

            class ByAttribute(mg.Function):
                held = x

                @staticmethod
                def forward(ctx, g):
                    return mg.tensor(g.detach().numpy() * np.cos(ctx.held.detach().numpy()))

                @staticmethod
                def backward(ctx, gg):
                    return gg * ctx.held.cos()

            class ByContext(mg.Function):
                @staticmethod
                def forward(ctx, g):
                    return mg.tensor(g.detach().numpy() * np.cos(ctx.held.detach().numpy()))

                @staticmethod
                def backward(ctx, gg):
                    return gg * ctx.held.cos()

            if way == "closure":
                return Inner.apply(g)
            if way == "attribute":
                return ByAttribute.apply(g)
            if way == "kept":
                made = ByContext()
                made.held = x
                return made(g)
            by_arrays = mg.func.custom_vjp(
                lambda g: g * np.cos(x.detach().numpy()), lambda gg, g: gg * np.cos(x.tolist())
            )
            return by_arrays(g)

    x = leaf([0.3, 1.1])
    (g,) = mg.grad(Outer.apply(x).sin().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="the second derivative is not known"):
        mg.grad(g.sum(), x)
