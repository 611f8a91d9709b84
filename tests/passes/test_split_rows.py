"""Rows that go through a CTA in pieces: results within the bound of the whole rows, whatever is in them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate

HEAD = "kernel rows(X: f32[M, 100], w: f32[100], Y: f32[M, 100], Z: f32[M]):\n"
MANY, ONE = HEAD + "    for m in tasks(blocks(M, 4)):\n", HEAD + "    for m in tasks(M):\n"
PROGRAMS = {
    "softmax": "        Z[m] = rowmax(X[m, :])\n        e = exp(X[m, :] - rowmax(X[m, :]))\n"
    "        Y[m, :] = e / rowsum(e)\n",
    "log of a sum": "        x = X[m, :] * 0.5\n        top = rowmax(x)\n        Y[m, :] = x\n"
    "        Z[m] = log2(rowsum(exp2((x - top) * 3.0))) + 3.0 * top\n",
    "layernorm": "        c = X[m, :] - rowsum(X[m, :]) / 100.0\n        s = rsqrt(rowsum(c * c) / 100.0 + 0.001)\n"
    "        Y[m, :] = c * s * w[:]\n        Z[m] = s\n",
    "of the positions": "        Y[m, :] = X[m, :] * w[:] + full(f32, 1.0, 100)\n"
    "        Z[m] = rowsum(X[m, :] * w[:]) - rowmin(X[m, :])\n",
    "sums so far": "        c = cumsum(abs(X[m, :]))\n        Y[m, :] = c * w[:]\n        Z[m] = rowmax(c)\n",
    "sums so far of shares": "        s = rowsum(exp(X[m, :] - rowmax(X[m, :])))\n"
    "        c = cumsum(exp(X[m, :] - rowmax(X[m, :])) / s)\n        Z[m] = s\n"
    "        Y[m, :] = cumsum(c) / rowsum(c)\n",
}
LOOPS = {
    "softmax": 2,
    "log of a sum": 1,
    "layernorm": 3,
    "of the positions": 1,
    "sums so far": 1,
    "sums so far of shares": 3,
}
ONCE = ("softmax", "log of a sum", "sums so far of shares")
"""Those in which a sum goes on beside the maximum."""


def compiled(name: str, head: str, **schedule: str) -> Any:
    text = head + (PROGRAMS[name].replace("100", "1000") if "1000" in head else PROGRAMS[name])
    return compile_program(parse_text(Source("rows.pk", text)), schedule=schedule)


def run(name: str, head: str, x: np.ndarray[Any, Any], **schedule: str) -> dict[str, Any]:
    w = np.linspace(-1, 2, x.shape[1], dtype=np.float32)
    inputs = {"X": x[None], "w": w[None]}
    return dict(simulate(compiled(name, head, **schedule).module, ranks=1, dims={"M": len(x)}, inputs=inputs))


@pytest.mark.parametrize("head", [MANY, ONE], ids=["rows", "a row"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("row", [16, 25, 99])
def test_pieces_give_what_rows_give(name: str, head: str, row: int) -> None:
    """Also where maxima come late, and where whole pieces, or all, are -inf."""
    x = np.random.default_rng(1).normal(size=(7, 100)).astype(np.float32) * 4
    x[1] = np.sort(x[1])
    if name in ("softmax", "log of a sum"):
        x[2, :40], x[3, 60:], x[4] = -np.inf, -np.inf, -np.inf
        x[5, 50] = np.nan
    with np.errstate(invalid="ignore"):
        whole, pieces = run(name, head, x), run(name, head, x, row=str(row))
    for array in ("Y", "Z"):
        np.testing.assert_allclose(pieces[array], whole[array], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("head", [MANY, ONE], ids=["rows", "a row"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_reductions_of_long_pieces_are_kept_by_parts(name: str, head: str) -> None:
    """Of parts that are -inf so far, that stay so, that have a NaN, and with a rest behind the pieces."""
    x = np.random.default_rng(2).normal(size=(7, 1000)).astype(np.float32) * 4
    x[1] = np.sort(x[1])
    if name in ("softmax", "log of a sum"):
        x[2, :600], x[3, 300:], x[4], x[5, 500], x[6, 256:512] = -np.inf, -np.inf, -np.inf, np.nan, -np.inf
    head = head.replace("100", "1000")
    with np.errstate(invalid="ignore"):
        whole, pieces = run(name, head, x), run(name, head, x, row="256")
    for array in ("Y", "Z"):
        np.testing.assert_allclose(pieces[array], whole[array], rtol=2e-5, atol=2e-6)
    assert str(compiled(name, head, row="256").module).count("pk.repeat") == (name in ONCE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_row_is_read_as_often_as_reductions_need_one_another(name: str) -> None:
    """Once for a maximum and the sum of exponentials of what is less than it."""
    assert str(compiled(name, MANY, row="25").module).count("scf.for") == LOOPS[name]


def test_rows_too_long_for_a_cta_are_divided() -> None:
    text = "kernel k(X: bf16[M, 151936], Y: f32[M]):\n    for m in tasks(blocks(M, 8)):\n"
    text += "        x = cast(X[m, :], f32)\n        Y[m] = log(rowsum(exp(x - rowmax(x)))) + rowmax(x)\n"
    found = compile_program(parse_text(Source("k.pk", text)), level="roles")
    (remark,) = (remark for remark in found.remarks if remark.step == "fit")
    assert "tile_M=2, row=16384" in remark.reason
    assert "<151936 by 16384>" in str(found.module)


def test_rows_too_long_for_a_cta_lie_in_several_if_they_are_needed_again() -> None:
    """In as few CTAs as have room for the row of the next task too."""
    text = "kernel k(X: bf16[M, 151936], w: bf16[151936], Y: bf16[M, 151936]):\n    for m in tasks(M):\n"
    text += "        x = cast(X[m, :], f32)\n        Y[m, :] = x * rsqrt(rowsum(x * x)) * w[:]\n"
    found = compile_program(parse_text(Source("k.pk", text)), level="roles")
    (remark,) = (remark for remark in found.remarks if remark.step == "fit")
    assert remark.reason.startswith(
        "each of its rows lies in several CTAs, cluster=8, which have room for it: in one, `k` needs"
    )
    assert "cluster = 8 : i64, spread = 151936 : i64" in str(found.module)


PEELED = "t = rowmax(where(x < t, x, -inf))"


def test_rows_of_blocks_lie_in_several_ctas_if_pieces_do_not_help() -> None:
    """A loop carries what is left of rows: of the 4 of a task 2 lie in as few CTAs as have room for them."""
    text = "kernel k(X: f32[M, 32000], Y: f32[M, 32000]):\n    for m in tasks(blocks(M, 4)):\n        x = X[m, :]\n"
    text += "        for k in range(3):\n            x = where(x >= rowmax(x), -inf, x)\n        Y[m, :] = x\n"
    found = compile_program(parse_text(Source("k.pk", text)), level="roles")
    (remark,) = (remark for remark in found.remarks if remark.step == "fit")
    assert "tile_M=2, cluster=4:" in remark.reason
    assert "cluster = 4 : i64, spread = 32000 : i64" in str(found.module)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("W[:, m] = X[m, :].T", "`pk.transpose` needs them whole"),
        ("V[m, :] = X[m, :]\n        Y[m, :] = V[m, :] * rowsum(V[m, :])", "is read again"),
        ("Y[m, :] = rowsum(P[0, :, :]) + X[m, :]", "another axis of a tile is as long"),
        (
            "x = X[m, :]\n        for k in range(3):\n            W[:, m] = (x * 2.0).T",
            "a loop or branch needs them, and cannot",
        ),
        (
            f"x = V[m, :]\n        t = rowmax(x)\n        for k in range(2):\n            {PEELED}\n"
            "        V[m, :] = x - t",
            "a loop or branch",
        ),
        (
            "x = X[m, :]\n        for k in range(3):\n            x = x * rowsum(x)\n        Y[m, :] = x",
            "needs them whole",
        ),
        ("s = rowsum(X[m, :])\n        S[m] += s\n        Y[m, :] = X[m, :] * s", "something else is written"),
    ],
)
def test_rows_that_stay_whole_leave_a_remark(line: str, reason: str) -> None:
    arrays = "X: f32[M, 100], V: f32[M, 100], W: f32[100, M], S: f32[M].shard(0), P: f32[T, 100, 100], Y: f32[M, 100]"
    head = f"kernel k({arrays}):\n"
    text = f"{head}    for m in tasks(blocks(M, 4)):\n        {line}\n"
    found = compile_program(parse_text(Source("k.pk", text)), schedule={"row": "16"})
    assert any(reason in remark.reason for remark in found.remarks), found.remarks
    assert "<100 by 16>" not in str(found.module)


AGAIN_HEAD = "kernel rows(X: {t}[M, 100], Y: f32[M, 100], Z: f32[M], V: f32[M, 3]):\n    for m in tasks({of}):\n"
AGAIN = {
    "of a loop": """\
        x = cast(X[m, :], f32)
        t = rowmax(x)
        for k in range(3):
            t = rowmax(where(x < t, x, -inf))
            V[m, k] = t
        Z[m] = t
        Y[m, :] = where(x >= t, x, 0.0)
