"""Attributes that users set on tensors, and subclasses of Tensor."""

import copy
import gc
import pickle
import weakref

import pytest

import minigrad as mg


class Tagged(mg.Tensor):
    """A tensor that is made with a tag."""

    def __new__(cls, data, tag="none"):
        return super().__new__(cls, data)

    def __init__(self, data, tag="none"):
        self.tag = tag

    def doubled(self):
        return self * 2


@pytest.mark.parametrize(
    "x",
    [
        mg.ones(2),
        mg.arange(3),
        mg.tensor(2.0, requires_grad=True),
        mg.tensor([2.0], requires_grad=True) * 3,
        mg.ones(2, 2)[0],
        mg.nn.Parameter(mg.ones(2)),
        mg.Variable([1.0]),
    ],
)
def test_every_tensor_takes_attributes(x):
    assert vars(x) == {}
    x.tag, x.names = 1, ["a"]
    assert (x.tag, x.names) == (1, ["a"])
    assert vars(x) == {"tag": 1, "names": ["a"]}
    x.__dict__ = {"other": 2}
    assert x.other == 2
    with pytest.raises(AttributeError, match="no attribute 'tag'"):
        _ = x.tag
    del x.other
    with pytest.raises(AttributeError, match="other"):
        del x.other
    assert not hasattr(mg.ones(2), "tag")


@pytest.mark.parametrize("name", ["shape", "dtype", "ndim", "size", "is_leaf", "grad_fn", "T"])
def test_properties_are_no_attributes_of_ones_own(name):
    with pytest.raises(AttributeError):
        setattr(mg.ones(2), name, 1)


def test_attributes_stay_with_a_tensor_that_is_written_into():
    base, w = mg.zeros(4), mg.ones(4, requires_grad=True)
    view = base[:2]
    base.tag, view.tag = "base", "view"
    base += w  # the view's place on the tape changes
    assert (base.tag, view.tag) == ("base", "view")
    assert view.requires_grad
    assert (base.tag, view.tag) == ("base", "view")
    base.data = mg.ones(4)
    assert base.tag == "base"


def test_results_have_none():
    x = mg.ones(2)
    x.tag = 1
    for y in (x + 1, x.clone(), x.detach(), x[0], x.reshape(2, 1), x.double()):
        assert vars(y) == {}


def test_a_cycle_through_an_attribute_is_collected():
    x = mg.ones(2)
    x.self = x
    y = mg.ones(2, requires_grad=True) * 2
    y.node = y.grad_fn
    y.me = [y]
    gone = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert gone[0]() is gone[1]() is None


@pytest.mark.usefixtures("no_gc")
def test_attributes_go_with_their_tensor():
    class Held:
        pass

    x, held = mg.ones(2), Held()
    x.held, gone = held, weakref.ref(held)
    del held
    assert gone() is x.held
    del x
    assert gone() is None


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("make", [mg.tensor, mg.Variable])
def test_copies_and_pickles_keep_attributes(make, required):
    x = make([1.0, 2.0], requires_grad=required)
    x.tag, x.me = ["a"], x
    shallow, deep, again = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    assert shallow.tag is x.tag
    assert shallow.me is x
    for other in (deep, again):
        assert other.tag == ["a"]
        assert other.tag is not x.tag
        assert other.me is other
        assert other.requires_grad is required
        assert other.tolist() == [1, 2]
    assert vars(mg.ones(1).__deepcopy__({})) == {}


def test_a_subclass_is_made_by_calling_it():
    x = Tagged([1.0, 2.0], tag="first")
    assert type(x) is Tagged
    assert (x.tag, x.tolist(), x.requires_grad, x.grad) == ("first", [1, 2], False, None)
    assert x.doubled().tolist() == [2, 4]
    x.requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(other) is Tagged
        assert (other.tag, other.tolist(), other.requires_grad) == ("first", [1, 2], True)
    assert copy.deepcopy(x).grad.tolist() == [2, 4]
    assert type(x + 1) is mg.Tensor  # results are plain
    assert type(mg.Tensor([1.0])) is mg.Tensor


class Gain(mg.nn.Parameter):
    """A parameter with a constructor of its own."""

    def __new__(cls, size, start):
        return super().__new__(cls, mg.full((size,), start))

    def __init__(self, size, start):
        self.start = start


def test_a_subclass_of_parameter_keeps_its_class():
    p = Gain(2, 0.5)
    assert (type(p), p.start, p.tolist(), p.requires_grad) == (Gain, 0.5, [0.5, 0.5], True)
    for other in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(other) is Gain
        assert other.tolist() == [0.5, 0.5]
        assert other.requires_grad


def test_a_long_chain_of_attributes_is_freed():
    x = mg.ones(1)
    for _ in range(100_000):
        y = mg.ones(1)
        y.before = x
        x = y
    gone = weakref.ref(x)
    del x, y
    assert gone() is None


@pytest.mark.parametrize("kind", ["plain", "parameter"])
def test_copies_are_as_in_pytorch(kind):
    torch = pytest.importorskip("torch")
    kept = []
    for lib in (mg, torch):
        x = lib.nn.Parameter(lib.ones(2)) if kind == "parameter" else lib.ones(2)
        x.tag = 1
        copies = (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)))
        kept.append([hasattr(y, "tag") for y in copies])
    assert kept[0] == kept[1]
