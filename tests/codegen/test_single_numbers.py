"""A role without a warpgroup that adds up one number of each rank, at the machine level, thread by thread."""

from __future__ import annotations

import numpy as np

from pkc.cli.opt import parse_ir
from pkc.codegen.build import machine_level
from pkc.dialect.program import KernelOp
from tests.codegen.threads import Memory
from tests.codegen.together import Together

KERNEL = """
pk.kernel @k(%S: !pk.pgl<[ranks, 3], f32, replicate> {pk.name = "S"}, %C: !pk.pgl<[3], f32, replicate> {pk.name = "C"})
    attributes {comm_sms = 0 : i64} {
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 0 : i64, registers = 80 : i64} {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %ranks = pk.dim "ranks"
    pk.tasks (%i) in (%three) attributes {per_cta} {
      %begin = pk.full 0.0 : f32 : !pk.tile<f32>
      %total = scf.for %j = %zero to %ranks step %one iter_args(%t = %begin) -> (!pk.tile<f32>) {
        %s = pk.load %S[%j, %i : index, index] {transfer = {by = "register", why = ""}}
          : !pk.pgl<[ranks, 3], f32, replicate> -> !pk.tile<f32>
        %n = pk.add %t, %s : !pk.tile<f32>
        scf.yield %n : !pk.tile<f32>
      }
      pk.store %total, %C at %r[%i : index] {transfer = {by = "register", why = ""}}
        : !pk.tile<f32>, !pk.pgl<[3], f32, replicate>
    }
  }
}
"""


def test_one_thread_adds_up_a_number_of_each_rank() -> None:
    (kernel,) = parse_ir(KERNEL, "numbers.mlir").ops
    assert isinstance(kernel, KernelOp)
    lowered = machine_level(kernel)
    memory = Memory(lowered, 2, {})
    slots = np.array([[1, -2.5, 64], [2, 0.5, 0.125]], np.float32)
    memory.arrays["S"][1][...] = slots
    Together(memory, 1, 0, 1).run(lowered.body.block, range(64))
    np.testing.assert_array_equal(memory.arrays["C"][1], [3, -2, 64.125])
    assert not np.isin([3, -2, 64.125], memory.arrays["C"][0]).any()
