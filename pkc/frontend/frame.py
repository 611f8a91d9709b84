"""The state of building one kernel: where operations go, what names mean, what went wrong."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as IRBlock

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.coordinates import DimOp
from pkc.dialect.tile import BroadcastOp, CastOp, FullOp, SplatOp, TransposeOp
from pkc.dialect.types import NARROW, TileType, f32, i1, i32, widened
from pkc.frontend import tree
from pkc.frontend.alignment import ascends, places_of
from pkc.frontend.beginnings import Beginning
from pkc.frontend.check_errors import NotAValue
from pkc.frontend.errors import NumberTooLarge
from pkc.frontend.kinds import (
    ArrayRef,
    Axis,
    Block,
    BlockAxis,
    Boolean,
    Broken,
    Constant,
    Dimension,
    Integer,
    SignalRef,
    Tile,
    Value,
    shape,
)
from pkc.location import Span

OpT = TypeVar("OpT", bound=Operation)

F32_OVERFLOW = (2 - 2**-24) * 2.0**127

MAX_ERRORS = 20
"""After so many errors in one kernel, building it stops."""


class TooManyErrorsError(PkcError):
    """Ends building a kernel; has all that was found."""


@dataclass
class Frame:
    """What building one kernel keeps track of.

    `names` maps each name in scope to what it is; it is replaced, not changed, when a scope is left. `sharded` has the
    dimensions that some parameter shards, `zigzag` those of them that are in zigzag order. `outer` has the names that
    tasks or roles may read but not assign, each with the word for what forbids it.
    """

    block: IRBlock
    names: dict[str, Value]
    sharded: frozenset[str]
    fixed: dict[str, str]
    """Names that cannot be assigned, and what each is."""
    run: Callable[[Frame, Iterable[tree.Stmt]], None]
    """Builds statements: for calls of functions, which are expressions."""
    outer: dict[str, str] = field(default_factory=dict[str, str])
    expired: dict[str, str] = field(default_factory=dict[str, str])
    """Names of scopes that have ended, each with its hint."""
    began: dict[str, Beginning] = field(default_factory=dict[str, Beginning])
    """Where the variables in scope were assigned."""
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    at_top: bool = True
    """Whether the current statement is directly in the kernel, not in a loop, branch or role."""
    blocks: dict[BlockAxis, SSAValue] = field(default_factory=dict[BlockAxis, SSAValue])
    tiles: Mapping[str, int] = field(default_factory=dict[str, int])
    """The sizes that the schedule gives to blocks, by dimension."""
    tiled: set[str] = field(default_factory=set[str])
    """The dimensions whose blocks could have another size."""
    zigzag: frozenset[str] = frozenset()
    functions: Mapping[str, tree.Function] = field(default_factory=dict[str, tree.Function])
    """The program's own functions that may be called here."""
    inside: str = ""
    """The function whose statements are built; empty in the kernel itself."""
    as_positions: Callable[[Block, Span], Value | None] | None = None
    """Inside of an index: the positions of a block, which stands for them in arithmetic; none if it cannot."""
    calls: int = 0
    """How many calls of functions there were so far."""

    # Findings

    def record(self, error: PkcError) -> None:
        self.findings += error.diagnostics
        if len(self.findings) >= MAX_ERRORS:
            raise TooManyErrorsError(*self.findings)

    def hint(self, name: str, known: Iterable[str]) -> str:
        """`did you mean ...`, or nothing."""
        close = difflib.get_close_matches(name, list(known), n=1)
        return f"did you mean `{close[0]}`?" if close else ""

    # Emission

    def emit(self, op: OpT, span: Span) -> OpT:
        """Append an operation to the current block, at the line of `span`."""
        op.location = span.location()
        self.block.add_op(op)
        return op

    def value(self, op: Operation, span: Span) -> SSAValue:
        """Append an operation and take its one result."""
        return self.emit(op, span).results[0]

    @contextmanager
    def into(self, block: IRBlock, scope: str) -> Generator[IRBlock]:
        """Append to the block of a scope for a while; names that are new or changed there are dropped at the end."""
        saved = self.block, dict(self.names), self.outer, self.at_top
        began = dict(self.began)
        self.block, self.at_top = block, False
        try:
            yield block
        finally:
            gone = {name: value for name, value in self.names.items() if name not in saved[1]}
            broken = {name: value for name, value in gone.items() if isinstance(value, Broken)}
            self.expired |= {
                name: f"`{name}` belongs to {scope} that has ended; assign it before that to keep its value"
                for name in gone
            }
            self.block, self.names, self.outer, self.at_top = saved
            self.began = began
            self.names |= broken  # what is wrong with them has been said

    def forbid_outer(self, what: str) -> None:
        """Names from here on are those of tasks or roles: what is known may be read, but not assigned. Broken names may
        be of tasks that have ended, and what is wrong with them has been said."""
        known = ((name, value) for name, value in self.names.items() if name not in self.fixed)
        self.outer = {name: what for name, value in known if not isinstance(value, Broken)}

    def taken(self, name: str) -> bool:
        """Whether no loop variable can have a name, as something else has it."""
        return name in self.names and not isinstance(self.names[name], Broken)

    @contextmanager
    def function(self, function: tree.Function, arguments: Mapping[str, Value]) -> Generator[None]:
        """Build statements of a function for a while, which see the arguments and names of their own."""
        saved = self.names, self.fixed, self.outer, self.expired, self.at_top, self.functions, self.inside
        began, self.began = self.began, {}
        self.names, self.fixed, self.outer, self.expired, self.at_top = dict(arguments), {}, {}, {}, False
        self.functions, self.inside = {inner.name: inner for inner in function.functions}, function.name
        try:
            yield
        finally:
            self.names, self.fixed, self.outer, self.expired, self.at_top, self.functions, self.inside = saved
            self.began = began

    # Coercions

    def arithmetic(self, value: Value, span: Span) -> Value:
        """The value itself, if it can be an operand of arithmetic."""
        if isinstance(value, Broken):
            raise PkcError()
        if isinstance(value, Block) and self.as_positions and (found := self.as_positions(value, span)) is not None:
            return found
        if isinstance(value, Block):
            name = value.axis.name
            hint = f"`positions({name})` are its positions, `start({name})` is its first one"
            raise PkcError(NotAValue(span, str(value), hint))
        if isinstance(value, SignalRef):
            raise PkcError(NotAValue(span, str(value), "`wait(s[i], n)` waits for what is signalled to it"))
        if isinstance(value, ArrayRef):
            whole = [isinstance(dim, int) for dim in value.type.dimensions]
            hint = "index it with blocks to get a tile"
            if all(whole):
                hint = f"index it to get a tile: `{value.name}[{', '.join(':' * len(whole))}]` is all of it"
            elif any(whole):
                hint += ", and with `:` for all of a dimension that is a constant"
            raise PkcError(NotAValue(span, str(value), hint))
        return value

    def block_of(self, axis: BlockAxis) -> SSAValue:
        """The block that an axis comes from."""
        return self.blocks[axis]

    def integer(self, value: Value, span: Span) -> SSAValue:
        """A scalar integer as a value of type `index`."""
        if isinstance(value, Constant):
            return self.value(arith.ConstantOp.from_int_and_width(int(value.value), IndexType()), span)
        if isinstance(value, Dimension):
            return self.value(DimOp(value.name), span)
        assert isinstance(value, Integer)
        return value.ssa

    def boolean(self, value: Value, span: Span) -> SSAValue:
        """A scalar truth value as an `i1`."""
        if isinstance(value, Constant):
            return self.value(arith.ConstantOp.from_int_and_width(int(value.value), 1), span)
        assert isinstance(value, Boolean)
        return value.ssa

    def tile(self, value: Value, dtype: Attribute, axes: tuple[Axis, ...], span: Span) -> SSAValue:
        """Any value as a tile of type `dtype` (f32, i32 or i1) with `axes`, which have those of the value in order, or,
        if it has two, the other way round."""
        result = TileType(shape(axes), dtype)
        if isinstance(value, Constant):
            _check_fits(value.value, dtype, span)
            return self.value(FullOp(value.value, result), span)
        if isinstance(value, Boolean):
            return self.value(SplatOp(value.ssa, result), span)
        if not isinstance(value, Tile):
            return self.value(SplatOp(self.integer(value, span), result), span)
        ssa = self.widened(value, span).ssa
        positions = [place for place in places_of(value.axes, axes) if place is not None]
        if not ascends(positions):
            ssa, positions = self.value(TransposeOp(ssa), span), positions[::-1]
        return ssa if len(positions) == len(axes) else self.value(BroadcastOp(ssa, positions, result), span)

    def widened(self, value: Tile, span: Span) -> Tile:
        """A tile as it enters arithmetic: narrow floats become f32, narrow integers i32."""
        if value.dtype not in NARROW:
            return value
        wide = widened(value.dtype)
        return replace(value, ssa=self.value(CastOp(value.ssa, wide), span), dtype=wide)


def _check_fits(value: float, dtype: Attribute, span: Span) -> None:
    """That a constant can be an element of type `dtype`."""
    if dtype == i32 and not -(2**31) <= value < 2**31:
        bits = 2**31 <= value < 2**32 and f"0x{int(value):x}" in span.text.lower()
        hint = f"`{int(value) - 2**32}` has the same 32 bits" if bits else ""
        raise PkcError(NumberTooLarge(span, f"an i32 is from {-(2**31)} to {2**31 - 1}", hint))
    if dtype == f32 and abs(value) >= F32_OVERFLOW and not math.isinf(value):
        raise PkcError(NumberTooLarge(span, "an f32 is at most 3.4028e38; write `inf` for infinity"))


def guarded(frame: Frame, names: Iterable[str], build: Callable[[], None]) -> None:
    """Run `build`; if it finds errors, keep them and leave `names` broken instead of undefined."""
    try:
        build()
    except TooManyErrorsError:
        raise
    except PkcError as error:
        frame.record(error)
        for name in names:
            frame.names[name] = Broken()


ARITHMETIC: dict[str, Attribute] = {"float": f32, "integer": i32, "boolean": i1}
"""The element type in which each family of values is computed."""
