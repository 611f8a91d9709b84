"""How many registers tiles need at once."""

from __future__ import annotations

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source

TWICE = """
kernel k(Q: bf16[S, D], K: bf16[T, D], V: bf16[T, D], O: bf16[S, D], D: const = 128):
    for q in tasks(blocks(S, 128)):
        o = zeros(f32, q, D)
        for kv in blocks(T, 128):
            s = Q[q] @ K[kv].T
            o += cast(s * exp2(s), bf16) @ V[kv]
        O[q] = o
"""


def test_operands_of_an_mma_in_flight_live_until_its_wait() -> None:
    """Of each thread: 64 for the result, for the scores, and for 2 to their power; 32 for the product in bf16 of the
    iteration before, which an MMA reads meanwhile."""
    remarks = compile_program(parse_text(Source("k.pk", TWICE)), level="roles").remarks
    (left,) = (remark for remark in remarks if remark.step == "pk-pipeline-mma")
    assert f"would take {3 * 64 + 32} registers of a thread" in left.reason
