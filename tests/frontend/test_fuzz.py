"""Damaged sources: whatever stands in a file, only `PkcError` comes out, and soon.

`PKC_FUZZ` sets how many sources are tried.
"""

from __future__ import annotations

import linecache
import os
import random
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.frontend.python import read_captured
from pkc.frontend.tree import Program
from pkc.location import Source
from tests.clock import within

COUNT = int(os.environ.get("PKC_FUZZ", "2000"))
LIMIT_S = 1.0

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").iterdir())
PK = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES if path.suffix == ".pk"}
PY = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES if path.suffix == ".py"}
# All that the grammar has, to be read and not compiled.
SYNTAX = """\
kernel every(X: i32[P], C: f32[M, N].symmetric().scratch(), ready: signal[ranks], flag: const = -0x1):
    schedule(overlap=intra_sm, deterministic=False); n = 1_000
    with role(communicator, sms=16,):
        for e in range(0, ranks):
            for p in blocks(P, 128, start=count[e] // 2 % 3, stop=count[e + 1]):
                store(C.at(e)[p, :], -gather(X, X[p], 0).T)
            if D == 128: total += rowsum(exp2(s - top))
            elif D > 2 * 64 or (D < 1) and not True:
                total -= 1.5e-3
            else:
                total = total / .5
    # the end
    with role(consumer):
        wait(ready[0], ranks)
"""
CORPUS = {**PK, "syntax": SYNTAX}
DECORATOR = re.compile(r"^@(?:pkc\.kernel.*|no_type_check)\n", re.MULTILINE)

PIECES = [
    *"()[]:;,.@=+-*/%<>#\\'\"{}!\t\r\0é\U0001d518\ufeff\u2028 ",
    *(
        "\n",
        "\r\n",
        "\n\n",
        "\n    ",
        "\n        ",
        "    ",
        "//",
        "+=",
        "==",
        "->",
        "**",
        "0x",
        "1e999",
        "9" * 30,
        ".T",
    ),
    *("kernel ", " for ", " in ", "if ", "elif ", "else:", "with ", " and ", "not ", "inf", "True", "def ", "lambda "),
    *(".at(r)[0]", "f(", "A[", "(" * 200, ")" * 200, "-" * 200, "x.T" * 120),
]

WORD = re.compile(r"\w+|[-+*/%@=<>]+")
WORDS = [
    *("0", "1", "2", "64", "1_000_000_000_000", "1.5", "inf", "True", "rank", "ranks", "M", "N", "A", "i", "-1", "x.T"),
    *("bf16", "f32", "i32", "e4m3", "const", "signal", "shard", "replicate", "symmetric", "scratch", "+=", "@", "//"),
    *("range", "tasks", "blocks", "ring", "gather", "reduce", "all_reduce", "store_add", "wait", "barrier", "rowmax"),
    *("exp", "max", "where", "cast", "zeros", "full", "positions", "start", "len", "if", "== 0", "[0]", "()", ":"),
]


def mutations(seed: str, source: str) -> Iterator[str]:
    """Damaged copies of a text without end, the same ones for the same seed."""
    random_ = random.Random(seed)
    while True:
        text = source
        for _ in range(random_.choice((1, 1, 1, 2, 3, 8))):
            text = _damaged(random_, text)
        yield text


def _damaged(random_: random.Random, text: str) -> str:
    start = random_.randint(0, len(text))
    end = min(len(text), start + random_.choice((0, 1, 1, 2, 5, 20)))
    piece = text[start:end]
    match random_.randrange(10):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:start] + random_.choice(PIECES) + text[end:]
        case 2:
            return text[:start] + piece * random_.choice((2, 3, 150)) + text[end:]
        case 3:
            return text[:start]
        case 4:
            at = random_.randint(0, len(text))
            return text[:at] + piece + text[at:]
        case 5:
            return _with_words_swapped(random_, text)
        case _:
            return _with_a_word_replaced(random_, text)


def _with_words_swapped(random_: random.Random, text: str) -> str:
    words = text.split(" ")
    one, other = random_.randrange(len(words)), random_.randrange(len(words))
    words[one], words[other] = words[other], words[one]
    return " ".join(words)


def _with_a_word_replaced(random_: random.Random, text: str) -> str:
    """What parses as before, and means something else."""
    found = list(WORD.finditer(text))
    if not found:
        return text
    old, new = random_.choice(found), random_.choice((random_.choice(found)[0], random_.choice(WORDS)))
    return text[: old.start()] + new + text[old.end() :]


def parsed(text: str) -> Program | None:
    """The tree of a text, None for one that is refused."""
    try:
        return parse_text(Source("fuzz.pk", text))
    except PkcError as error:
        assert len(str(error)) < 20_000
        return None


def compiles(program: Program) -> bool:
    """Whether a tree is a program; nothing but a refusal may come out."""
    try:
        compile_program(program)
    except PkcError as error:
        assert error.diagnostics
        # Findings about the IR, PK440 on, would be ours and not the program's.
        assert all(found.code < "PK440" or found.code >= "PK500" for found in error.diagnostics), str(error)
        assert len(str(error)) < 100_000
        return False
    return True


def python_function(text: str) -> Callable[..., object] | None:
    """The last function that a text of Python defines; None if Python refuses the text."""
    name = "<fuzz>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {}
    try:
        exec(compile(text, name, "exec", dont_inherit=True), scope)
    except (Exception, SystemExit):
        return None
    functions = [v for v in scope.values() if isinstance(v, FunctionType) and v.__code__.co_filename == name]
    return functions[-1] if functions else None


def as_python(text: str) -> Program | None:
    """The tree of a kernel's text as a Python function; None if Python or pkc refuse it."""
    text = "from __future__ import annotations\n" + re.sub("^kernel ", "def ", text, flags=re.MULTILINE)
    function = python_function(text)
    try:
        return function and read_captured(function).program
    except PkcError:
        return None


@pytest.mark.parametrize("source", CORPUS.values(), ids=CORPUS)
def test_spellings_of_the_corpus_agree(source: str) -> None:
    assert parsed(source) == as_python(source) is not None


@pytest.mark.parametrize("source", PK.values(), ids=PK)
def test_corpus_compiles(source: str) -> None:
    program = parsed(source)
    assert program is not None
    assert compiles(program)


def handled(text: str) -> Program | None:
    """The tree of a text, also compiled; None if it is refused."""
    program = parsed(text)
    if program is not None:
        compiles(program)
    return program


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_only_diagnostics_come_out(name: str) -> None:
    accepted = 0
    for text in islice(mutations(name, CORPUS[name]), COUNT // (len(CORPUS) + len(PY))):
        program = within(LIMIT_S, lambda text=text: handled(text), text)
        if program is None or len(program.kernels) > 1:
            continue
        accepted += 1
        # What both readers accept, they read alike.
        python = as_python(text)
        assert python is None or python == program, text
    assert accepted


@pytest.mark.parametrize("name", PY)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_only_diagnostics_come_out_of_python(name: str) -> None:
    read = 0
    for text in islice(mutations(name, PY[name]), COUNT // (len(CORPUS) + len(PY))):
        # Python runs what stands around the kernel, and takes forever for a tower of powers.
        function = None if "**" in text else python_function(DECORATOR.sub("", text))
        if function is None:
            continue
        try:
            program = within(LIMIT_S, lambda function=function: read_captured(function).program, text)
        except PkcError as error:
            assert len(str(error)) < 20_000
            continue
        within(LIMIT_S, lambda program=program: compiles(program), text)
        read += 1
    assert read
