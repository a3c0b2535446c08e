"""Special functions under PyTorch's names in ``torch.special``."""

from __future__ import annotations

from minigrad.functions.elementwise import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    lgamma,
    log1p,
    logit,
    polygamma,
    round,  # noqa: A004 - PyTorch's name
    sigmoid,
    sinc,
    xlogy,
)
from minigrad.functions.reductions import logsumexp
from minigrad.functions.row_functions import binary, unary
from minigrad.functions.scans import log_softmax, softmax
from minigrad.ops import special as _s

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]

expit, gammaln, psi = sigmoid, lgamma, digamma
ndtr = unary(_s.NDTR)
log_ndtr = unary(_s.LOG_NDTR)
erfcx = unary(_s.ERFCX)
entr = unary(_s.ENTR)
i0e = unary(_s.I0E)
i1 = unary(_s.I1)
i1e = unary(_s.I1E)
xlog1py = binary(_s.XLOG1PY)
