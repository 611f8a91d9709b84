"""The kinds of values that an expression can have, with their IR values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Attribute, SSAValue

from pkc.dialect.arrays import Array
from pkc.dialect.types import INTEGERS, Dim, Layout, PGLType, SignalType, TileType, dtype_name, i1


@dataclass(frozen=True, eq=False)
class BlockAxis:
    """The blocks that one loop variable runs over; axes are the same if they are the same object."""

    name: str
    dim: Dim
    size: int


class Whole(int):
    """A whole constant dimension: its size, with the name by which the program knows it, if it has one. The name tells
    apart two axes of a tile that are as long."""

    name: str

    def __new__(cls, size: int, name: str = "") -> Whole:
        made = super().__new__(cls, size)
        made.name = name
        return made


@dataclass(frozen=True)
class Columns:
    """An axis once more, beside that of rows: of a tile that one block indexes twice, or of a tile that lies along
    columns, `x.T` of one axis."""

    of: BlockAxis | int


Axis = BlockAxis | int | Columns
"""A block, or a whole constant dimension by its size."""


def base(axis: Axis) -> BlockAxis | int:
    """What an axis goes through, as rows or as columns."""
    return axis.of if isinstance(axis, Columns) else axis


def told_apart(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Axes of which a block that occurs twice is rows first, then columns."""
    found: list[Axis] = []
    for axis in map(base, axes):
        found.append(Columns(axis) if isinstance(axis, BlockAxis) and axis in found else axis)
    return tuple(found)


@dataclass(frozen=True)
class Constant:
    """A value known to the compiler, with the name of the kernel's constant that it is, if it is one: it keeps that
    under other names, as in functions."""

    value: int | float | bool
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        kind = family(self)
        return f"an {kind}" if kind == "integer" else f"a {kind}"


@dataclass(frozen=True)
class Integer:
    """A run-time integer, of IR type `index`."""

    ssa: SSAValue

    def __str__(self) -> str:
        return "an integer"


@dataclass(frozen=True)
class Boolean:
    """A run-time truth value, of IR type `i1`."""

    ssa: SSAValue

    def __str__(self) -> str:
        return "a boolean"


@dataclass(frozen=True)
class Dimension:
    """A run-time dimension by name; an integer where a value is needed."""

    name: str

    def __str__(self) -> str:
        return "an integer"


@dataclass(frozen=True)
class Tile:
    """A tile; without axes, a scalar. `loose` if nothing but the order of operands that share no axis gave the order
    of its axes."""

    ssa: SSAValue
    dtype: Attribute
    axes: tuple[Axis, ...]
    loose: bool = False

    def __str__(self) -> str:
        name = dtype_name(self.dtype)
        article = "an" if name[0] in "efi" else "a"
        return f"{article} {name} tile {axes_text(self.axes)}" if self.axes else f"a scalar of {name}"


@dataclass(frozen=True)
class Block:
    """The block of a loop variable."""

    ssa: SSAValue
    axis: BlockAxis

    def __str__(self) -> str:
        return f"a block of {self.axis.dim}"


@dataclass(frozen=True)
class ArrayRef:
    """An array parameter."""

    ssa: SSAValue
    name: str
    type: Array
    names: tuple[str, ...] = ()
    """What the program calls each dimension; empty where that is a number or computed."""
    written: tuple[str, ...] = ()
    """How the declaration writes each dimension."""

    def __str__(self) -> str:
        return f"the array `{self.name}`"

    @property
    def declared(self) -> str:
        """The declaration, as the user wrote it."""
        dims = self.written or map(str, self.type.dimensions)
        text = f"{dtype_name(self.type.element_type)}[{', '.join(dims)}]"
        if not isinstance(self.type, PGLType):
            return text
        if self.type.layout is Layout.Shard:
            return f"{text}.shard({self.type.shard_dim}{', zigzag=True' * self.type.zigzag})"
        return f"{text}.{self.type.layout.value}()"


@dataclass(frozen=True)
class SignalRef:
    """A signal parameter."""

    ssa: SSAValue
    name: str
    type: SignalType

    def __str__(self) -> str:
        return f"the signal array `{self.name}`"


@dataclass(frozen=True)
class Broken:
    """The value of an expression with an error; suppresses errors that would only follow from it."""


@dataclass(frozen=True)
class BlockList:
    """`blocks(...)`: what a loop runs over."""

    dim: Dim
    size: int
    shard: SSAValue | None
    """The rank whose shard it lists; None for the whole dimension."""
    start: SSAValue | None
    stop: SSAValue | None
    sharded: bool


@dataclass(frozen=True)
class Place:
    """An element or tile of an array, addressed but not yet read or written. Among the indices there may be tables;
    `along` has the axes that each index goes along, unless the first one alone is a table, of rows."""

    array: ArrayRef
    rank: SSAValue | None
    indices: tuple[SSAValue, ...]
    axes: tuple[Axis, ...]
    along: tuple[int, ...] | None = None

    @property
    def has_tables(self) -> bool:
        return any(isinstance(index.type, TileType) for index in self.indices)


Value = Constant | Integer | Boolean | Dimension | Tile | Block | ArrayRef | SignalRef | Broken


def axis_text(axis: Axis) -> str:
    axis = base(axis)
    if isinstance(axis, BlockAxis):
        return f"{axis.name}:{axis.size}"
    return f"{axis.name}:{int(axis)}" if isinstance(axis, Whole) and axis.name else str(int(axis))


def axes_text(axes: tuple[Axis, ...]) -> str:
    return f"({', '.join(map(axis_text, axes))})"


def shape(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple(axis.size if isinstance(axis, BlockAxis) else int(axis) for axis in map(base, axes))


def family(value: Value) -> str:
    """`float`, `integer` or `boolean`: the arithmetic that a value is for."""
    if isinstance(value, Constant):
        return "boolean" if isinstance(value.value, bool) else "integer" if isinstance(value.value, int) else "float"
    if isinstance(value, Tile):
        return "boolean" if value.dtype == i1 else "integer" if value.dtype in INTEGERS else "float"
    return "boolean" if isinstance(value, Boolean) else "integer"


def is_scalar_integer(value: Value) -> bool:
    """An integer that is not (only) a tile: for indices, counts, loop bounds."""
    return isinstance(value, Integer | Dimension) or (isinstance(value, Constant) and family(value) == "integer")
