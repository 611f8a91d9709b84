"""Where the nodes of a Python function are in its source, and the errors for those that the language lacks."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Container

from pkc.diagnostics import PkcError
from pkc.frontend import elsewhere, errors, python_errors
from pkc.location import Source, Span

_REFUSED: dict[type[ast.AST], str] = {
    ast.AnnAssign: "an assignment with a type",
    ast.Assert: "`assert`",
    ast.AsyncFor: "`async`",
    ast.AsyncFunctionDef: "`async`",
    ast.AsyncWith: "`async`",
    ast.Await: "`await`",
    ast.BitAnd: "the operator `&`",
    ast.BitOr: "the operator `|`",
    ast.BitXor: "the operator `^`",
    ast.Break: "`break`",
    ast.ClassDef: "a class",
    ast.Continue: "`continue`",
    ast.Delete: "`del`",
    ast.Dict: "a dictionary",
    ast.DictComp: "a comprehension",
    ast.FunctionDef: "a nested function",
    ast.GeneratorExp: "a comprehension",
    ast.Global: "`global`",
    ast.IfExp: "a conditional expression",
    ast.Import: "`import`",
    ast.ImportFrom: "`import`",
    ast.In: "the operator `in`",
    ast.Invert: "the operator `~`",
    ast.Is: "the operator `is`",
    ast.IsNot: "the operator `is not`",
    ast.JoinedStr: "a string",
    ast.LShift: "the operator `<<`",
    ast.Lambda: "`lambda`",
    ast.List: "a list",
    ast.ListComp: "a comprehension",
    ast.Match: "`match`",
    ast.NamedExpr: "the operator `:=`",
    ast.Nonlocal: "`nonlocal`",
    ast.NotIn: "the operator `not in`",
    ast.Pass: "`pass`",
    ast.Pow: "the operator `**`",
    ast.RShift: "the operator `>>`",
    ast.Raise: "`raise`",
    ast.Set: "a set",
    ast.SetComp: "a comprehension",
    ast.Slice: "a slice with bounds",
    ast.Starred: "an argument with `*`",
    ast.Try: "`try`",
    ast.Tuple: "a tuple",
    ast.UAdd: "a unary `+`",
    ast.While: "`while`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield`",
}
_HINTS: dict[type[ast.AST], str] = {
    ast.IfExp: "choose with `where(condition, a, b)`, or write an `if` statement",
    ast.While: elsewhere.KEYWORDS["while"],
    ast.Break: elsewhere.KEYWORDS["break"],
    ast.Continue: elsewhere.KEYWORDS["continue"],
    ast.Lambda: elsewhere.KEYWORDS["lambda"],
    ast.FunctionDef: elsewhere.KEYWORDS["lambda"],
    ast.Is: elsewhere.KEYWORDS["is"],
    ast.Pass: elsewhere.KEYWORDS["pass"],
    ast.Pow: elsewhere.POWER,
    ast.Invert: elsewhere.INVERT,
    ast.UAdd: "leave the `+` out",
    ast.AnnAssign: "leave the type out",
}

_DEF_NAME = re.compile(r"def[\s\\]+(\w+)")


def refuse(span: Span, node: ast.AST) -> PkcError:
    """The error for a construct of Python that the language does not have."""
    kind = type(node)
    construct = _REFUSED.get(kind, f"Python's `{kind.__name__}`")
    hint = _of_slice(node) if isinstance(node, ast.Slice) else _HINTS.get(kind, "")
    return PkcError(python_errors.NotInLanguage(span, construct, hint))


def _of_slice(node: ast.Slice) -> str:
    return elsewhere.of_slice(*(ast.unparse(one) if one else "" for one in (node.lower, node.upper, node.step)))


def _is_around(node: ast.Attribute, local: Container[str]) -> bool:
    """Whether an attribute is of something outside of the function, such as a module."""
    base = node.value
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and base.id not in local


def refuse_method(span: Span, node: ast.Attribute, local: Container[str]) -> PkcError:
    """The error for a call of `x.sum(...)`, or of `np.exp(...)`, in a function with `local` names."""
    # What there is to call is a list of the language's words, which nothing but an error needs.
    from pkc.frontend.expressions import SIGNATURES

    name, of_module = node.attr, _is_around(node, local)
    if name == "at":
        return PkcError(python_errors.NotInLanguage(span, "`.at(...)` without an index"))
    hint = elsewhere.FUNCTIONS.get(name, "")
    if name in SIGNATURES:
        hint = f"functions have no module: `{SIGNATURES[name].usage}`" if of_module else ""
        hint = hint or f"functions come first: `{SIGNATURES[name].usage}`"
    elif name in elsewhere.CONVERTING and not of_module:
        hint = "write `cast(x, f32)`"
    return PkcError(python_errors.NotInLanguage(span, f"calling `.{name}`", hint))


def refuse_attribute(span: Span, node: ast.Attribute, local: Container[str]) -> PkcError:
    """The error for `x.shape`, or for `math.pi`, in a function with `local` names."""
    hint = elsewhere.of_attribute(node.attr)
    if _is_around(node, local) and node.attr not in elsewhere.ATTRIBUTES:
        hint = f"write `{node.attr} = {ast.unparse(node)}` before the kernel, which can capture numbers"
    return PkcError(errors.UnknownAttribute(span, node.attr, hint))


def type_hint(node: ast.expr) -> str:
    """What to write for a type that is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return f"without quotes: `{node.value}`"
    return "write for example `bf16[M, N].shard(0)`"


class Positions:
    """Spans of syntax nodes, whose columns count bytes of UTF-8."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._starts = [0, *(match.end() for match in re.finditer("\n", source.text))]

    def offset(self, line: int, column: int) -> int:
        """The offset of a line, from 1, and a column in bytes, from 0."""
        start = self._starts[min(line, len(self._starts)) - 1]
        text = self.source.text[start : start + column]
        if text.isascii():
            return start + len(text)
        return start + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return Span(self.source, self.offset(node.lineno, node.col_offset), end)

    def outside_ascii(self, node: ast.FunctionDef) -> Span | None:
        """The first name of a function that has other letters or digits; Python takes some for those of ASCII."""
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        start, end = self._starts[first - 1], self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        text = self.source.text[start:end]
        if text.isascii():
            return None
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (tokenize.TokenError, SyntaxError):  # Python counts lines otherwise: a carriage return alone ends one
            return self.def_name(node)
        for token in tokens:
            if token.type == tokenize.NAME and not token.string.isascii():
                line, column = token.start
                place = self._starts[first + line - 2] + column
                return Span(self.source, place, place + len(token.string))
        return None

    def line(self, number: int) -> Span:
        """A line of the source without the space around it."""
        start = self._starts[min(number, len(self._starts)) - 1]
        text = self.source.line_text(self._starts.index(start) + 1)
        indent = len(text) - len(text.lstrip())
        return Span(self.source, start + indent, start + len(text.rstrip()))

    def def_name(self, node: ast.FunctionDef) -> Span:
        start = self.offset(node.lineno, node.col_offset)
        match = _DEF_NAME.match(self.source.text, start)
        return Span(self.source, match.start(1), match.end(1)) if match else self.line(node.lineno)
