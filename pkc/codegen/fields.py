"""What a kernel at the machine level takes from its launch: the fields of its argument struct, arrays, signals."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import BlockArgument, SSAValue

from pkc.codegen.artifact import (
    ArrayParameter,
    Base,
    Dimension,
    Epochs,
    Extent,
    Field,
    HeapStride,
    RankField,
    Scalar,
    SignalParameter,
    TensorMaps,
)
from pkc.dialect.machine import AddressOp, LaunchValueOp, TensorMapOp
from pkc.dialect.program import DimOp, KernelOp, RankOp
from pkc.dialect.types import RANKS, BlockType, PGLType, PrivateType, SignalType, dtype_name


def array_parameters(kernel: KernelOp) -> tuple[ArrayParameter, ...]:
    """The arrays of a kernel, in the order of its parameters."""
    return tuple(_array(kernel, arg) for arg in kernel.body.block.args if isinstance(arg.type, PrivateType | PGLType))


def _array(kernel: KernelOp, arg: BlockArgument) -> ArrayParameter:
    kind = arg.type
    assert isinstance(kind, PrivateType | PGLType)
    dtype, name = dtype_name(kind.element_type), kernel.argument_name(arg)
    if isinstance(kind, PrivateType):
        return ArrayParameter(name, dtype, kind.dimensions, "private", None, kernel.is_scratch(arg))
    layout = str(kind.layout)
    assert layout in ("shard", "replicate", "symmetric")
    return ArrayParameter(name, dtype, kind.dimensions, layout, kind.shard_dim, kernel.is_scratch(arg))


def signal_parameters(kernel: KernelOp) -> tuple[SignalParameter, ...]:
    """The counters of a kernel."""
    return tuple(
        SignalParameter(kernel.argument_name(arg), tuple(map(_extent, arg.type.extents)))
        for arg in kernel.body.block.args
        if isinstance(arg.type, SignalType)
    )


def _extent(extent: str | int | BlockType) -> Extent:
    return (str(extent.of), extent.extent) if isinstance(extent, BlockType) else extent


def identifier(name: str) -> str:
    """A name as C++ can have it."""
    return "".join(c if c.isalnum() else "_" for c in name)


def struct_fields(kernel: KernelOp) -> tuple[tuple[Field, ...], dict[SSAValue | str, str]]:
    """The fields that the body uses, tensor maps first; and how the body finds them.

    By tensor map operation the name of its field, by `address:NAME`, `dim:NAME`, `rank` and so on those of others.
    """
    maps: list[TensorMaps] = []
    found: dict[SSAValue | str, str] = {}
    for op in kernel.walk():
        if isinstance(op, TensorMapOp):
            spec = _map(kernel, op, len(maps))
            same = next((m for m in maps if _shape(m) == _shape(spec)), None)
            if same is None:
                maps.append(spec)
            found[op.result] = (same or spec).field
    others = dict(_others(kernel))
    return (*maps, *others.values()), found | {key: field.field for key, field in others.items()}


def _map(kernel: KernelOp, op: TensorMapOp, number: int) -> TensorMaps:
    assert isinstance(op.array, BlockArgument)
    name = kernel.argument_name(op.array)
    split = None if op.split is None else op.split.value.data
    swizzle = op.swizzle.value.data
    assert swizzle in (0, 32, 64, 128)
    return TensorMaps(f"{identifier(name)}_map{number}", name, tuple(op.box.get_values()), swizzle, split)


def _shape(spec: TensorMaps) -> tuple[object, ...]:
    return spec.array, spec.box, spec.swizzle, spec.split


def _others(kernel: KernelOp) -> Iterator[tuple[str, Field]]:
    """Eight-byte fields first, then four-byte ones, each once."""
    wide: dict[str, Field] = {}
    narrow: dict[str, Field] = {}
    for op in kernel.walk():
        if isinstance(op, AddressOp):
            assert isinstance(op.array, BlockArgument)
            name = kernel.argument_name(op.array)
            wide[f"address:{name}"] = Base(f"{identifier(name)}_base", name)
        elif isinstance(op, LaunchValueOp):
            what = op.what.data
            wide[what] = HeapStride(what) if what == "heap_stride" else Epochs(what)
        elif isinstance(op, RankOp):
            narrow["rank"] = RankField("rank", "rank")
        elif isinstance(op, DimOp):
            dim = op.dim.data
            narrow[f"dim:{dim}"] = RankField(RANKS, "ranks") if dim == RANKS else Dimension(identifier(dim), dim)
    for arg in kernel.body.block.args:
        if str(arg.type) in ("f32", "i32") and arg.uses:
            name = kernel.argument_name(arg)
            narrow[f"scalar:{name}"] = Scalar(
                f"{identifier(name)}_value", name, "f32" if str(arg.type) == "f32" else "i32"
            )
    yield from wide.items()
    yield from narrow.items()
