"""What the static layer finds in protocols that are broken on purpose; tests/errors has those of programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects import arith, scf
from xdsl.ir import Operation
from xdsl.parser import Parser

from pkc.check.run import TRIALS, baseline_of, check_roles
from pkc.check.static import check_statically
from pkc.dialect import coordinates, counters, program, roles
from pkc.dialect.pk import context
from pkc.dialect.program import KernelOp, TasksOp
from pkc.driver.compiler import load
from pkc.passes.build import constant
from pkc.passes.roles.signal_counts import count_findings, counted
from tests.clock import within
from tests.examples.test_examples import EXAMPLES

DIMS = {"M": 700, "N": 300, "K": 100}


def kernel(name: str = "gemm_rs") -> KernelOp:
    return load(EXAMPLES / f"{name}.pk", level="roles").kernel


def findings(broken: KernelOp, ranks: int = 3) -> list[str]:
    return [str(finding) for finding in check_statically(broken, ranks=ranks, dims=DIMS).findings]


def only(broken: KernelOp, kind: type[Operation], role: str) -> Operation:
    """The operation of a kind in a role."""
    roles = [op for op in broken.body.block.ops if isinstance(op, program.RoleOp) and op.role.data == role]
    return next(op for role_op in roles for op in role_op.walk() if isinstance(op, kind))


def insert(before: Operation, *ops: Operation) -> None:
    block = before.parent
    assert block is not None
    for op in ops:
        op.location = before.location
        block.insert_op_before(op, before)


def test_what_is_found_of_a_right_protocol() -> None:
    found = check_statically(kernel(), ranks=8, dims={"M": 1024, "N": 512, "K": 256})
    assert not found.findings
    # One CTA for each SM and one alone, on eight ranks, four roles each, launched twice.
    assert found.warp_roles == (132 + 1) * 8 * 4 * 2


def test_one_second_for_eight_ranks() -> None:
    """The bound of `pkc check`."""
    right = kernel()
    found = within(1, lambda: check_statically(right, ranks=8, dims={"M": 1024, "N": 1024, "K": 512}))
    assert not found.findings


def test_tiles_left_in_a_channel() -> None:
    broken = kernel()
    loop = only(broken, scf.ForOp, "loader")
    assert isinstance(loop, scf.ForOp)
    one = constant(1)
    longer = arith.AddiOp(loop.ub, one.result)
    insert(loop, one, longer)
    loop.operands = [loop.lb, longer.result, loop.step]
    (found,) = check_statically(broken, ranks=1, dims={"M": 100, "N": 200, "K": 100}).findings
    assert str(found).splitlines()[0] == (
        "error[PK484]: the channel of `A, B` gets 3 stages on rank 0, CTA 0, and 2 are consumed"
    )


def test_tasks_left_out() -> None:
    """Index 0 takes the place of all others, in a way that only a run of the integers shows."""
    broken = kernel("ag_gemm")
    rotate = only(broken, coordinates.RotateOp, "storer")
    assert isinstance(rotate, coordinates.RotateOp)
    zero = constant(0)
    none = arith.MuliOp(rotate.index, zero.result)
    insert(rotate, zero, none)
    rotate.operands = [none.result, rotate.shift, rotate.count]
    first = findings(broken, ranks=1)[0].splitlines()
    assert first[0] == "error[PK485]: the storer of rank 0 runs task [0, 0] 6 times"
    assert first[1] == f" --> {EXAMPLES / 'ag_gemm.pk'}:3:5"


def test_roles_with_other_orders() -> None:
    broken = kernel("ag_gemm")
    rotate = only(broken, coordinates.RotateOp, "loader")
    assert isinstance(rotate, coordinates.RotateOp)
    one = constant(1)
    further = arith.AddiOp(rotate.shift, one.result)
    insert(rotate, one, further)
    rotate.operands = [rotate.index, further.result, rotate.count]
    assert findings(broken, ranks=1)[0].splitlines()[0] == (
        "error[PK486]: loader and storer of CTA 0 of rank 0 run different tasks: [1, 0] and [0, 0], after 0"
    )


def test_a_role_that_leaves_out_all_tasks() -> None:
    """As many as there are, which are none here: its text has some that pass tiles on."""
    broken = kernel("gemm")
    tasks = only(broken, TasksOp, "loader")
    none = constant(0)
    insert(tasks, none)
    tasks.operands[0].replace_all_uses_with(none.result)
    assert findings(broken, ranks=1)[0].splitlines()[0] == (
        "error[PK486]: loader and consumer of CTA 0 of rank 0 run different tasks: none and [0, 0], after 0"
    )


def test_a_channel_that_is_never_filled_again() -> None:
    """The consumer takes two stages where the loader fills one."""
    broken = kernel()
    release = only(broken, roles.ReleaseOp, "consumer")
    consume = only(broken, roles.ConsumeOp, "consumer")
    insert(release, release.clone(), consume.clone())
    found = findings(broken, ranks=1)[0].splitlines()
    assert found[0] == (
        "error[PK481]: full stages of A, B (channel 0) of rank 0 never reaches 25: it gets 24 by the end of launch 1"
    )


IN_TURN = """
pk.kernel @k(%turn: !pk.signal<[M by 16]> {pk.name = "turn"}) attributes {derived} {
  pk.role loader {
    %one = arith.constant 1 : index
    %rank = pk.rank
    %epoch = pk.epoch
    %n = pk.block_count <M by 16>
    %last = arith.subi %n, %one : index
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %early = arith.cmpi slt, %i, %last : index
      scf.if %early {
        %next = arith.addi %i, %one : index
        pk.wait %turn[%next] for %epoch : !pk.signal<[M by 16]>
      }
      pk.raise %turn at %rank[%i] to %epoch : !pk.signal<[M by 16]>
    }
  }
}
"""


def test_a_deadlock_for_want_of_ctas() -> None:
    """A task that waits for the next one goes on if that runs on another CTA, and not if one CTA runs both."""
    written = next(op for op in Parser(context(), IN_TURN).parse_module().ops if isinstance(op, KernelOp))
    (found,) = check_statically(written, ranks=1, dims={"M": 64}).findings
    assert found.code == "PK480"
    assert "rank 0, loader of CTA 0, " in str(found)
    assert "waits for `turn[1]` to be 1" in str(found)


CHAIN = """
kernel k(X: f32[M].symmetric(), Y: f32[M].symmetric(), s: signal[400]):
    with role(consumer):
        for i in tasks({tasks}):
            if {condition}:
                wait(s[{awaited}], 1)
            for m in blocks(M, 1, start=i, stop=i + 1):
                store(Y.at(rank)[m], X[m])
            signal(s.at(rank)[i], 1)
