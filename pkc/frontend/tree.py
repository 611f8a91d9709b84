"""The tree that both spellings of the language are parsed into.

Nodes compare equal whatever their spans, so the trees of two spellings can be compared.
Nothing is resolved here: names are strings, `blocks(...)` is a call like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, dataclass_transform

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


Stmt = Assign | AugAssign | For | If | With | Do


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
    """The span covers the name. `schedule` and `reference` hold what the decorator says (empty in `.pk`)."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    schedule: tuple[Keyword, ...] = ()
    reference: Callable[..., Any] | str | None = field(default=None, compare=False, repr=False)


class Program(Node):
    """A source file: its kernels in order."""

    kernels: tuple[Kernel, ...]
