"""What the mutants of `mutants.py` are made of and compute: overlaps, constants and sizes of the examples."""

from __future__ import annotations

from pkc.driver.compiler import Number

MATRICES = {"M": 400, "N": 269, "K": 75}
SIZES: dict[str, dict[str, int]] = {
    "ag_gemm": {"M": 200, "N": 269, "K": 600},  # two flags for each row of blocks
    "attention": {"B": 1, "H": 2, "S": 145, "T": 203},
    "attention_delta": {"B": 1, "H": 2, "S": 145},
    "attention_dkdv": {"B": 1, "H": 2, "G": 2, "S": 145, "T": 203},
    "attention_dq": {"B": 1, "H": 2, "G": 2, "S": 145, "T": 203},
    "grouped_attention": {"B": 1, "H": 4, "G": 1, "S": 145, "T": 203},
    "window_attention": {"B": 1, "H": 2, "S": 145, "T": 203},
    "packed_attention": {"H": 1, "G": 1, "S": 301, "T": 333, "N": 4},
    "decode_attention": {"H": 4, "R": 5, "T": 1100},
    "ring_attention": {"B": 1, "H": 2, "S": 400},
    "grouped_ring_attention": {"B": 1, "H": 4, "G": 4, "S": 400},
    "ring_attention_dq": {"B": 1, "H": 2, "G": 2, "S": 400, "T": 300},
    "ring_attention_dkdv": {"B": 1, "H": 2, "S": 300, "T": 400},
    "ulysses_attention": {"B": 1, "H": 4, "S": 250},  # one block a shard: a second CTA begins with another rank's
    "mlp": {"M": 400, "N": 269, "K": 75, "P": 140},
    "grouped_gemm": {"E": 2, "P": 157, "N": 261, "K": 75},
    "moe_dispatch_gemm": {"T": 1000, "H": 75, "E": 3, "P": 200, "N": 261},
    "moe_combine": {"T": 58, "E": 2, "P": 157, "N": 261},
    "moe_gather_combine": {"R": 157, "H": 261, "T": 158, "K": 2},
    "moe_mlp": {"S": 1000, "H": 75, "R": 400, "E": 2, "K": 2, "T": 40, "N": 140},
    "conv2d": {"P": 157, "C": 75, "R": 3, "S": 1, "N": 261},
    "gemm_fp8_blocks": {"M": 400, "N": 269, "K": 300, "G": 3, "H": 3},
    "ag_gemm_fp8": {"M": 200, "N": 269, "K": 1100},
    "ag_gemm_fp8_blocks": {"M": 200, "N": 269, "K": 1100, "G": 9, "H": 3},
    "gemm_rs_fp8_blocks": {"M": 400, "N": 269, "K": 300, "G": 3, "H": 3},
    "ag_rmsnorm_gemm": {"M": 100, "N": 269},
    "all_reduce_rmsnorm": {"M": 20},
    "embedding": {"V": 50, "H": 1030, "T": 40},
    "gemm_rs_rmsnorm": {"M": 400, "K": 75},
    "route": {"T": 70, "K": 3},
    "vocab_cross_entropy": {"M": 7},
    "vocab_cross_entropy_backward": {"M": 40, "V": 520},
}
"""Of the larger instance; `MATRICES` of those that are not here."""
OTHERS = {
    "moe_combine": ({"T": 400, "E": 1, "P": 40, "N": 24},),
    "moe_dispatch_gemm": (
        {"T": 1000, "H": 75, "E": 3, "P": 3, "N": 261},
        {"T": 1000, "H": 75, "E": 2, "P": 800, "N": 24},
        {"T": 40, "H": 600, "E": 2, "P": 30, "N": 24},
    ),
    "moe_mlp": (
        {"S": 1000, "H": 75, "R": 3, "E": 1, "K": 2, "T": 40, "N": 140},
        {"S": 60, "H": 600, "R": 400, "E": 2, "K": 2, "T": 40, "N": 24},
    ),
}
"""Tables that name a few of many rows: who awaits all blocks of them knows, from the last one, all that came before;
and CTAs that add nothing hear of tables from nobody else. Lists so long that those with rows of their rank lead. Two
flags for each row of blocks."""
OTHERS_SEED = 6
LEADING_SEED = 14
"""Of tables of which some lists lead, and not as those of the first expert do."""
CONSTANTS: dict[str, dict[str, Number]] = {
    "moe_mlp": {"P": 200},
    "grouped_ring_attention": {"group": 1},
    "conv2d": {"H": 8, "W": 8},
    "ag_rmsnorm_gemm": {"K": 640},  # two flags for each row of blocks
    "all_reduce_rmsnorm": {"H": 128},
    "gemm_rs_rmsnorm": {"N": 256},
    "route": {"E": 20},
    "vocab_cross_entropy": {"V": 64},
}
"""Those that small instances need, or that save time."""
ONE_COMM_SM = {
    "ag_gemm_fp8_blocks": {"M": 500, "N": 40, "K": 1800, "G": 15, "H": 1},
    "ag_gemm_fp8": {"M": 300, "N": 40, "K": 2000},
    "embedding": {"V": 500, "H": 1030, "T": 200},
    "ag_gemm": {"M": 200, "N": 269, "K": 600},
    "ring_attention": {"B": 2, "H": 2, "S": 600},
    "grouped_ring_attention": {"B": 2, "H": 2, "G": 2, "S": 600},
    "ring_attention_dq": {"B": 2, "H": 2, "G": 2, "S": 400, "T": 600},
    "ring_attention_dkdv": {"B": 2, "H": 2, "S": 600, "T": 400},
    "ulysses_attention": {"B": 2, "H": 4, "S": 450},
}
"""For one SM that only communicates: it fetches more tiles than it defers signals, so that some are sent on its way."""
LEADING = {"moe_mlp": ({"S": 1000, "H": 40, "R": 1600, "E": 2, "K": 2, "T": 40, "N": 24}, OTHERS["moe_mlp"][0])}
"""All of `copy_engine`: experts have room for lists so long that those with rows of their rank lead."""
STRADDLING = {"": MATRICES | {"M": 690}, "gemm_rs_fp8_blocks": SIZES["gemm_rs_fp8_blocks"] | {"M": 1400}}
"""With `straddle`, of an example or of those that have no sizes of their own: early and late rows of a rank, those
that communicators add up and those of consumers, overlap two tiles."""
OVERLAPS = ("", "none", "intra_sm", "inter_sm", "copy_engine", "push", "one_comm_sm", "straddle", "zigzag", "packets")
"""The values of `overlap`; then operands that are pushed instead of fetched, one SM that only communicates, blocks that
straddle shards, causal masks over shards in zigzag order, of which ranks fetch what their tasks visit, and tiles that
travel in packets."""


def constants_of(example: str, overlap: str) -> dict[str, Number]:
    order: dict[str, Number] = {"causal": True, "zigzag": True} if overlap == "zigzag" else {}
    room: dict[str, Number] = {"P": 800} if (example, overlap) == ("moe_mlp", "copy_engine") else {}
    return {**CONSTANTS.get(example, {}), **order, **room}


def schedule_of(overlap: str) -> dict[str, str]:
    if overlap == "push":
        return {"transfer": "push"}
    if overlap == "one_comm_sm":
        return {"overlap": "inter_sm", "comm_sms": "1"}
    if overlap in ("straddle", "packets"):
        return {overlap: "true"}
    return {"overlap": overlap} if overlap and overlap != "zigzag" else {}
