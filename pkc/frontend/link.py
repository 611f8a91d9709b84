"""Gives the kernels of a `.pk` file the functions that they call, of this file and of those that it imports from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pkc.diagnostics import Label, PkcError, near
from pkc.frontend import construct, tree
from pkc.frontend.check_errors import DuplicateName
from pkc.frontend.function_errors import ImportCycle, UnknownImport
from pkc.frontend.imports import imported_path
from pkc.location import NOWHERE

Read = Callable[[str], tree.Program]
"""The tree of the file at a path, not linked."""


def link(program: tree.Program, read: Read) -> tree.Program:
    """The kernels of a program, each with the functions that it calls. Raises `PkcError`."""
    if not program.functions and not program.imports:
        return program
    linker = _Linker(read)
    scope = linker.scope(program, ())
    kernels = tuple(replace(kernel, functions=linker.called(scope, kernel.body, ())) for kernel in program.kernels)
    return tree.Program(program.span, kernels)


@dataclass
class _Scope:
    """What names of functions mean in one file: functions of its own, and the scopes that it imports others from."""

    program: tree.Program
    own: dict[str, tree.Function] = field(default_factory=dict[str, tree.Function])
    imported: dict[str, _Scope] = field(default_factory=dict[str, "_Scope"])

    def origin(self, name: str) -> _Scope | None:
        """The scope of the file that defines a function."""
        if name in self.own:
            return self
        found = self.imported.get(name)
        return None if found is None else found.origin(name)


@dataclass
class _Linker:
    read: Read
    scopes: dict[Path, _Scope] = field(default_factory=dict[Path, _Scope])
    linked: dict[int, tree.Function] = field(default_factory=dict[int, tree.Function])

    def scope(self, program: tree.Program, importing: tuple[tuple[Path, tree.Import], ...]) -> _Scope:
        """The scope of a file that `importing` leads to: each file on the way, with its import of the next."""
        scope = _Scope(program)
        defined: dict[str, tree.Node] = {}
        for node in program.imports:
            source = self._imported(program, node, importing)
            for name in node.names:
                _define(defined, name.id, name)
                _check_imported(source, node, name)
                scope.imported[name.id] = source
        for function in program.functions:
            _define(defined, function.name, function)
            scope.own[function.name] = function
        for kernel in program.kernels:
            if kernel.name in defined:
                _define(defined, kernel.name, kernel)
        return scope

    def _imported(
        self, program: tree.Program, node: tree.Import, importing: tuple[tuple[Path, tree.Import], ...]
    ) -> _Scope:
        here = Path(program.span.source.name)
        path = imported_path(here, node.module)
        way = (*importing, (here.resolve(), node))
        resolved = path.resolve()
        for place, (file, _) in enumerate(way):
            if file == resolved:
                also = tuple(Label(other.span, "imported here") for _, other in way[place:-1])
                raise PkcError(ImportCycle(node.span, str(path), also=also))
        if resolved not in self.scopes:
            self.scopes[resolved] = self.scope(self._read(str(path), node), way)
        return self.scopes[resolved]

    def _read(self, path: str, node: tree.Import) -> tree.Program:
        try:
            return self.read(path)
        except PkcError as error:
            placed = (replace(found, span=node.span) if found.span is NOWHERE else found for found in error.diagnostics)
            raise PkcError(*placed) from None

    def called(
        self, scope: _Scope, body: tuple[tree.Stmt, ...], calls: tuple[construct.Called, ...]
    ) -> tuple[tree.Function, ...]:
        """The functions that statements call; `calls` have led to these."""
        found: list[tree.Function] = []
        for name, span in tree.names_in(body).items():
            origin = scope.origin(name)
            if origin is None:
                continue
            function = origin.own[name]
            key = id(function)
            inner = construct.deeper(calls, construct.Called(key, name, span))
            if key not in self.linked:
                self.linked[key] = replace(function, functions=self.called(origin, function.body, inner))
            found.append(self.linked[key])
        return tuple(found)


def _define(defined: dict[str, tree.Node], name: str, node: tree.Node) -> None:
    first = defined.setdefault(name, node)
    if first is not node:
        raise PkcError(DuplicateName(node.span, name, "definition", also=(Label(first.span, "the first one"),)))


def _check_imported(source: _Scope, node: tree.Import, name: tree.Name) -> None:
    if source.origin(name.id) is not None:
        return
    kernel = any(kernel.name == name.id for kernel in source.program.kernels)
    known = [*source.own, *source.imported]
    hint = "it is a kernel; only functions are imported" if kernel else near(name.id, known, "it has ")
    raise PkcError(UnknownImport(name.span, source.program.span.source.name, name.id, hint))
