"""Breaks the protocols that pkc derives, one place at a time, and counts how many of the breaks are noticed.

    python -m tools.mutants            # every example and overlap; prints the table of docs/mutants.md
    python -m tools.mutants gemm_rs    # some examples

A mutant is the roles level of an example with one operation changed, or what belongs together. It is caught if the
verifier refuses it, the static layer finds something, or a simulation of `pkc.checker` deadlocks, reports a finding, or
gives other bits than the tile level: every order of a small instance, then seeded orders of a larger one.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation
from xdsl.traits import is_side_effect_free

from pkc.arch import SM_90A
from pkc.checker import Meaning, Replay, Trial, Trials, meaning_of
from pkc.compiler import Compiled, load
from pkc.counterexample import CTAS
from pkc.diagnostics import PkcError
from pkc.dialect import access, program, roles
from pkc.dialect.attributes import Role
from pkc.dialect.fences import Drain, DrainAttr, DrainOp, FenceOp
from pkc.dialect.program import KernelOp
from pkc.location import describe
from pkc.passes.budgets import shared_memory
from pkc.passes.cells import constant
from pkc.passes.check_roles import check_roles
from pkc.passes.dependence import sources
from pkc.passes.verify import findings
from pkc.sim.small import small_dims
from pkc.static.check import check_statically

ROOT = Path(__file__).parents[1]
RANKS = 3
SIZES: dict[str, dict[str, int]] = {
    "attention": {"B": 1, "H": 2, "S": 145, "T": 203},
    "ring_attention": {"B": 1, "H": 2, "S": 400},
    "ulysses_attention": {"B": 1, "H": 4, "S": 250},  # one block a part: a second CTA begins with another rank's
    "moe_dispatch_gemm": {"T": 58, "H": 75, "E": 2, "P": 157, "N": 261},
    "moe_combine": {"T": 58, "E": 2, "P": 157, "N": 261},
}
MATRICES = {"M": 400, "N": 269, "K": 75}
OVERLAPS = ("", "none", "intra_sm", "inter_sm", "copy_engine", "push")

TRIALS = tuple(Trial(1 + seed % 2, seed) for seed in range(60))
"""Six times as many orders as `pkc check` tries: a break by one signal of one CTA shows in few of them."""

RUNS = 50
"""As many runs at most explore the orders of the small instance."""

Change = Callable[[Operation], None]


@dataclass(frozen=True)
class Operator:
    """A way to break one operation."""

    name: str
    kinds: tuple[type[Operation], ...]
    change: Change
    breaks: Callable[[Operation], bool] = lambda op: True
    """Whether the change of an operation breaks a kernel at all."""


def _drop(op: Operation) -> None:
    op.detach()
    op.erase()


def _number(op: Operation, place: int, offset: int) -> None:
    """Change an integer operand by a constant."""
    block = op.parent
    assert block is not None
    added = constant(offset)
    total = arith.AddiOp(op.operands[place], added.result)
    for made in (added, total):
        made.location = op.location
        block.insert_op_before(made, op)
    op.operands[place] = total.result


def _wrong_rank(op: Operation) -> None:
    """Signal the rank after the right one."""
    assert isinstance(op, access.SignalOp | access.RaiseOp)
    block = op.parent
    assert block is not None
    one, ranks = constant(1), program.DimOp("ranks")
    following = arith.AddiOp(op.rank, one.result)
    rank = arith.RemSIOp(following.result, ranks.result)
    for made in (one, ranks, following, rank):
        made.location = op.location
        block.insert_op_before(made, op)
    op.operands[list(op.operands).index(op.rank)] = rank.result


def _without_epoch(op: Operation) -> None:
    """Count as in the first launch."""
    op.results[0].replace_all_uses_with(constant_before(op))


def constant_before(op: Operation) -> object:
    block = op.parent
    assert block is not None
    one = constant(1)
    one.location = op.location
    block.insert_op_before(one, op)
    return one.result


def _early(op: Operation) -> None:
    """Release the stage as soon as it is consumed."""
    assert isinstance(op, roles.ReleaseOp)
    consume = next(use.operation for use in op.channel.uses if isinstance(use.operation, roles.ConsumeOp))
    op.detach()
    block = consume.parent
    assert block is not None
    block.insert_op_after(op, consume)


def _twice(op: Operation) -> None:
    copy = op.clone()
    copy.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_after(copy, op)


def _all_tasks(op: Operation) -> None:
    """Every CTA takes every task: no longer one task to one CTA."""
    assert isinstance(op, program.TasksOp)
    op.attributes.pop(program.PER_CTA)


def _among_others(op: Operation) -> bool:
    """Whether several task sets are shared out: a single one that is not is the legal form of an unsplit kernel."""
    kernel = next(around for around in _around(op) if isinstance(around, KernelOp))
    return sum(program.PER_CTA in other.attributes for other in kernel.walk()) > 1


def _around(op: Operation) -> Iterator[Operation]:
    parent = op.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()


def _to_one_rank(op: Operation) -> bool:
    """Whether a signal goes to one rank; if all get it in turn, and no store comes between, the next one does too."""
    assert isinstance(op, access.SignalOp | access.RaiseOp)
    loop = op.parent_op()
    in_turn = isinstance(op.rank.owner, Block | program.RingPeerOp) and isinstance(loop, scf.ForOp)
    return not in_turn or any(isinstance(inner, access.StoreOp) for inner in loop.walk())


def _another_count(op: Operation) -> None:
    """Rotate tasks by one more than there are."""
    assert isinstance(op, program.RotateOp)
    _number(op, _ROTATED_BELOW, 1)


def _every_second(op: Operation) -> None:
    """Pick every second block twice and leave out the others."""
    assert isinstance(op, program.RotateOp | program.InterleaveOp)
    block = op.parent
    assert block is not None
    two = constant(2)
    half = arith.FloorDivSIOp(op.index, two.result)
    doubled = arith.MuliOp(half.result, two.result)
    for made in (two, half, doubled):
        made.location = op.location
        block.insert_op_before(made, op)
    op.operands = [doubled.result, *op.operands[1:]]


def _one_stage_more(op: Operation) -> None:
    assert isinstance(op, roles.ChannelOp)
    op.stages = IntegerAttr(op.depth + 1, i64)


def _fills_shared_memory(op: Operation) -> bool:
    """Whether one stage more of a channel is one too many."""
    kernel = op.parent_op()
    assert isinstance(op, roles.ChannelOp) and isinstance(kernel, KernelOp)
    return shared_memory(kernel) + op.shared_bytes // op.depth > SM_90A.shared_memory


def _all_sms(op: Operation) -> None:
    """Let all SMs communicate, and none compute."""
    op.attributes[program.COMM_SMS] = IntegerAttr(SM_90A.sms, i64)


def _computes(op: Operation) -> bool:
    assert isinstance(op, KernelOp)
    parts = [part for part in op.body.block.ops if isinstance(part, program.RoleOp)]
    return any(part.attributes.get(program.GROUP) == StringAttr("compute") for part in parts)


def _fixed_ranks(op: Operation) -> None:
    """Take the number of ranks that is simulated for that of any run."""
    assert isinstance(op, program.DimOp)
    block = op.parent
    assert block is not None
    ranks = constant(RANKS)
    ranks.location = op.location
    block.insert_op_before(ranks, op)
    op.result.replace_all_uses_with(ranks.result)


def _counts_ranks(op: Operation) -> bool:
    """Whether an operation gives the number of ranks to a wait of signals that are not reset."""
    assert isinstance(op, program.DimOp)
    kernel = next(around for around in _around(op) if isinstance(around, KernelOp))
    waits = [wait for wait in kernel.walk() if isinstance(wait, access.WaitOp) and op.result in sources([wait.count])]
    reset = {other.signal for other in kernel.walk() if isinstance(other, access.ResetOp)}
    return op.dim.data == "ranks" and any(wait.signal not in reset for wait in waits)


def _is_awaited(op: Operation) -> bool:
    """Whether counters are awaited for a number: a barrier goes on from whatever they are."""
    assert isinstance(op, access.ResetOp)
    return any(isinstance(use.operation, access.WaitOp) for use in op.signal.uses)


_ROTATED_BELOW = 2
"""The place of the count among the operands of a rotation; see `pk.rotate`."""


def _behind_what_it_orders(op: Operation) -> None:
    """Move a fence or a drain behind the next operation that it is for."""
    following = _ordered(op)
    block = op.parent
    assert following is not None and block is not None
    op.detach()
    block.insert_op_after(op, following)


def _ordered(op: Operation) -> Operation | None:
    """What a fence or a drain stands in front of; nothing is ordered by it that comes earlier."""
    following = op.next_op
    while following is not None and (is_side_effect_free(following) or isinstance(following, roles.AcquireOp)):
        following = following.next_op
    return None if isinstance(following, FenceOp | DrainOp) else following


def _as_read(op: Operation) -> None:
    """Wait only until the stages have been read."""
    op.properties["kind"] = DrainAttr(Drain.Read)


def _is_full(op: Operation) -> bool:
    return isinstance(op, DrainOp) and op.kind.data is Drain.Full


def _relaxed(op: Operation) -> None:
    op.attributes[access.ORDER] = StringAttr(access.Order.Relaxed_Sys)


def _orders(op: Operation) -> bool:
    """Whether a kernel needs what a signal, a fence or a drain orders.

    A copy engine's signals cannot be relaxed. Nor is it needed that a part's loads have arrived, or are released, when
    it says that it is done, if a part that its tiles go to says the same.
    """
    part = _part(op)
    if isinstance(op, DrainOp) and op.kind.data is Drain.Loads:
        following = _ordered(op)
        return following is not None and _orders(following)
    if isinstance(op, FenceOp | DrainOp):
        return True
    if access.order_of(op) is None or part.role.data is Role.CopyEngine:
        return False
    if not isinstance(op, access.SignalAllOp):
        return True
    others = {_part(use.operation) for use in op.signal.uses if isinstance(use.operation, access.SignalAllOp)}
    return not any(part in _fed_by(other) for other in others - {part})


def _fed_by(part: program.RoleOp) -> set[program.RoleOp]:
    """The parts of this rank that tiles come from, by channels and by counters, to what a part sends.

    As `made_by` of `pk-guard-launches`, but waits count also where they may be for nothing: then nothing was fetched
    for the tile.
    """
    found: set[program.RoleOp] = set()
    todo = [part]
    while todo:
        current = todo.pop()
        makers = {_part(maker) for op in current.walk() for maker in _makers(op, waits=current is not part)} - found
        found |= makers
        todo += makers
    return found


def _makers(op: Operation, *, waits: bool) -> Iterator[Operation]:
    if isinstance(op, roles.ConsumeOp):
        yield from (use.operation for use in op.channel.uses if isinstance(use.operation, roles.CommitOp))
    if isinstance(op, access.WaitOp) and waits:
        sent = (use.operation for use in op.signal.uses if isinstance(use.operation, access.SignalOp | access.RaiseOp))
        yield from (signal for signal in sent if isinstance(signal.rank.owner, program.RankOp))


def _stands_before(op: Operation) -> bool:
    return _orders(op) and _ordered(op) is not None


def _part(op: Operation) -> program.RoleOp:
    return next(around for around in _around(op) if isinstance(around, program.RoleOp))


def _announced_first(op: Operation) -> None:
    """Signal before the store that the signal is about."""
    store = _announced(op)
    block = op.parent
    assert store is not None and block is not None
    op.detach()
    block.insert_op_before(op, store)


def _announced(op: Operation) -> Operation | None:
    """The last store before a signal, if the signal can be moved in front of it."""
    before = op.prev_op
    while before is not None and not isinstance(before, access.StoreOp):
        before = before.prev_op
    found, following = before, before
    while following is not None and following is not op:
        if any(result in op.operands for result in following.results):
            return None
        following = following.next_op
    return found


def _is_behind_a_store(op: Operation) -> bool:
    return _announced(op) is not None


def _launch_before(op: Operation) -> None:
    """Wait for what the launch before has signalled: as if there were one buffer more than there is."""
    assert isinstance(op, access.WaitOp)
    block = op.parent
    assert block is not None
    total = op.count.owner
    assert isinstance(total, arith.MuliOp)
    copy = total.clone()
    copy.location = op.location
    block.insert_op_before(copy, op)
    epoch = next(place for place, operand in enumerate(copy.operands) if isinstance(operand.owner, program.EpochOp))
    _number(copy, epoch, -1)
    op.operands[_COUNT] = copy.results[0]


def _for_several(op: Operation) -> bool:
    """Whether several CTAs wait here, of which all but the first may miss the number before it is taken off.

    A single one does not: nobody signals again before it has passed, as the other ranks wait for it to enter and leave.
    """
    part = _part(op)
    return _counts_epochs(op) and any(program.PER_CTA in inner.attributes for inner in part.walk())


def _counts_epochs(op: Operation) -> bool:
    assert isinstance(op, access.WaitOp)
    return isinstance(op.count.owner, arith.MuliOp) and any(
        isinstance(operand.owner, program.EpochOp) for operand in op.count.owner.operands
    )


def _reset_barrier(op: Operation) -> None:
    """Wait for the signals of one launch, then take them off, as ParallelKittens' barrier does."""
    assert isinstance(op, access.WaitOp) and isinstance(op.count.owner, arith.MuliOp)
    block = op.parent
    assert block is not None
    once = next(operand for operand in op.count.owner.operands if not isinstance(operand.owner, program.EpochOp))
    reset = access.ResetOp(op.signal)
    reset.location = op.location
    block.insert_op_after(reset, op)
    op.operands[_COUNT] = once


