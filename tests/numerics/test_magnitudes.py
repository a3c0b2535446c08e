"""Values and gradients at every magnitude, where squares and partial products leave the range.

References are sums of exact fractions by mpmath. Gradients are compared as kernels make them and
as formulas do (``create_graph=True``), in units of the largest of a line.
"""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import nn

DTYPES = (mg.float32, mg.float64)
by_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
# powers of ten from subnormal numbers to the largest
TENS = {
    mg.float32: (-44, -38, -30, -20, 0, 19, 30, 37, 38),
    mg.float64: (-320, -308, -200, -160, 0, 154, 200, 300, 307),
}
LINES = ("even", "one large", "half zeros", "close")


def line(kind: str, ten: int, n: int, dtype: mg.dtype, seed: int = 0) -> np.ndarray:
    """n finite numbers about 10**ten in size."""
    r, real = np.random.default_rng([seed, n, ten + 400]), np.dtype(dtype.name).type
    with np.errstate(all="ignore"):
        x = np.clip(r.standard_normal(n), -2.5, 2.5)
        if kind == "one large":
            x[1:] *= 1e-5
        elif kind == "half zeros":
            x[::2] = 0.0
        elif kind == "close":
            x = 1.0 + 0.1 * x
        wide = x.astype(np.longdouble) * np.longdouble(10) ** ten
        return wide.astype(real)


def close_to(got: np.ndarray, want: list, dtype: mg.dtype, within: float) -> None:
    """Within so many units of the last place of the largest; overflow counts as infinite."""
    limits = np.finfo(dtype.name)
    largest = max(abs(w) for w in want)
    unit = max(largest * float(limits.eps), mpf(float(limits.smallest_subnormal)))
    for g, w in zip(np.ravel(got), want, strict=True):
        if abs(w) > float(limits.max):
            assert g == np.sign(float(mp.sign(w))) * np.inf, (g, w)
        else:
            assert abs(mpf(float(g)) - w) <= within * unit, (
                g,
                w,
                float(abs(mpf(float(g)) - w) / unit),
            )


def gradients(f, x: np.ndarray, upstream: float = 1.0) -> list[np.ndarray]:
    """As the kernels make them, and as formulas do."""
    made = []
    for graph in (False, True):
        t = mg.tensor(x, requires_grad=True)
        y = f(t)
        g = mg.full(y.shape, upstream, dtype=y.dtype)
        made.append(mg.grad(y, t, g, create_graph=graph)[0].detach().numpy())
    return made


# ---- roots of sums of squares --------------------------------------------------------------------


def spread_by_mpmath(x: np.ndarray, name: str) -> tuple:
    """The 2-norm or the standard deviation, and its derivatives."""
    v = [mpf(float(a)) for a in x]
    mean, degrees = (mpf(0), 1) if name == "norm" else (sum(v) / len(v), len(v) - 1)
    y = mp.sqrt(sum((a - mean) ** 2 for a in v) / degrees)
    return y, [(a - mean) / (y * degrees) if y else mpf(0) for a in v]


@by_dtype
@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("name", ["norm", "std"])
def test_norms_and_deviations(name, kind, dtype):
    f = {"norm": mg.norm, "std": mg.std}[name]
    for ten in TENS[dtype]:
        for n in (2, 5, 100):
            x = line(kind, ten, n, dtype)
            y, slopes = spread_by_mpmath(x, name)
            close_to(f(mg.tensor(x)).numpy(), [y], dtype, 3)
            if y < float(np.finfo(dtype.name).smallest_subnormal):
                continue  # a root of 0 has a gradient of 0
            for g in gradients(f, x):
                close_to(g, slopes, dtype, 60 if kind == "close" else 4)
            tiny = float(np.finfo(dtype.name).tiny)  # an upstream gradient at the end of the range
            for g in gradients(f, x, 64 * tiny):
                close_to(g, [64 * tiny * s for s in slopes], dtype, 60 if kind == "close" else 4)


