"""minigrad.optim: against the published formulas in NumPy, and against PyTorch where installed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import _c, nn, optim

STEPS = 20


def _combinations(**options):
    return [
        dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())
    ]


SGD_OPTIONS = [
    o
    for o in _combinations(
        momentum=[0.0, 0.9],
        dampening=[0.0, 0.3],
        weight_decay=[0.0, 0.1],
        nesterov=[False, True],
        maximize=[False, True],
    )
    if not o["nesterov"] or (o["momentum"] and not o["dampening"])
]
ADAM_OPTIONS = _combinations(
    betas=[(0.9, 0.999), (0.5, 0.7)],
    eps=[1e-8, 1e-3],
    weight_decay=[0.0, 0.1],
    amsgrad=[False, True],
    maximize=[False, True],
)

RMSPROP_OPTIONS = _combinations(
    alpha=[0.99, 0.5],
    eps=[1e-8, 1e-3],
    weight_decay=[0.0, 0.1],
    momentum=[0.0, 0.9],
    centered=[False, True],
    maximize=[False, True],
)
OPTIONS = {
    optim.SGD: SGD_OPTIONS,
    optim.Adam: ADAM_OPTIONS,
    optim.AdamW: ADAM_OPTIONS,
    optim.RMSprop: RMSPROP_OPTIONS,
}


def _sgd(p, gradients, lr, momentum, dampening, weight_decay, nesterov, maximize):
    buffer = None
    for g in gradients:
        d = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = d if buffer is None else momentum * buffer + (1 - dampening) * d
            d = d + momentum * buffer if nesterov else buffer
        p = p - lr * d
    return p


def _adam(p, gradients, lr, betas, eps, weight_decay, amsgrad, maximize, decoupled):
    m = v = largest = np.zeros_like(p)
    for step, g in enumerate(gradients, 1):
        d = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            d = d + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * d
        v = betas[1] * v + (1 - betas[1]) * d * d
        largest = np.maximum(largest, v)
        second = (largest if amsgrad else v) / (1 - betas[1] ** step)
        p = p - lr * m / (1 - betas[0] ** step) / (np.sqrt(second) + eps)
    return p


def _rmsprop(p, gradients, lr, alpha, eps, weight_decay, momentum, centered, maximize):
    square = mean = buffer = np.zeros_like(p)
    for g in gradients:
        d = (-g if maximize else g) + weight_decay * p
        square = alpha * square + (1 - alpha) * d * d
        mean = alpha * mean + (1 - alpha) * d
        move = d / (np.sqrt(square - mean**2 if centered else square) + eps)
        buffer = momentum * buffer + move
        p = p - lr * buffer
    return p


def _moved(make, start, gradients):
    """The parameters after a step for each gradient."""
    p = mg.tensor(start, requires_grad=True)
    optimizer = make([p])
    for g in gradients:
        p.grad = mg.tensor(g)
        optimizer.step()
    return p.detach().numpy()


def _problem(rng, dtype=np.float64):
    return (
        rng.standard_normal((3, 5)).astype(dtype),
        rng.standard_normal((STEPS, 3, 5)).astype(dtype),
    )


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", SGD_OPTIONS)
def test_sgd_follows_its_formula(rng, options):
    start, gradients = _problem(rng)
    moved = _moved(lambda p: optim.SGD(p, lr=0.1, **options), start, gradients)
    np.testing.assert_allclose(
        moved, _sgd(start, gradients, 0.1, **options), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("options", ADAM_OPTIONS)
@pytest.mark.parametrize("method", [optim.Adam, optim.AdamW])
def test_adam_follows_its_formula(rng, options, method):
    start, gradients = _problem(rng)
    moved = _moved(lambda p: method(p, lr=0.01, **options), start, gradients)
    expected = _adam(start, gradients, 0.01, **options, decoupled=method is optim.AdamW)
    np.testing.assert_allclose(moved, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("options", RMSPROP_OPTIONS)
def test_rmsprop_follows_its_formula(rng, options):
    start, gradients = _problem(rng)
    moved = _moved(lambda p: optim.RMSprop(p, lr=0.01, **options), start, gradients)
    expected = _rmsprop(start, gradients, 0.01, **options)
    np.testing.assert_allclose(moved, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("method", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_option_agrees_with_pytorch(rng, method, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    start, gradients = _problem(rng, dtype)
    for options in OPTIONS[method]:
        moved = _moved(lambda p, o=options: method(p, lr=0.01, **o), start, gradients)
        q = torch.tensor(start, requires_grad=True)
        theirs = getattr(torch.optim, method.__name__)([q], lr=0.01, **options)
        for g in gradients:
            q.grad = torch.tensor(g)
            theirs.step()
        rtol = 1e-6 if dtype is np.float32 else 1e-12
        np.testing.assert_allclose(
            moved, q.detach().numpy(), rtol=rtol, atol=rtol, err_msg=str(options)
        )


def test_the_defaults_are_pytorchs():
    p = [mg.ones(1, requires_grad=True)]
    assert optim.SGD(p).defaults == {
        "lr": 1e-3,
        "momentum": 0,
        "dampening": 0,
        "weight_decay": 0,
        "nesterov": False,
        "maximize": False,
    }
    adam = {
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0,
        "amsgrad": False,
        "maximize": False,
    }
    assert optim.Adam(p).defaults == adam
    assert optim.AdamW(p).defaults == {**adam, "weight_decay": 1e-2}
    assert optim.RMSprop(p).defaults == {
        "lr": 1e-2,
        "momentum": 0,
        "alpha": 0.99,
        "eps": 1e-8,
        "centered": False,
        "weight_decay": 0,
        "maximize": False,
    }


@pytest.mark.parametrize("size", [0, 1, 7, 1000, 100_001])
@pytest.mark.parametrize("method", [optim.SGD, optim.Adam])
def test_every_size_is_updated_whole(rng, size, method):
    start = rng.standard_normal(size)
    moved = _moved(lambda p: method(p, lr=0.5), start, np.ones((1, size)))
    np.testing.assert_allclose(moved, start - 0.5, rtol=1e-6, atol=1e-7)


def test_numpy_numbers_are_options():
    start = np.ones(2)
    moved = _moved(lambda p: optim.SGD(p, lr=np.float32(0.5)), start, np.ones((1, 2)))
    assert moved.tolist() == [0.5, 0.5]


def test_a_number_and_a_transposed_gradient_are_fine():
    assert _moved(lambda p: optim.SGD(p, lr=0.5, momentum=0.9), 2.0, [1.0]) == 1.5
    p = mg.zeros(2, 3, requires_grad=True)
    p.grad = mg.arange(6.0).reshape(3, 2).T
    optim.SGD([p], lr=1.0).step()
    assert p.tolist() == [[0.0, -2.0, -4.0], [-1.0, -3.0, -5.0]]


# ---- behaviour -----------------------------------------------------------------------------------


def test_parameters_without_gradients_stay():
    a, b = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)
    optimizer = optim.Adam([a, b], lr=0.1)
    (a * 2).sum().backward()
    optimizer.step()
    assert b.tolist() == [1.0, 1.0]
    assert b not in optimizer.state
    np.testing.assert_allclose(a.tolist(), [0.9, 0.9], rtol=1e-6)


def test_zero_grad_forgets_or_sets_to_zero():
    x = mg.ones(2, requires_grad=True)
    optimizer = optim.SGD([x])
    (x * x).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert x.grad is None


def test_a_step_is_not_recorded_and_keeps_the_grad_mode():
    x = mg.ones(2, requires_grad=True)
    optimizer = optim.SGD([x], lr=0.5)
    (x * x).sum().backward()
    optimizer.step()
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == [0.0, 0.0]
    assert mg.is_grad_enabled()


def test_a_saved_parameter_that_was_updated_is_noticed():
    x = mg.ones(2, requires_grad=True)
    optimizer = optim.SGD([x], lr=0.5)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="overwritten"):
        y.backward()


def test_a_closure_gives_the_loss_and_the_gradients():
    x = mg.tensor(3.0, requires_grad=True)
    optimizer = optim.SGD([x], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = x * x
        loss.backward()
        return loss

    with mg.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert x.item() == 1.5
    assert optimizer.step() is None


def test_groups_have_their_own_options():
    a, b = mg.ones(1, requires_grad=True), mg.ones(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.5)
    c = mg.ones(1, requires_grad=True)
    optimizer.add_param_group({"params": [c], "lr": 0.0})
    for p in (a, b, c):
        p.grad = mg.ones(1)
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == [0.5, 0.0, 1.0]
    optimizer.param_groups[0]["lr"] = 2.0  # as a schedule does
    optimizer.step()
    assert a.item() == -1.5
    assert "lr=2.0" in repr(optimizer)


@pytest.mark.usefixtures("restore_random")
def test_a_model_learns():
    mg.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    x = mg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    t = mg.tensor([[0.0], [1.0], [1.0], [0.0]])
    optimizer = optim.Adam(net.parameters(), lr=0.05)
    for _ in range(300):
        loss = nn.functional.mse_loss(net(x), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3


# ---- state ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
        lambda p: optim.AdamW(p, lr=0.1),
        lambda p: optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    ],
)
def test_training_goes_on_from_a_saved_state(rng, make):
    start, gradients = _problem(rng)
    whole = _moved(make, start, gradients)
    p = mg.tensor(start, requires_grad=True)
    optimizer = make([p])
    for g in gradients[:7]:
        p.grad = mg.tensor(g)
        optimizer.step()
    q = mg.tensor(p, requires_grad=True)
    other = make([q])
    other.param_groups[0]["lr"] = 99.0
    other.load_state_dict(optimizer.state_dict())
    p.grad = mg.tensor(gradients[0])
    optimizer.step()  # the state was copied: this must not matter
    for g in gradients[7:]:
        q.grad = mg.tensor(g)
        other.step()
    assert q.tolist() == whole.tolist()


def test_a_state_has_pytorchs_form():
    p = mg.ones(2, requires_grad=True)
    optimizer = optim.Adam([p], amsgrad=True)
    p.grad = mg.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    assert set(state) == {"state", "param_groups"}
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
    assert state["state"][0]["step"] == 1
    assert state["param_groups"][0]["params"] == [0]


def test_the_state_of_rmsprop_has_pytorchs_names():
    p = mg.ones(2, requires_grad=True)
    optimizer = optim.RMSprop([p], momentum=0.9, centered=True)
    p.grad = mg.ones(2)
    optimizer.step()
    names = {"step", "square_avg", "momentum_buffer", "grad_avg"}
    assert set(optimizer.state_dict()["state"][0]) == names
    plain = optim.RMSprop([p])
    plain.step()
    assert set(plain.state[p]) == {"step", "square_avg"}


@pytest.mark.parametrize("method", OPTIONS)
def test_parameters_in_one_call_move_as_each_alone(rng, method):
    options = {} if method in (optim.Adam, optim.AdamW) else {"momentum": 0.9}
    starts = [
        rng.standard_normal(s).astype(d)
        for s, d in (((3,), np.float32), ((), np.float64), ((70_000,), np.float32), ((0, 2), "f8"))
    ]
    gradients = [[rng.standard_normal(s.shape).astype(s.dtype) for s in starts] for _ in range(3)]
    together = [mg.tensor(s, requires_grad=True) for s in starts]
    optimizer = method(together, lr=0.1, **options)
    for step, each in enumerate(gradients):
        for k, (p, g) in enumerate(zip(together, each, strict=True)):
            p.grad = None if (step, k) == (1, 0) else mg.tensor(g)
        optimizer.step()
    for k, start in enumerate(starts):
        alone = mg.tensor(start, requires_grad=True)
        single = method([alone], lr=0.1, **options)
        for step, each in enumerate(gradients):
            alone.grad = None if (step, k) == (1, 0) else mg.tensor(each[k])
            single.step()
        assert alone.tolist() == together[k].tolist()


@pytest.mark.parametrize("method", OPTIONS)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_step_is_one_call_for_all_parameters(method, momentum):
    parameters = [mg.ones(3, n, requires_grad=True) for n in range(1, 21)]
    options = {} if method in (optim.Adam, optim.AdamW) else {"momentum": momentum}
    optimizer = method(parameters, **options)
    for p in parameters:
        p.grad = mg.ones_like(p)
    optimizer.step()  # what is remembered is made
    calls = []
    with _c.trace(lambda kernel, args, made: calls.append((kernel.__name__, args[0]))):
        optimizer.step()
    (call,) = calls
    assert call[0] in ("mg_sgd_step", "mg_adam_step", "mg_rmsprop_step")
    assert call[1] == len(parameters)


def test_if_one_gradient_does_not_fit_no_parameter_moves():
    a, b = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)
    a.grad, b.grad = mg.ones(2), mg.ones(2)
    b.data = mg.ones(3)
    for method in OPTIONS:
        optimizer = method([a, b])
        with pytest.raises(ValueError, match=r"\[(SGD|Adam|RMSprop)\]"):
            optimizer.step()
        assert a.tolist() == [1.0, 1.0]
        assert not optimizer.state


def test_a_state_that_does_not_fit_changes_nothing():
    p = mg.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    p.grad = mg.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    for other in (mg.ones(3, requires_grad=True), mg.ones(1, 2, requires_grad=True)):
        taker = optim.SGD([other], lr=0.5)
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            taker.load_state_dict(state)
        assert taker.param_groups[0]["lr"] == 0.5
        assert taker.state == {}
    taker = optim.SGD([mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)], lr=0.5)
    with pytest.raises(ValueError, match=r"\[1\].*\[2\]"):
        taker.load_state_dict(state)


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: optim.SGD(p, lr=-1), "lr is -1"),
        (lambda p: optim.SGD(p, lr=float("nan")), "lr is nan"),
        (lambda p: optim.SGD(p, momentum=-0.1), r"momentum is -0\.1"),
        (lambda p: optim.SGD(p, weight_decay=-1), "weight_decay is -1"),
        (lambda p: optim.SGD(p, nesterov=True), "nesterov needs a momentum"),
        (lambda p: optim.SGD(p, momentum=0.9, dampening=0.1, nesterov=True), "nesterov"),
        (lambda p: optim.Adam(p, betas=(1.0, 0.9)), r"betas\[0\] is 1\.0.*\[0, 1\)"),
        (lambda p: optim.Adam(p, betas=(0.9,)), "two numbers"),
        (lambda p: optim.AdamW(p, eps=-1), r"\[AdamW\] eps is -1"),
        (lambda p: optim.SGD([{"params": p, "rate": 1}]), "no option 'rate'"),
        (lambda p: optim.SGD(p + p), "given twice"),
        (lambda p: optim.SGD([{"params": p}, {"params": p}]), "given twice"),
        (lambda p: optim.SGD([]), "no parameters"),
        (lambda p: optim.SGD([p[0] * 2]), "result of an operation"),
        (lambda p: optim.SGD([mg.ones(2, 3).T]), "not contiguous"),
    ],
)
def test_wrong_values_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make([mg.ones(2, requires_grad=True)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: optim.SGD(p[0]), "list of tensors"),
        (lambda p: optim.SGD(3), "list of tensors"),
        (lambda p: optim.SGD([1.0]), "float, not a Tensor"),
        (lambda p: optim.SGD([mg.arange(3)]), "int64"),
        (lambda p: optim.SGD(p, lr="fast"), "lr must be a number, not str"),
    ],
)
def test_wrong_types_are_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make([mg.ones(2, requires_grad=True)])


def test_a_gradient_of_another_shape_is_refused_and_nothing_moves():
    x = mg.ones(2, requires_grad=True)
    x.grad, x.data = mg.ones(2), mg.ones(3)
    with pytest.raises(ValueError, match=r"\[SGD\]"):
        optim.SGD([x], lr=0.1, momentum=0.9).step()
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert mg.is_grad_enabled()


@pytest.mark.parametrize("kind", [mg.optim.SGD, mg.optim.Adam, mg.optim.RMSprop])
def test_a_step_says_what_does_not_fit(kind):
    """The message names which of several parameters does not fit, and what it goes by."""
    options = {"lr": 0.1} if kind is mg.optim.Adam else {"lr": 0.1, "momentum": 0.9}
    params = [mg.ones(2, requires_grad=True) for _ in range(2)]
    optimizer = kind(params, **options)
    for p in params:
        p.grad = mg.ones(2)
    optimizer.step()
    first, second = params
    second.data = mg.ones(3)
    before = first.tolist()
    with pytest.raises(
        ValueError,
        match=rf"^\[{kind.__name__}\] a parameter is float32 of shape \(3,\), its gradient is "
        r"float32 of shape \(2,\)$",
    ):
        optimizer.step()
    second.data, second.grad = mg.ones(2, dtype=mg.float64), mg.ones(2, dtype=mg.float64)
    with pytest.raises(
        TypeError,
        match=rf"^\[{kind.__name__}\] a parameter is float64 of shape \(2,\), its state is still "
        r"float32 of shape \(2,\)$",
    ):
        optimizer.step()
    assert first.tolist() == before


METHODS = [mg.optim.SGD, mg.optim.Adam, mg.optim.AdamW, mg.optim.RMSprop]


def stepped(kind, params):
    optimizer = kind(
        params, lr=0.1, **({"momentum": 0.9} if issubclass(kind, mg.optim.SGD) else {})
    )
    for p in params:
        p.grad = mg.ones(2)
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("kind", METHODS)
def test_a_state_that_holds_nothing_yet_is_taken(kind):
    """PyTorch's have an empty dict of a parameter, or None as the buffer of a momentum of 0."""
    wanted, p = mg.ones(2, requires_grad=True), mg.ones(2, requires_grad=True)
    stepped(kind, [wanted])
    empty = [{}, {"momentum_buffer": None}] if issubclass(kind, mg.optim.SGD) else [{}]
    for state in empty:
        optimizer = kind([p], lr=0.1, **({"momentum": 0.9} if kind is mg.optim.SGD else {}))
        optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: state}})
        p.grad = mg.ones(2)
        with mg.no_grad():
            p.fill_(1.0)
        optimizer.step()
        assert p.tolist() == wanted.tolist()


