"""Runs machine-level IR thread by thread, for what needs no tensor cores: addresses, layouts, boxes, masks.

Threads run one after the other, each to its end, and nothing waits: roles run in the order of their data, with one
task for each CTA. So it says where data goes, not when; but arrivals, bytes and waits are counted, phase by phase. Two
16-bit elements in one register are a tuple.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.codegen.artifact import TensorMaps
from pkc.dialect import blocks, machine
from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.numeric import numpy_dtype
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, KernelOp, RoleOp
from pkc.dialect.types import DTYPES, PGLType, PrivateType, dtype_bytes
from pkc.passes.roles.plan_warps import COMMUNICATE
from pkc.targets.layout import BOX
from pkc.targets.sm_90a.instructions import PLAIN
from tests.codegen.as_python import Writer
from tests.codegen.barriers import Barriers

_BASE, _STRIDE = 1 << 40, 1 << 36
_WARP = 32


@dataclass
class Memory:
    """Arrays by name: the shard or copy of every rank, poisoned with NaN where nothing was written."""

    kernel: KernelOp
    ranks: int
    sizes: dict[str, int]
    """Those of dimensions, and values of scalars; these are NaN if they are not here."""
    arrays: dict[str, list[np.ndarray[Any, Any]]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    ctas: list[Cta] = field(default_factory=list)
    programs: dict[tuple[Block, type[Thread]], Callable[..., Any]] = field(default_factory=dict)
    asked: Counter[int] = field(default_factory=Counter[int])
    """How often CTAs of a rank have asked for more tasks."""
    again: frozenset[str] = frozenset()
    """Arrays whose elements may be stored several times."""
    flat: dict[int, tuple[list[np.ndarray[Any, Any]], int]] = field(default_factory=dict)
    """By the number of an array the elements of each rank, in order, and the bytes of each."""

    def __post_init__(self) -> None:
        self.sizes = {"report_ctas": 1, **self.sizes}  # nobody reports, unless a test says of how many CTAs
        for argument in self.kernel.body.block.args:
            name = self.kernel.argument_name(argument)
            self.names.append(name)
            if isinstance(argument.type, PrivateType | PGLType):
                shards = [np.full(self.shape(argument.type, rank), np.nan) for rank in range(self.ranks)]
                self.arrays[name] = shards

    def extent(self, dim: str | int) -> int:
        return dim if isinstance(dim, int) else self.ranks if dim == "ranks" else self.sizes[dim]

    def shape(self, kind: PrivateType | PGLType, rank: int) -> tuple[int, ...]:
        """What a rank has of an array; shards are as long as the longest, the rest of a shorter one is never used."""
        extents = [self.extent(dim) for dim in kind.dimensions]
        if isinstance(kind, PGLType) and kind.shard_dim is not None:
            extents[kind.shard_dim] = blocks.shard_length(extents[kind.shard_dim], self.ranks)
        if isinstance(kind, PrivateType) and kind.padded:
            extents[-1] = blocks.padded_length(extents[-1], dtype_bytes(kind.element_type))
        return tuple(extents)

    def base(self, name: str) -> int:
        return _BASE * (1 + self.names.index(name))

    def load(self, address: int, *, narrow: bool = False) -> Any:
        """A register from an address: one element, or a tuple of 16-bit ones."""
        flat, first, size = self.find(address)
        if size == 4:
            return flat.item(first)
        count = 1 if narrow else 4 // size
        assert first + count <= flat.size
        return tuple(flat[first : first + count].tolist())

    def store(self, address: int, word: Any, *, narrow: bool = False) -> None:
        """A register to an address, where nothing was stored before."""
        flat, first, size = self.find(address)
        again = self.names[address // _BASE - 1] in self.again
        count = 1 if narrow else 4 // size
        assert first + count <= flat.size
        elements = word if isinstance(word, tuple) else (word,)
        for at, element in zip(range(first, first + count), elements, strict=False):
            assert again or np.isnan(flat.item(at)), "stored twice"
            flat[at] = element

    def add(self, address: int, word: Any, *, narrow: bool = False) -> None:
        """A register, added to what was stored at an address."""
        flat, first, size = self.find(address)
        count = 1 if narrow else 4 // size
        assert first + count <= flat.size
        elements = word if isinstance(word, tuple) else (word,)
        for at, element in zip(range(first, first + count), elements, strict=False):
            assert not np.isnan(flat.item(at)), "added to nothing"
            flat[at] += element

    def find(self, address: int) -> tuple[np.ndarray[Any, Any], int, int]:
        """The elements of one rank's shard or copy, the number of the one at an address, and the bytes of each."""
        number, rest = divmod(address, _BASE)
        rank, offset = divmod(rest, _STRIDE)
        if number not in self.flat:
            argument = self.kernel.body.block.args[number - 1]
            size = dtype_bytes(argument.type.element_type) * (2 if self.kernel.has_packets(argument) else 1)
            self.flat[number] = [array.reshape(-1) for array in self.arrays[self.names[number - 1]]], size
        arrays, size = self.flat[number]
        assert offset % size == 0
        return arrays[rank], offset // size, size