@by_dtype
def test_powers_of_two_scale_norms_and_deviations_exactly(dtype):
    far = (-90, -70, 50, 64, 120) if dtype is mg.float32 else (-900, -530, 500, 512, 1018)
    x = np.random.default_rng(1).standard_normal((5, 37)).astype(dtype.name)
    x[2] *= 1e-3
    for f, degree in (
        (lambda t: mg.norm(t, 2, 1), 1),
        (mg.norm, 1),
        (lambda t: mg.std(t, 1), 1),
        (lambda t: mg.std(t, 0, correction=0), 1),
        (lambda t: mg.var(t, (0, 1)), 2),
        (lambda t: mg.var(t, 1), 2),
    ):
        y = f(mg.tensor(x)).numpy()
        for k in far:
            with np.errstate(all="ignore"):
                want = np.ldexp(y, degree * k)
            np.testing.assert_array_equal(f(mg.tensor(np.ldexp(x, k))).numpy(), want)
    # lines that need other units leave those beside them as they are
    rows = np.concatenate([x, np.ldexp(x, far[0]), np.ldexp(x, far[-1])])
    for f in (lambda t: mg.norm(t, 2, 1), lambda t: mg.std(t, 1)):
        np.testing.assert_array_equal(f(mg.tensor(rows)).numpy()[:5], f(mg.tensor(x)).numpy())


@by_dtype
def test_second_derivatives_of_norms_and_deviations(dtype):
    """They go with 1 / k as x with k, a power of two."""
    x = np.random.default_rng(2).standard_normal(7).astype(dtype.name)
    w = mg.tensor(np.random.default_rng(3).standard_normal(7).astype(dtype.name))
    for f in (mg.norm, mg.std):

        def second(values, f=f):
            t = mg.tensor(values, requires_grad=True)
            return mg.grad((mg.grad(f(t), t, create_graph=True)[0] * w).sum(), t)[0].numpy()

        near = second(x)
        for k in (-100, -70, 70, 100) if dtype is mg.float32 else (-1000, -600, 600, 1000):
            scaled = np.ldexp(second(np.ldexp(x, k)), k)
            np.testing.assert_allclose(scaled, near, rtol=50 * np.finfo(dtype.name).eps)


def test_no_degrees_of_freedom_at_all():
    """Deviations over 0: infinite, but 0 for an element at the mean; NaN where none deviates."""
    for f in (mg.var, mg.std):
        for correction in (3, 4):
            for g in gradients(
                lambda t, f=f, c=correction: f(t, correction=c), np.array([1.0, 2, 3])
            ):
                np.testing.assert_array_equal(g, [-np.inf, 0, np.inf])
            for g in gradients(lambda t, f=f, c=correction: f(t, correction=c), np.full(3, 5.0)):
                assert np.isnan(g).all()
            for g in gradients(
                lambda t, f=f, c=correction: f(t, correction=c), np.array([1.0, 2, 3]), 0.0
            ):
                np.testing.assert_array_equal(g, [0, 0, 0])


# ---- products ------------------------------------------------------------------------------------


def factors(n: int, zeros: int, dtype: mg.dtype, seed: int) -> np.ndarray:
    """n factors from all over the range, whose product is near 1, and some zeros."""
    r = np.random.default_rng([seed, n, zeros])
    largest = 36 if dtype is mg.float32 else 290
    tens = r.uniform(-largest, largest, n)
    tens = np.clip(tens - tens.mean() + r.uniform(-5, 5) / n, -largest, largest)
    x = (r.choice([-1, 1], n) * 10.0**tens).astype(dtype.name)
    x[r.choice(n, min(zeros, n), replace=False)] = 0.0
    return x


def exact_product(x: np.ndarray, without: tuple = ()) -> mpf:
    made = mpf(1)
    for i, v in enumerate(x):
        if i not in without:
            made *= mpf(float(v))
    return made


def each_close_to(got: np.ndarray, want: list, dtype: mg.dtype, within: float) -> None:
    for g, w in zip(np.ravel(got), want, strict=True):
        close_to(np.array([g]), [w], dtype, within)


