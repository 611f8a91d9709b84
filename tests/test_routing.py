"""Tables of a mixture of experts, against loops over tokens and choices."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.routing import places, tables, top_experts


def drawn(tokens: int, experts: int, top: int) -> np.ndarray:
    """Some experts of each token, no one twice, and some choices that are none."""
    random = np.random.default_rng(tokens)
    choices = np.stack([random.permutation(experts)[:top] for _ in range(tokens)]).astype(np.int32)
    return np.where(random.random(choices.shape) < 0.2, np.int32(-1), choices)


def test_the_best_experts_and_the_softmax_over_them() -> None:
    logits = np.array([[0.0, 3.0, 1.0, 2.0], [1.0, 1.0, -5.0, 0.0]], np.float32)
    chosen, weights = top_experts(logits, 2)
    assert chosen.tolist() == [[1, 3], [0, 1]]
    e = np.e
    np.testing.assert_allclose(weights, [[e / (e + 1), 1 / (e + 1)], [0.5, 0.5]], rtol=1e-6)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_choice_is_in_one_table_and_found_again(ranks: int) -> None:
    choices, experts = drawn(21, 8, 3), 8
    found = [tables(choices, experts, rank=rank, ranks=ranks, step=4) for rank in range(ranks)]
    where = places(choices, experts, ranks=ranks, step=4)
    most, local, shard = found[0].rows.shape[1], experts // ranks, -(-21 // ranks)
    assert all(own.rows.shape == (local, most) for own in found) and most % 4 == 0
    for token, choice in np.ndindex(choices.shape):
        expert = choices[token, choice]
        rank, row = where[choice, token]
        assert (rank < 0) == (expert < 0)
        if expert >= 0:
            e, p = divmod(int(row), most)
            assert rank * local + e == expert
            assert (found[rank].rows[e, p], found[rank].choice[e, p]) == (token, choice)
    for rank, own in enumerate(found):
        for e, count in enumerate(own.count):
            assert count == (choices == rank * local + e).sum()
            assert (own.rows[e, count:] == -1).all()
            turns = (own.rows[e, :count] // shard - rank) % ranks
            assert (np.diff(turns) >= 0).all(), "a rank's own tokens come first"


def test_tables_are_never_empty_and_experts_divide_evenly() -> None:
    none = np.full((3, 2), -1, np.int32)
    assert tables(none, 4, step=8).rows.shape == (4, 8)
    with pytest.raises(ValueError, match="3 experts"):
        tables(none, 3, ranks=2)