def _no_exit(op: Operation) -> None:
    """A kernel in which no part says that it has left, and nobody waits for that."""
    assert isinstance(op, KernelOp)
    left = op.arguments[_LEFT]
    for use in list(left.uses):
        _drop(use.operation)


def _has_exit(op: Operation) -> bool:
    """Whether a part has to say that it has left; an author's own protocol may end with such a wait already."""
    assert isinstance(op, KernelOp)
    return _LEFT in op.arguments and program.DERIVED in op.attributes


_LEFT = "left"
"""The counter of the parts that have left, if a kernel has such an obligation."""

_COUNT = 0
"""The place of the number among the operands of a wait; see `pk.wait`."""

OPERATORS = (
    Operator("wait dropped", (access.WaitOp,), _drop),
    Operator("wait for one less", (access.WaitOp,), lambda op: _number(op, _COUNT, -1)),
    Operator("wait for one more", (access.WaitOp,), lambda op: _number(op, _COUNT, 1)),
    Operator("signal dropped", (access.SignalOp, access.RaiseOp, access.SignalAllOp), _drop),
    Operator("signal to the next rank", (access.SignalOp, access.RaiseOp), _wrong_rank, _to_one_rank),
    Operator("signal sent twice", (access.SignalOp, access.SignalAllOp), _twice),
    Operator("reset dropped", (access.ResetOp,), _drop, _is_awaited),
    Operator("epoch left out", (program.EpochOp,), _without_epoch),
    Operator("acquire dropped", (roles.AcquireOp,), _drop),
    Operator("commit dropped", (roles.CommitOp,), _drop),
    Operator("release dropped", (roles.ReleaseOp,), _drop),
    Operator("released early", (roles.ReleaseOp,), _early),
    Operator("tasks rotated by another count", (program.RotateOp,), _another_count),
    Operator("tasks run twice", (program.RotateOp, program.InterleaveOp), _every_second),
    Operator("one stage too many", (roles.ChannelOp,), _one_stage_more, _fills_shared_memory),
    Operator("no SM left to compute", (KernelOp,), _all_sms, _computes),
    Operator("ranks taken for a constant", (program.DimOp,), _fixed_ranks, _counts_ranks),
    Operator("fence dropped", (FenceOp, DrainOp), _drop, _orders),
    Operator("fence moved behind", (FenceOp, DrainOp), _behind_what_it_orders, _stands_before),
    Operator("`read` for `full`", (DrainOp,), _as_read, _is_full),
    Operator("relaxed for release", (access.SignalOp, access.RaiseOp, access.SignalAllOp), _relaxed, _orders),
    Operator("signal before the store", (access.SignalOp, access.RaiseOp), _announced_first, _is_behind_a_store),
    Operator("buffer reused a launch early", (access.WaitOp,), _launch_before, _counts_epochs),
    Operator("exit without obligation", (KernelOp,), _no_exit, _has_exit),
    Operator("reset-style barrier", (access.WaitOp,), _reset_barrier, _for_several),
    Operator("tasks not shared out", (program.TasksOp,), _all_tasks, _among_others),
)


