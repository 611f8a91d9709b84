"""The kernels of the operators on simulated ranks. Their module needs no torch, unlike its package."""

from __future__ import annotations

import math
import tomllib

import ml_dtypes
import numpy as np
import pytest

import pkc
from pkc.frontend.words import Reading
from pkc.location import span_at
from tests.torch.modules import FOLDER, module_of

M, N, K, RANKS = 40, 24, 32, 2
KERNELS = module_of("kernels")


@pytest.mark.parametrize("kind", ["gather", "scatter", "average"])
@pytest.mark.parametrize(("dtype", "transposed"), [("bfloat16", False), ("float16", True)])
def test_kernels(kind: str, dtype: str, transposed: bool) -> None:
    exact = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    rng = np.random.default_rng(0)
    # Small integers: products and sums are exact in every type.
    a = rng.integers(-2, 3, (M, K) if kind == "gather" else (RANKS, M, K)).astype(exact)
    b = rng.integers(-2, 3, (RANKS, K, N)).astype(exact)
    given = np.ascontiguousarray(b.swapaxes(1, 2)) if transposed else b
    if kind == "gather":
        kernel = KERNELS.gather_matmul(dtype, transposed=transposed)
        expected = a.astype(np.float64) @ b.astype(np.float64)
    else:
        everywhere = kind == "average"
        make = KERNELS.matmul_reduce if everywhere else KERNELS.matmul_scatter
        kernel = make(dtype, transposed=transposed, average=everywhere)
        expected = (a.astype(np.float64) @ b.astype(np.float64)).sum(0) / (RANKS if everywhere else 1)
    found = pkc.simulate(kernel, ranks=RANKS, A=a, B=given)["C"]
    np.testing.assert_array_equal(found.astype(np.float64), expected)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("activation", KERNELS.ACTIVATIONS)
def test_activations(activation: str, kept: bool, count: int) -> None:
    """Of small integers, whose products are exact, with biases where what is behind them is kept, too."""
    rng = np.random.default_rng(2)
    a = (rng.integers(-2, 3, (M, K)) / 4).astype(ml_dtypes.bfloat16)
    rights = rng.integers(-2, 3, (2, RANKS, K, N)).astype(ml_dtypes.bfloat16)[:count]
    biases = rng.integers(-2, 3, (2, RANKS, N)).astype(ml_dtypes.bfloat16)[:count]
    kernel = KERNELS.gather_activated("bfloat16", activation, transposed=(False,) * count, biased=kept, kept=kept)
    given = dict(zip("BV", rights, strict=False)) | (dict(zip("bv", biases, strict=False)) if kept else {})
    found = {name: array.astype(float) for name, array in pkc.simulate(kernel, ranks=RANKS, A=a, **given).items()}
    products = a.astype(float) @ rights.astype(float) + (biases.astype(float)[:, :, None] if kept else 0)
    expected = _ACTIVATIONS[activation](products[0]) * (products[1] if count > 1 else 1)
    np.testing.assert_allclose(found["C"], expected, rtol=2.0**-8, atol=1e-5)
    for name, product in zip("PQ"[: count * kept], products, strict=False):
        np.testing.assert_array_equal(found[name], product.astype(ml_dtypes.bfloat16).astype(float))


_ERF = np.vectorize(math.erf)
_ACTIVATIONS = {
    "gelu": lambda x: x / 2 * (1 + _ERF(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
}


def test_examples() -> None:
    """An installed package has those that operators run; each is read for both types."""
    assert "i32" in str(KERNELS.example("all_gather", "int32"))
    packages = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    included = packages["build"]["targets"]["wheel"]["force-include"]
    assert included == {f"examples/{name}.pk": f"pkc/examples/{name}.pk" for name in KERNELS.EXAMPLES}
    used = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py") if path.name != "kernels.py")
    assert all(f'"{name}"' in used for name in KERNELS.EXAMPLES)
    for name in KERNELS.EXAMPLES:
        types = {kind: str(KERNELS.example(name, kind)) for kind in KERNELS.TYPES}
        assert "bf16" in types["bfloat16"]
        assert "bf16" not in types["float16"]


@pytest.mark.parametrize("kind", KERNELS.TYPES)
def test_experts_one_behind_the_other(kind: str) -> None:
    """No constant is left that says how many rows each has."""
    text = str(KERNELS.experts(kind))
    assert "bf16" in text or kind == "float16"
    assert "'first'" in text
    assert "'P'" not in text


def test_attention_of_f16() -> None:
    """Simulated as the operators run it, with fewer heads of keys than of queries."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, 1, heads, 20, 16)).astype(np.float16) for heads in (4, 2, 2))
    constants = {"D": 16, "group": 2, "causal": True}
    kernel = pkc.Kernel(lambda: Reading(KERNELS.example("grouped_attention", "float16")), "grouped_attention")
    found = pkc.simulate(kernel, ranks=1, Q=q, K=k, V=v, scale=0.3, constants=constants)
    exact_q, exact_k, exact_v = q.astype(float), *(np.repeat(each.astype(float), 2, 2) for each in (k, v))
    scores = np.where(np.tri(20, dtype=bool), exact_q @ exact_k.swapaxes(-1, -2) * np.float32(0.3), -np.inf)
    weights = np.exp2(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ exact_v
    np.testing.assert_allclose(found["O"].astype(float), expected, atol=4e-3)


def test_rows_of_schedules() -> None:
    """Few numbers stand for all; one that is chosen for stands for itself."""
    found = {rows: KERNELS.rows_of_schedule(rows) for rows in range(1, 5000)}
    assert all(
        rows <= chosen < 1.25 * rows + 1 and found.get(chosen, chosen) == chosen for rows, chosen in found.items()
    )
    assert found[100] == 112
    assert len({chosen for rows, chosen in found.items() if 512 < rows <= 1024}) == 4


def test_sources_have_names_of_their_own() -> None:
    """Messages find a text by its name."""
    made = [
        make(dtype, transposed=transposed, **given).tree
        for make, given in (
            (KERNELS.gather_matmul, {}),
            (KERNELS.matmul_scatter, {"average": False}),
            (KERNELS.matmul_scatter, {"average": True}),
        )
        for dtype in ("bfloat16", "float16")
        for transposed in (False, True)
    ]
    made += [KERNELS.example("moe_mlp", "bfloat16"), KERNELS.experts("bfloat16")]
    sources = {program.kernels[0].span.source.name: program.kernels[0].span.source.text for program in made}
    assert len(sources) == len(made)
    assert all(span_at(name, 1, 1).source.text == text for name, text in sources.items())
