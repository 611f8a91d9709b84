"""Every example at the roles level gives the very bits that it gives at the tile level."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from typing import Any

import pytest
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.dialect.blocks import Block
from pkc.dialect.deferred import is_deferred
from pkc.dialect.types import Layout
from pkc.driver.compiler import Compiled, load
from pkc.sim.array import Array, Where
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.examples.test_examples import ALIKE, CASES, EXAMPLES, compiled, in_sizes, text_of
from tests.sweeps import sweep

OVERLAPS = ("default", "none", "intra_sm", "inter_sm", "copy_engine", "push", "push none", "across")
"""The values of `overlap`; operands that are sent instead of fetched, without and with overlap; blocks that span the
ranks' parts."""

ALSO = {
    "all_reduce": ("one_shot", "packets", "packets one_shot"),
    "gemm_ar": ("one_shot", "packets", "packets one_shot"),
    "all_gather": ("packets",),
    "reduce_scatter": ("packets", "awaited"),
    "gemm_rs": ("packets", "awaited"),
}
"""By example: sums that every rank adds up, tiles that travel in packets, and ranks that wait until all have begun
before they write to their scratch memory."""

MLP = "moe_mlp P=128"

ILLEGAL = {
    ("decode_attention", "copy_engine"),
    *((name, push) for name in ("moe_dispatch_gemm", MLP, "ulysses_attention") for push in ("push", "push none")),
    *((name, "across") for name in ("all_gather", "all_to_all")),
    *((name, "across") for name in CASES if "ring_attention" in name),
    ("ulysses_attention", "across"),
}
"""Copy engines cannot tell other ranks that a phase is over. Owners send what every rank reads, not what depends on a
table or on the heads of a rank. A block of one rank's part spans no others, and what the SM that computes fetches
itself comes from one rank at a time."""


def at_roles_level(name: str, overlap: str) -> Compiled:
    push, _, rest = overlap.partition(" ")
    schedule = {"transfer": "push"} if push == "push" else {} if overlap == "default" else {"overlap": overlap}
    schedule |= {"overlap": rest} if rest else {}
    schedule = {"across": {"straddle": "true"}}.get(overlap, schedule)
    if any(overlap in more for more in ALSO.values()):
        packets = {"packets": "true"} if overlap.startswith("packets") else {}
        packets |= {"write_ahead": "false"} if overlap == "awaited" else {}
        schedule = packets | ({"all_reduce": "one_shot"} if overlap.endswith("one_shot") else {})
    return compiled(name, "roles", *schedule.items())


@cache
def overlaps(name: str) -> tuple[list[str], list[str]]:
    """The overlaps that an example can have, and of these the ones that give the same IR as one before."""
    first: dict[str, str] = {}
    legal = [overlap for overlap in (*OVERLAPS, *ALSO.get(name, ())) if (name, overlap) not in ILLEGAL]
    for overlap in legal:
        first.setdefault(text_of(at_roles_level(name, overlap)), overlap)
    return list(first.values()), [overlap for overlap in legal if overlap not in first.values()]


def at_tile_level(name: str, ranks: int, ragged: bool) -> tuple[dict[str, int], dict[str, Any], dict[str, bytes]]:
    """Dimensions, inputs, and the bytes of each output."""
    module = compiled(name).module
    given = CASES[name].ragged(ranks) if ragged else CASES[name].divisible(ranks)
    used = {dim for op in compiled(name).kernel.body.block.args for dim in getattr(op.type, "dimensions", ())}
    dims = {dim: size for dim, size in given.items() if dim in used}
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=ranks)
    outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs)
    return dims, inputs, {array: values.tobytes() for array, values in outputs.items()}


@contextmanager
def seen_from_afar() -> Iterator[set[str]]:
    """The arrays of which a rank reaches what is another rank's, all copies among it."""
    found: set[str] = set()
    locate = Array.locate

    def watched(self: Array, op: Operation, rank: int, indices: Any, at: int | None = None) -> Where:
        where = locate(self, op, rank, indices, at)
        if where[0] != rank and not any(isinstance(index, Block) and not index.length for index in indices):
            found.add(self.name)
        return where

    def of_all(method: Callable[..., Any], *, replicated: bool) -> Callable[..., Any]:
        def call(self: Array, *given: Any) -> Any:
            if self.place.copies > 1 and (self.place.layout is Layout.Replicate or not replicated):
                found.add(self.name)
            return method(self, *given)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Array, "locate", watched)
        patch.setattr(Array, "everywhere", of_all(Array.everywhere, replicated=True))
        for name in ("reduce", "store_everywhere"):
            patch.setattr(Array, name, of_all(getattr(Array, name), replicated=False))
        yield found


