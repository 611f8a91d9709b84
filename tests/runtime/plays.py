"""Examples with copy engines, launched on a fake driver; what was enqueued is then executed in some order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkc.codegen.artifact import Artifact
from pkc.codegen.build import machine_level
from pkc.codegen.kernel_parameters import array_parameters, signal_parameters, struct_fields
from pkc.codegen.probes import waits_of
from pkc.dialect import blocks
from pkc.dialect.blocks import Block
from pkc.dialect.engines import engines_text
from pkc.driver.compiler import load
from pkc.runtime.arrays import Array
from pkc.runtime.engines import Engines
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.rank import Side
from tests.runtime.fake import driver
from tests.runtime.streams import Kernel, Memory, Streams

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS, COLUMNS = 128, 256
"""The tiles of the examples."""

SUMMED = 32
"""Rows of a chunk of `gemm_ar` that the owner adds up at once."""

SIZES = {"divisible": (1024, 512), "ragged": (700, 328), "short": (130, 264)}
"""M, and the length of rows. With 130 rows the last of 4 ranks have few or none."""


@cache
def artifact(name: str) -> Artifact:
    """An example with copy engines, without machine code."""
    kernel = machine_level(load(EXAMPLES / f"{name}.pk", level="machine", schedule={"overlap": "copy_engine"}).kernel)
    parameters = array_parameters(kernel), signal_parameters(kernel), struct_fields(kernel)[0]
    return Artifact(
        name, "sm_90a", name.encode(), *parameters, 128, 0, 1, 0, waits=waits_of(kernel), engines=engines_text(kernel)
    )


class Run:
    """An example on `ranks` GPUs of a fake driver, and the memory of these GPUs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, made: Artifact, ranks: int, m: int, n: int) -> None:
        opened, self.api = driver(monkeypatch, gpus=ranks)
        self.mesh, self.ranks, self.m, self.n, self.artifact = Mesh.single_process(driver=opened), ranks, m, n, made
        self.kernel = LoadedKernel(made, self.mesh)
        self.roles = Engines(made.engines).count
        shapes = {"A": (m, n), "B": (n, 64), "C": (m, 64), "X": (m, n), "Y": (m, n)}
        if made.name in ("gemm_rs", "gemm_ar"):
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
        (memory,) = self.kernel.memory._by_dims.values()
        return self.mesh.heap.address(rank, memory.offsets[name])

    def array(self, name: str, rank: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
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

    def lanes(self, rank: int) -> list[list[Side]]:
        """The streams of each copy engine role."""
        count = self.mesh.lanes(self.roles)
        sides = self.mesh.beside(self.roles * count)[rank]
        return [sides[first : first + count] for first in range(0, len(sides), count)]

    def call(self, rank: int, function: Any) -> None:
        """Enqueue `function` of the caller between launches, on the stream of a rank."""
        self.api.enqueued.append((self.mesh.local[rank].stream, "call", function))

    def rows(self, height: int = ROWS) -> Iterator[tuple[int, Block, int]]:
        """All blocks of rows: owner, block, number."""
        for index in range(blocks.sharded_count(self.m, self.ranks, height)):
            block = blocks.sharded_block(self.m, self.ranks, height, index)
            owner = blocks.owner(self.m, self.ranks, block.start)
            yield owner, block, block.start // height + owner

    def tiles(self, height: int = ROWS) -> Iterator[tuple[int, Block, Block, tuple[int, int]]]:
        """All tiles: owner, rows, columns, their numbers."""
        columns = [blocks.block(0, self.n, COLUMNS, index) for index in range(blocks.count(0, self.n, COLUMNS))]
        for (owner, block, number), column in product(self.rows(height), columns):
            last = blocks.owner(self.n, self.ranks, column.start)
            yield owner, block, column, (number, column.start // COLUMNS + last)


@cache
def content(launch: int, rank: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """What a rank computes in a launch: other numbers in each."""
    values = np.random.default_rng((launch, rank)).integers(1, 60_000, shape, np.uint16)
    values.flags.writeable = False
    return values


def box(values: np.ndarray[Any, Any], block: Block, column: Block | None = None) -> np.ndarray[Any, Any]:
    columns = slice(None) if column is None else slice(column.start, column.start + column.length)
    return values[block.start : block.start + block.length, columns]


def fetching(run: Run, launch: int, rank: int) -> Kernel:
    """`ag_gemm`: reads what the copy engine fetches."""
    whole = content(launch, 0, (run.m, run.n))
    for owner, block, number in run.rows():
        if owner != rank:
            yield run.counter("A.ready", rank, number), 1
            found = box(run.array("A.fetched", rank, (run.m, run.n)), block)
            assert (found == box(whole, block)).all(), f"launch {launch}, rank {rank}, rows {block}"


def fill(run: Run, launch: int, rank: int) -> None:
    """The caller of `ag_gemm` writes the rows of a rank."""
    whole, (first, last) = content(launch, 0, (run.m, run.n)), blocks.shard_bounds(run.m, run.ranks, rank)
    run.array("A", rank, (last - first, run.n))[:] = whole[first:last]


def spreading(run: Run, launch: int, rank: int) -> Kernel:
    """`all_gather`: stores its tiles for the copy engine to send."""
    whole = content(launch, 0, (run.m, run.n))
    for owner, block, column, numbers in run.tiles():
        if owner == rank:
            box(run.array("Y.staged", rank, (run.m, run.n)), block, column)[:] = box(whole, block, column)
            run.memory.counter(run.counter("Y.computed", rank, *numbers))[0] = 1
            yield None


def look(run: Run, launch: int, rank: int) -> None:
    """The caller of `all_gather` or `gemm_ar` checks the whole result on its rank, and overwrites it."""
    found = run.array("Y" if "Y" in run.arrays else "C", rank, (run.m, run.n))
    assert (found == content(launch, 0, (run.m, run.n))).all(), f"launch {launch}, rank {rank}"
    found[:] = 0


def summing(run: Run, launch: int, rank: int) -> Kernel:
    """`gemm_rs`: stores all tiles, then waits for what all ranks have sent."""
    contribution = content(launch, rank, (run.m, run.n))
    for _, block, column, numbers in run.tiles():
        box(run.array("C.slots.staged", rank, (run.m, run.n)), block, column)[:] = box(contribution, block, column)
        run.memory.counter(run.counter("C.slots.computed", rank, *numbers))[0] = 1
        yield None
    length = blocks.shard_length(run.m, run.ranks)
    slots = run.array("C.slots", rank, (run.ranks, length, run.n))
    for owner, block, column, numbers in run.tiles():
        for source in range(run.ranks) if owner == rank else ():
            yield run.counter("C.arrived", rank, source, *numbers), 1
            local = Block(block.start - rank * length, block.length)
            wanted = box(content(launch, source, (run.m, run.n)), block, column)
            assert (box(slots[source], local, column) == wanted).all(), f"launch {launch}, {source} to {rank}"


def summing_for_all(run: Run, launch: int, rank: int) -> Kernel:
    """`gemm_ar`: then stores its local rows for the copy engine to send to all."""
    yield from summing(run, launch, rank)
    whole = content(launch, 0, (run.m, run.n))
    for owner, block, column, numbers in run.tiles(SUMMED):
        if owner == rank:
            box(run.array("C.staged", rank, (run.m, run.n)), block, column)[:] = box(whole, block, column)
            run.memory.counter(run.counter("C.computed", rank, *numbers))[0] = 1
            yield None


KERNELS: dict[str, tuple[Any, Any, Any]] = {
    "ag_gemm": (fetching, fill, None),
    "all_gather": (spreading, None, look),
    "gemm_rs": (summing, None, None),
    "gemm_ar": (summing_for_all, None, look),
}
"""What the kernel does, and what its caller does before and after each launch."""


Entry = tuple[Any, ...]
"""An operation of a stream, as `Api.enqueued` has it."""


def play(
    run: Run,
    seed: int,
    launches: int = 3,
    *,
    leave_out: Callable[[Run, Entry], bool] | None = None,
    one_queue: bool = False,
    last: int | None = None,
) -> None:
    """Launch several times without waiting, then do everything in some order.

    Entries for which `leave_out` is true are not done; with `one_queue` all streams beside the kernels of a rank
    are in one hardware queue. The stream `last` goes on only while no other can.
    """
    kernel, before, after = KERNELS[run.artifact.name]
    for launch in range(launches):
        for rank in range(run.ranks) if before is not None else ():
            run.call(rank, lambda launch=launch, rank=rank: before(run, launch, rank))
        run.launch()
        for rank in range(run.ranks) if after is not None else ():
            run.call(rank, lambda launch=launch, rank=rank: after(run, launch, rank))
    made = lambda number: kernel(run, *divmod(number, run.ranks))  # noqa: E731
    queues = {
        side.stream: -1 - rank for rank in range(run.ranks if one_queue else 0) for side in chain(*run.lanes(rank))
    }
    enqueued = [entry for entry in run.api.enqueued if leave_out is None or not leave_out(run, entry)]
    Streams(run.memory, made, seed, queues, last).run(enqueued)