@dataclass(frozen=True)
class Map:
    spec: TensorMaps
    kind: PrivateType | PGLType
    last: int


@dataclass
class Cta:
    """One CTA: shared memory by byte address, and what its threads store as matrices."""

    memory: Memory
    rank: int
    number: int
    count: int
    shared: dict[int, Any] = field(default_factory=dict)
    barriers: Barriers = field(default_factory=Barriers)
    now: int = 1_000_000
    """Nanoseconds, half a cycle each; looking at a clock takes one of its steps of 32."""
    gives_up: str = ""
    """The bounded wait that always gives up, having seen 5."""

    def tick(self) -> int:
        self.now += 32
        return self.now

    def run(self, body: Block, threads: range) -> None:
        matrices: dict[int, list[tuple[int, ...]]] = {}
        for number in threads:
            thread = Thread(self, number)
            with contextlib.suppress(EndedError):
                thread.block(body)
            matrices[number] = thread.matrices
        for first in range(threads.start, threads.stop, _WARP):
            self._store_matrices([matrices[thread] for thread in range(first, min(first + _WARP, threads.stop))])

    def _store_matrices(self, calls: list[list[tuple[int, ...]]]) -> None:
        """stmatrix: row j of matrix i is where thread 8 i + j says; thread l has columns 2 (l mod 4) and the next one,
        of row l / 4; with .trans rows of that column."""
        for together in zip(*calls, strict=True):
            for lane, (turned, _, *registers) in enumerate(together):
                for matrix, pair in enumerate(registers):
                    for j, element in enumerate(pair):
                        row, column = lane // 4, 2 * (lane % 4) + j
                        if turned:
                            row, column = column, row
                        self.shared[together[8 * matrix + row][1] + 2 * column] = element

    def copy(self, box: Map, address: int, place: tuple[int, ...], *, load: bool) -> int:
        """A box of an array to or from shared memory, swizzled as the hardware does; the bytes that it has there."""
        spec, size = box.spec, dtype_bytes(box.kind.element_type)
        count = int(np.prod(spec.box))
        offsets = np.unravel_index(np.arange(count), tuple(reversed(spec.box)))
        assert address % BOX == 0, "a box lies at a multiple of 128 bytes"
        at = swizzled(address + np.arange(count) * size, spec.swizzle).tolist()
        array, dims, exists = self._elements(box, [p + o for p, o in zip(place, reversed(offsets), strict=True)])
        where = tuple(dim[exists] for dim in dims)
        if load:
            values = np.zeros(count)
            values[exists] = array[where]
            self.shared.update(zip(at, values.tolist(), strict=True))
        else:
            assert np.isnan(array[where]).all(), "stored twice"
            array[where] = [self.shared[at[number]] for number in np.flatnonzero(exists)]
        return count * size

    def copy_row(self, address: int, place: int, size: int, *, load: bool) -> int:
        """So many bytes of an array to or from shared memory."""
        flat, first, each = self.memory.find(place)
        assert address % 16 == size % 16 == first * each % 16 == 0
        assert first + size // each <= flat.size
        for at, number in zip(range(address, address + size, each), range(first, flat.size), strict=False):
            if load:
                self.shared[at] = flat.item(number)
            else:
                assert np.isnan(flat.item(number)), "stored twice"
                flat[number] = self.shared[at]
        return size

    def _elements(
        self, box: Map, places: list[np.ndarray[Any, Any]]
    ) -> tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
        """The elements at places of a tensor map (`TensorMaps` in `pkc/codegen/artifact.py`): the array, the positions
        in it, and which of them exist."""
        kind, split = box.kind, box.spec.split
        extents = [self.memory.extent(dim) for dim in kind.dimensions]
        further = (split is not None) + (isinstance(kind, PGLType) and kind.shard_dim is None)
        sizes = box.spec.box
        if len(sizes) > len(extents) + further:
            places = [places[0] + sizes[0] * places[-1], *places[1:-1]]
            assert extents[-1] % sizes[0] == 0
            sizes = sizes[:-1]
        dims, rest = list(reversed(places[: len(extents)])), [int(place[0]) for place in places[len(extents) :]]
        assert set(sizes[len(extents) :]) <= {1}
        rank = self.rank
        shard = kind.shard_dim if isinstance(kind, PGLType) else None
        exists = np.full(len(places[0]), True)
        if split is not None:
            whole_extent = extents[split]
            length = blocks.shard_length(whole_extent, self.memory.ranks)
            whole = whole_extent // length
            number = rest.pop(0)
            extents[split] = whole_extent - whole * length if box.last else length
            exists &= 0 <= number < (1 if box.last else min(whole, self.memory.ranks))
            number += whole if box.last else 0
            if shard == split and exists.all():
                rank = number
        if isinstance(kind, PGLType) and shard is None:
            rank = rest.pop(0)
        assert not rest
        for at, extent in zip(dims, extents, strict=True):
            exists &= (at >= 0) & (at < extent)
        if split is not None and shard != split:
            dims[split] = dims[split] + number * length
        return self.memory.arrays[box.spec.array][rank], dims, exists


