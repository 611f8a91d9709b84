"""What copy engines do in a launch: the copies, waits and writes of each rank, and that they are right in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkc.codegen.artifact import ArrayParameter, Artifact, SignalParameter
from pkc.codegen.build import machine_level
from pkc.codegen.fields import array_parameters, signal_parameters, struct_fields
from pkc.compiler import load
from pkc.diagnostics import PkcError
from pkc.dialect import blocks
from pkc.dialect.blocks import Block
from pkc.dialect.engines import engines_text
from pkc.dialect.types import RANKS
from pkc.runtime.arrays import Array
from pkc.runtime.engines import Box, Copy, Engines, Raise, Reset, Wait
from pkc.runtime.enqueue import Await, Move, Placer, Write, calls
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.structure import Values
from tests.runtime.fake import SMS, Api, driver
from tests.runtime.streams import STRIDE, Deadlock, Kernel, Memory, Streams

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS, COLUMNS = 128, 256
"""The tiles of the examples."""

SIZES = {"divisible": (1024, 512), "ragged": (700, 328), "short": (130, 264)}
"""M, and the length of rows. With 130 rows the last of 4 ranks have few or none."""


@cache
def artifact(name: str) -> Artifact:
    """An example with copy engines, without machine code."""
    kernel = machine_level(load(EXAMPLES / f"{name}.pk", level="machine", schedule={"overlap": "copy_engine"}).kernel)
    parameters = array_parameters(kernel), signal_parameters(kernel), struct_fields(kernel)[0]
    return Artifact(name, "sm_90a", name.encode(), *parameters, 128, 0, 1, 0, engines=engines_text(kernel))


# What a part does


def steps(name: str, rank: int, **dims: int) -> list[Any]:
    (found,) = Engines(artifact(name).engines).steps(rank, dims, {})
    return found


def meeting(signal: str, rank: int, ranks: int) -> list[Any]:
    """All tell all, wait for all, and clear what they have waited for."""
    tell = [Raise(signal, (rank,), other, 1) for other in range(ranks)]
    return [*tell, *(Wait(signal, (other,), 1) for other in range(ranks)), Reset(signal)]


def test_what_comes_from_others_is_copied_row_by_row_the_next_ranks_first() -> None:
    """700 rows on 3 ranks are parts of 234, 234 and 232: two blocks each."""
    expected: list[Any] = meeting("began", 1, 3)
    for owner, start, length in ((2, 468, 128), (2, 596, 104), (0, 0, 128), (0, 128, 106)):
        box = {0: Block(start, length)}
        expected += [Copy(Box("A", box), Box("A.landing", box)), Raise("A.ready", (start // 128 + owner,), 1, 1)]
    assert steps("ag_gemm", 1, ranks=3, M=700, N=512, K=328) == expected + meeting("copied", 1, 3)


def test_a_row_is_copied_when_its_tiles_are_computed_and_announced_when_it_is_there() -> None:
    """Two ranks with one block of rows and two of columns each: the other rank's rows first. Column 256 would be in
    part 1 of 300, which is in the number of its block."""
    expected: list[Any] = meeting("began", 0, 2)
    for owner, number in ((1, 1), (0, 0)):
        rows = Block(100 * owner, 100)
        expected += [Wait("Y.slots.computed", (number, column), 1) for column in (0, 2)]
        expected.append(Copy(Box("Y.slots.staged", {0: rows}), Box("Y.slots", {0: 0, 1: rows})))
        expected += [Raise("Y.arrived", (0, number, column), owner, 1) for column in (0, 2)]
    assert steps("reduce_scatter", 0, ranks=2, M=200, N=300) == expected + meeting("copied", 0, 2)


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
    (found,) = Engines(text).steps(1, {RANKS: 3}, {"n": 5})
    assert found == [Raise("s", (0,), 1, 5), Raise("s", (2,), 0, 6), Wait("s", (0,), 9)]


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
    """A single position in front, and columns of a sharded dimension: 2 x 3 x 4 elements at rank 1."""
    arrays = {"S": array("S", ("B", "M", "N")), "T": array("T", (5, "B", "M", "N"), "shard", 3)}
    box = {0: Block(1, 2), 1: Block(4, 3), 2: Block(12, 4)}
    copy = Copy(Box("S", box), Box("T", {0: 2, **{place + 1: index for place, index in box.items()}}))
    found = place(arrays, copy, B=3, M=8, N=30)
    source, target = 10_000_000, 11_100_000  # parts of 10 columns
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


def test_rows_with_a_pitch_are_enqueued_as_one_copy() -> None:
    api = Api()
    (call,) = calls(api, [Move(1 << 40, 1 << 41, 512, 128, 4096, 8192)])
    getattr(api, call.name)(*call.on(77))
    assert api.enqueued == [(77, "copy", 1 << 40, 1 << 41, 512, 128, 4096, 8192)]


# Launches


class Run:
    """An example on `ranks` GPUs of a driver that takes notes, and the memory that these would have."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, made: Artifact, ranks: int, m: int, n: int) -> None:
        opened, self.api = driver(monkeypatch, gpus=ranks)
        self.mesh, self.ranks, self.m, self.n, self.artifact = Mesh.single_process(driver=opened), ranks, m, n, made
        self.kernel = LoadedKernel(made, self.mesh)
        shapes = {"A": (m, n), "B": (n, 64), "C": (m, 64), "X": (m, n), "Y": (m, n)}
        if made.name == "gemm_rs":
            shapes |= {"A": (m, 64), "B": (64, n), "C": (m, n)}
        self.arrays: dict[str, Array] = {}
        for parameter in made.arrays:
            if not parameter.scratch:
                shape = shapes[parameter.name]
                self.arrays[parameter.name] = self.mesh.empty(shape, "bf16", parameter.layout, parameter.shard)
        self.memory = Memory(ranks, 48 << 20)

    def address(self, name: str, rank: int) -> int:
        if name in self.arrays:
            return self.mesh.heap.address(rank, self.arrays[name].offset)
        (memory,) = self.kernel._memory.values()
        return self.mesh.heap.address(rank, memory.offsets[name])

    def held(self, name: str, rank: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return self.memory.array(self.address(name, rank), shape, np.uint16)

    def counter(self, name: str, rank: int, *indices: int) -> int:
        """The address of a counter that the kernel uses."""
        (signal,) = (signal for signal in self.artifact.signals if signal.name == name)
        extents = [
            -(-{"M": self.m, "N": self.n}[extent[0]] // extent[1]) + self.ranks
            if isinstance(extent, tuple)
            else self.ranks
            for extent in signal.dims
        ]
        number = 0
        for extent, index in zip(extents, indices, strict=True):
            number = number * extent + index
        return self.address(name, rank) + 4 * number

    def launch(self) -> None:
        self.kernel(self.arrays)

    def call(self, rank: int, function: Any) -> None:
        """Something the caller does between launches, on the stream of a rank."""
        self.api.enqueued.append((self.mesh.local[rank].stream, "call", function))

    def rows(self) -> Iterator[tuple[int, Block, int]]:
        """All blocks of rows: the owner, the positions, the number."""
        for index in range(blocks.sharded_count(self.m, self.ranks, ROWS)):
            block = blocks.sharded_block(self.m, self.ranks, ROWS, index)
            owner = blocks.owner(self.m, self.ranks, block.start)
            yield owner, block, block.start // ROWS + owner

    def tiles(self) -> Iterator[tuple[int, Block, Block, tuple[int, int]]]:
        """All tiles: the owner, rows, columns, and their numbers."""
        columns = [blocks.block(0, self.n, COLUMNS, index) for index in range(blocks.count(0, self.n, COLUMNS))]
        for (owner, block, number), column in product(self.rows(), columns):
            last = blocks.owner(self.n, self.ranks, column.start)
            yield owner, block, column, (number, column.start // COLUMNS + last)


def content(launch: int, rank: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """What a rank has in a launch: other numbers in each."""
    return np.random.default_rng((launch, rank)).integers(1, 60_000, shape, np.uint16)


def part(values: np.ndarray[Any, Any], block: Block, column: Block | None = None) -> np.ndarray[Any, Any]:
    columns = slice(None) if column is None else slice(column.start, column.start + column.length)
    return values[block.start : block.start + block.length, columns]


def fetching(run: Run, launch: int, rank: int) -> Kernel:
    """`ag_gemm`: reads what the copy engine brings."""
    whole = content(launch, 0, (run.m, run.n))
    for owner, block, number in run.rows():
        if owner != rank:
            yield run.counter("A.ready", rank, number), 1
            found = part(run.held("A.landing", rank, (run.m, run.n)), block)
            assert (found == part(whole, block)).all(), f"launch {launch}, rank {rank}, rows {block}"


def fill(run: Run, launch: int, rank: int) -> None:
    """The caller of `ag_gemm` writes the rows of a rank."""
    whole, (first, last) = content(launch, 0, (run.m, run.n)), blocks.part(run.m, run.ranks, rank)
    run.held("A", rank, (last - first, run.n))[:] = whole[first:last]


def spreading(run: Run, launch: int, rank: int) -> Kernel:
    """`all_gather`: stores its tiles for the copy engine to send."""
    whole = content(launch, 0, (run.m, run.n))
    for owner, block, column, numbers in run.tiles():
        if owner == rank:
            part(run.held("Y.staged", rank, (run.m, run.n)), block, column)[:] = part(whole, block, column)
            run.memory.counter(run.counter("Y.computed", rank, *numbers))[0] = 1
            yield None


def look(run: Run, launch: int, rank: int) -> None:
    """The caller of `all_gather` finds everything on its rank, and overwrites it."""
    found = run.held("Y", rank, (run.m, run.n))
    assert (found == content(launch, 0, (run.m, run.n))).all(), f"launch {launch}, rank {rank}"
    found[:] = 0


def summing(run: Run, launch: int, rank: int) -> Kernel:
    """`gemm_rs`: stores all tiles, then waits for what all ranks have sent."""
    own = content(launch, rank, (run.m, run.n))
    for _, block, column, numbers in run.tiles():
        part(run.held("C.slots.staged", rank, (run.m, run.n)), block, column)[:] = part(own, block, column)
        run.memory.counter(run.counter("C.slots.computed", rank, *numbers))[0] = 1
        yield None
    length = blocks.part_length(run.m, run.ranks)
    slots = run.held("C.slots", rank, (run.ranks, length, run.n))
    for owner, block, column, numbers in run.tiles():
        for source in range(run.ranks) if owner == rank else ():
            yield run.counter("C.arrived", rank, source, *numbers), 1
            local = Block(block.start - rank * length, block.length)
            wanted = part(content(launch, source, (run.m, run.n)), block, column)
            assert (part(slots[source], local, column) == wanted).all(), f"launch {launch}, {source} to {rank}"


KERNELS: dict[str, tuple[Any, Any, Any]] = {
    "ag_gemm": (fetching, fill, None),
    "all_gather": (spreading, None, look),
    "gemm_rs": (summing, None, None),
}
"""What the kernel does, and its caller before and after each launch."""


def play(run: Run, seed: int, launches: int = 3) -> None:
    """Launch several times without waiting, then do everything in some order."""
    kernel, before, after = KERNELS[run.artifact.name]
    for launch in range(launches):
        for rank in range(run.ranks) if before is not None else ():
            run.call(rank, lambda launch=launch, rank=rank: before(run, launch, rank))
        run.launch()
        for rank in range(run.ranks) if after is not None else ():
            run.call(rank, lambda launch=launch, rank=rank: after(run, launch, rank))
    made = lambda number: kernel(run, *divmod(number, run.ranks))  # noqa: E731
    Streams(run.memory, made, seed).run(run.api.enqueued)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", KERNELS)
def test_launches_are_right_in_any_order(monkeypatch: pytest.MonkeyPatch, name: str, size: str, ranks: int) -> None:
    for seed in range(4):
        play(Run(monkeypatch, artifact(name), ranks, *SIZES[size]), seed)


def broken(monkeypatch: pytest.MonkeyPatch, made: Artifact, *, m: int = 512, n: int = 264) -> int:
    """How many of 10 orders of 3 launches on 3 ranks go wrong."""
    wrong = 0
    for seed in range(10):
        try:
            play(Run(monkeypatch, made, 3, m, n), seed)
        except (AssertionError, Deadlock):
            wrong += 1
    return wrong


def without(text: str, start: str) -> str:
    """The loop that begins with this operation runs no turn."""
    lines = text.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.strip().startswith(start))
    head = lines[at - 1].split()  # scf.for %i = %zero to %n step %one {
    head[5] = head[3]
    return "\n".join([*lines[: at - 1], " ".join(head), *lines[at:]])


@pytest.mark.parametrize(
    ("name", "m", "loop"),
    [
        ("ag_gemm", 512, "pk.wait %began"),
        ("ag_gemm", 512, "pk.wait %copied"),
        ("all_gather", 512, "pk.wait %copied"),
        ("gemm_rs", 2, "pk.wait %copied"),  # rank 2 owns no row, so its kernel waits for nobody
    ],
)
def test_copy_engines_have_to_meet(monkeypatch: pytest.MonkeyPatch, name: str, m: int, loop: str) -> None:
    whole = artifact(name)
    assert broken(monkeypatch, whole, m=m) == 0
    assert broken(monkeypatch, replace(whole, engines=without(whole.engines, loop)), m=m)


@pytest.mark.parametrize("name", KERNELS)
def test_counters_have_to_restart(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    whole = artifact(name)
    kept = tuple(replace(signal, restarts=False) for signal in whole.signals)
    assert broken(monkeypatch, replace(whole, signals=kept))


def test_what_was_waited_for_has_to_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = artifact("ag_gemm")
    again = "\n".join(line for line in whole.engines.splitlines() if "pk.reset" not in line)
    assert broken(monkeypatch, replace(whole, engines=again))


def test_every_launch_enqueues_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a graph that is replayed does what launches do."""
    run = Run(monkeypatch, artifact("gemm_rs"), 2, 700, 328)
    run.launch()
    found: list[list[Any]] = []
    for _ in range(2):
        run.api.enqueued.clear()
        run.launch()
        found.append([entry for entry in run.api.enqueued if entry[1] != "kernel"])
    assert found[0] == found[1]
    assert len(found[0]) > 50


def test_kernels_start_before_anything_waits_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("ag_gemm"), 2, 512, 256)
    run.launch()
    run.api.enqueued.clear()
    run.kernel(run.arrays, stream=71)
    one, two = run.mesh.local
    first, second = ((sides[0].stream, sides[0].event) for sides in run.mesh.beside(1))
    entries = [entry[:2] if entry[1] in ("clear", "copy", "kernel") else entry[:3] for entry in run.api.enqueued]
    kept = [entry for entry in entries if entry[1] not in ("wait", "write", "copy")]
    assert kept == [
        (71, "record", one.event), (one.stream, "follow", one.event), (two.stream, "follow", one.event),
        (one.stream, "clear"), (one.stream, "record", first[1]), (first[0], "follow", first[1]),
        (two.stream, "clear"), (two.stream, "record", second[1]), (second[0], "follow", second[1]),
        (one.stream, "kernel"), (two.stream, "kernel"),
        (first[0], "record", first[1]), (one.stream, "follow", first[1]),
        (second[0], "record", second[1]), (two.stream, "follow", second[1]),
        (one.stream, "record", one.event), (two.stream, "record", two.event),
        (71, "follow", one.event), (71, "follow", two.event),
    ]  # fmt: skip
    beside = {entry[0] for entry in entries if entry[1] in ("wait", "write", "copy")}
    assert beside == {first[0], second[0]}
    places = [number for number, entry in enumerate(entries) if entry[1] in ("wait", "write", "copy")]
    assert entries.index((two.stream, "kernel")) < min(places)
    assert max(places) < entries.index((first[0], "record", first[1]), min(places))


def test_a_capture_takes_no_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("ag_gemm"), 2, 512, 256)
    run.launch()
    run.api.capturing = {71}
    run.api.calls.clear()
    run.kernel(run.arrays, stream=71)
    contexts = {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"}
    assert set(run.api.names()) - contexts == {
        "cuEventRecord", "cuStreamWaitEvent", "cuMemsetD8Async", "cuLaunchKernelEx", "cuStreamBatchMemOp",
        "cuMemcpyAsync",
    }  # fmt: skip


def test_all_that_is_done_is_tried_before_the_first_kernel_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("gemm_rs"), 3, 700, 328)
    run.launch()
    entries = run.api.enqueued
    kernel = next(number for number, entry in enumerate(entries) if entry[1] == "kernel")
    tried, done = (
        {(entry[2] // STRIDE, entry[3] // STRIDE, *entry[4:]) for entry in some if entry[1] == "copy"}
        for some in (entries[:kernel], entries[kernel:])
    )
    assert tried == done
    assert any(entry[1] == "sync" for entry in entries[:kernel])
    into = {entry[3] for entry in entries[:kernel] if entry[1] == "copy"}
    assert into.isdisjoint(entry[3] for entry in entries[kernel:] if entry[1] == "copy")


def test_sms_are_left_for_copies_within_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("all_gather"), 2, 512, 256)
    run.launch()
    assert [launch.grid for launch in run.api.launches] == [SMS - 4] * 2


@pytest.mark.parametrize(("ranks", "fits"), [(4, True), (5, False)])
def test_virtual_ranks_need_a_queue_for_each_stream(monkeypatch: pytest.MonkeyPatch, ranks: int, fits: bool) -> None:
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    opened, _ = driver(monkeypatch, gpus=1)
    mesh = Mesh.virtual(ranks, driver=opened)
    if fits:
        LoadedKernel(artifact("ag_gemm"), mesh)
        return
    with pytest.raises(PkcError) as raised:
        LoadedKernel(artifact("ag_gemm"), mesh)
    assert (
        str(raised.value)
        == """\
error[PK859]: copy engines of 5 ranks on one GPU need 10 hardware queues; there are 8
  = note: each rank has 2 streams that must go on while the others wait
  = help: set CUDA_DEVICE_MAX_CONNECTIONS=32 before the program starts, or use fewer virtual ranks"""
    )
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    LoadedKernel(artifact("ag_gemm"), mesh)


def test_streams_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("gemm_rs"), 2, 512, 256)
    sides = {side.stream for sides in run.mesh.beside(1) for side in sides}
    run.mesh.close()
    assert sides <= {call[1] for call in run.api.calls if call[0] == "cuStreamDestroy"}
