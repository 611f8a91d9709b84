"""Arguments of calls from Python that cannot be what they are: each gets a diagnostic, as on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pkc
from pkc.language import *
from pkc.testing import assert_right

(M,) = dims("M")


@pkc.kernel
def copy(X: f32[M], Y: f32[M]):
    for m in tasks(blocks(M, 64)):
        Y[m] = X[m]


@pkc.kernel
def scaled(X: f32[M], Y: f32[M], D: const = 3):
    for m in tasks(blocks(M, 64)):
        Y[m] = X[m] * D


def told(call: Callable[[], object]) -> str:
    with pytest.raises(pkc.PkcError) as error:
        call()
    return str(error.value)


# The schedule


@pytest.mark.parametrize("stages", [4, np.int64(4), "4"])
def test_a_schedule_has_numbers_and_words(stages: object) -> None:
    assert "stages = 4 : i64" in str(pkc.compile(copy, schedule={"stages": stages}).module)
    assert "straddle = true" in str(pkc.compile(copy, schedule={"straddle": True, "overlap": "none"}).module)
    made = pkc.artifact(copy, ranks=1, dims={"M": 64}, schedule={"stages": stages})
    assert made == pkc.artifact(copy.with_schedule(stages=4), ranks=1, dims={"M": 64})


def test_a_schedule_that_is_none() -> None:
    keys: list[Any] = ["foo", 3]
    for key in keys:
        assert told(lambda key=key: pkc.compile(copy, schedule={key: 3})).startswith(
            f"error[PK501]: unknown schedule key `{key}`\n"
        )
    for value in (4.0, None, True, [4]):
        expected = (
            f"error[PK502]: the schedule key `stages` cannot be {value}\n  = help: `stages` is an integer from 1 to 32"
        )
        assert told(lambda value=value: pkc.compile(copy, schedule={"stages": value})) == expected
        assert told(lambda value=value: pkc.artifact(copy, ranks=1, dims={"M": 4}, schedule={"stages": value})) == (
            expected
        )


# Sizes and constants


@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ({}, "PK601"),
        ({"Q": 64}, "PK916"),
        ({"M": 64, "Q": 64}, "PK916"),
        *(({"M": value}, "PK603") for value in (64.5, "64", None, True, 0, -1, 2**63)),
    ],
)
def test_sizes_of_an_artifact(sizes: dict[str, Any], code: str) -> None:
    assert told(lambda: pkc.artifact(copy, ranks=1, dims=sizes)).startswith(f"error[{code}]: ")


def test_sizes_of_numpy() -> None:
    assert pkc.artifact(copy, ranks=1, dims={"M": np.int64(64)}) == pkc.artifact(copy, ranks=1, dims={"M": 64})  # type: ignore[dict-item]


@pytest.mark.parametrize("size", ["a", None, 4.5])
def test_sizes_of_a_check(size: Any) -> None:
    assert told(lambda: copy.check(M=size)).startswith("error[PK603]: ")


@pytest.mark.parametrize("value", ["q", None, [1], float("nan"), np.ones(3), 1j])
def test_constants_that_are_no_numbers(value: Any) -> None:
    what = "NaN" if isinstance(value, float) else f"an argument of type {type(value).__name__}"
    expected = f"error[PK864]: `D` of `scaled` is a constant; it cannot be {what}\n"
    calls: list[Callable[[], object]] = [
        lambda: scaled.simulate(ranks=1, M=3, D=value),
        lambda: scaled.check(ranks=1, M=3, D=value),
        lambda: scaled.timeline(ranks=1, M=3, D=value),
        lambda: scaled.ir(D=value),
        lambda: pkc.compile(scaled, constants={"D": value}),
        lambda: pkc.artifact(scaled, ranks=1, dims={"M": 3}, constants={"D": value}),
    ]
    for call in calls:
        assert told(call).startswith(expected)


@pytest.mark.parametrize("value", [2**63, -(10**400)])
def test_constants_of_more_than_64_bits(value: int) -> None:
    assert "integers have 64 bits, with a sign" in told(lambda: scaled.simulate(ranks=1, M=3, D=value))


def test_a_constant_of_numpy() -> None:
    assert scaled.ir(D=np.int64(5)) == scaled.ir(D=5)  # type: ignore[arg-type]


# Ranks, seeds, orders, levels


@pytest.mark.parametrize("ranks", ["2", None, 2.0, 2.5, True])
def test_ranks_that_are_no_number(ranks: Any) -> None:
    expected = f"error[PK926]: `ranks` cannot be {ranks!r}\n  = help: `ranks` is an integer"
    calls: list[Callable[[], object]] = [
        lambda: copy.simulate(ranks=ranks, M=4),
        lambda: copy.check(ranks=ranks, M=4),
        lambda: copy.timeline(ranks=ranks, M=4),
        lambda: pkc.simulate(copy, ranks=ranks, X=np.zeros((2, 4), np.float32)),
        lambda: pkc.reference(copy, ranks=ranks, M=4),
        lambda: pkc.artifact(copy, ranks=ranks, dims={"M": 4}),
    ]
    if ranks is not None:  # which is the default
        calls.append(lambda: copy.explain(ranks=ranks, M=4))
    for call in calls:
        assert told(call).startswith(expected)


def test_numbers_of_ranks() -> None:
    assert copy.simulate(ranks=np.int32(2), M=4).inputs["X"].shape == (2, 4)  # type: ignore[arg-type]
    assert told(lambda: copy.explain(ranks=0, M=4)).startswith("error[PK610]: ")
    assert told(lambda: pkc.artifact(copy, ranks=0, dims={"M": 4})) == (
        "error[PK926]: `ranks` cannot be 0\n  = help: `ranks` is an integer from 1"
    )


@pytest.mark.parametrize(
    ("call", "name", "value", "expected"),
    [
        *(
            (call, "seed", seed, "an integer from 0 to 4294967295")
            for seed in (-1, "a", 1.5, 2**32)
            for call in (copy.simulate, lambda seed: pkc.simulate(copy, ranks=1, seed=seed))
        ),
        *((copy.check, "orders", orders, "an integer from 0") for orders in ("3", -1)),
        (lambda orders: copy.check(orders=orders, explored=0), "orders", 0, "an integer from 1"),
        *((copy.check, "explored", explored, "an integer from 0") for explored in ("3", -1)),
        *(
            (call, "level", level, "one of 'tile', 'roles', 'machine'")
            for level in ("foo", 3, None)
            for call in (copy.ir, lambda level: pkc.compile(copy, level=level))
        ),
    ],
)
def test_what_no_argument_can_be(call: Callable[..., object], name: str, value: object, expected: str) -> None:
    assert told(lambda: call(**{name: value})) == (
        f"error[PK926]: `{name}` cannot be {value!r}\n  = help: `{name}` is {expected}"
    )


@pkc.kernel
def seeded(X: f32[M], Y: f32[M], seed: i32, orders: const = 3):
    for m in tasks(blocks(M, 64)):
        Y[m] = X[m] + cast(seed * orders, f32)


@pytest.mark.parametrize(
    ("call", "keyword", "name"),
    [
        (lambda: seeded.simulate(ranks=1, M=3, seed=5), "simulate", "seed"),
        (lambda: pkc.reference(seeded, ranks=1, M=3, seed=0), "simulate", "seed"),
        (lambda: pkc.simulate(seeded, ranks=1, X=np.ones((1, 3)), seed=5), "simulate", "seed"),
        (lambda: assert_right(seeded, ranks=1, M=3, seed=5), "simulate", "seed"),
        (lambda: seeded.check(ranks=1, M=3, orders=2), "check", "orders"),
    ],
)
def test_names_that_a_kernel_and_a_call_have(call: Callable[[], object], keyword: str, name: str) -> None:
    found = told(call)
    assert found.startswith(f"error[PK927]: `{name}` is a keyword of `{keyword}`, and a name in kernel `seeded`\n")
    assert found.endswith(f"= help: give it another name in the kernel, such as `{name}_`")


def test_a_name_that_is_not_given() -> None:
    found = seeded.simulate(ranks=1, M=3)
    assert found.ok
    assert found.seed == 0
    assert seeded.check(ranks=1, M=3, explored=5).ok


@pkc.kernel
def renamed(X: f32[M], Y: f32[M], seed_: i32, orders_: const = 3):
    for m in tasks(blocks(M, 64)):
        Y[m] = X[m] + cast(seed_ * orders_, f32)


def test_another_name_is_taken() -> None:
    x = np.random.default_rng(1).standard_normal((1, 3), np.float32)
    found = renamed.simulate(ranks=1, X=x, seed_=5, seed=7)
    np.testing.assert_allclose(found["Y"], x + 15, rtol=1e-6)
    assert renamed.check(ranks=1, M=3, orders_=4, orders=1, explored=5).ok


def test_a_test_may_leave_out_orders() -> None:
    assert assert_right(copy, ranks=1, M=4, orders=0, explored=1).ok
    assert assert_right(copy, ranks=1, M=4, orders=0, explored=0).ok


# Results


def test_an_array_that_is_not_written() -> None:
    found = copy.simulate(ranks=1, M=4)
    assert told(lambda: found["Z"]) == "error[PK923]: kernel `copy` does not write `Z`\n  = help: it writes `Y`"
    assert "Z" not in found
    assert found.get("Z") is None
    with pytest.raises(KeyError):
        found["X"]
