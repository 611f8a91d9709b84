"""`pkc opt`: runs passes over textual IR; errors are diagnostics, never a traceback.

xDSL's driver is not used: it answers an unknown pass with a traceback, verifies without locations, and changes
global state, which tests that run in one process would see.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.universe import XDSL_UNIVERSE
from xdsl.utils import lexer
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, ParseError, VerifyException

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE, Source, Span
from pkc.passes import PASSES, TILE_PIPELINE, errors
from pkc.passes.run import PassTime, pipeline_text, print_ir, run_pipeline
from pkc.remarks import collecting
from pkc.universe import UNIVERSE

_SPLIT = "// -----"
_RESULTS = re.compile(r'(?:%[^="]*=\s*)?"?')
"""What stands before the name of an operation."""

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*(?P<end>"?)|//[^\n]*')

_AVAILABLE = XDSL_UNIVERSE.all_passes | PASSES
"""pkc's passes, and xDSL's for experiments."""


def main(argv: Sequence[str]) -> int:
    """Run the tool; 0 when all of the input went through."""
    try:
        args = _arguments().parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    try:
        return _run(args)
    except PkcError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def parse_ir(text: str, name: str, *, ctx: Context | None = None) -> ModuleOp:
    """The module in a text; operations without a location get their line and column in the text."""
    source = Source(name, text).remember()
    _check_quotes(source)
    parser = _LocatingParser(ctx or _context(), text, name)
    try:
        return parser.parse_module()
    except ParseError:
        raise
    except Exception as error:
        # xDSL's parser raises other exceptions for some malformed texts, such as RecursionError for deep nesting.
        span = Span(source, min(parser.pos, len(text)), min(parser.pos + 1, len(text)))
        raise PkcError(errors.UnreadableIR(span, str(error) or type(error).__name__)) from error


def _check_quotes(source: Source) -> None:
    """Refuse a malformed string: xDSL's lexer takes time exponential in its length."""
    for found in _STRING_OR_COMMENT.finditer(source.text):
        if found["end"] == "":
            quote = Span(source, found.start(), found.start() + 1)
            raise PkcError(errors.UnreadableIR(quote, "a string has no end or an unknown escape"))


def parse_passes(text: str) -> tuple[ModulePass, ...]:
    """The passes that a text such as `pk-cse,licm` names."""
    try:
        specs = tuple(parse_pipeline(text))
    except ArgSpecParseError as error:
        message = str(error).splitlines()[-1].strip(" ^")
        raise PkcError(errors.MalformedPipeline(Span(Source("-p", text), 0, len(text)), message)) from None
    return tuple(map(_make_pass, specs))


class _LocatingParser(Parser):
    """Gives an operation without a location its place in the file, as MLIR's tools do."""

    def parse_operation(self) -> Operation:
        token = self._current_token.span
        name = _RESULTS.match(token.input.content, token.start)
        start = name.end() if name else token.start
        place = lexer.Span(start, start + 1, token.input).get_location()
        try:
            op = super().parse_operation()
        except VerifyException as error:
            # Types and attributes are verified when they are made, without a location.
            self.raise_error(str(error))
        if op.location is UNKNOWN_LOC:
            op.location = FileLineColLoc(StringAttr(place.file), IntAttr(place.line), IntAttr(place.col))
        return op


