"""Every example against a formula written independently of it, on many ranks, at divisible and ragged sizes.

Two comparisons: the float64 reference that pkc derives from the program agrees with the formula to 1e-9, so the
program means what it should; the simulated result lies within the reference's error bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkc.driver.compiler import Compiled, load
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.sweeps import sweep

EXAMPLES = Path(__file__).parents[2] / "examples"

Arrays = dict[str, Any]
Dims = dict[str, int]


@dataclass(frozen=True)
class Case:
    """An example: its sizes by number of ranks (divisible, ragged) and what each output should be."""

    divisible: Callable[[int], Dims]
    ragged: Callable[[int], Dims]
    formula: Callable[[Arrays, int], Arrays]


def f64(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


_OFTEN = {(1, True), (2, False), (3, True)}
"""Numbers of ranks, and whether sizes are ragged, that `make test` runs: all that ranks do, they do here."""


def in_sizes(*numbers: int) -> pytest.MarkDecorator:
    """A test for each of these numbers of ranks, at divisible and ragged sizes."""
    cases = sweep(product(numbers, (False, True)), lambda *case: case in _OFTEN)
    name = {False: "divisible", True: "ragged"}
    return pytest.mark.parametrize(
        ("ranks", "ragged"), cases, ids=lambda value: name[value] if isinstance(value, bool) else str(value)
    )


# Formulas: arrays that are private or symmetric have a leading axis of ranks


def gemm(i: Arrays, ranks: int) -> Arrays:
    return {"C": np.matmul(f64(i["A"]), f64(i["B"]))}


def swiglu(i: Arrays, ranks: int) -> Arrays:
    gate, up = f64(i["X"]) @ f64(i["W"]), f64(i["X"]) @ f64(i["V"])
    return {"Y": gate / (1 + np.exp(-gate)) * up}


def mlp(i: Arrays, ranks: int) -> Arrays:
    return {"Y": np.maximum(f64(i["X"]) @ f64(i["W"]), 0) @ f64(i["V"])}


def scaled_gemm(i: Arrays, ranks: int) -> Arrays:
    return {"C": np.matmul(f64(i["A"]), np.swapaxes(f64(i["B"]), -1, -2)) * np.float64(np.float32(i["scale"]))}


def block_scaled_gemm(i: Arrays, ranks: int) -> Arrays:
    a, b, rows, tiles = (f64(i[name]) for name in ("A", "B", "a_scale", "b_scale"))
    columns = np.arange(a.shape[-1]) // 128
    a = a * np.swapaxes(rows, -1, -2)[..., columns]
    b = b * tiles[..., np.arange(b.shape[-2])[:, None] // 128, columns]
    return {"C": np.matmul(a, np.swapaxes(b, -1, -2))}


def convolution(i: Arrays, ranks: int, *, height: int = 8, width: int = 8) -> Arrays:
    """By sums over shifted images; images are as many as there are whole ones."""
    x, filters = f64(i["X"]), f64(i["F"])
    (_, pixels, channels), (_, rows, columns, _, results) = x.shape, filters.shape
    images = x.reshape(ranks, -1, height, width, channels)
    found = np.zeros((*images.shape[:-1], results))
    for r, s in np.ndindex(rows, columns):
        down, right = r - rows // 2, s - columns // 2
        for y, x_at in np.ndindex(height, width):
            if 0 <= y + down < height and 0 <= x_at + right < width:
                of = images[:, :, y + down, x_at + right]
                found[:, :, y, x_at] += np.einsum("rbc,rcn->rbn", of, filters[:, r, s])
    return {"Y": found.reshape(ranks, pixels, results)}


def gemm_sum(i: Arrays, ranks: int) -> Arrays:
    return {"C": np.matmul(f64(i["A"]), f64(i["B"])).sum(axis=0)}


def gathered_gemm(i: Arrays, ranks: int) -> Arrays:
    return {"C": np.matmul(f64(i["A"])[None], f64(i["B"]))}


def softmax_attention(i: Arrays, ranks: int, *, causal: bool = False) -> Arrays:
    rows, keys = np.shape(i["Q"])[-2], np.shape(i["K"])[-2]
    seen = np.arange(rows)[:, None] >= np.arange(keys) if causal else np.full((rows, keys), True)
    return {"O": masked_attention(i, seen)["O"]}


def masked_attention(i: Arrays, seen: np.ndarray) -> Arrays:
    """O and, to base 2, L; `seen` says which rows see which keys. Zeros for a row that sees none."""
    q, k, v = f64(i["Q"]), f64(i["K"]), f64(i["V"])
    group = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    scores = np.where(seen, q @ np.swapaxes(k, -1, -2) * np.float64(np.float32(i["scale"])), -np.inf)
    top = np.where(seen.any(axis=-1), scores.max(axis=-1), -f64(np.float32(1e30)))
    weights = np.exp2(scores - top[..., None])
    total = np.maximum(weights.sum(axis=-1), f64(np.float32(1e-30)))
    return {"O": weights / total[..., None] @ v, "L": top + np.log2(total)}


def causal_attention(i: Arrays, ranks: int) -> Arrays:
    return softmax_attention(i, ranks, causal=True)


def before(i: Arrays) -> np.ndarray:
    """How many positions each key lies before each row, where the last row and the last key are at the same one."""
    rows, keys = np.shape(i["Q"])[-2], np.shape(i["K"])[-2]
    return np.arange(rows)[:, None] + (keys - rows) - np.arange(keys)


def grouped_attention(i: Arrays, ranks: int) -> Arrays:
    return masked_attention(i, np.full(before(i).shape, True))


def grouped_causal_attention(i: Arrays, ranks: int) -> Arrays:
    return masked_attention(i, before(i) >= 0)


def attention_delta(i: Arrays, ranks: int) -> Arrays:
    return {"delta": (f64(i["dO"]) * f64(i["O"])).sum(axis=-1)}


def attention_gradients(i: Arrays, ranks: int, *, causal: bool = False) -> Arrays:
    """By the formulas for gradients, from whatever L and delta are given."""
    q, k, v, grad, top, delta = (f64(i[name]) for name in ("Q", "K", "V", "dO", "L", "delta"))
    groups, scale = k.shape[-3], np.float64(np.float32(i["scale"]))
    each = q.shape[-3] // groups
    keys, values = np.repeat(k, each, axis=-3), np.repeat(v, each, axis=-3)
    scores = np.where((before(i) >= 0) | (not causal), q @ np.swapaxes(keys, -1, -2) * scale, -np.inf)
    weights = np.exp2(scores - top[..., None])
    of_scores = weights * (grad @ np.swapaxes(values, -1, -2) - delta[..., None])
    natural = scale * np.float64(np.float32(np.log(2)))
    by_head = {"dK": np.swapaxes(of_scores, -1, -2) @ q * natural, "dV": np.swapaxes(weights, -1, -2) @ grad}
    by_group = {name: of.reshape(*k.shape[:-3], groups, each, *k.shape[-2:]).sum(-3) for name, of in by_head.items()}
    return {"dQ": of_scores @ keys * natural, **by_group}


def attention_dq(i: Arrays, ranks: int, *, causal: bool = False) -> Arrays:
    return {"dQ": attention_gradients(i, ranks, causal=causal)["dQ"]}


def attention_dkdv(i: Arrays, ranks: int, *, causal: bool = False) -> Arrays:
    found = attention_gradients(i, ranks, causal=causal)
    return {name: found[name] for name in ("dK", "dV")}


def window_attention(i: Arrays, ranks: int, *, window: int = 70) -> Arrays:
    return {"O": masked_attention(i, (before(i) >= 0) & (before(i) < window))["O"]}


def packed_attention(i: Arrays, ranks: int, *, causal: bool = False) -> Arrays:
    """Each sequence by itself; rows of none are not written."""
    o = np.full(np.shape(i["Q"]), np.nan)
    for r in range(ranks):
        bounds = (zip(i[name][r], i[name][r][1:], strict=False) for name in ("rows", "keys"))
        for rows, keys in zip(*bounds, strict=True):
            q, k, v = (i[name][r][slice(*to)].swapaxes(0, 1) for name, to in (("Q", rows), ("K", keys), ("V", keys)))
            found = attended({"Q": q, "K": k, "V": v, "scale": i["scale"]}, causal=causal)
            o[r][slice(*rows)] = found.swapaxes(0, 1)
    return {"O": o}


def attended(i: Arrays, *, causal: bool) -> np.ndarray:
    """O of any number of keys, also of none."""
    if np.shape(i["K"])[-2] == 0:
        return np.zeros(np.shape(i["Q"]))
    return masked_attention(i, (before(i) >= 0) | (not causal))["O"]


def packed_causal_attention(i: Arrays, ranks: int) -> Arrays:
    return packed_attention(i, ranks, causal=True)


def decode_attention(i: Arrays, ranks: int) -> Arrays:
    """Over the keys that all ranks have, side by side."""
    o = np.zeros(np.shape(i["Q"]))
    for h in range(o.shape[0]):
        k, v = (np.concatenate([f64(i[n][r, h, : i["length"][r, h]]) for r in range(ranks)]) for n in "KV")
        o[h] = attended({"Q": i["Q"][None, h], "K": k[None], "V": v[None], "scale": i["scale"]}, causal=False)[0]
    return {"O": o}


def dispatched_gemm(i: Arrays, ranks: int) -> Arrays:
    x, w, rows, count = f64(i["X"]), f64(i["W"]), np.asarray(i["rows"]), np.asarray(i["count"])
    y = np.full((*rows.shape, w.shape[-1]), np.nan)
    for r, e in np.ndindex(count.shape):
        picked = rows[r, e, : count[r, e]]
        tokens = np.where((picked >= 0)[:, None], x[picked], 0.0)
        y[r, e, : count[r, e]] = tokens @ w[r, e]
    return {"Y": y}


def grouped_gemm(i: Arrays, ranks: int) -> Arrays:
    a, b, count = f64(i["A"]), f64(i["B"]), np.asarray(i["count"])
    c = np.full((*a.shape[:-1], b.shape[-1]), np.nan)
    for r, e in np.ndindex(count.shape):
        c[r, e, : count[r, e]] = a[r, e, : count[r, e]] @ b[r, e]
    return {"C": c}


def combined(i: Arrays, ranks: int) -> Arrays:
    y, rows, weight, count = f64(i["Y"]), np.asarray(i["rows"]), f64(i["weight"]), np.asarray(i["count"])
    o = np.zeros((i["T"], y.shape[-1]))
    for r, e, p in np.ndindex(rows.shape):
        if p < count[r, e] and rows[r, e, p] >= 0:
            o[rows[r, e, p]] += weight[r, e, p] * y[r, e, p]
    return {"O": o}


def gathered_sum(i: Arrays, ranks: int) -> Arrays:
    y, places, weight = f64(i["Y"]), np.asarray(i["places"]), f64(i["weight"])
    o = np.zeros((ranks, places.shape[2], y.shape[-1]))
    for r, k, t in np.ndindex(places.shape[:3]):
        rank, row = places[r, k, t]
        if row >= 0:
            o[r, t] += weight[r, k, t] * y[rank, row]
    return {"O": o}


def expert_mlp(i: Arrays, ranks: int) -> Arrays:
    """SwiGLU of each expert, in float64 but for what is stored between."""
    x, rows, count, capacity = f64(i["X"]), np.asarray(i["rows"]), np.asarray(i["count"]), CAPACITY
    y = f64(i["Y"])
    written = np.full(y.shape, np.nan)
    for r, e in np.ndindex(count.shape):
        at = slice(e * capacity, min(e * capacity + count[r, e], rows.shape[1]))
        tokens = np.where((rows[r, at] >= 0)[:, None], x[rows[r, at]], 0.0)
        g, u = tokens @ f64(i["gate"])[r, e], tokens @ f64(i["up"])[r, e]
        written[r, at] = g / (1 + np.exp(-g)) * u @ f64(i["down"])[r, e]
    y = np.where(np.isnan(written), y, written)
    return {**gathered_sum({**i, "Y": y}, ranks), "Y": written}


def copy(i: Arrays, ranks: int) -> Arrays:
    return {"Y": f64(i["X"])}


def summed(i: Arrays, ranks: int) -> Arrays:
    return {"Y": f64(i["X"]).sum(axis=0)}


def summed_everywhere(i: Arrays, ranks: int) -> Arrays:
    return {"Y": np.broadcast_to(f64(i["X"]).sum(axis=0), np.shape(i["X"]))}


# Sizes


def matrices(ranks: int) -> Dims:
    return {"M": 128 * ranks, "N": 256, "K": 128}


def ragged_matrices(ranks: int) -> Dims:
    return {"M": 61 * ranks + 5, "N": 269, "K": 75}


def images(ranks: int) -> Dims:
    return {"P": 256, "C": 64, "R": 3, "S": 3, "N": 256}


def ragged_images(ranks: int) -> Dims:
    return {"P": 64 * 3, "C": 75, "R": 3, "S": 1, "N": 133}


def scaled_matrices(ranks: int) -> Dims:
    return {"M": 256, "N": 256, "K": 256, "G": 2, "H": 2}


def ragged_scaled_matrices(ranks: int) -> Dims:
    return {"M": 269, "N": 133, "K": 275, "G": 3, "H": 2}


def collective(ranks: int) -> Dims:
    return {"M": 128 * ranks, "N": 128 * ranks}


def ragged_collective(ranks: int) -> Dims:
    return {"M": 37 * ranks + 1, "N": 41 * ranks + 3}


def one_gpu(ranks: int) -> Dims:
    return {"B": 2, "H": 2, "S": 256, "T": 256}


def ragged_one_gpu(ranks: int) -> Dims:
    return {"B": 1, "H": 3, "S": 145, "T": 203}


def groups(ranks: int) -> Dims:
    return {"B": 1, "H": 8, "G": 2, "S": 128, "T": 256}


def ragged_groups(ranks: int) -> Dims:
    """More rows than keys: causal, the first see none."""
    return {"B": 2, "H": 4, "G": 1, "S": 145, "T": 131}


def sequence(ranks: int) -> Dims:
    return {"B": 1, "H": ranks, "S": 128 * ranks}


def ragged_sequence(ranks: int) -> Dims:
    return {"B": 2, "H": 3, "S": 53 * ranks + 2}


def rings(ranks: int) -> Dims:
    return {"B": 1, "H": 2 * ranks, "G": ranks, "S": 128 * ranks}


def ragged_rings(ranks: int) -> Dims:
    return {"B": 2, "H": 2, "G": 1, "S": 53 * ranks + 2}


def ring_pairs(ranks: int) -> Dims:
    return {"B": 1, "H": 2, "G": 1, "S": 128 * ranks, "T": 128 * ranks}


def ragged_ring_pairs(ranks: int) -> Dims:
    return {"B": 1, "H": 2, "G": 1, "S": 53 * ranks + 2, "T": 53 * ranks + 2}


def ring_heads(ranks: int) -> Dims:
    return {"B": 1, "H": 2, "S": 128 * ranks, "T": 64 * ranks}


def ragged_ring_heads(ranks: int) -> Dims:
    return {"B": 1, "H": 2, "S": 70 * ranks + 3, "T": 37 * ranks + 1}


def long_heads(ranks: int) -> Dims:
    return {"B": 1, "H": 1, "S": 256 * ranks, "T": 256 * ranks}


def ragged_heads(ranks: int) -> Dims:
    return {"B": 1, "H": 2, "S": 141 * ranks + 5, "T": 141 * ranks + 5}


def packed(ranks: int) -> Dims:
    return {"H": 2, "G": 2, "S": 256, "T": 384, "N": 4}


def ragged_packed(ranks: int) -> Dims:
    return {"H": 1, "G": 1, "S": 301, "T": 333, "N": 7}


def decoded(ranks: int) -> Dims:
    return {"H": ranks, "R": 16, "T": 512}


def ragged_decoded(ranks: int) -> Dims:
    return {"H": 5, "R": 5, "T": 301}


def layers(ranks: int) -> Dims:
    return {**matrices(ranks), "P": 256}


def ragged_layers(ranks: int) -> Dims:
    return {**ragged_matrices(ranks), "P": 273}


def pairs(ranks: int) -> Dims:
    return {"B": 1, "H": 2, "G": 1, "S": 128, "T": 256}


def ragged_pairs(ranks: int) -> Dims:
    """More rows than keys, as above."""
    return {"B": 1, "H": 2, "G": 1, "S": 143, "T": 75}


CAPACITY = 128
"""The most rows of an expert; more than `draw_inputs` gives."""


def token_rows(ranks: int) -> Dims:
    return {"S": 32 * ranks, "T": 32, "H": 128, "E": 2, "N": 128, "K": 2, "R": 2 * CAPACITY}


def ragged_token_rows(ranks: int) -> Dims:
    return {"S": 19 * ranks + 1, "T": 21, "H": 75, "E": 2, "N": 83, "K": 3, "R": 2 * CAPACITY + 9}


def experts(ranks: int) -> Dims:
    return {"T": 32 * ranks, "H": 128, "E": 2, "P": 128, "N": 256, "K": 128}


def ragged_experts(ranks: int) -> Dims:
    return {"T": 19 * ranks + 1, "H": 75, "E": 3, "P": 157, "N": 261, "K": 75}


CASES: dict[str, Case] = {
    "gemm": Case(matrices, ragged_matrices, gemm),
    "gemm_fp8": Case(matrices, ragged_matrices, scaled_gemm),
    "conv2d H=8,W=8": Case(images, ragged_images, convolution),
    "swiglu": Case(matrices, ragged_matrices, swiglu),
    "mlp": Case(layers, ragged_layers, mlp),
    "gemm_fp8_blocks": Case(scaled_matrices, ragged_scaled_matrices, block_scaled_gemm),
    "gemm_rs": Case(matrices, ragged_matrices, gemm_sum),
    "gemm_ar": Case(matrices, ragged_matrices, gemm_sum),
    "ag_gemm": Case(matrices, ragged_matrices, gathered_gemm),
    "ag_gemm_explicit": Case(matrices, ragged_matrices, gathered_gemm),
    "attention": Case(one_gpu, ragged_one_gpu, softmax_attention),
    "attention causal": Case(one_gpu, ragged_one_gpu, causal_attention),
    "grouped_attention": Case(groups, ragged_groups, grouped_attention),
    "grouped_attention causal": Case(groups, ragged_groups, grouped_causal_attention),
    "attention_delta": Case(pairs, ragged_pairs, attention_delta),
    "attention_dq group=2,causal": Case(pairs, ragged_pairs, partial(attention_dq, causal=True)),
    "attention_dkdv group=2": Case(pairs, ragged_pairs, attention_dkdv),
    "attention_dkdv group=2,causal": Case(pairs, ragged_pairs, partial(attention_dkdv, causal=True)),
    "window_attention window=70": Case(one_gpu, ragged_one_gpu, window_attention),
    "packed_attention": Case(packed, ragged_packed, packed_attention),
    "packed_attention causal": Case(packed, ragged_packed, packed_causal_attention),
    "decode_attention": Case(decoded, ragged_decoded, decode_attention),
    "ring_attention": Case(sequence, ragged_sequence, softmax_attention),
    "ring_attention causal": Case(sequence, ragged_sequence, causal_attention),
    "grouped_ring_attention group=2,causal": Case(rings, ragged_rings, grouped_causal_attention),
    "ring_attention_dq group=2,causal": Case(ring_pairs, ragged_ring_pairs, partial(attention_dq, causal=True)),
    "ring_attention_dkdv": Case(ring_heads, ragged_ring_heads, attention_dkdv),
    "ring_attention_dkdv causal": Case(long_heads, ragged_heads, partial(attention_dkdv, causal=True)),
    "ulysses_attention": Case(sequence, ragged_sequence, softmax_attention),
    "grouped_gemm": Case(experts, ragged_experts, grouped_gemm),
    "moe_dispatch_gemm": Case(experts, ragged_experts, dispatched_gemm),
    "moe_gather_combine": Case(token_rows, ragged_token_rows, gathered_sum),
    f"moe_mlp P={CAPACITY}": Case(token_rows, ragged_token_rows, expert_mlp),
    "moe_combine": Case(experts, ragged_experts, combined),
    "all_gather": Case(collective, ragged_collective, copy),
    "all_to_all": Case(collective, ragged_collective, copy),
    "reduce_scatter": Case(collective, ragged_collective, summed),
    "all_reduce": Case(collective, ragged_collective, summed),
    "all_reduce_explicit": Case(collective, ragged_collective, summed_everywhere),
}

ALIKE = (
    "attention_delta",
    "attention_dkdv group=2,causal",
    "attention_dq",
    "conv2d",
    "decode_attention",
    "grouped_attention",
    "grouped_ring_attention",
    "mlp",
    "moe_mlp",
    "packed_attention",
    "ring_attention_dq",
    "ring_attention_dkdv",
    "swiglu",
    "window_attention",
)
"""Examples with the operations of others."""


@cache
def compiled(name: str, level: str = "tile", *schedule: tuple[str, str]) -> Compiled:
    """A case at a level with some schedule. Tests share it, so it is not to be changed. Raises `PkcError`."""
    example, _, constant = name.partition(" ")
    return load(EXAMPLES / f"{example}.pk", constants=constants(constant), schedule=dict(schedule), level=level)


def constants(text: str) -> dict[str, int]:
    """Of `causal`, or of a list such as `D=64,window=70`."""
    settings = (setting.partition("=") for setting in text.split(",") if setting)
    return {name: int(value) if value else True for name, _, value in settings}


def text_of(compiled: Compiled) -> str:
    """What tells apart the IR that several schedules give."""
    return str(compiled.module).replace(str(compiled.kernel.attributes["schedule"]), "")


def test_every_example_has_a_case() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.pk")} == {name.partition(" ")[0] for name in CASES}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {path.stem for path in EXAMPLES.glob("*.pk")}


def test_no_example_is_long() -> None:
    for path in EXAMPLES.glob("*.pk"):
        code = [line for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(code) <= 30, path.name


@in_sizes(1, 2, 3, 5, 8)
@pytest.mark.parametrize("name", CASES)
def test_example(name: str, ranks: int, ragged: bool) -> None:
    case = CASES[name]
    module = compiled(name).module
    given = case.ragged(ranks) if ragged else case.divisible(ranks)
    used = {dim for op in compiled(name).kernel.body.block.args for dim in getattr(op.type, "dimensions", ())}
    dims = {dim: size for dim, size in given.items() if dim in used}
    seed = 1000 * ranks + ragged
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed)
    expected = reference(module, ranks=ranks, dims=dims, inputs=inputs)
    outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=seed)

    wanted = case.formula({**inputs, **dims}, ranks)
    for array, want in wanted.items():
        written = ~np.isnan(want)
        np.testing.assert_array_equal(expected[array].written, written)
        np.testing.assert_allclose(expected[array].value[written], want[written], rtol=1e-9, atol=1e-9)
    comparisons = compare(outputs, expected)
    assert {c.array for c in comparisons} >= set(wanted)
    assert all(c.ok for c in comparisons), comparisons
