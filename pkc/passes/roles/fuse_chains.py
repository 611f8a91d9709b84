"""The pass `pk-fuse-chains`: what is computed element by element needs no registers for whole tiles in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.attributes import Role, number_on
from pkc.dialect.program import REGISTERS, KernelOp, RoleOp
from pkc.dialect.roles import LATER, ConsumeOp, ReleaseDeferredOp, ReleaseOp
from pkc.dialect.tile import CHAIN, AnyMmaOp, MmaWaitOp, pieces_of
from pkc.dialect.transfers import stages_of_pieces
from pkc.passes.analysis.chains import behind_views, is_elementwise, is_view, takes
from pkc.passes.analysis.live_tiles import peak
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import tiles
from pkc.passes.roles.mma_pieces import split_mmas
from pkc.targets.target import target_of


class FuseChains(KernelPass):
    """Put operations on elements in front of what takes their result, as chains that are computed piece by piece, in
    consumers whose tiles do not fit into their registers, or, without MMA, take most of them: each thread then has
    many elements on their way from shared memory, which need the others. So it does where an end of a task may wait for
    the next one (`pk-plan-epilogues`): of what a chain computes nothing is in registers then but accumulators.

    An operation joins the first that needs it; what only shows or makes elements is repeated for each chain. If that
    does not suffice, MMAs that begin with zeros, and whose products a chain alone uses, are computed with it in pieces
    (`pkc/passes/roles/mma_pieces.py`); then all but these is repeated: what several need is computed several times.
    Operations move past channels, but not past loops, branches and other MMAs. A stage that a chain reads is released
    behind it.

    Before, with registers for `%x` and for `%s`:

        %b = pk.consume %0 : ...
        %x = pk.add %acc, %b : ...
        pk.release %0 : ...
        %s = pk.sigmoid %x : ...
        %y = pk.mul %x, %s : ...
        pk.acquire %1 : ...
        pk.commit %1, %y : ...

    After:

        %b = pk.consume %0 : ...
        pk.acquire %1 : ...
        %x = pk.add %acc, %b {chain = 0} : ...
        %s = pk.sigmoid %x {chain = 0} : ...
        %y = pk.mul %x, %s {chain = 0} : ...
        pk.commit %1, %y {chain = 0} : ...
        pk.release %0 : ...
    """

    name = "pk-fuse-chains"

    def run(self, kernel: KernelOp) -> None:
        target = target_of(kernel)
        for role in kernel.roles:
            if role.role.data is not Role.Consumer:
                continue
            for repeat in (False, True):
                needed = not repeat and (_take_most(role) or any(LATER in op.attributes for op in role.walk()))
                if not any(tiles(role, target)) and not needed:
                    break
                _fuse(role, repeat)
                if any(tiles(role, target)):
                    split_mmas(role, self.name)


def _take_most(role: RoleOp) -> bool:
    """Whether the tiles of a role without MMA take most of its registers."""
    threads = target_of(role).arch.warp * (role.warps.value.data if role.warps is not None else 0)
    return is_spread(role) and 2 * peak(role).registers > threads * (number_on(role, REGISTERS) or 0)


def _fuse(role: RoleOp, repeat: bool) -> None:
    blocks = [region.block for op in role.walk() for region in op.regions if region.blocks]
    for block in blocks:
        number = 0
        for ops, end in _stretches(block):
            for op in ops:
                op.attributes.pop(CHAIN, None)
            number = _Stretch(block, ops, end, repeat).fuse(number)


def _stretches(block: Block) -> Iterable[tuple[list[Operation], Operation | None]]:
    """The operations of a block between those that chains do not pass, each with the one behind them."""
    found: list[Operation] = []
    for op in list(block.ops):
        kept = isinstance(op, ReleaseOp) and op.kept
        if op.regions or kept or isinstance(op, AnyMmaOp | MmaWaitOp | ReleaseDeferredOp) or op is block.last_op:
            yield found, op
            found = []
        else:
            found.append(op)


@dataclass
class _Stretch:
    """Operations without loops, branches and MMAs among them."""

    block: Block
    ops: list[Operation]
    end: Operation | None
    repeat: bool
    placed: set[Operation] = field(default_factory=set[Operation])

    def fuse(self, number: int) -> int:
        """Make the chains, numbered from `number` on; the number of the next one."""
        inside = set(self.ops)
        candidates = {op for op in self.ops if is_elementwise(op) or is_view(op)}
        for op in [op for op in self.ops if op not in candidates]:
            roots = [value for value in op.operands if value.owner in candidates]
            number += self._chain(op, roots, candidates, number, self.repeat)
        left = [
            value
            for op in self.ops
            if is_elementwise(op)
            for value in op.results
            if any(use.operation not in inside for use in value.uses)
        ]
        if self.end is not None:
            number += self._chain(self.end, left, candidates, number, False)
        for op in reversed(self.ops):
            if op in candidates and not any(value.uses for value in op.results):
                op.detach()
                op.erase()
        return number

    def _chain(
        self, sink: Operation, roots: Sequence[SSAValue], candidates: set[Operation], number: int, repeat: bool
    ) -> int:
        """Put what `sink` needs right in front of it, as a chain; whether there is one."""
        needed = self._needed(roots, candidates, repeat)
        if not any(map(is_elementwise, needed)):
            return 0
        copies: dict[SSAValue, SSAValue] = {}
        for op in needed:
            if is_view(op) or (repeat and not _reads_pieces(op)):
                made = op.clone(value_mapper=dict(copies))
                for old, new in zip(op.results, made.results, strict=True):
                    copies[old] = new
                    new.name_hint = old.name_hint
            else:
                self.placed.add(op)
                op.detach()
                made = op
                made.operands = [copies.get(value, value) for value in made.operands]
            made.location = op.location
            made.attributes[CHAIN] = IntegerAttr(number, i64)
            self.block.insert_op_before(made, sink)
        sink.operands = [copies.get(value, value) for value in sink.operands]
        if takes(sink):
            sink.attributes[CHAIN] = IntegerAttr(number, i64)
        self._release_behind(sink, [value for op in needed for value in op.operands])
        return 1

    def _needed(self, roots: Sequence[SSAValue], candidates: set[Operation], repeat: bool) -> list[Operation]:
        """The candidates that values are computed from, in their order; those of earlier chains have registers."""
        found, todo = set[Operation](), list(roots)
        while todo:
            op = todo.pop().owner
            if isinstance(op, Operation) and op in candidates and op not in found and op not in self.placed:
                found.add(op)
                todo += op.operands
        return [op for op in self.ops if op in found]

    def _release_behind(self, sink: Operation, read: Iterable[SSAValue]) -> None:
        """Keep the stages that a chain reads until it is computed."""
        for consume in dict.fromkeys(stage for value in read for stage in _stages(behind_views(value).owner)):
            if consume.parent is not self.block:
                continue
            release = next(
                (
                    op
                    for op in self.ops
                    if isinstance(op, ReleaseOp) and op.channel is consume.channel and consume.is_before_in_block(op)
                ),
                None,
            )
            if release is None or not release.is_before_in_block(sink):
                continue
            release.detach()
            if takes(sink):
                self.block.insert_op_after(release, sink)
            else:  # what is used behind the chain has registers by then
                self.block.insert_op_before(release, sink)


def _reads_pieces(op: Operation) -> bool:
    """Whether an MMA in pieces is among what an operation reads: only one chain can be computed with them."""
    return any(isinstance(value.owner, Operation) and pieces_of(value.owner) for value in op.operands)


def _stages(op: Operation | Block) -> list[ConsumeOp]:
    """The stages that are read where the results of an operation are used."""
    if isinstance(op, Block):
        return []
    return [op] if isinstance(op, ConsumeOp) else stages_of_pieces(op)