@dataclass(frozen=True)
class Instance:
    """What a kernel has to compute on some ranks and sizes, and simulations of it as it is."""

    meaning: Meaning
    right: Trials

    def trials(self, kernel: KernelOp) -> Trials:
        """Simulations of a broken kernel."""
        return Trials(kernel, self.meaning, like=self.right)


@dataclass(frozen=True)
class Subject:
    """The roles level of an example with one overlap, on a small and a larger instance."""

    name: str
    compiled: Compiled
    small: Instance
    larger: Instance


def _schedule(overlap: str) -> dict[str, str]:
    if overlap == "push":
        return {"transfer": "push"}
    return {"overlap": overlap} if overlap else {}


def subjects(names: list[str]) -> Iterator[Subject]:
    """Every example with every overlap that it can have."""
    for path in sorted((ROOT / "examples").glob("*.pk")):
        if names and path.stem not in names:
            continue
        seen: set[str] = set()
        for overlap in OVERLAPS:
            try:
                compiled = load(path, level="roles", schedule=_schedule(overlap))
            except PkcError:
                continue  # refused, with a reason
            text = str(compiled.module).replace(f'overlap = "{overlap}"', "").replace('transfer = "push"', "")
            if text not in seen:
                seen.add(text)
                small, larger = (_instance(compiled, meaning) for meaning in _meanings(path))
                yield Subject(f"{path.stem} {overlap or 'default'}", compiled, small, larger)


