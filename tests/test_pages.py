"""What pages show for GPUs imports what it names, and examples run as they stand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pkc.runtime.element import ELEMENTS

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_snippets_for_gpus_import_what_they_name() -> None:
    """They need GPUs to run; that their imports are there, and that they leave out none of pkc's, needs none."""
    for program in BLOCK.findall((ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")):
        imports = "\n".join(line for line in program.splitlines() if line.startswith(("import ", "from ")))
        names: dict[str, object] = {}
        exec(imports, names)
        for name in ("pkc", "Mesh", "LoadedKernel", "artifact_for", "load_program"):
            assert name in names or not re.search(rf"\b{name}[.(]", program.replace(imports, "")), name


def test_the_page_of_the_runtime_has_the_types_of_torch() -> None:
    page = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    first = " | ".join(f"`{name}`" for name in ELEMENTS)
    second = " | ".join(f"`{element.torch.removeprefix('torch.')}`" for element in ELEMENTS.values())
    assert f"| pkc | {first} |\n" in page and f"| torch | {second} |\n" in page


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_end_with_a_run(example: Path) -> None:
    assert example.read_text(encoding="utf-8").splitlines()[-2:] == [
        'if __name__ == "__main__":',
        f"    print({example.stem}.simulate(ranks=4))",
    ]


def test_an_example_runs_as_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "reduce_scatter.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1].startswith("ok: ")
