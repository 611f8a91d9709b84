"""The Python interface: compile and simulate, from a decorated function and from a file."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pkc
from pkc.language import *
from pkc.sim.reference import compare
from pkc.testing import assert_right

M, N, K = dims("M N K")
EXAMPLES = Path(__file__).parents[1] / "examples"
TILE = 32


@pkc.kernel
def scaled_sum(X: bf16[M, N], Y: f32[M, N].replicate(), scale: f32, twice: const = False):
    for m, n in tasks(blocks(M, TILE), blocks(N, 64)):
        t = X[m, n] * scale
        if twice:
            t = t * 2
        Y[m, n] += t


def bfloat16(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("twice", [False, True])
def test_simulate_a_function(twice: bool) -> None:
    x = bfloat16((3, 50, 70), seed=1)
    y = pkc.simulate(scaled_sum, ranks=3, X=x, scale=0.5, constants={"twice": twice})["Y"]
    want = x.astype(np.float64).sum(axis=0) * (1.0 if twice else 0.5)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6)


def test_simulate_a_file() -> None:
    a, b = bfloat16((2, 130, 40), seed=2), bfloat16((2, 40, 300), seed=3)
    c = pkc.simulate(EXAMPLES / "gemm_rs.pk", ranks=2, A=a, B=b)["C"]
    addends = np.matmul(a.astype(np.float64), b.astype(np.float64))
    want = addends.sum(axis=0)
    # bf16 rounds to 2^-8 relative: each contribution once, the sum once; f32 accumulation is far below that
    bound = 1.01 * 2.0**-8 * (np.abs(addends).sum(axis=0) + np.abs(want)) + 1e-4
    assert (np.abs(c.astype(np.float64) - want) <= bound).all()


def test_captured_constants_are_read_when_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "pk.block<M by 32>" in str(pkc.compile(scaled_sum).module)
    monkeypatch.setitem(globals(), "TILE", 16)
    assert "pk.block<M by 16>" in str(pkc.compile(scaled_sum).module)


def test_errors_are_diagnostics() -> None:
    with pytest.raises(pkc.PkcError, match="PK"):
        pkc.simulate(scaled_sum, ranks=3, X=bfloat16((2, 50, 70), seed=4), scale=0.5)


def test_what_passes_did_and_did_not_do() -> None:
    path = EXAMPLES / "attention.pk"
    assert pkc.compile(path).remarks == []
    compiled = pkc.compile(path, level="machine")
    steps = {remark.step for remark in compiled.remarks}
    assert steps == set()
    gemm = pkc.compile(EXAMPLES / "gemm.pk", level="machine").remarks
    assert [(remark.step, remark.span.line) for remark in gemm] == [("pk-plan-stages", 7)]
    assert f"{path}:15: store of `O`: by tma (leaves its stage as it is)" in map(str, compiled.explanations)
    assert {remark.step for remark in pkc.compile(scaled_sum, level="roles", schedule={"straddle": "true"}).remarks}


def test_machine_code_for_given_sizes() -> None:
    path = EXAMPLES / "gemm_rs.pk"
    sizes = {"M": 512, "N": 256, "K": 64}
    made = pkc.artifact(path, ranks=2, dims=sizes, schedule={"tile_M": "64"})
    assert (made.name, made.target) == ("gemm_rs", "sm_90a")
    assert made.cubin[:4] == b"\x7fELF"
    assert pkc.artifact(pkc.load(path).with_schedule(tile_M=64), ranks=2, dims=sizes) == made
    with pytest.raises(pkc.PkcError, match="PK520"):
        pkc.artifact(path, ranks=2, dims=sizes, target="sm_42")


def test_simulate_draws_rounds_and_compares() -> None:
    x = np.random.default_rng(5).standard_normal((2, 40, 64)).astype(np.float32)
    found = scaled_sum.simulate(ranks=2, X=x, scale=0.5, twice=True)
    want = x.astype(ml_dtypes.bfloat16).astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(found["Y"], want, rtol=1e-6, atol=1e-6)
    assert found.ok
    assert list(found) == ["Y"]
    assert found.dims == {"M": 40, "N": 64}
    text = repr(found).splitlines()
    assert text[:2] == [
        "scaled_sum on 2 simulated ranks, M=40, N=64, seed 0",
        "`X` is rounded from float32 to bf16",
    ]
    assert text[-1] == "ok: Y within the bound of the float64 reference"
    drawn = scaled_sum.simulate(ranks=3, M=33, N=64, seed=1)
    assert drawn.ok
    assert drawn.inputs["X"].shape == (3, 33, 64)
    assert 0.05 <= drawn.inputs["scale"] <= 0.25


def test_a_wrong_result_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scaled_sum.simulate(ranks=2, M=5, N=64)
    output = found["Y"].copy()
    output[3, 7] += 1
    wrong = replace(found, outputs={"Y": output}, compared=tuple(compare({"Y": output}, found.expected)))
    assert not wrong.ok
    assert "WRONG: [3, 7]" in repr(wrong)
    assert "<td>WRONG: [3, 7]" in wrong._repr_html_()


def test_names_and_options_that_do_not_exist() -> None:
    with pytest.raises(pkc.PkcError) as error:
        scaled_sum.simulate(ranks=2, M=5, n=64)
    assert str(error.value) == ("error[PK916]: kernel `scaled_sum` has nothing named `n`\n  = help: did you mean `N`?")
    with pytest.raises(pkc.PkcError, match="PK501"):
        scaled_sum.with_schedule(overlp="none")
    with pytest.raises(pkc.PkcError, match="PK502"):
        scaled_sum.with_schedule(stages=0)


def test_what_a_kernel_tells_of_itself() -> None:
    assert "pk.tasks" in scaled_sum.ir()
    assert "pk.role" in scaled_sum.ir("roles", twice=True)
    assert "def scaled_sum(" in scaled_sum.source
    assert "sum of `Y`" in scaled_sum.explain()
    assert scaled_sum.__name__ == "scaled_sum"
    signature = inspect.signature(scaled_sum)
    assert list(signature.parameters) == ["X", "Y", "scale", "twice"]
    assert signature.parameters["Y"].annotation == "f32[M, N].replicate()"
    assert signature.parameters["twice"].default == "False"
    artifact = pkc.artifact(EXAMPLES / "gemm.pk", ranks=1, dims={"M": 256, "N": 256, "K": 256})
    assert repr(artifact) == f"<pkc artifact gemm for sm_90a, {len(artifact.cubin)} bytes>"


def test_a_pickled_kernel_keeps_what_it_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = pickle.dumps(scaled_sum.with_schedule(overlap="none"))
    monkeypatch.setitem(globals(), "TILE", 16)
    again = pickle.loads(stored)
    assert again.options == {"overlap": "none"}
    assert "pk.block<M by 32>" in again.ir()


def test_tracebacks_in_notebooks_have_no_lines_of_pkc() -> None:
    with pytest.raises(pkc.PkcError) as error:
        scaled_sum.simulate(ranks=0, M=5, N=64)
    lines = error.value._render_traceback_()
    assert lines[0] == "Traceback (most recent call last):"
    assert "scaled_sum.simulate(ranks=0" in lines[1]
    assert lines[-1].startswith("error[PK610]")
    assert not any(str(Path(pkc.__file__).parent) in line for line in lines)


def test_a_reference_of_the_program() -> None:
    @pkc.kernel(reference="3 * X")
    def twice(X: f32[M], Y: f32[M]):
        for m in tasks(blocks(M, 64)):
            Y[m] = X[m] + X[m]

    found = twice.simulate(ranks=1, M=100)
    assert all(item.ok for item in found.compared)
    assert not found.ok
    assert repr(found).splitlines()[-1] == "WRONG: Y outside the bound of 3 * X"


@pkc.kernel
def turn(B: f32[M].symmetric(), ready: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            wait(ready[0], 1)
            store(B.at((rank + 1) % ranks)[m], zeros(f32, m))
            signal(ready.at((rank + 1) % ranks)[0], 1)


def test_check_says_what_it_has_looked_at() -> None:
    right = scaled_sum.check(ranks=2, orders=2, explored=20, M=40, N=64, twice=True)
    assert right.ok and not right.findings
    assert repr(right).splitlines()[0] == "scaled_sum on 2 ranks, M=40, N=64: ok"
    assert "2 orders give the bits that the program means" in repr(right)
    wrong = turn.check(ranks=2, orders=2)
    assert [finding.code for finding in wrong.findings] == ["PK480"]
    assert "turn on 2 ranks, M=9: WRONG" in repr(wrong)
    with pytest.raises(pkc.PkcError, match="did you mean `N`"):
        scaled_sum.check(n=4)


def test_a_test_of_a_users_kernel() -> None:
    x = bfloat16((2, 40, 64), seed=3)
    found = assert_right(scaled_sum, ranks=2, X=x, scale=0.5, orders=1, explored=0)
    assert found["Y"].shape == (40, 64)
    with pytest.raises(pkc.PkcError, match="PK701"):
        assert_right(turn, ranks=2)

    @pkc.kernel(reference="3 * X")
    def twice(X: f32[M], Y: f32[M]):
        for m in tasks(blocks(M, 64)):
            Y[m] = X[m] + X[m]

    with pytest.raises(AssertionError, match="outside the bound of 3"):
        assert_right(twice, M=8)


def test_the_reference_of_a_kernel() -> None:
    x = np.arange(2 * 4 * 64).reshape(2, 4, 64).astype(np.float32) / 64
    expected = pkc.reference(scaled_sum, ranks=2, X=x, scale=0.5)["Y"]
    assert expected.value == pytest.approx(x.sum(0) / 2, rel=0.02)
    assert (np.abs(expected.value - x.astype(ml_dtypes.bfloat16).astype(np.float64).sum(0) / 2) <= expected.bound).all()


def test_a_time_line_in_a_notebook() -> None:
    drawn = scaled_sum.with_schedule(tile_M=32).timeline(ranks=2, M=64, N=64, scale=0.5)
    assert "scaled_sum on 2 GPUs, M=64, N=64: predicted" in repr(drawn)
    assert "<svg" in drawn._repr_html_()
    with pytest.raises(pkc.PkcError, match="did you mean `N`"):
        scaled_sum.timeline(n=4)


def test_an_option_is_refused_where_it_is_written() -> None:
    with pytest.raises(pkc.PkcError, match="PK502") as error:

        @pkc.kernel(overlap="intra_gpu")
        def copy(A: f32[M], B: f32[M]):
            for m in tasks(blocks(M, 64)):
                B[m] = A[m]

    assert '@pkc.kernel(overlap="intra_gpu")' in str(error.value)