def _instance(compiled: Compiled, meaning: Meaning) -> Instance:
    right = Trials(compiled.kernel, meaning)
    right.check(Replay(1, ()))
    return Instance(meaning, right)


@cache
def _meanings(path: Path) -> tuple[Meaning, Meaning]:
    tile = load(path)
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    sizes = {dim: size for dim, size in SIZES.get(path.stem, MATRICES).items() if dim in used}
    small = meaning_of(tile, ranks=2, dims=small_dims(tile.kernel, 2), launches=3)
    return small, meaning_of(tile, ranks=RANKS, dims=sizes, launches=3)


def mutants(kernel: KernelOp) -> Iterator[tuple[Operator, str, KernelOp]]:
    """Each break of a kernel: the operator, where, the broken kernel."""
    count = sum(1 for _ in kernel.walk())
    for operator in OPERATORS:
        for position in range(count):
            module = kernel.parent_op()
            assert module is not None
            original = _at(kernel, position)
            if not isinstance(original, operator.kinds) or not operator.breaks(original):
                continue
            copy = module.clone()
            broken = next(op for op in copy.walk() if isinstance(op, KernelOp))
            op = _at(broken, position)
            where = f"{op.name} at {describe(original.location)}"
            operator.change(op)
            yield operator, where, broken