@by_dtype
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_whose_parts_leave_the_range(zeros, dtype):
    for n in (1, 2, 3, 8, 21, 140):
        for seed in range(4):
            x = factors(n, zeros, dtype, seed)
            each_close_to(mg.prod(mg.tensor(x)).numpy(), [exact_product(x)], dtype, n + 2)
            both = np.stack([x, np.ones_like(x)], 1)
            each_close_to(
                mg.prod(mg.tensor(both), 0).numpy(), [exact_product(x), mpf(1)], dtype, n + 2
            )
            running = [exact_product(x[: i + 1]) for i in range(n)]
            each_close_to(mg.cumprod(mg.tensor(x), 0).numpy(), running, dtype, n + 2)
            each_close_to(mg.cumprod(mg.tensor(both), 0).numpy()[:, 0], running, dtype, n + 2)
            slopes = [exact_product(x, (i,)) for i in range(n)]
            for f in (mg.prod, lambda t: mg.prod(t.reshape(1, -1, 1), (1, 2)).sum()):
                for g in gradients(f, x):
                    each_close_to(g, slopes, dtype, 2 * n + 4)


@by_dtype
def test_gradients_of_running_products(dtype):
    for n in (2, 5, 12):
        for seed in range(6):
            x = factors(n, seed % 3, dtype, seed)
            g = np.random.default_rng(seed).standard_normal(n).astype(dtype.name)
            g *= [
                abs(exact_product(x[: i + 1])) < 1e30 for i in range(n)
            ]  # none for what overflows
            terms = [
                [mpf(float(g[j])) * exact_product(x[: j + 1], (i,)) for j in range(i, n)]
                for i in range(n)
            ]
            t = mg.tensor(x, requires_grad=True)
            got = mg.grad(t.cumprod(0), t, mg.tensor(g))[0].numpy()
            for a, part in zip(got, terms, strict=True):
                close_to(np.array([a]), [sum(part)], dtype, 4 * n * max(1, cancels(part)))


def cancels(terms: list) -> float:
    whole = abs(sum(terms))
    return min(float(sum(map(abs, terms)) / whole), 1e12) if whole else 1.0


@by_dtype
def test_second_derivatives_of_products(dtype):
    """Second derivatives that are representable, where the first are too."""
    most = float(np.finfo(dtype.name).max)
    for n in (2, 4, 9):
        for seed in range(4):
            x = factors(n, 0, dtype, seed)
            slopes = [exact_product(x, (i,)) for i in range(n)]
            for i in range(n):
                t = mg.tensor(x, requires_grad=True)
                (first,) = mg.grad(t.prod(), t, create_graph=True)
                second = mg.grad(first[i], t)[0].numpy()
                for j in range(n):
                    if abs(slopes[i]) > most / 4 or abs(slopes[j]) > most / 4:
                        continue
                    want = exact_product(x, (i, j)) if i != j else mpf(0)
                    if 1 / most < abs(slopes[i]):
                        close_to(second[j : j + 1], [want], dtype, 4 * n)


def test_lines_beside_one_that_left_the_range_keep_their_bits():
    x = np.random.default_rng(0).standard_normal((6, 300)).astype(np.float32) * 1.2
    y = mg.tensor(x).prod(1).numpy()
    far = np.where(np.arange(300) % 2, 1e-20, 1e20).astype(np.float32)
    rows = np.concatenate([x, far[None], x])
    for made in (mg.tensor(rows).prod(1), mg.tensor(np.ascontiguousarray(rows.T)).prod(0)):
        np.testing.assert_array_equal(made.numpy()[:6], y)
        np.testing.assert_allclose(made.numpy()[6], 1, rtol=1e-4)
        np.testing.assert_array_equal(made.numpy()[7:], y)


def test_determinants_whose_pivots_overflow_on_the_way():
    for sizes in ([1e120] * 4 + [1e-130] * 3 + [1e-80], [1e-90] * 5 + [1e110] * 4):
        for a in (np.diag(sizes), np.diag(sizes)[::-1].copy()):
            sign = np.linalg.slogdet(a)[0]
            x = mg.tensor(a, requires_grad=True)
            y = mg.linalg.det(x)
            want = float(exact_product(np.array(sizes)))
            np.testing.assert_allclose(y.item(), sign * want, rtol=1e-12)
            (g,) = mg.grad(y, x)
            others = [float(exact_product(np.array(sizes), (i,))) for i in range(len(sizes))]
            kept = np.where(a != 0, g.numpy(), 0.0)  # elsewhere the SVD's rounding shows
            np.testing.assert_allclose(np.sort(np.abs(kept[a != 0])), np.sort(others), 1e-9)
            logs = mg.linalg.slogdet(x)
            np.testing.assert_allclose(logs[1].item(), np.log(want), atol=1e-9)
            (g,) = mg.grad(logs[1], x)
            np.testing.assert_allclose(g.numpy()[a != 0], 1 / a[a != 0], rtol=1e-12)


