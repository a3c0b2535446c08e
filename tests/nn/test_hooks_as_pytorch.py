"""Hooks of modules, of all modules and of leaves: called when PyTorch calls them, with the same."""

from __future__ import annotations

import collections
import warnings

import numpy as np
import pytest

import minigrad as mg

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.usefixtures("restore_random"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
]

Pair = collections.namedtuple("Pair", "a b")


def plain(x):
    """Tensors as lists, inside tuples and lists too."""
    if isinstance(x, (tuple, list)):
        return tuple(plain(y) for y in x)
    return np.round(x.detach().numpy(), 5).tolist() if hasattr(x, "detach") else x


class Case:
    """What a case needs of either library: ``m`` is it, and ``seen`` a list for hooks."""

    def __init__(self, m):
        self.m, self.seen = m, []

    def leaf(self, requires_grad=True):
        return self.m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=requires_grad)

    def linear(self):
        layer = self.m.nn.Linear(2, 2)
        with self.m.no_grad():
            layer.weight.copy_(self.m.tensor([[1.0, 2.0], [3.0, -1.0]]))
            layer.bias.copy_(self.m.tensor([0.5, -0.5]))
        return layer

    def module(self, forward):
        class Made(self.m.nn.Module):
            def forward(self, *args, **kwargs):
                return forward(*args, **kwargs)

        return Made()

    def note(self, *what):
        self.seen.append(plain(what))

    def grad(self, *args):
        return (mg if self.m is mg else torch.autograd).grad(*args)


def order(c):
    layer = c.linear()
    handles = [
        layer.register_full_backward_hook(lambda m, i, o, k=k: c.note(k, i, o), prepend=k == 2)
        for k in range(3)
    ]
    layer.register_full_backward_pre_hook(lambda m, o: c.note("pre 0", o))
    layer.register_full_backward_pre_hook(lambda m, o: c.note("pre 1", o), prepend=True)
    x = c.leaf()
    layer(x).sum().backward()
    handles[0].remove()
    layer(x).sum().backward()
    return x.grad, layer.weight.grad


def replaced(c):
    layer = c.linear()
    layer.register_full_backward_pre_hook(lambda m, o: (o[0] * 2,))
    layer.register_full_backward_hook(lambda m, i, o: (c.note(i, o), (i[0] * 10,))[1])
    x = c.leaf()
    layer(x).sum().backward()
    return x.grad, layer.weight.grad


def no_input_requires_grad(c):
    layer = c.linear()
    layer.register_full_backward_hook(lambda m, i, o: c.note(i, o))
    layer.register_full_backward_pre_hook(lambda m, o: c.note("pre", o))
    layer(c.leaf(False)).sum().backward()
    return layer.weight.grad


def a_gradient_for_an_input_without(c):
    layer = c.linear()
    layer.register_full_backward_hook(lambda m, i, o: (o[0],))
    with pytest.raises(RuntimeError, match="no input requires grad"):
        layer(c.leaf(False)).sum().backward()


def several(c):
    double = c.module(lambda x, y, k=2: (x * k + y, x * y))
    double.register_full_backward_hook(lambda m, i, o: c.note(i, o))
    x, y = c.leaf(), c.leaf()
    a, b = double(x, y, k=3)
    (a.sum() + b.sum()).backward()
    double(x, y)[1].sum().backward()
    return x.grad, y.grad


def named(c):
    pair = c.module(lambda x: Pair(x * 2, x * 3))
    pair.register_full_backward_hook(lambda m, i, o: c.note(i, o))
    x = c.leaf()
    made = pair(x)
    (made.a + made.b).sum().backward()
    return type(made).__name__, x.grad


def by_grad(c):
    layer = c.linear()
    layer.register_full_backward_hook(lambda m, i, o: c.note(i, o))
    x = c.leaf()
    return c.grad(layer(x).sum(), x), c.grad(layer(x).sum(), layer.weight)


def one_module_twice(c):
    layer = c.linear()
    layer.register_full_backward_hook(lambda m, i, o: c.note(i, o))
    x = c.leaf()
    y = (layer(x) + layer(x * 2)).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


def identity_and_no_grad(c):
    same = c.module(lambda x: x)
    same.register_full_backward_hook(lambda m, i, o: c.note(i, o))
    x = c.leaf()
    same(x).sum().backward()
    with c.m.no_grad():
        y = same(x)
    return x.grad, y.requires_grad


