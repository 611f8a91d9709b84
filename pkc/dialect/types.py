"""Types of the pk dialect: tiles, blocks, private and parallel global arrays, signals.

    !pk.tile<128x64xbf16>                     a tile value; `!pk.tile<f32>` is a scalar
    !pk.block<M by 128>                       a block of at most 128 positions of dimension M
    !pk.private<[M, K], bf16>                 an array that each rank has for itself
    !pk.private<[M, K], bf16, padded>         its rows begin at multiples of 32 bytes, whatever K is
    !pk.pgl<[M, N], bf16, shard 0>            a parallel global layout, sharded along dimension 0
    !pk.pgl<[M, N], bf16, shard 0 zigzag>     its shards have positions in zigzag order (`pkc/dialect/blocks.py`)
    !pk.pgl<[M, N], bf16, replicate>          the whole array on every rank
    !pk.pgl<[M, N], bf16, symmetric>          the same shape on every rank, each with its content
    !pk.signal<[ranks]>                       counters on every rank

A dimension is a name (a run-time value, the same on every rank) or an integer.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from enum import auto
from typing import TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    IntAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from pkc.dialect.words import RANKS as RANKS

Dim: TypeAlias = str | int
"""A dimension: the name of a run-time value, or a constant."""

bf16, f16, f32 = BFloat16Type(), Float16Type(), Float32Type()
e4m3, e5m2 = Float8E4M3FNType(), Float8E5M2Type()
i32, i8, i1 = IntegerType(32), IntegerType(8), IntegerType(1)

DTYPES: dict[str, Attribute] = {
    "bf16": bf16, "f16": f16, "f32": f32, "i32": i32, "i8": i8, "e4m3": e4m3, "e5m2": e5m2,
}  # fmt: skip
"""Element types by the name they have in the language."""

FLOATS = frozenset((bf16, f16, f32, e4m3, e5m2))
INTEGERS = frozenset((i32, i8))
NARROW = FLOATS - {f32} | {i8}
EIGHT_BIT = frozenset((e4m3, e5m2))

_BYTES: dict[Attribute, int] = {bf16: 2, f16: 2, f32: 4, i32: 4, i8: 1, e4m3: 1, e5m2: 1, i1: 1}


def dtype_name(dtype: Attribute) -> str:
    """The name of an element type in the language (`bool` for i1)."""
    return next((name for name, known in DTYPES.items() if known == dtype), "bool")


def dtype_bytes(dtype: Attribute) -> int:
    return _BYTES[dtype]


def widened(dtype: Attribute) -> Attribute:
    """The element type in which elements of a type are computed: f32, i32 or i1."""
    return f32 if dtype in FLOATS else i32 if dtype in INTEGERS else dtype


class Layout(StrEnum):
    """How an array is spread over the ranks."""

    Shard = auto()
    Replicate = auto()
    Symmetric = auto()


def _dims_attr(dims: Sequence[Dim]) -> ArrayAttr[StringAttr | IntAttr]:
    return ArrayAttr(_dim_attr(d) for d in dims)


def _dim_attr(dim: Dim) -> StringAttr | IntAttr:
    return StringAttr(dim) if isinstance(dim, str) else IntAttr(dim)


def _parse_dim(parser: AttrParser) -> StringAttr | IntAttr:
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    return IntAttr(number) if number is not None else StringAttr(parser.parse_identifier(" or integer as a dimension"))


def _parse_dims(parser: AttrParser) -> ArrayAttr[StringAttr | IntAttr]:
    dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_dim(parser))
    return ArrayAttr(dims)


def _print_dims(printer: Printer, dims: Sequence[Dim]) -> None:
    printer.print_string(f"[{', '.join(map(str, dims))}]")


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """A value of `shape` elements; axes are positive constants. An empty shape is a scalar."""

    name = "pk.tile"
    extents: ArrayAttr[IntAttr]
    element_type: Attribute

    def __init__(self, shape: Sequence[int], element_type: Attribute) -> None:
        super().__init__(ArrayAttr(IntAttr(d) for d in shape), element_type)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(e.data for e in self.extents)

    @property
    def rank(self) -> int:
        return len(self.extents)

    def verify(self) -> None:
        if any(e.data <= 0 for e in self.extents):
            raise VerifyException(f"tile extents must be positive, got {list(self.shape)}")
        if self.element_type not in _BYTES:
            raise VerifyException(f"{self.element_type} is not an element type of tiles")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element_type = parser.parse_ranked_shape()
        return ArrayAttr(IntAttr(d) for d in shape), element_type

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{d}x" for d in self.shape))
            printer.print_attribute(self.element_type)


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """A block of at most `extent` consecutive positions of dimension `of`."""

    name = "pk.block"
    dim: StringAttr | IntAttr
    size: IntAttr

    def __init__(self, dim: Dim, size: int) -> None:
        super().__init__(_dim_attr(dim), IntAttr(size))

    @property
    def of(self) -> Dim:
        return self.dim.data

    @property
    def extent(self) -> int:
        return self.size.data

    def verify(self) -> None:
        if self.size.data <= 0:
            raise VerifyException(f"the size of a block must be positive, got {self.size.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dim = _parse_dim(parser)
            parser.parse_keyword("by")
            size = parser.parse_integer(allow_boolean=False)
        return dim, IntAttr(size)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.of} by {self.extent}")


class ArrayType(ParametrizedAttribute, TypeAttribute, ABC):
    """What private arrays, parallel global layouts and signals have in common: dimensions."""

    dims: ArrayAttr[StringAttr | IntAttr]

    @property
    def dimensions(self) -> tuple[Dim, ...]:
        return tuple(d.data for d in self.dims)

    @property
    def rank(self) -> int:
        return len(self.dims)


def _verify_elements(dims: ArrayAttr[StringAttr | IntAttr], element_type: Attribute) -> None:
    if element_type not in DTYPES.values():
        raise VerifyException(f"{element_type} is not an element type of arrays")
    if not dims.data:
        raise VerifyException("an array has at least one dimension")
    if any(isinstance(d, IntAttr) and d.data <= 0 for d in dims):
        raise VerifyException("constant dimensions must be positive")


@irdl_attr_definition
class PrivateType(ArrayType):
    """An array that each rank has for itself. Rows of one that is `padded` begin at multiples of 32 bytes
    (`blocks.padded_length`): memory that pkc allocates."""

    name = "pk.private"
    dims: ArrayAttr[StringAttr | IntAttr]
    element_type: Attribute
    pitch: UnitAttr | NoneAttr

    def __init__(self, dims: Sequence[Dim], element_type: Attribute, *, padded: bool = False) -> None:
        super().__init__(_dims_attr(dims), element_type, UnitAttr() if padded else NoneAttr())

    @property
    def padded(self) -> bool:
        return isinstance(self.pitch, UnitAttr)

    def verify(self) -> None:
        _verify_elements(self.dims, self.element_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dims = _parse_dims(parser)
            parser.parse_punctuation(",")
            element_type = parser.parse_type()
            padded = parser.parse_optional_punctuation(",") is not None
            if padded:
                parser.parse_keyword("padded")
        return dims, element_type, UnitAttr() if padded else NoneAttr()

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_dims(printer, self.dimensions)
            printer.print_string(", ")
            printer.print_attribute(self.element_type)
            if self.padded:
                printer.print_string(", padded")


@irdl_attr_definition
class PGLType(ArrayType):
    """A parallel global layout: one array over all ranks (ParallelKittens, section 3.1)."""

    name = "pk.pgl"
    dims: ArrayAttr[StringAttr | IntAttr]
    element_type: Attribute
    layout_name: StringAttr
    shard: IntAttr | NoneAttr
    order: UnitAttr | NoneAttr

    def __init__(
        self,
        dims: Sequence[Dim],
        element_type: Attribute,
        layout: Layout,
        shard: int | None = None,
        *,
        zigzag: bool = False,
    ) -> None:
        shard_attr = NoneAttr() if shard is None else IntAttr(shard)
        order = UnitAttr() if zigzag else NoneAttr()
        super().__init__(_dims_attr(dims), element_type, StringAttr(str(layout)), shard_attr, order)

    @property
    def layout(self) -> Layout:
        return Layout(self.layout_name.data)

    @property
    def shard_dim(self) -> int | None:
        """The number of the sharded dimension."""
        return None if isinstance(self.shard, NoneAttr) else self.shard.data

    @property
    def zigzag(self) -> bool:
        """Whether the positions of the sharded dimension are in zigzag order."""
        return isinstance(self.order, UnitAttr)

    def verify(self) -> None:
        _verify_elements(self.dims, self.element_type)
        if (self.shard_dim is None) == (self.layout is Layout.Shard):
            raise VerifyException("a sharded layout, and no other, names the dimension it splits")
        if self.shard_dim is None:
            if self.zigzag:
                raise VerifyException("zigzag is an order of shards")
            return
        if not 0 <= self.shard_dim < self.rank:
            raise VerifyException(f"shard {self.shard_dim} of an array with {self.rank} dimensions")
        if not isinstance(self.dimensions[self.shard_dim], str):
            raise VerifyException("a constant dimension cannot be sharded")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dims = _parse_dims(parser)
            parser.parse_punctuation(",")
            element_type = parser.parse_type()
            parser.parse_punctuation(",")
            layout = parser.parse_keyword_in([str(kind) for kind in Layout])
            number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            zigzag = parser.parse_optional_keyword("zigzag") is not None
        shard = NoneAttr() if number is None else IntAttr(number)
        return dims, element_type, StringAttr(layout), shard, UnitAttr() if zigzag else NoneAttr()

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_dims(printer, self.dimensions)
            printer.print_string(", ")
            printer.print_attribute(self.element_type)
            printer.print_string(f", {self.layout}")
            if self.shard_dim is not None:
                printer.print_string(f" {self.shard_dim}")
            if self.zigzag:
                printer.print_string(" zigzag")


@irdl_attr_definition
class SignalType(ArrayType):
    """Counters on every rank, zero when the kernel starts.

    A dimension `M by 128` has one counter for each block of M, numbered by `pk.block_number`.
    """

    name = "pk.signal"
    dims: ArrayAttr[StringAttr | IntAttr | BlockType]  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, dims: Sequence[Dim | BlockType]) -> None:
        super().__init__(ArrayAttr(d if isinstance(d, BlockType) else _dim_attr(d) for d in dims))

    @property
    def extents(self) -> tuple[Dim | BlockType, ...]:
        """As `dimensions`, but a block type where the dimension has one counter for each block."""
        return tuple(d if isinstance(d, BlockType) else d.data for d in self.dims)

    @property
    def dimensions(self) -> tuple[Dim, ...]:
        return tuple(d.of if isinstance(d, BlockType) else d.data for d in self.dims)

    def verify(self) -> None:
        if not self.dims.data:
            raise VerifyException("a signal array has at least one dimension")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (
                ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_extent(parser))),
            )

    def print_parameters(self, printer: Printer) -> None:
        texts = [f"{d.of} by {d.extent}" if isinstance(d, BlockType) else str(d) for d in self.extents]
        with printer.in_angle_brackets():
            printer.print_string(f"[{', '.join(texts)}]")


def _parse_extent(parser: AttrParser) -> StringAttr | IntAttr | BlockType:
    dim = _parse_dim(parser)
    if parser.parse_optional_keyword("by") is None:
        return dim
    return BlockType(dim.data, parser.parse_integer(allow_boolean=False))


def ends_with_shards(array: PrivateType | PGLType) -> bool:
    """Whether the last dimension of an array is sharded."""
    return isinstance(array, PGLType) and array.shard_dim == array.rank - 1


def row_of(array: PrivateType | PGLType) -> str:
    """What the rows of an array are as long as: a dimension, or a shard of it."""
    last = str(array.dimensions[-1])
    return f"{last}.shard" if ends_with_shards(array) else last
