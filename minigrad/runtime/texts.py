"""Tables of text."""

from __future__ import annotations

__all__ = ["aligned"]


def aligned(rows: list[list[str]], sides: str) -> list[str]:
    """Rows of texts as lines, each column as wide as its widest text.

    ``sides`` has "<" for a column that begins at the left and ">" for one that ends at the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [f"{text:{side}{n}}" for text, side, n in zip(row, sides, widths, strict=False)]
        ).rstrip()
        for row in rows
    ]
