"""How long a run takes is counted when loops begin, so that one of hours ends at once."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from pkc.check.static import check_statically
from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.reference import reference
from pkc.sim.run import simulate
from pkc.sim.work import ITERATION, TooLongError, Work, seconds_of_iteration
from tests.clock import within

TEXT = """\
kernel k(A: f32[M], n: i32[L], B: f32[M]):
    for m in tasks(blocks(M, 4)):
        x = A[m]
        for i in range(n[0]):
            for j in range({count}):
                x = x + 1.0
        B[m] = x
"""


def module(count: int, level: str = "tile") -> ModuleOp:
    return compile_program(parse_text(Source("k.pk", TEXT.format(count=count))), level=level).module


def run(count: int, outer: int) -> None:
    inputs = {"A": np.zeros((1, 8), np.float32), "n": np.full((1, 1), outer, np.int32)}
    simulate(module(count), ranks=1, dims={"M": 8, "L": 1}, inputs=inputs)


@pytest.mark.parametrize(("count", "outer"), [(10**10, 1), (1, 2**31 - 1)])
def test_hours_end_within_a_second(count: int, outer: int) -> None:
    """Also where the iterations are known only when the loop begins."""
    with pytest.raises(PkcError, match=r"error\[PK613\]: simulating this takes more than an hour"):
        within(1, lambda: run(count, outer))


def test_a_signal_takes_longer_than_an_iteration_without() -> None:
    """Others may run at each: so many iterations without one would be over in an hour."""
    signalled = """\
kernel k(Y: f32[M].symmetric(), s: signal[1]):
    with role(communicator):
        for i in range(1000000000):
            signal(s.at(rank)[0], 1)
        for m in tasks(blocks(M, 8)):
            store(Y[m], zeros(f32, m))
"""
    told = compile_program(parse_text(Source("k.pk", signalled)), level="tile").module
    assert 10**9 * ITERATION < 3600
    with pytest.raises(TooLongError):
        within(1, lambda: simulate(told, ranks=1, dims={"M": 8}, inputs={}))


def test_what_takes_no_time_is_not_refused() -> None:
    run(100, 10)
    run(10**12, 0)


def test_the_reference_and_the_static_check_too() -> None:
    inputs = {"A": np.zeros((1, 8), np.float32), "n": np.ones((1, 1), np.int32)}
    with pytest.raises(TooLongError):
        reference(module(10**10), ranks=1, dims={"M": 8, "L": 1}, inputs=inputs)
    many = parse_text(Source("k.pk", SIGNALS))
    kernel = compile_program(many, level="roles").kernel
    with pytest.raises(TooLongError):
        within(1, lambda: check_statically(kernel, ranks=2, dims={"M": 8}))


SIGNALS = """\
kernel k(A: f32[M], B: f32[M], ready: signal[ranks]):
    with role(loader):
        for i in range(10_000_000_000):
            signal(ready.at(rank)[0], 1)
    with role(consumer):
        for m in tasks(blocks(M, 4)):
            B[m] = A[m]
"""


def test_an_iteration_takes_what_its_tiles_have() -> None:
    loop = next(op for op in module(5).walk() if isinstance(op, scf.ForOp))
    inner = next(op for op in loop.body.walk() if isinstance(op, scf.ForOp))
    assert seconds_of_iteration(inner.body.block) > ITERATION
    work = Work()
    for times in (5, 0, -3):
        work.spend(loop, times, 2.0)
    assert work.seconds == 10
    work.begin(loop, 1.0, 0, 10, 3)
    assert work.seconds == 14
    with pytest.raises(TooLongError):
        work.spend(loop, 4000, 1.0)
