"""`pkc format`: what it changes, and that it changes no program."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import main
from pkc.diagnostics import PkcError
from pkc.editor.format import formatted
from pkc.frontend.parse import parse_tree
from pkc.location import Source

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples").rglob("*.pk"))
UGLY = """\
from  shared.activations import gelu,silu


# of each row
kernel  k( A:bf16[ M,K ] . shard( 0,zigzag = True ), B :bf16[M,K],
   D : const=64, scale:f32) :
  schedule( stages =2 )
  for m,k in tasks(blocks( M,64,start= - 1),blocks(K , D)):   # all
      a=-A[ m,k ]*scale


      if rank==0 and not(m%2==1) :
              B[m,k]=a-( - a ).T
      else:
       # both
       B[m, :]+=max(
       a,
         a,
       )
  c=1.5 ; d=c
def  f(x,y): return x//y
"""
PRETTY = """\
from shared.activations import gelu, silu

# of each row
kernel k(A: bf16[M, K].shard(0, zigzag=True), B: bf16[M, K],
         D: const = 64, scale: f32):
    schedule(stages=2)
    for m, k in tasks(blocks(M, 64, start=-1), blocks(K, D)):  # all
        a = -A[m, k] * scale

        if rank == 0 and not (m % 2 == 1):
            B[m, k] = a - (-a).T
        else:
            # both
            B[m, :] += max(
                a,
                a,
            )
    c = 1.5; d = c

def f(x, y): return x // y
"""


def test_what_changes() -> None:
    assert formatted(UGLY.replace("   # all", "  # all")).splitlines() == PRETTY.splitlines()
    assert formatted(PRETTY) == PRETTY


def test_comments_behind_lines_keep_their_column() -> None:
    text = "kernel k(X: f32[M], Y: f32[M]):\n    for m in tasks(blocks(M, 8)):\n        Y[m]=X[m]      # so\n"
    assert formatted(text).splitlines()[-1] == "        Y[m] = X[m]    # so"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_squeezed_examples_come_back(path: Path) -> None:
    """Without a space that can be left out, an example is the same program, and comes back as it was but for the
    places of comments."""
    text = path.read_text(encoding="utf-8")
    squeezed = "\n".join(squeeze(line) for line in text.splitlines())
    assert parse_tree(Source("a.pk", formatted(squeezed))) == parse_tree(Source("a.pk", text))
    assert formatted(squeezed).replace(" ", "") == text.replace(" ", "")


def squeeze(line: str) -> str:
    code, hash_, comment = line.partition("#")
    indent = len(code) - len(code.lstrip())
    words = code.strip()
    for sign in "=+-*/@,:<>()[]":
        words = words.replace(f" {sign}", sign).replace(f"{sign} ", sign)
    return " " * indent + words + ("  " if words and hash_ else "") + hash_ + comment


def test_what_is_no_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.pk"
    path.write_text("kernel k(:\n", encoding="utf-8")
    assert main(["format", str(path)]) == 1
    assert path.read_text(encoding="utf-8") == "kernel k(:\n"
    with pytest.raises(PkcError):
        formatted("kernel k(:\n")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.pk"
    path.write_text(UGLY, encoding="utf-8")
    assert main(["format", "--check", str(path)]) == 1
    assert path.read_text(encoding="utf-8") == UGLY
    assert main(["format", str(path)]) == 0
    assert main(["format", "--check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path} would change\n{path}\n"
