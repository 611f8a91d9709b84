"""Runs machine-level IR thread by thread, for what needs no tensor cores: addresses, layouts, boxes, masks.

Threads run one after the other, each to its end, and nothing waits: parts are run in the order of their data, with one
task for each CTA. So it says where data goes, not when. Two 16-bit elements in one register are a tuple.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, i1
from xdsl.ir import Block, Operation, SSAValue

from pkc.codegen.artifact import TensorMaps
from pkc.dialect import blocks, machine
from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, KernelOp, RoleOp
from pkc.dialect.types import PGLType, PrivateType, dtype_bytes
from pkc.passes.plan_warps import COMMUNICATE

_BASE, _STRIDE = 1 << 40, 1 << 36
_WARP = 32


@dataclass
class Memory:
    """Arrays by name: of every rank its own part or copy, poisoned with NaN where nothing was written."""

    kernel: KernelOp
    ranks: int
    sizes: dict[str, int]
    arrays: dict[str, list[np.ndarray[Any, Any]]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    writes: dict[str, int] = field(default_factory=dict)
    ctas: list[Cta] = field(default_factory=list)

    def __post_init__(self) -> None:
        for argument in self.kernel.body.block.args:
            name = self.kernel.argument_name(argument)
            self.names.append(name)
            if isinstance(argument.type, PrivateType | PGLType):
                parts = [np.full(self.shape(argument.type, rank), np.nan) for rank in range(self.ranks)]
                self.arrays[name] = parts
                self.writes[name] = 0

    def extent(self, dim: str | int) -> int:
        return dim if isinstance(dim, int) else self.ranks if dim == "ranks" else self.sizes[dim]

    def shape(self, kind: PrivateType | PGLType, rank: int) -> tuple[int, ...]:
        """What a rank has of an array; shards are as long as the longest, the rest of a shorter one is never used."""
        extents = [self.extent(dim) for dim in kind.dimensions]
        if isinstance(kind, PGLType) and kind.shard_dim is not None:
            extents[kind.shard_dim] = blocks.part_length(extents[kind.shard_dim], self.ranks)
        return tuple(extents)

    def base(self, name: str) -> int:
        return _BASE * (1 + self.names.index(name))

    def find(self, address: int) -> tuple[str, np.ndarray[Any, Any], int, int]:
        """The array, its part, and the element at an address; how many bytes an element has."""
        number, rest = divmod(address, _BASE)
        rank, offset = divmod(rest, _STRIDE)
        argument = self.kernel.body.block.args[number - 1]
        size = dtype_bytes(argument.type.element_type)
        assert offset % size == 0
        return self.names[number - 1], self.arrays[self.names[number - 1]][rank], offset // size, size


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
    now: int = 1_000_000
    """Nanoseconds, half a cycle each; looking at a clock takes one of its steps of 32."""
    gives_up: str = ""
    """The instruction of which every bounded wait is in vain: it has seen 5."""

    def tick(self) -> int:
        self.now += 32
        return self.now

    def run(self, body: Block, threads: range) -> None:
        matrices: dict[int, list[tuple[int, ...]]] = {}
        for number in threads:
            thread = Thread(self, number)
            with contextlib.suppress(_EndedError):
                thread.block(body)
            matrices[number] = thread.matrices
        for first in range(threads.start, threads.stop, _WARP):
            self._store_matrices([matrices[thread] for thread in range(first, min(first + _WARP, threads.stop))])

    def _store_matrices(self, calls: list[list[tuple[int, ...]]]) -> None:
        """stmatrix: row j of matrix i is where thread 8 i + j says; thread l has columns 2 (l mod 4) of row l / 4."""
        for together in zip(*calls, strict=True):
            for lane, (_, *registers) in enumerate(together):
                for matrix, pair in enumerate(registers):
                    start = together[8 * matrix + lane // 4][0] + 4 * (lane % 4)
                    self.shared[start], self.shared[start + 2] = pair

    def copy(self, box: Map, address: int, place: tuple[int, ...], *, load: bool) -> int:
        """A box of an array to or from shared memory, swizzled as the hardware does; the bytes that it has there."""
        spec = box.spec
        size = dtype_bytes(box.kind.element_type)
        row_bytes = spec.box[0] * size
        for number, offsets in enumerate(np.ndindex(*reversed(spec.box))):
            inside = number // spec.box[0] * row_bytes + number % spec.box[0] * size
            at = address + swizzled(inside, spec.swizzle)
            where = self._element(box, tuple(p + o for p, o in zip(place, reversed(offsets), strict=True)))
            if load:
                self.shared[at] = 0.0 if where is None else where[0][where[1]]
            elif where is not None:
                assert np.isnan(where[0][where[1]]), "stored twice"
                where[0][where[1]] = self.shared[at]
        return int(np.prod(spec.box)) * size

    def _element(self, box: Map, place: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], tuple[int, ...]] | None:
        """The element at a place of a tensor map (`TensorMaps` in `pkc/codegen/artifact.py`); None outside of it."""
        kind, split = box.kind, box.spec.split
        extents = [self.memory.extent(dim) for dim in kind.dimensions]
        dims, rest = list(reversed(place[: len(extents)])), list(place[len(extents) :])
        rank = self.rank
        shard = kind.shard_dim if isinstance(kind, PGLType) else None
        if split is not None:
            whole_extent = extents[split]
            length = blocks.part_length(whole_extent, self.memory.ranks)
            whole = whole_extent // length
            part = rest.pop(0)
            extents[split] = whole_extent - whole * length if box.last else length
            if not 0 <= part < (1 if box.last else min(whole, self.memory.ranks)):
                return None
            part += whole if box.last else 0
            if shard == split:
                rank = part
        if isinstance(kind, PGLType) and shard is None:
            rank = rest.pop(0)
        assert not rest
        if any(not 0 <= at < extent for at, extent in zip(dims, extents, strict=True)):
            return None
        if split is not None and shard != split:
            dims[split] += part * length
        return self.memory.arrays[box.spec.array][rank], tuple(dims)


def swizzled(offset: int, width: int) -> int:
    """Where a byte lies (PTX ISA, swizzling modes): 16-byte chunks change places by the number of the 128-byte line."""
    return offset ^ (((offset >> 7) & (width // 16 - 1)) << 4) if width else offset


class _EndedError(Exception):
    """The thread has ended before the kernel does."""


class Thread:
    """One thread of a CTA. `_instruction` is what it does, for those that look at something else."""

    def __init__(self, cta: Cta, number: int) -> None:
        self.cta = cta
        self.number = number
        self.known: dict[SSAValue, Any] = {}
        self.matrices: list[tuple[int, ...]] = []

    def block(self, block: Block) -> None:
        for op in block.ops:
            self._step(op)

    def _step(self, op: Operation) -> None:
        values = [self.known.get(operand) for operand in op.operands]
        if isinstance(op, scf.ForOp):
            for index in range(*values):
                self.known[op.body.block.args[0]] = index
                self.block(op.body.block)
        elif isinstance(op, scf.IfOp):
            if values[0]:
                self.block(op.true_region.block)
        elif isinstance(op, machine.InstructionOp):
            found = self._instruction(op.instruction_name.data, values)
            if op.results:
                self.known[op.results[0]] = found
        elif isinstance(op, machine.SetOp):
            registers, start = values[1]
            registers[start + values[2]] = values[0]
        elif op.results:
            self.known[op.results[0]] = self._value(op, values)

    def _value(self, op: Operation, values: list[Any]) -> Any:
        memory = self.cta.memory
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, IntegerAttr | FloatAttr)
            return bool(op.value.value.data) if op.result.type == i1 else op.value.value.data
        if isinstance(op, machine.RegistersOp):
            return [None] * op.result.type.count, 0
        if isinstance(op, machine.PartOp):
            return values[0][0], values[0][1] + op.start.value.data
        if isinstance(op, machine.GetOp):
            return values[0][0][values[0][1] + values[1]]
        if isinstance(op, RankOp):
            return self.cta.rank
        if isinstance(op, DimOp):
            return memory.extent(op.dim.data)
        if isinstance(op, machine.LaunchValueOp):
            return _STRIDE if op.what.data == "heap_stride" else 0
        if isinstance(op, machine.AddressOp):
            kind = op.array.type
            own = self.cta.rank * _STRIDE if isinstance(kind, PrivateType) else 0
            return memory.base(memory.kernel.argument_name(op.array)) + own
        if isinstance(op, machine.TensorMapOp):
            split = None if op.split is None else op.split.value.data
            name = memory.kernel.argument_name(op.array)
            spec = TensorMaps("", name, tuple(op.box.get_values()), op.swizzle.value.data, split)
            return Map(spec, op.array.type, values[0 + 1])
        return ARITHMETIC[type(op)](op, *values)

    def _instruction(self, name: str, values: list[Any]) -> Any:
        if name in _NUMBERS:
            return _NUMBERS[name](self)
        if name in _ON_VALUES:
            return _ON_VALUES[name](*values)
        shared = self.cta.shared
        if name.startswith("tma_load"):
            address, box, _barrier, *place = values
            self.cta.copy(box, address, tuple(place), load=True)
        elif name.startswith("tma_store"):
            address, box, *place = values
            self.cta.copy(box, address, tuple(place), load=False)
        elif name == "stmatrix_x4":
            self.matrices.append(tuple(values))
        elif name == "load_shared_b32":
            low = shared[values[0]]
            return (low, shared[values[0] + 2]) if values[0] + 2 in shared else low
        elif name == "load_shared_v4":
            (registers, start), address = values
            for i in range(4):
                low = shared[address + 4 * i]
                pair = address + 4 * i + 2
                registers[start + i] = (low, shared[pair]) if pair in shared else low
        elif name == "store_shared_v4":
            (registers, start), address = values
            for i in range(4):
                self._instruction("store_shared_b32", [address + 4 * i, registers[start + i]])
        elif name == "store_shared_b32":
            words = values[1] if isinstance(values[1], tuple) else (values[1],)
            shared.update({values[0] + 2 * i: word for i, word in enumerate(words)})
        elif name == "store_shared_b16":
            shared[values[0]] = values[1][0]
        elif name in ("record", "store_u32"):
            self._written(name, values)
        elif name == "end_thread":
            raise _EndedError
        elif "_bounded" in name:
            if name == "spin_bounded":
                values[0][0][values[0][1]] = 5
            return int(name == self.cta.gives_up)
        elif "global" in name and not name.startswith("fence"):
            return self._global(name, values)
        return None

    def _global(self, name: str, values: list[Any]) -> Any:
        """Ordinary loads and stores, of one element, of two 16-bit ones, or of `v4` registers `where` they exist."""
        load = name.startswith("load")
        if "_v4" not in name:
            return self._word(values[0], None if load else values[1], narrow=name.endswith("b16"), load=load)
        (registers, start), address, *where = values
        if not all(where):
            return None
        assert address % 16 == 0, "16 bytes lie at a multiple of 16"
        for i in range(4):
            word = self._word(address + 4 * i, registers[start + i], narrow=False, load=load)
            if load:
                registers[start + i] = word
        return None

    def _written(self, name: str, values: list[Any]) -> None:
        """Words of an instrument; the epochs, which are in no array, stay as they are."""
        if name == "store_u32":
            if values[0] >= _BASE:
                self._word(values[0], values[1], narrow=False, load=False)
            return
        (registers, start), base, length, *words = values
        if registers[start] < length:
            for number, word in enumerate(words):
                self._word(base + 16 * registers[start] + 4 * number, word, narrow=False, load=False)
        registers[start] += 1

    def _word(self, address: int, word: Any, *, narrow: bool, load: bool) -> Any:
        _, array, first, size = self.cta.memory.find(address)
        count = 1 if narrow or size == 4 else 2
        flat = array.reshape(-1)
        assert first + count <= flat.size
        if load:
            return tuple(flat[first : first + count]) if size == 2 else flat[first]
        elements = word if isinstance(word, tuple) else (word,)
        for at, element in zip(range(first, first + count), elements, strict=False):
            assert np.isnan(flat[at]), "stored twice"
            flat[at] = element
        return None


_NUMBERS: dict[str, Callable[[Thread], int]] = {
    "thread_number": lambda thread: thread.number,
    "warp_number": lambda thread: thread.number // _WARP,
    "cta_number": lambda thread: thread.cta.number,
    "cta_count": lambda thread: thread.cta.count,
    "shared_base": lambda thread: 0,
    "load_u32": lambda thread: 0,
    "sm_number": lambda thread: 100 + thread.cta.number,
    "timer": lambda thread: thread.cta.tick(),
    "cycle": lambda thread: 2 * thread.cta.tick(),
}
_ON_VALUES: dict[str, Callable[..., Any]] = {
    **{f"pack_{kind}": lambda low, high: (low, high) for kind in ("bf16", "f16")},
    **{f"low_{kind}": lambda pair: pair[0] for kind in ("bf16", "f16")},
    **{f"high_{kind}": lambda pair: pair[1] for kind in ("bf16", "f16")},
    # Two elements of zero are one register of zero.
    "bits_f32": lambda x: x if x else (0.0, 0.0),
    "float_bits": lambda x: x[0] if isinstance(x, tuple) else x,
    "bits_i32": lambda x: x,
    "int_bits": lambda x: x,
    "any_of_warp": lambda x: x,
    "exp2_f32": lambda x: 2.0**x,
}


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_COMPARE = [
    lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b,
    lambda a, b: a >= b,
]  # fmt: skip

ARITHMETIC: dict[type[Operation], Callable[..., Any]] = {
    arith.AddiOp: lambda _, a, b: a + b,
    arith.SubiOp: lambda _, a, b: a - b,
    arith.MuliOp: lambda _, a, b: a * b,
    arith.DivSIOp: lambda _, a, b: _truncated(a, b),
    arith.RemSIOp: lambda _, a, b: a - _truncated(a, b) * b,
    arith.AndIOp: lambda _, a, b: a & b,
    arith.OrIOp: lambda _, a, b: a | b,
    arith.XOrIOp: lambda _, a, b: a ^ b,
    arith.ShLIOp: lambda _, a, b: a << b,
    arith.ShRUIOp: lambda _, a, b: a >> b,
    arith.MinSIOp: lambda _, a, b: min(a, b),
    arith.MaxSIOp: lambda _, a, b: max(a, b),
    arith.AddfOp: lambda _, a, b: a + b,
    arith.SubfOp: lambda _, a, b: a - b,
    arith.MulfOp: lambda _, a, b: a * b,
    arith.CmpiOp: lambda op, a, b: _COMPARE[op.predicate.value.data](a, b),
    arith.SelectOp: lambda _, condition, a, b: a if condition else b,
    arith.IndexCastOp: lambda _, a: a,
    arith.SIToFPOp: lambda _, a: float(a),
}
"""What each operation of `arith` computes here."""


def evaluate(block: Block, known: dict[SSAValue, Any]) -> None:
    """The values of integer arithmetic, from those of the block's arguments."""
    for op in block.ops:
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, IntegerAttr)
            known[op.result] = op.value.value.data
        else:
            known[op.results[0]] = ARITHMETIC[type(op)](op, *(known[operand] for operand in op.operands))


ORDER = ("loader", "consumer", "storer", "communicator")
"""The order in which data goes through roles."""


def warps(roles: KernelOp, count: int) -> Iterator[tuple[range, range]]:
    """The CTAs of `count`, and their threads, of each part of a kernel at the roles level, in the order of its data."""
    apart = roles.attributes[COMM_SMS]
    assert isinstance(apart, IntegerAttr)
    computing = count - apart.value.data
    parts = [op for op in roles.body.block.ops if isinstance(op, RoleOp)]
    for part in sorted(parts, key=lambda part: ORDER.index(str(part.role.data))):
        first = part.attributes[FIRST_WARP]
        assert isinstance(first, IntegerAttr)
        assert part.warps is not None
        start = first.value.data * _WARP
        alone = part.attributes[GROUP] == StringAttr(COMMUNICATE)
        ctas = range(computing, count) if alone else range(computing)
        yield ctas, range(start, start + part.warps.value.data * _WARP)
