"""A chart for each group: every library's dot in every row, against the limit of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.libraries import PEERS
from benchmarks.registry import BACKWARD, GROUPS
from benchmarks.rows import Row

__all__ = ["draw"]

_COLOURS = {
    "minigrad": "tab:red",
    "numpy": "tab:gray",
    "torch": "tab:orange",
    "jax": "tab:blue",
}
_INCHES_A_ROW, _INCHES_A_PANEL = 0.17, 3.6
_Panel = tuple[str, str]  # the dtype, and whether backward is in it


def draw(rows: Sequence[Row], machine: Mapping[str, Any], folder: Path) -> str:
    """Write the charts; returns what to say about them, also when matplotlib is missing."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return "no charts: matplotlib is not installed (pip install matplotlib)"
    written = []
    for group in GROUPS:
        shown = [r for r in rows if r.group == group and r.subject in r.times and len(r.times) > 1]
        if not shown or group == "control":
            continue
        path = folder / f"benchmarks-{group}.png"
        figure = _figure(plt, shown)
        figure.suptitle(f"{group}: {machine['cpu']}, {machine['date']}", fontsize=8)
        figure.savefig(path, dpi=110)
        plt.close(figure)
        written.append(str(path))
    return "charts: " + (", ".join(written) or "none, no row has two libraries")


def _figure(plt: Any, rows: Sequence[Row]) -> Any:
    """Side by side the dtypes and ways of the rows, one line for each of their names."""
    panels = _unique((row.dtype, BACKWARD if BACKWARD in row.name else "") for row in rows)
    names = _unique(row.name.replace(BACKWARD, "") for row in rows)
    places = {name: place for place, name in enumerate(names)}
    figure, grid = plt.subplots(
        1,
        len(panels),
        figsize=(3 + _INCHES_A_PANEL * len(panels), 1.8 + _INCHES_A_ROW * len(names)),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    of_limit = any(row.limit for row in rows)
    for axes, panel in zip(grid[0], panels, strict=True):
        inside = [r for r in rows if (r.dtype, BACKWARD if BACKWARD in r.name else "") == panel]
        measure = _share_of_limit if of_limit else _speed_of_best
        _dots(axes, inside, places, measure)
        axes.set_title(" ".join(panel).replace(" , ", ", "), fontsize=8)
        axes.set_xlabel(
            "share of the machine's limit" if of_limit else "relative to the best peer", fontsize=8
        )
    grid[0][0].set_yticks(range(len(names)), names, fontsize=7)
    grid[0][0].set_ylim(len(names) - 0.5, -0.5)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _share_of_limit(row: Row, name: str) -> float | None:
    return row.limit.median / row.times[name].median if row.limit else None


def _speed_of_best(row: Row, name: str) -> float | None:
    if row.best not in row.times or not row.times[name].median:
        return None
    return row.times[row.best].median / row.times[name].median


def _dots(
    axes: Any,
    rows: Sequence[Row],
    places: Mapping[str, int],
    measure: Callable[[Row, str], float | None],
) -> None:
    """Right is better; the line at 1 is the limit, or the best of the others."""
    for name in reversed(PEERS):  # ours on top
        points = [
            (measure(row, name), places[row.name.replace(BACKWARD, "")])
            for row in rows
            if name in row.times
        ]
        drawn = [(x, y) for x, y in points if x is not None]
        axes.scatter(
            [x for x, _ in drawn],
            [y for _, y in drawn],
            s=20,
            label=name,
            color=_COLOURS[name],
            alpha=0.85,
            zorder=3,
        )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.grid(visible=True, axis="both", linewidth=0.3)
    axes.tick_params(axis="x", labelsize=7)
