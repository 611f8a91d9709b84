"""Roles that an author wrote: shared out among CTAs, and split, they mean what they meant."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects import scf

from pkc.check.run import TRIALS, Trial, baseline_of, check_roles
from pkc.check.static import check_statically
from pkc.dialect.counters import WaitOp
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.sweeps import sweep
from tests.written import WRITTEN

DIMS = {"M": 50, "N": 40, "K": 36}


def compiled(text: str, level: str) -> Compiled:
    return compile_program(parse_text(Source("k.pk", text.lstrip("\n"))), level=level)


@pytest.mark.parametrize("ranks", sweep((1, 2, 3), lambda ranks: ranks == 2))
@pytest.mark.parametrize("name", WRITTEN)
def test_bits_are_those_of_the_tile_level(name: str, ranks: int) -> None:
    """In many orders, with one and two CTAs for each role, launched twice; and no count or order is wrong."""
    tile, roles = compiled(WRITTEN[name], "tile"), compiled(WRITTEN[name], "roles")
    used = {dim for argument in tile.kernel.body.block.args for dim in getattr(argument.type, "dimensions", ())}
    dims = {dim: size for dim, size in DIMS.items() if dim in used}
    assert not check_statically(roles.kernel, ranks=ranks, dims=dims).findings
    assert not check_roles(roles, baseline_of(tile, ranks=ranks, dims=dims), TRIALS[:8])


def test_a_cta_that_is_ahead_is_not_counted_for_one_that_is_behind() -> None:
    """What one CTA signals when all have done their tasks of an iteration: three CTAs, of which two go on."""
    text = WRITTEN["a signal behind tasks in a loop"]
    meaning = baseline_of(compiled(text, "tile"), ranks=2, dims={"M": 24})
    trials = [Trial(3, seed) for seed in range(10)]
    roles = compiled(text, "roles")
    assert not check_roles(roles, meaning, trials)
    joins = [op for op in roles.kernel.walk() if isinstance(op, WaitOp) and op.signal.name_hint == "joined"]
    for early in (op for op in joins if isinstance(op.parent_op(), scf.ForOp)):
        early.detach()
        early.erase()
    assert [found.code for found in check_roles(roles, meaning, trials)] == ["PK730"]


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_lowered(name: str, kind: str) -> None:
    compiled(WRITTEN[name].replace("f32[", f"{kind}["), "machine")


COPIED = """
kernel k(X: bf16[M, N], Y: bf16[M, N].symmetric(), done: signal[1]):
    with role(consumer):
        for m, n in tasks(blocks(M, 8, of=rank), blocks(N, 8)):
            for r in ring():
                store(Y.at(r)[m, n], X[m, n])
        signal_all(done[0], 1)
        wait(done[0], ranks)
"""


def test_a_role_of_which_nothing_is_left() -> None:
    """What only loads and stores is done by a loader and a storer; the CTAs that it waits for are theirs."""
    compiled(COPIED, "machine")
    assert not check_roles(
        compiled(COPIED, "roles"), baseline_of(compiled(COPIED, "tile"), ranks=3, dims={"M": 50, "N": 20}), TRIALS[:2]
    )


@pytest.mark.parametrize("name", ["sums in place", "maxima and minima"])
def test_a_signal_behind_what_every_rank_gets(name: str) -> None:
    """A loop over the ranks has an iteration, whose store ends after what it depends on."""
    text = re.sub(r"role\(communicator[^)]*\)", "role(consumer)", WRITTEN[name])
    compiled(text, "machine")
    meaning = baseline_of(compiled(text, "tile"), ranks=2, dims={"M": 50, "N": 40})
    assert not check_roles(compiled(text, "roles"), meaning, TRIALS[:2])


BY_A_SCALAR = """
kernel k(X: f32[M], Y: f32[M], Z: f32[M], flag: i32):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            if flag > 0:
                Y[m] = X[m]
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            if flag > 1:
                Z[m] = X[m] * 2.0
"""


def test_roles_that_go_by_a_scalar_are_lowered() -> None:
    compiled(BY_A_SCALAR, "machine")
