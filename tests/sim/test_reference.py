"""The reference's bound holds, is of use, and a wrong result is caught."""

import ml_dtypes
import numpy as np
import pytest

from pkc.cli.main import main
from pkc.driver.compiler import compile_program
from pkc.driver.results import comparison_table, doubtful, verdict
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.array import POISON_INT
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import Expected, compare, reference
from pkc.sim.run import simulate
from tests.sim.helpers import GEMM_RS, comparison, copy, f64, parse

DIMS = {"M": 70, "N": 60, "K": 100}


def gemm(ranks):
    module = parse(GEMM_RS)
    inputs = draw_inputs(module, ranks=ranks, dims=DIMS, seed=2)
    outputs = simulate(module, ranks=ranks, dims={}, inputs=inputs)
    return inputs, outputs, reference(module, ranks=ranks, dims={}, inputs=inputs)


@pytest.mark.parametrize("ranks", [1, 4])
def test_the_bound_holds_and_is_near(ranks):
    inputs, outputs, expected = gemm(ranks)
    np.testing.assert_allclose(
        expected["C"].value, np.einsum("rmk,rkn->mn", f64(inputs["A"]), f64(inputs["B"])), rtol=1e-12, atol=1e-11
    )
    (item,) = compare(outputs, expected)
    assert item.ok
    assert 0.1 < item.worst_ratio <= 1
    assert expected["C"].bound.max() < 1000 * item.max_error


def test_the_bound_of_an_f32_matmul_is_near():
    text = " ".join(GEMM_RS.split()).replace("%c = pk.cast %sum : !pk.tile<32x64xf32> -> !pk.tile<32x64xbf16>", "")
    text = text.replace("%c, %C", "%sum, %C").replace("!pk.tile<32x64xbf16>", "!pk.tile<32x64xf32>")
    text = text.replace("!pk.pgl<[M, N], bf16, shard 0>", "!pk.pgl<[M, N], f32, shard 0>")
    item = comparison(parse(text), 2, **DIMS)
    assert item.ok
    assert 0.001 < item.worst_ratio <= 1


def cut(values, largest):
    """Values without what lies more than 13 bits behind the leading one of `largest`."""
    step = 2.0 ** (np.floor(np.log2(np.maximum(largest, 2.0**-100))) - 13)
    return np.trunc(values / step) * step


def cut_matmul(a, b):
    """As tensor cores of sm_90 add products of 8-bit floats: 32 and the accumulator at once, aligned to the largest."""
    acc = np.zeros((len(a), b.shape[1]))
    for first in range(0, a.shape[1], 32):
        addends = a[:, first : first + 32, None] * b[None, first : first + 32, :]
        largest = np.maximum(np.abs(addends).max(axis=1), np.abs(acc))
        acc = cut(acc, largest) + cut(addends, largest[:, None]).sum(axis=1)
        acc = cut(acc, np.abs(acc))
    return acc


NARROW = """\
kernel narrow(A: {kind}[M, K], B: {kind}[N, K], C: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 128):
            acc += A[m, k] @ B[n, k].T
        C[m, n] = acc
"""


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_the_bound_of_8_bit_matmuls_allows_what_tensor_cores_do(kind):
    module = compile_program(parse_text(Source("narrow.pk", NARROW.format(kind=kind)))).module
    dims = {"M": 70, "N": 60, "K": 512}
    inputs = draw_inputs(module, ranks=1, dims=dims, seed=4)
    expected = reference(module, ranks=1, dims=dims, inputs=inputs)
    a, b = f64(inputs["A"])[0], f64(inputs["B"])[0].T
    found = cut_matmul(a, b)
    (item,) = compare({"C": found.astype(np.float32)[None]}, expected)
    assert item.ok
    assert item.worst_ratio > 0.001
    # Sums in f32 have a bound that these do not keep.
    assert (np.abs(found - a @ b) > expected["C"].bound[0] * 2.0**-10).any()
    without = np.concatenate([a[:, :384], 0 * a[:, 384:]], axis=1)
    (wrong,) = compare({"C": (without @ b).astype(np.float32)[None]}, expected)
    assert not wrong.ok


