"""What the help of a refusal of a Python kernel says is done to its file, and the program compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.driver.compiler import compile_program
from pkc.driver.programs import load_program
from tests.errors.golden import HERE
from tests.errors.test_helps import Followed

FOLLOWED = {
    "PK118-module": Followed(
        edits=(("@kernel", "pi = math.pi\n\n\n@kernel"), ("* math.pi", "* pi")), said="write `pi = math.pi` before"
    ),
    "PK150-executed": Followed(
        edits=(
            (
                'exec("def twice(x):\\n    return x * 2.0", made)\ntwice = made["twice"]',
                "def twice(x):\n    return x * 2.0",
            ),
        ),
        said="write the function as a `def`",
    ),
    "PK150-lambda-called": Followed(
        edits=(("twice = lambda x: x * 2.0", "def twice(x):\n    return x * 2.0"),),
        said="write the function as a `def`",
    ),
    "PK151-annotation": Followed(edits=((" -> None", ""),), said="leave it out"),
    "PK151-else": Followed(
        edits=(("        else:\n            pass\n", ""),), said="an `else` without any is left out"
    ),
    "PK151-function-of-module": Followed(edits=(("np.exp(", "exp("),), said="`exp(x)`"),
    "PK151-invert": Followed(edits=(("~A[m]", "A[m] ^ -1"),), said="of integers write `x ^ -1`"),
    "PK151-method": Followed(edits=(("A[m].sum()", "rowsum(A[m])"),), said="`rowsum(x)`"),
    "PK151-method-first": Followed(edits=(("A[m].exp()", "exp(A[m])"),), said="functions come first: `exp(x)`"),
    "PK151-power": Followed(edits=(("A[m] ** 2", "A[m] * A[m]"),), said="multiply"),
    "PK151-type": Followed(
        edits=(('"f32[M]"', "f32[M]"), ("import *\n", 'import *\n\n(M,) = dims("M")\n')),
        said="without quotes: `f32[M]`",
    ),
    "PK152-number-of-numpy": Followed(
        edits=(("@kernel", "W = float(W)\n\n\n@kernel"),), said="write `W = float(W)` before"
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_python_program_that_follows_the_help_compiles(name: str, tmp_path: Path) -> None:
    text, followed = (HERE / f"{name}.py").read_text(encoding="utf-8"), FOLLOWED[name]
    printed = (HERE / f"{name}.err").read_text(encoding="utf-8")
    assert any(followed.said in line for line in printed.splitlines() if "= help: " in line)
    for before, after in followed.edits:
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "mended.py").write_text(text, encoding="utf-8")
    compile_program(load_program(tmp_path / "mended.py"), level="roles", smaller=False)
