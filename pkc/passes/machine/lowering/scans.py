"""Sums along rows: over the neighbours that a thread has, over lanes, over warps, and so group after group of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import SSAValue

from pkc.dialect.elementwise import AddOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import tile_type
from pkc.dialect.types import f32
from pkc.passes.machine.lowering import exchange
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.elements import apply, constant
from pkc.passes.machine.lowering.fragments import RegisterTile, Value, allocate, as_elements, element
from pkc.passes.machine.lowering.missing import CannotLowerError
from pkc.passes.machine.lowering.spread import fragment_of
from pkc.targets.layout import COLUMN_STEP, Fragment

_QUAD = 4
"""Lanes that share a row of what lies as an accumulator."""


def lower(role: WarpRole, op: CumSumOp) -> None:
    """What a thread has of each row, in order, and before it what others have. Elements behind a row, which some
    threads have, come last: no sum has them."""
    source, fragment = as_elements(role, op.tile), fragment_of(role, op.result)
    if not fragment.columns:
        raise CannotLowerError(op, "`cumsum` of the result of a row reduction")
    target = allocate(role, fragment, tile_type(op.result).element_type, op.result.name_hint)
    for row in _rows(fragment):
        _Scan(role, op, source, target, row).lower()
    role.tiles[op.result] = target


@dataclass(frozen=True)
class _Row:
    """A row of which a thread has `groups` of `together` neighbours, as each of so many lanes at a time; `first` is the
    number of the first of a group."""

    lanes: int
    together: int
    groups: int
    first: Callable[[WarpRole, SSAValue], SSAValue]


def _rows(fragment: Fragment) -> list[_Row]:
    if fragment.lanes:
        per_row, together = fragment.per_row, fragment.together

        def of_lanes(number: int) -> _Row:
            def first(role: WarpRole, group: SSAValue) -> SSAValue:
                return role.emit.plus(role.emit.times(group, together), number * per_row)

            return _Row(fragment.lanes, together, per_row // together, first)

        return [of_lanes(number) for number in range(fragment.repeats)]
    halves = 2 if 0 in fragment.axes else 1

    def of_quad(repeat: int, half: int) -> _Row:
        def first(role: WarpRole, group: SSAValue) -> SSAValue:
            return role.emit.plus(role.emit.times(group, 2 * halves), repeat * fragment.columns // 2 + half * 2)

        return _Row(_QUAD, 2, fragment.columns // COLUMN_STEP, first)

    return [of_quad(repeat, half) for repeat in range(fragment.repeats) for half in range(halves)]


@dataclass(frozen=True)
class _Scan:
    """The sums along one row of those that a thread has some of."""

    role: WarpRole
    op: CumSumOp
    source: Value
    target: RegisterTile
    row: _Row

    def lower(self) -> None:
        emit, row = self.role.emit, self.row
        before = emit.registers(1, self.target.element_type)
        emit.set(self._zero(), before, 0)
        with emit.loop(0, row.groups, unroll=True) as group:
            first = row.first(self.role, group)
            places = [first, *(emit.plus(first, number) for number in range(1, row.together))]
            own: list[SSAValue] = []
            for place in places:
                found = element(self.role, self.source, place)
                own.append(self._sum(own[-1], found) if own else found)
            ahead, whole = self._of_others(own[-1])
            start = self._sum(emit.get(before, 0), ahead)
            for place, found in zip(places, own, strict=True):
                emit.set(self._sum(start, found), self.target.registers, place)
            if row.groups > 1:
                emit.set(self._sum(emit.get(before, 0), whole), before, 0)

    def _of_others(self, own: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Of what each thread of a row has: the sum of those before this one, and that of all."""
        emit, warp = self.role.emit, self.role.threads.arch.warp
        lanes = min(self.row.lanes, warp)
        if lanes == 1:
            return self._zero(), own
        lane = emit.rest(self.role.threads.lane, lanes)
        up_to, distance = own, 1
        while distance < lanes:
            further = self._sum(emit.value(self._named("shuffle_up"), up_to, emit.const(distance)), up_to)
            up_to = emit.select(emit.compare("sge", lane, distance), further, up_to)
            distance *= 2
        above = emit.value(self._named("shuffle_up"), up_to, emit.const(1))
        ahead = emit.select(emit.compare("sge", lane, 1), above, self._zero())
        if self.row.lanes > warp:
            others, whole = self._of_warps(up_to, self.row.lanes // warp)
            return self._sum(others, ahead), whole
        last = emit.plus(emit.minus(self.role.threads.lane, lane), lanes - 1)
        return ahead, emit.value(self._named("shuffle_from"), up_to, last)

    def _of_warps(self, up_to: SSAValue, warps: int) -> tuple[SSAValue, SSAValue]:
        """The same of so many warps, of which the last lane of each has the sum: through a word of shared memory for
        each, which all have read when the next are written."""
        emit, threads, real = self.role.emit, self.role.threads, self.target.element_type == f32
        mine = emit.minus(threads.warp, threads.first)
        words = emit.plus(self.role.launch.base, self.role.words + exchange.behind(self.role))
        emit.do(threads.sync)
        with emit.when(emit.compare("eq", threads.lane, threads.arch.warp - 1)):
            bits = emit.value("bits_f32" if real else "bits_i32", up_to)
            emit.do("store_shared_b32", emit.plus(words, emit.times(mine, 4)), bits)
        emit.do(threads.sync)
        first = emit.plus(words, emit.times(emit.over(mine, warps), 4 * warps))
        number = emit.rest(mine, warps)
        ahead = whole = self._zero()
        for warp in range(warps):
            bits = emit.value("load_shared_b32", emit.plus(first, 4 * warp))
            found = emit.value("float_bits" if real else "int_bits", bits)
            ahead = emit.select(emit.compare("sgt", number, warp), self._sum(ahead, found), ahead)
            whole = self._sum(whole, found)
        return ahead, whole

    def _zero(self) -> SSAValue:
        return constant(self.role.emit, 0, self.target.element_type)

    def _sum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return apply(self.role.emit, self.op, AddOp, [a, b])

    def _named(self, shuffle: str) -> str:
        return shuffle if self.target.element_type == f32 else f"{shuffle}_i32"