@pytest.mark.parametrize("rounding", [0, 0x0FFF + 1])
def test_the_bound_of_f32_matmuls_is_that_of_tf32(rounding):
    """Operands cut to 10 bits behind the leading one, or rounded to them; a product of bf16 is outside of it."""
    module = compile_program(parse_text(Source("narrow.pk", NARROW.format(kind="f32")))).module
    dims = {"M": 70, "N": 60, "K": 256}
    inputs = draw_inputs(module, ranks=1, dims=dims, seed=4)
    expected = reference(module, ranks=1, dims=dims, inputs=inputs)

    def cut(x, bits=13):
        return ((x.view(np.uint32) + rounding) >> bits << bits).view(np.float32).astype(np.float64)

    a, b = np.ascontiguousarray(inputs["A"])[0], np.ascontiguousarray(inputs["B"])[0]
    (item,) = compare({"C": (cut(a) @ cut(b).T).astype(np.float32)[None]}, expected)
    assert item.ok
    assert item.worst_ratio > 0.001
    (wrong,) = compare({"C": (cut(a, 19) @ cut(b, 19).T).astype(np.float32)[None]}, expected)
    assert not wrong.ok
    if not rounding:
        outputs = simulate(module, ranks=1, dims=dims, inputs=inputs)
        np.testing.assert_allclose(outputs["C"][0], cut(a) @ cut(b).T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("change", [lambda c: c * np.float32(1.03), lambda c: c + np.float32(1), lambda c: c * np.nan])
def test_a_perturbed_element_is_caught(change):
    _, outputs, expected = gemm(3)
    wrong = outputs["C"].astype(np.float32)
    where = np.unravel_index(np.argmax(np.abs(wrong)), wrong.shape)
    wrong[where] = change(wrong[where])
    (item,) = compare({"C": wrong.astype(ml_dtypes.bfloat16)}, expected)
    assert not item.ok
    assert item.where == tuple(where)
    assert item.problem


def test_a_missing_rank_is_caught():
    inputs, _, expected = gemm(3)
    less = {name: np.concatenate([x[:2], 0 * x[2:]]) for name, x in inputs.items()}
    outputs = simulate(parse(GEMM_RS), ranks=3, dims={}, inputs=less)
    assert not compare(outputs, expected)[0].ok


def test_a_write_where_none_is_due_is_caught():
    module = copy("private", "private", local=True)
    inputs = draw_inputs(module, ranks=2, dims={"M": 10, "N": 4}, seed=0)
    outputs = simulate(module, ranks=2, dims={}, inputs=inputs)
    expected = reference(module, ranks=2, dims={}, inputs=inputs)
    assert compare(outputs, expected)[0].ok
    outputs["Y"][0, 7, 1] = 2.0
    (item,) = compare(outputs, expected)
    assert (item.ok, item.where, item.problem) == (False, (0, 7, 1), "is 2, but the kernel writes nothing there")


def test_a_missing_write_is_caught():
    module = copy("shard 0", "replicate", local=True)
    inputs = draw_inputs(module, ranks=2, dims={"M": 10, "N": 4}, seed=0)
    expected = reference(module, ranks=2, dims={}, inputs=inputs)
    nothing = {"Y": np.full((10, 4), np.nan, ml_dtypes.bfloat16)}
    assert compare(nothing, expected)[0].problem.startswith("is not written, expected ")


@pytest.mark.parametrize(
    ("value", "bound", "output", "ok", "problem"),
    [
        (np.nan, 0.0, np.nan, False, ""),
        (np.nan, 0.0, 1.0, False, ""),
        (1.0, np.inf, 1.0, False, ""),
        (1.0, np.inf, np.nan, False, ""),
        (np.inf, np.nan, 1.0, False, ""),
        (1.0, 0.1, np.nan, False, "is not written, expected 1"),
        (1.0, 0.1, -np.inf, False, "is -inf, expected 1"),
        (np.inf, 0.0, np.inf, True, ""),
        (np.inf, 0.0, 1.0, False, "is 1, expected inf"),
        (1.0, 0.1, 1.05, True, ""),
        (1.0, 0.1, 1.2, False, "is 1.2, expected 1"),
    ],
)
def test_what_compares(value, bound, output, ok, problem):
    expected = Expected(np.array([0.0, value]), np.array([0.0, bound]), np.array([True, True]))
    (item,) = compare({"Y": np.array([0.0, output], np.float32)}, {"Y": expected})
    assert (item.ok, item.problem) == (ok, problem)


def test_what_has_no_bound_is_not_judged_and_hides_no_mistake():
    """A result without a bound is neither right nor wrong; others of the same array are."""
    value, bound = np.array([2.0, 1.0, np.nan]), np.array([0.1, np.inf, 0.0])
    expected = {"Y": Expected(value, bound, np.ones(3, np.bool_))}
    (item,) = compare({"Y": np.array([2.05, 7.0, 1.0], np.float32)}, expected)
    assert (item.ok, item.problem, item.unjudged) == (False, "", 2)
    assert item.reason == "at [1] the reference has no bound"
    assert item.worst_ratio == pytest.approx(0.5)
    assert comparison_table(expected, [item]).endswith("NOT JUDGED: at [1] the reference has no bound")
    (warning,) = doubtful(expected, [item])
    assert warning.endswith("2 of 3 elements of `Y` cannot be told right from wrong: at [1] the reference has no bound")
    said = "the float64 reference has no bound for all of Y, so nothing says whether it is right"
    assert verdict([item]) == f"NOT JUDGED: {said}"

    (item,) = compare({"Y": np.array([np.nan, 1.0, 1.0], np.float32)}, expected)
    assert (item.where, item.problem) == ((0,), "is not written, expected 2")
    assert verdict([item]) == "WRONG: Y outside the bound of the float64 reference"


def test_the_command_says_what_it_cannot_judge(tmp_path, capsys):
    program = tmp_path / "k.pk"
    lines = ["kernel k(X: f32[M], Y: f32[M]):", "    for m in tasks(blocks(M, 8)):"]
    lines += ["        t = X[m] * 0.3", "        Y[m] = 1.0 / (t - X[m] * 0.3)"]
    program.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["run", str(program), "--ranks", "1", "--set", "M=8"]) == 1
    shown = capsys.readouterr().out
    assert "  NOT JUDGED: at [0, 0] the reference has no bound\n" in shown
    assert "warning: 8 of 8 elements of `Y` cannot be told right from wrong" in shown
    assert "WRONG" not in shown


