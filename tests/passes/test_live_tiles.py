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

MASKED = TWICE.replace("s = Q[q] @ K[kv].T", "s = Q[q] @ K[kv].T; {mask}").replace("s * exp2(s)", "exp2(s)")
APART = "apart = positions(q) + S - positions(kv); s = where(apart >= 0 and apart * 2 < T, s, -inf)"
NOT_OF_POSITIONS = "apart = abs(positions(q) - positions(kv)); s = where(apart >= 9 and apart < T, s, -inf)"


def test_integers_of_positions_take_no_registers() -> None:
    """Others do: 64 beside those of scores and result, with 32 of the iteration before and 4 of each other tile."""
    missed = []
    for mask in (APART, NOT_OF_POSITIONS):
        program = parse_text(Source("k.pk", MASKED.format(mask=mask)))
        remarks = compile_program(program, level="roles").remarks
        missed.append([remark.reason for remark in remarks if remark.step == "pk-pipeline-mma"])
    assert missed[0] == []
    assert len(missed[1]) == 1
    assert "registers of a thread" in missed[1][0]


def test_operands_of_an_mma_in_flight_live_until_its_wait() -> None:
    """Of each thread: 64 for the result, for the scores, and for 2 to their power; 32 for the product in bf16 of the
    iteration before, which an MMA reads meanwhile."""
    remarks = compile_program(parse_text(Source("k.pk", TWICE)), level="roles").remarks
    (left,) = (remark for remark in remarks if remark.step == "pk-pipeline-mma")
    assert f"would take {3 * 64 + 32} registers of a thread" in left.reason
