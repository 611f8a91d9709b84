"""Protocols with packets that are broken in one place: each break is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pkc.check.run import TRIALS, baseline_of, check_roles, launches_until_reuse
from pkc.cli.main import main
from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.counters import SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import KernelOp, packed
from pkc.driver.compiler import Compiled, load
from pkc.passes.build import constant
from tests.examples.test_examples import EXAMPLES

SCHEDULES = {
    "all_reduce": {"packets": "true", "all_reduce": "one_shot", "tile_M": "8", "tile_N": "32"},
    "reduce_scatter": {"packets": "true", "tile_M": "8", "tile_N": "32"},
    "all_gather": {"packets": "true", "tile_M": "8", "tile_N": "32"},
}
SIZES = {"M": 20, "N": 40}


def loaded(name: str) -> Compiled:
    return load(EXAMPLES / f"{name}.pk", schedule=SCHEDULES[name], level="roles")


def findings(name: str, change: Callable[[KernelOp], None], launches: int | None = None) -> set[str]:
    roles = loaded(name)
    change(roles.kernel)
    wanted = launches or launches_until_reuse(roles.kernel)
    baseline = baseline_of(load(EXAMPLES / f"{name}.pk"), ranks=2, dims=SIZES, launches=wanted)
    return {finding.code for finding in check_roles(roles, baseline, TRIALS)}


def no_entry(kernel: KernelOp) -> None:
    (wait,) = (op for op in kernel.walk() if isinstance(op, WaitOp) and not packed(op))
    wait.detach()
    wait.erase()


def one_half(kernel: KernelOp) -> None:
    """All launches use the same half of the scratch memory."""
    for op in list(kernel.walk()):
        if isinstance(op, LoadOp | StoreOp) and packed(op):
            zero = constant(0)
            zero.location = op.location
            op.parent.insert_op_before(zero, op)
            op.operands[list(op.operands).index(op.indices[0])] = zero.result


def early_look(kernel: KernelOp) -> None:
    """Packets are looked at before they are awaited."""
    (wait,) = (op for op in kernel.walk() if isinstance(op, WaitOp) and packed(op))
    wait.detach()
    wait.erase()


def early_signal(kernel: KernelOp) -> None:
    """It tells of packets that are sent behind it."""
    (store,) = (op for op in kernel.walk() if isinstance(op, StoreOp) and packed(op))
    (signal,) = (op for op in kernel.walk() if isinstance(op, SignalAllOp | SignalOp) and packed(op))
    signal.detach()
    store.parent.insert_op_before(signal, store)


@pytest.mark.parametrize("name", SCHEDULES)
def test_nothing_is_found_in_what_is_derived(name: str) -> None:
    assert not findings(name, lambda _: None)


@pytest.mark.parametrize("name", ["all_reduce", "all_gather"])
@pytest.mark.parametrize("change", [no_entry, one_half, early_look, early_signal])
def test_each_break_is_found(name: str, change: Callable[[KernelOp], None]) -> None:
    assert findings(name, change) & {"PK705", "PK714", "PK730", "PK736"}


SHARES = """
kernel shares(X: bf16[M, 8], Y: bf16[M, 8].replicate()):
    for m in tasks(blocks(M, 4, of=rank)):
        Y[m, :] = X[m, :]
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_blocks_of_a_share_end_with_it(ranks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where no array has its rows in shards: a block of the whole array would have rows of two ranks."""
    path = tmp_path / "shares.pk"
    path.write_text(SHARES.lstrip(), encoding="utf-8")
    rows = str(4 * ranks + ranks + 1)
    assert main(["check", str(path), "--ranks", str(ranks), "--set", f"M={rows}", "--schedule", "packets=true"]) == 0
    assert not capsys.readouterr().err


def test_two_launches_would_not_tell() -> None:
    """The third is the first that uses the memory of another."""
    assert not findings("all_reduce", no_entry, launches=2) - {"PK713"}