def check_bits(name: str, ranks: int, ragged: bool, overlaps: list[str]) -> None:
    """All overlaps at once, so that the tile level runs once for them, whichever process runs the test. Tensors may
    take the place of arrays that the roles level calls local: no other rank reaches them."""
    dims, inputs, expected = at_tile_level(name, ranks, ragged)
    wrong: list[str] = []
    for overlap in overlaps:
        number = zlib.crc32(f"{name} {overlap} {ranks} {ragged}".encode())
        ctas, seed = number % 3 + 1, number >> 8
        module, kernel = at_roles_level(name, overlap).module, at_roles_level(name, overlap).kernel
        with seen_from_afar() as reached:
            outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
        assert not reached & {name for name, arg in kernel.arguments.items() if kernel.is_local(arg)}
        if {array: values.tobytes() for array, values in outputs.items()} != expected:
            wrong.append(f"{overlap}, ctas={ctas}, seed={seed}")
    assert not wrong


OFTEN = [name for name in CASES if not name.startswith(ALIKE)]
ALONE = OFTEN[::4]
"""Examples that `make test` runs on one rank too, where nothing is sent."""


def is_often(name: str, ranks: int, ragged: bool) -> bool:
    return name in (ALONE if ranks == 1 else OFTEN) and (ranks, ragged) in ((1, True), (2, False), (3, True))


@pytest.mark.parametrize(
    ("name", "ranks", "ragged"), sweep(product(CASES, (1, 2, 3, 4, 8), (False, True)), is_often), ids=str
)
def test_roles_give_the_bits_of_the_tile_level(name: str, ranks: int, ragged: bool) -> None:
    check_bits(name, ranks, ragged, overlaps(name)[0])


@pytest.mark.long
@in_sizes(1, 2, 3, 4, 8)
@pytest.mark.parametrize("name", CASES)
def test_in_other_orders(name: str, ranks: int, ragged: bool) -> None:
    """What several overlaps give, in another order for each."""
    check_bits(name, ranks, ragged, overlaps(name)[1])


@pytest.mark.parametrize(("name", "overlap"), sorted(ILLEGAL))
def test_illegal_overlaps_are_refused(name: str, overlap: str) -> None:
    with pytest.raises(PkcError) as raised:
        at_roles_level(name, overlap)
    expected = "PK438" if overlap.startswith("push") else "PK430"
    expected = "PK443" if overlap == "across" else expected
    assert {finding.code for finding in raised.value.diagnostics} == {expected}


@pytest.mark.parametrize("name", ["ag_gemm", "all_reduce", "gemm_ar", "gemm_rs", "moe_dispatch_gemm", "ring_attention"])
def test_communicators_on_sms_of_their_own(name: str) -> None:
    dims, inputs, expected = at_tile_level(name, ranks=3, ragged=True)
    schedule = {"overlap": "inter_sm", "comm_sms": "20"}
    module = load(EXAMPLES / f"{name}.pk", schedule=schedule, level="roles").module
    wrong: list[str] = []
    for ctas, seed in ((1, 0), (2, 1), (3, 2)):
        outputs = simulate(module, ranks=3, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
        if {array: values.tobytes() for array, values in outputs.items()} != expected:
            wrong.append(f"ctas={ctas}, seed={seed}")
    assert not wrong


LONG = {"ag_gemm": {"M": 300, "N": 40, "K": 1100}, "ring_attention": {"B": 1, "H": 2, "S": 2300}}
"""Sizes of which a communicator brings more tiles than it holds signals and keeps stages."""


@pytest.mark.parametrize("name", LONG)
def test_signals_that_lag_behind_stores(name: str) -> None:
    tile = compiled(name).module
    inputs = draw_inputs(tile, ranks=3, dims=LONG[name], seed=0)
    expected = {
        array: values.tobytes() for array, values in simulate(tile, ranks=3, dims=LONG[name], inputs=inputs).items()
    }
    schedule = {"overlap": "inter_sm", "comm_sms": "2"}
    module = load(EXAMPLES / f"{name}.pk", schedule=schedule, level="roles").module
    assert any(is_deferred(op) for op in module.walk())
    for ctas, seed in ((1, 0), (2, 1)):
        outputs = simulate(module, ranks=3, dims=LONG[name], inputs=inputs, seed=seed, ctas=ctas)
        assert {array: values.tobytes() for array, values in outputs.items()} == expected
