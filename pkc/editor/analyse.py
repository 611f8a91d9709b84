"""What is wrong with a `.pk` file, what stands at a place of it, and what may be written there.

Lines and columns count from zero, columns in characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Operation, SSAValue

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.types import ArrayType, BlockType, TileType, dtype_name
from pkc.driver.compiler import Compiled, compile_program
from pkc.editor.words import meanings
from pkc.frontend import tree
from pkc.frontend.parse import parse_text
from pkc.frontend.schedule import KEYS
from pkc.language import __all__ as _WORDS
from pkc.location import NOWHERE, Source, Span, span_of

_GUESSED = 64
"""What a constant without a default is, so that its kernel can be looked at."""

KEYWORDS = ("kernel", "def", "return", "from", "import", "for", "in", "with", "if", "elif", "else", "and", "or", "not")
MODIFIERS = ("shard", "replicate", "symmetric", "scratch", "at", "T")
_NAMES_OF_PYTHON = {"kernel", "dims"}
WORDS = tuple(
    sorted({*_WORDS, "abs", "max", "min", "round", "range", "print", "len", "True", "False"} - _NAMES_OF_PYTHON)
)
"""The words of the language, without keywords."""


@dataclass(frozen=True)
class Problem:
    """A diagnostic at a place: where it begins and ends, and whether it is an error or, for a GPU alone, a warning."""

    first: tuple[int, int]
    last: tuple[int, int]
    code: str
    text: str
    error: bool


@dataclass(frozen=True)
class Analysis:
    """A file as far as it compiles: each kernel at the tile level and at the roles level."""

    program: tree.Program | None
    tile: tuple[Compiled, ...]
    roles: tuple[Compiled, ...]
    problems: tuple[Problem, ...]


@lru_cache(maxsize=16)
def analyse(text: str, path: str) -> Analysis:
    """Compile every kernel of a text as far as it goes."""
    try:
        program = parse_text(Source(path, text).remember())
    except PkcError as error:
        return Analysis(None, (), (), tuple(_problems(error, error=True)))
    tile, roles, problems = list[Compiled](), list[Compiled](), list[Problem]()
    for kernel in program.kernels:
        constants = {
            param.name: _GUESSED
            for param in kernel.params
            if param.annotation.base == "const" and param.default is None
        }
        try:
            tile.append(compile_program(program, kernel=kernel.name, constants=constants))
        except PkcError as error:
            problems += _problems(error, error=True)
            continue
        problems += (_problem(warning, error=False) for warning in tile[-1].warnings)
        try:
            roles.append(compile_program(program, kernel=kernel.name, constants=constants, level="roles"))
            compile_program(program, kernel=kernel.name, constants=constants, level="machine")
        except PkcError as error:
            problems += _problems(error, error=False)
    return Analysis(program, tuple(tile), tuple(roles), tuple(problems))


def _problems(raised: PkcError, *, error: bool) -> Iterator[Problem]:
    for found in raised.diagnostics:
        yield _problem(found, error=error and found.severity == "error")


def _problem(found: Diagnostic, *, error: bool) -> Problem:
    texts = [found.fill(found.title), found.fill(found.label), found.fill(found.note), found.fill(found.help)]
    text = "\n".join(text for text in (*texts, found.context) if text)
    return Problem(*_ends(found.span), found.code, text, error)


def _ends(span: Span) -> tuple[tuple[int, int], tuple[int, int]]:
    if span.source is NOWHERE.source:
        return (0, 0), (0, 1)
    end = Span(span.source, max(span.end, span.start + 1), max(span.end, span.start + 1))
    return (span.line - 1, span.column - 1), (end.line - 1, end.column - 1)


# Hover


def hover(text: str, path: str, line: int, column: int) -> str:
    """What stands at a place: its shape or meaning, the roles that work on its line, and what passes decided there."""
    found = analyse(text, path)
    word = word_at(text, line, column)
    parts = [_meaning(found, word, line), *_decided(found, path, line)]
    return "\n\n".join(part for part in parts if part)


def word_at(text: str, line: int, column: int) -> str:
    """The name around a place; empty if there is none."""
    lines = text.split("\n")
    words = re.finditer(r"\w+", lines[line]) if line < len(lines) else ()
    return next((match[0] for match in words if match.start() <= column <= match.end()), "")


def _meaning(found: Analysis, word: str, line: int) -> str:
    for compiled in found.tile:
        kernel = compiled.kernel
        if not _spans(kernel, line):
            continue
        argument = kernel.arguments.get(word)
        if argument is not None:
            return f"`{word}`: {_type(argument)}"
        values = [value for value in _values(kernel) if (value.name_hint or "").rstrip("_0123456789") == word]
        here = [value for value in values if _line(value.owner) == line] or values
        if here:
            return f"`{word}`: {_type(here[-1])}"
    return meanings().get(word, "")


def _spans(kernel: KernelOp, line: int) -> bool:
    lines = [found for op in kernel.walk() if (found := _line(op)) is not None]
    return bool(lines) and min(lines) <= line <= max(lines)


def _line(owner: object) -> int | None:
    """The line of an operation, if its text is known."""
    if not isinstance(owner, Operation):
        return None
    span = span_of(owner.location)
    return None if span.source is NOWHERE.source else span.line - 1


def _values(kernel: KernelOp) -> Iterator[SSAValue]:
    for op in kernel.walk():
        yield from op.results


def _type(value: SSAValue) -> str:
    kind = value.type
    if isinstance(kind, TileType):
        return f"tile {' x '.join(map(str, kind.shape)) or 'of one element'}, {dtype_name(kind.element_type)}"
    if isinstance(kind, BlockType):
        return f"block of at most {kind.extent} positions of {kind.of}"
    return f"array `{kind}`" if isinstance(kind, ArrayType) else str(kind)


def _decided(found: Analysis, path: str, line: int) -> Iterator[str]:
    place = f"{path}:{line + 1}"
    for compiled in found.roles:
        working = [
            str(role.role.data)
            for role in compiled.kernel.body.block.ops
            if isinstance(role, RoleOp) and any(_line(op) == line for op in role.walk() if op is not role)
        ]
        if working:
            yield f"roles: {', '.join(dict.fromkeys(working))}"
        said = [str(why) for why in (*compiled.explanations, *compiled.remarks)]
        lines = [one.removeprefix(f"{place}: ") for one in said if one.startswith(f"{place}: ")]
        if lines:
            yield "\n".join(f"- {one}" for one in dict.fromkeys(lines))


# Completion


def completions(text: str, line: int, column: int) -> list[tuple[str, str]]:
    """What may be written at a place, each with what it is: modifiers behind a dot, keys in a schedule, else names."""
    before = "\n".join([*text.split("\n")[:line], text.split("\n")[line][:column]])
    if re.search(r"\.\w*$", before):
        return [(name, "modifier") for name in MODIFIERS]
    if re.search(r"schedule\([^)]*$", before):
        values = [value for kind in KEYS.values() if isinstance(kind, tuple) for value in kind]
        return [*((f"{key}=", "key of the schedule") for key in KEYS), *((value, "value") for value in values)]
    begin = max(before.rfind("\nkernel "), before.rfind("\ndef "), 0)
    ours = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", re.sub(r"#[^\n]*", "", before[begin:])))
    known = {*KEYWORDS, *WORDS}
    typed = re.search(r"\w*$", before)
    names = [name for name in ours if name not in known and not (typed and name == typed[0])]
    words = [*((word, "word") for word in WORDS), *((word, "keyword") for word in KEYWORDS)]
    return [*((name, "name of this kernel") for name in names), *words]
