"""Reads kernels that are written as Python functions: finds their source, and never runs them."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FunctionType, ModuleType

from pkc.diagnostics import Diagnostic, Label, PkcError
from pkc.frontend import construct, errors, python_errors, tree
from pkc.frontend.captures import Captures
from pkc.frontend.files import read_source
from pkc.frontend.function_errors import RecursiveCall
from pkc.frontend.python_source import Positions
from pkc.frontend.python_tree import FunctionReader
from pkc.frontend.schedule import check_key, values_of
from pkc.frontend.words import Readable, Reading, Word
from pkc.location import NOWHERE, Source, Span, shown

_LAMBDA = "<lambda>"
"""The name that Python gives to a function without one."""


def read_captured(function: FunctionType, schedule: Mapping[str, object] | None = None) -> Reading:
    """A Python function as a program of one kernel; `schedule` holds the keywords of its decorator.

    The result can tell whether the names outside of the function are still bound to the same.
    """
    if not isinstance(function, FunctionType):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PkcError(python_errors.NotAFunction(NOWHERE, type(function).__name__))
    name = function.__name__
    source = _source(function)
    positions = Positions(source)
    if name == _LAMBDA:
        raise PkcError(
            python_errors.NoSource(positions.line(function.__code__.co_firstlineno), "lambda", "it is no `def`")
        )
    try:
        node = _definition(source, function)
        keywords = schedule_of(positions, node, schedule or {})
        called = _CalledFunctions()
        captures = called.captures(function)
        kernel = FunctionReader(positions, captures, node, partial(called.read, ())).kernel(keywords)
    except (RecursionError, MemoryError):
        span = positions.line(function.__code__.co_firstlineno)
        raise PkcError(python_errors.NoSource(span, name, "it nests too deep for Python to read")) from None
    return Reading(tree.Program(Span(source, 0, len(source.text)), (kernel,)), called.current)


class _CalledFunctions:
    """Reads what a kernel calls, each function once."""

    def __init__(self) -> None:
        self._read: dict[FunctionType, tree.Function] = {}
        self._captures: list[Captures] = []

    def captures(self, function: FunctionType) -> Captures:
        """What is around a function, which `current` looks at again."""
        found = Captures.of(function)
        self._captures.append(found)
        return found

    def current(self) -> bool:
        """Whether all names that were looked up are still bound to the same objects."""
        return all(captures.current() for captures in self._captures)

    def read(self, calls: tuple[construct.Called, ...], span: Span, name: str, function: FunctionType) -> tree.Function:
        """The function that `name` is called for at `span`; `calls` have led there."""
        inner = construct.deeper(calls, construct.Called(id(function), name, span))
        if function not in self._read:
            self._read[function] = self._function(inner, span, name, function)
        return replace(self._read[function], name=name)

    def _function(
        self, calls: tuple[construct.Called, ...], span: Span, name: str, function: FunctionType
    ) -> tree.Function:
        try:
            source = _source(function)
            if function.__code__.co_name == _LAMBDA:
                line = Positions(source).line(function.__code__.co_firstlineno)
                raise PkcError(python_errors.NoSource(line, name, "it is a `lambda`, no `def`"))
            node = _definition(source, function)
            reader = FunctionReader(Positions(source), self.captures(function), node, partial(self.read, calls))
            return reader.function(name)
        except PkcError as error:
            also = Label(span, f"`{name}` is called here")
            raise PkcError(*(_led_to(found, span, also) for found in error.diagnostics)) from None


def _led_to(found: Diagnostic, span: Span, also: Label) -> Diagnostic:
    """What is wrong with a function, with the place of a call that leads to it."""
    if isinstance(found, RecursiveCall):
        return found  # has all calls
    if isinstance(found, python_errors.NoSource):
        found = replace(found, kind="function")
    return replace(found, span=span) if found.span is NOWHERE else replace(found, also=(*found.also, also))


def _source(function: FunctionType) -> Source:
    """The whole file that a function is defined in."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file, function.__globals__))
    if not text:
        raise PkcError(python_errors.NoSource(NOWHERE, function.__name__, "there is no file with its text"))
    return Source(shown(file), text).remember()


def _definition(source: Source, function: FunctionType) -> ast.FunctionDef:
    code = function.__code__
    try:
        module = ast.parse(source.text)
    except (SyntaxError, ValueError):
        raise PkcError(python_errors.NoSource(NOWHERE, function.__name__, "its file has changed")) from None
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != code.co_name:
            continue
        # Python counts the lines of a function from its first decorator.
        if min([node.lineno, *(d.lineno for d in node.decorator_list)]) != code.co_firstlineno:
            continue
        if isinstance(node, ast.AsyncFunctionDef):
            raise PkcError(python_errors.NotInLanguage(Positions(source).line(node.lineno), "`async`"))
        return node
    raise PkcError(python_errors.NoSource(NOWHERE, function.__name__, "its file has changed"))


