"""The tree that both spellings of the language are parsed into.

Nodes compare equal whatever their spans, so the trees of two spellings can be compared.
Nothing is resolved here: names are strings, `blocks(...)` is a call like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pkc.location import Span


@dataclass(frozen=True)
class Node:
    span: Span = field(compare=False, repr=False)


# Expressions


@dataclass(frozen=True)
class Number(Node):
    """A literal: int, float (`inf` too) or bool. In Python also a captured constant."""

    value: int | float


@dataclass(frozen=True)
class Name(Node):
    id: str


@dataclass(frozen=True)
class Unary(Node):
    """`op` is `-` or `not`."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary(Node):
    """`op` is one of `@ + - * / // % and or == != < <= > >=`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Transpose(Node):
    """`operand.T`"""

    operand: Expr


@dataclass(frozen=True)
class At(Node):
    """`array.at(rank)`, only ever the base of an `Index`."""

    array: Name
    rank: Expr


@dataclass(frozen=True)
class FullSlice(Node):
    """`:` as an index."""


@dataclass(frozen=True)
class Index(Node):
    """`base[indices]`"""

    base: Name | At
    indices: tuple[Expr | FullSlice, ...]


@dataclass(frozen=True)
class Keyword(Node):
    name: str
    value: Expr


@dataclass(frozen=True)
class Call(Node):
    """`func(args, keywords)`; `func_span` covers the name alone."""

    func: str
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    func_span: Span = field(compare=False, repr=False)


Expr = Number | Name | Unary | Binary | Transpose | Index | Call


# Statements


@dataclass(frozen=True)
class Assign(Node):
    """`target = value`; a store if the target is an `Index`."""

    target: Name | Index
    value: Expr


@dataclass(frozen=True)
class AugAssign(Node):
    """`target op= value`; `op` is one of `+ - * / // %`."""

    target: Name | Index
    op: str
    value: Expr


@dataclass(frozen=True)
class For(Node):
    """`for targets in iterable:`; the span covers the header."""

    targets: tuple[Name, ...]
    iterable: Call
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class If(Node):
    """`elif` is an `If` alone in `orelse`; the span covers the header."""

    condition: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@dataclass(frozen=True)
class With(Node):
    """`with context:`; the span covers the header."""

    context: Call
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Do(Node):
    """A call as a statement."""

    call: Call


Stmt = Assign | AugAssign | For | If | With | Do


# Kernels


@dataclass(frozen=True)
class Modifier(Node):
    """`.shard(0)`, `.replicate()`, `.symmetric()`, `.scratch()`."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Annotation(Node):
    """The annotation of a parameter: `base[dims].modifiers`.

    `base` is an element type, `const` or `signal`, unchecked; `dims` is None without brackets.
    """

    base: str
    dims: tuple[Expr, ...] | None
    modifiers: tuple[Modifier, ...]


@dataclass(frozen=True)
class Param(Node):
    """The span covers the name."""

    name: str
    annotation: Annotation
    default: Expr | None


@dataclass(frozen=True)
class Kernel(Node):
    """The span covers the name. `schedule` holds what the decorator says (empty in `.pk`)."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    schedule: tuple[Keyword, ...] = ()


@dataclass(frozen=True)
class Program(Node):
    """A source file: its kernels in order."""

    kernels: tuple[Kernel, ...]
