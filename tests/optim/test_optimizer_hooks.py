"""Hooks of optimizers: when they are called, with what, and what they may change."""

import copy
import pickle

import pytest

import minigrad as mg

optim = mg.optim


def made(kind=optim.SGD, **options):
    p = mg.tensor([1.0, 2.0], requires_grad=True)
    p.grad = mg.ones(2)
    return p, kind([p], lr=0.5, **options)


def test_hooks_of_a_step():
    p, optimizer = made()
    seen = []
    before = optimizer.register_step_pre_hook(lambda *given: seen.append(("before", p.tolist())))
    after = optimizer.register_step_post_hook(lambda *given: seen.append(("after", given)))
    optimizer.step()
    assert seen == [("before", [1.0, 2.0]), ("after", (optimizer, (), {}))]
    assert p.tolist() == [0.5, 1.5]
    before.remove()
    optimizer.step()
    assert len(seen) == 3
    after.remove()
    optimizer.step()
    assert len(seen) == 3
    assert p.tolist() == [-0.5, 0.5]


def test_a_hook_gives_the_step_other_arguments():
    _, optimizer = made()
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((lambda: 7.0,), kwargs))
    assert optimizer.step() == 7.0
    optimizer.register_step_pre_hook(lambda *given: 3)
    with pytest.raises(RuntimeError, match=r"\[SGD.step\] a hook returned int: return None or a"):
        optimizer.step()
    with pytest.raises(TypeError, match=r"\[SGD\] a hook is a function, not int"):
        optimizer.register_step_post_hook(3)


def test_a_hook_that_raises_stops_the_step():
    p, optimizer = made()

    def refuse(*given):
        raise KeyError("no")

    optimizer.register_step_pre_hook(refuse)
    with pytest.raises(KeyError, match="no"):
        optimizer.step()
    assert p.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.LBFGS])
def test_hooks_of_a_state(kind):
    _, optimizer = made(kind)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("read"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": len(seen)})
    optimizer.register_state_dict_post_hook(lambda o, state: seen.append(set(state)), prepend=True)
    state = optimizer.state_dict()
    assert seen == ["read", {"state", "param_groups"}]
    assert state["note"] == 2
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append(o.param_groups[0]["lr"]))
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(state.pop("note")))
    state["param_groups"][0]["lr"] = 0.25
    optimizer.load_state_dict(state)
    assert seen[2:] == [2, 0.25]
    assert "note" in state  # the dict that was given is left alone

    def other(optimizer, state):
        return {**state, "param_groups": [{**state["param_groups"][0], "lr": 0.75}]}

    optimizer.register_load_state_dict_pre_hook(other)
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.75


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_have_no_hooks(copied):
    _, optimizer = made()
    optimizer.register_step_pre_hook(lambda *given: pytest.fail("called"))
    other = copied(optimizer)
    (p,) = other.param_groups[0]["params"]
    p.grad = mg.ones(2)
    other.step()
    assert p.tolist() == [0.5, 1.5]
    assert other.state_dict() == copied(optimizer).state_dict()


def test_schedules_step_beside_hooks():
    _, optimizer = made()
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    rates = []
    optimizer.register_step_post_hook(lambda o, *given: rates.append(o.param_groups[0]["lr"]))
    for _ in range(3):
        optimizer.step()
        schedule.step()
    assert rates == [0.5, 0.25, 0.125]
