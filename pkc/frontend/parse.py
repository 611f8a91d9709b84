"""Reads `.pk` files: bytes to text, text to the tree, with the functions that it imports."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import lark
from lark import Lark, Token, Transformer, UnexpectedCharacters
from lark import UnexpectedToken as LarkUnexpectedToken

from pkc.diagnostics import PkcError
from pkc.frontend import construct, errors, tree
from pkc.frontend.files import MAX_BYTES, read_source
from pkc.frontend.layout import Layout
from pkc.frontend.link import link
from pkc.frontend.unexpected import unexpected_character, unexpected_token
from pkc.location import NOWHERE, Source, Span

_LOCK = threading.Lock()
_CONSTANTS: dict[str, float | bool] = {"True": True, "False": False, "inf": float("inf")}


def parse_file(path: str | Path) -> tree.Program:
    """The kernels of a `.pk` file."""
    return parse_text(read_source(path, ".pk"))


def parse_text(source: Source) -> tree.Program:
    """The kernels of a text, at least one, each with the functions that it calls."""
    program = parse_tree(source)
    refuse_empty(program)
    return link(program, lambda path: parse_tree(read_source(path, ".pk")))


def refuse_empty(program: tree.Program) -> None:
    """Raises `PkcError` for a text without kernels."""
    source = program.span.source
    if not program.kernels:
        raise PkcError(errors.NoKernel(Span(source, 0, 0) if source.text else NOWHERE, source.name))


def parse_tree(source: Source) -> tree.Program:
    """What a text says, imports and functions that nothing calls included. Raises `PkcError`."""
    text = source.text
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise PkcError(errors.FileTooLarge(Span(source, 0, 0), source.name, MAX_BYTES))
    # The layout and the builder hold the source that is being read.
    with _LOCK:
        reader = _reader()
        reader.layout.source = reader.builder.source = source
        try:
            return cast("tree.Program", cast(Any, reader.parser).parse(text))
        except UnexpectedCharacters as error:
            raise PkcError(unexpected_character(source, cast(int, error.pos_in_stream))) from None
        except LarkUnexpectedToken as error:
            raise PkcError(unexpected_token(error, reader.layout)) from None


Kind = TypeVar("Kind", covariant=True)


@dataclass(slots=True)
class _Node(Generic[Kind]):
    """A node with the extent of its text, parentheses included, and how deep expressions nest in it."""

    node: Kind
    start: int
    end: int
    depth: int


@dataclass(slots=True)
class _Suite:
    """Statements and how deep they nest."""

    body: tuple[tree.Stmt, ...]
    depth: int


_Expression = _Node[tree.Expr]


Class = TypeVar("Class", bound=type)


def _inline(cls: Class) -> Class:
    """Callbacks take the children of a rule as arguments."""
    return cast(Any, lark).v_args(inline=True)(cls)


@_inline
class _Builder(Transformer[Token, Any]):
    """Called by the parser for each rule, so that no pass over a finished parse tree can recurse."""

    source: Source

    # Spans and extents

    def _token_span(self, token: Token) -> Span:
        start = token.start_pos or 0
        return Span(self.source, start, start + len(token))

    def _header(self, keyword: Token, colon: Token) -> Span:
        return Span(self.source, keyword.start_pos or 0, (colon.start_pos or 0) + 1)

    def _extent(self, first: Token | _Node[Any], last: Token | _Node[Any]) -> Span:
        start = first.start_pos or 0 if isinstance(first, Token) else first.start
        end = (last.start_pos or 0) + len(last) if isinstance(last, Token) else last.end
        return Span(self.source, start, end)

    def _deeper(self, node: tree.Expr, *children: _Node[Any]) -> _Expression:
        """A node that is one deeper than the deepest of its children."""
        depth = 1 + max((child.depth for child in children), default=0)
        construct.check_expression_depth(node.span, depth)
        return _Node(node, node.span.start, node.span.end, depth)

    # Files, functions and kernels

    def start(self, *items: tree.Import | tree.Function | tree.Kernel) -> tree.Program:
        return tree.Program(
            Span(self.source, 0, len(self.source.text)),
            tuple(item for item in items if isinstance(item, tree.Kernel)),
            tuple(item for item in items if isinstance(item, tree.Function)),
            tuple(item for item in items if isinstance(item, tree.Import)),
        )

    def module(self, *words: Token) -> _Node[tuple[str, ...]]:
        span = self._extent(words[0], words[-1])
        return _Node(tuple(str(word) for word in words if word.type == "NAME"), span.start, span.end, 0)

    def import_line(self, _from: Token, module: _Node[tuple[str, ...]], *names: Token) -> tree.Import:
        return tree.Import(Span(self.source, module.start, module.end), module.node, self.names(*names))

    def function(
        self,
        _keyword: Token,
        name: Token,
        _open: Token,
        params: tuple[tree.Name, ...] | None,
        _close: Token,
        _colon: Token,
        suite: _Suite,
    ) -> tree.Function:
        return construct.function(self._token_span(name), str(name), params or (), suite.body)

    def names(self, *children: Token) -> tuple[tree.Name, ...]:
        return tuple(tree.Name(self._token_span(name), str(name)) for name in children if name.type == "NAME")

    def kernel(
        self,
        _keyword: Token,
        name: Token,
        _open: Token,
        params: tuple[tree.Param, ...] | None,
        _close: Token,
        _colon: Token,
        suite: _Suite,
    ) -> tree.Kernel:
        return tree.Kernel(self._token_span(name), str(name), params or (), suite.body)

    def params(self, *children: tree.Param | Token) -> tuple[tree.Param, ...]:
        return _nodes(children)

    def param(
        self,
        name: Token,
        _colon: Token,
        annotation: tree.Annotation,
        _equal: Token | None = None,
        default: _Expression | None = None,
    ) -> tree.Param:
        return tree.Param(self._token_span(name), str(name), annotation, default.node if default else None)

    def annotation(self, base: Token, dims: _Node[Any] | None, *modifiers: _Node[tree.Modifier]) -> tree.Annotation:
        span = self._extent(base, modifiers[-1] if modifiers else dims or base)
        return tree.Annotation(span, str(base), dims and dims.node, tuple(modifier.node for modifier in modifiers))

    def dims(self, *children: _Expression | Token) -> _Node[tuple[tree.Expr, ...]]:
        span = self._extent(children[0], children[-1])
        dims = tuple(child.node for child in _nodes(children))
        return _Node(dims, span.start, span.end, 0)

    def modifier(
        self, _dot: Token, name: Token, _open: Token, arguments: tuple[_Node[Any], ...] | None, close: Token
    ) -> _Node[tree.Modifier]:
        span = self._extent(name, close)
        call = self._call(span, name, arguments or ())
        return _Node(tree.Modifier(span, call.func, call.args, call.keywords), span.start, span.end, 0)

    # Statements

    def block(self, *children: _Suite | tree.Stmt | Token) -> _Suite:
        suites = cast("list[_Suite]", [child for child in children if not isinstance(child, Token)])
        body = tuple(statement for suite in suites for statement in suite.body)
        return _Suite(body, max(suite.depth for suite in suites))

    def suite(self, line: _Suite) -> _Suite:
        return line

    def simple_line(self, *children: tree.Stmt | Token) -> _Suite:
        return _Suite(_nodes(children), 1)

    def assign(self, target: _Expression, _equal: Token, value: _Expression) -> tree.Assign:
        return tree.Assign(self._extent(target, value), construct.target(target.node), value.node)

    def augment(self, target: _Expression, op: Token, value: _Expression) -> tree.AugAssign:
        return tree.AugAssign(self._extent(target, value), construct.target(target.node), op[:-1], value.node)

    def do(self, expression: _Expression) -> tree.Do:
        return construct.do(self._extent(expression, expression), expression.node)

    def return_value(self, keyword: Token, value: _Expression | None) -> tree.Return:
        return tree.Return(self._extent(keyword, value or keyword), value and value.node)

    targets = names

    def for_loop(
        self,
        keyword: Token,
        targets: tuple[tree.Name, ...],
        _in: Token,
        iterable: _Expression,
        colon: Token,
        suite: _Suite,
    ) -> _Suite:
        span = self._header(keyword, colon)
        return self._compound(tree.For(span, targets, construct.loop_list(iterable.node), suite.body), suite)

    def with_block(self, keyword: Token, context: _Expression, colon: Token, suite: _Suite) -> _Suite:
        span = self._header(keyword, colon)
        return self._compound(tree.With(span, construct.context(context.node), suite.body), suite)

    def if_block(self, keyword: Token, condition: _Expression, colon: Token, suite: _Suite, *rest: Any) -> _Suite:
        branches: list[_Branch] = [branch for branch in rest if isinstance(branch, _Branch)]
        orelse = next((branch for branch in rest if isinstance(branch, _Suite)), _Suite((), 0))
        for branch in reversed((_Branch(self._header(keyword, colon), condition, suite), *branches)):
            node = tree.If(branch.span, branch.condition.node, branch.suite.body, orelse.body)
            orelse = self._compound(node, branch.suite, orelse)
        return orelse

    def elif_branch(self, keyword: Token, condition: _Expression, colon: Token, suite: _Suite) -> _Branch:
        return _Branch(self._header(keyword, colon), condition, suite)

    def else_branch(self, _keyword: Token, _colon: Token, suite: _Suite) -> _Suite:
        return suite

    def _compound(self, node: tree.For | tree.If | tree.With, *suites: _Suite) -> _Suite:
        depth = 1 + max(suite.depth for suite in suites)
        construct.check_statement_depth(node.span, depth)
        return _Suite((node,), depth)

    # Expressions

    def binary(self, left: _Expression, op: Token, right: _Expression) -> _Expression:
        return self._deeper(tree.Binary(self._extent(left, right), str(op), left.node, right.node), left, right)

    def compare(self, left: _Expression, op: Token, right: _Expression) -> _Expression:
        parenthesized = left.start != left.node.span.start
        if not parenthesized and isinstance(left.node, tree.Binary) and left.node.op in construct.COMPARISONS:
            raise PkcError(errors.ChainedComparison(self._token_span(op)))
        return self.binary(left, op, right)

    def unary(self, op: Token, operand: _Expression) -> _Expression:
        return self._deeper(tree.Unary(self._extent(op, operand), str(op), operand.node), operand)

    def attribute(self, operand: _Expression, _dot: Token, name: Token) -> _Expression:
        node = construct.transpose(self._extent(operand, name), operand.node, str(name), self._token_span(name))
        return self._deeper(node, operand)

    def index(self, base: _Expression, _open: Token, indices: list[_Node[Any]], close: Token) -> _Expression:
        span = self._extent(base, close)
        return self._deeper(construct.index(span, base.node, [index.node for index in indices]), base, *indices)

    def index_at(
        self, array: _Expression, _dot: Token, name: Token, _open: Token, rank: _Expression, *rest: Any
    ) -> _Expression:
        *_comma, close, _bracket, indices, end = rest
        at = construct.at(self._extent(array, close), array.node, str(name), self._token_span(name), rank.node)
        node = construct.index(self._extent(array, end), at, [index.node for index in indices])
        return self._deeper(node, array, rank, *indices)

    def indices(self, *children: _Expression | Token) -> list[_Expression]:
        return list(_nodes(children))

    def full_slice(self, colon: Token) -> _Node[tree.FullSlice]:
        span = self._token_span(colon)
        return _Node(tree.FullSlice(span), span.start, span.end, 0)

    def name(self, name: Token) -> _Expression:
        return self._deeper(tree.Name(self._token_span(name), str(name)))

    def number(self, number: Token) -> _Expression:
        return self._deeper(construct.literal(self._token_span(number), str(number)))

    def constant(self, word: Token) -> _Expression:
        return self._deeper(tree.Number(self._token_span(word), _CONSTANTS[word]))

    def parenthesized(self, open_: Token, inner: _Expression, close: Token) -> _Expression:
        span = self._extent(open_, close)
        construct.check_expression_depth(span, inner.depth + 1)
        return _Node(inner.node, span.start, span.end, inner.depth + 1)

    def call(self, name: Token, _open: Token, arguments: tuple[_Node[Any], ...] | None, close: Token) -> _Expression:
        nodes = arguments or ()
        return self._deeper(self._call(self._extent(name, close), name, nodes), *nodes)

    def _call(self, span: Span, name: Token, nodes: tuple[_Node[Any], ...]) -> tree.Call:
        args: list[tree.Expr] = []
        keywords: list[tree.Keyword] = []
        for argument in nodes:
            if isinstance(argument.node, tree.Keyword):
                keywords.append(argument.node)
                continue
            if keywords:
                raise PkcError(errors.PositionalAfterKeyword(argument.node.span))
            args.append(argument.node)
        return construct.call(span, str(name), self._token_span(name), args, keywords)

    def arguments(self, *children: _Node[Any] | Token) -> tuple[_Node[Any], ...]:
        return _nodes(children)

    def keyword(self, name: Token, _equal: Token, value: _Expression) -> _Node[tree.Keyword]:
        span = self._extent(name, value)
        return _Node(tree.Keyword(span, str(name), value.node), span.start, span.end, value.depth)


@dataclass(slots=True)
class _Branch:
    """An `if` or `elif` before the branches after it are known."""

    span: Span
    condition: _Expression
    suite: _Suite


Child = TypeVar("Child")


def _nodes(children: Iterable[Child | Token]) -> tuple[Child, ...]:
    """The children of a list rule without its commas and the like."""
    return tuple(child for child in children if not isinstance(child, Token))


@dataclass
class _Reader:
    parser: Lark
    layout: Layout
    builder: _Builder


@cache
def _reader() -> _Reader:
    layout, builder = Layout(), _Builder()
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    parser = Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        postlex=cast(Any, layout),
        transformer=builder,
        keep_all_tokens=True,
        maybe_placeholders=True,
    )
    return _Reader(parser, layout, builder)
