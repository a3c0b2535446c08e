"""Every public operation gives the values of a reference that is independent of the engine.

References lie in tests/helpers/expected. Finite differences find a wrong gradient, and not a wrong
value: an operation that is three times too large, in value and in gradient alike, fails here.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from dataclasses import replace
from importlib import import_module
from types import CodeType, ModuleType

import numpy as np
import pytest
from expected import CASES, FUNCTIONS, OPERATORS, ROWS, Given, Sampled
from expected.recording import as_arrays, as_tensors, calls_of, flat
from expected.variants import NO_VALUE_NAMES, VARIANTS
from expected.without import WITHOUT_NAMES
from samples import CATALOGUE, function

import minigrad as mg
from minigrad import functions, ops

NAMES = {function(name): name for name in reversed(CATALOGUE)}  # of each function one


def reference(name):
    """By the name of the catalogue, or by the last part of it: ``special.erf`` is that of erf."""
    return FUNCTIONS.get(name) or FUNCTIONS.get(name.rpartition(".")[2])


# ---- the world is closed -------------------------------------------------------------------------


# The modules with public names of values; others have classes, or are PyTorch's names of these.
SPACES = (
    *("", "special.", "linalg.", "nn.functional.", "autograd.", "autograd.functional.", "func."),
    *("nn.init.", "nn.utils.", "nn.utils.rnn.", "nn.utils.parametrizations."),
    *("nn.utils.parametrize.", "optim.swa_utils.", "distributions."),
)


def public():
    """Every public name of a value, with what it stands for."""
    for prefix in SPACES:
        space = import_module(f"minigrad.{prefix}".rstrip("."))
        listed = space.__all__ if prefix else dir(mg)
        yield from ((prefix + n, getattr(space, n)) for n in listed if not n.startswith("_"))
    own = set(dir(mg.Tensor)) - set(dir(object)) - {"__dict__", "__module__", "__slots__"}
    own |= {n for n in OPERATORS if hasattr(mg.Tensor, n)}
    yield from (
        (f"Tensor.{n}", getattr(mg.Tensor, n))
        for n in own
        if n.startswith("__") or not n.startswith("_")
    )


def has_value_test(name, value):
    """Whether a test below compares the name, or another name of the same function."""
    known = name in CASES or name.removeprefix("Tensor.") in OPERATORS
    return known or (callable(value) and value in COMPARED)


def test_every_public_name_has_a_reference():
    names = dict(public())
    known = {id(names[name]) for name in (*CASES, *WITHOUT_NAMES)}  # by this or another name
    missing = sorted(
        name
        for name, value in names.items()
        if not has_value_test(name, value)
        and id(value) not in known
        and not (isinstance(value, type) and issubclass(value, Exception))
    )
    assert not missing, f"without a reference value in tests/helpers/expected: {missing}"


def test_nothing_is_listed_in_vain():
    names = dict(public())
    for table in (CASES, WITHOUT_NAMES, [f"Tensor.{n}" for n in OPERATORS]):
        assert set(table) <= set(names), sorted(set(table) - set(names))
    both = [n for n in WITHOUT_NAMES if has_value_test(n, names[n])]
    assert not both, f"listed as without a value, and compared: {both}"


@pytest.mark.parametrize("name", CASES)
def test_a_case_calls_what_it_is_named_after(name):
    for call, _ in CASES[name]:
        held = [*(call.__defaults__ or ()), *(c.cell_contents for c in call.__closure__ or ())]
        known = names_in(call.__code__) | {x for x in held if isinstance(x, str)}
        assert name.rpartition(".")[2] in known


def names_in(code):
    """All names that a function refers to, within inner functions too."""
    inner = [names_in(c) for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*inner)


# ---- functions -----------------------------------------------------------------------------------


def assert_expected(got, want, what):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    assert got.dtype.kind == want.dtype.kind, f"{what}: dtype {got.dtype}, not {want.dtype}"
    if got.dtype.kind == "f":
        scale = np.abs(want[np.isfinite(want)]).max(initial=0)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-14 + 1e-12 * scale, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def check(call, expected, what):
    with np.errstate(all="ignore"):
        before = (call.results,) if isinstance(expected, Given) else ()
        wanted = flat(expected(*before, *call.args, **call.kwargs))
    assert len(call.results) == len(wanted), f"{what}: {len(call.results)} results"
    for got, want in zip(call.results, wanted, strict=True):
        assert_expected(got, want, what)


@pytest.mark.parametrize("name", CATALOGUE)
def test_functions(name):
    target, expected = function(name), reference(name)
    assert expected, f"{name} has no reference in tests/helpers/expected"
    samples = (*CATALOGUE[name], *VARIANTS.get(name, ()))
    calls = [c for sample in samples for c in calls_of(target, sample)]
    assert calls, f"no sample calls {name} itself"
    for k, call in enumerate(calls):
        check(call, expected, f"{name}, call {k}")


def three_times(x):
    """Another value: three times as large, and 1 for 0; the opposite of a bool."""
    x = np.asarray(x)
    return ~x if x.dtype.kind == "b" else 3 * x + (x == 0)


@pytest.mark.parametrize("name", CATALOGUE)
def test_three_times_the_value_is_noticed(name):
    """Also by references that are handed the results."""
    calls = [c for sample in CATALOGUE[name] for c in calls_of(function(name), sample, False)]
    call = next(c for c in calls if any(np.size(x) for x in c.results))
    wrong = replace(call, results=[three_times(x) for x in call.results])
    with pytest.raises(AssertionError):
        check(wrong, reference(name), name)


def test_references_use_nothing_of_the_engine():
    plain = [f.reference if isinstance(f, Given) else f for f in FUNCTIONS.values()]
    for module in {getattr(f, "__module__", None) for f in plain} - {None}:
        for held in vars(import_module(module)).values():
            home = held.__name__ if isinstance(held, ModuleType) else home_of(held)
            assert not home.startswith(("minigrad", "torch")), f"{module} holds {held!r}"


def home_of(value):
    """The module that a function or a class was made in."""
    return getattr(value, "__module__", None) or ""


def options_varied(name):
    """The parameters of a function, and those that compared calls give another value."""
    target = function(name)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    signature = inspect.signature(target)
    given = {p.name: p.default for p in signature.parameters.values() if p.kind not in kinds}
    varied = set()
    for sample in (*CATALOGUE[name], *VARIANTS.get(name, ())):
        for call in calls_of(target, sample, False):
            bound = signature.bind(*call.args, **call.kwargs).arguments
            varied |= {k for k, v in bound.items() if repr(v) != repr(given.get(k))}
    return set(given), varied


def test_every_option_is_compared():
    missing, in_vain = set(), {option for option in NO_VALUE_NAMES if "." in option}
    for name in CATALOGUE:
        options, varied = options_varied(name)
        left = {f"{name}.{k}" for k in options - varied - NO_VALUE_NAMES}
        missing |= left - NO_VALUE_NAMES
        in_vain -= left
    assert not missing, f"without a call in tests/helpers/expected/variants.py: {sorted(missing)}"
    assert not in_vain, f"listed as without a value, and varied or not there: {sorted(in_vain)}"


# ---- what has no sample --------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_cases(name, restore_random):
    for k, (call, expected) in enumerate(CASES[name]):
        got = call()
        if isinstance(expected, Sampled):
            expected.check(got)
            continue
        pairs = zip(flat(as_arrays(got)), flat(expected), strict=True)
        for a, b in pairs:
            assert_expected(a, b, f"{name}, case {k}")


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    first, *rest = OPERATORS[name]
    array = first.copy()  # in-place operators write into it
    expected = getattr(array, name)(*rest)
    operands = [mg.tensor(x) if isinstance(x, np.ndarray) else x for x in rest]
    got = getattr(mg.tensor(first), name)(*operands)
    results = list(got) if name == "__iter__" else [got]
    wanted = list(expected) if name == "__iter__" else [expected]
    for a, b in zip(flat(as_arrays(results)), flat(wanted), strict=True):
        if isinstance(b, complex):
            assert a == b
        else:
            assert_expected(a, b, name)


# Their results have another shape, which the tensor takes on.
RESHAPED = {"squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_"}


def in_place():
    """The methods that write the result of a function over its first operand."""
    names = [n for n in dir(mg.Tensor) if n.endswith("_") and not n.startswith("_")]
    return [n for n in names if f"Tensor.{n}" not in CASES and n[:-1] in functions.__all__]


@pytest.mark.parametrize("name", in_place())
def test_in_place(name):
    base = NAMES[getattr(functions, name[:-1])]
    target, expected = function(base), reference(base)
    calls = [c for sample in CATALOGUE[base] for c in calls_of(target, sample, False)]
    written = 0
    for k, call in enumerate(calls):
        x = call.args[0] if call.args else None
        fits = isinstance(x, np.ndarray) and len(call.results) == 1
        if not fits or (call.results[0].shape != x.shape and name not in RESHAPED):
            continue
        tensor, *rest = as_tensors(call.args)
        got = getattr(tensor, name)(*rest, **as_tensors(call.kwargs))
        assert got is tensor
        with np.errstate(all="ignore"):
            want = np.asarray(expected(*call.args, **call.kwargs)).astype(x.dtype)
        assert_expected(tensor.numpy(), want, f"{name}, call {k}")
        written += 1
    assert written, f"no sample of {base} can be written over its first operand"


# ---- rows of the op table ------------------------------------------------------------------------


def recorded(results):
    """The names of the rows that tensors were made by, as their graph says."""
    stack, nodes = [y.grad_fn for y in results if differentiable(y)], set()
    while stack:
        node = stack.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            stack += [parent for parent, _ in node.next_functions]
    return {node.name() for node in nodes}


def differentiable(y):
    return isinstance(y, mg.Tensor) and y.requires_grad


def rows_in(sample):
    """The rows that the sample's values are made by, and those that its derivatives are made by.

    test_samples.py compares the derivatives with finite differences of the values, to second order
    and by the cotangents too.
    """
    leaves = [mg.tensor(x).requires_grad_() for x in sample.inputs()]
    results = [y for y in sample(*leaves) if differentiable(y)]
    values, derivatives = recorded(results), set()
    for _ in range(2 if sample.smooth else 0):
        cotangents = [mg.ones_like(y).requires_grad_() for y in results]
        leaves += cotangents
        found = mg.grad(results, leaves, cotangents, create_graph=True) if results else []
        results = [g for g in found if g.requires_grad]
        derivatives |= recorded(results)
    return values | derivatives


def test_every_row_takes_part_in_a_compared_value():
    for module in pkgutil.iter_modules(ops.__path__, "minigrad.ops."):
        import_module(module.name)
    seen = set().union(*(rows_in(s) for samples in CATALOGUE.values() for s in samples))
    named = {name.rpartition(".")[2] for name in CATALOGUE}  # compared above by that name
    missing = sorted(set(ops.TABLE) - seen - named - set(ROWS))
    assert not missing, f"rows without a value in tests/helpers/expected/rows.py: {missing}"
    assert not set(ROWS) - set(ops.TABLE)


@pytest.mark.parametrize("name", ROWS)
def test_rows(name, restore_random):
    call, expected = ROWS[name]
    for a, b in zip(flat(as_arrays(call())), flat(expected), strict=True):
        assert_expected(a, b, name)


COMPARED = {*NAMES, *(getattr(mg.Tensor, name) for name in in_place())}
COMPARED |= {getattr(mg.Tensor, n[7:]) for n in CASES if re.match(r"Tensor\.\w+_$", n)}
