"""Shifts of a constant by an integer of the program, as 2 to the power of a level of a tree: simulated, and on the
registers of a role."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate
from tests.codegen.test_rows import run

POWERS = """\
kernel powers(X: f32[M, 8], Y: f32[M, 8]):
    for m in tasks(blocks(M, 16)):
        y = X[m, :]
        for l in range(44):
            y = where(X[m, :] == cast(l, f32), cast({number} << l, f32), y)
        Y[m, :] = y
"""
LEVELS = np.array([*range(28), *range(32, 44)]).reshape(5, 8)
WRAPPING = np.arange(40).reshape(5, 8)
"""With levels at which 3 passes 2**31: numbers of the emulated machine level have no end."""


def expected(number: int, levels: np.ndarray) -> np.ndarray:
    """By a number of bits modulo 32, and modulo 2**32, as those of tiles."""
    return (np.int64(number) * 2 ** (levels % 32)).astype(np.int32).astype(np.float64)


@pytest.mark.parametrize("number", [1, 3, -5])
def test_on_registers(number: int) -> None:
    text = POWERS.format(number=number if number > 0 else f"(0 - {-number})")
    np.testing.assert_array_equal(run(text, {"M": 5}, LEVELS.astype(np.float64)), expected(number, LEVELS))


@pytest.mark.parametrize("level", ["tile", "roles"])
def test_simulated(level: str) -> None:
    module = compile_program(parse_text(Source("k.pk", POWERS.format(number=3))), level=level).module
    found = simulate(module, ranks=1, dims={"M": 5}, inputs={"X": WRAPPING[None].astype(np.float32)})
    np.testing.assert_array_equal(found["Y"][0], expected(3, WRAPPING))


OF_RANKS = """\
kernel partner(X: f32[N], Y: f32[N].symmetric(), got: signal[L], k: i32, L: const = 2):
    with role(communicator):
        for n in tasks(blocks(N, 64)):
            store(Y.at((rank + (1 << k)) % ranks)[n], X[n])
"""


@pytest.mark.parametrize(("k", "ranks"), [(0, 2), (1, 3), (1, 4), (33, 4)])
def test_a_rank_at_a_distance_of_a_power_of_two(k: int, ranks: int) -> None:
    module = compile_program(parse_text(Source("k.pk", OF_RANKS)), level="roles").module
    x = np.arange(ranks * 100, dtype=np.float32).reshape(ranks, 100)
    found = simulate(module, ranks=ranks, dims={"N": 100}, inputs={"X": x, "k": k})
    np.testing.assert_array_equal(found["Y"], np.roll(x, 2 ** (k % 32), axis=0))
