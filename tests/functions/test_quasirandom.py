"""Sobol' sequences: points, scrambling, states and errors."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg

SobolEngine = mg.quasirandom.SobolEngine


def points(engine, n):
    return engine.draw(n, dtype=mg.float64).numpy()


def test_first_points_by_hand():
    want = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    want += [[0.375, 0.375, 0.625], [0.875, 0.875, 0.125], [0.625, 0.125, 0.875]]
    assert points(SobolEngine(3), 7).tolist() == want


@pytest.mark.filterwarnings("ignore:The balance properties")
def test_all_dimensions_are_scipys():
    qmc = pytest.importorskip("scipy.stats.qmc")
    for dimension in (1, 2, 17, 1111):
        theirs = qmc.Sobol(dimension, scramble=False, bits=30).random(70)
        np.testing.assert_array_equal(points(SobolEngine(dimension), 70), theirs)


@pytest.mark.parametrize("scramble", [False, True])
def test_points_in_parts_are_those_at_once(scramble):
    def engine():
        return SobolEngine(4, scramble=scramble, seed=3)

    whole, parts = points(engine(), 64), engine()
    found = [points(parts, n) for n in (1, 0, 2, 5, 24)]
    assert parts.num_generated == 32
    parts.fast_forward(7)
    np.testing.assert_array_equal(np.concatenate(found), whole[:32])
    np.testing.assert_array_equal(points(parts, 25), whole[39:])
    assert parts.reset() is parts
    np.testing.assert_array_equal(points(parts.fast_forward(0).fast_forward(9), 3), whole[9:12])


@pytest.mark.parametrize("scramble", [False, True])
def test_each_coordinate_is_once_in_every_interval(scramble):
    drawn = points(SobolEngine(20, scramble=scramble, seed=1), 256)
    cells = np.sort(np.floor(drawn * 256), axis=0)
    np.testing.assert_array_equal(cells, np.arange(256.0)[:, None].repeat(20, 1))


def test_scrambled_points_follow_the_seed():
    a, b, c = (points(SobolEngine(3, True, seed=s), 8) for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).all()
    assert (a[0] != 0).all()


@pytest.mark.usefixtures("restore_random")
def test_scrambling_without_a_seed_draws_from_the_common_generator():
    found = []
    for _ in range(2):
        mg.manual_seed(7)
        found.append(points(SobolEngine(2, scramble=True), 4))
    np.testing.assert_array_equal(*found)


def test_dtypes():
    assert SobolEngine(2).draw().shape == (1, 2)
    assert SobolEngine(2).draw(3).dtype is mg.float32
    assert SobolEngine(2).draw(0).shape == (0, 2)
    late = SobolEngine(2).fast_forward(2**30 - 4)
    last = late.draw(4)
    assert last.max().item() < 1.0
    with pytest.raises(ValueError, match="1 are more than the 1073741824 of the sequence"):
        late.draw()


def test_powers_of_two():
    engine = SobolEngine(2)
    assert engine.draw_base2(2).shape == (4, 2)
    assert engine.draw_base2(2).shape == (4, 2)
    with pytest.raises(ValueError, match=r"\[SobolEngine.draw_base2\] 8 points and 4 are not"):
        engine.draw_base2(2)
    assert repr(SobolEngine(2, True, 5)) == "SobolEngine(dimension=2, scramble=True, seed=5)"


def test_errors():
    for wrong in (0, 1112):
        with pytest.raises(ValueError, match=rf"\[SobolEngine\] dimension is {wrong}"):
            SobolEngine(wrong)
    with pytest.raises(ValueError, match=r"\[SobolEngine.draw\] n is -1"):
        SobolEngine(1).draw(-1)


def test_points_are_pytorchs():
    torch = pytest.importorskip("torch")
    ours, theirs = SobolEngine(40), torch.quasirandom.SobolEngine(40)
    for n in (1, 5, 64):
        np.testing.assert_array_equal(points(ours, n), theirs.draw(n, dtype=torch.float64).numpy())
    assert theirs.fast_forward(100).num_generated == ours.fast_forward(100).num_generated
    np.testing.assert_array_equal(points(ours, 3), theirs.draw(3, dtype=torch.float64).numpy())