class _WholeNames(argparse.HelpFormatter):
    """Breaks no line within the name of a pass."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = textwrap.TextWrapper(width, indent, indent, break_long_words=False, break_on_hyphens=False)
        return fill.fill(text)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pkc opt",
        formatter_class=_WholeNames,
        description="Run passes over textual IR.",
        epilog=f"passes of pkc: {', '.join(PASSES)}; those of xDSL can be named too. "
        f"The tile pipeline is {pipeline_text(TILE_PIPELINE)}",
    )
    parser.add_argument("file", nargs="?", default="-", help="textual IR; standard input if left out or -")
    parser.add_argument("-p", "--passes", default="", metavar="PASSES", help='such as "pk-cse,pk-dce"')
    parser.add_argument("-o", "--output", metavar="FILE", help="output file; standard output if left out")
    parser.add_argument("--print-generic", "--print-op-generic", action="store_true", help="the generic form")
    parser.add_argument("--print-debuginfo", action="store_true", help="print locations")
    parser.add_argument(
        "--split-input-file", action="store_true", help=f"treat the sections between {_SPLIT} lines one by one"
    )
    parser.add_argument(
        "--verify-diagnostics", action="store_true", help="print errors in place of the output, and succeed"
    )
    parser.add_argument("--allow-unregistered-dialect", action="store_true", help="accept unknown operations and types")
    parser.add_argument("--disable-verify", action="store_true", help="do not verify before and after each pass")
    parser.add_argument("--dump", type=Path, metavar="DIR", help="write the IR after each pass to DIR/NN-name.mlir")
    parser.add_argument("--remarks", action="store_true", help="print remarks of passes as comments behind the IR")
    parser.add_argument("--time-passes", action="store_true", help="print the time of each pass to standard error")
    return parser


def _run(args: argparse.Namespace) -> int:
    passes = parse_passes(args.passes)
    name = "<stdin>" if args.file == "-" else args.file
    sections = _split(_read(args.file)) if args.split_input_file else (_read(args.file),)
    outputs: list[str] = []
    failed = False
    for section in sections:
        text, mistake = _one(section, name, passes, args)
        failed |= bool(mistake)
        if mistake and not args.verify_diagnostics:
            sys.stderr.write(f"{mistake.rstrip()}\n")
        else:
            outputs.append(text or f"{mistake.rstrip()}\n")
    _write(args.output, f"{_SPLIT}\n".join(outputs))
    return int(failed and not args.verify_diagnostics)


def _one(text: str, name: str, passes: Sequence[ModulePass], args: argparse.Namespace) -> tuple[str, str]:
    """The output for one section: IR, or an error."""
    ctx = _context()
    ctx.allow_unregistered = args.allow_unregistered_dialect
    try:
        module = parse_ir(text, name, ctx=ctx)
        with collecting() as remarks:
            times = run_pipeline(module, passes, ctx=ctx, verify=not args.disable_verify, dump=args.dump)
    except ParseError as error:
        return "", str(error)
    except PkcError as error:
        return "", str(error)
    except OSError as error:
        if args.dump is None:
            raise
        raise PkcError(errors.UnusableFile(NOWHERE, "write", str(args.dump), _reason(error))) from None
    if args.time_passes:
        _print_times(times)
    printed = print_ir(module, generic=args.print_generic, locations=args.print_debuginfo)
    return printed + "".join(f"// remark: {remark}\n" for remark in remarks if args.remarks), ""


def _print_times(times: Sequence[PassTime]) -> None:
    for step in times:
        sys.stderr.write(f"{step.seconds * 1e3:9.3f} ms  {step.name}\n")


def _context() -> Context:
    ctx = Context()
    for name, dialect in (XDSL_UNIVERSE.all_dialects | UNIVERSE.all_dialects).items():
        ctx.register_dialect(name, dialect)
    return ctx


def _make_pass(spec: ArgSpec) -> ModulePass:
    make = _AVAILABLE.get(spec.name)
    if make is None:
        near = get_close_matches(spec.name, _AVAILABLE, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"passes of pkc: {', '.join(PASSES)}"
        raise PkcError(errors.UnknownPass(NOWHERE, spec.name, hint))
    kind = make()
    try:
        return kind.from_spec(spec)
    except ValueError as error:
        options = ", ".join(f"{option.name}: {option.expected_type}" for option in get_pass_option_infos(kind))
        raise PkcError(errors.BadPassOption(NOWHERE, spec.name, str(error), options or "none")) from None


def _split(text: str) -> Iterator[str]:
    """The sections of a text, each behind as many empty lines as it has lines before it, so that line numbers stay."""
    lines = 0
    for section in text.split(_SPLIT):
        yield "\n" * lines + section
        lines += section.count("\n")


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PkcError(errors.UnusableFile(NOWHERE, "read", path, _reason(error))) from None


def _write(path: str | None, text: str) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise PkcError(errors.UnusableFile(NOWHERE, "write", path, _reason(error))) from None


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or "it cannot be used") if isinstance(error, OSError) else "it is not UTF-8 text"
