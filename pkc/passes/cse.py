"""The pass `pk-cse`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove, IsTerminator, MemoryEffectKind

from pkc.dialect.access import LOADS, StoreOp
from pkc.passes.analysis.dependence import never_changes
from pkc.passes.analysis.effects import READS, Kinds, effect_kinds, has_trait, is_needless


class Cse(ModulePass):
    """Merge equal operations; loads of one block only when nothing is awaited or added to between them, and nothing
    stored to their array, and elements of private arrays that the kernel only reads wherever they are read. Each load
    would have a stage of its own.

    Before:

        %m1 = pk.block[%i] : !pk.block<M by 128>
        %x = pk.load %A[%m1 : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %m2 = pk.block[%i] : !pk.block<M by 128>
        %y = pk.load %A[%m2 : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %s = pk.add %x, %y : !pk.tile<128xf32>

    After:

        %m1 = pk.block[%i] : !pk.block<M by 128>
        %x = pk.load %A[%m1 : !pk.block<M by 128>] : !pk.private<[M], f32> -> !pk.tile<128xf32>
        %s = pk.add %x, %x : !pk.tile<128xf32>

    One walk that counts writes on its way: xDSL's own pass looks at all that stands between each two loads.
    """

    name = "pk-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        merge = _Merge()
        merge.regions(op)
        # At the end, the last first: what is dead or merged has no users but such as are dropped before it. What is
        # inside of it goes with it.
        for unneeded in reversed(merge.unneeded):
            if unneeded.parent is not None:
                unneeded.detach()
                unneeded.erase()


@dataclass(frozen=True)
class _Known:
    """An operation that was met, in a block of which so much had been written then that it may read."""

    op: Operation
    writes: int


class _Merge:
    """The walk: what is known where it stands, by what makes two operations equal."""

    def __init__(self) -> None:
        self.unneeded: list[Operation] = []
        self._known: dict[Hashable, _Known] = {}
        self._replaced: list[tuple[Hashable, _Known | None]] = []
        """What the scopes so far have put into `_known`, and what was there before."""
        self._writes = 0
        """How many operations of the current block may write, but for stores."""
        self._stores: Counter[SSAValue] = Counter()
        """How many stores to each array the current block has."""
        self._kinds: dict[Operation, Kinds | None] = {}
        """Of operations with regions, which stay as they are until the end."""

    def regions(self, op: Operation) -> None:
        for region in op.regions:
            if len(region.blocks) == 1:
                with self._scope():
                    self._block(region.block)

    @contextmanager
    def _scope(self) -> Generator[None]:
        """What becomes known inside is forgotten at the end."""
        before, writes, stores = len(self._replaced), self._writes, self._stores
        self._writes, self._stores = 0, Counter()
        yield
        while len(self._replaced) > before:
            key, old = self._replaced.pop()
            if old is None:
                del self._known[key]
            else:
                self._known[key] = old
        self._writes, self._stores = writes, stores

    def _written(self, op: Operation) -> int:
        """How many operations so far may have written what an operation reads, or end what it is kept for."""
        return self._writes + (self._stores[op.array] if isinstance(op, LOADS) else self._stores.total())

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if op.regions and has_trait(type(op), IsolatedFromAbove):
                known, self._known = self._known, {}
                self.regions(op)
                self._known = known
            elif op.regions:
                self.regions(op)
            self._merge(op)
            if isinstance(op, StoreOp):
                self._stores[op.array] += 1
                continue
            kinds = effect_kinds(op, self._kinds)
            self._writes += kinds is None or MemoryEffectKind.WRITE in kinds

    def _merge(self, op: Operation) -> None:
        if has_trait(type(op), IsTerminator) or any(len(region.blocks) > 1 for region in op.regions):
            return
        kinds = effect_kinds(op, self._kinds)
        if kinds is None or not kinds <= READS:
            return
        if all(result.first_use is None for result in op.results) and is_needless(op, self._kinds):
            self.unneeded.append(op)
            return
        pure = not kinds or never_changes(op)
        key = _key(op, {})
        known = self._known.get(key)
        if known is None or not (pure or (known.op.parent is op.parent and known.writes == self._written(op))):
            self._replaced.append((key, known))
            self._known[key] = _Known(op, self._written(op))
            return
        for result, same in zip(op.results, known.op.results, strict=True):
            result.replace_all_uses_with(same)
        self.unneeded.append(op)


def _key(op: Operation, inside: Mapping[SSAValue, int]) -> Hashable:
    """Equal for operations that compute the same: `inside` numbers the values of regions around, which differ from copy
    to copy."""
    given = (
        op.name,
        tuple(inside.get(operand, operand) for operand in op.operands),
        frozenset(op.properties.items()),
        frozenset(op.attributes.items()),
        tuple(op.result_types),
    )
    return (*given, *(_region_key(region, inside) for region in op.regions)) if op.regions else given


def _region_key(region: Region, around: Mapping[SSAValue, int]) -> Sequence[Hashable]:
    inside = dict(around)
    keys: list[Hashable] = []
    for block in region.blocks:
        for value in (*block.args, *(result for op in block.ops for result in op.results)):
            inside[value] = len(inside)
        keys.append((tuple(block.arg_types), tuple(_key(op, inside) for op in block.ops)))
    return tuple(keys)
