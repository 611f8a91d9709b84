"""Sums that ranks pass on, in roles that an author wrote: their machine code thread by thread, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.codegen.threads import SHARES, Memory, warps
from tests.codegen.together import Together
from tests.written import WRITTEN

RANKS, SIZES = 4, {"M": 20, "N": 12}
TASKS = 4


ADDED = """
kernel k(X: f32[M], Y: f32[M].symmetric(), done: signal[M]):
    schedule(deterministic=False)
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            t = X[m]
            signal(done.at(rank)[start(m) // 8], 1)
            wait(done[start(m) // 8], 1)
            store_add(Y.at(rank)[m], t)
"""


def results(name: str, order: range) -> tuple[np.ndarray, np.ndarray]:
    """What ranks give to a program, and have of it if they run in this order: nothing waits, so who sends is first."""
    program = parse_text(Source("k.pk", WRITTEN.get(name, name).lstrip()))
    roles = compile_program(program, schedule=SHARES, level="roles").kernel
    lowered = machine_level(roles)
    memory = Memory(lowered, RANKS, SIZES)
    given = np.random.default_rng(3).integers(-50, 50, (RANKS, *memory.arrays["X"][0].shape)).astype(np.float32)
    for rank in order:
        memory.arrays["X"][rank][...] = given[rank]
        if name == ADDED:
            memory.arrays["Y"][rank][...] = 1
        ctas = [Together(memory, rank, number, TASKS) for number in range(TASKS)]
        for numbers, threads in warps(roles, TASKS):
            for number in numbers:
                ctas[number].run(lowered.body.block, threads)
    return given, np.array(memory.arrays["Y"])


@pytest.mark.parametrize("name", ["a tree of sums", "a tree of sums by a communicator"])
def test_a_tree_of_sums(name: str) -> None:
    given, found = results(name, range(RANKS)[::-1])
    np.testing.assert_array_equal(found[0], given.sum(0))
    assert np.isnan(found[1:]).all()


def test_a_chain_of_sums() -> None:
    given, found = results("a chain of sums", range(RANKS))
    np.testing.assert_array_equal(found, given.cumsum(0))


def test_every_second_rank_adds_what_its_neighbour_sends() -> None:
    given, found = results("a signal of a branch beside one that reads", range(RANKS)[::-1])
    np.testing.assert_array_equal(found[1::2], given[1::2])
    np.testing.assert_array_equal(found[::2], given[::2] + given[1::2])


def test_one_thread_adds_an_element_that_several_have() -> None:
    given, found = results(ADDED, range(RANKS))
    np.testing.assert_array_equal(found, given + 1)
