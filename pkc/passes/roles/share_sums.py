"""The pass `pk-share-sums`: consumers add up the tiles that are complete last."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.coordinates import CtasOp
from pkc.dialect.program import AFTER_ALL, KernelOp, RoleOp, TasksOp
from pkc.passes.build import append_copy, before, constant, phase_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.stage_sums import CHUNKS
from pkc.remarks import missed


class ShareSums(KernelPass):
    """Let consumers add up the last rows of each sum over ranks, about a tile for each CTA, behind their tasks.

    The communicator adds up tiles while others are computed, with the few registers and threads that are left beside
    the consumers, or on a few SMs. The last tiles are complete when nothing is left to compute: then many threads wait
    for memory at once, and the kernel ends sooner.

    Before:

        pk.role communicator attributes {after_all} { pk.tasks (%i, %j) in (%rows, %columns) { ... } }
        pk.role consumer { pk.tasks ... { ... pk.mma ... } }

    After:

        pk.role communicator attributes {after_all} { pk.tasks (%i, %j) in (%early, %columns) { ... } }
        pk.role consumer {
          pk.tasks ... { ... pk.mma ... }
          pk.tasks (%i, %j) in (%late, %columns) { ... the same, for row %i + %early ... }
        }
    """

    name = "pk-share-sums"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        roles = kernel.roles
        consumers = [role for role in roles if role.role.data is Role.Consumer]
        adding = [role for role in roles if role.role.data is Role.Communicator and AFTER_ALL in role.attributes]
        for role in adding if consumers else ():
            obstacle = _obstacle(kernel, role)
            if obstacle:
                missed(ShareSums.name, role, f"communicators alone add up this sum: {obstacle}")
            else:
                _divide(role, consumers[-1])


def _obstacle(kernel: KernelOp, role: RoleOp) -> str:
    """Why consumers cannot take some of the tasks of a role that adds up a sum; empty if they can."""
    *prelude, tasks = role.body.block.ops
    if not isinstance(tasks, TasksOp) or not all(op.has_trait(Pure) for op in prelude):
        return "it does more than that"
    if any((phase_of(op) or 0) > (phase_of(tasks) or 0) for op in kernel.walk()):
        # Consumers would come to it behind their tasks of that phase.
        return "a later phase may wait for it"
    return ""


def _divide(role: RoleOp, consumer: RoleOp) -> None:
    """Let a consumer add up the last rows behind its tasks, and the communicator those before."""
    *prelude, tasks = role.body.block.ops
    assert isinstance(tasks, TasksOp)
    known: dict[SSAValue, SSAValue] = {}
    for op in prelude:
        append_copy(consumer.body.block, op, known)
    last = append_copy(consumer.body.block, tasks, known)
    early, late = _split_rows(last)
    last.operands = [late, *last.counts[1:]]
    _shift(last, early)
    first, _ = _split_rows(tasks)
    tasks.operands = [first, *tasks.counts[1:]]


def _split_rows(tasks: TasksOp) -> tuple[SSAValue, SSAValue]:
    """How many rows of the tasks communicators take, and how many consumers: as many tiles as there are CTAs."""
    attr = tasks.attributes.get(CHUNKS)
    chunks = constant(attr.value.data if isinstance(attr, IntegerAttr) else 1)
    ctas, one = CtasOp(RoleAttr(Role.Consumer)), constant(1)
    ops: list[Operation] = [ctas, one, chunks]
    columns, *more = *tasks.counts[1:], *(() if tasks.counts[1:] else (one.result,))
    for count in more:
        ops.append(arith.MuliOp(columns, count))
        columns = ops[-1].results[0]
    some = arith.MaxSIOp(columns, one.result)
    each = arith.DivSIOp(ctas.result, some.result)
    least = arith.MaxSIOp(each.result, one.result)
    wanted = arith.MuliOp(least.result, chunks.result)
    late = arith.MinSIOp(wanted.result, tasks.counts[0])
    early = arith.SubiOp(tasks.counts[0], late.result)
    before(tasks, [*ops, some, each, least, wanted, late, early])
    return early.result, late.result


def _shift(tasks: TasksOp, rows: SSAValue) -> None:
    """Let the first index begin at `rows`."""
    index = tasks.body.block.args[0]
    first = tasks.body.block.first_op
    assert first is not None
    shifted = arith.AddiOp(index, rows)
    before(first, [shifted])
    index.replace_uses_with_if(shifted.result, lambda use: use.operation is not shifted)