# ---- norms of other orders -----------------------------------------------------------------------


@by_dtype
@pytest.mark.parametrize("p", [3, 0.5, -1, -3, 1.5, 8])
def test_norms_of_every_order(p, dtype):
    limits = np.finfo(dtype.name)
    for ten in TENS[dtype]:
        for kind in LINES[:3]:
            x = line(kind, ten, 7, dtype, 1)
            sizes = [abs(mpf(float(a))) for a in x]
            if (p < 0 and not all(sizes)) or not any(sizes):
                y, slopes = mpf(0), [mpf(0)] * 7
            else:
                y = sum(a ** mpf(p) for a in sizes) ** (1 / mpf(p))
                slopes = [
                    mpf(float(np.sign(v))) * (a / y) ** (mpf(p) - 1) if a else mpf(0)
                    for a, v in zip(sizes, x, strict=True)
                ]
            for f in (mg.norm, mg.linalg.norm, mg.vector_norm):
                close_to(f(mg.tensor(x), p).numpy(), [y], dtype, 400)
            if y == 0 or y > float(limits.smallest_subnormal):
                for g in gradients(lambda t: mg.norm(t, p), x):
                    close_to(g, slopes, dtype, 900)


# ---- what is made of norms -----------------------------------------------------------------------


@by_dtype
def test_directions_do_not_depend_on_lengths(dtype):
    """normalize and cosine_similarity: gradients go with 1 / length."""
    far = (-120, -90, -40, 40, 90, 120) if dtype is mg.float32 else (-1010, -600, 600, 1010)
    r = np.random.default_rng(5)
    x, other, w = (r.standard_normal((3, 4)).astype(dtype.name) for _ in range(3))
    smallest = float(np.finfo(dtype.name).smallest_subnormal)

    def direction(t):
        return (F.normalize(t, 2.0, 1, smallest) * mg.tensor(w)).sum()

    def cosine(t, k=0):
        return (F.cosine_similarity(t, mg.tensor(np.ldexp(other, k)), 1, smallest)).sum()

    def third(t):
        return (F.normalize(t, 3.0, 1, smallest) * mg.tensor(w)).sum()

    tolerance = {"rtol": 200 * np.finfo(dtype.name).eps, "atol": 50 * np.finfo(dtype.name).eps}
    for f in (direction, third, cosine):
        near, slopes = f(mg.tensor(x)).numpy(), gradients(f, x)[0]
        for k in far:
            for other_k in far if f is cosine else (0,):
                one = (lambda t, k=other_k: cosine(t, k)) if f is cosine else f
                xk = np.ldexp(x, k)
                np.testing.assert_allclose(one(mg.tensor(xk)).numpy(), near, **tolerance)
                for g in gradients(one, xk):
                    np.testing.assert_allclose(np.ldexp(g, k), slopes, **tolerance)


def test_gradients_are_clipped_whose_norm_overflows():
    for size in (1e20, 1e38):
        p = nn.Parameter(mg.ones(1000))
        p.grad = mg.full((1000,), size)
        norm = nn.utils.clip_grad_norm_([p], 1.0)
        np.testing.assert_allclose(norm.item(), 1000**0.5 * size if size < 1e30 else np.inf)
        np.testing.assert_allclose(p.grad.numpy(), 1000**-0.5, rtol=1e-5)


# ---- normalisation -------------------------------------------------------------------------------

