"""Whole programs against formulas on global arrays."""

import ml_dtypes
import numpy as np
import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate
from tests.sim.helpers import GEMM_RS, checked, copy, f64, parse


@pytest.mark.parametrize(
    ("ranks", "m", "n", "k"), [(1, 33, 65, 17), (2, 64, 64, 32), (3, 100, 70, 50), (5, 7, 3, 5), (8, 130, 90, 33)]
)
def test_gemm_rs(ranks, m, n, k):
    inputs, outputs = checked(parse(GEMM_RS), ranks, M=m, N=n, K=k)
    matmuls = np.einsum("rmk,rkn->rmn", f64(inputs["A"]), f64(inputs["B"]))
    want = matmuls.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64).sum(axis=0)
    assert outputs["C"].dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(f64(outputs["C"]), want, rtol=2**-7, atol=2**-6 * np.sqrt(k))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("source", ["shard 0", "replicate"])
@pytest.mark.parametrize("target", ["shard 0", "replicate"])
def test_every_rank_copies_its_rows(source, target, ranks):
    inputs, outputs = checked(copy(source, target, local=True), ranks, M=50, N=20)
    np.testing.assert_array_equal(f64(outputs["Y"]), f64(inputs["X"]))


@pytest.mark.parametrize("source", ["private", "symmetric"])
def test_all_to_own(source):
    inputs, outputs = checked(copy(source, "private", local=False), 3, M=50, N=20)
    np.testing.assert_array_equal(f64(outputs["Y"]), f64(inputs["X"]))