def _at(kernel: KernelOp, position: int) -> Operation:
    for number, op in enumerate(kernel.walk()):
        if number == position:
            return op
    raise IndexError(position)


def caught(kernel: KernelOp, subject: Subject, trials: tuple[Trial, ...] = TRIALS) -> str:
    """The layer that notices: `verifier`, the code of a finding, or nothing."""
    module = kernel.parent_op()
    assert module is not None
    if next(iter(findings(module)), None) is not None:  # pyright: ignore[reportArgumentType]
        return "verifier"
    if check_roles(module):  # pyright: ignore[reportArgumentType]
        return "check-roles"
    meaning = subject.larger.meaning
    static = check_statically(kernel, ranks=meaning.ranks, dims=meaning.dims).findings
    return static[0].code if static else simulated(kernel, subject, trials)


def simulated(kernel: KernelOp, subject: Subject, trials: tuple[Trial, ...] = TRIALS) -> str:
    """The code of what a simulation finds, or nothing."""
    for ctas in CTAS:
        explored = subject.small.trials(kernel).explore(ctas, RUNS)
        if explored.found:
            return explored.found[0].code
    seeded = subject.larger.trials(kernel)
    return next((found[0].code for trial in trials if (found := seeded.check(trial))), "")


def main(names: list[str]) -> int:
    """Print the table; the exit status is 1 if a mutant survives or an unchanged kernel is accused."""
    began = time.perf_counter()
    by_operator: dict[str, Counter[str]] = {operator.name: Counter() for operator in OPERATORS}
    survivors: list[str] = []
    accused: list[str] = []
    total = 0
    for subject in subjects(names):
        code = caught(subject.compiled.kernel, subject)
        if code:
            accused.append(f"{subject.name}: {code}")
        for operator, where, broken in mutants(subject.compiled.kernel):
            total += 1
            layer = caught(broken, subject)
            by_operator[operator.name][layer or "survived"] += 1
            if not layer:
                survivors.append(f"{subject.name}: {operator.name}, {where}")
        print(f"{subject.name} done, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print("| break | mutants | caught | by |\n|---|---|---|---|")
    for name, counts in by_operator.items():
        number = sum(counts.values())
        layers = ", ".join(f"{layer} {n}" for layer, n in sorted(counts.items()) if layer != "survived")
        print(f"| {name} | {number} | {number - counts['survived']} | {layers} |")
    print(f"\n{total} mutants, {total - len(survivors)} caught; {len(accused)} unchanged kernels accused")
    for line in (*survivors, *accused):
        print(f"- {line}")
    return 1 if survivors or accused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