def check_schedule(function: FunctionType, schedule: Mapping[str, object]) -> None:
    """Refuse keywords of a decorator that no schedule has, at their places. Raises `PkcError`."""
    source = _source(function)
    values_of(schedule_of(Positions(source), _definition(source, function), schedule))


def schedule_of(
    positions: Positions, node: ast.FunctionDef, schedule: Mapping[str, object]
) -> tuple[tree.Keyword, ...]:
    written = {
        keyword.arg: positions.span(keyword)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    }
    first = node.decorator_list[0] if node.decorator_list else None
    fallback = positions.span(first) if first else positions.def_name(node)
    return tuple(_schedule_entry(written.get(key, fallback), key, value) for key, value in schedule.items())


def _schedule_entry(span: Span, key: str, value: object) -> tree.Keyword:
    check_key(key, span)
    if isinstance(value, bool | int):
        return tree.Keyword(span, key, construct.number(span, value))
    word = value.name if isinstance(value, Word) else value
    if isinstance(word, str) and word.isidentifier() and word.isascii():
        return tree.Keyword(span, key, tree.Name(span, word))
    raise PkcError(python_errors.InvalidScheduleValue(span, key, construct.shorten(repr(value))))


def load_python_file(path: str | Path) -> list[Readable]:
    """Import a Python file and return the kernels that it defines, at least one, in their order."""
    source = read_source(path, ".py")
    module = import_file(source)
    kernels = {id(value): value for value in vars(module).values() if isinstance(value, Readable)}
    if not kernels:
        hint = "a kernel is a function under `@pkc.kernel`"
        raise PkcError(errors.NoKernel(Span(source, 0, 0), source.name, hint))
    return list(kernels.values())


def import_file(source: Source) -> ModuleType:
    """The module of a Python file, under a name that no other module has; it finds those beside it, as a program does.
    Raises `PkcError`."""
    name = f"_pkc_file_{Path(source.name).stem}"
    # The loader alone, and not its cache: that takes a file changed within a second for the old one.
    loader = SourceFileLoader(name, source.name)
    spec = importlib.util.spec_from_file_location(name, source.name, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    folder = str(Path(source.name).parent.resolve())
    sys.path.insert(0, folder)
    try:
        code = loader.source_to_code(source.text.encode(), source.name)
        exec(code, vars(module))
    except BaseException as error:
        _restore(name, before)
        if isinstance(error, PkcError):
            raise PkcError(*(_placed(source, found, error) for found in error.diagnostics)) from None
        if not isinstance(error, Exception | SystemExit):
            raise
        raise PkcError(failure(source, error)) from error
    finally:
        sys.path.remove(folder)
    return module


def _restore(name: str, module: ModuleType | None) -> None:
    sys.modules.pop(name, None)
    if module is not None:
        sys.modules[name] = module


def _placed(source: Source, found: Diagnostic, error: PkcError) -> Diagnostic:
    """The error of a word that Python code called, at the line of the call."""
    return replace(found, span=raised_at(source, error)) if found.span is NOWHERE else found


def raised_at(source: Source, error: BaseException) -> Span:
    """The line of a file that an exception came through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source.name]
    return Positions(source).line(lines[-1] or 1) if lines else Span(source, 0, 0)


def failure(source: Source, error: BaseException) -> python_errors.PythonSyntax | python_errors.ImportFailed:
    if isinstance(error, SyntaxError) and error.filename == source.name:
        at = source.offset(error.lineno or 1, max(1, error.offset or 1))
        return python_errors.PythonSyntax(Span(source, at, at + 1), error.msg)
    span = raised_at(source, error)
    text = f"{type(error).__name__}: {error}".rstrip(": ").split("\n", 1)[0]
    return python_errors.ImportFailed(span, source.name, construct.shorten(text, 200), _missing(source, error))


def _missing(source: Source, error: BaseException) -> str:
    """What defines a name that Python does not find where it evaluates the types of parameters."""
    if not isinstance(error, NameError) or not error.name:
        return ""
    functions = (node for node in ast.walk(ast.parse(source.text)) if isinstance(node, ast.FunctionDef))
    types = (one.annotation for node in functions for one in node.args.args if one.annotation is not None)
    shapes = (node.slice for kind in types for node in ast.walk(kind) if isinstance(node, ast.Subscript))
    lengths = {node.id for shape in shapes for node in ast.walk(shape) if isinstance(node, ast.Name)}
    if error.name not in lengths:
        return ""
    return f'Python evaluates types: `{error.name} = dims("{error.name}")` before the kernel, for constants too'
