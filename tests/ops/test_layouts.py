"""Losses, softmaxes and normalisations give the same bits for any memory layout, with all options.

Sizes lie on both sides of where a kernel takes another path: blocks, strips, rows of few classes.
"""

import functools
import itertools

import numpy as np
import oracle
import pytest

import minigrad as mg
from minigrad.nn import functional as F

SMALL = [(3, 2, 128), (2, 23, 9), (2, 5, 3, 17), (4, 7), (3, 130, 20), (1, 3, 2, 3, 5)]
LARGE = [(2, 700, 40), (2, 2500, 34), (5, 2049)]
REDUCTIONS = ("none", "mean", "sum")


def classes(rng, shape):
    """Options of a loss with a target that is a class; one in five counts nothing."""
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    target[rng.random(target.shape) < 0.2] = 1
    weight = rng.uniform(0, 2, shape[1])
    weight[0] = 0
    for reduction, ignored, weighed in itertools.product(REDUCTIONS, (-100, 1), (False, True)):
        options = {"reduction": reduction, "ignore_index": ignored}
        yield target, weight if weighed else None, options


def entropies(rng, shape):
    for target, weight, options in classes(rng, shape):
        for smoothing in (0.0, 0.1):

            def op(x, w=None, target=target, options=options, smoothing=smoothing):
                smooth = {"label_smoothing": smoothing, **options}
                return F.cross_entropy(x, mg.tensor(target), w, **smooth)

            yield op, [weight]


def picks(rng, shape):
    for target, weight, options in classes(rng, shape):
        yield (
            (
                lambda x, w=None, target=target, options=options: F.nll_loss(
                    x, mg.tensor(target), w, **options
                )
            ),
            [weight],
        )


def shares(rng, shape):
    target = rng.dirichlet(np.ones(shape[1]), (shape[0], *shape[2:]))
    target, weight = np.moveaxis(target, -1, 1), rng.uniform(0.5, 2, shape[1])
    for reduction, smoothing in itertools.product(REDUCTIONS, (0.0, 0.1)):
        options = {"reduction": reduction, "label_smoothing": smoothing}
        yield functools.partial(F.cross_entropy, **options), [target]
        yield (
            (lambda x, t, w, options=options: F.cross_entropy(x, t, w, **options)),
            [
                target,
                weight,
            ],
        )


def elementwise(rng, shape):
    other, positive = rng.standard_normal(shape), rng.uniform(0.1, 2, shape)
    for reduction in REDUCTIONS:
        for loss in (F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.soft_margin_loss):
            yield functools.partial(loss, reduction=reduction), [other]
        yield functools.partial(F.gaussian_nll_loss, reduction=reduction), [other, positive]
        yield functools.partial(F.poisson_nll_loss, full=True, reduction=reduction), [positive]
        yield functools.partial(F.kl_div, reduction=reduction), [positive]
        yield (
            (
                lambda x, t, reduction=reduction: F.binary_cross_entropy_with_logits(
                    x, t, reduction=reduction
                )
            ),
            [rng.uniform(0, 1, shape)],
        )


def softmaxes(rng, shape):
    for axis in range(len(shape)):
        for op in (F.softmax, F.log_softmax, F.softmin, mg.logsumexp, mg.logcumsumexp, mg.var):
            yield functools.partial(op, dim=axis), []
        yield functools.partial(F.normalize, dim=axis), []
        yield functools.partial(F.cosine_similarity, dim=axis), [rng.standard_normal(shape)]


def normalisations(rng, shape):
    weight, bias = rng.uniform(0.5, 2, shape[1]), rng.standard_normal(shape[1])
    yield (lambda x: F.batch_norm(x, None, None, training=True)), []
    yield (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)), [weight, bias]
    if len(shape) > 2:
        yield F.instance_norm, []
        yield (lambda x, w, b: F.instance_norm(x, weight=w, bias=b)), [weight, bias]
        yield (lambda x, w, b: F.group_norm(x, 1, w, b)), [weight, bias]
        yield (lambda x: F.group_norm(x, shape[1])), []
        yield (lambda x: F.local_response_norm(x, 3)), []
    for axes in range(1, len(shape)):
        over = shape[-axes:]
        yield (lambda x, over=over: F.layer_norm(x, over)), []
        yield (
            (lambda x, w, b, over=over: F.layer_norm(x, over, w, b)),
            [rng.uniform(0.5, 2, over), rng.standard_normal(over)],
        )
        yield (lambda x, w, over=over: F.rms_norm(x, over, w)), [rng.uniform(0.5, 2, over)]


def results(op, arrays, layout, cotangent, others):
    """The result and the gradients, of inputs in that layout."""
    kinds = [layout, *[others] * (len(arrays) - 1)]
    inputs = [
        oracle.tensor_in_layout(a, k, requires_grad=True)
        for a, k in zip(arrays, kinds, strict=True)
    ]
    y = op(*inputs)
    g = cotangent(y.shape).astype(arrays[0].dtype)
    gradients = mg.grad(y, inputs, oracle.tensor_in_layout(g, others), allow_unused=True)
    return [t if t is None else t.detach().numpy() for t in (y, *gradients)]


def check(family, shape, dtype, rng):
    x = rng.standard_normal(shape).astype(dtype)
    # some far from the others, as those whose exponentials are rescaled
    huge = (x * rng.choice([1, 60], shape)).astype(dtype)
    for op, rest in family(rng, shape):
        rest = [a.astype(dtype) for a in rest if a is not None]
        seed = int(rng.integers(1 << 30))

        def cotangent(shape, seed=seed):
            return np.random.default_rng(seed).standard_normal(shape)

        for values in (x, huge):
            plain = results(op, [values, *rest], "contiguous", cotangent, "contiguous")
            for layout in ("transposed", "channels_last", "stepped", "reversed"):
                others = layout if rng.random() < 0.5 else "contiguous"
                got = results(op, [values, *rest], layout, cotangent, others)
                for a, b in zip(got, plain, strict=True):
                    if b is not None:
                        np.testing.assert_array_equal(a, b, f"{op} {shape} {layout} {others}")


FAMILIES = (entropies, picks, shares, elementwise, softmaxes, normalisations)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SMALL, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_any_layout_gives_the_same_bits(family, shape, dtype, rng):
    check(family, shape, dtype, rng)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_entropies_of_many_classes(shape, dtype, rng):
    check(entropies, shape, dtype, rng)
