"""A target: all that passes, the cost model, checks and code generation know of one kind of GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from pkc import targets
from pkc.diagnostics import PkcError, near
from pkc.dialect.program import AROUND, FLAT, TARGET, KernelOp, kernel_of
from pkc.dialect.roles import ChannelType
from pkc.dialect.types import TileType
from pkc.location import NOWHERE, Span, span_of
from pkc.targets.arch import ANY, Arch, Rate, Rates, Registers, Threads, Tuning
from pkc.targets.errors import UnknownTarget
from pkc.targets.instruction import Instruction
from pkc.targets.layout import Fragment, SharedLayout


class Operands(Enum):
    """Where an MMA instruction finds its operands."""

    SHARED = auto()
    """In shared memory, by matrix descriptors, the left one also in registers; through the async proxy, so that
    several are in flight (wgmma)."""
    REGISTERS = auto()
    """In the registers of a warp; it is complete when the next instruction begins (mma.sync)."""


@dataclass(frozen=True)
class Mma:
    """The shape of MMA instructions: `rows` x `columns` of the accumulator, in registers of a warpgroup.

    Each of its warps has 16 rows, thread l of it rows l / 4 and l / 4 + 8, and of 8 columns 2 (l mod 4) and the next
    (PTX ISA: matrix fragments of wgmma and of mma.m16n8).
    """

    operands: Operands
    rows: int
    columns: int
    """The most columns that one instruction has."""
    depth: int
    """Bytes of a row of the left operand that one instruction takes: its k, in bytes."""
    spare: int
    """Registers of a thread beside those of its accumulator that one instruction needs of what a CTA is launched
    with."""
    in_flight: int
    """The most MMAs that a wait can leave in flight; 0 where each is complete when the next instruction begins."""


@dataclass(frozen=True)
class MachineCode:
    """What can be told of instructions of machine code, each an integer of so many bytes, without a disassembler."""

    instruction_bytes: int
    ends_group: Callable[[int], bool]
    """Whether an instruction is the last MMA of a group that waits count."""
    left: Callable[[int], int | None]
    """How many groups of MMAs a wait leaves in flight; None for any other instruction."""


@dataclass(frozen=True)
class Tiles:
    """What autoschedule tries for rows and columns of a matmul, and for what it sums over in an iteration."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]
    most: int
    """The most elements that the accumulators of a CTA have together."""
    deep: tuple[int, ...] = ()
    """What is summed over in an iteration where accumulators have at most `small` elements: the MMAs of less take
    hardly longer than the iteration's barriers."""
    shallow: int = 0
    """What is summed over where results take so much of shared memory that a longer iteration has too few stages."""
    small: int = 0
    least_streamed: int = 8
    """The fewest rows of a matmul on one rank: with fewer, more tasks load the same right operands."""
    streamed: int = 8192
    """The most elements of tiles that meet no MMA: SMs are busy with several at a time."""
    pointwise: tuple[tuple[int, ...], ...] = ()
    """What autoschedule tries for tiles of two dimensions where each element is computed by itself."""
    pieces: tuple[int, ...] = (16384, 8192, 4096, 2048, 1024)
    """Elements of a piece of a row that does not fit, the best first: as many as are on their way to an SM at a
    time."""
    chained_rows: tuple[int, ...] = ()
    """What autoschedule tries for rows where MMAs of a loop need one another, with a warpgroup for each `Mma.rows`."""
    chained: tuple[int, ...] = ()
    """What it tries there for what the loop goes through."""


@dataclass(frozen=True)
class Target:
    """One kind of GPU.

    `code` is what NVRTC calls it (`-arch`). `transfers` are the legal values of `by` in the attribute `transfer` of an
    access (`pkc/dialect/transfers.py`). `shared_layout` says how a tile lies in a stage, each of which begins at a
    multiple of `alignment` bytes; `instruction` is the instruction table: the entry of a name, or None.
    """

    name: str
    code: str
    arch: Arch
    rates: Rates
    tuning: Tuning
    threads: Threads
    registers: Registers
    mma: Mma
    tiles: Tiles
    transfers: frozenset[str]
    alignment: int
    shared_layout: Callable[[TileType], SharedLayout]
    instruction: Callable[[str], Instruction | None]
    computing: Callable[[str, str], Instruction | None]
    """The instruction for one element of an operation, by the operation's name and the kind of its operand, or None: it
    is then made of others."""
    machine_code: MachineCode | None = None
    per_element: Callable[[str], Rate] = lambda _: ANY
    """What an operation of that name takes for each element."""
    flat_layout: Callable[[TileType], SharedLayout] | None = None
    """How tiles lie where nothing needs a swizzle, if in another way."""
    around_layout: Callable[[TileType], SharedLayout] | None = None
    """How they lie where their rows begin anywhere in memory, if in another way."""

    @cached_property
    def flat(self) -> Target:
        """The same for kernels whose tiles lie flat."""
        return replace(self, shared_layout=self.flat_layout or self.shared_layout)

    @cached_property
    def around(self) -> Target:
        """The same for kernels whose rows come with what lies around them."""
        return replace(self, shared_layout=self.around_layout or self.shared_layout)

    def of(self, kernel: KernelOp) -> Target:
        """The same for how the tiles of a kernel lie."""
        return self.around if AROUND in kernel.attributes else self.flat if FLAT in kernel.attributes else self

    # Registers

    def fragment(self, shape: tuple[int, ...], axes: tuple[int, ...], warpgroups: int) -> Fragment:
        """How a tile is spread over the registers of so many warpgroups."""
        return Fragment(shape, axes, warpgroups, self.mma.rows)

    def launched_registers(self, threads: int) -> int:
        """Registers that a CTA of that many threads is launched with, the same number for each thread."""
        return min(self.arch.registers // threads // 8 * 8, self.arch.thread_registers // 8 * 8) * threads

    # Shared memory

    @property
    def stage_memory(self) -> int:
        """Bytes of a CTA for channels: their start is aligned."""
        return self.arch.shared_memory - self.alignment

    def stage_layout(self, tiles: Iterable[TileType]) -> tuple[tuple[int, ...], int]:
        """Where each tile of a stage begins, and how long the stage is, in bytes; every tile is aligned."""
        offsets: list[int] = []
        total = 0
        for tile in tiles:
            offsets.append(total)
            total += -(-self.shared_layout(tile).bytes // self.alignment) * self.alignment
        return tuple(offsets), total

    def stage_bytes(self, channel: ChannelType) -> int:
        """Bytes of shared memory that the tiles of one stage take."""
        return self.stage_layout(channel.tiles)[1]

    def footprint(self, channel: ChannelType) -> int:
        """Bytes of shared memory that one stage takes: its tiles and two barriers, one for full and one for free."""
        return self.stage_bytes(channel) + 2 * self.arch.mbarrier_bytes


def lookup(name: str, span: Span = NOWHERE) -> Target:
    """The target of that name. Raises `PkcError`."""
    found = targets.find(name)
    if found is None:
        hint = near(name, targets.names(), "there is " if len(targets.names()) == 1 else "there are ")
        raise PkcError(UnknownTarget(span, name, hint))
    return found


def target_of(op: Operation) -> Target:
    """The target of the kernel that an operation is, or is in: the default one if none is attached.

    Raises `PkcError` if it has another name than any target.
    """
    kernel = kernel_of(op)
    name = None if kernel is None else kernel.attributes.get(TARGET)
    if kernel is None or not isinstance(name, StringAttr):
        return lookup(targets.DEFAULT)
    found = lookup(name.data, span_of(kernel.location))
    return found.of(kernel)
