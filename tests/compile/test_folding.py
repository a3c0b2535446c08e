"""Constant folding: what depends on nothing but constants is computed in the recording."""

from __future__ import annotations

import pytest

import minigrad as mg


def compiled(f, *xs):
    """The compiled function after two calls, which gave what f gives."""
    c = mg.compile(f, fullgraph=True)
    for _ in range(2):
        got, wanted = c(*xs), f(*xs)
        for a, b in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, wanted)], strict=True):
            assert mg.equal(a, b)
    return c


def kernels(c):
    return c.explain().programs[0].kernels


def masked(x):
    mask = mg.tril(mg.ones(3, 3)) == 0
    return x.masked_fill(mask, -1.0)


def positions(x):
    return x + mg.arange(3) * 2.0


def scaled(x):
    return x * (mg.tensor([1.0, 2.0, 3.0]) ** 2).sum()


@pytest.mark.parametrize("function", [masked, positions, scaled])
def test_constants_are_computed_once(function):
    c = compiled(function, mg.ones(3, 3))
    assert sum(kernels(c).values()) == 1


def test_constants_are_not_folded_if_that_is_switched_off():
    c = mg.compile(positions, fullgraph=True, options={"fold_constants": False})
    for _ in range(2):
        assert mg.equal(c(mg.ones(3, 3)), positions(mg.ones(3, 3)))
    assert "arange" in kernels(c)


def test_a_folded_result_is_a_new_array_for_each_call():
    def f(x):
        return x + 1, mg.arange(3) * 2

    c = compiled(f, mg.ones(3))
    first = c(mg.ones(3))[1]
    first.add_(100)
    assert c(mg.ones(3))[1].tolist() == [0, 2, 4]


def test_a_constant_that_is_written_is_not_folded():
    def f(x):
        y = mg.zeros(3)
        y += 1
        z = y * 2
        y += x
        return y, z

    compiled(f, mg.ones(3))


def test_a_view_of_a_constant_that_is_written_is_not_folded():
    def f(x):
        y = mg.tensor([1.0, 2.0, 3.0])
        view = y[1:]
        before = view * 2
        y.add_(x)
        return before, view * 2

    compiled(f, mg.ones(3))


def test_results_that_share_memory_of_a_constant_share_it_in_each_run():
    def f(x):
        y = mg.arange(4) * 1.0
        return y, y[1:], x + 1

    c = mg.compile(f, fullgraph=True)
    for _ in range(3):
        y, view, _ = c(mg.ones(1))
        y[1] = 50.0
        assert view.tolist() == [50.0, 2.0, 3.0]


def test_memory_without_values_is_not_folded():
    def f(x):
        y = mg.empty(3)
        y.copy_(x)
        return y * 2

    assert "empty" not in kernels(compiled(lambda x: mg.ones(3) * x, mg.ones(3)))
    compiled(f, mg.ones(3))


def test_large_constants_are_made_anew():
    c = compiled(lambda x: x + mg.ones(600, 600).cumsum(0), mg.ones(600, 600))
    assert len(kernels(c)) > 1
    assert not c.explain().programs[0].constants


def test_random_numbers_are_not_folded():
    c = mg.compile(lambda x: x * (mg.rand(3) + mg.ones(3) * 2), fullgraph=True)
    x = mg.ones(3)
    with mg.random.fork_rng():
        mg.manual_seed(0)
        first, second = c(x), c(x)
    assert not mg.equal(first, second)


def test_a_folded_constant_is_saved_for_backward():
    def f(x):
        w = mg.arange(3) + 1.0
        return (x * w).exp()

    c = mg.compile(f, fullgraph=True)
    for _ in range(3):
        x, y = [mg.tensor([0.1, 0.2, 0.3], requires_grad=True) for _ in range(2)]
        c(x).sum().backward()
        f(y).sum().backward()
        assert mg.equal(x.grad, y.grad)


def test_a_folded_constant_is_in_a_file(tmp_path):
    c = compiled(scaled, mg.ones(3))
    c.save(tmp_path / "program.mg")
    assert mg.equal(mg.load_program(tmp_path / "program.mg")(mg.ones(3)), scaled(mg.ones(3)))