def keywords(c):
    f = c.module(lambda x, k=1: x * k)
    f.register_forward_pre_hook(
        lambda m, args, kw: ((args[0] + 1,), {"k": kw["k"] + 1}), with_kwargs=True
    )
    f.register_forward_pre_hook(lambda m, args: c.note("plain", args))
    f.register_forward_hook(
        lambda m, args, kw, out: (c.note(args, sorted(kw.items()), out), out * 2)[1],
        with_kwargs=True,
    )
    f.register_forward_hook(lambda m, args, out: c.note("plain", args, out))
    return f(c.leaf(), k=2)


def always(c):
    def fail(x):
        raise ValueError("no")

    f = c.module(fail)
    f.register_forward_hook(lambda m, a, o: c.note("never"))
    f.register_forward_hook(lambda m, a, o: c.note("always", o), always_call=True)
    f.register_forward_hook(
        lambda m, a, k, o: c.note("kw", k, o), always_call=True, with_kwargs=True
    )
    with pytest.raises(ValueError, match="no"):
        f(1)


def always_after_a_hook_that_fails(c):
    def fail(m, a, o):
        c.note("fails")
        raise KeyError("hook")

    layer = c.linear()
    layer.register_forward_hook(lambda m, a, o: c.note("before"), always_call=True)
    layer.register_forward_hook(fail)
    layer.register_forward_hook(lambda m, a, o: c.note("after", o), always_call=True)
    with pytest.raises(KeyError):
        layer(c.leaf())
    layer = c.linear()
    layer.register_forward_pre_hook(lambda m, a: fail(m, a, None))
    layer.register_forward_hook(lambda m, a, o: c.note("after", o), always_call=True)
    with pytest.raises(KeyError):
        layer(c.leaf())


def always_that_fails_itself(c):
    def fail(x):
        raise ValueError("first")

    def fail_too(m, a, o):
        c.note("fails")
        raise KeyError("second")

    f = c.module(fail)
    f.register_forward_hook(fail_too, always_call=True)
    f.register_forward_hook(lambda m, a, o: c.note("after"), always_call=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="first"):
            f(1)
    return len(told)


def all_modules(c):
    where, name = c.m.nn.modules.module, lambda m: type(m).__name__
    model = c.m.nn.Sequential(c.linear(), c.m.nn.ReLU())
    model[0].register_full_backward_hook(lambda m, i, o: c.note("own"))
    model[0].register_full_backward_pre_hook(lambda m, o: c.note("own pre"))
    model[0].register_forward_hook(lambda m, a, o: c.note("own forward"))
    handles = [
        where.register_module_forward_pre_hook(lambda m, a: c.note("pre", name(m), a)),
        where.register_module_forward_hook(
            lambda m, a, k, o: c.note("post", name(m), a, k, o), with_kwargs=True
        ),
        where.register_module_full_backward_hook(lambda m, i, o: c.note("back", name(m), i, o)),
        where.register_module_full_backward_pre_hook(lambda m, o: c.note("back pre", name(m), o)),
    ]
    x = c.leaf()
    try:
        model(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    model[1](x)
    return x.grad


def leaves(c):
    x = c.leaf()
    handle = x.register_post_accumulate_grad_hook(lambda t: c.note(t is x, t.grad))
    x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    y = c.leaf()

    def drop(t):
        c.note("drop")
        t.grad = None

    y.register_post_accumulate_grad_hook(drop)
    (y * y).sum().backward()
    (y * y).sum().backward()
    return x.grad, y.grad


def removed_while_called(c):
    layer = c.linear()

    def once(m, a, o):
        c.note("once")
        first.remove()

    first = layer.register_forward_hook(once)
    layer(c.leaf())
    layer(c.leaf())
    with layer.register_forward_hook(lambda m, a, o: c.note("within")):
        layer(c.leaf())
    layer(c.leaf())
    with c.leaf().register_hook(lambda g: g) as handle:
        return handle is not None


CASES = [order, replaced, no_input_requires_grad, several, named, by_grad, one_module_twice]
CASES += [identity_and_no_grad, keywords, always, always_after_a_hook_that_fails]
CASES += [always_that_fails_itself, all_modules, leaves, removed_while_called]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_hooks_are_called_as_pytorchs(case):
    found = []
    for library in (mg, torch):
        c = Case(library)
        found.append((plain(case(c)), c.seen))
    ours, theirs = found
    assert ours == theirs
    assert ours[1]


def test_a_gradient_that_nothing_could_get_is_refused():
    a_gradient_for_an_input_without(Case(mg))
