"""`.pk` text to the tree: every construct, its spans, and every way to get it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.diagnostics import PkcError
from pkc.frontend import errors
from pkc.frontend.check_errors import DuplicateName
from pkc.frontend.files import MAX_BYTES, read_source
from pkc.frontend.parse import parse_file, parse_text
from pkc.frontend.tree import (
    Assign,
    At,
    AugAssign,
    Binary,
    Call,
    Do,
    For,
    FullSlice,
    If,
    Index,
    Keyword,
    Modifier,
    Name,
    Node,
    Number,
    Param,
    Program,
    Transpose,
    Unary,
    With,
)
from pkc.location import NOWHERE, Source
from tests.clock import within

HEAD = "kernel f(A: bf16[M]):\n"


def parse(text: str) -> Program:
    return parse_text(Source("t.pk", text))


def body(text: str):
    """The statements of a kernel with this body, which is not indented."""
    indented = "".join(f"    {line}\n" for line in text.split("\n"))
    return parse(HEAD + indented).kernels[0].body


def expression(text: str):
    (statement,) = body(f"x = {text}")
    assert isinstance(statement, Assign)
    return statement.value


def name(text: str) -> Name:
    return Name(NOWHERE, text)


def number(value: float) -> Number:
    return Number(NOWHERE, value)


def call(func: str, *args, **keywords) -> Call:
    return Call(NOWHERE, func, args, tuple(Keyword(NOWHERE, key, value) for key, value in keywords.items()), NOWHERE)


def binary(op: str, left, right) -> Binary:
    return Binary(NOWHERE, op, left, right)


def index(base, *indices) -> Index:
    return Index(NOWHERE, name(base) if isinstance(base, str) else base, indices)


a, b, c, d = map(name, "abcd")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a", a),
        ("128", number(128)),
        ("0x40", number(64)),
        ("1_000", number(1000)),
        ("1.5", number(1.5)),
        ("1e-3", number(0.001)),
        (".5", number(0.5)),
        ("2.", number(2.0)),
        ("9223372036854775807", number(2**63 - 1)),
        ("inf", number(float("inf"))),
        ("True", number(True)),
        ("False", number(False)),
        ("a + b - c", binary("-", binary("+", a, b), c)),
        ("a - (b - c)", binary("-", a, binary("-", b, c))),
        ("a + b * c @ d", binary("+", a, binary("@", binary("*", b, c), d))),
        ("a | b ^ c & d", binary("|", a, binary("^", b, binary("&", c, d)))),
        ("a << b + c >> d", binary(">>", binary("<<", a, binary("+", b, c)), d)),
        ("a & b == c | d", binary("==", binary("&", a, b), binary("|", c, d))),
        ("a // b % c / d", binary("/", binary("%", binary("//", a, b), c), d)),
        ("-a * b", binary("*", Unary(NOWHERE, "-", a), b)),
        ("a @ -b.T", binary("@", a, Unary(NOWHERE, "-", Transpose(NOWHERE, b)))),
        ("not a == b", Unary(NOWHERE, "not", binary("==", a, b))),
        ("a or b and not c", binary("or", a, binary("and", b, Unary(NOWHERE, "not", c)))),
        ("a or b or c", binary("or", binary("or", a, b), c)),
        ("(a < b) == (c >= d)", binary("==", binary("<", a, b), binary(">=", c, d))),
        ("(a + b).T", Transpose(NOWHERE, binary("+", a, b))),
        ("f()", call("f")),
        ("f(a, b, of=c, start=1,)", call("f", a, b, of=c, start=number(1))),
        ("f(g(a)).T", Transpose(NOWHERE, call("f", call("g", a)))),
        ("A[a, :, 1]", index("A", a, FullSlice(NOWHERE), number(1))),
        ("A[:,]", index("A", FullSlice(NOWHERE))),
        ("(A)[a]", index("A", a)),
        ("A.at(a + 1)[b]", index(At(NOWHERE, name("A"), binary("+", a, number(1))), b)),
        ("f(a,\n\n  # note\n b)", call("f", a, b)),
    ],
)
def test_expressions(text: str, tree: Node) -> None:
    assert expression(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = b", (Assign(NOWHERE, a, b),)),
        ("a = b; c = d;", (Assign(NOWHERE, a, b), Assign(NOWHERE, c, d))),
        ("A[a] = b", (Assign(NOWHERE, index("A", a), b),)),
        *((f"a {op}= b", (AugAssign(NOWHERE, a, op, b),)) for op in ("+", "-", "*", "/", "//", "%")),
        ("A.at(a)[b] += c", (AugAssign(NOWHERE, index(At(NOWHERE, name("A"), a), b), "+", c),)),
        ("f(a)", (Do(NOWHERE, call("f", a)),)),
        ("for a, b in f(): c = d", (For(NOWHERE, (a, b), call("f"), (Assign(NOWHERE, c, d),)),)),
        ("for a in f():\n  g()\n  g()\nf()", (For(NOWHERE, (a,), call("f"), (Do(NOWHERE, call("g")),) * 2),
                                             Do(NOWHERE, call("f")))),
        ("with f(a, sms=1):\n g()", (With(NOWHERE, call("f", a, sms=number(1)), (Do(NOWHERE, call("g")),)),)),
        ("if a: f()", (If(NOWHERE, a, (Do(NOWHERE, call("f")),), ()),)),
        ("if a: f()\nelif b:\n  g()\nelse:\n  f()\n  g()", (
            If(NOWHERE, a, (Do(NOWHERE, call("f")),), (
                If(NOWHERE, b, (Do(NOWHERE, call("g")),), (Do(NOWHERE, call("f")), Do(NOWHERE, call("g")))),)),)),
        ("\nf()\n\n# note\n        # note\n", (Do(NOWHERE, call("f")),)),
    ],
)  # fmt: skip
def test_statements(text: str, tree: tuple[Node, ...]) -> None:
    assert body(text) == tree


def test_parameters() -> None:
    text = """
