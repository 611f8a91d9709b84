"""From the syntax tree of a Python function, a kernel or what it calls, to the tree of the language."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType

from pkc.diagnostics import PkcError
from pkc.frontend import construct, errors, python_errors, tree
from pkc.frontend.captures import Captures, classify, plain
from pkc.frontend.python_source import Positions, refuse, refuse_attribute, refuse_method, type_hint
from pkc.location import Span

_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.And: "and",
    ast.Or: "or",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_UNARY: dict[type[ast.AST], str] = {ast.USub: "-", ast.Not: "not"}

_RESERVED = frozenset(("kernel", "inf"))
"""Keywords of the language that Python takes for names."""

_ONE_EACH = "write a line for each name; a function gives one value"

_BEFORE_COLON = re.compile(r"(?:[\s)\\,]|#[^\n]*)*:")


ReadCalled = Callable[[Span, str, FunctionType], tree.Function]
"""Reads a function that is called at a place, by a name."""


class FunctionReader:
    """Converts one function; `depth` counts how deep expressions, or statements, nest from 1."""

    def __init__(
        self, positions: Positions, captures: Captures, function: ast.FunctionDef, read_called: ReadCalled
    ) -> None:
        self._positions = positions
        self._source = positions.source
        self._captures = captures
        self._function = function
        self._params = {arg.arg for arg in function.args.args}
        # Names in annotations are those around the function; its body has local names.
        self._local = self._params
        self._read_called = read_called
        self._called: dict[str, tree.Function] = {}

    def kernel(self, schedule: tuple[tree.Keyword, ...]) -> tree.Kernel:
        """The function as a kernel."""
        node = self._function
        self._check_ascii()
        params = self._parameters(node.args)
        if node.returns is not None:
            hint = "leave it out: a kernel writes into its array parameters"
            raise PkcError(python_errors.NotInLanguage(self._span(node.returns), "a return type", hint))
        span, body = self._definition()
        return tree.Kernel(span, self._check_name(span, node.name), params, body, schedule, self._functions())

    def function(self, name: str) -> tree.Function:
        """The function as one that is called by `name`. Types of its parameters mean nothing."""
        self._check_ascii()
        args = self._function.args
        self._check_plain(args)
        if args.defaults:
            raise PkcError(python_errors.NotInLanguage(self._span(args.defaults[0]), "a default in a function"))
        params = [tree.Name(self._parameter_name(arg), arg.arg) for arg in args.args]
        span, body = self._definition()
        return replace(construct.function(span, name, params, body), functions=self._functions())

    def _definition(self) -> tuple[Span, tuple[tree.Stmt, ...]]:
        """The name in the definition, and the statements."""
        node = self._function
        span = self._positions.def_name(node)
        assigned = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self._local = self._params | set(assigned)
        statements = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        if not statements:
            raise PkcError(errors.MissingBlock(span))
        return span, self._body(statements, 1)

    def _functions(self) -> tuple[tree.Function, ...]:
        """Those that the statements call, in the order that `.pk` files have."""
        return tuple(self._called[name] for name in sorted(self._called))

    def _span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        return self._positions.span(node)

    def _tail(self, node: ast.Attribute) -> Span:
        """The name of an attribute."""
        end = self._span(node).end
        return Span(self._source, end - len(node.attr), end)

    def _check_ascii(self) -> None:
        foreign = self._positions.outside_ascii(self._function)
        if foreign is not None:
            hint = "names are made of the letters A to Z, digits and `_`"
            raise PkcError(python_errors.NotInLanguage(foreign, f"the name `{foreign.text}`", hint))

    def _check_name(self, span: Span, name: str) -> str:
        if name in _RESERVED:
            raise PkcError(python_errors.NotInLanguage(span, f"the name `{name}`", "it is a keyword of the language"))
        return name

    # Parameters

    def _check_plain(self, args: ast.arguments) -> None:
        for arg in (args.vararg, args.kwarg, *args.kwonlyargs, *args.posonlyargs):
            if arg is not None:
                what = f"a parameter like `{arg.arg}`, with `*` or `/`,"
                raise PkcError(python_errors.NotInLanguage(self._span(arg), what))

    def _parameter_name(self, arg: ast.arg) -> Span:
        start = self._span(arg).start
        span = Span(self._source, start, start + len(arg.arg))
        self._check_name(span, arg.arg)
        return span

    def _parameters(self, args: ast.arguments) -> tuple[tree.Param, ...]:
        self._check_plain(args)
        without = [None] * (len(args.args) - len(args.defaults))
        return tuple(
            self._parameter(arg, default) for arg, default in zip(args.args, [*without, *args.defaults], strict=True)
        )

    def _parameter(self, arg: ast.arg, default: ast.expr | None) -> tree.Param:
        span = self._parameter_name(arg)
        if arg.annotation is None:
            raise PkcError(python_errors.MissingAnnotation(span, arg.arg))
        annotation = self._annotation(arg.arg, arg.annotation)
        return tree.Param(span, arg.arg, annotation, default and self._default(arg.arg, default))

    def _default(self, param: str, node: ast.expr) -> tree.Expr:
        # Python has evaluated it, in a scope whose names need not be captured.
        value = self._captures.default(param)
        if _has_names(node) and isinstance(value, bool | int | float):
            return construct.number(self._span(node), plain(value))
        return self._expression(node)

    def _annotation(self, param: str, node: ast.expr) -> tree.Annotation:
        span = self._span(node)
        modifiers: list[tree.Modifier] = []
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            modifiers.insert(0, self._modifier(node, node.func))
            node = node.func.value
        dims: tuple[tree.Expr, ...] | None = None
        if isinstance(node, ast.Subscript):
            dims = self._dimensions(param, _elements(node.slice))
            node = node.value
        if not isinstance(node, ast.Name):
            raise PkcError(python_errors.NotInLanguage(self._span(node), "a type like this", type_hint(node)))
        base = self._span(node)
        self._check_name(base, node.id)
        self._captures.word(base, node.id)
        return tree.Annotation(span, node.id, dims, tuple(modifiers))

    def _modifier(self, node: ast.Call, func: ast.Attribute) -> tree.Modifier:
        name = self._tail(func)
        self._check_name(name, func.attr)
        span = Span(self._source, name.start, self._span(node).end)
        keywords = tuple(self._keyword(keyword, 1) for keyword in node.keywords)
        return tree.Modifier(span, func.attr, tuple(self._expression(arg) for arg in node.args), keywords)

    def _dimensions(self, param: str, nodes: Sequence[ast.expr]) -> tuple[tree.Expr, ...]:
        evaluated = self._captures.dimensions(param)
        if evaluated is None or len(evaluated) != len(nodes):
            return tuple(self._expression(node) for node in nodes)
        return tuple(self._dimension(node, value) for node, value in zip(nodes, evaluated, strict=True))

    def _dimension(self, node: ast.expr, value: object) -> tree.Expr:
        # As with defaults, Python knows the value of names that the function does not capture.
        span = self._span(node)
        if isinstance(node, ast.Name) and node.id not in self._params:
            name = self._plain_name(node)
            return classify(span, name.id, value) or name
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if names and not names & self._params and isinstance(value, int):
            return construct.number(span, value)
        return self._expression(node)

    # Statements

    def _body(self, nodes: Sequence[ast.stmt], depth: int) -> tuple[tree.Stmt, ...]:
        return tuple(self._statement(node, depth) for node in nodes)

    def _statement(self, node: ast.stmt, depth: int) -> tree.Stmt:
        span = self._span(node)
        construct.check_statement_depth(span, depth)
        match node:
            case ast.Assign():
                return self._assign(node)
            case ast.AugAssign(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Mod()):
                op = _BINARY[type(node.op)]
                return tree.AugAssign(span, self._target(node.target), op, self._expression(node.value))
            case ast.AugAssign():
                raise PkcError(python_errors.NotInLanguage(span, "this assignment operator"))
            case ast.Expr(value=ast.expr() as value):
                return construct.do(span, self._expression(value))
            case ast.For():
                return self._for(node, depth)
            case ast.If():
                condition = self._expression(node.test)
                body, orelse = self._body(node.body, depth + 1), self._body(node.orelse, depth + 1)
                return tree.If(self._header(node, node.test), condition, body, orelse)
            case ast.With():
                return self._with(node, depth)
            case ast.Return():
                return tree.Return(span, node.value and self._expression(node.value))
            case _:
                raise refuse(span, node)

    def _header(self, node: ast.stmt, last: ast.expr) -> Span:
        """From the keyword to the colon."""
        end = self._span(last).end
        colon = _BEFORE_COLON.match(self._source.text, end)
        return Span(self._source, self._span(node).start, colon.end() if colon else end)

    def _assign(self, node: ast.Assign) -> tree.Assign:
        if len(node.targets) > 1:
            raise PkcError(python_errors.NotInLanguage(self._span(node), "an assignment to several targets", _ONE_EACH))
        return tree.Assign(self._span(node), self._target(node.targets[0]), self._expression(node.value))

    def _target(self, node: ast.expr) -> tree.Name | tree.Index:
        if isinstance(node, ast.Name):
            return self._plain_name(node)
        if isinstance(node, ast.Tuple | ast.List | ast.Starred):
            raise PkcError(python_errors.NotInLanguage(self._span(node), "an assignment to several names", _ONE_EACH))
        return construct.target(self._expression(node))

    def _for(self, node: ast.For, depth: int) -> tree.For:
        if node.orelse:
            raise PkcError(python_errors.NotInLanguage(self._span(node.orelse[0]), "the `else` of a loop"))
        targets: list[tree.Name] = []
        for target in _elements(node.target):
            if not isinstance(target, ast.Name):
                raise PkcError(python_errors.NotInLanguage(self._span(target), "a loop variable like this"))
            targets.append(self._plain_name(target))
        iterable = construct.loop_list(self._expression(node.iter))
        return tree.For(self._header(node, node.iter), tuple(targets), iterable, self._body(node.body, depth + 1))

    def _with(self, node: ast.With, depth: int) -> tree.With:
        first = node.items[0]
        if len(node.items) > 1:
            raise PkcError(
                python_errors.NotInLanguage(self._span(node.items[1].context_expr), "a second role in a `with`")
            )
        if first.optional_vars is not None:
            raise PkcError(python_errors.NotInLanguage(self._span(first.optional_vars), "`as`"))
        context = construct.context(self._expression(first.context_expr))
        return tree.With(self._header(node, first.context_expr), context, self._body(node.body, depth + 1))

    # Expressions

    def _expression(self, node: ast.expr, depth: int = 1) -> tree.Expr:
        span = self._span(node)
        construct.check_expression_depth(span, depth)
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Constant():
                return self._constant(node)
            case ast.BinOp():
                left, right = self._expression(node.left, depth + 1), self._expression(node.right, depth + 1)
                return tree.Binary(span, self._operator(span, node.op), left, right)
            case ast.BoolOp():
                return self._bool_op(node, depth)
            case ast.Compare():
                return self._compare(node, depth)
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                return tree.Unary(span, _UNARY[type(node.op)], self._expression(node.operand, depth + 1))
            case ast.UnaryOp():
                raise refuse(span, node.op)
            case ast.Attribute():
                return self._attribute(node, depth)
            case ast.Subscript():
                return self._index(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case _:
                raise refuse(span, node)

    def _operator(self, span: Span, op: ast.AST) -> str:
        if type(op) not in _BINARY:
            raise refuse(span, op)
        return _BINARY[type(op)]

    def _plain_name(self, node: ast.Name) -> tree.Name:
        span = self._span(node)
        return tree.Name(span, self._check_name(span, node.id))

    def _name(self, node: ast.Name) -> tree.Name | tree.Number:
        if node.id == "inf":
            return tree.Number(self._span(node), float("inf"))
        name = self._plain_name(node)
        return name if name.id in self._local else self._captures.constant(name.span, name.id) or name

    def _constant(self, node: ast.Constant) -> tree.Number:
        span, value = self._span(node), node.value
        if isinstance(value, int | float):
            # Python reads a float that is too large as infinity.
            return construct.literal(span, span.text) if value == float("inf") else construct.number(span, value)
        what = "a string" if isinstance(value, str | bytes) else f"`{construct.shorten(span.text)}`"
        raise PkcError(python_errors.NotInLanguage(span, what))

    def _bool_op(self, node: ast.BoolOp, depth: int) -> tree.Expr:
        span, count = self._span(node), len(node.values)
        op = self._operator(span, node.op)
        folded = self._expression(node.values[0], depth + count - 1)
        for place, value in enumerate(node.values[1:], start=1):
            right = self._expression(value, depth + count - place)
            end = span.end if place == count - 1 else right.span.end
            folded = tree.Binary(Span(self._source, span.start, end), op, folded, right)
        return folded

    def _compare(self, node: ast.Compare, depth: int) -> tree.Binary:
        span = self._span(node)
        op = self._operator(span, node.ops[0])
        if len(node.ops) > 1:
            raise PkcError(errors.ChainedComparison(self._span(node.comparators[1])))
        left, right = self._expression(node.left, depth + 1), self._expression(node.comparators[0], depth + 1)
        return tree.Binary(span, op, left, right)

    def _attribute(self, node: ast.Attribute, depth: int) -> tree.Transpose:
        if node.attr != "T":
            raise refuse_attribute(self._tail(node), node, self._local)
        operand = self._expression(node.value, depth + 1)
        return construct.transpose(self._span(node), operand, node.attr, self._tail(node))

    def _index(self, node: ast.Subscript, depth: int) -> tree.Index:
        base = self._at(node.value, depth) or self._expression(node.value, depth + 1)
        indices = [self._one_index(element, depth + 1) for element in _elements(node.slice)]
        if not indices:
            raise PkcError(python_errors.NotInLanguage(self._span(node), "an empty index"))
        return construct.index(self._span(node), base, indices)

    def _one_index(self, node: ast.expr, depth: int) -> tree.Expr | tree.FullSlice:
        if isinstance(node, ast.Slice) and self._span(node).text == ":":
            return tree.FullSlice(self._span(node))
        return self._expression(node, depth)

    def _at(self, node: ast.expr, depth: int) -> tree.At | None:
        """`array.at(rank)` before an index."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        array = self._expression(node.func.value, depth + 1)
        if len(node.args) != 1 or node.keywords:
            raise PkcError(python_errors.NotInLanguage(self._span(node), "`.at` with other than one argument"))
        rank = self._expression(node.args[0], depth + 1)
        return construct.at(self._span(node), array, node.func.attr, self._tail(node.func), rank)

    def _call(self, node: ast.Call, depth: int) -> tree.Call:
        if isinstance(node.func, ast.Attribute):
            raise refuse_method(self._span(node), node.func, self._local)
        if not isinstance(node.func, ast.Name):
            raise PkcError(python_errors.NotInLanguage(self._span(node.func), "calling an expression"))
        func = self._plain_name(node.func)
        function = self._captures.function(func.id)
        if function is not None:
            self._called[func.id] = self._read_called(func.span, func.id, function)
        elif func.id not in self._local:
            self._captures.word(func.span, func.id)
        args = [self._expression(arg, depth + 1) for arg in node.args]
        keywords = [self._keyword(keyword, depth + 1) for keyword in node.keywords]
        return construct.call(self._span(node), func.id, func.span, args, keywords)

    def _keyword(self, node: ast.keyword, depth: int) -> tree.Keyword:
        span = self._span(node)
        if node.arg is None:
            raise PkcError(python_errors.NotInLanguage(span, "an argument with `**`"))
        return tree.Keyword(span, self._check_name(span, node.arg), self._expression(node.value, depth))


def _elements(node: ast.expr) -> Sequence[ast.expr]:
    """The elements of `a, b`."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _has_names(node: ast.expr) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id != "inf" for inner in ast.walk(node))
