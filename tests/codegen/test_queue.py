"""Tasks from a queue, with all threads of several CTAs at once: each task once, and the counter is zero afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.codegen.build import build_kernel, machine_level
from pkc.dialect.program import QUEUE
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.codegen.live import Gpu
from tests.codegen.threads import Memory, warps
from tests.sweeps import sweep

TMA = """\
kernel k(X: f32[M, 16], Y: f32[M, 16]):
    for m in tasks(blocks(M, 4)):
        Y[m, :] = X[m, :] * 2.0
"""
BY_THREADS = """\
kernel k(X: f32[M, 5], Y: f32[M, 5]):
    for m in tasks(blocks(M, 4)):
        Y[m, :] = X[m, :] * 2.0
"""

LOADED_ONCE = """\
kernel k(X: f32[16], Y: f32[M, 16]):
    for m in tasks(blocks(M, 4)):
        Y[m, :] = cast(positions(m), f32) * X[:]
"""
"""The loader has no tasks."""

EXPECTED = {
    TMA: lambda x, _: 2 * x,
    BY_THREADS: lambda x, _: 2 * x,
    LOADED_ONCE: lambda x, rows: np.arange(rows)[:, None] * x,
}


def compiled(text: str) -> Compiled:
    return compile_program(parse_text(Source("k.pk", text)), level="roles", schedule={"consumers": "1"})


SOME = [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (24, 1), (23, 2), (11, 3)]


@pytest.mark.parametrize(("tasks", "ctas"), sweep(SOME, lambda *case: case in ((1, 2), (5, 2), (11, 3))))
@pytest.mark.parametrize("text", EXPECTED, ids=["tma", "threads", "loaded once"])
def test_each_task_is_taken_once(text: str, tasks: int, ctas: int) -> None:
    """Of places there are 8 for each CTA, so they come again where one has more tasks."""
    roles = compiled(text)
    lowered = machine_level(roles.kernel)
    gpu = None
    for launch in range(2):
        memory = Memory(lowered, 1, {"M": 4 * tasks - 1})
        given = np.random.default_rng(launch).integers(-99, 99, memory.arrays["X"][0].shape)
        memory.arrays["X"][0][...] = given
        words = {} if gpu is None else gpu.words
        gpu = Gpu(memory, ctas)
        gpu.words.update(words)
        gpu.run(lowered.body.block, [threads for _, threads in warps(roles.kernel, ctas)])
        np.testing.assert_array_equal(memory.arrays["Y"][0], EXPECTED[text](given, 4 * tasks - 1))
        assert gpu.asked == (ctas - (2 * ctas - tasks) // 2 if tasks > 2 * ctas else 0)
        assert not gpu.words.get(4 * ctas)


def test_a_kernel_says_that_launches_share_its_counter() -> None:
    with_queue = compiled(TMA).kernel
    assert QUEUE in with_queue.attributes
    assert build_kernel(with_queue).artifact.queue
    said = compile_program(parse_text(Source("k.pk", TMA)), level="roles", schedule={"queue": "false"}).kernel
    assert not build_kernel(said).artifact.queue