# note
kernel f(
    A: bf16[M, 2 * D].symmetric().scratch(),
    B: f16[M,].shard(0),  # note
    s: f32,
    D: const = 128,
    ready: signal[ranks],
): f()
kernel g(): f()
"""
    first, second = parse(text).kernels
    params = [(p.name, p.annotation.base, p.annotation.dims, p.annotation.modifiers, p.default) for p in first.params]
    assert params == [
        ("A", "bf16", (name("M"), binary("*", number(2), name("D"))),
         (Modifier(NOWHERE, "symmetric", ()), Modifier(NOWHERE, "scratch", ())), None),
        ("B", "f16", (name("M"),), (Modifier(NOWHERE, "shard", (number(0),)),), None),
        ("s", "f32", None, (), None),
        ("D", "const", None, (), number(128)),
        ("ready", "signal", (name("ranks"),), (), None),
    ]  # fmt: skip
    assert (first.name, second.name, second.params, second.schedule) == ("f", "g", (), ())


def test_spans() -> None:
    text = (
        "kernel foo(Ab: bf16[M].shard(0), D: const = 3):\n"
        "    x = (a + b) * -c.T  # note\n"
        "    for m, n in tasks(x):\n"
        "        C.at(r)[m, :] += f(y, k=1)\n"
        "    if (a):\n"
        "        f()\n"
        "    elif b :\n"
        "        (f())\n"
    )
    program = parse(text)
    kernel = program.kernels[0]
    assign, loop, branch = kernel.body
    assert isinstance(assign, Assign) and isinstance(loop, For) and isinstance(branch, If)
    multiply = assign.value
    store = loop.body[0]
    other = branch.orelse[0]
    assert isinstance(multiply, Binary) and isinstance(store, AugAssign) and isinstance(other, If)
    assert isinstance(store.target, Index) and isinstance(store.value, Call)
    param: Param = kernel.params[0]
    found = [kernel, param, param.annotation, param.annotation.modifiers[0], kernel.params[1].default, assign,
             multiply, multiply.left, multiply.right, loop, *loop.targets, store, store.target, store.target.base,
             store.target.indices[1], *store.value.keywords, branch, branch.condition, other,
             other.body[0]]  # fmt: skip
    assert [node.span.text for node in found if node] == [
        "foo", "Ab", "bf16[M].shard(0)", "shard(0)", "3", "x = (a + b) * -c.T",
        "(a + b) * -c.T", "a + b", "-c.T", "for m, n in tasks(x):", "m", "n", "C.at(r)[m, :] += f(y, k=1)",
        "C.at(r)[m, :]", "C.at(r)", ":", "k=1", "if (a):", "a", "elif b :", "(f())",
    ]  # fmt: skip
    assert store.value.func_span.text == "f"
    assert (store.span.line, store.span.column) == (4, 9)


@pytest.mark.parametrize("text", [HEAD + "    x = a\n", HEAD + "    x = a"])
def test_line_ends(text: str) -> None:
    assert parse(text.replace("\n", "\r\n")) == parse(HEAD + "    x = a\n")


def in_body(text: str) -> str:
    return f"{HEAD}    {text}\n"


@pytest.mark.parametrize(
    ("text", "error", "at"),
    [
        (in_body("x = 'a'"), errors.UnexpectedCharacter, "'"),
        (in_body("é = 1"), errors.UnexpectedCharacter, "é"),
        (in_body("x = 1 \\"), errors.UnexpectedCharacter, "\\"),
        (in_body("x = \0"), errors.UnexpectedCharacter, "\0"),
        (in_body("x = \ud800"), errors.UnexpectedCharacter, "\ud800"),
        (in_body("x = 1\n\ty = 1"), errors.TabIndentation, "\t"),
        (in_body("x = 1\n  y = 1"), errors.InconsistentDedent, "y"),
        (in_body("x = 1\n      y = 1"), errors.UnexpectedIndent, "y"),
        ("  kernel f(): g()", errors.UnexpectedIndent, "kernel"),
        (HEAD, errors.MissingBlock, ":"),
        (in_body("if a:\n    f()"), errors.MissingBlock, ":"),
        (in_body("x = f(a"), errors.UnclosedBracket, "("),
        (in_body("x = A[a\n    y = 1"), errors.UnclosedBracket, "["),
        (in_body("f(" * 3000), errors.UnclosedBracket, "("),
        (in_body("x = (a]"), errors.UnexpectedToken, "]"),
        (in_body("x = a)"), errors.UnexpectedToken, ")"),
        (in_body("x = f(a b)"), errors.UnexpectedToken, "b"),
        (in_body("x = "), errors.UnexpectedToken, ""),
        (in_body("a, b = c"), errors.UnexpectedToken, ","),
        (in_body("x = A[a:b]"), errors.UnexpectedToken, ":"),
        (in_body("x = A.at(r)"), errors.UnexpectedToken, ""),
        ("x = 1", errors.UnexpectedToken, "x"),
        ("kernel f(x): g()", errors.UnexpectedToken, ")"),
        ("class f: g()", errors.ReservedWord, "class"),
        *((in_body(f"{word} x"), errors.ReservedWord, word) for word in ("while", "yield", "lambda", "global")),
        *((in_body(f"{word} x"), errors.UnexpectedToken, word) for word in ("def", "from", "import")),
        ("def f(x: f32): g()", errors.UnexpectedToken, ":"),
        ("def f(x, 1): g()", errors.UnexpectedToken, "1"),
        ("def f(x):", errors.MissingBlock, ":"),
        ("def f(x, y, x): g()", DuplicateName, "x"),
        ("import a", errors.UnexpectedToken, "import"),
        ("from a import f.g", errors.UnexpectedToken, "."),
        (in_body("x = None"), errors.ReservedWord, "None"),
        (in_body("x = 12ab"), errors.MalformedNumber, "12ab"),
        (in_body("x = 007"), errors.MalformedNumber, "007"),
        (in_body("x = 0x"), errors.MalformedNumber, "0x"),
        (in_body("x = 1.5ee"), errors.MalformedNumber, "1.5ee"),
        (in_body("x = 9223372036854775808"), errors.NumberTooLarge, "9223372036854775808"),
        (in_body("x = " + "9" * 9000), errors.NumberTooLarge, "9" * 9000),
        (in_body("x = 1e999"), errors.NumberTooLarge, "1e999"),
        (in_body("x = a < b < c"), errors.ChainedComparison, "<"),
        (in_body("a + b = c"), errors.NotAssignable, "a + b"),
        (in_body("True = c"), errors.NotAssignable, "True"),
        (in_body("f() += c"), errors.NotAssignable, "f()"),
        (in_body("a + b"), errors.NotAStatement, "a + b"),
        (in_body("for a in b: f()"), errors.NotALoopList, "b"),
        (in_body("with a: f()"), errors.NotARole, "a"),
        (in_body("x = f(a)[b]"), errors.NotIndexable, "f(a)"),
        (in_body("x = A[a].at(r)[b]"), errors.NotIndexable, "A[a]"),
        (in_body("x = a.foo"), errors.UnknownAttribute, "foo"),
        (in_body("x = a.of(r)[b]"), errors.UnknownAttribute, "of"),
        (in_body("f(a=1, b)"), errors.PositionalAfterKeyword, "b"),
        (in_body("f(a=1, a=2)"), errors.RepeatedKeyword, "a=2"),
        ("", errors.NoKernel, ""),
        ("# nothing\n\n", errors.NoKernel, ""),
        ("#" * (MAX_BYTES + 1), errors.FileTooLarge, ""),
        ("#" + "é" * (MAX_BYTES // 2), errors.FileTooLarge, ""),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_errors(text: str, error: type, at: str) -> None:
    with pytest.raises(PkcError) as caught:
        parse(text)
    (found,) = caught.value.diagnostics
    assert (type(found), found.span.text) == (error, at)
    assert found.render()


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("x = ", "end of line", "an expression"),
        ("for a in f()", "end of line", "`:`"),
        ("x = A.at(r)", "end of line", "`[`"),
        ("x = f(a b)", "`b`", "`,`"),
        ("for 1 in f(): g()", "`1`", "a name"),
    ],
)
def test_expectations(text: str, found: str, expected: str) -> None:
    with pytest.raises(PkcError) as caught:
        parse(in_body(text))
    (diagnostic,) = caught.value.diagnostics
    assert isinstance(diagnostic, errors.UnexpectedToken)
    assert diagnostic.found == found
    assert expected in diagnostic.expected


def nested(levels: int) -> str:
    loops = "".join(f"{' ' * level}if a:\n" for level in range(1, levels))
    return f"{HEAD}{loops}{' ' * levels}f()\n"


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (in_body("x = " + "(" * 99 + "a" + ")" * 99), in_body("x = " + "(" * 100 + "a" + ")" * 100)),
        (in_body("x = " + "+".join("a" * 100)), in_body("x = " + "+".join("a" * 101))),
        (in_body("x = a" + ".T" * 99), in_body("x = a" + ".T" * 100)),
        (in_body("x = " + "-" * 99 + "a"), in_body("x = " + "not " * 10_000 + "a")),
        (in_body("x = " + "f(k=" * 99 + "a" + ")" * 99), in_body("x = " + "f(k=" * 100 + "a" + ")" * 100)),
        (in_body("x = " + "A[" * 99 + "a" + "]" * 99), in_body("x = " + "A.at(" * 100 + "a" + ")[b]" * 100)),
        (nested(32), nested(33)),
        (in_body("if a: f()" + "\n    elif a: f()" * 30), in_body("if a: f()" + "\n    elif a: f()" * 31)),
        (in_body("x = a"), in_body("x = " + "(" * 10_000 + "a" + ")" * 10_000)),
        (in_body("x = a"), in_body("x = " + "+".join("a" * 10_000))),
    ],
)
def test_nesting(good: str, bad: str) -> None:
    assert repr(parse(good)) and hash(parse(good))
    with pytest.raises(PkcError) as caught:
        parse(bad)
    assert isinstance(caught.value.diagnostics[0], errors.NestedTooDeep)


def test_speed() -> None:
    text = in_body("x = 1") + 40 * "    acc += A[m, k] @ B[k, n] * (c + 1)\n"
    parse(text)
    within(0.1, lambda: parse(text))


# Files


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pk"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + "    x = a\n").replace("\n", "\r\n").encode())
    program = parse_file(path)
    assert program == parse(HEAD + "    x = a")
    assert program.span.source.name == str(path)
    assert program.kernels[0].span.column == 8


@pytest.mark.parametrize(
    ("file", "data", "error"),
    [
        ("a.pk", None, errors.FileNotFound),
        ("a\0.pk", None, errors.FileNotFound),
        ("x" * 300 + ".pk", None, errors.FileUnreadable),
        ("", None, errors.FileIsDirectory),
        ("a.txt", b"", errors.WrongExtension),
        ("a.pk", b"kernel\0", errors.BinaryFile),
        ("a.pk", b"#" * (MAX_BYTES + 1), errors.FileTooLarge),
        ("a.pk", b"# a\n#\xff", errors.NotUtf8),
        ("a.pk", b"", errors.NoKernel),
    ],
)
def test_file_errors(tmp_path: Path, file: str, data: bytes | None, error: type) -> None:
    path = tmp_path / file
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(PkcError) as caught:
        parse_file(path)
    assert type(caught.value.diagnostics[0]) is error
    assert str(caught.value)


def test_device_is_not_read() -> None:
    with pytest.raises(PkcError) as caught:
        read_source("/dev/zero")
    assert isinstance(caught.value.diagnostics[0], errors.FileUnreadable)


@pytest.mark.parametrize(("data", "offset", "line"), [(b"a\n\xffb", 2, 2), (b"\xef\xbb\xbfa\xff", 4, 1)])
def test_where_utf8_ends(tmp_path: Path, data: bytes, offset: int, line: int) -> None:
    (tmp_path / "a.pk").write_bytes(data)
    with pytest.raises(PkcError) as caught:
        read_source(tmp_path / "a.pk")
    (found,) = caught.value.diagnostics
    assert isinstance(found, errors.NotUtf8)
    assert (found.offset, found.byte, found.line) == (offset, 0xFF, line)
