"""When two counts are equal, differ for some sizes, or cannot be compared."""

from __future__ import annotations

import pytest

from pkc.passes.analysis.polynomials import Polynomial

RANKS, EPOCH, ROWS, COLUMNS = (
    Polynomial.of(name) for name in ("ranks", "epoch", "blocks(M by 128)", "blocks(N by 64)")
)
ONE = Polynomial.constant(1)


def test_products_of_sums_are_multiplied_out() -> None:
    assert ((RANKS + ONE) * (RANKS - ONE) - RANKS * RANKS + ONE).is_zero
    assert str((RANKS + ONE) * EPOCH) == "ranks * epoch + epoch"
    assert str(RANKS - ONE) == "ranks - 1"
    assert str(RANKS - RANKS) == "0"


@pytest.mark.parametrize(
    ("difference", "wrong"),
    [
        (RANKS - RANKS, False),
        (ONE, True),
        (ROWS * RANKS, True),  # nothing is signalled
        (RANKS * EPOCH - RANKS, True),  # right in the first launch alone
        (RANKS - Polynomial.constant(3), True),  # right on three ranks
        ((RANKS - Polynomial.constant(3)) * ROWS * EPOCH, True),
        (ROWS - COLUMNS, False),  # the numbers of blocks may be related
        (ROWS - ONE, False),
    ],
)
def test_what_is_surely_not_zero(difference: Polynomial, wrong: bool) -> None:
    assert difference.surely_not_zero == wrong
