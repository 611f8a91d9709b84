"""The static layer accuses no example: any overlap, 1 to 8 ranks, sizes that are divisible and ragged."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from xdsl.dialects import scf

from pkc.check.static import check_statically
from pkc.diagnostics import PkcError
from pkc.driver.compiler import Compiled
from pkc.passes.roles.signal_counts import counted
from tests.examples.test_examples import ALIKE, CASES, compiled, text_of
from tests.sweeps import sweep

RANKS = (1, 2, 3, 4, 8)
SCHEDULES = (
    {},
    {"overlap": "none"},
    {"overlap": "intra_sm"},
    {"overlap": "inter_sm"},
    {"overlap": "copy_engine"},
    {"overlap": "inter_sm", "comm_sms": "20"},
    {"straddle": "true"},
    {"separate_loader": "true"},
    {"separate_loader": "true", "tile_N": "128"},
)
WRITTEN = ("ag_gemm_explicit", "all_reduce_explicit")
"""Examples whose author wrote the protocol."""


@cache
def schedules(name: str) -> list[tuple[str, Compiled]]:
    """The roles level of an example with each schedule that it can have, unless another one gives the same."""
    found: dict[str, tuple[str, Compiled]] = {}
    for schedule in SCHEDULES:
        try:
            roles = compiled(name, "roles", *schedule.items())
        except PkcError as error:
            # Refused with a reason, which other tests are about.
            assert {finding.code for finding in error.diagnostics} <= {
                "PK430",
                "PK443",
                "PK464",
                "PK468",
                "PK475",
                "PK504",
            }
            continue
        found.setdefault(text_of(roles), (str(schedule), roles))
    return list(found.values())


OFTEN = [name for name in CASES if not name.startswith(ALIKE)]
TURNS = {(name, (3, 2, 3, 1)[number % 4]) for number, name in enumerate(OFTEN)}


@pytest.mark.parametrize(("name", "ranks"), sweep(product(CASES, RANKS), lambda *case: case in TURNS))
def test_no_false_alarm(name: str, ranks: int) -> None:
    """Every schedule on every number of ranks, with divisible and ragged sizes alternating."""
    accused: list[str] = []
    warp_roles = 0
    for position, (schedule, roles) in enumerate(schedules(name), start=RANKS.index(ranks)):
        sizes = CASES[name].divisible(ranks) if position % 2 else CASES[name].ragged(ranks)
        used = {dim for arg in roles.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
        dims = {dim: size for dim, size in sizes.items() if dim in used}
        found = check_statically(roles.kernel, ranks=ranks, dims=dims)
        assert not found.undecided
        warp_roles += found.warp_roles
        accused += [f"{schedule}, {ranks} ranks, {dims}: {finding}" for finding in found.findings]
    assert not accused
    assert warp_roles


DERIVED = [name for name in CASES if name not in WRITTEN]
MOST_PHASES = "moe_mlp P=128"


@pytest.mark.parametrize("name", sweep(DERIVED, lambda name: name in (*OFTEN, MOST_PHASES)))
def test_each_derived_wait_counts_right_for_all_sizes(name: str) -> None:
    """But for tiles of one operand that are awaited some at a time: the last ones of a row are fewer."""
    unsure = [
        f"{schedule}: {each.wanted} of {each.sent}, {each.wait}"
        for schedule, roles in schedules(name)
        for each in counted(roles.kernel)
        if not each.shown and not isinstance(each.wait.parent_op(), scf.IfOp)
    ]
    assert not unsure
