"""Channels between the roles of a CTA, and how CTAs share tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.diagnostics import PkcError
from pkc.location import Source
from pkc.sim import errors
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.sim.helpers import f64, finding, parse

PIPE = """
pk.kernel @pipe(%X: !pk.private<[M], f32> {{pk.name = "X"}}, %Y: !pk.private<[M], f32> {{pk.name = "Y"}}) {{
  %count = pk.block_count <M by 4>
  %0 = pk.channel "X" stages {stages} : !pk.channel<!pk.tile<4xf32>>
  pk.role loader {{
    pk.tasks (%i) in (%count) attributes {{per_cta}} {{
      %m = pk.block[%i] : !pk.block<M by 4>
      pk.acquire %0 : !pk.channel<!pk.tile<4xf32>> loc("pipe.pk":1:5)
      %t = pk.load %X[%m : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
      pk.commit %0, %t : !pk.channel<!pk.tile<4xf32>>, !pk.tile<4xf32>
    }}
  }}
  pk.role storer {{
    pk.tasks (%i) in (%count) attributes {{per_cta}} {{
      %m = pk.block[%i] : !pk.block<M by 4>
      %t = pk.consume %0 : !pk.channel<!pk.tile<4xf32>> -> !pk.tile<4xf32> loc("pipe.pk":2:5)
      {before}
      pk.store %t, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
      {after}
    }}
  }}
}}"""
RELEASE = "pk.release %0 : !pk.channel<!pk.tile<4xf32>>"


def pipe(stages: int = 2, before: str = "", after: str = RELEASE) -> Any:
    return parse(PIPE.format(stages=stages, before=before, after=after))


def run(
    module: Any, ranks: int = 1, seed: int = 0, ctas: int = 1, **dims: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed)
    return inputs, simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)


@pytest.mark.parametrize("stages", [1, 2, 3, 16])
@pytest.mark.parametrize("ctas", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_tiles_come_in_order(stages: int, ctas: int, seed: int) -> None:
    inputs, outputs = run(pipe(stages), ranks=2, seed=seed, ctas=ctas, M=33)
    np.testing.assert_array_equal(outputs["Y"], f64(inputs["X"]))


@pytest.mark.parametrize("seed", range(4))
def test_a_tile_used_after_its_release_is_lost(seed: int) -> None:
    inputs, outputs = run(pipe(before=RELEASE, after=""), seed=seed, M=33)
    assert not np.array_equal(outputs["Y"], f64(inputs["X"]))


def test_a_consumer_that_never_releases_blocks_the_producer() -> None:
    Source("pipe.pk", "    load\n    store\n").remember()
    found = finding(pipe(stages=2, after=""), 1, M=24)
    assert isinstance(found, errors.Deadlock)
    assert found.blocked.splitlines()[1:] == [
        "    rank 0, loader of CTA 0, pipe.pk:1: `free stages of X, CTA[0]` is 2, waits for 3",
        "    rank 0, loader of CTA 1, pipe.pk:1: `free stages of X, CTA[1]` is 2, waits for 3",
        "    rank 0, storer of CTA 0, pipe.pk:2: `full stages of X, CTA[0]` is 2, waits for 3",
        "    rank 0, storer of CTA 1, pipe.pk:2: `full stages of X, CTA[1]` is 2, waits for 3",
    ]


def test_the_report_of_a_full_channel() -> None:
    Source("pipe.pk", "    load\n    store\n").remember()
    module = pipe(stages=1, after="")
    inputs = draw_inputs(module, ranks=1, dims={"M": 8}, seed=0)
    with pytest.raises(PkcError) as raised:
        simulate(module, ranks=1, dims={}, inputs=inputs, ctas=1)
    assert (
        str(raised.value)
        == """\
error[PK701]: deadlock: 2 waits blocked, nothing left to run
 --> pipe.pk:1:5
  |
1 |     load
  |     ^^^^ waits here
 ::: pipe.pk:2:5
  |
2 |     store
  |     ----- and here
  = note: blocked:
    rank 0, loader, pipe.pk:1: `free stages of X, CTA[0]` is 1, waits for 2
    rank 0, storer, pipe.pk:2: `full stages of X, CTA[0]` is 1, waits for 2
  = help: each wait needs as many signals to its own rank as it counts"""
    )


def test_a_consumer_waits_for_what_is_not_committed() -> None:
    Source("pipe.pk", "    load\n    store\n").remember()
    text = PIPE.format(stages=2, before="", after=RELEASE)
    commit = "pk.commit %0, %t : !pk.channel<!pk.tile<4xf32>>, !pk.tile<4xf32>"
    found = finding(parse(text.replace(commit, "")), 1, M=4)
    assert isinstance(found, errors.Deadlock)
    assert found.blocked.splitlines()[1:] == [
        "    rank 0, storer of CTA 0, pipe.pk:2: `full stages of X, CTA[0]` is 0, waits for 1",
    ]


CTAS = """
pk.kernel @ctas(%T: !pk.private<[M], i32> {{pk.name = "T"}}, %X: !pk.pgl<[M, M], f32, symmetric> {{pk.name = "X"}},
                %N: !pk.pgl<[4], f32, symmetric> {{pk.name = "N"}}) {{
  %one = arith.constant 1 : index
  %rank = pk.rank
  %m = pk.dim "M"
  pk.role storer {{
    pk.tasks (%i) in (%m) attributes {{per_cta}} {{
      {inner}
    }}
    %zero = arith.constant 0 : index
    %b = pk.block[%zero] : !pk.block<4 by 4>
    %t = pk.full 1.0 : f32 : !pk.tile<4xf32>
    pk.store_add %t, %N at %rank[%b : !pk.block<4 by 4>] : !pk.tile<4xf32>, !pk.pgl<[4], f32, symmetric>
  }}
}}"""
NESTED = """
      %n = pk.read %T[%i] : !pk.private<[M], i32>
      pk.tasks (%j) in (%n) attributes {per_cta} {
        %one_more = pk.full 1.0 : f32 : !pk.tile<f32>
        pk.store_add %one_more, %X at %rank[%i, %j : index, index] : !pk.tile<f32>, !pk.pgl<[M, M], f32, symmetric>
      }"""
FLAT = """
      %one_more = pk.full 1.0 : f32 : !pk.tile<f32>
      pk.store_add %one_more, %X at %rank[%i, %i : index, index] : !pk.tile<f32>, !pk.pgl<[M, M], f32, symmetric>"""
M = 5
COUNTS = np.array([[3, 0, 5, 1, 2]] * 2, np.int32)


@pytest.mark.parametrize("ctas", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("nested", [False, True])
def test_each_task_is_run_once_by_one_cta(ctas: int, seed: int, nested: bool) -> None:
    module = parse(CTAS.format(inner=NESTED if nested else FLAT))
    zeros = {"X": np.zeros((2, M, M), np.float32), "N": np.zeros((2, 4), np.float32)}
    inputs = zeros | ({"T": COUNTS} if nested else {})
    outputs = simulate(module, ranks=2, dims={"M": M}, inputs=inputs, seed=seed, ctas=ctas)
    wanted = np.arange(M) < COUNTS[0][:, None] if nested else np.eye(M)
    np.testing.assert_array_equal(outputs["X"], np.stack([wanted, wanted]))
    # What stands outside of tasks is run by every CTA.
    np.testing.assert_array_equal(outputs["N"], np.full((2, 4), ctas))


def test_a_stage_holds_several_tiles_and_scalars() -> None:
    text = PIPE.format(stages=2, before="%v = pk.mul %t, %u : !pk.tile<4xf32>", after=RELEASE)
    text = text.replace("!pk.channel<!pk.tile<4xf32>>", "!pk.channel<!pk.tile<4xf32>, !pk.tile<f32>>")
    text = text.replace("-> !pk.tile<4xf32> loc", "-> !pk.tile<4xf32>, !pk.tile<f32> loc")
    text = text.replace("%t = pk.consume", "%t, %s = pk.consume")
    text = text.replace(
        "%v = pk.mul", "%u = pk.broadcast %s axes [] : !pk.tile<f32> -> !pk.tile<4xf32>\n      %v = pk.mul"
    )
    text = text.replace("pk.store %t", "pk.store %v")
    text = text.replace(
        "pk.commit %0, %t : !pk.channel<!pk.tile<4xf32>, !pk.tile<f32>>, !pk.tile<4xf32>",
        "%s = pk.load %X[%i : index] : !pk.private<[M], f32> -> !pk.tile<f32>\n"
        "pk.commit %0, %t, %s : !pk.channel<!pk.tile<4xf32>, !pk.tile<f32>>, !pk.tile<4xf32>, !pk.tile<f32>",
    )
    inputs, outputs = run(parse(text), ctas=2, M=16)
    x = np.asarray(inputs["X"], np.float32)
    np.testing.assert_array_equal(outputs["Y"], x * np.repeat(x[:, :4], 4, axis=1))


PHASES = """
pk.kernel @phases(%X: !pk.private<[M], f32> {{pk.name = "X"}}, %Y: !pk.private<[M], f32> {{pk.name = "Y"}},
                  %over: !pk.signal<[1]> {{pk.name = "over"}}) {{
  %count = pk.block_count <M by 4>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %0 = pk.channel "X" stages 2 {{phase = 0 : i64}} : !pk.channel<!pk.tile<4xf32>>
  %1 = pk.channel "Y" stages 2 {{phase = 1 : i64}} : !pk.channel<!pk.tile<4xf32>>
  pk.role loader {{
    pk.tasks (%i) in (%count) attributes {{per_cta}} {{
      %m = pk.block[%i] : !pk.block<M by 4>
      pk.acquire %0 : !pk.channel<!pk.tile<4xf32>>
      %t = pk.load %X[%m : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
      pk.commit %0, %t : !pk.channel<!pk.tile<4xf32>>, !pk.tile<4xf32>
    }}
    {wait}
    pk.tasks (%i) in (%one) attributes {{per_cta}} {{
      %m = pk.block[%i] : !pk.block<M by 4>
      pk.acquire %1 : !pk.channel<!pk.tile<4xf32>> loc("pipe.pk":1:5)
      %t = pk.load %X[%m : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
      pk.commit %1, %t : !pk.channel<!pk.tile<4xf32>>, !pk.tile<4xf32>
    }}
  }}
  pk.role storer {{
    pk.tasks (%i) in (%count) attributes {{per_cta}} {{
      %m = pk.block[%i] : !pk.block<M by 4>
      %t = pk.consume %0 : !pk.channel<!pk.tile<4xf32>> -> !pk.tile<4xf32>
      pk.store %t, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
      pk.release %0 : !pk.channel<!pk.tile<4xf32>>
    }}
    pk.signal %over at %rank[%zero] by %one : !pk.signal<[1]>
    pk.tasks (%i) in (%one) attributes {{per_cta}} {{
      %t = pk.consume %1 : !pk.channel<!pk.tile<4xf32>> -> !pk.tile<4xf32>
      pk.release %1 : !pk.channel<!pk.tile<4xf32>>
    }}
  }}
}}"""


@pytest.mark.parametrize("seed", range(6))
def test_memory_of_two_phases(seed: int) -> None:
    """Whoever fills the channel of the second phase must know that the first one is over, in whatever order."""
    waiting = parse(PHASES.format(wait="pk.wait %over[%zero] for %one : !pk.signal<[1]>"))
    inputs, outputs = run(waiting, seed=seed, M=12)
    np.testing.assert_array_equal(outputs["Y"], f64(inputs["X"]))
    found = finding(parse(PHASES.format(wait="")), 1, seed=seed, M=12)
    assert isinstance(found, errors.MemoryInUse)
    assert {found.channel, found.other} == {"X", "Y"}
