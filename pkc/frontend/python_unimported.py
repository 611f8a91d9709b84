"""Reads the kernels of a Python file without importing it, so that nothing in it is executed.

What names are bound to is taken from the plain statements of the file: imports of pkc, `M, N = dims("M N")`, and
constants. A kernel that uses any other name is refused.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import cast

from pkc.diagnostics import PkcError
from pkc.frontend import errors, python_errors, tree
from pkc.frontend.captures import Captures
from pkc.frontend.files import read_source
from pkc.frontend.python import failure, schedule_of
from pkc.frontend.python_source import Positions
from pkc.frontend.python_tree import FunctionReader
from pkc.frontend.words import Word, dims
from pkc.location import Source, Span

_UNKNOWN = object()
"""What is known only to Python, when it runs the file."""


def read_python_file(path: str | Path) -> tree.Program:
    """The kernels that a Python file defines, at least one, in their order. Raises `PkcError`."""
    source = read_source(path, ".py")
    try:
        module = ast.parse(source.text, source.name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PkcError(failure(source, error)) from None
    scope = _Scope(source)
    for statement in module.body:
        scope.run(statement)
    kernels = tuple(map(scope.kernel, scope.kernels.values()))
    if not kernels:
        hint = "a kernel is a function under `@pkc.kernel`"
        raise PkcError(errors.NoKernel(Span(source, 0, 0), source.name, hint))
    return tree.Program(Span(source, 0, len(source.text)), kernels)


class _Scope(Captures):
    """The names of a module, as far as its statements say what they are."""

    def __init__(self, source: Source) -> None:
        super().__init__(globals_={})
        self._positions = Positions(source)
        self.kernels: dict[str, ast.FunctionDef] = {}

    def constant(self, span: Span, name: str) -> tree.Number | None:
        self._check(span, name)
        return super().constant(span, name)

    def word(self, span: Span, name: str) -> None:
        self._check(span, name)
        super().word(span, name)

    def _check(self, span: Span, name: str) -> None:
        if self._globals.get(name) is _UNKNOWN:
            raise PkcError(python_errors.KnownWhenImported(span, name))

    def run(self, statement: ast.stmt) -> None:
        """Bind the names of a statement."""
        match statement:
            case ast.Import() | ast.ImportFrom():
                self._import(statement)
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.FunctionDef() if any(map(self._is_kernel, statement.decorator_list)):
                self._bind(statement.name, _UNKNOWN)
                self.kernels[statement.name] = statement
            case _:
                for name in _bound(statement):
                    self._bind(name, _UNKNOWN)

    def _bind(self, name: str, value: object) -> None:
        self.kernels.pop(name, None)
        self._globals[name] = value

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        """What comes from pkc is known, and is the only thing that is imported."""
        for alias in statement.names:
            if isinstance(statement, ast.ImportFrom):
                known = statement.level == 0 and statement.module in ("pkc", "pkc.language")
                module = importlib.import_module(str(statement.module)) if known else None
                if alias.name == "*":
                    words = getattr(module, "__all__", ())
                    self._globals.update({name: getattr(module, name) for name in words})
                    continue
                value = _UNKNOWN if module is None else getattr(module, alias.name, _UNKNOWN)
                self._bind(alias.asname or alias.name, value)
            else:
                known = alias.name == "pkc"
                value = importlib.import_module("pkc") if known else _UNKNOWN
                self._bind(alias.asname or alias.name.partition(".")[0], value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        found = self._evaluated(value)
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        several = _elements(found)
        for number, name in enumerate(names):
            if not isinstance(name, ast.Name):
                continue
            if name is target:
                self._bind(name.id, found)
            else:
                self._bind(name.id, several[number] if len(several) == len(names) else _UNKNOWN)

    def _evaluated(self, node: ast.expr) -> object:
        """A number, dimensions, or what a name is bound to."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Name(id=name):
                return self._globals.get(name, _UNKNOWN)
            case ast.Call(func=func, args=[ast.Constant(value=str() as names)], keywords=[]) if self._is(func, dims):
                return dims(names)
            case _:
                return _UNKNOWN

    def _is(self, node: ast.expr, wanted: object) -> bool:
        """Whether an expression is a name of `wanted`, in a module or by itself."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = self._globals.get(node.value.id, _UNKNOWN)
            return module is importlib.import_module("pkc") and getattr(module, node.attr, None) is wanted
        return isinstance(node, ast.Name) and self._globals.get(node.id) is wanted

    def _is_kernel(self, decorator: ast.expr) -> bool:
        made = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self._is(made, importlib.import_module("pkc").kernel)

    def kernel(self, node: ast.FunctionDef) -> tree.Kernel:
        """A kernel as it is written, with the schedule of its decorator."""
        schedule: dict[str, object] = {}
        for decorator in node.decorator_list:
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg != "target":
                    schedule[str(keyword.arg)] = self._option(keyword)
        keywords = schedule_of(self._positions, node, schedule)
        return FunctionReader(self._positions, self, node, _read_called).kernel(keywords)

    def _option(self, keyword: ast.keyword) -> object:
        value = keyword.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
        found = self._evaluated(value)
        if found is _UNKNOWN or (isinstance(found, tuple) and not isinstance(found, Word)):
            raise PkcError(python_errors.KnownWhenImported(self._positions.span(value), ast.unparse(value)))
        return found


def _read_called(span: Span, name: str, function: FunctionType) -> tree.Function:
    """Functions of the file are made when it is imported."""
    raise PkcError(python_errors.KnownWhenImported(span, name))


def _elements(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement may bind, those inside of functions included, which does no harm."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
