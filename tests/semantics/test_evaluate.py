"""Integers and control flow of a kernel as a Python function."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import prod
from typing import Any

import pytest
from xdsl.ir import Operation

from pkc.diagnostics import PACKAGE, PkcError
from pkc.dialect.counters import RaiseOp
from pkc.dialect.positions import Sizes
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.task_order import back_and_forth, in_order, in_order_from, sharer
from pkc.dialect.types import RANKS
from pkc.location import span_of
from pkc.semantics.evaluate import Call, Evaluator
from pkc.sim.errors import NoSuchShard
from tests.sim.helpers import parse


@dataclass(frozen=True)
class Ranks(Sizes):
    def check_shard(self, op: Operation, rank: int) -> None:
        if not 0 <= rank < self.ranks:
            raise PkcError(NoSuchShard(span_of(op.location), rank, self.ranks - 1))


class Raised(Evaluator):
    """Lists what `pk.raise` says: indices, rank, value."""

    def __init__(self, body: str, **dims: int) -> None:
        super().__init__(Ranks({**dims, RANKS: 3}))
        (kernel,) = parse(KERNEL.replace("BODY", body)).ops
        assert isinstance(kernel, KernelOp)
        with self.inside("def run(rank, epoch, share, out):"):
            self.block(kernel.body.block)
        self.text = "\n".join(self._lines)

    def leaf(self, op: Operation) -> bool:
        if not isinstance(op, RaiseOp):
            return False
        self.line(f"out.append({self.call(Call(lambda *found: found, op.indices, op.rank, op.value))})")
        return True

    def tasks(self, op: TasksOp) -> None:
        with self.each_task(op, ("share", "3")):
            self.block(op.body.block)

    def run(self, rank: int = 0, epoch: int = 1, share: int = 0) -> list[Any]:
        out: list[Any] = []
        self.compiled()(rank, epoch, share, out)
        return out


KERNEL = """
pk.kernel @k(%s: !pk.signal<[N, N]> {pk.name = "s"}, %A: !pk.private<[M], f32> {pk.name = "A"}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %7 = arith.constant 7 : index
  %n = pk.dim "N"
  %rank = pk.rank
  BODY
}
"""


def raises(value: str, first: str = "%0", second: str = "%0", rank: str = "%rank") -> str:
    return f"pk.raise %s at {rank}[{first}, {second}] to {value} : !pk.signal<[N, N]>\n"


FIBONACCI = f"""
  %a, %b = scf.for %i = %0 to %n step %1 iter_args(%x = %0, %y = %1) -> (index, index) {{
    {raises("%x", "%i")}
    %sum = arith.addi %x, %y : index
    scf.yield %y, %sum : index, index
  }}
  {raises("%a")}{raises("%b")}
"""


@pytest.mark.parametrize("count", [0, 1, 9])
def test_values_that_a_loop_carries_change_at_once(count: int) -> None:
    x, y, expected = 0, 1, list[Any]()
    for i in range(count):
        expected.append(((i, 0), 2, x))
        x, y = y, x + y
    assert Raised(FIBONACCI, N=count).run(rank=2) == [*expected, ((0, 0), 2, x), ((0, 0), 2, y)]


BRANCHES = f"""
  %peer = pk.ring_peer %2
  %epoch = pk.epoch
  %first = arith.cmpi eq, %rank, %0 : index
  %found = scf.if %first -> (index) {{
    {raises("%7")}
    scf.yield %peer : index
  }} else {{
    %below = arith.subi %rank, %7 : index
    %half = arith.divsi %below, %2 : index
    scf.yield %half : index
  }}
  scf.if %first {{
    {raises("%epoch")}
  }}
  {raises("%found")}
"""


def test_branches_give_values_and_may_have_no_other_side() -> None:
    made = Raised(BRANCHES, N=1)
    assert [value for _, _, value in made.run(rank=0, epoch=4)] == [7, 4, 2]
    assert [value for _, _, value in made.run(rank=2, epoch=4)] == [-2]  # (2 - 7) / 2, towards zero


TASKS = f"""
  pk.tasks (%i, %j) in (%n, %2) {{
    %block = pk.block[%i] : !pk.block<M by 4>
    %at = pk.block_position %block : !pk.block<M by 4>
    {raises("%at", "%i", "%j")}
  }}
