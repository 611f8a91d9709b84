"""What is loaded at shifted places comes as one tile: results stay, at both levels and thread by thread."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pkc.dialect.windows import WindowOp
from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import compile_program
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes import TILE_PIPELINE
from pkc.passes.run import run_pipeline
from pkc.passes.tile.load_windows import LoadWindows
from pkc.passes.tile.unroll_taps import UnrollTaps
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.codegen.test_tiles import ALIGNED, UNEVEN, check, sizes_of
from tests.sweeps import sweep
from tests.windows import MATMULS, PROGRAMS

RAGGED = {**ALIGNED, "M": 17, "N": 140, "K": 131}
"""Blocks that end inside, of rows that TMA loads."""


def _tile(text: str, *, joined: bool = True) -> Any:
    module = build_module(parse_text(Source("k.pk", text)), constants={})
    run_pipeline(module, [step for step in TILE_PIPELINE if joined or not isinstance(step, LoadWindows | UnrollTaps)])
    return module


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay(name: str) -> None:
    text = PROGRAMS[name]
    apart, joined = (_tile(text, joined=one) for one in (False, True))
    assert not any(isinstance(op, WindowOp) for op in apart.walk())
    assert any(isinstance(op, WindowOp) for op in joined.walk())
    roles = compile_program(parse_text(Source("k.pk", text)), level="roles").module
    for seed, every in enumerate((ALIGNED, RAGGED, {**RAGGED, "M": 5, "N": 20, "K": 9})):
        sizes = sizes_of(text, every)
        inputs = draw_inputs(joined, ranks=1, dims=sizes, seed=seed)
        results = [simulate(one, ranks=1, dims=sizes, inputs=inputs) for one in (apart, joined, roles)]
        for other in results[1:]:
            for result, expected in results[0].items():
                np.testing.assert_array_equal(expected, other[result])


ALONE = [name for name in PROGRAMS if name not in MATMULS and name != "two phases"]
SIZES = {"aligned": ALIGNED, "ragged": RAGGED, "uneven": UNEVEN}


def _often(name: str, sizes: str) -> bool:
    return sizes == ("ragged" if ALONE.index(name) % 2 else "aligned")


@pytest.mark.parametrize(
    ("name", "sizes"), [*sweep(product(ALONE, ("aligned", "ragged")), _often), ("stencil", "uneven"), ("box", "uneven")]
)
def test_thread_by_thread(name: str, sizes: str) -> None:
    check(PROGRAMS[name], SIZES[sizes])


def test_estimates_know_what_is_loaded_once() -> None:
    """A stencil takes as long as a copy of its array, and its tiles are not those of few rows."""
    text = PROGRAMS["stencil"].replace("blocks(M, 8), blocks(N, 64)", "blocks(M, 32), blocks(N, 128)")
    found = autoschedule(parse_text(Source("k.pk", text)), dims={"M": 8192, "N": 8192}, ranks=1)
    assert int(found.schedule.get("tile_M", 32)) >= 16
