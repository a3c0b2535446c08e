"""The table, the summary that comes before it, and the comparison with an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.libraries import PEERS
from benchmarks.limits import Limits
from benchmarks.rows import MET, MISSED, NEAR, UNKNOWN, Row
from benchmarks.timing import Spread

__all__ = ["changes", "summary", "table"]

_MARKS = {MET: "ok", NEAR: "NEAR", MISSED: "MISSED", UNKNOWN: "?"}
_NAME, _TIME, _RATIO = 58, 15, 8
_NOTICEABLE = 0.05  # a smaller change is not reported


def si(value: float, unit: str) -> str:
    """Three digits and a prefix: 12.3 µs."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value * 1e9:.3g} n{unit}"


def _time(row: Row, name: str) -> str:
    found = row.times.get(name)
    if found is None:
        why = row.absent.get(name, "")
        return "-" if why in ("", "not installed") else why.partition(":")[0]
    if row.unit != "s":
        return f"{found.median:.3g} {row.unit}"
    return f"{si(found.median, 's')} ±{(found.high - found.low) / 2 / found.median:.0%}"


def _line(row: Row) -> str:
    columns = [row.subject, *PEERS[1:]]
    cells = [f"{f'{row.name} {row.dtype}'.strip():<{_NAME}}"]
    cells += [f"{_time(row, name):>{_TIME}}" for name in columns]
    cells += [
        f"{row.ratios[name].median:>{_RATIO}.2f}"
        if name in row.ratios
        else " " * (_RATIO - 1) + "-"
        for name in PEERS[1:]
    ]
    cells.append(f"{si(row.rate, row.rate_unit) if row.rate else '':>14}")
    cells.append(f"{f'{row.share.median:.0%}' if row.share else '':>7}")
    cells.append("  " + "; ".join(f"{_MARKS[v.result]} {v.target}" for v in row.verdicts))
    return "".join(cells).rstrip()


def _header(row: Row) -> str:
    head = ["minigrad" if row.subject == "minigrad" else "numpy again", *PEERS[1:]]
    cells = [" " * _NAME, *(f"{name:>{_TIME}}" for name in head)]
    cells += [f"{'/' + name:>{_RATIO}}" for name in PEERS[1:]]
    return "".join(cells) + f"{'rate':>14}{'share':>7}  targets"


def _limits_text(limits: Limits | str) -> str:
    if isinstance(limits, str):
        return f"limits: not measured, {limits}"
    return "limits: " + ", ".join(
        f"{name} {si(v, 'FLOP/s' if name.startswith('fma') else 'B/s')}"
        for name, v in limits.items()
    )


def table(rows: Iterable[Row], facts: Mapping[str, Any], limits: Limits | str) -> str:
    """All rows by group, under the conditions of the run."""
    machine, settings = facts["machine"], facts["settings"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, minigrad on {machine['minigrad ISA']}, "
        f"Python {machine['python']}, {machine['date']}",
        ", ".join(f"{name} {v}" for name, v in machine["versions"].items() if v),
        "set: " + ", ".join(f"{name}={v}" for name, v in settings.items()),
        "in use: " + ", ".join(f"{name} {v}" for name, v in facts["threads in use"].items()),
        _limits_text(limits),
        "time: median of the rounds ± half the distance of the quartiles; ratio: minigrad's time / "
        "the other's in the same round, below 1 minigrad is faster;",
        "share: of the FMA peak of the same rounds, or of memory bandwidth where no cache holds "
        "the data; jax is jitted and waited for, its compilation is not timed",
    ]
    group = None
    for row in rows:
        if row.group != group:
            group = row.group
            lines += ["", group.upper(), _header(row)]
        lines.append(_line(row))
    return "\n".join(lines)


def _fell_short(row: Row) -> list[str]:
    return [
        f"  {_MARKS[v.result]:<7}{row.key}: {v.target}; found "
        + ("nothing" if v.found is None else f"{v.found:.3g}")
        for v in row.verdicts
        if v.result != MET
    ]


