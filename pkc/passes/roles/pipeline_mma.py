"""The pass `pk-pipeline-mma`: MMAs of one iteration run while another one computes what the next MMA needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.program import GROUP, KernelOp
from pkc.dialect.tile import MmaIssueOp, MmaOp, MmaWaitOp
from pkc.location import describe, span_of
from pkc.passes.analysis.dependence import role_around
from pkc.passes.build import append, append_copy
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.budgets import tiles
from pkc.passes.roles.loop_halves import Half, Halves, NotCutError, halves_of, is_free, used_by
from pkc.remarks import missed
from pkc.targets.target import Operands, target_of


class PipelineMma(KernelPass):
    """Issue the MMAs of the next iteration before those of this one that need what was computed from the last.

    Where an MMA of a loop needs what is computed from the result of another MMA of the same iteration (the softmax of
    attention, an activation between two layers), the tensor cores would wait for that computation. So an iteration is
    cut in two: *early* is what the last MMAs need, *late* are these MMAs and what depends on them. The early half runs
    one iteration ahead, and its vector instructions run while the late MMAs of the iteration before are in flight. MMAs
    become `pk.mma_issue` and `pk.mma_wait`; the first early half stands before the loop, the last late half behind it,
    both in a branch for loops that run at all.

    An early half may not depend on what late halves carry from one iteration to the next, the loop may do nothing else
    than compute and go through channels, a channel of the late half needs two stages, and the tiles of both halves have
    to fit into registers.

    Before:

        %o = scf.for %i = %lb to %ub step %one iter_args(%acc = %zero) -> (...) {
          %k = pk.consume %0 : ...
          %s = pk.mma %q, %k, %nil : ...
          pk.release %0 : ...
          %p = pk.exp2 %s : ...
          %v = pk.consume %1 : ...
          %acc_1 = pk.mma %p, %v, %acc : ...
          pk.release %1 : ...
          scf.yield %acc_1 : ...
        }

    After:

        %any = arith.cmpi slt, %lb, %ub : index
        %o = scf.if %any -> (...) {
          ... pk.mma_issue, pk.mma_wait and pk.exp2 of the first iteration
          %acc_1, %p_1 = scf.for %i = %second to %ub step %one iter_args(%acc = %zero, %p = %p_0) -> (...) {
            %k = pk.consume %0 : ...
            %1 = pk.mma_issue %q, %k, %nil : ...
            %v = pk.consume %1 : ...
            %2 = pk.mma_issue %p, %v, %acc : ...
            %s = pk.mma_wait %1 left 1 : ...
            pk.release %0 : ...
            %p_2 = pk.exp2 %s : ...
            %acc_2 = pk.mma_wait %2 left 0 : ...
            pk.release %1 : ...
            scf.yield %acc_2, %p_2 : ...
          }
          ... pk.mma_issue and pk.mma_wait of the last late half
          scf.yield %acc_3 : ...
        } else {
          scf.yield %zero : ...
        }
    """

    name = "pk-pipeline-mma"

    def run(self, kernel: KernelOp) -> None:
        for loop in list(kernel.walk(region_first=True)):  # inner loops first: outer ones are copied
            if isinstance(loop, scf.ForOp) and _has_mmas(loop):
                try:
                    halves = halves_of(loop)
                    if halves is not None:
                        _rewrite(loop, halves)
                except NotCutError as error:
                    missed(PipelineMma.name, error.op, f"the MMAs of the loop are not pipelined: {error}")


@dataclass(frozen=True)
class PipelinePlan:
    """A loop whose MMAs are pipelined: the lines of those that run an iteration ahead, and of the others."""

    place: str
    early: tuple[int, ...]
    late: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.place}: loop: MMA{_lines(self.early)} an iteration ahead of MMA{_lines(self.late)}"


def _lines(lines: tuple[int, ...]) -> str:
    return f"{'s' if len(lines) > 1 else ''} of line {' and '.join(map(str, lines))}"


def explain_pipelines(module: ModuleOp) -> list[PipelinePlan]:
    """The loops whose MMAs are pipelined: early ones are issued in front of the loop too, late ones behind it."""
    plans: list[PipelinePlan] = []
    for loop in module.walk():
        if isinstance(loop, scf.ForOp) and loop.parent is not None and _issues(loop.body.block):
            around = _issues(loop.parent)
            early = tuple(span_of(op.location).line for op in around if op.is_before_in_block(loop))
            late = tuple(span_of(op.location).line for op in around if not op.is_before_in_block(loop))
            plans.append(PipelinePlan(describe(loop.location), early, late))
    return plans


def _issues(block: Block) -> list[MmaIssueOp]:
    return [op for op in block.ops if isinstance(op, MmaIssueOp)]


def _has_mmas(loop: scf.ForOp) -> bool:
    """Whether a loop has MMAs that can be in flight while ordinary instructions run."""
    mmas = [op for op in loop.body.ops if isinstance(op, MmaOp)]
    return len(mmas) > 1 and target_of(loop).mma.operands is not Operands.REGISTERS


def _rewrite(loop: scf.ForOp, halves: Halves) -> None:
    """Put the pipelined loop in the place of a loop. Raises `NotCutError` if its tiles do not fit into the registers of
    its role; then the loop stays."""
    assert loop.parent is not None
    any_left = arith.CmpiOp(loop.lb, loop.ub, "slt")
    used = [result for result in loop.results if list(result.uses)]
    branch = scf.IfOp(any_left, [result.type for result in used], [Block()], [Block()])
    for op in (any_left, branch):
        op.location = loop.location
        loop.parent.insert_op_before(op, loop)
    found = _pipelined(loop, halves, branch.true_region.block)
    for block, values in ((branch.true_region.block, found), (branch.false_region.block, loop.iter_args)):
        append(block, scf.YieldOp(*(values[result.index] for result in used)), loop.location)
    _replace(loop, used, branch.results)
    role = role_around(branch)
    assert role is not None
    missing = next(tiles(role, target_of(role)), None) if GROUP in role.attributes else None
    if missing is not None:
        assert branch.parent is not None
        branch.parent.insert_op_before(loop, branch)
        _replace(branch, branch.results, used)
        branch.erase()
        any_left.detach()
        any_left.erase()
        room = missing.available - missing.reserve
        raise NotCutError(loop, f"tiles would take {missing.each} registers of a thread, which has {room} for them")
    for new, result in zip(branch.results, used, strict=True):
        new.name_hint = result.name_hint
    loop.erase()


def _replace(op: Operation, results: Sequence[SSAValue], others: Sequence[SSAValue]) -> None:
    """Detach an operation, and let other values have the uses of its results."""
    for result, other in zip(results, others, strict=True):
        result.replace_all_uses_with(other)
    op.detach()


def _pipelined(loop: scf.ForOp, halves: Halves, block: Block) -> list[SSAValue]:
    """The first early half; late halves, each with the early half of the next iteration; the last late half. Gives the
    results of the loop."""
    body, location = loop.body.block, loop.location
    index, *carried = body.args
    passed = [*halves.crossing, *([index] if halves.numbered else [])]
    makes = body.last_op
    assert makes is not None

    first = _Writer(block, body, {index: loop.lb, **dict(zip(carried, loop.iter_args, strict=True))})
    first.lead(halves.early)
    first.follow(halves.early, 0)
    first.put(halves.packing)
    begin = append(block, arith.AddiOp(loop.lb, loop.step), location)
    starts = [
        loop.iter_args[number] if number in halves.carried else first.of(value)
        for number, value in enumerate(makes.operands)
    ]
    starts += [first.of(value) for value in passed]

    inside = Block(arg_types=[index.type, *(value.type for value in starts)])
    for new, old in zip(inside.args, [*body.args, *passed], strict=True):
        new.name_hint = old.name_hint
    here = dict(zip(body.args, inside.args, strict=False))
    given = dict(zip(passed, inside.args[len(body.args) :], strict=True))
    early = _Writer(inside, body, {arg: here[arg] for arg in body.args if arg.index - 1 not in halves.carried})
    late = _Writer(inside, body, {**{carried[number]: here[carried[number]] for number in halves.carried}, **given})
    early.lead(halves.early)
    late.lead(halves.late)
    early.follow(halves.early, len(halves.late.mmas))
    late.follow(halves.late, 0, [early.of(value) for value in halves.early.made])
    early.put(halves.packing)
    ends = [(late if number in halves.carried else early).of(value) for number, value in enumerate(makes.operands)]
    append(inside, scf.YieldOp(*ends, *(early.of(value) for value in passed)), makes.location)
    steady = append(block, scf.ForOp(begin.result, loop.ub, loop.step, starts, inside), location)

    found = dict(zip([*carried, *passed], steady.results, strict=True))
    final = _Writer(block, body, {value: found[value] for value in (*passed, *(carried[n] for n in halves.carried))})
    final.lead(halves.late)
    final.follow(halves.late, 0)
    return [
        final.of(value) if number in halves.carried else steady.results[number]
        for number, value in enumerate(makes.operands)
    ]


class _Writer:
    """Writes copies of operations of a loop's body for one iteration; `known` has what values are there."""

    def __init__(self, block: Block, body: Block, known: dict[SSAValue, SSAValue]) -> None:
        self._block, self._body, self._known = block, body, known

    def of(self, value: SSAValue) -> SSAValue:
        """A value of the body in this iteration; free operations are copied where it is needed."""
        owner = value.owner
        if value not in self._known and isinstance(owner, Operation) and owner.parent is self._body and is_free(owner):
            self.put([owner])
        return self._known.get(value, value)

    def put(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            for value in used_by(op):
                self.of(value)
            append_copy(self._block, op, self._known)

    def lead(self, half: Half) -> None:
        """What leads to the MMAs of a half, and these."""
        self.put(half.before)
        for mma in half.mmas:
            operands = [self.of(value) for value in mma.operands]
            self._known[mma.result] = append(self._block, MmaIssueOp(*operands), mma.location).result

    def follow(self, half: Half, later: int, behind: Sequence[SSAValue] = ()) -> None:
        """Wait for the MMAs of a half, with `later` ones issued behind them, when `behind` is computed; what depends on
        them."""
        for number, mma in enumerate(half.mmas, start=1):
            left = min(later + len(half.mmas) - number, target_of(mma).mma.in_flight)
            wait = append(self._block, MmaWaitOp(self._known[mma.result], left, behind), mma.location)
            wait.result.name_hint = mma.result.name_hint
            self._known[mma.result] = wait.result
        self.put(half.freed)
        self.put(half.after)
        self.put(half.freed_last)
