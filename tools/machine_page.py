"""Writes the sections of docs/machine.md that follow from the code: `python -m tools.machine_page`."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from pkc.codegen.build import build_kernel, resources
from pkc.driver.compiler import compile_program, load_program
from pkc.targets.sm_90a.instructions import PLAIN, Instruction
from tools import told

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "machine.md"
KERNEL = ROOT / "examples" / "gemm.pk"
GEMM = ROOT / "tests" / "codegen" / "gemm.cu"


def page(text: str, *names: str) -> str:
    """The page with these sections up to date, or all of them."""
    for name in names or SECTIONS:
        section = SECTIONS[name]()
        begin = f"<!-- {name}: written by `python -m tools.machine_page` -->\n"
        text = re.sub(
            f"{re.escape(begin)}.*?<!-- end -->", lambda _, b=begin, p=section: f"{b}{p}<!-- end -->", text, flags=re.S
        )
    return text


def _resources() -> str:
    """What the machine code of a GEMM takes, by NVRTC."""
    told = resources(build_kernel(compile_program(load_program(KERNEL), level="machine").kernel))
    return f"```console\n$ pkc compile examples/gemm.pk --emit cubin -o gemm.cubin --explain\n...\n{told}\n```\n"


def _loop() -> str:
    """The main loop of the consumer."""
    lines = GEMM.read_text(encoding="utf-8").splitlines()
    first = next(
        number
        for number, line in enumerate(lines)
        if "mbarrier_wait" in line and "again" not in line and "void" not in line
    )
    start = max(number for number in range(first) if lines[number].strip().startswith("for ("))
    depth = len(lines[start]) - len(lines[start].lstrip())
    stop = next(number for number in range(first, len(lines)) if lines[number] == f"{' ' * depth}}}")
    shown = [line for line in lines[start : stop + 1] if not line.startswith("#line")]
    return "```\n" + textwrap.dedent("\n".join(shown)) + "\n```\n"


def _table() -> str:
    rows = ["| name | operands | gives | does |", "|---|---|---|---|"]
    return "\n".join([*rows, *map(_row, PLAIN)]) + "\n"


def _row(entry: Instruction) -> str:
    description = entry.description.replace("|", "\\|")
    return f"| `{entry.name}` | {', '.join(entry.operands)} | {entry.result or ''} | {description} |"


SECTIONS = {"resources": _resources, "loop": _loop, "table": _table}


if __name__ == "__main__":
    told.words(__doc__)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