@pytest.mark.parametrize("kind", METHODS)
def test_the_state_of_another_method_is_refused(kind):
    params = [mg.ones(2, requires_grad=True) for _ in range(2)]
    optimizer = stepped(kind, params)
    before = optimizer.state_dict()
    for other in METHODS:
        state = stepped(other, params).state_dict()
        if issubclass(other, mg.optim.Adam) and issubclass(kind, mg.optim.Adam):
            kind(params).load_state_dict(state)
        elif other is not kind:
            with pytest.raises(ValueError, match=r"state of parameter 0 holds .*another method's"):
                optimizer.load_state_dict(state)
    assert optimizer.state_dict() == before


@pytest.mark.parametrize("kind", METHODS)
def test_a_class_made_of_a_method_may_remember_more(kind):
    class Averaging(kind):
        def step(self):
            super().step()
            for p in self.param_groups[0]["params"]:
                self.state.setdefault(p, {})["mean"] = p.detach() / 2

    w = mg.ones(2, requires_grad=True)
    optimizer = stepped(Averaging, [w])
    state = {0: {**optimizer.state_dict()["state"][0], "mean": mg.full((2,), 7.0)}}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    assert optimizer.state[w]["mean"].tolist() == [7.0, 7.0]


@pytest.mark.parametrize("kind", METHODS)
def test_what_is_no_state_is_refused(kind):
    optimizer = stepped(kind, [mg.ones(2, requires_grad=True)])
    good = optimizer.state_dict()
    for wrong in ({"state": None}, {"state": []}, {"state": {0: 5}}):
        with pytest.raises(TypeError, match=r"\] 'state' is a dict with a dict for each parameter"):
            optimizer.load_state_dict({**good, **wrong})
    for groups in (None, ["a"], [{"lr": 0.1}], [{"params": 1}], {"params": [0]}):
        with pytest.raises(TypeError, match=r"\] 'param_groups' is a list of dicts with 'params'"):
            optimizer.load_state_dict({**good, "param_groups": groups})
    optimizer.load_state_dict(good)
    optimizer.step()


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
@pytest.mark.parametrize("foreign", [False, True])
def test_parameters_that_share_elements_move_one_after_the_other(kind, foreign):
    def moved(make, groups):
        memory = np.zeros(100_000, np.float32)
        whole = mg.from_numpy(memory)
        part = mg.from_numpy(memory[50:99_000]) if foreign else whole[50:99_000]
        ps = [mg.nn.Parameter(whole), mg.nn.Parameter(part)]
        for p, g in zip(ps, (0.5, 2.0), strict=True):
            p.grad = mg.full_like(p, g)
        optimizers = [getattr(mg.optim, kind)(group, lr=0.1) for group in make(ps)]
        for _ in range(groups):
            for optimizer in optimizers:
                optimizer.step()
        return ps[0].detach().numpy()

    together = moved(lambda ps: [ps], 3)
    np.testing.assert_array_equal(together, moved(lambda ps: [[p] for p in ps], 3))
