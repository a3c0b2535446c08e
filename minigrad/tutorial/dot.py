"""Drawing of a graph: DOT text, which Graphviz's program ``dot`` makes a picture of."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["Drawing", "quoted"]


class Drawing:
    """A graph as DOT text, ``source``. Notebooks show it as a picture if ``dot`` is installed.

    ``print`` shows the text, and ``save`` writes it, without Graphviz. ``render`` and ``pipe`` make
    pictures in a format of ``dot``: svg, png, pdf and others.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.source = "\n".join(["digraph graph_of_operations {", *lines, "}", ""])

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f"<drawing of {self.source.count(' -> ')} edges>"

    def save(self, filename: Any = "graph.dot") -> str:
        """Write the DOT text to a file, and return its name."""
        Path(filename).write_text(self.source, encoding="utf-8")
        return str(filename)

    def pipe(self, format: str = "svg") -> bytes:  # noqa: A002 - graphviz names it so
        """The picture in a format of ``dot``; RuntimeError where that is missing, or fails."""
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError(
                "[draw_graph] a picture needs Graphviz's program dot, which is not installed: apt "
                "install graphviz; the DOT text is in .source, and save() writes it"
            )
        done = subprocess.run(
            [program, f"-T{format}"],
            input=self.source.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"[draw_graph] dot failed: {done.stderr.decode().strip()}")
        return done.stdout

    def render(self, filename: Any = "graph", format: str = "svg") -> str:  # noqa: A002
        """Write the DOT text to ``filename`` and the picture to ``filename.format``; its name."""
        picture = self.pipe(format)
        path = Path(f"{filename}.{format}")
        self.save(filename)
        path.write_bytes(picture)
        return str(path)

    def _repr_svg_(self) -> str | None:
        """The picture in a notebook; None without ``dot``."""
        return self.pipe("svg").decode() if shutil.which("dot") else None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """A notebook's ways to show it: a picture if there can be one, and the DOT text."""
        svg = self._repr_svg_()
        return {"text/plain": self.source} | ({} if svg is None else {"image/svg+xml": svg})


def quoted(text: str) -> str:
    """A string of the DOT language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
