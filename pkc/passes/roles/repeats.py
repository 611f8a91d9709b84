"""How often something that stands in a role, outside of its tasks, has run in this launch."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from pkc.dialect.program import RoleOp
from pkc.passes.analysis.dependence import ancestors, sources
from pkc.passes.build import constant, is_constant


class UnknownRepeatsError(Exception):
    """How often an operation has run depends on more than the loops around it."""


def around_in_role(op: Operation) -> list[Operation]:
    """The loops, branches and tasks of its role around an operation, the outermost first."""
    around: list[Operation] = []
    for parent in ancestors(op):
        if isinstance(parent, RoleOp):
            break
        around.insert(0, parent)
    return around


def runs_so_far(op: Operation, *, in_branches: bool = True) -> tuple[list[Operation], SSAValue]:
    """Operations for the place of `op`, and their result: how often it has run, this time included; or, without
    `in_branches`, how often what stands around it and the branches there has.

    Raises `UnknownRepeatsError` where a branch in a loop, or a loop whose length another one decides, is around it.
    """
    around = [parent for parent in around_in_role(op) if in_branches or not isinstance(parent, scf.IfOp)]
    loops = [parent for parent in around if isinstance(parent, scf.ForOp)]
    others = [parent for parent in around if not isinstance(parent, scf.ForOp)]
    if (loops and others) or not all(isinstance(parent, scf.IfOp) for parent in others):
        raise UnknownRepeatsError("a branch, or tasks, in a loop around it decide how often it runs")
    variables = {loop.body.block.args[0] for loop in loops}
    if any(not is_constant(loop.step, 1) or variables & sources([loop.lb, loop.ub]) for loop in loops):
        raise UnknownRepeatsError("the loops around it do not all have one length")
    one = constant(1)
    made: list[Operation] = [one]
    total: SSAValue | None = None
    for loop in loops:
        length, done = arith.SubiOp(loop.ub, loop.lb), arith.SubiOp(loop.body.block.args[0], loop.lb)
        made.append(done)
        if total is not None:
            scaled = arith.MuliOp(total, length.result)
            added = arith.AddiOp(scaled.result, done.result)
            made += [length, scaled, added]
            done = added
        total = done.result
    if total is None:
        return made, one.result
    made.append(arith.AddiOp(total, one.result))
    return made, made[-1].results[0]
