"""Charts, one for each group: a dot per library in every row, against the machine's limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.libraries import PEERS
from benchmarks.recording import Recording
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
_Panel = tuple[str, str]  # the dtype, and whether backward is included


def draw(recording: Recording, name: str, folder: Path) -> list[Path]:
    """Write the charts of a recording. Without matplotlib an ImportError says what to install."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError(
            "[benchmarks] charts need matplotlib, which is not installed: "
            "python -m pip install 'matplotlib>=3.7'"
        ) from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    facts, threads, written = recording.facts, recording.threads, []
    for group in GROUPS:
        shown = _drawable(recording.rows, group)
        if not shown or group == "control":
            continue
        path = folder / f"{name}-t{threads}-{group}.png"
        figure = _figure(plt, shown)
        many = "s" if threads > 1 else ""
        title = f"{group}: {facts['cpu']}, {threads} thread{many}, {facts['date']}"
        figure.suptitle(title, fontsize=8)
        figure.savefig(path, dpi=110)
        plt.close(figure)
        written.append(path)
    return written


def _drawable(rows: Iterable[Row], group: str) -> list[Row]:
    """The rows of a group that have a library besides the subject."""
    return [r for r in rows if r.group == group and r.subject in r.times and len(r.times) > 1]


def _figure(plt: Any, rows: Sequence[Row]) -> Any:
    """A figure with panels for dtypes and directions, and a line for each row's name."""
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
    """Draw the dots. Right is better. The line at 1 is the limit, or the best other library."""
    for name in reversed(PEERS):  # minigrad on top
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
