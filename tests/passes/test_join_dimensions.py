"""Elements that lie in turn are loaded and stored together: results stay, at both levels and thread by thread."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.types import f32
from pkc.driver.compiler import compile_program
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes import TILE_PIPELINE
from pkc.passes.run import run_pipeline
from pkc.passes.tile.join_dimensions import JoinDimensions
from pkc.sim.array import Array, Placement
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.codegen import threads
from tests.codegen.test_tiles import ALIGNED, UNEVEN, check, sizes_of
from tests.joined import MATMULS, PROGRAMS
from tests.sweeps import sweep

BESIDE = MATMULS | {"in place", "through scratch memory"}
"""Not run thread by thread: matmuls, what is an input and a result, and phases."""


def _tile(text: str, *, joined: bool = True) -> Any:
    module = build_module(parse_text(Source("k.pk", text)), constants={})
    run_pipeline(module, [step for step in TILE_PIPELINE if joined or not isinstance(step, JoinDimensions)])
    return module


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay(name: str) -> None:
    text = PROGRAMS[name]
    apart, joined = (_tile(text, joined=one) for one in (False, True))
    assert not any(isinstance(op, PickOp | ZipOp) for op in apart.walk())
    assert any(isinstance(op, PickOp | ZipOp) for op in joined.walk())
    roles = compile_program(parse_text(Source("k.pk", text)), level="roles").module
    for seed, every in enumerate((ALIGNED, UNEVEN, {**UNEVEN, "M": 5, "K": 40})):
        sizes = sizes_of(text, every)
        inputs = draw_inputs(joined, ranks=1, dims=sizes, seed=seed)
        results = [simulate(one, ranks=1, dims=sizes, inputs=inputs) for one in (apart, joined, roles)]
        for other in results[1:]:
            for result, expected in results[0].items():
                np.testing.assert_array_equal(expected, other[result])


ALONE = [name for name in PROGRAMS if name not in BESIDE]


@pytest.mark.parametrize(
    ("name", "uneven"),
    sweep(product(ALONE, (False, True)), lambda name, uneven: ALONE.index(name) % 2 == uneven),
)
def test_thread_by_thread(name: str, uneven: bool) -> None:
    check(PROGRAMS[name], UNEVEN if uneven else ALIGNED)


def test_callers_have_the_dimensions_that_they_wrote() -> None:
    """A simulated array of 4 x 3 pairs, whose memory has rows of 6."""
    place = Placement("X", (4, 6), f32, None, None, 1, False, False, given=(4, 3, 2))
    content = np.arange(24, dtype=np.float32).reshape(1, 4, 3, 2)
    array = Array(place, content, summed=False, frozen=False)
    assert array.value.shape == (1, 4, 6)
    np.testing.assert_array_equal(array.export(), content)
    assert array.element((0, 1, slice(2, 6)), (3,)) == "[1, 2, 1] of rank 0"
    assert array.address((0, 1, 2, 1)) == ("X", 11)


@pytest.mark.parametrize("sizes", [ALIGNED, UNEVEN], ids=["aligned", "uneven"])
@pytest.mark.parametrize(("kind", "few"), [("bf16", 2), ("f32", 2), ("bf16", 3), ("f32", 3), ("e4m3", 2)])
def test_thread_by_thread_beside_a_matmul(
    kind: str, few: int, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads have the elements that those of MMAs have, whose sums are zero here."""
    of_others = threads._does  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(threads, "_does", lambda name: _clear if name.startswith("wgmma_n") else of_others(name))
    head = f"kernel f(A: bf16[M, K], B: bf16[K, 64], R: {kind}[M, 64, {few}], Y: {kind}[M, 64, {few}]):\n"
    body = "    for m in tasks(blocks(M, 64)):\n        acc = zeros(f32, m, 64)\n"
    body += "        for k in blocks(K, 64):\n            acc += A[m, k] @ B[k, :]\n"
    for place in range(few):
        body += f"        Y[m, :, {place}] = acc * 0.0 + cast(R[m, :, {few - 1 - place}], f32) * {place + 1}.0\n"
    check(head + body, sizes)


def _clear(_: threads.Thread, acc: tuple[list[Any], int], *_operands: Any) -> None:
    registers, start = acc
    registers[start:] = [0.0] * (len(registers) - start)
