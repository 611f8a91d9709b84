"""Attention with other heads, element types, groups, windows than the examples say, at ragged sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from pkc.check.static import check_statically
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.examples.test_examples import (
    EXAMPLES,
    Arrays,
    Dims,
    causal_attention,
    constants,
    decode_attention,
    grouped_attention,
    grouped_causal_attention,
    packed_attention,
    packed_causal_attention,
    softmax_attention,
    window_attention,
)
from tests.sweeps import sweep

ONE = {"B": 1, "H": 2, "S": 145, "T": 203}
SPREAD = {"B": 1, "H": 3, "S": 161}
GROUPS = {"B": 1, "H": 6, "G": 2, "S": 77, "T": 203}


@dataclass(frozen=True)
class Variant:
    """An example with these constants and sizes, in bf16 or another type, and what its outputs should be."""

    example: str
    constants: str
    dims: Dims
    formula: Callable[[Arrays, int], Arrays] = softmax_attention
    dtype: str = "bf16"
    ranks: int = 1
    schedule: dict[str, str] = field(default_factory=dict)

    def at(self, level: str) -> Compiled:
        text = (EXAMPLES / f"{self.example}.pk").read_text(encoding="utf-8").replace("bf16", self.dtype)
        program = parse_text(Source(f"{self.example}.pk", text))
        return compile_program(program, constants=constants(self.constants), schedule=self.schedule, level=level)


def window_of(count: int) -> Callable[[Arrays, int], Arrays]:
    return lambda i, ranks: window_attention(i, ranks, window=count)


PACKED = {"H": 2, "G": 2, "S": 170, "T": 200, "N": 6}
DECODED = {"H": 3, "R": 3, "T": 333}
SMALLER = {"tile_T": "64"}
"""For heads of 256: 128 keys and values of them do not fit into shared memory beside 128 queries."""

VARIANTS = {
    "D=64": Variant("attention", "D=64", ONE),
    "D=256": Variant("attention", "D=256", ONE, schedule=SMALLER),
    "D=64 causal": Variant("attention", "D=64,causal", ONE, causal_attention),
    "D=256 causal": Variant("attention", "D=256,causal", ONE, causal_attention, schedule=SMALLER),
    "f16": Variant("attention", "", ONE, dtype="f16"),
    "f16 D=64 causal": Variant("attention", "D=64,causal", ONE, causal_attention, dtype="f16"),
    "ring D=64": Variant("ring_attention", "D=64", SPREAD, ranks=3),
    "ring f16 causal": Variant("ring_attention", "causal", SPREAD, causal_attention, dtype="f16", ranks=3),
    "ring zigzag, two whole blocks in each half": Variant(
        "ring_attention", "causal,zigzag", SPREAD | {"S": 512}, causal_attention, ranks=2, schedule={"tile_S": "64"}
    ),
    "ring zigzag, one rank": Variant("ring_attention", "causal,zigzag", SPREAD, causal_attention),
    "ring zigzag, halves in one block": Variant(
        "ring_attention", "causal,zigzag", SPREAD | {"S": 701}, causal_attention, ranks=3
    ),
    "ring zigzag, an empty shard": Variant(
        "ring_attention", "causal,zigzag", SPREAD | {"S": 9}, causal_attention, ranks=4, schedule={"tile_S": "64"}
    ),
    "ring zigzag, all keys": Variant("ring_attention", "zigzag", SPREAD | {"S": 333}, ranks=2),
    "ulysses D=64 f16": Variant("ulysses_attention", "D=64", SPREAD, dtype="f16", ranks=3),
    "groups of 3": Variant("grouped_attention", "group=3", GROUPS, grouped_attention),
    "one group": Variant("grouped_attention", "group=6,D=64", GROUPS | {"G": 1}, grouped_attention),
    "groups of one head": Variant("grouped_attention", "group=1,causal", GROUPS | {"G": 6}, grouped_causal_attention),
    "groups, causal at the end": Variant("grouped_attention", "group=3,causal", GROUPS, grouped_causal_attention),
    "groups, more rows than keys": Variant(
        "grouped_attention", "group=3,causal", GROUPS | {"T": 50}, grouped_causal_attention
    ),
    "groups f16 D=64": Variant("grouped_attention", "group=3,D=64", GROUPS, grouped_attention, dtype="f16"),
    "packed, causal": Variant("packed_attention", "causal,D=64,group=2", PACKED | {"G": 1}, packed_causal_attention),
    "packed, most sequences empty": Variant("packed_attention", "", PACKED | {"N": 40}, packed_attention, dtype="f16"),
    "packed, one sequence": Variant("packed_attention", "", PACKED | {"N": 2}, packed_attention),
    "decode, more rows than a tile": Variant("decode_attention", "splits=3", DECODED | {"R": 20}, decode_attention),
    "decode, more splits than blocks": Variant(
        "decode_attention", "splits=7,D=64", DECODED, decode_attention, dtype="f16", ranks=2
    ),
    "window of one": Variant("window_attention", "window=1", ONE, window_of(1)),
    "window of a block": Variant("window_attention", "window=128", ONE, window_of(128)),
    "window of all": Variant("window_attention", "window=1024,D=64", ONE, window_of(1024)),
    "window, more rows than keys": Variant("window_attention", "window=60", ONE | {"T": 90}, window_of(60)),
}


@pytest.mark.parametrize("name", sweep(VARIANTS, lambda name: list(VARIANTS).index(name) % 2 == 0))
def test_variant(name: str) -> None:
    """The formula in float64, the error bound, and the same bits at the roles level, whose protocol is right."""
    variant = VARIANTS[name]
    module, ranks, dims = variant.at("tile").module, variant.ranks, variant.dims
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=7)
    expected = reference(module, ranks=ranks, dims=dims, inputs=inputs)
    outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=7)
    wanted = variant.formula({**inputs, **dims}, ranks)
    for array in expected:
        written = expected[array].written
        np.testing.assert_array_equal(written, ~np.isnan(wanted[array]))
        np.testing.assert_allclose(expected[array].value[written], wanted[array][written], rtol=1e-9, atol=1e-9)
    assert all(found.ok for found in compare(outputs, expected))

    roles = variant.at("roles")
    again = simulate(roles.module, ranks=ranks, dims=dims, inputs=inputs, seed=3, ctas=2)
    assert {array: values.tobytes() for array, values in again.items()} == {
        array: values.tobytes() for array, values in outputs.items()
    }
    found = check_statically(roles.kernel, ranks=ranks, dims=dims)
    assert not found.findings
    assert not found.undecided


def test_what_follows_a_sequence_is_nothing_to_it() -> None:
    """TMA reads on, past the last key of a sequence: of the next one all are infinite, or NaN."""
    variant = Variant("packed_attention", "causal", {"H": 1, "G": 1, "S": 20, "T": 30, "N": 3})
    inputs = draw_inputs(variant.at("tile").module, ranks=1, dims=variant.dims, seed=1)
    inputs["rows"][0], inputs["keys"][0] = (0, 9, 20), (0, 10, 30)
    outputs = [simulate(variant.at("roles").module, ranks=1, dims=variant.dims, inputs=inputs)["O"]]
    for value in (np.inf, np.nan):
        inputs["K"][:, 10:] = inputs["V"][:, 10:] = value
        outputs.append(simulate(variant.at("roles").module, ranks=1, dims=variant.dims, inputs=inputs)["O"])
        assert outputs[-1][:, :9].tobytes() == outputs[0][:, :9].tobytes()
        assert np.isnan(outputs[-1][:, 9:].astype(float)).all()
