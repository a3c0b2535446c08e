"""Interrupts before a chosen instruction of the package's bytecode."""

from __future__ import annotations

import sys
from pathlib import Path

import minigrad as mg
from minigrad.tape import engine, grad_mode, tensor_base

OURS = str(Path(mg.__file__).parent)


def interrupted(action, n):
    """Whether the action comes to its n-th instruction, before which it is interrupted."""
    done = 0

    def tracer(frame, what, _):
        nonlocal done
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        frame.f_trace_opcodes = True
        done += what == "opcode"
        if done == n and what == "opcode":
            raise KeyboardInterrupt
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
        # Where the tracer comes before a scope or a lock is entered or left, Python itself sees no
        # interrupt.
        engine._delivering = type(engine._delivering)()
        tensor_base._changing_views = type(tensor_base._changing_views)()
        grad_mode._scope.set(None)
        grad_mode.no_grad_scopes.clear()
    return False
