"""Letters and digits outside ASCII are refused in both spellings, also where Python would take them for others."""

# ruff: noqa: RUF001

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import main
from pkc.diagnostics import PkcError
from pkc.driver.compiler import load_program

HEAD = "import pkc\nfrom pkc.language import *\n\nM, = dims('M')\n\n\n@pkc.kernel\ndef "
KERNEL = """\
k(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 4)):
        x = A[m] * 2.0  # é
        B[m] = x
"""


def refused(path: Path, text: str) -> str:
    """The code of the finding, and what stands at its place."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PkcError) as raised:
        load_program(path)
    (finding,) = raised.value.diagnostics
    return f"{finding.code} {finding.span.text}"


def test_only_the_comment_is_not_ascii(tmp_path: Path) -> None:
    for name, head in (("k.pk", "kernel "), ("k.py", HEAD)):
        (tmp_path / name).write_text(head + KERNEL, encoding="utf-8")
    assert load_program(tmp_path / "k.pk") == load_program(tmp_path / "k.py")


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("x", "é", "é"),
        ("x", "xé", "xé"),
        # Compatibility forms: Python reads the fullwidth letter as `x`, the superscript digit as 2.
        ("x", "ｘ", "ｘ"),
        ("x", "x２", "x２"),
        ("x", "x٤", "x٤"),
        ("[M]", "[Ｍ]", "Ｍ"),
        ("f32", "ｆ32", "ｆ32"),
        ("blocks", "ｂlocks", "ｂlocks"),
        ("k(", "ｋ(", "ｋ"),
        (" in ", " ｉn ", ""),
    ],
)
def test_a_letter(tmp_path: Path, old: str, new: str, name: str) -> None:
    text = KERNEL.replace(old, new)
    found = refused(tmp_path / "k.pk", "kernel " + text)
    assert found == f"PK101 {next(letter for letter in new if not letter.isascii())}"
    if name:
        assert refused(tmp_path / "k.py", HEAD + text) == f"PK151 {name}"
    else:
        assert refused(tmp_path / "k.py", HEAD + text).startswith("PK160")


@pytest.mark.parametrize("number", ["٤", "4٤", "４", "²", "0x４", "1e٤", "4.٤"])
def test_a_digit(tmp_path: Path, number: str) -> None:
    text = KERNEL.replace("2.0", number)
    digit = next(letter for letter in number if not letter.isascii())
    assert refused(tmp_path / "k.pk", "kernel " + text) == f"PK101 {digit}"
    assert refused(tmp_path / "k.py", HEAD + text).startswith("PK160 ")


def test_decorators_count_too(tmp_path: Path) -> None:
    text = HEAD.replace("@pkc.kernel", "@pkc.kernel(ｓtages=2)") + KERNEL
    assert refused(tmp_path / "k.py", text) == "PK151 ｓtages"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "--ranks", "1", "--set", "M=٤"],
            "error[PK903]: `--set` gives `M` the value `٤`, which is not a number",
        ),
        (["run", "--ranks", "1", "--set", "M=4.٤"], "error[PK903]"),
        (["check", "--ranks", "2", "--delay", "rank=１"], "error[PK906]"),
        (["compile", "--emit", "roles", "--schedule", "stages=４"], "error[PK502]"),
        (["compile", "--schedule", "tile_M=６4"], "error[PK502]"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    path = tmp_path / "k.pk"
    path.write_text("kernel " + KERNEL, encoding="utf-8")
    assert main([*arguments, str(path)]) == 1
    assert capsys.readouterr().err.startswith(message)