@pytest.mark.parametrize("target", ["shard 0", "shard 1", "replicate"])
@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_sums_are_taken_in_rank_order_and_rounded_once(target, ranks):
    module = copy("private", target, local=False, write="pk.accumulate")
    inputs, outputs = checked(module, ranks, M=21, N=33)
    total = np.zeros((21, 33), np.float32)
    for rank in range(ranks):
        total += inputs["X"][rank].astype(np.float32)
    np.testing.assert_array_equal(outputs["Y"], total.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_rows_of_a_tile_go_to_their_owners(ranks):
    module = copy("private", "shard 0", local=False, write="pk.accumulate", element="f32")
    for op in module.walk():
        op.properties.pop("sharded", None)
    x = np.random.default_rng(ranks).integers(-99, 99, (ranks, 29, 4)).astype(np.float32)
    np.testing.assert_array_equal(simulate(module, ranks=ranks, dims={}, inputs={"X": x})["Y"], x.sum(axis=0))


def test_sums_of_integers_wrap():
    module = copy("private", "replicate", local=False, write="pk.accumulate", element="i32")
    x = np.full((3, 9, 5), 2**30, np.int32)
    outputs = simulate(module, ranks=3, dims={}, inputs={"X": x})
    assert (outputs["Y"] == 3 * 2**30 - 2**32).all()


def test_unwritten_elements_stay_poison():
    module = copy("private", "private", local=True)
    inputs, outputs = checked(module, 2, M=10, N=4)
    assert np.isnan(f64(outputs["Y"])[0, 5:]).all()
    np.testing.assert_array_equal(outputs["Y"][0, :5], inputs["X"][0, :5])


@pytest.mark.parametrize("element", ["i32", "i8"])
def test_unwritten_integers_stay_what_they_are(element):
    module = copy("private", "private", local=True, element=element)
    inputs, outputs = checked(module, 2, M=10, N=4)
    np.testing.assert_array_equal(outputs["Y"][0, :5], inputs["X"][0, :5])
    assert len(np.unique(outputs["Y"][0, 5:])) == 1


@pytest.mark.parametrize("element", ["f32", "bf16", "i32", "i8"])
def test_conditions_are_numbers_of_the_type_that_they_are_cast_to(element):
    text = f"""
kernel hits(X: f32[M], Y: {element}[M], total: i32[1], any: f32[1]):
    for m in tasks(blocks(M, 16)):
        Y[m] = cast(X[m] > 0.5 or X[m] < -0.5, {element})
    seen = zeros(i32)
    for m in blocks(M, 16):
        seen += rowsum(cast(X[m] > 0.0, i32))
    total[0] = seen
    any[0] = cast(seen > 0, f32)
"""
    module = compile_program(parse_text(Source("hits.pk", text))).module
    inputs, outputs = checked(module, 1, M=37)
    x = inputs["X"]
    np.testing.assert_array_equal(f64(outputs["Y"]), np.abs(x) > 0.5)
    assert outputs["total"][0] == (x > 0).sum()
    assert outputs["any"][0] == 1.0


def test_gather_and_scatter_accumulate():
    module = parse("""
pk.kernel @permute(
    %X: !pk.pgl<[T, N], f32, shard 0> {pk.name = "X"}, %from: !pk.private<[P], i32> {pk.name = "from"},
    %to: !pk.private<[P], i32> {pk.name = "to"}, %count: !pk.private<[1], i32> {pk.name = "count"},
    %Y: !pk.pgl<[T, N], f32, replicate> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %stop = pk.read %count[%zero] : !pk.private<[1], i32>
  %entries = pk.block_count <P by 8> to %stop
  pk.tasks (%i) in (%entries) {
    %p = pk.block[%i] to %stop : !pk.block<P by 8>
    %n = pk.block[%zero] : !pk.block<N by 32>
    %rows = pk.load %from[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %t = pk.gather %X rows %rows[%n : !pk.block<N by 32>] : !pk.pgl<[T, N], f32, shard 0>, !pk.tile<8xi32> ->
      !pk.tile<8x32xf32>
    %target = pk.load %to[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %clipped = pk.clip %target axis 0 to %p fill -1 : i32 : !pk.tile<8xi32>, !pk.block<P by 8> -> !pk.tile<8xi32>
    pk.scatter_accumulate %t, %Y rows %clipped[%n : !pk.block<N by 32>] : !pk.tile<8x32xf32>, !pk.pgl<[T, N], f32,
      replicate>, !pk.tile<8xi32>
  }
}""")
    for ranks in (1, 3, 5):
        inputs, outputs = checked(module, ranks, seed=3, T=13, N=20, P=30)
        want = np.zeros((13, 20))
        for rank in range(ranks):
            for i in range(inputs["count"][rank, 0]):
                source, target = inputs["from"][rank, i], inputs["to"][rank, i]
                if source >= 0 and target >= 0:
                    want[target] += inputs["X"][source]
        np.testing.assert_allclose(outputs["Y"], want, rtol=1e-5, atol=1e-5)


def test_symmetric_gather_and_scalars():
    module = parse("""
pk.kernel @pick(
    %X: !pk.pgl<[T, N], f32, symmetric> {pk.name = "X"}, %table: !pk.private<[P, 2], i32> {pk.name = "table"},
    %scale: f32 {pk.name = "scale"}, %shift: i32 {pk.name = "shift"}, %Y: !pk.private<[P, N], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %count = pk.block_count <P by 8>
  pk.tasks (%i) in (%count) {
    %p = pk.block[%i] : !pk.block<P by 8>
    %n = pk.block[%zero] : !pk.block<N by 32>
    %pair = pk.block[%zero] : !pk.block<2 by 2>
    %rows = pk.load %table[%p, %pair : !pk.block<P by 8>, !pk.block<2 by 2>] : !pk.private<[P, 2], i32> ->
      !pk.tile<8x2xi32>
    %t = pk.gather %X rows %rows[%n : !pk.block<N by 32>] : !pk.pgl<[T, N], f32, symmetric>, !pk.tile<8x2xi32> ->
      !pk.tile<8x32xf32>
    %s = pk.splat %scale : f32 -> !pk.tile<8x32xf32>
    %u = pk.mul %t, %s : !pk.tile<8x32xf32>
    %v = pk.splat %shift : i32 -> !pk.tile<8x32xi32>
    %w = pk.cast %v : !pk.tile<8x32xi32> -> !pk.tile<8x32xf32>
    %y = pk.add %u, %w : !pk.tile<8x32xf32>
    pk.store %y, %Y[%p, %n : !pk.block<P by 8>, !pk.block<N by 32>] : !pk.tile<8x32xf32>, !pk.private<[P, N], f32>
  }
}""")
    inputs, outputs = checked(module, 3, T=6, N=10, P=11)
    ranks, rows = inputs["table"][..., 0], inputs["table"][..., 1]
    picked = np.where(rows[..., None] < 0, 0, inputs["X"][ranks, rows])
    np.testing.assert_allclose(outputs["Y"], picked * inputs["scale"] + inputs["shift"], rtol=1e-6)


def test_branches_loops_and_index_arithmetic():
    module = parse("""
pk.kernel @steps(%Y: !pk.private<[6], i32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %rank = pk.rank
  %all = pk.dim "ranks"
  %next = pk.ring_peer %one
  %six = arith.constant 6 : index
  pk.tasks (%i) in (%six) {
    %half = arith.floordivsi %i, %two : index
    %even = arith.muli %half, %two : index
    %is_even = arith.cmpi eq, %i, %even : index
    %v = scf.if %is_even -> (index) {
      %sum = scf.for %q = %zero to %i step %one iter_args(%s = %rank) -> (index) {
        %t = arith.addi %s, %q : index
        scf.yield %t : index
      }
      scf.yield %sum : index
    } else {
      %t = arith.subi %all, %next : index
      scf.yield %t : index
    }
    %tile = pk.splat %v : index -> !pk.tile<i32>
    pk.store %tile, %Y[%i : index] : !pk.tile<i32>, !pk.private<[6], i32>
  }
}""")
    _, outputs = checked(module, 3)
    want = [[r + sum(range(i)) if i % 2 == 0 else 3 - (r + 1) % 3 for i in range(6)] for r in range(3)]
    np.testing.assert_array_equal(outputs["Y"], want)