""",
    "of what a reduction is in": """\
        x = cast(X[m, :], f32)
        y = x - rowmin(x)
        t = rowmax(y)
        for k in range(3):
            t = rowmax(where(y < t, y, -inf))
            V[m, k] = t
        Z[m] = t
        Y[m, :] = y * t
""",
    "of loops in loops": """\
        x = cast(X[m, :], f32)
        t = rowmax(x)
        for k in range(3):
            for j in range(k + 1):
                t = rowmax(where(x < t, x, -inf))
            V[m, k] = t
        Z[m] = t
        Y[m, :] = x - t
""",
}


def peeled(x: np.ndarray[Any, Any], times: int) -> np.ndarray[Any, Any]:
    """The largest element of each row that is less than `times` others, of which none are equal."""
    return np.sort(np.unique(x))[::-1][times] if x.ndim == 1 else np.array([peeled(row, times) for row in x])


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("of", ["blocks(M, 4)", "M"])
@pytest.mark.parametrize("name", AGAIN)
@pytest.mark.parametrize("row", [25, 48])
def test_loops_load_rows_again(name: str, of: str, element: str, row: int) -> None:
    text = AGAIN_HEAD.format(t=element, of=of) + AGAIN[name]
    found = compile_program(parse_text(Source("rows.pk", text)), schedule={"row": str(row)})
    assert f"<100 by {row}>" in str(found.module) and not found.remarks
    given = np.random.default_rng(4).normal(size=(1, 7, 100)).astype(ml_dtypes.bfloat16 if element == "bf16" else "f4")
    result = simulate(found.module, ranks=1, dims={"M": 7}, inputs={"X": given})
    x = given[0].astype(np.float64)
    if name == "of what a reduction is in":
        x = (x - x.min(axis=1, keepdims=True)).astype(np.float32).astype(np.float64)
    values = np.array([peeled(x, times) for times in ((1, 3, 6) if name == "of loops in loops" else (1, 2, 3))]).T
    last = values[:, 2:]
    exact = {"of a loop": np.where(x >= last, x, 0), "of loops in loops": x - last}.get(name, x * last)
    for array, what in (("V", values), ("Z", last[:, 0]), ("Y", exact)):
        np.testing.assert_allclose(result[array][0], what, rtol=1e-6, atol=1e-6)


def test_branches_load_rows_again() -> None:
    text = """\
