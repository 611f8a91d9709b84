"""Results that depend on a comparison which errors leave open: what can be compared, and what is said of the others."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from pkc.cli.main import main
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import Expected, compare, reference

ARGMAX = """\
kernel argmax(X: f32[M, N], Y: i32[M]):
    for m in tasks(blocks(M, 16)):
        best = full(f32, -1e30, m); at = zeros(i32, m)
        for n in blocks(N, 16):
            x = X[m, n] * 0.3 + 0.1
            top = rowmax(x)
            at = where(top > best, rowmin(where(x == top, positions(n), 2147483647)), at)
            best = max(best, top)
        Y[m] = at
"""
AT_LAST = """\
kernel at_last(X: f32[M, N], Y: f32[M]):
    for m in tasks(blocks(M, 16)):
        best = full(f32, -inf, m); at = zeros(f32, m)
        for n in blocks(N, 16):
            best = max(best, rowmax(X[m, n] * 0.3 + 0.1))
        for n in blocks(N, 16):
            x = X[m, n] * 0.3 + 0.1
            at += rowsum(where(x == best, cast(positions(n), f32), 0.0))
        Y[m] = at
"""
SECOND = """\
kernel second(X: f32[M, 16], Y: f32[M]):
    for m in tasks(blocks(M, 16)):
        x = X[m] * 0.3 + 0.1
        Y[m] = rowmax(where(x == rowmax(x), -inf, x))
"""


def expected(text, **inputs):
    module = build_module(parse_text(Source("k.pk", text).remember()))
    dims = {"M": 40, "N": 40} if "N]" in text else {"M": 40}
    drawn = draw_inputs(module, ranks=1, dims=dims, seed=0) | inputs
    return drawn, reference(module, ranks=1, dims=dims, inputs=drawn)


def right(inputs):
    return (inputs["X"].astype(np.float32) * np.float32(0.3) + np.float32(0.1)).argmax(-1)


def test_the_only_greatest_of_a_row_is_certain():
    inputs, wanted = expected(ARGMAX)
    assert wanted["Y"].bound.max() == 0
    assert compare({"Y": right(inputs).astype(np.int32)}, wanted)[0].ok
    (item,) = compare({"Y": (right(inputs) + 1).astype(np.int32)}, wanted)
    assert (item.ok, item.doubted) == (False, 0)


def two_as_great(first, second):
    """Arrays with two greatest elements in every row, the second one by less than an f32 of the sum shows."""
    x = np.random.default_rng(0).uniform(-1, 1, (1, 40, 40)).astype(np.float32)
    x[..., first], x[..., second] = 4.0, np.nextafter(np.float32(4.0), np.float32(5.0))
    return x


def test_of_two_that_are_as_great_in_one_block_either_may_be_it():
    _, wanted = expected(ARGMAX, X=two_as_great(3, 5))
    (item,) = compare({"Y": np.where(np.arange(40)[None] == 7, 3, 5).astype(np.int32)}, wanted)
    assert (item.ok, item.doubted, item.doubt) == (True, 1, "[0, 7] is 3, expected 5")
    assert wanted["Y"].open_at == ("k.pk:7",)


def test_of_two_that_are_as_great_in_two_blocks_either_may_be_it():
    _, wanted = expected(ARGMAX, X=two_as_great(3, 35))
    assert wanted["Y"].value.tolist() == [[35] * 40]
    settled = np.full((1, 40), 35, np.int32)
    assert compare({"Y": settled}, wanted)[0].doubt == ""
    settled[0, 7] = 3
    (item,) = compare({"Y": settled}, wanted)
    assert (item.ok, item.doubted, item.doubt) == (True, 1, "[0, 7] is 3, expected 35")
    assert wanted["Y"].open_at == ("k.pk:7",)
    (item,) = compare({"Y": np.full((1, 40), 3, np.int32)}, wanted)
    assert (item.ok, item.problem, item.doubted) == (False, "", 40)
    settled[0, 7] = 35 + 33
    assert compare({"Y": settled}, wanted)[0].problem == "is 68, expected 35"


@pytest.mark.parametrize("text", [AT_LAST, SECOND])
def test_a_result_that_is_decided_as_the_reference_is_compared_closely(text):
    """The bound for both outcomes would accept everything, or nothing."""
    inputs, wanted = expected(text)
    x = inputs["X"] * np.float32(0.3) + np.float32(0.1)
    found = (x.argmax(-1) if text == AT_LAST else np.sort(x, -1)[..., -2]).astype(np.float32)
    (item,) = compare({"Y": found}, wanted)
    assert (item.ok, item.doubted) == (True, 0)
    assert item.bound_there < 1e-2
    assert not compare({"Y": np.where(np.arange(40) % 3, found + 1, found)}, wanted)[0].ok


def test_a_choice_between_branches_that_meet_is_not_doubted():
    """As in a leaky relu at zero: what is off is not more than any element may be."""
    one, other = np.array([1.0, 0.0]), np.array([1e-6, 1e-6])
    settled = Expected(one, np.array([1e-6, 1e-8]), np.ones(2, np.bool_))
    wanted = Expected(one, other, np.ones(2, np.bool_), settled=settled)
    (item,) = compare({"Y": np.array([1.0, 5e-7])}, {"Y": wanted})
    assert (item.ok, item.doubted, item.bound_there) == (True, 0, 1e-6)


def test_the_command_says_what_it_cannot_tell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "at_last.pk").write_text(AT_LAST, encoding="utf-8")
    arguments = ["run", "at_last.pk", "--ranks", "1", "--set", "M=40,N=40", "--reference"]
    argmax = "np.argmax(X * 0.3 + 0.1, -1)"
    assert main([*arguments, argmax]) == 0
    assert capsys.readouterr().out.endswith(f"ok: Y within the bound of the float64 reference and of {argmax}\n")

    assert main([*arguments, f"np.where(np.arange(M) == 4, 0, {argmax})"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"IN DOUBT: \[0, 4\] is \d+, expected 0\n", shown)
    assert "\nwarning: 1 of 40 elements of `Y` cannot be told right from wrong: they depend on a comparison" in shown
    assert " (at_last.pk:8)\n" in shown
    assert shown.endswith(", but for 1 element in doubt\n")

    assert main([*arguments, f"{argmax} // 2"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"IN DOUBT: most of Y is not that of {argmax} // 2, and no bound says whether it is wrong"
    )


def test_what_no_bound_is_known_of_is_not_doubted_where_it_is_decided_as_the_reference():
    """One outcome divides by zero, so that no bound covers both: who agrees with pkc itself has the other."""
    bound, written = np.array([np.inf, np.inf]), np.ones(2, np.bool_)
    own = Expected(np.array([2.0, 2.0]), np.array([1e-6, 1e-6]), written)
    other = Expected(np.array([5.0, 5.0]), np.array([1e-6, 1e-6]), written)
    wanted = Expected(other.value, bound, written, settled=other)
    found = {"Y": np.array([2.0, 5.0])}
    (item,) = compare(found, {"Y": wanted})
    assert (item.ok, item.doubted) == (True, 1)
    (item,) = compare(found, {"Y": replace(wanted, own=own)})
    assert (item.problem, item.doubted, item.unjudged) == ("is 2, expected 5", 0, 0)
