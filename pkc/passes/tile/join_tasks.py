"""The pass `pk-join-tasks`: tasks in tasks become tasks with the indices of both."""

from __future__ import annotations

from xdsl.ir import Block, Operation
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import ReadOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import AnyMmaOp
from pkc.dialect.types import TileType
from pkc.passes.analysis.dependence import sources
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

_BANDS = 2
"""Indices of tasks that are numbered by bands, so that neighbours load what the L2 cache has (`pk-order-tasks`)."""


class JoinTasks(KernelPass):
    """Number tasks in tasks by the indices of both, where the inner ones are as many for each of the outer ones.

    CTAs share out tasks in tasks for each of the outer ones anew: every CTA goes through all of these, which takes a
    quarter of a microsecond each, and only as many CTAs have work at a time as there are inner tasks. Where their
    number follows from the outer ones, as from counts in memory, it has to be so. Where outer tasks load tiles, these
    are loaded once for all inner tasks of a CTA; and two indices of matmuls stay numbered by bands.

    Before:

        pk.tasks (%b, %h) in (%B, %H) {
          %n = pk.block_count <W by 64>
          pk.tasks (%i) in (%n) { %w = pk.block[%i] : !pk.block<W by 64> ... }
        }

    After:

        %n = pk.block_count <W by 64>
        pk.tasks (%b, %h, %i) in (%B, %H, %n) { %w = pk.block[%i] : !pk.block<W by 64> ... }
    """

    name = "pk-join-tasks"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles:
            return
        for op in list(kernel.walk(region_first=True)):  # inner ones first
            if not isinstance(op, TasksOp) or op.parent is None:
                continue
            inner = next((one for one in op.body.block.ops if isinstance(one, TasksOp)), None)
            if inner is None:
                continue
            if _depends(op, inner):
                continue
            if reason := _why_not(op, inner):
                missed(self.name, inner, f"each CTA goes through all tasks around these: {reason}")
            else:
                _join(op, inner)


def _depends(outer: TasksOp, inner: TasksOp) -> bool:
    """Whether how many inner tasks there are follows from the outer ones, or memory says so there."""
    needed = sources(inner.counts)
    read = (value.owner for value in needed if isinstance(value.owner, ReadOp))
    return not needed.isdisjoint(outer.body.block.args) or any(op.parent is outer.body.block for op in read)


def _why_not(outer: TasksOp, inner: TasksOp) -> str:
    """Why tasks stay inside of others; empty if they need not."""
    if not all(_is_repeated(op) for op in outer.body.block.ops if op is not inner):
        return "they do more than compute integers"
    if len(inner.counts) == _BANDS and any(isinstance(op, AnyMmaOp) for op in inner.walk()):
        return "those of a matmul are numbered by bands"
    return ""


def _is_repeated(op: Operation) -> bool:
    """Whether each task may do again what an operation does: it gives integers, or reads one element."""
    tiles = any(isinstance(result.type, TileType) and result.type.rank for result in op.results)
    return not tiles and not op.regions and (isinstance(op, ReadOp) or is_side_effect_free(op))


def _join(outer: TasksOp, inner: TasksOp) -> None:
    around, body = outer.parent, outer.body.block
    assert around is not None
    needed = {value.owner for value in sources(inner.counts)}
    for op in [op for op in body.ops if op in needed]:
        op.detach()
        around.insert_op_before(op, outer)
    count = len(body.args)
    for argument in inner.body.block.args:
        made = body.insert_arg(argument.type, len(body.args))
        made.name_hint = argument.name_hint
    _replace(inner.body.block, body, count)
    for op in list(inner.body.block.ops):
        op.detach()
        body.insert_op_before(op, inner)
    outer.operands = [*outer.counts, *inner.counts]
    outer.attributes |= inner.attributes
    inner.detach()
    inner.erase()


def _replace(inner: Block, outer: Block, first: int) -> None:
    for number, argument in enumerate(inner.args):
        argument.replace_all_uses_with(outer.args[first + number])
