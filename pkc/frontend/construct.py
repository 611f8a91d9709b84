"""Checks and node building that the two spellings share, so that both refuse the same programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pkc.diagnostics import Label, PkcError
from pkc.frontend import elsewhere, errors, tree
from pkc.frontend.check_errors import DuplicateName
from pkc.frontend.function_errors import RecursiveCall
from pkc.location import Span

MAX_EXPRESSION_DEPTH = 100
MAX_STATEMENT_DEPTH = 32
MAX_CALL_DEPTH = 32
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))

_INT_RANGE = range(-(2**63), 2**63)


def number(span: Span, value: int | float) -> tree.Number:
    """A constant, which must fit: integers into 64 bits."""
    if isinstance(value, int) and value not in _INT_RANGE:
        raise PkcError(errors.NumberTooLarge(span, "integers have 64 bits, with a sign"))
    return tree.Number(span, value)


def literal(span: Span, text: str) -> tree.Number:
    """A number from its spelling, by the rules of Python."""
    based = text[:2].lower() in ("0x", "0b", "0o")
    if based or text.replace("_", "").isdecimal():
        return _integer_literal(span, text)
    try:
        value = float(text)
    except ValueError:
        raise PkcError(errors.MalformedNumber(span, shorten(text))) from None
    if math.isinf(value):
        raise PkcError(errors.NumberTooLarge(span, "floats are at most 1.797e308; write `inf` for infinity"))
    return tree.Number(span, value)


def _integer_literal(span: Span, text: str) -> tree.Number:
    # Python refuses to convert thousands of decimal digits; 64 bits never need 200.
    if len(text) > 200:
        raise PkcError(errors.NumberTooLarge(span, "integers have 64 bits, with a sign"))
    try:
        value = int(text, 0)
    except ValueError:
        raise PkcError(errors.MalformedNumber(span, shorten(text))) from None
    return number(span, value)


def check_expression_depth(span: Span, depth: int) -> None:
    """Refuse an expression that nests beyond the limit."""
    if depth <= MAX_EXPRESSION_DEPTH:
        return
    hint = "assign a subexpression to a variable: `x = ...`"
    raise PkcError(errors.NestedTooDeep(span, "expressions", MAX_EXPRESSION_DEPTH, hint))


def check_statement_depth(span: Span, depth: int) -> None:
    """Refuse a statement that nests beyond the limit."""
    if depth <= MAX_STATEMENT_DEPTH:
        return
    hint = "each `elif` counts as one more level"
    raise PkcError(errors.NestedTooDeep(span, "statements", MAX_STATEMENT_DEPTH, hint))


def call(
    span: Span, func: str, func_span: Span, args: Sequence[tree.Expr], keywords: Sequence[tree.Keyword]
) -> tree.Call:
    """A call, whose keyword arguments must differ."""
    seen: dict[str, tree.Keyword] = {}
    for keyword in keywords:
        first = seen.setdefault(keyword.name, keyword)
        if first is not keyword:
            also = (Label(first.span, "given before"),)
            raise PkcError(errors.RepeatedKeyword(keyword.span, keyword.name, also=also))
    return tree.Call(span, func, tuple(args), tuple(keywords), func_span)


@dataclass(frozen=True)
class Called:
    """A call on the way from a kernel into its functions: what is called, by any key, and where."""

    key: int
    name: str
    span: Span


def deeper(calls: tuple[Called, ...], call: Called) -> tuple[Called, ...]:
    """The way with one more call, which must not lead back into a function on it."""
    for place, other in enumerate(calls):
        if other.key == call.key:
            way = (*calls[place + 1 :], other)
            also = tuple(Label(inner.span, f"`{inner.name}` is called here") for inner in way)
            raise PkcError(RecursiveCall(call.span, call.name, also=also))
    if len(calls) >= MAX_CALL_DEPTH:
        raise PkcError(errors.NestedTooDeep(call.span, "calls of functions", MAX_CALL_DEPTH))
    return (*calls, call)


def function(span: Span, name: str, params: Sequence[tree.Name], body: tuple[tree.Stmt, ...]) -> tree.Function:
    """A function, whose parameters must differ."""
    seen: dict[str, tree.Name] = {}
    for param in params:
        first = seen.setdefault(param.id, param)
        if first is not param:
            raise PkcError(DuplicateName(param.span, param.id, "parameter", also=(Label(first.span, "the first one"),)))
    return tree.Function(span, name, tuple(params), body)


def check_kernels(kernels: Sequence[tree.Kernel]) -> None:
    """Refuse two kernels of one name."""
    seen: dict[str, tree.Kernel] = {}
    for kernel in kernels:
        first = seen.setdefault(kernel.name, kernel)
        if first is not kernel:
            also = (Label(first.span, "the first one"),)
            raise PkcError(DuplicateName(kernel.span, kernel.name, "kernel", also=also))


def index(span: Span, base: tree.Expr | tree.At, indices: Sequence[tree.Expr | tree.FullSlice]) -> tree.Index:
    """`base[indices]`"""
    if not isinstance(base, tree.Name | tree.At):
        raise PkcError(errors.NotIndexable(base.span))
    return tree.Index(span, base, tuple(indices))


def at(span: Span, array: tree.Expr, attribute: str, attribute_span: Span, rank: tree.Expr) -> tree.At:
    """`array.attribute(rank)` before an index."""
    if attribute != "at":
        raise PkcError(errors.UnknownAttribute(attribute_span, shorten(attribute), elsewhere.of_attribute(attribute)))
    if not isinstance(array, tree.Name):
        raise PkcError(errors.NotIndexable(array.span))
    return tree.At(span, array, rank)


def transpose(span: Span, operand: tree.Expr, attribute: str, attribute_span: Span) -> tree.Transpose:
    """`operand.attribute`"""
    if attribute != "T":
        raise PkcError(errors.UnknownAttribute(attribute_span, shorten(attribute), elsewhere.of_attribute(attribute)))
    return tree.Transpose(span, operand)


def target(expression: tree.Expr) -> tree.Name | tree.Index:
    """The target of an assignment: a name or an indexed array."""
    if not isinstance(expression, tree.Name | tree.Index):
        raise PkcError(errors.NotAssignable(expression.span))
    return expression


def do(span: Span, expression: tree.Expr) -> tree.Do:
    """An expression as a statement."""
    if not isinstance(expression, tree.Call):
        raise PkcError(errors.NotAStatement(span))
    return tree.Do(span, expression)


def loop_list(expression: tree.Expr) -> tree.Call:
    """The list of a loop: a call."""
    if not isinstance(expression, tree.Call):
        raise PkcError(errors.NotALoopList(expression.span))
    return expression


def context(expression: tree.Expr) -> tree.Call:
    """The context of a `with`: a call."""
    if not isinstance(expression, tree.Call):
        raise PkcError(errors.NotARole(expression.span))
    return expression


def shorten(text: str, width: int = 40) -> str:
    """A text from the source, fit for a message."""
    return text if len(text) <= width else text[: width - 3] + "..."
