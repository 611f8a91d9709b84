"""Calls of the program's own functions: each is replaced by what the function computes."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

from pkc.diagnostics import Diagnostic, Label, PkcError
from pkc.dialect.types import DTYPES
from pkc.frontend import tree
from pkc.frontend.construct import MAX_CALL_DEPTH
from pkc.frontend.errors import NestedTooDeep
from pkc.frontend.frame import Frame, TooManyErrorsError
from pkc.frontend.function_errors import MisplacedReturn, MissingReturn, ReservedFunction, TooManyCalls, WrongCall
from pkc.frontend.kinds import Block, Boolean, Broken, Integer, Tile, Value

MAX_CALLS = 4096
"""So many calls of functions may one kernel have, those in functions included."""

Evaluate = Callable[[Frame, tree.Expr], Value]


def function_of(frame: Frame, node: tree.Call, words: Container[str]) -> tree.Function | None:
    """The program's own function that a call is of, which must not have the name of one of the language's `words`."""
    function = frame.functions.get(node.func)
    if function is not None and (node.func in words or node.func in DTYPES):
        raise PkcError(ReservedFunction(function.span, node.func, also=(_called(node),)))
    return function


def call(frame: Frame, node: tree.Call, function: tree.Function, evaluate: Evaluate) -> Value:
    """The value of a call: the function's statements in the current block, with names of their own."""
    _check_arguments(node, function)
    arguments = {
        param.id: _argument(frame, argument, param.id, evaluate)
        for param, argument in zip(function.params, node.args, strict=True)
    }
    frame.calls += 1
    if frame.calls > MAX_CALLS:
        raise PkcError(TooManyCalls(node.span, MAX_CALLS))
    last = function.body[-1]
    if not isinstance(last, tree.Return) or last.value is None:
        raise PkcError(MissingReturn(function.span, function.name, also=(_called(node),)))
    before = len(frame.findings)
    try:
        with frame.function(function, arguments):
            frame.run(frame, function.body[:-1])
            value = evaluate(frame, last.value)
    except RecursionError:
        raise PkcError(NestedTooDeep(node.span, "calls of functions", MAX_CALL_DEPTH)) from None
    except TooManyErrorsError:
        raise
    except PkcError as error:
        frame.findings += error.diagnostics
        value = Broken()
    if len(frame.findings) > before:
        frame.findings[before:] = _from_call(node, frame.findings[before:], frame.findings[:before])
        raise PkcError
    return value


def misplaced_return(frame: Frame, node: tree.Return) -> PkcError:
    """The error for `return` that is not the last statement of a function."""
    if not frame.inside:
        hint = "it writes into its array parameters"
        return PkcError(MisplacedReturn(node.span, "a kernel returns nothing", hint))
    hint = "assign a variable in each branch or iteration, and return it at the end"
    return PkcError(MisplacedReturn(node.span, f"not the last statement of `{frame.inside}`", hint))


def hint(frame: Frame) -> str:
    """Why a name of the kernel may not be known."""
    return "a function knows its parameters and its own variables: pass what it needs" if frame.inside else ""


def _argument(frame: Frame, node: tree.Expr, name: str, evaluate: Evaluate) -> Value:
    value = evaluate(frame, node)
    if isinstance(value, Block):
        return value
    value = frame.arithmetic(value, node.span)
    if isinstance(value, Integer | Boolean | Tile) and value.ssa.name_hint is None:
        value.ssa.name_hint = name
    return value


def _from_call(node: tree.Call, found: list[Diagnostic], before: list[Diagnostic]) -> list[Diagnostic]:
    """Findings in a function with the place of its call; only those that no other call has led to."""
    known = {(one.code, one.span) for one in before}
    return [replace(one, also=(*one.also, _called(node))) for one in found if (one.code, one.span) not in known]


def _called(node: tree.Call) -> Label:
    return Label(node.span, f"`{node.func}` is called here")


def _check_arguments(node: tree.Call, function: tree.Function) -> None:
    usage = f"{function.name}({', '.join(param.id for param in function.params)})"
    also = (Label(function.span, "defined here"),)
    if node.keywords:
        problem = "arguments of functions have no keywords"
        raise PkcError(WrongCall(node.keywords[0].span, node.func, problem, usage, also=also))
    if len(node.args) != len(function.params):
        problem = f"{len(node.args)} given, it takes {len(function.params)}"
        raise PkcError(WrongCall(node.span, node.func, problem, usage, also=also))
