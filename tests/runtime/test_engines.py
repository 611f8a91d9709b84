"""What copy engines do in a launch: the copies, waits and writes of each rank, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from pkc.codegen.artifact import ArrayParameter, SignalParameter
from pkc.dialect.blocks import Block
from pkc.dialect.types import RANKS
from pkc.runtime.engines import Engines
from pkc.runtime.enqueue import Await, Move, Placer, Write, calls, side_by_side
from pkc.runtime.kernel_parameters import Values
from pkc.runtime.steps import Box, Copy, Raise, Reset, Wait
from tests.runtime.fake import Api
from tests.runtime.plays import artifact

# What a role does


def sections(name: str, rank: int, **dims: int) -> list[Any]:
    (found,) = Engines(artifact(name).engines).sections(rank, dims, {})
    return found


def meeting(signal: str, rank: int, ranks: int) -> list[Any]:
    """Each rank signals all, waits for all, and clears the counters that it has waited for."""
    tell = [Raise(signal, (rank,), other, 1) for other in range(ranks)]
    return [*tell, *(Wait(signal, (other,), 1) for other in range(ranks)), Reset(signal)]


def test_what_comes_from_others_is_copied_row_by_row_the_next_ranks_first() -> None:
    """700 rows on 3 ranks are shards of 234, 234, 232: two blocks each. The local ones come first and need no copy."""
    tasks: list[Any] = [[], []]
    for owner, start, length in ((2, 468, 128), (2, 596, 104), (0, 0, 128), (0, 128, 106)):
        box = {0: Block(start, length)}
        tasks.append([Copy(Box("A", box), Box("A.fetched", box)), Raise("A.ready", (start // 128 + owner,), 1, 1)])
    expected = [[meeting("began", 1, 3)], tasks, [meeting("copied", 1, 3)]]
    assert sections("ag_gemm", 1, ranks=3, M=700, N=512, K=328) == expected


def test_a_row_is_copied_when_its_tiles_are_computed_and_announced_when_it_is_there() -> None:
    """Two ranks with one block of rows and two of columns each: the other rank's rows first. Column 256 would be in
    shard 1 of 300, which is in the number of its block."""
    tasks: list[Any] = []
    for owner, number in ((1, 1), (0, 0)):
        rows = Block(100 * owner, 100)
        task: list[Any] = [Wait("Y.slots.computed", (number, column), 1) for column in (0, 2)]
        task.append(Copy(Box("Y.slots.staged", {0: rows}), Box("Y.slots", {0: 0, 1: rows})))
        tasks.append([*task, *(Raise("Y.arrived", (0, number, column), owner, 1) for column in (0, 2))])
    expected = [[meeting("began", 0, 2)], tasks, [meeting("copied", 0, 2)]]
    assert sections("reduce_scatter", 0, ranks=2, M=200, N=300) == expected


def raising(*indices: int) -> Raise:
    return Raise("s", indices, 0, 1)


TASKS = """
    builtin.module {
      pk.kernel @k(%s: !pk.signal<[8, 8]> {pk.name = "s"}, %n: i32 {pk.name = "n"}) {
        %0 = arith.constant 0 : index
        %1 = arith.constant 1 : index
        %2 = arith.constant 2 : index
        %7 = arith.constant 7 : index
        %c = arith.index_cast %n : i32 to index
        pk.role copy_engine {
          pk.raise %s at %0[%7, %7] to %1 : !pk.signal<[8, 8]>
          pk.tasks (%i) in (%c) {
            pk.tasks (%j) in (%2) {
              pk.raise %s at %0[%i, %j] to %1 : !pk.signal<[8, 8]>
            }
            pk.raise %s at %0[%i, %7] to %1 : !pk.signal<[8, 8]>
          }
          pk.raise %s at %0[%7, %0] to %1 : !pk.signal<[8, 8]>
        }
      }
    }"""


@pytest.mark.parametrize("count", [0, 1, 3])
def test_tasks_are_apart_and_those_inside_of_them_in_turn(count: int) -> None:
    (found,) = Engines(TASKS).sections(0, {RANKS: 1}, {"n": count})
    before, behind = raising(7, 7), raising(7, 0)
    tasks = [[raising(i, 0), raising(i, 1), raising(i, 7)] for i in range(count)]
    assert found == ([[[before]], tasks, [[behind]]] if count > 1 else [[[before, *chain(*tasks), behind]]])


def test_tasks_come_in_the_order_of_their_numbers() -> None:
    """In bands of two rows, as they are counted everywhere."""
    text = TASKS.replace("(%i) in (%c) {", "(%i, %k) in (%c, %2) attributes {raster = 2 : i64} {", 1)
    (found,) = Engines(text.replace("%s at %0[%i, %7]", "%s at %0[%i, %k]")).sections(0, {RANKS: 1}, {"n": 3})
    assert [task[-1].indices for task in found[1]] == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]


def test_loops_branches_and_values_that_they_carry() -> None:
    text = """
    builtin.module {
      pk.kernel @k(%s: !pk.signal<[8]> {pk.name = "s"}, %n: i32 {pk.name = "n"}) {
        %0 = arith.constant 0 : index
        %1 = arith.constant 1 : index
        %4 = arith.constant 4 : index
        pk.role copy_engine {
          %c = arith.index_cast %n : i32 to index
          %sum = scf.for %i = %0 to %4 step %1 iter_args(%a = %c) -> (index) {
            %odd = arith.remsi %i, %two : index
            %is = arith.cmpi eq, %odd, %0 : index
            %b = scf.if %is -> (index) {
              %peer = pk.ring_peer %i
              pk.raise %s at %peer[%i] to %a : !pk.signal<[8]>
              scf.yield %a : index
            } else {
              %next = arith.addi %a, %i : index
              scf.yield %next : index
            }
            scf.yield %b : index
          }
          pk.wait %s[%0] for %sum : !pk.signal<[8]>
        }
      }
    }""".replace("%odd = arith.remsi %i, %two", "%two = arith.constant 2 : index\n%odd = arith.remsi %i, %two")
    (found,) = Engines(text).sections(1, {RANKS: 3}, {"n": 5})
    assert found == [[[Raise("s", (0,), 1, 5), Raise("s", (2,), 0, 6), Wait("s", (0,), 9)]]]


# Where it does it


def place(arrays: Mapping[str, ArrayParameter], copy: Copy, rank: int = 1, **dims: int) -> list[Any]:
    """The moves of a copy on 3 ranks whose heaps are 1,000,000 bytes apart."""
    addresses = {name: 10_000_000 + 100_000 * number for number, name in enumerate(arrays)}
    made = replace(artifact("all_gather"), arrays=tuple(arrays.values()))
    return list(Placer(made, Values(rank, 1_000_000, 0, 0, {**dims, RANKS: 3}, {}, addresses)).actions([copy]))


def array(name: str, dims: tuple[str | int, ...], layout: Any = "private", shard: int | None = None) -> ArrayParameter:
    return ArrayParameter(name, "bf16", dims, layout, shard, True)


def test_whole_rows_are_one_copy_from_their_owner() -> None:
    """20 rows on 3 ranks: 7, 7, 6. Rows 14 to 17 are the first ones of rank 2."""
    arrays = {"X": array("X", ("M", "N"), "shard", 0), "L": array("L", ("M", "N"))}
    box = {0: Block(14, 4)}
    found = place(arrays, Copy(Box("X", box), Box("L", box)), M=20, N=30)
    assert found == [Move(12_000_000, 10_100_000 + 14 * 60, 4 * 60)]


def test_tiles_are_rows_with_a_pitch_to_every_copy_of_a_replicated_array() -> None:
    arrays = {"S": array("S", ("M", "N")), "Y": array("Y", ("M", "N"), "replicate")}
    box = {0: Block(8, 3), 1: Block(16, 14)}
    found = place(arrays, Copy(Box("S", box), Box("Y", box)), M=20, N=30)
    start = 8 * 60 + 32
    targets = [10_100_000 + rank * 1_000_000 + start for rank in (2, 0, 1)]
    assert found == [Move(10_000_000 + start, target, 28, 3, 60, 60) for target in targets]


def test_what_lies_in_pieces_is_several_copies() -> None:
    """A single leading position, and columns of a sharded dimension: 2 x 3 x 4 elements at rank 1."""
    arrays = {"S": array("S", ("B", "M", "N")), "T": array("T", (5, "B", "M", "N"), "shard", 3)}
    box = {0: Block(1, 2), 1: Block(4, 3), 2: Block(12, 4)}
    copy = Copy(Box("S", box), Box("T", {0: 2, **{place + 1: index for place, index in box.items()}}))
    found = place(arrays, copy, B=3, M=8, N=30)
    source, target = 10_000_000, 11_100_000  # shards of 10 columns
    assert found == [
        Move(source + b * 480 + 240 + 24, target + 2 * 480 + b * 160 + 80 + 4, 8, 3, 60, 20) for b in (1, 2)
    ]


def test_nothing_is_not_copied() -> None:
    arrays = {"S": array("S", ("M",)), "T": array("T", ("M",), "shard", 0)}
    box = {0: Block(20, 0)}
    assert place(arrays, Copy(Box("S", box), Box("T", box)), M=20) == []


def test_counters_are_found_as_the_kernel_finds_them() -> None:
    """A signal[ranks, M by 16, 4] has 3 x (2 + 3) x 4 counters for 20 rows on 3 ranks; see `lowering/signals.py`."""
    signal = SignalParameter("s", (RANKS, ("M", 16), 4))
    made = replace(artifact("all_gather"), signals=(signal,))
    placer = Placer(made, Values(1, 1_000_000, 0, 0, {"M": 20, RANKS: 3}, {}, {"s": 5000}))
    found = list(placer.actions([Wait("s", (2, 1, 3), 7), Raise("s", (0, 0, 1), 2, 9), Reset("s")]))
    assert found[0] == Await(1_005_000 + 4 * (2 * 20 + 1 * 4 + 3), 7)
    assert found[1] == Write(2_005_004, 9)
    assert found[2:] == [Write(1_005_000 + 4 * number, 0) for number in range(60)]


def test_waits_and_writes_are_enqueued_together() -> None:
    api = Api()
    made = list(calls(api, [Await(8, 1), *(Write(4 * n, n) for n in range(300)), Move(1, 2, 3), Write(8, 0)]))
    assert [call.name for call in made] == ["cuStreamBatchMemOp"] * 2 + ["cuMemcpyAsync", "cuStreamBatchMemOp"]
    assert [call.arguments[0] for call in made] == [255, 46, 2, 1]
    operations = [operation for call in made if call is not made[2] for operation in call.arguments[1]]
    assert {operation.writeValue.flags for operation in operations[1:]} == {0}
    assert made[0].on(77)[0] == made[2].on(77)[-1] == 77


def test_what_tasks_copy_side_by_side_is_one_copy() -> None:
    rows = [[Move(100 + 10 * i, 500 + 10 * i, 10), Write(i, 1)] for i in range(6)]
    first, second = side_by_side(rows)
    assert first == [Move(100, 500, 40), *(Write(i, 1) for i in range(4))]
    assert second == [Move(140, 540, 20), Write(4, 1), Write(5, 1)]
    # The last one of a shard may be shorter, and what follows it lies in the memory of another rank.
    short = [[Move(100, 500, 10), Write(0, 1)], [Move(110, 510, 7), Write(1, 1)], [Move(900, 517, 10), Write(2, 1)]]
    assert side_by_side(short) == [[Move(100, 500, 17), Write(0, 1), Write(1, 1)], short[2]]
    pitched = [[Move(100 + 64 * i, 500 + 80 * i, 10, 2, 32, 40), Write(i, 1)] for i in range(2)]
    assert side_by_side(pitched) == [[Move(100, 500, 10, 4, 32, 40), Write(0, 1), Write(1, 1)]]
    beside = [[Move(100, 500, 10, 2, 32, 40), Write(0, 1)], [Move(110, 510, 10, 2, 32, 40), Write(1, 1)]]
    assert side_by_side(beside) == beside
    both = [[Move(100 + 10 * i, 500 + 10 * i, 10), Move(10 * i, 900 + 10 * i, 10), Write(i, 1)] for i in range(2)]
    assert side_by_side(both) == [[Move(100, 500, 20), Move(0, 900, 20), Write(0, 1), Write(1, 1)]]


def test_tasks_that_wait_are_not_joined() -> None:
    """Joined, the counter of the first would be written only after the wait of the second."""
    waiting = [[Await(7, 1), Move(100 + 10 * i, 500 + 10 * i, 10), Write(i, 1)] for i in range(2)]
    assert side_by_side(waiting) == waiting
    one = [[], [], [Move(100, 500, 10), Write(0, 1)]]
    assert side_by_side(one) == one[2:]


def test_rows_with_a_pitch_are_enqueued_as_one_copy() -> None:
    api = Api()
    (call,) = calls(api, [Move(1 << 40, 1 << 41, 512, 128, 4096, 8192)])
    getattr(api, call.name)(*call.on(77))
    assert api.enqueued == [(77, "copy", 1 << 40, 1 << 41, 512, 128, 4096, 8192)]