NORMALISED = {
    "layer": (lambda t, w: F.layer_norm(t, 8, w, None, 0.0), (4, 8), 8),
    "rms": (lambda t, w: F.rms_norm(t, 8, w, 0.0), (4, 8), 8),
    "batch": (lambda t, w: F.batch_norm(t, None, None, w, None, True, 0.1, 0.0), (8, 4), 4),
    "batch of planes": (
        lambda t, w: F.batch_norm(t, None, None, w, None, True, 0.1, 0.0),
        (3, 4, 5),
        4,
    ),
    "group": (lambda t, w: F.group_norm(t, 2, w, None, 0.0), (3, 4, 5), 4),
    "instance": (lambda t, w: F.instance_norm(t, None, None, w, eps=0.0), (3, 4, 5), 4),
    "local response": (lambda t, w: F.local_response_norm(t, 3, 1.0, 0.5, 0.0), (3, 4, 5), 4),
    "cdist": (lambda t, w: mg.cdist(t[0], t[1]), (2, 5, 7), 7),
    "cdist 3": (lambda t, w: mg.cdist(t[0], t[1], 3.0), (2, 5, 7), 7),
    "pairwise_distance": (lambda t, w: F.pairwise_distance(t[0], t[1], 2.0, 0.0), (2, 5, 7), 7),
    "hypot": (lambda t, w: mg.hypot(t[0], t[1]), (2, 5, 7), 7),
    "fro": (lambda t, w: mg.linalg.matrix_norm(t), (2, 5, 7), 7),
}
OF_DEGREE_1 = ("cdist", "cdist 3", "pairwise_distance", "hypot", "fro")


@by_dtype
@pytest.mark.parametrize("name", NORMALISED)
def test_normalisation_and_distances_scale(name, dtype):
    """f(k x) is f(x) or k f(x), and gradients go with 1 / k or stay, for powers of two k."""
    f, shape, width = NORMALISED[name]
    r, degree = np.random.default_rng(7), int(name in OF_DEGREE_1)
    x, weight = r.standard_normal(shape), mg.tensor(np.abs(r.standard_normal(width)), dtype)
    tolerance = 400 * np.finfo(dtype.name).eps

    def results(k, graph):
        t = mg.tensor(np.ldexp(x.astype(dtype.name), k), requires_grad=True)
        y = f(t, weight)
        g = mg.tensor(np.random.default_rng(1).standard_normal(y.shape), dtype)
        (slope,) = mg.grad(y, t, g, create_graph=graph)
        return np.ldexp(y.detach().numpy(), -degree * k), np.ldexp(
            slope.detach().numpy(), (1 - degree) * k
        )

    near = results(0, False)
    far = (-120, -90, 50, 63, 90, 120) if dtype is mg.float32 else (-1000, -600, 500, 512, 1000)
    for k in far:
        for graph in (False, True):
            for got, want in zip(results(k, graph), near, strict=True):
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@by_dtype
def test_sets_of_values_beside_large_ones_keep_their_bits(dtype):
    r, big = np.random.default_rng(8), 1e30 if dtype is mg.float32 else 1e200
    x = r.standard_normal((4, 6, 5)).astype(dtype.name)
    g, rows = mg.tensor(r.standard_normal((4, 6, 5)), dtype), x.copy()
    rows[1, 2:4] *= big

    def results(f, values):
        t = mg.tensor(values, requires_grad=True)
        y = f(t)
        return y.detach().numpy(), mg.grad(y, t, g)[0].numpy()

    for f, changed in (
        (lambda t: F.layer_norm(t, 5), np.s_[1, 2:4]),
        (lambda t: F.rms_norm(t, 5), np.s_[1, 2:4]),
        (lambda t: F.instance_norm(t), np.s_[1, 2:4]),
        (lambda t: F.group_norm(t, 3), np.s_[1, 2:4]),
        (lambda t: F.batch_norm(t, None, None, training=True), np.s_[:, 2:4]),
    ):
        for got, want in zip(results(f, rows), results(f, x), strict=True):
            assert np.isfinite(got).all()
            got[changed] = want[changed]
            np.testing.assert_array_equal(got, want)
    mean, var = mg.zeros(6, dtype=dtype), mg.ones(6, dtype=dtype)
    F.batch_norm(mg.tensor(rows), mean, var, training=True, momentum=1.0)
    np.testing.assert_allclose(mean.numpy(), rows.mean((0, 2)), rtol=1e-4)
