"""The static layer accuses no example: any overlap, 1 to 8 ranks, sizes that are divisible and ragged."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import cycle

import pytest
from xdsl.dialects import scf

from pkc.check.static import check_statically
from pkc.diagnostics import PkcError
from pkc.driver.compiler import Compiled, load
from pkc.passes.roles.signal_counts import counted
from tests.examples.test_examples import CASES, EXAMPLES

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
    return list(_schedules(name))


def _schedules(name: str) -> Iterator[tuple[str, Compiled]]:
    example, _, causal = name.partition(" ")
    seen: set[str] = set()
    for schedule in SCHEDULES:
        constants = {"causal": True} if causal else {}
        try:
            compiled = load(EXAMPLES / f"{example}.pk", constants=constants, schedule=schedule, level="roles")
        except PkcError as error:
            # Refused with a reason, which other tests are about.
            assert {finding.code for finding in error.diagnostics} <= {"PK430", "PK443", "PK464", "PK475", "PK504"}
            continue
        text = str(compiled.module).replace(str(compiled.kernel.attributes["schedule"]), "")
        if text not in seen:
            seen.add(text)
            yield str(schedule), compiled


@pytest.mark.parametrize("name", CASES)
def test_no_false_alarm(name: str) -> None:
    """Every schedule on every number of ranks, sizes taking turns."""
    turns = cycle([CASES[name].ragged, CASES[name].divisible])
    accused: list[str] = []
    workers = 0
    for schedule, compiled in schedules(name):
        used = {dim for arg in compiled.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
        for ranks in RANKS:
            dims = {dim: size for dim, size in next(turns)(ranks).items() if dim in used}
            found = check_statically(compiled.kernel, ranks=ranks, dims=dims)
            assert not found.undecided
            workers += found.workers
            accused += [f"{schedule}, {ranks} ranks, {dims}: {finding}" for finding in found.findings]
    assert not accused
    assert workers


@pytest.mark.parametrize("name", [name for name in CASES if name not in WRITTEN])
def test_each_derived_wait_counts_right_for_all_sizes(name: str) -> None:
    """But for tiles of one operand that are awaited some at a time: the last ones of a row are fewer."""
    unsure = [
        f"{schedule}: {each.wanted} of {each.sent}, {each.wait}"
        for schedule, compiled in schedules(name)
        for each in counted(compiled.kernel)
        if not each.shown and not isinstance(each.wait.parent_op(), scf.IfOp)
    ]
    assert not unsure
