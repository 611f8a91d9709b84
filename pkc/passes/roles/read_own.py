"""The pass `pk-read-own`: a rank's own part of a fetched operand is read where it lies, not copied first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockNumberOp, BlockOp, OwnerOp, RankOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import RaiseOp, SignalOp, WaitOp
from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.dialect.types import Layout, PrivateType
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.cells import constant
from pkc.passes.derive import DERIVED, before
from pkc.passes.roles.remote_accesses import is_pgl, shard_of


@dataclass(frozen=True)
class ReadOwn(ModulePass):
    """Fetch only what others have: who reads the landing buffer reads its own part from the array itself.

    So the first tasks, which are those of the own part, need not wait for copies. The reader awaits no signal for
    blocks of its own part, and the communicator, or copy engine, neither copies nor announces them.

    Before:

        %a = pk.load %A[%m, %k : ...] : ...                       // communicator
        pk.store %a, %A_landing[%m, %k : ...] : ...
        pk.signal %A_ready at %rank[%row] by %one : ...
        ...
        pk.wait %A_ready[%row] for %n : ...                       // reader
        %a = pk.load %A_landing[%m, %k : ...] : ...

    After:

        %owner = pk.owner %m : ...
        %foreign = arith.cmpi ne, %owner, %rank : index
        scf.if %foreign { ... the same ... }
        ...
        %needed = arith.select %own, %zero, %n : index
        pk.wait %A_ready[%row] for %needed : ...
        %a = pk.load %A_landing own %A [%m, %k : ...] : ...
    """

    name = "pk-read-own"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and DERIVED in kernel.attributes:
                for part in [part for part in kernel.body.block.ops if isinstance(part, RoleOp)]:
                    if part.role.data in (Role.Communicator, Role.CopyEngine):
                        _read_own(part)


@dataclass(frozen=True)
class _Copy:
    """What a part copies: the array, its landing buffer, and the block along the dimension that is split.

    `ops` are those that copy and announce a cell, in one block behind the block itself.
    """

    array: SSAValue
    landing: SSAValue
    shard: int
    block: BlockOp
    ops: list[Operation]
    ready: SSAValue


def _read_own(part: RoleOp) -> None:
    copies = list(_copies(part))
    if len(copies) != 1:
        return
    copy = copies[0]
    waits = [use.operation for use in copy.ready.uses if isinstance(use.operation, WaitOp)]
    readers = [use.operation for use in copy.landing.uses if isinstance(use.operation, LoadOp)]
    blocks = [_awaited_block(wait, copy) for wait in waits]
    if not waits or None in blocks or any(op.own is not None for op in readers):
        return
    for wait, block in zip(waits, blocks, strict=True):
        assert block is not None
        _await_foreign(wait, block)
    for reader in readers:
        load = LoadOp(reader.array, list(reader.indices), own=copy.array)
        before(reader, [load])
        load.attributes |= reader.attributes
        load.result.name_hint = reader.result.name_hint
        reader.result.replace_all_uses_with(load.result)
        reader.detach()
        reader.erase()
    _only_foreign(copy)


def _copies(part: RoleOp) -> Iterator[_Copy]:
    for last in part.walk():
        found = _boxes(last) if isinstance(last, CopyOp) else _tiles(last) if isinstance(last, StoreOp) else None
        if found is None:
            continue
        first, array, landing, index = found
        block, sent = index.owner, _announcement(last)
        if not isinstance(block, BlockOp) or sent is None:
            continue
        around = block.parent
        if around is None or sent.parent is not around or not isinstance(sent.rank.owner, RankOp):
            continue
        start = around.find_ancestor_op_in_block(first)
        if start is None or around.find_ancestor_op_in_block(last) is None:
            continue
        ops = [op for op in around.ops if _between(around, start, op, sent)]
        yield _Copy(array, landing, shard_of(array), block, ops, sent.signal)


_Found: TypeAlias = tuple[Operation, SSAValue, SSAValue, SSAValue]
"""Where a copy begins, its array and landing buffer, the index along the dimension that is split."""


def _tiles(store: StoreOp) -> _Found | None:
    """What a communicator copies tile by tile."""
    load = store.tile.owner
    if not isinstance(load, LoadOp) or not is_pgl(load.array, Layout.Shard):
        return None
    if not isinstance(store.array.type, PrivateType) or tuple(load.indices) != tuple(store.indices):
        return None
    return load, load.array, store.array, load.indices[shard_of(load.array)]


def _boxes(copy: CopyOp) -> _Found | None:
    """What a copy engine copies."""
    if not is_pgl(copy.source, Layout.Shard) or not isinstance(copy.target.type, PrivateType):
        return None
    if copy.source_box != copy.target_box:
        return None
    return copy, copy.source, copy.target, copy.source_box[shard_of(copy.source)]


def _between(block: Block, first: Operation, op: Operation, last: Operation) -> bool:
    place = block.get_operation_index(op)
    return block.get_operation_index(first) <= place <= block.get_operation_index(last)


def _announcement(copied: Operation) -> SignalOp | RaiseOp | None:
    """What says that the cell of a copy is complete: the only signal inside the tasks around it."""
    tasks = next((op for op in ancestors(copied) if isinstance(op, TasksOp)), None)
    found = [op for op in tasks.walk() if isinstance(op, SignalOp | RaiseOp)] if tasks is not None else []
    return found[0] if len(found) == 1 else None


def _awaited_block(wait: WaitOp, copy: _Copy) -> BlockOp | None:
    """The block of the split dimension that a wait is for."""
    kind = copy.block.result.type
    for index in wait.indices:
        number = index.owner
        block = number.block.owner if isinstance(number, BlockNumberOp) else None
        # A block that spans parts has rows of others too.
        if isinstance(block, BlockOp) and block.result.type == kind and block.sharded == copy.block.sharded:
            return block
    return None


def _await_foreign(wait: WaitOp, block: BlockOp) -> None:
    owner, rank, zero = OwnerOp(block.result), RankOp(), constant(0)
    own = arith.CmpiOp(owner.result, rank.result, "eq")
    needed = arith.SelectOp(own.result, zero.result, wait.count)
    before(wait, [owner, rank, zero, own, needed])
    wait.operands = [needed.result if operand is wait.count else operand for operand in wait.operands]


def _only_foreign(copy: _Copy) -> None:
    """Let the part copy and announce blocks of other ranks only."""
    owner, rank = OwnerOp(copy.block.result), RankOp()
    foreign = arith.CmpiOp(owner.result, rank.result, "ne")
    first = copy.ops[0]
    before(first, [owner, rank, foreign])
    body = Block()
    branch = scf.IfOp(foreign.result, [], Region(body), Region())
    before(first, [branch])
    for op in copy.ops:
        op.detach()
        body.add_op(op)
    end = scf.YieldOp()
    end.location = first.location
    body.add_op(end)
