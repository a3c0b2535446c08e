"""The chart: speed relative to NumPy, a dot for each library in every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.libraries import PEERS
from benchmarks.rows import Row

__all__ = ["draw"]

_COLOURS = {"minigrad": "tab:red", "torch": "tab:orange", "jax": "tab:blue"}
_INCHES_A_ROW = 0.19


def draw(rows: Sequence[Row], machine: Mapping[str, Any], path: Path) -> str:
    """Write the chart; returns what to say about it, also when matplotlib is missing."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return "no chart: matplotlib is not installed (python -m pip install 'minigrad[bench]')"
    shown = [r for r in rows if "numpy" in r.times and r.group != "control" and r.unit == "s"]
    if not shown:
        return "no chart: no row was measured with NumPy"
    figure, axes = plt.subplots(figsize=(9, 1.6 + _INCHES_A_ROW * len(shown)), layout="constrained")
    positions = range(len(shown))
    for name in PEERS:
        if name == "numpy":
            continue
        points = [
            (r.times["numpy"].median / r.times[name].median, y)
            for y, r in zip(positions, shown, strict=True)
            if name in r.times
        ]
        if points:
            xs, ys = zip(*points, strict=True)
            on_top = 3 if name == "minigrad" else 2
            axes.scatter(xs, ys, s=22, label=name, color=_COLOURS[name], zorder=on_top, alpha=0.85)
    axes.axvline(1, color="black", linewidth=1, label="numpy")
    axes.set_xscale("log")
    axes.set_xlabel("speed relative to NumPy by hand (right is faster)")
    axes.set_yticks(list(positions), [f"{r.group}: {r.name} {r.dtype}" for r in shown], fontsize=7)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(visible=True, axis="both", linewidth=0.3)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)
    figure.suptitle(f"{machine['cpu']}, {machine['date']}", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return f"chart: {path}"
