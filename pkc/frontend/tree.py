"""The tree that both spellings of the language are parsed into.

Nodes compare equal whatever their spans, so the trees of two spellings can be compared.
Nothing is resolved here: names are strings, `blocks(...)` is a call like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, cast, dataclass_transform

from pkc.location import Span


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Node:
    """Kinds of nodes derive from it, and are frozen dataclasses by that."""

    span: Span = field(compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


# Expressions


class Number(Node):
    """A literal: int, float (`inf` too) or bool. In Python also a captured constant."""

    value: int | float


class Name(Node):
    id: str


class Unary(Node):
    """`op` is `-` or `not`."""

    op: str
    operand: Expr


class Binary(Node):
    """`op` is one of `@ + - * / // % and or == != < <= > >=`."""

    op: str
    left: Expr
    right: Expr


class Transpose(Node):
    """`operand.T`"""

    operand: Expr


class At(Node):
    """`array.at(rank)`, only ever the base of an `Index`."""

    array: Name
    rank: Expr


class FullSlice(Node):
    """`:` as an index."""


class Index(Node):
    """`base[indices]`"""

    base: Name | At
    indices: tuple[Expr | FullSlice, ...]


class Keyword(Node):
    name: str
    value: Expr


class Call(Node):
    """`func(args, keywords)`; `func_span` covers the name alone."""

    func: str
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    func_span: Span = field(compare=False, repr=False)


Expr = Number | Name | Unary | Binary | Transpose | Index | Call


# Statements


class Assign(Node):
    """`target = value`; a store if the target is an `Index`."""

    target: Name | Index
    value: Expr


class AugAssign(Node):
    """`target op= value`; `op` is one of `+ - * / // %`."""

    target: Name | Index
    op: str
    value: Expr


class For(Node):
    """`for targets in iterable:`; the span covers the header."""

    targets: tuple[Name, ...]
    iterable: Call
    body: tuple[Stmt, ...]


class If(Node):
    """`elif` is an `If` alone in `orelse`; the span covers the header."""

    condition: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class With(Node):
    """`with context:`; the span covers the header."""

    context: Call
    body: tuple[Stmt, ...]


class Do(Node):
    """A call as a statement."""

    call: Call


class Return(Node):
    """`return value`, the last statement of a function."""

    value: Expr | None


Stmt = Assign | AugAssign | For | If | With | Do | Return


# Functions


class Function(Node):
    """`def name(params):`, by the name that it has where it is called; the span covers the name of its definition.

    `functions` has those that its body calls, each with its own: no function calls itself.
    """

    name: str
    params: tuple[Name, ...]
    body: tuple[Stmt, ...]
    functions: tuple[Function, ...] = ()


class Import(Node):
    """`from module import names`; the span covers the module's name, `module` is its path in words."""

    module: tuple[str, ...]
    names: tuple[Name, ...]


# Kernels


class Modifier(Node):
    """`.shard(0, zigzag=True)`, `.replicate()`, `.symmetric()`, `.scratch()`."""

    name: str
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...] = ()


class Annotation(Node):
    """The annotation of a parameter: `base[dims].modifiers`.

    `base` is an element type, `const` or `signal`, unchecked; `dims` is None without brackets.
    """

    base: str
    dims: tuple[Expr, ...] | None
    modifiers: tuple[Modifier, ...]


class Param(Node):
    """The span covers the name."""

    name: str
    annotation: Annotation
    default: Expr | None


class Kernel(Node):
    """The span covers the name. `schedule` and `reference` hold what the decorator says (empty in `.pk`), `functions`
    those that the body calls."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    schedule: tuple[Keyword, ...] = ()
    functions: tuple[Function, ...] = ()
    reference: Callable[..., Any] | str | None = field(default=None, compare=False, repr=False)


class Program(Node):
    """A source file: its kernels in order. Its functions and imports are there until `link.py` gives kernels what they
    call."""

    kernels: tuple[Kernel, ...]
    functions: tuple[Function, ...] = ()
    imports: tuple[Import, ...] = ()


def places(program: Program) -> Iterator[str]:
    """The sources of a program and the places of its nodes, in order: what equal programs may differ in."""
    texts: dict[str, str] = {}
    spans: list[tuple[str, int, int]] = []
    nodes: list[object] = [program]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Span):
            texts[node.source.name] = node.source.text
            spans.append((node.source.name, node.start, node.end))
        elif isinstance(node, Node):
            nodes += [getattr(node, part.name) for part in fields(node)]
        elif isinstance(node, tuple):
            nodes += cast("tuple[object, ...]", node)
    yield from (repr(spans), *(text for item in sorted(texts.items()) for text in item))


def names_in(body: Iterable[Stmt]) -> dict[str, Span]:
    """The names in statements, of variables and of what is called, sorted, each with its first place."""
    found: dict[str, Span] = {}
    nodes: list[object] = list(body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, Name | Call):
            name, span = (node.id, node.span) if isinstance(node, Name) else (node.func, node.func_span)
            if name not in found or span.start < found[name].start:
                found[name] = span
        if isinstance(node, Node):
            nodes += [getattr(node, part.name) for part in fields(node)]
        elif isinstance(node, tuple):
            nodes += cast("tuple[object, ...]", node)
    return dict(sorted(found.items()))