def _noise(rows: Sequence[Row]) -> str:
    ratios = [r.ratios["numpy"] for r in rows if r.group == "control" and "numpy" in r.ratios]
    if not ratios:
        return ""
    worst = max(abs(r.median - 1) for r in ratios)
    widest = max(r.high - r.low for r in ratios)
    return (
        f"control (NumPy against itself): medians stray up to {worst:.1%} from 1, "
        f"quartiles lie up to {widest:.1%} apart"
    )


def summary(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """What fell short first, then what failed, how many targets were met, and how noisy it was."""
    verdicts = [v for row in rows for v in row.verdicts]
    missed = [row for row in rows if row.worst() == MISSED]
    others = [row for row in rows if row.worst() in (NEAR, UNKNOWN)]
    lines = ["TARGETS MISSED" if missed else "No target is missed."]
    lines += [line for row in missed for line in _fell_short(row)]
    if others:
        lines.append("NEAR (within the spread) OR NOT MEASURED")
        lines += [line for row in others for line in _fell_short(row)]
    broken = [
        f"  {row.key}: {name} {why}"
        for row in rows
        for name, why in row.absent.items()
        if why != "not installed"
    ]
    if broken:
        lines += ["NOT TIMED", *broken]
    met = sum(v.result == MET for v in verdicts)
    lines.append(f"{met} of {len(verdicts)} targets met in {len(rows)} rows.")
    lines.append(_noise(rows))
    load = machine.get("load average")
    if load and load[0] > machine["cores"] / 2:
        lines.append(
            f"The machine was busy at the start: load average {load[0]:.1f} on "
            f"{machine['cores']} cores. Do not keep these figures."
        )
    return "\n".join(filter(None, lines))


# ---- comparison ----------------------------------------------------------------------------------


def _basis(row: Mapping[str, Any]) -> tuple[str, Spread] | None:
    """What is compared: the ratio to NumPy, in which the machine's drift cancels, else the time."""
    if "numpy" in row["ratios"]:
        return "ratio to numpy", Spread(**row["ratios"]["numpy"])
    if row["subject"] in row["times"]:
        return "time", Spread(**row["times"][row["subject"]])
    return None


def _change(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    before, after = _basis(old), _basis(new)
    if before is None or after is None or before[0] != after[0]:
        return None if before == after else f"  {key}: measured in only one of the two"
    (what, a), (_, b) = before, after
    apart = b.low > a.high or b.high < a.low
    factor = b.median / a.median
    if not apart or abs(factor - 1) < _NOTICEABLE:
        return None
    word = "slower" if factor > 1 else "faster"
    return (
        f"  {word} {max(factor, 1 / factor):.2f}x  {key}: {what} {a.median:.3g} -> {b.median:.3g}"
    )


def _results(row: Mapping[str, Any]) -> dict[str, str]:
    return {v["target"]: v["result"] for v in row["verdicts"]}


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What changed between two runs: quartiles apart and medians more than 5 % apart."""
    lines = ["CHANGES since " + str(old["machine"]["date"])]
    for fact in ("cpu", "minigrad ISA", "versions"):
        if old["machine"][fact] != new["machine"][fact]:
            lines.append(f"  other {fact}: {old['machine'][fact]} -> {new['machine'][fact]}")
    if old["settings"] != new["settings"]:
        lines.append(f"  other settings: {old['settings']} -> {new['settings']}")
    before = {row["key"]: row for row in old["rows"] if row["group"] != "control"}
    after = {row["key"]: row for row in new["rows"] if row["group"] != "control"}
    common = [key for key in after if key in before]
    found = [_change(key, before[key], after[key]) for key in common]
    lines += sorted(line for line in found if line)
    for key in common:
        results = _results(before[key])
        lines += [
            f"  target {results[target]} -> {result}: {key}: {target}"
            for target, result in _results(after[key]).items()
            if results.get(target, result) != result
        ]
    lines += [f"  new row: {key}" for key in after if key not in before]
    gone = [key for key in before if key not in after]
    if gone:
        lines.append(f"  {len(gone)} rows of the older run were not measured")
    if len(lines) == 1:
        lines.append("  nothing beyond the spread")
    return "\n".join(lines)
