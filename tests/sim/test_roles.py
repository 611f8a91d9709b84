"""Programs that are written as roles: interleaving, signals, deadlocks."""

import numpy as np
import pytest

from pkc.location import Source
from pkc.sim import errors, order_errors
from tests.sim.helpers import checked, f64, finding, parse

PUSH = """
pk.kernel @push(%X: !pk.private<[M], bf16> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"},
                %G: !pk.pgl<[M], bf16, symmetric> {pk.name = "G", pk.scratch},
                  %ready: !pk.signal<[ranks]> {pk.name = "ready"}) {
  %one = arith.constant 1 : index
  %rank = pk.rank
  %next = pk.ring_peer %one
  %ranks = pk.dim "ranks"
  %count = pk.block_count <M by 4>
  pk.role communicator {
    pk.tasks (%i) in (%count) {
      %m = pk.block[%i] : !pk.block<M by 4>
      %t = pk.load %X[%m : !pk.block<M by 4>] : !pk.private<[M], bf16> -> !pk.tile<4xbf16>
      pk.store %t, %G at %next[%m : !pk.block<M by 4>] : !pk.tile<4xbf16>, !pk.pgl<[M], bf16, symmetric>
      pk.signal %ready at %next [%rank] by %one : !pk.signal<[ranks]> loc("push.pk":5:9)
    }
  }
  pk.role consumer {
    %before = arith.addi %rank, %ranks : index
    %b = arith.subi %before, %one : index
    %from = arith.remui %b, %ranks : index
    WAIT
    pk.tasks (%i) in (%count) {
      %m = pk.block[%i] : !pk.block<M by 4>
      %t = pk.load %G[%m : !pk.block<M by 4>] : !pk.pgl<[M], bf16, symmetric> -> !pk.tile<4xbf16>
      %u = pk.cast %t : !pk.tile<4xbf16> -> !pk.tile<4xf32>
      pk.store %u, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    }
  }
}"""
WAIT = 'pk.wait %ready [%from] for %count : !pk.signal<[ranks]> loc("push.pk":8:9)'
TOO_MUCH = f"%more = arith.addi %count, %one : index\n    {WAIT.replace('%count', '%more')}"


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_signals_order_stores(ranks, seed):
    inputs, outputs = checked(parse(PUSH.replace("WAIT", WAIT)), ranks, seed=seed, M=10)
    np.testing.assert_array_equal(outputs["Y"], f64(np.roll(inputs["X"], 1, axis=0)))


@pytest.mark.parametrize("seed", range(5))
def test_a_missing_wait_is_found_whoever_comes_first(seed):
    found = finding(parse(PUSH.replace("WAIT", "")), 3, seed=seed, M=10)
    assert isinstance(found, errors.ReadUnwritten | order_errors.Race)
    assert found.array == "G"


def test_the_report_of_a_deadlock():
    Source("push.pk", "\n" * 7 + "        wait(ready[...], 4)\n").remember()
    found = finding(parse(PUSH.replace("WAIT", TOO_MUCH)), 3, M=10)
    assert isinstance(found, errors.Deadlock)
    assert (
        found.render()
        == """\
error[PK701]: deadlock: 3 waits blocked, nothing left to run
 --> push.pk:8:9
  |
8 |         wait(ready[...], 4)
  |         ^^^^ waits here
  = note: blocked:
    rank 0, consumer, push.pk:8: `ready[2]` is 3, waits for 4
    rank 1, consumer, push.pk:8: `ready[0]` is 3, waits for 4
    rank 2, consumer, push.pk:8: `ready[1]` is 3, waits for 4
  = help: each wait needs as many signals to its own rank as it counts"""
    )


def test_a_long_report_is_cut():
    found = finding(parse(PUSH.replace("WAIT", TOO_MUCH)), 16, M=10)
    assert isinstance(found, errors.Deadlock)
    assert found.blocked.count("\n") == 13
    assert found.blocked.endswith("and 4 more")


BARRIERS = """
pk.kernel @rounds(%X: !pk.pgl<[M], bf16, symmetric> {pk.name = "X"}, %T: !pk.pgl<[M], f32, symmetric> {pk.name =
  "T", pk.scratch},
                  %done: !pk.signal<[1]> {pk.name = "done"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  pk.role communicator {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %own = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.store %own, %T[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, symmetric>
    pk.barrier %done [%zero] : !pk.signal<[1]>
    %rounds = arith.constant 3 : index
    scf.for %i = %zero to %rounds step %one {
      %sum = pk.reduce %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], bf16, symmetric> -> !pk.tile<16xf32>
      %peer = pk.ring_peer %i
      pk.store_add %sum, %T at %peer[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, symmetric>
      pk.barrier %done [%zero] : !pk.signal<[1]>
    }
    pk.all_reduce %T[%part : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric>
    pk.signal_all %done [%zero] by %one : !pk.signal<[1]>
    %ranks = pk.dim "ranks"
    %five = arith.constant 5 : index
    %all = arith.muli %ranks, %five : index
    pk.wait %done [%zero] for %all : !pk.signal<[1]>
    %t = pk.load %T[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<16xf32>
    pk.store %t, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}""".replace("    pk.all_reduce", "    %part = pk.block[%zero] of %rank : !pk.block<M by 16>\n    pk.all_reduce")


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_repeated_barriers_and_reductions(ranks, seed):
    inputs, outputs = checked(parse(BARRIERS), ranks, seed=seed, M=13)
    want = f64(inputs["X"]).sum(axis=0) * 3 * ranks
    np.testing.assert_allclose(outputs["Y"], np.broadcast_to(want, (ranks, 13)), rtol=1e-5, atol=1e-4)
