"""Reports of a profile: tables, a trace for Chrome, and a picture of memory over time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minigrad.runtime.texts import aligned

if TYPE_CHECKING:
    from minigrad.profiler import profile

__all__ = ["chrome_trace", "memory_timeline", "table"]


def table(p: profile, sort_by: str, by: str, limit: int | None) -> str:
    """The sums of a profile as a table."""
    rows = p.totals(sort_by, by)
    total = sum([row.seconds for row in p.totals()])
    head = [by, "calls", "time", "share", "bytes", "FLOPs", "FLOP/s"]
    lines = [head + (["of limit"] if p.limits else [])]
    for row in rows[:limit]:
        speed = row.flops / row.seconds if row.seconds else 0.0
        line = [
            row.name or "(no module)",
            f"{row.calls:,}",
            _scaled(row.seconds, "s"),
            f"{100 * row.seconds / total:.1f} %" if total else "",
            _scaled(row.bytes, "B"),
            _scaled(row.flops, ""),
            _scaled(speed, ""),
        ]
        if p.limits:
            line.append("" if row.limit is None else f"{100 * row.limit:.0f} %")
        lines.append(line)
    left = len(rows) - len(rows[:limit])
    calls = sum([row.calls for row in p.totals()])
    return "\n".join(
        [
            *aligned(lines, "<>>>>>>>"),
            *([f"and {left} more"] if left else []),
            f"{calls:,} calls, {_scaled(total, 's')} in kernels, {_scaled(p.wall, 's')} in all",
        ]
    )


_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"))


def _scaled(value: float, unit: str) -> str:
    """A number with three digits and a prefix, as "1.50 ms"."""
    if value == 0:
        return f"0 {unit}".strip()
    size, prefix = next((step for step in _STEPS if value >= step[0]), (1e-9, "n"))
    number = value / size
    digits = 0 if number >= 100 or (size == 1 and unit != "s") else 1 if number >= 10 else 2
    return f"{number:.{digits}f} {prefix}{unit}".strip()


def chrome_trace(p: profile, path: Any) -> None:
    """Write the events in the Trace Event Format, times in microseconds."""
    events = p.events
    origin = min([event.begin for event in events], default=0)
    process = os.getpid()
    traced: list[dict[str, Any]] = []
    for event in events:
        start = (event.begin - origin) / 1000
        traced.append(
            {
                "name": event.name,
                "cat": "backward" if event.backward else "forward",
                "ph": "X",
                "ts": start,
                "dur": (event.end - event.begin) / 1000,
                "pid": process,
                "tid": event.thread,
                "args": {
                    "module": event.modules[-1] if event.modules else "",
                    "line": f"{event.line[0]}:{event.line[1]}",
                    "bytes": event.bytes,
                    "flops": event.flops,
                },
            }
        )
        traced.append(
            {
                "name": "memory",
                "ph": "C",
                "ts": start + (event.end - event.begin) / 1000,
                "pid": process,
                "args": {"bytes": event.live},
            }
        )
    whole = {"traceEvents": traced, "displayTimeUnit": "ms"}
    Path(path).write_text(json.dumps(whole), encoding="utf-8")


def memory_timeline(p: profile, path: Any) -> None:
    """Draw the bytes in use after each call."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "[memory_timeline] drawing needs the Python package matplotlib: pip install matplotlib"
        ) from None
    events = p.events
    origin = min([event.begin for event in events], default=0)
    times = [(event.end - origin) / 1e6 for event in events]
    live = [event.live / 1e6 for event in events]
    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.fill_between(times, live, step="post", alpha=0.3)
    axes.step(times, live, where="post")
    if events:
        top = max(range(len(live)), key=live.__getitem__)
        axes.annotate(
            f"{live[top]:.1f} MB after {events[top].name}",
            (times[top], live[top]),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
        )
        axes.set_ylim(0, 1.15 * live[top] or 1)
    axes.set_xlabel("ms")
    axes.set_ylabel("MB in use")
    figure.savefig(path)
