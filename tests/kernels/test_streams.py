"""Non-temporal stores and string instructions give the results of ordinary stores."""

import pytest

# Every way into memory: whole chunks and rests, lines begun in the middle, one and two results,
# every width, operands that repeat or have strides, and what is written over an operand.
SCRIPT = """
import hashlib
import numpy as np
import minigrad as mg
import minigrad.nn.functional as F

rng = np.random.default_rng(7)

def show(name, *tensors):
    for t in tensors:
        print(name, t.shape, hashlib.sha256(t.numpy().tobytes()).hexdigest())

for dtype in (np.float32, np.float64):
    for shape in ((40_001,), (1 << 17,), (301, 333), (130, 1024), (7, 5, 2001)):
        x, y = (mg.tensor(rng.normal(size=shape).astype(dtype), requires_grad=True) for _ in "ab")
        row, column = (mg.tensor(rng.normal(size=n).astype(dtype)) for n in (shape[-1], 1))
        plain = x.detach()
        show("sum", plain + y.detach(), plain * row, plain / column, plain.T + y.detach().T)
        show("test", plain < y.detach(), mg.isfinite(plain), (plain * 10).astype(mg.int64))
        show("where", mg.where(plain < row, plain, y.detach()))
        reduced = mg.sum(x, 0) * 2, mg.logsumexp(x, -1), mg.norm(x, dim=0), mg.norm(x, dim=-1)
        soft = mg.softmax(x, -1), mg.log_softmax(x, -1)
        for z in (x + y, x * y, x / (y * y + 1), mg.exp(x) - y, *reduced, *soft):
            x.grad = y.grad = None
            z.backward(mg.tensor(rng.normal(size=z.shape).astype(dtype)))
            show("gradient", z.detach(), x.grad, *([] if y.grad is None else [y.grad]))
        rare = plain * 2
        rare[..., 5:60:11] = mg.tensor(np.array([1e5, -np.inf, np.nan, -150, -1e30], dtype))
        functions = mg.sin, mg.cos, mg.tanh, mg.exp, mg.log, mg.sqrt, mg.sigmoid, F.silu, F.gelu
        for f in functions:
            z = rare.clone().requires_grad_()
            g = mg.tensor(rng.normal(size=shape).round().astype(dtype))
            (w := f(z)).backward(g)
            show("by themselves", w.detach(), z.grad, f(rare.T))
        show("copy", plain.clone(), plain.T.clone(), mg.cat([plain, plain], -1))
        show("full", mg.tensor(dtype(3)).expand(shape).clone())
        for shift in (1, 3):
            into = mg.zeros(plain.size + 64, dtype=plain.dtype)
            into[shift : shift + plain.size] = plain.reshape(-1)
            show("slice", into)
        twice = plain.clone()
        twice += plain
        show("in place", twice)
    for shape in ((7, 16), (1023, 64), (131, 1024), (10, 5008), (66, 999)):
        x, w, b, g = (mg.tensor(rng.normal(size=n).astype(dtype), requires_grad=True)
                      for n in (shape, shape[1], shape[1], shape))
        with mg.no_grad():
            x[3:5] = mg.tensor(np.array([[np.inf], [1.5]], dtype))
            g[3:6] = 0
        for norm in (F.layer_norm, F.rms_norm):
            x.grad = w.grad = None
            y = norm(x, shape[1:], w, *([b] if norm is F.layer_norm else []))
            y.backward(g.detach())
            show("norm", y.detach(), x.grad, w.grad)
        show("bias", b.grad)
    for shape in ((5, 4, 4, 16), (3, 8, 28, 28), (2, 6, 5, 7)):
        x, w, b, g = (mg.tensor(rng.normal(size=n).astype(dtype), requires_grad=True)
                      for n in (shape, shape[1], shape[1], shape))
        with mg.no_grad():
            x[:, 1] = mg.tensor(np.array([1.5], dtype))
            g[:, 1] = 0
        for of in (lambda: F.batch_norm(x, None, None, w, b, training=True),
                   lambda: F.batch_norm(x, b.detach(), w.detach() ** 2, w, b),
                   lambda: F.group_norm(x, 2, w, b)):
            x.grad = w.grad = b.grad = None
            y = of()
            y.backward(g.detach())
            show("channels", y.detach(), x.grad, w.grad, b.grad)
    for size in ((30, 1), (1, 5001), (1, 1)):
        again = mg.tensor(rng.normal(size=size).astype(dtype)).expand((30, 5001))
        into = mg.zeros((30, 5100), dtype=again.dtype)
        into[:, 7:5008] = again
        show("repeated", again.clone(), into, (again < 0).clone())
    show("repeated", mg.tensor(np.arange(30)[:, None] % 3 == 0).expand((30, 20_001)).clone())
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_streamed_results_are_the_same_bits(threads, fresh):
    ordinary, small, middling = (
        fresh(SCRIPT, MINIGRAD_STREAM_BYTES=threshold, MINIGRAD_NUM_THREADS=threads)
        for threshold in ("0", "4096", "400000")  # the last: half to twice of it, where repeated
    )
    assert ordinary.count("gradient") > 50
    assert small == middling == ordinary
