"""Interrupts before a chosen bytecode instruction of the package."""

from __future__ import annotations

import sys
from pathlib import Path

import minigrad as mg
from minigrad.tape import engine, grad_mode, tensor_base

OURS = str(Path(mg.__file__).parent)


def interrupted(action, n):
    """Interrupt an action before its n-th instruction. True if it has so many instructions."""
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
        # Python itself handles no interrupt at these points, before a scope or a lock is entered or
        # left.
        engine._delivering = type(engine._delivering)()
        tensor_base._changing_views = type(tensor_base._changing_views)()
        grad_mode._scope.set(None)
        grad_mode.no_grad_scopes.clear()
    return False
