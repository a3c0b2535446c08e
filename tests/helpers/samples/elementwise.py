"""Samples of elementwise operations."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad import functions, special
from minigrad.ops import TABLE
from samples.base import (
    NEGATIVE,
    POSITIVE,
    UNIT,
    S,
    Z,
    bools,
    each,
    function,
    ints,
)


def from_the_table() -> dict[str, Any]:
    """Samples of the op table's rows, which state where they are smooth."""
    found = {}
    for row in TABLE.values():
        prefix = "" if row.name in functions.__all__ else "special."
        if row.domain and row.name in (*functions.__all__, *special.__all__):
            f = function(prefix + row.name)
            shapes = ((2, 1, 3), (4, 1)) if row.arity == 2 else ((2, 1, 3),)
            found[prefix + row.name] = (
                S(f, *shapes, over=row.domain),
                S(f, *[()] * row.arity, over=row.domain),
            )
    return found


ELEMENTWISE = {
    "abs": (S(mg.abs, (2, 3), over=NEGATIVE),),
    "add": (S(lambda a, b: mg.add(a, b, alpha=0.5), (2, 3), (3,)), S(lambda x: 2.5 + x, (3,))),
    "sub": (S(lambda a, b: mg.sub(a, b, alpha=3), (3,), (2, 3)), S(lambda x: 2.5 - x, (3,))),
    "rsub": (S(lambda a, b: mg.rsub(a, b, alpha=3), (3,), (2, 3)),),
    "mul": (S(lambda x: mg.mul(x, -1.5), (3,)),),
    "div": (
        S(lambda x: mg.div(2.5, x), (3,), over=POSITIVE),
        S(lambda x: mg.div(x, 0.3), (3,)),
        S(
            lambda a, b: mg.div(a, b, rounding_mode="floor"),
            (3,),
            (3,),
            over=[(3.1, 3.3), (1.2, 1.5)],
        ),
        S(
            lambda a, b: mg.div(a, b, rounding_mode="trunc"),
            (3,),
            (3,),
            over=[(-3.3, -3.1), (1.2, 1.5)],
        ),
    ),
    "true_divide": (S(mg.true_divide, (2, 3), (3,), over=POSITIVE),),
    "pow": (
        S(lambda x: x**3, (2, 3)),
        S(lambda x: x**-1.5, (3,), over=POSITIVE),
        S(lambda x: 2.0**x, (3,)),
    ),
    "copysign": (S(mg.copysign, (3,), (2, 3), over=[POSITIVE, NEGATIVE]),),
    "atan2": (S(mg.atan2, (3,), (3,), over=[NEGATIVE, (-2, 2)]),),
    "relu": (S(mg.relu, (3,), over=NEGATIVE),),
    "remainder": (S(mg.remainder, (3,), (3,), over=[(3.1, 3.3), (-1.5, -1.2)]),),
    "fmod": (S(lambda x: mg.fmod(x, 1.2), (3,), over=(-3.3, -3.1)),),
    "round": (S(lambda x: mg.round(x, decimals=1), (3,), over=(0.06, 0.14)),),
    "positive": (S(mg.positive, (2, 3)),),
    "logit": (S(lambda x: mg.logit(x, eps=0.05), (2, 3), over=UNIT),),
    "polygamma": tuple(S(lambda x, n=n: mg.polygamma(n, x), (4,), over=(0.5, 4)) for n in range(4)),
    "special.i0e": (S(special.i0e, (3,), over=NEGATIVE),),
    "clamp": (
        S(lambda x: mg.clamp(x, -1.03, 0.94), (2, 4)),
        S(
            lambda x, low, high: mg.clamp(x, low, high),
            (2, 4),
            (4,),
            (2, 1),
            over=[(-2, 2), (-1.6, -0.4), (0.4, 1.6)],
        ),
        S(lambda x, high: mg.clamp(x, max=high), (2, 3), (3,)),
    ),
    "clamp_min": (S(lambda x: mg.clamp_min(x, 0.1), (2, 3)),),
    "clamp_max": (S(lambda x: mg.clamp_max(x, 0.1), (2, 3)),),
    "nan_to_num": (
        S(
            lambda x: mg.nan_to_num(x, posinf=3.0, neginf=-2.0),
            (2, 3),
            before=lambda x: x / bools(0, 1, 1),
        ),
    ),
    "lerp": (
        S(mg.lerp, (2, 3), (3,), (2, 1), over=[(-2, 2), (-2, 2), UNIT]),
        S(lambda a, b: mg.lerp(a, b, 0.7), (2, 3), (2, 3)),
    ),
    "addcmul": (
        S(mg.addcmul, (2, 3), (3,), (2, 1)),
        S(lambda x, a, b: mg.addcmul(x, a, b, value=-0.5), (3,), (3,), (3,)),
    ),
    "addcdiv": (
        S(mg.addcdiv, (2, 3), (3,), (2, 1), over=POSITIVE),
        S(lambda x, a, b: mg.addcdiv(x, a, b, value=-0.5), (3,), (3,), (3,), over=POSITIVE),
    ),
    **each(
        "isfinite isinf isnan isneginf isposinf signbit logical_not", lambda f: (Z(f, (2, 1, 3)),)
    ),
    **each(
        "eq ne lt le gt ge logical_and logical_or logical_xor isclose allclose equal",
        lambda f: (Z(f, (2, 3), (2, 3)), Z(lambda x: f(x, x), (2, 3))),
    ),
    **each(
        "bitwise_and bitwise_or bitwise_xor",
        lambda f: (Z(lambda x: f(x > 0, x < 1), (2, 3)), Z(lambda x: f((4 * x).long(), 6), (3,))),
    ),
    **each(
        "bitwise_left_shift bitwise_right_shift",
        lambda f: (Z(lambda x: f((9 * x).long(), ints(0, 1, 2)), (2, 3)),),
    ),
    "bitwise_not": (Z(lambda x: mg.bitwise_not((9 * x).long()), (2, 3)),),
}
