"""Gradient checks: derivatives compared with finite differences.

The slow mode compares the whole Jacobian: a difference for each input element against a backward
for each output element. The fast mode compares random projections of it, v J u, and calls the slow
mode to name the place when one is off. In either mode it is also checked that

* each gradient has its input's shape and dtype,
* the same backward twice gives the same bits,
* the function gives the same values twice, so it draws nothing at random,
* the gradients of several outputs add up to the gradient of all of them together,
* the backward is linear in the upstream gradient,
* upstream gradients that are strided, transposed or broadcast give what contiguous ones give,
* neither forward nor backward writes into an input.

A mismatch where one-sided differences disagree is reported as a kink. Any other one names the
operation whose rule is off, if the operations of the graph can be checked one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad.autograd import enable_grad, grad
from minigrad.checking.check import STENCILS, Check, Options
from minigrad.checking.inputs import as_tuple, direction, interleaved, is_checked, outputs_of
from minigrad.checking.mismatch import GradcheckError
from minigrad.functions.creation import tensor

if TYPE_CHECKING:
    from minigrad._tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck", "numerical_gradient_check"]

_PROJECTIONS = 4  # of the fast mode, if no number is given


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-5,
    fast: int = 0,
    stencil: int = 2,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    allow_no_grad: bool = False,
    check_float32: bool = False,
    seed: int = 0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = True,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of ``func(*inputs)`` are those that central differences show.

    Checked are the inputs that require grad; they are float64, of any shape and strides. They are
    perturbed in place and put back, so ``func`` may also reach them as a module does its
    parameters. ``func`` returns a tensor or several. A float output that does not require grad must
    not vary with the inputs. At least one must require grad unless ``allow_no_grad``.

    Agreement is ``|analytic - numeric| <= atol + rtol * |numeric|``. The step is ``eps``, rounded
    to a power of two, which makes x + h exact. ``stencil=4`` takes the difference of fourth order
    with the square root of ``eps``. It is for values that are too large or noisy for the other.
    ``fast`` is the number of random projections to use in place of the whole Jacobian, 4 for
    instance. ``nondet_tol`` is how far two runs of one backward may differ. With ``check_float32``
    float32 inputs are accepted: the function is checked in float64, and its gradient in float32
    compared with that in float64.

    The other options are PyTorch's. ``fast_mode`` is 4 projections. ``check_undefined_grad`` leaves
    out the upstream gradients of some outputs. ``check_batched_grad`` runs several upstream
    gradients through :func:`minigrad.vmap` at once. ``check_forward_ad`` also checks the tangents
    of forward mode, ``check_batched_forward_grad`` several of them by vmap. With
    ``check_backward_ad=False`` nothing else is checked. ``masked`` is for sparse tensors and
    changes nothing.

    Raises GradcheckError, which is an AssertionError and a RuntimeError, for a wrong derivative, or
    returns False if not ``raise_exception``. In any case it raises ValueError for inputs that
    cannot be checked: none requires grad, elements share memory, are NaN or infinite, memory is
    read-only. Float32 inputs are a TypeError.

    >>> import minigrad as mg
    >>> from minigrad import gradcheck
    >>> x = mg.tensor([0.5, 1.5], dtype=mg.float64, requires_grad=True)
    >>> gradcheck(lambda x: (x * x.exp()).sum(), x)
    True
    """
    if stencil not in STENCILS:
        raise ValueError(f"[gradcheck] stencil is {stencil!r}, but must be 2 or 4")
    if not eps > 0:
        raise ValueError(f"[gradcheck] eps is {eps!r}, but must be positive")
    if not (check_backward_ad or check_forward_ad):
        raise ValueError(
            "[gradcheck] neither check_backward_ad nor check_forward_ad is True: nothing is checked"
        )
    step = 2.0 ** round(math.log2(eps if stencil == 2 else math.sqrt(eps)))
    options = Options(
        atol,
        rtol,
        fast or (_PROJECTIONS if fast_mode else 0),
        step,
        stencil,
        nondet_tol,
        allow_no_grad,
        seed,
        check_undefined_grad,
        check_grad_dtypes,
        check_backward_ad,
        check_forward_ad,
        check_batched_grad,
        check_batched_forward_grad,
    )
    with enable_grad(), np.errstate(invalid="ignore"):  # inf - inf is reported as a mismatch
        check = Check(func, inputs, options)
        try:
            if not check.is_float32:
                check.in_float64()
            elif check_float32:
                check.in_float32()
            else:
                raise TypeError(
                    "[gradcheck] differences in float32 are too coarse to find faults: "
                    "use float64 inputs, or check_float32=True"
                )
        except GradcheckError:
            if raise_exception:
                raise
            return False
    return True


numerical_gradient_check = gradcheck


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    strided_grad_outputs: bool = False,
    gen_non_contig_grad_outputs: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    raise_exception: bool = True,
    seed: int = 0,
    **options: Any,
) -> bool:
    """Whether the second derivatives of ``func`` are right: gradcheck of its gradient.

    The function checked takes the inputs and an upstream gradient for each output that requires
    grad. It returns the gradients of the inputs. Upstream gradients are random unless
    ``grad_outputs`` are given. With ``strided_grad_outputs`` it is checked twice more: with
    non-contiguous upstream gradients, and with single numbers broadcast (stride 0).
    ``gen_non_contig_grad_outputs`` is PyTorch's name for the former. ``check_fwd_over_rev`` runs
    forward mode over the gradient, ``check_rev_over_rev`` a backward. Other options are those of
    :func:`gradcheck`.

    >>> import minigrad as mg
    >>> from minigrad import gradgradcheck
    >>> gradgradcheck(lambda x: x * x * x, mg.tensor([0.5], dtype=mg.float64, requires_grad=True))
    True
    """
    args = as_tuple(inputs)
    with enable_grad():
        shapes = [(y.shape, y.dtype) for y in outputs_of(func, args) if y.requires_grad]
    rng = np.random.default_rng(seed)
    if grad_outputs is None:
        grad_outputs = [
            tensor(direction(rng, shape), dtype, requires_grad=True) for shape, dtype in shapes
        ]
    upstream = as_tuple(grad_outputs)
    variants = [upstream]
    if strided_grad_outputs or gen_non_contig_grad_outputs:
        variants.append(tuple([interleaved(v).requires_grad_() for v in upstream]))
    if strided_grad_outputs:
        one = direction(rng, ())
        variants.append(tuple([tensor(one, v.dtype, requires_grad=True) for v in upstream]))

    def gradients(*values: Any) -> tuple[Any, ...]:
        xs, vs = values[: len(args)], values[len(args) :]
        outputs = [y for y in outputs_of(func, xs) if y.requires_grad]
        if not outputs:
            raise GradcheckError("no output of func requires grad")
        upstream = [v.expand(y.shape) for v, y in zip(vs, outputs, strict=True)]
        return grad(outputs, [x for x in xs if is_checked(x)], upstream, create_graph=True)

    options.update(check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev)
    try:
        for vs in variants:
            gradcheck(gradients, (*args, *vs), seed=seed, **options)
    except GradcheckError as error:
        if raise_exception:
            raise GradcheckError(
                f"[gradgradcheck] in the function from {len(args)} inputs, then {len(upstream)} "
                f"grad_outputs, to the gradients: {error}"
            ) from None
        return False
    return True