def swizzled(offset: Any, width: int) -> Any:
    """Where a byte lies (PTX ISA, swizzling modes): 16-byte chunks change places by the number of the 128-byte line,
    counted from the begin of shared memory."""
    return offset ^ (((offset >> 7) & (width // 16 - 1)) << 4) if width else offset


SHARES = {"queue": "false"}
"""The schedule of kernels whose threads run to their ends one after the other, or do not wait for barriers: they could
not wait for numbers of tasks either (`tests/codegen/live.py` has threads that do)."""


class EndedError(Exception):
    """The thread has ended before the kernel does."""


Does = Callable[..., Any]
"""What an instruction does, and gives: from a thread and the values of its operands."""


class Thread:
    """One thread of a CTA."""

    def __init__(self, cta: Cta, number: int) -> None:
        self.cta = cta
        self.number = number
        self.matrices: list[tuple[int, ...]] = []

    @classmethod
    def does(cls, name: str) -> Does:
        """What an instruction does; others look at something else."""
        return _does(name)

    def block(self, block: Block) -> None:
        programs, key = self.cta.memory.programs, (block, type(self))
        if key not in programs:
            programs[key] = _Translated(self.cta.memory, type(self)).function(["thread", "rank"], block)
        programs[key](self, self.cta.rank)


class _Translated(Writer):
    """What a thread does in a kernel."""

    def __init__(self, memory: Memory, kind: type[Thread]) -> None:
        super().__init__()
        self._memory, self._kind = memory, kind

    def name(self, value: SSAValue) -> str:
        kernel = self._memory.kernel
        if isinstance(value, BlockArgument) and value.block is kernel.body.block and value.type == f32:
            return f"float('{self._memory.sizes.get(kernel.argument_name(value), 'nan')}')"
        return super().name(value)

    def _other(self, op: Operation, operands: Sequence[str]) -> str:
        if isinstance(op, machine.InstructionOp):
            does = self.given(self._kind.does(op.instruction_name.data))
            return f"{does}({', '.join(['thread', *operands])})"
        if isinstance(op, RankOp):
            return "rank"
        if isinstance(op, DimOp):
            return str(self._memory.extent(op.dim.data))
        if isinstance(op, machine.LaunchValueOp):
            return str(_STRIDE if op.what.data == "heap_stride" else 0)
        if isinstance(op, machine.AddressOp):
            base = self._memory.base(self._memory.kernel.argument_name(op.array))
            return f"{base} + rank * {_STRIDE}" if isinstance(op.array.type, PrivateType) else str(base)
        if isinstance(op, machine.TensorMapOp):
            split = None if op.split is None else op.split.value.data
            name = self._memory.kernel.argument_name(op.array)
            spec = TensorMaps("", name, tuple(op.box.get_values()), op.swizzle.value.data, split)
            return f"{self.given(Map)}({self.given(spec)}, {self.given(op.array.type)}, {operands[1]})"
        return super()._other(op, operands)


def _does(name: str) -> Does:
    if name in _DOES:
        return _DOES[name]
    if name == "tma_load_row_around":
        return _load_row_around
    if name.startswith("tma_") and "_row" in name:
        return _load_row if name.startswith("tma_load") else _store_row
    if name.startswith("tma_load"):
        return _tma_load
    if name.startswith("tma_store"):
        return lambda thread, address, box, *place: thread.cta.copy(box, address, place, load=False)
    if name in ("spin_guarded", "spin_guarded_in_task"):
        return _guarded
    if "_bounded" in name:
        return lambda thread, *values: _bounded(thread, name, values)
    if "global" not in name or name.startswith("fence"):
        return lambda *_: None
    if name.startswith("add_"):
        if "_v4" in name:
            return _add_global_v4
        return lambda thread, address, word: thread.cta.memory.add(address, word, narrow=True)
    if name == "load_global_v1_where":
        return _load_global_v1_where
    if "_around" in name:
        return _load_global_around
    if "_v4" in name:
        return _load_global_v4 if name.startswith("load") else _store_global_v4
    if name.startswith("load"):
        return lambda thread, address: thread.cta.memory.load(address, narrow=name.endswith(("b16", "b8")))
    return lambda thread, address, word: thread.cta.memory.store(address, word, narrow=name.endswith(("b16", "b8")))


def _tma_load(thread: Thread, address: int, box: Map, barrier: int, *place: int) -> None:
    thread.cta.barriers[barrier].complete(thread.number, thread.cta.copy(box, address, place, load=True))


def _bounded(thread: Thread, name: str, values: Sequence[Any]) -> int:
    if name == "spin_bounded":
        registers, start = values[0]
        registers[start] = 5
    else:
        thread.cta.barriers[values[0]].wait(thread.number, values[1])
    return int(name == thread.cta.gives_up)


def _load_global_v4(thread: Thread, to: tuple[list[Any], int], address: int, *where: bool) -> None:
    """Four registers, if all of them exist."""
    assert not all(where) or address % 16 == 0, "16 bytes lie at a multiple of 16"
    registers, start = to
    for i in range(4) if all(where) else ():
        registers[start + i] = thread.cta.memory.load(address + 4 * i)


def _load_global_around(thread: Thread, to: tuple[list[Any], int], address: int, where: bool) -> None:
    """Four registers around some elements: what is behind the array is poison."""
    assert address % 16 == 0, "16 bytes lie at a multiple of 16"
    registers, start = to
    for i in range(4) if where else ():
        flat, first, size = thread.cta.memory.find(address + 4 * i)
        numbers = range(first, first + 4 // size)
        word = tuple(flat.item(number) if number < flat.size else np.nan for number in numbers)
        registers[start + i] = word if len(word) > 1 else word[0]


def _pair_of_halves(first: int, second: int, _: Thread, a: Any, b: Any) -> Any:
    """One element each of two registers that have two each."""
    return a[first], b[second]


def _shift_pair(_: Thread, low: Any, high: Any, bits: int) -> Any:
    """Elements of two registers, from one of the first on."""
    pair = [word if isinstance(word, tuple) else (word,) for word in (low, high)]
    count = max(2, *map(len, pair), 32 // (bits & -bits or 32))
    elements = [element for word in pair for element in _widened(word, count)]
    first = bits * count // 32
    return tuple(elements[first : first + count])


def _widened(word: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """A register of so many elements: of zeros if it was one, else what was not known of it is poison."""
    return (*word, *(0.0 if not any(word) else np.nan for _ in range(count - len(word))))


def _load_global_v1_where(thread: Thread, to: tuple[list[Any], int], address: int, where: bool) -> None:
    registers, start = to
    if where:
        registers[start] = thread.cta.memory.load(address)


def _store_global_v4(thread: Thread, of: tuple[list[Any], int], address: int, *where: bool) -> None:
    assert not all(where) or address % 16 == 0, "16 bytes lie at a multiple of 16"
    registers, start = of
    for i in range(4) if all(where) else ():
        thread.cta.memory.store(address + 4 * i, registers[start + i])


def _add_global_v4(thread: Thread, of: tuple[list[Any], int], address: int, *where: bool) -> None:
    assert not all(where) or address % 16 == 0, "16 bytes lie at a multiple of 16"
    registers, start = of
    for i in range(4) if all(where) else ():
        thread.cta.memory.add(address + 4 * i, registers[start + i])


def _send_v4(thread: Thread, of: tuple[list[Any], int], address: int, epoch: int, where: bool) -> None:
    assert not where or address % 32 == 0, "8 packets lie at a multiple of 32"
    registers, start = of
    for i in range(8) if where else ():
        thread.cta.memory.store(address + 4 * i, registers[start + i // 2][i % 2])


def _receive_v4(thread: Thread, to: tuple[list[Any], int], address: int, epoch: int, where: bool) -> None:
    assert not where or address % 32 == 0, "8 packets lie at a multiple of 32"
    registers, start = to
    for i in range(4) if where else ():
        found = tuple(thread.cta.memory.load(address + 8 * i + at) for at in (0, 4))
        assert not np.isnan(found).any(), "not sent"
        registers[start + i] = found


def _load_shared(thread: Thread, address: int) -> Any:
    """A register: one element, two of 16 or four of 8 bits."""
    shared = thread.cta.shared
    low = shared[address]
    if address + 1 in shared:
        return tuple(shared[address + i] for i in range(4))
    return (low, shared[address + 2]) if address + 2 in shared else low


def _load_shared_v2(thread: Thread, to: tuple[list[Any], int], address: int) -> None:
    registers, start = to
    for i in range(2):
        registers[start + i] = _load_shared(thread, address + 4 * i)


def _store_shared_v2(thread: Thread, address: int, *words: Any) -> None:
    for i, word in enumerate(words):
        _store_shared(thread, address + 4 * i, word)


def _load_shared_v4(thread: Thread, to: tuple[list[Any], int], address: int) -> None:
    registers, start = to
    for i in range(4):
        registers[start + i] = _load_shared(thread, address + 4 * i)


def _load_shared_around(thread: Thread, to: tuple[list[Any], int], address: int) -> None:
    """Four registers around some elements."""
    assert address % 16 == 0, "16 bytes lie at a multiple of 16"
    registers, start = to
    for i in range(4):
        registers[start + i] = _word_around(thread, address + 4 * i)


def _word_around(thread: Thread, at: int) -> Any:
    """A register around some elements: what is not there is poison."""
    shared = thread.cta.shared
    size = next((size for size in (1, 2) if any(at + step in shared for step in range(size, 4, 2 * size))), 4)
    word = tuple(shared.get(at + step, np.nan) for step in range(0, 4, size))
    return word if size < 4 else word[0]


def _store_shared(thread: Thread, address: int, word: Any) -> None:
    words = word if isinstance(word, tuple) else (word,)
    thread.cta.shared.update({address + 4 // len(words) * i: word for i, word in enumerate(words)})


def _load_shared_b8x2(thread: Thread, address: int) -> Any:
    """Two elements; where a register of zeros was stored, which is a pair, they are zero."""
    low = thread.cta.shared[address]
    return low, thread.cta.shared.get(address + 1, np.nan if low else 0.0)


def _store_shared_b8x2(thread: Thread, address: int, word: tuple[Any, Any]) -> None:
    thread.cta.shared.update({address: word[0], address + 1: word[1]})


def _copy_shared_v4(thread: Thread, to: int, address: int, where: bool) -> None:
    """16 bytes, zero if they do not exist; there at once, which is one of the orders that are possible."""
    assert not where or address % 16 == 0, "16 bytes lie at a multiple of 16"
    words: list[Any] = [thread.cta.memory.load(address + 4 * i) if where else (0.0, 0.0) for i in range(4)]
    _store_shared_v4(thread, (words, 0), to)


def _copy_shared_b32(thread: Thread, to: int, address: int, where: bool) -> None:
    assert not where or address % 4 == 0, "4 bytes lie at a multiple of 4"
    _store_shared(thread, to, thread.cta.memory.load(address) if where else 0.0)


def _store_shared_v4(thread: Thread, of: tuple[list[Any], int], address: int) -> None:
    registers, start = of
    for i in range(4):
        _store_shared(thread, address + 4 * i, registers[start + i])


def _store_shared_b16(thread: Thread, address: int, word: tuple[Any, Any]) -> None:
    thread.cta.shared[address] = word[0]


def _store_u32(thread: Thread, address: int, word: int) -> None:
    """Words of an instrument; the epochs, which are in no array, stay as they are."""
    if address >= _BASE:
        thread.cta.memory.store(address, word)


def _take_number(thread: Thread, _address: int) -> int:
    """Of tasks that CTAs take from a queue."""
    asked = thread.cta.memory.asked
    asked[thread.cta.rank] += 1
    return asked[thread.cta.rank] - 1


def _record(thread: Thread, number: tuple[list[int], int], base: int, length: int, *words: int) -> None:
    registers, start = number
    if registers[start] < length:
        for at, word in enumerate(words):
            thread.cta.memory.store(base + 16 * registers[start] + 4 * at, word)
    registers[start] += 1


def _guarded(thread: Thread, address: int, count: int, _alarm: int, reports: int, warps: int, *where: int) -> None:
    if thread.cta.gives_up:
        _report(thread, reports, warps, 1, *where, 5, count, address % 2**32)


def _report(thread: Thread, base: int, warps: int, *words: int) -> None:
    place = base + 32 * (thread.cta.number * warps + thread.number // _WARP)
    for at, word in enumerate(words):
        thread.cta.memory.store(place + 4 * at, word)


def _load_row(thread: Thread, address: int, source: int, barrier: int, size: int) -> None:
    thread.cta.barriers[barrier].complete(thread.number, thread.cta.copy_row(address, source, size, load=True))


def _load_row_around(thread: Thread, address: int, source: int, barrier: int, size: int) -> None:
    """What is behind the array is poison."""
    flat, first, each = thread.cta.memory.find(source)
    assert address % 16 == size % 16 == first * each % 16 == 0
    assert (first + size // each - flat.size) * each < 16
    for number in range(size // each):
        found = flat.item(first + number) if first + number < flat.size else np.nan
        thread.cta.shared[address + number * each] = found
    thread.cta.barriers[barrier].complete(thread.number, size)


def _store_row(thread: Thread, address: int, target: int, size: int) -> None:
    thread.cta.copy_row(address, target, size, load=False)


def _end_thread(thread: Thread) -> None:
    raise EndedError


def _on_values(value: Callable[..., Any]) -> Does:
    return lambda _, *operands: value(*(np.float64(x) if isinstance(x, float) else x for x in operands))


def _integer(x: float) -> int:
    """The integer that 32 bits are: of what nothing was written to, some number."""
    return 0x5EADBEEF if x != x else int(x)


def _pack(kind: np.dtype[Any]) -> Does:
    """Two elements; of 8 bits, whose steps are wide, rounded. Integers are the nearest that there is."""
    if kind.kind == "i":
        return lambda _, *pair: tuple(min(max(int(x), -128), 127) for x in pair)
    if kind.itemsize > 1:
        return lambda _, low, high: (low, high)
    return lambda _, *pair: tuple(float(np.float32(x).astype(kind)) for x in pair)


_PAIRED = ("bf16", "f16", "e4m3", "e5m2", "i8")
_DECLARED = {op.name: declared.value for op, declared in OPERATIONS.items()}
_DOES: dict[str, Does] = {
    "thread_number": lambda thread: thread.number,
    "warp_number": lambda thread: thread.number // _WARP,
    "cta_number": lambda thread: thread.cta.number,
    "cta_count": lambda thread: thread.cta.count,
    "cta_of_cluster": lambda thread: thread.cta.number,  # where there are clusters, all CTAs are one
    "shared_base": lambda _: 0,
    "unknown": lambda _, value: value,
    "load_u32": lambda *_: 0,
    "sm_number": lambda thread: 100 + thread.cta.number,
    "timer": lambda thread: thread.cta.tick(),
    "cycle": lambda thread: 2 * thread.cta.tick(),
    **{f"pack_{kind}": _pack(numpy_dtype(DTYPES[kind])) for kind in _PAIRED},
    **{f"low_{kind}": lambda _, pair: pair[0] for kind in _PAIRED},
    **{f"high_{kind}": lambda _, pair: pair[1] for kind in _PAIRED},
    # Two elements of zero are one register of zero.
    "bits_f32": lambda _, x: x if x else (0.0, 0.0),
    "shift_pair": _shift_pair,
    **{
        f"pair_{('low', 'high')[first]}_{('low', 'high')[second]}": partial(_pair_of_halves, first, second)
        for first in range(2)
        for second in range(2)
    },
    "float_bits": lambda _, x: x[0] if isinstance(x, tuple) else x,
    "low_i8": lambda _, pair: int(pair[0]),
    "high_i8": lambda _, pair: int(pair[1]),
    **{f"{kind}_of_i8": lambda _, pair: tuple(map(float, pair)) for kind in ("bf16", "f16")},
    "bits_i32": lambda _, x: x,
    "int_bits": lambda _, x: _integer(x[0] if isinstance(x, tuple) else x),
    "divisor_scale": lambda _, x: 2.0**-32 if abs(x) > 2.0**126 else 2.0**32 if abs(x) < 2.0**-126 else 1.0,
    "reciprocal": lambda _, x: 1 / x,
    **{f"max_nan_{kind}x2": lambda _, x, y: tuple(map(np.maximum, x, y)) for kind in ("bf16", "f16")},
    **{f"min_nan_{kind}x2": lambda _, x, y: tuple(map(np.minimum, x, y)) for kind in ("bf16", "f16")},
    "any_of_warp": lambda _, x: x,
    "count_bits": lambda _, x: x.bit_count(),
    "lowest_bit": lambda _, x: (x & -x).bit_length() - 1,
    **{entry.name: _on_values(_DECLARED[entry.computes]) for entry in PLAIN if entry.computes},
    "mbarrier_init": lambda thread, at, count: thread.cta.barriers[at].init(count),
    "mbarrier_arrive": lambda thread, at: thread.cta.barriers[at].arrive(thread.number),
    "mbarrier_expect": lambda thread, at, size: thread.cta.barriers[at].expect(thread.number, size),
    "mbarrier_announce": lambda thread, at, size: thread.cta.barriers[at].announce(thread.number, size),
    "mbarrier_test": lambda *_: 0,  # as if it were not filled: then it is awaited
    "mbarrier_wait": lambda thread, at, parity: thread.cta.barriers[at].wait(thread.number, parity),
    "stmatrix_x4": lambda thread, *values: thread.matrices.append((0, *values)),
    "stmatrix_x4_trans": lambda thread, *values: thread.matrices.append((1, *values)),
    "load_shared_b32": _load_shared,
    "load_shared_v2": _load_shared_v2,
    "load_shared_v4": _load_shared_v4,
    "load_shared_v4_around": _load_shared_around,
    "load_shared_b32_around": _word_around,
    "store_shared_b32": _store_shared,
    "store_shared_v2": _store_shared_v2,
    "store_shared_v4": _store_shared_v4,
    "store_shared_b16": _store_shared_b16,
    "copy_shared_v4_where": _copy_shared_v4,
    "send_v4_where": _send_v4,
    "receive_v4_where": _receive_v4,
    "send_b16": lambda thread, address, word, epoch: thread.cta.memory.store(address, word[0]),
    "receive_v4_guarded": lambda thread, *given: _receive_v4(thread, *given[:4]),
    "receive_b16_guarded": lambda thread, address, *_: (thread.cta.memory.load(address),),
    "receive_b16": lambda thread, address, epoch: (thread.cta.memory.load(address),),
    "copy_shared_b32_where": _copy_shared_b32,
    "store_shared_b8": _store_shared_b16,
    "load_shared_b8x2": _load_shared_b8x2,
    "store_shared_b8x2": _store_shared_b8x2,
    "store_u32": _store_u32,
    "take_number": _take_number,
    "record": _record,
    "report": _report,
    "end_thread": _end_thread,
}


ORDER = ("loader", "consumer", "storer", "communicator")
"""The order in which data goes through roles, if communicators add up what the others compute."""
FETCHING = ("communicator", "loader", "consumer", "storer")
"""The same, if they fetch operands."""


def warps(kernel: KernelOp, count: int, order: Sequence[str] = ORDER) -> Iterator[tuple[range, range]]:
    """By role of a kernel at the roles level, in the order of data: the CTAs of `count` that run it, and threads."""
    comm_sms = kernel.attributes[COMM_SMS]
    assert isinstance(comm_sms, IntegerAttr)
    computing = count - comm_sms.value.data
    roles = [op for op in kernel.body.block.ops if isinstance(op, RoleOp)]
    for role in sorted(roles, key=lambda role: order.index(str(role.role.data))):
        first = role.attributes[FIRST_WARP]
        assert isinstance(first, IntegerAttr)
        assert role.warps is not None
        start = first.value.data * _WARP
        alone = role.attributes[GROUP] == StringAttr(COMMUNICATE)
        ctas = range(computing, count) if alone else range(computing)
        yield ctas, range(start, start + role.warps.value.data * _WARP)