def test_an_integer_that_is_left_out_is_wrong_without_a_bound_too():
    expected = {"Y": Expected(np.array([1.0, 1.0]), np.full(2, np.inf), np.ones(2, np.bool_))}
    (item,) = compare({"Y": np.array([5, POISON_INT], np.int32)}, expected)
    assert (item.unjudged, item.where, item.problem) == (1, (1,), "is not written, expected 1")


def test_another_shape_is_not_ok():
    expected = Expected(np.zeros(3), np.zeros(3), np.ones(3, bool))
    (item,) = compare({"Y": np.zeros(4)}, {"Y": expected})
    assert (item.ok, item.problem) == (False, "has shape [4] instead of [3]")


IN_ANY_ORDER = """\
kernel total(X: {kind}[E, M, N], Y: {kind}[M, N].shard(0)):
    schedule(deterministic={deterministic})
    for e, m, n in tasks(E, blocks(M, 16), blocks(N, 16)):
        Y[m, n] += X[e, m, n]
"""


@pytest.mark.parametrize(("kind", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16), ("f32", np.float32)])
def test_sums_in_any_order(kind, dtype):
    """Whatever the order, the rounding at each addition stays within the bound, and that of one order does not do."""
    dims, bounds = {"E": 5, "M": 20, "N": 24}, {}
    for deterministic in (True, False):
        text = IN_ANY_ORDER.format(kind=kind, deterministic=deterministic)
        module = compile_program(parse_text(Source("total.pk", text))).module
        inputs = draw_inputs(module, ranks=4, dims=dims, seed=1)
        bounds[deterministic] = reference(module, ranks=4, dims=dims, inputs=inputs)
    given, caught = inputs["X"].reshape(20, 20, 24), False
    for seed in range(5):
        total = np.zeros((20, 24), dtype)
        for number in np.random.default_rng(seed).permutation(20):
            total = (total.astype(np.float32) + given[number].astype(np.float32)).astype(dtype)
        (item,) = compare({"Y": total}, bounds[False])
        assert 0.02 < item.worst_ratio <= 1
        caught |= not compare({"Y": total}, bounds[True])[0].ok
    assert caught
