"""The pass `pk-load-once`: what all tasks of a CTA load alike is loaded once and stays."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LoadOp
from pkc.dialect.program import PER_CTA, KernelOp, RoleOp, TasksOp
from pkc.dialect.roles import AcquireOp, ChannelOp, CommitOp, ConsumeOp, ReleaseOp
from pkc.dialect.types import PrivateType
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class LoadOnce(KernelPass):
    """Move the load of a tile that is the same for all tasks in front of them, with its channel: the weights of a norm.

    The tile has its stage until the CTA has no more tasks, and one stage is enough. Each task reads it there: what
    comes from the L2 cache is so much less. Only of private arrays that the kernel does not write, of tiles that each
    task passes once and that meet no MMA, where roles have one set of tasks; a remark says where these stand otherwise.

    Before:

        pk.role loader {
          pk.tasks (%m) in (%count) {
            %d = pk.block[%zero] : !pk.block<4096 by 4096>
            pk.acquire %0
            %w = pk.load %W[%d : ...] : ...
            pk.commit %0, %w
          }
        }
        pk.role consumer { pk.tasks (%m) in (%count) { %t = pk.consume %0 ... pk.release %0 } }

    After:

        pk.role loader {
          %d = pk.block[%zero] : !pk.block<4096 by 4096>
          pk.acquire %0
          %w = pk.load %W[%d : ...] : ...
          pk.commit %0, %w
          pk.tasks (%m) in (%count) { }
        }
        pk.role consumer { %t = pk.consume %0  pk.tasks (%m) in (%count) { ... } pk.release %0 }
    """

    name = "pk-load-once"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        for channel in [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]:
            users = {type(use.operation): use.operation for use in channel.result.uses}
            if len(list(channel.result.uses)) != len(users) or users.keys() != _ENDS:
                continue
            loads = _loads(users[CommitOp])
            if not loads:
                continue
            reason = next(filter(None, (_obstacle(op.parent_op()) for op in users.values())), "")
            if reason:
                missed(self.name, loads[0], f"each task loads anew what is the same for all: {reason}")
            else:
                _move(users, loads)


_ENDS = {AcquireOp, CommitOp, ConsumeOp, ReleaseOp}


def _obstacle(tasks: Operation | None) -> str:
    """Why operations are not tasks that a role has alone, without MMAs; empty if they are."""
    if not isinstance(tasks, TasksOp) or PER_CTA not in tasks.attributes:
        return "it stands in a loop or branch"
    if not is_spread(tasks):
        return "its tasks have MMAs"
    role = tasks.parent_op()
    alone = isinstance(role, RoleOp) and sum(isinstance(op, TasksOp) for op in role.walk()) == 1
    return "" if alone else "its role has other tasks, too"


def _loads(commit: Operation) -> list[LoadOp]:
    """The loads of what is committed, if every task has the same; else none."""
    assert isinstance(commit, CommitOp)
    found = [tile.owner for tile in commit.tiles]
    loads = [op for op in found if isinstance(op, LoadOp) and op.parent is commit.parent and _is_the_same(op)]
    return loads if len(loads) == len(found) else []


def _is_the_same(load: LoadOp) -> bool:
    """Whether a load has the same tile in all tasks, which nothing writes."""
    array = load.array
    if not isinstance(array.type, PrivateType) or not all(isinstance(use.operation, LoadOp) for use in array.uses):
        return False
    needed = [op for op in _inside(load, load.parent) if op is not load]
    of_task = (value.owner is load.parent for op in (*needed, load) for value in op.operands)
    return len(list(load.result.uses)) == 1 and all(map(is_side_effect_free, needed)) and not any(of_task)


def _inside(op: Operation, block: Block | None) -> Iterator[Operation]:
    """An operation behind those of the same block that it needs, each perhaps several times."""
    for value in op.operands:
        if isinstance(value.owner, Operation) and value.owner.parent is block:
            yield from _inside(value.owner, block)
    yield op


def _move(users: dict[type[Operation], Operation], loads: list[LoadOp]) -> None:
    commit, consume, release = users[CommitOp], users[ConsumeOp], users[ReleaseOp]
    fetching, using = commit.parent_op(), consume.parent_op()
    assert fetching is not None and using is not None
    assert fetching.parent is not None and using.parent is not None
    needed = dict.fromkeys(op for load in loads for op in _inside(load, commit.parent))
    new: dict[SSAValue, SSAValue] = {}
    made: list[Operation] = []
    for op in needed:
        if op not in loads:
            made.append(op.clone(new))
            made[-1].location = op.location
    for op in (users[AcquireOp], *loads, commit, consume, release):
        op.detach()
    for load in loads:
        load.operands = [new.get(value, value) for value in load.operands]
    fetching.parent.insert_ops_before([*made, users[AcquireOp], *loads, commit], fetching)
    using.parent.insert_op_before(consume, using)
    using.parent.insert_op_after(release, using)
