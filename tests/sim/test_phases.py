"""What may not happen inside one phase."""

import numpy as np
import pytest

from pkc.sim import errors
from tests.sim.helpers import checked, copy, finding, parse

TWO_PHASES = """
pk.kernel @phases(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"},
                  %Z: !pk.private<[M], f32> {pk.name = "Z"}) {
  %count = pk.block_count <M by 8>
  pk.tasks (%i) in (%count) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %t = pk.load %X[%m : !pk.block<M by 8>] : !pk.private<[M], f32> -> !pk.tile<8xf32>
    pk.accumulate %t, %Y[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, replicate>
    BETWEEN
    %m2 = pk.block[%j] : !pk.block<M by 8>
    %u = pk.load %Y[%m2 : !pk.block<M by 8>] : !pk.pgl<[M], f32, replicate> -> !pk.tile<8xf32>
    pk.store %u, %Z[%m2 : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}"""


@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_a_sum_is_complete_in_the_next_phase(ranks):
    inputs, outputs = checked(parse(TWO_PHASES.replace("BETWEEN", "} pk.tasks (%j) in (%count) {")), ranks, M=21)
    np.testing.assert_allclose(outputs["Z"], np.broadcast_to(inputs["X"].sum(axis=0), (ranks, 21)), rtol=1e-5)


def test_read_of_a_sum_in_its_phase():
    one_phase = TWO_PHASES.replace("BETWEEN", "%j = arith.addi %i, %zero : index").replace(
        "%count =", "%zero = arith.constant 0 : index\n%count ="
    )
    found = finding(parse(one_phase), 2, M=21)
    assert isinstance(found, errors.ReadOfSum)
    assert found.render().splitlines()[0] == "error[PK703]: `Y` is read while it is summed"


@pytest.mark.parametrize("target", ["shard 0", "replicate"])
def test_two_ranks_write_one_element(target):
    module = copy("private", target, local=False)
    found = finding(module, 3, M=50, N=20)
    assert isinstance(found, errors.DoubleWrite)
    assert (found.array, found.element, found.second) == ("Y", "[0, 0]", "rank 1, task (m = block 0, n = block 0)")
    assert found.also[0].text == "and here by rank 0, task (m = block 0, n = block 0)"
    checked(module, 1, M=50, N=20)


def test_two_tasks_write_one_element():
    module = parse("""
pk.kernel @clash(%Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %four = arith.constant 4 : index
  %zero = arith.constant 0 : index
  %t = pk.full 1.0 : f32 : !pk.tile<4xf32>
  pk.tasks (%i) in (%four) {
    %q = arith.floordivsi %i, %four : index
    %m = pk.block[%q] : !pk.block<M by 4>
    %late = arith.cmpi sge, %i, %four : index
    pk.store %t, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    pk.store %t, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
  }
}""")
    found = finding(module, 2, M=9)
    assert isinstance(found, errors.DoubleWrite)
    assert (found.element, found.second) == ("[0] of rank 0", "rank 0, task (i = 1)")


def test_a_task_reads_what_another_writes():
    module = parse("""
pk.kernel @shift(%Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %one = arith.constant 1 : index
  %count = pk.block_count <M by 4>
  pk.tasks (%i) in (%count) {
    %m = pk.block[%i] : !pk.block<M by 4>
    %j = arith.subi %i, %one : index
    %zero = arith.constant 0 : index
    %k = arith.maxsi %j, %zero : index
    %before = pk.block[%k] : !pk.block<M by 4>
    %t = pk.load %Y[%before : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
    pk.store %t, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
  }
}""")
    found = finding(module, 1, M=9)
    assert isinstance(found, errors.ReadOfOther)
    assert (found.element, found.reader) == ("[0] of rank 0", "rank 0, task (m = block 1)")
    checked(module, 2, M=4)