"""


@pytest.mark.parametrize("share", range(3))
def test_tasks_are_shared_out_by_their_numbers(share: int) -> None:
    made = Raised(TASKS, N=4, M=13)
    every = [((i, j), 0, 4 * i) for i in range(4) for j in range(2)]
    assert made.run(share=share) == every[share::3]


def test_any_share_of_tasks_in_any_order() -> None:
    draw = random.Random(0)
    for _ in range(200):
        counts = [draw.randrange(6) for _ in range(draw.randrange(1, 5))]
        rows = draw.choice([None, 1, 2, 4]) if len(counts) == 2 else None
        first, step = draw.randrange(4), draw.randrange(1, 5)
        assert list(in_order_from(first, step, counts, rows)) == list(in_order(counts, rows))[first::step]


@pytest.mark.parametrize("shares", [1, 3, 4, 16])
@pytest.mark.parametrize(
    ("counts", "rows"),
    [((0,), None), ((7,), None), ((12,), None), ((9, 5), 4), ((8, 6), 8), ((2, 3, 5), 4), ((3, 0), 8)],
)
def test_back_and_forth(counts: tuple[int, ...], rows: int | None, shares: int) -> None:
    """Each task has one share; of two rounds of a band, or two bands, who is first in one is last in the other."""
    total = prod(counts)
    taken = [list(back_and_forth(share, shares, counts, rows)) for share in range(shares)]
    assert sorted(number for numbers in taken for number in numbers) == list(range(total))
    for share, numbers in enumerate(taken):
        assert numbers == sorted(numbers)
        assert all(sharer(number, counts, rows, shares) == share for number in numbers)
        assert list(in_order_from(share, shares, counts, rows, turns=True)) == [
            list(in_order(counts, rows))[number] for number in numbers
        ]
    size = total if rows is None else rows * counts[-1]
    for number in range(total):
        place = number % size % shares if size else 0
        begin, end = number - place, min(number // size * size + size, total)
        if begin + 2 * shares <= end:
            mirrored = begin + 2 * shares - 1 - place
            assert sharer(number, counts, rows, shares) == sharer(mirrored, counts, rows, shares)


@pytest.mark.parametrize("shares", [132, 128, 124, 120, 112])
def test_long_and_short_tasks_take_all_as_long(shares: int) -> None:
    """The first of four ranks of causal attention in zigzag order: of 64 heads 16 blocks of keys that nearly all rows
    see, and 16 that few do, in bands of eight heads. No share has a long task more than others."""
    lengths = [*range(256, 224, -2), *range(32, 0, -2)]
    loads = [
        sum(lengths[index[-1]] for index in in_order_from(share, shares, (64, 32), 8, turns=True))
        for share in range(shares)
    ]
    assert max(loads) <= sum(loads) / shares + max(lengths)


def test_tasks_of_uneven_length_take_all_as_long() -> None:
    """Causal attention: 64 heads of 32 or 64 blocks of rows, bands of eight heads, 132 CTAs."""
    for blocks in (32, 64):
        loads = [
            sum(blocks - index[-1] for index in in_order_from(cta, 132, (64, blocks), 8, turns=True))
            for cta in range(132)
        ]
        assert max(loads) < 1.02 * sum(loads) / len(loads)


COUNT = f"""
  %late = arith.cmpi sge, %rank, %1 : index
  %double = arith.addi %n, %n : index
  scf.if %late {{
    %blocks = pk.block_count <M by 4> of %7
    {raises("%blocks")}
  }}
  {raises("%double")}
"""


def test_what_is_wrong_is_raised_where_it_is_reached() -> None:
    """Rank 7 of 3 has no shard, whether that is known beforehand or not."""
    made = Raised(COUNT, N=6, M=13)
    assert made.run(rank=0) == [((0, 0), 0, 12)]
    with pytest.raises(PkcError):
        made.run(rank=1)


def test_what_is_known_is_not_computed_again_and_sizes_are_not_in_the_text() -> None:
    small, large = Raised(COUNT, N=6, M=13), Raised(COUNT, N=600, M=1300)
    assert "+" not in small.text
    assert small.text == large.text
    assert large.run()[0][2] == 1200


def test_users_do_not_see_its_lines() -> None:
    assert Raised(COUNT, N=6, M=13).compiled().__code__.co_filename.startswith(PACKAGE)
