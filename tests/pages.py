"""Runs what a page of the docs shows.

- The blocks of Python, one after the other, as one program; the kernels in it compile.
- Kernels: blocks of `pk` compile.
- Files: blocks whose first line is ```` ```pk title="NAME" ```` or, of Python, `python title="NAME"`.
- Commands: in blocks of `console`, lines that begin with `$ pkc`; below each its output, in which `...` stands for any
  number of lines. Commands of others are not run.
"""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Sequence
from pathlib import Path

from pkc import Kernel
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r'title="([^"]+)"')


def blocks(page: str, kind: str) -> list[tuple[str, str]]:
    """The title and the text of each block of a kind."""
    found = _BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    return [(title[1] if (title := _TITLE.search(more)) else "", text) for name, more, text in found if name == kind]


def write_files(page: str, folder: Path) -> None:
    """Put the files that a page shows into a folder, beside the examples."""
    for title, text in [*blocks(page, "pk"), *blocks(page, "python")]:
        if title:
            (folder / title).write_text(text, encoding="utf-8")
    (folder / "examples").symlink_to(ROOT / "examples")


def run_python(page: str, folder: Path) -> int:
    """Run the Python of a page, in the current folder; how many blocks that is."""
    texts = [text for title, text in blocks(page, "python") if not title]
    if texts:
        program = folder / f"{Path(page).stem}_page.py"
        program.write_text("\n".join(texts), encoding="utf-8")
        for found in runpy.run_path(str(program)).values():
            assert not isinstance(found, Kernel) or found.ir()
    return len(texts)


def compile_kernels(page: str) -> int:
    """Compile the kernels that a page shows, as far as the checks of the language; how many blocks that is."""
    texts = [text for _, text in blocks(page, "pk")]
    for text in texts:
        for kernel in (program := parse_text(Source(page, text).remember())).kernels:
            compile_program(program, kernel=kernel.name)
    return len(texts)


def commands(page: str) -> list[tuple[list[str], list[str]]]:
    """The commands of a page, with the output that it shows."""
    found: list[tuple[list[str], list[str]]] = []
    for _, text in blocks(page, "console"):
        for line in text.splitlines():
            if line.startswith("$ "):
                found.append((shlex.split(line[2:], comments=True), []))
            else:
                found[-1][1].append(line)
    return [(argv[1:], shown) for argv, shown in found if argv[0] == "pkc"]


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether output is as shown."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[place:]) for place in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])