kernel rows(X: f32[M, 100], Y: f32[M, 100], Z: f32[M]):
    for m in tasks(M):
        x = X[m, :] * 0.5
        s = rowsum(x)
        if m % 3 == 1:
            Y[m, :] = x * s
        else:
            Y[m, :] = x
        Z[m] = s
"""
    found = compile_program(parse_text(Source("rows.pk", text)), schedule={"row": "48"})
    assert "<100 by 48>" in str(found.module) and "x100x" not in str(found.module) and not found.remarks
    given = np.random.default_rng(5).normal(size=(1, 7, 100)).astype(np.float32)
    result = simulate(found.module, ranks=1, dims={"M": 7}, inputs={"X": given})
    x = given[0].astype(np.float64) / 2
    total = x.sum(axis=1)
    exact = np.where((np.arange(7) % 3 == 1)[:, None], x * total[:, None], x)
    np.testing.assert_allclose(result["Z"][0], total, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result["Y"][0], exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("of", ["blocks(M, 4)", "M"])
@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("row", [25, 48])
def test_sums_so_far_go_on(row: int, element: str, of: str) -> None:
    """Through pieces, from the first to the last in every loop, and in loops of the program; i32 wraps."""
    text = f"""\
kernel rows(X: {element}[M, 100], Y: {element}[M, 100], V: {element}[M, 3]):
    for m in tasks({of}):
        c = cumsum(X[m, :])
        t = rowmax(c)
        Y[m, :] = c - t
        for k in range(3):
            V[m, k] = rowmin(cumsum(c - t))
"""
    found = compile_program(parse_text(Source("rows.pk", text)), schedule={"row": str(row)})
    assert f"<100 by {row}>" in str(found.module) and not found.remarks
    drawn = np.random.default_rng(6)
    given = drawn.integers(-(2**31), 2**31, (1, 7, 100)) if element == "i32" else drawn.normal(size=(1, 7, 100))
    given = given.astype(element.replace("f32", "float32").replace("i32", "int32"))
    result = simulate(found.module, ranks=1, dims={"M": 7}, inputs={"X": given})
    wide = np.int32 if element == "i32" else np.float64
    c = np.cumsum(given[0].astype(wide), axis=1, dtype=wide)
    y = c - c.max(axis=1, keepdims=True)
    v = np.cumsum(y, axis=1, dtype=wide).min(axis=1)
    for array, exact in (("Y", y), ("V", np.stack([v] * 3, axis=1))):
        np.testing.assert_allclose(result[array][0], exact, rtol=0 if element == "i32" else 1e-4, atol=1e-4)


def test_rows_that_are_added_up_are_divided_where_they_do_not_fit() -> None:
    text = "kernel k(P: f32[M, 128256], Y: f32[M, 128256]):\n    for m in tasks(M):\n"
    text += "        Y[m, :] = where(cumsum(P[m, :]) < 0.9, P[m, :], 0.0)\n"
    found = compile_program(parse_text(Source("k.pk", text)), level="roles")
    (remark,) = (remark for remark in found.remarks if remark.step == "fit")
    assert "row=8192" in remark.reason