"""


@pytest.mark.parametrize(
    ("tasks", "condition", "awaited", "codes"),
    [
        (133, "i + 1 < 133", "i + 1", ["PK487"]),
        (132, "i + 1 < 132", "i + 1", []),
        ("M", "i + 1 < M", "i + 1", ["PK487"]),
        ("M", "i > 0", "i - 1", []),
        (133, "i > 0", "i", ["PK480"]),
    ],
)
def test_tasks_that_wait_for_tasks(
    tasks: int | str, condition: str, awaited: str, codes: list[str], tmp_path: Path
) -> None:
    """Only a constant number of tasks that fit the GPU may wait for later ones; a wait for oneself is a cycle."""
    file = tmp_path / "chain.pk"
    file.write_text(CHAIN.format(tasks=tasks, condition=condition, awaited=awaited))
    written = load(file, level="roles").kernel
    found = check_statically(written, ranks=2, dims={"M": 140}).findings
    assert [each.code for each in found if each.code != "PK483"] == codes


def _of_storer(broken: KernelOp) -> tuple[roles.ReleaseOp, roles.ReleaseOp]:
    """The releases of a stage that O has in common with Q: of O, and of Q."""
    storer = next(op for op in broken.body.block.ops if isinstance(op, program.RoleOp) and op.role.data == "storer")
    own, other = [op for op in storer.walk() if isinstance(op, roles.ReleaseOp)]
    assert roles.channel_of(own.channel).host is other.channel
    return own, other


def test_a_shared_stage_that_is_released_too_early_or_never() -> None:
    dims = {"B": 1, "H": 2, "S": 300, "T": 300}
    assert not check_statically(kernel("attention"), ranks=1, dims=dims).findings
    broken = kernel("attention")
    own, other = _of_storer(broken)
    other.detach()
    insert(own, other)
    assert [found.code for found in check_statically(broken, ranks=1, dims=dims).findings] == ["PK462"]
    other.detach()
    other.erase()
    assert [found.code for found in check_statically(broken, ranks=1, dims=dims).findings] == ["PK481"]


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_a_dropped_wait_is_found(ranks: int) -> None:
    broken = kernel("reduce_scatter")
    wait = only(broken, counters.WaitOp, "communicator")
    wait.detach()
    wait.erase()
    assert (
        str(check_statically(broken, ranks=ranks, dims={"M": 700, "N": 300}).findings[0])
        .splitlines()[0]
        .startswith("error[PK483]: nobody waits for `Y.arrived[")
    )


@pytest.mark.parametrize(("ranks", "size"), [(2, 1), (3, 2), (3, 1)])
def test_a_rank_without_tasks_awaits_nothing_also_if_nobody_else_does(ranks: int, size: int) -> None:
    """Of so few keys nothing comes from other ranks to those that have queries."""
    dims = {"B": 1, "H": 1, "S": size}
    assert check_statically(kernel("ring_attention"), ranks=ranks, dims=dims).findings == []
    right = baseline_of(load(EXAMPLES / "ring_attention.pk"), ranks=ranks, dims=dims)
    assert check_roles(load(EXAMPLES / "ring_attention.pk", level="roles"), right, TRIALS[:2]) == []


@pytest.mark.parametrize(("more", "codes"), [(0, []), (1, ["PK471"]), (-1, ["PK471"])])
def test_a_wait_for_all_rows_counts_those_of_other_ranks_for_all_sizes(more: int, codes: list[str]) -> None:
    broken = kernel("moe_dispatch_gemm")
    wait = next(op for op in broken.walk() if isinstance(op, counters.WaitOp) and op.signal.name_hint == "X_ready")
    number = constant(more)
    total = arith.AddiOp(wait.count, number.result)
    insert(wait, number, total)
    wait.operands = [total.result if operand is wait.count else operand for operand in wait.operands]
    assert [finding.code for finding in count_findings(broken)] == codes
    assert all(each.shown for each in counted(broken) if each.wait is wait) == (not codes)


@pytest.mark.parametrize(("factor", "codes"), [(1, []), (2, ["PK471"])])
def test_a_wait_for_the_launch_before_counts_its_signals_for_all_sizes(factor: int, codes: list[str]) -> None:
    broken = kernel("reduce_scatter")
    wait = next(op for op in broken.walk() if counters.EARLIER in op.attributes)
    assert isinstance(wait, counters.WaitOp)
    number = constant(factor)
    product = arith.MuliOp(wait.count, number.result)
    insert(wait, number, product)
    wait.operands = [product.result if operand is wait.count else operand for operand in wait.operands]
    assert [finding.code for finding in count_findings(broken)] == codes
    assert all(each.shown for each in counted(broken)) == (not codes)


def test_a_wait_for_the_other_of_two_counters_is_not_shown() -> None:
    broken = kernel("reduce_scatter")
    wait = next(op for op in broken.walk() if counters.EARLIER in op.attributes)
    assert isinstance(wait, counters.WaitOp)
    epoch, two = coordinates.EpochOp(), constant(2)
    turn = arith.RemSIOp(epoch.result, two.result)
    insert(wait, epoch, two, turn)
    wait.operands = [turn.result if operand is wait.indices[0] else operand for operand in wait.operands]
    assert [each.wait for each in counted(broken) if not each.shown] == [wait]
