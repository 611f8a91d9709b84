"""What a kernel at the machine level takes from its launch: the fields of its argument struct, arrays, signals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.codegen.artifact import (
    Alarm,
    ArrayParameter,
    Base,
    Dimension,
    Epochs,
    Extent,
    Field,
    HeapStride,
    Interface,
    RankField,
    Scalar,
    ScalarType,
    SignalParameter,
    TensorMaps,
    named_dims,
)
from pkc.codegen.names import Names
from pkc.dialect.arrays import given_type
from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.effects import UpdatesArray, WritesArray
from pkc.dialect.engines import on_sms, restarts
from pkc.dialect.machine import AddressOp, LaunchValueOp, TensorMapOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import RANKS, BlockType, PGLType, PrivateType, SignalType, dtype_name

_LAUNCH_FIELDS = {"heap_stride": HeapStride, "epochs": Epochs, "alarm": Alarm}


def array_parameters(kernel: KernelOp) -> tuple[ArrayParameter, ...]:
    """The arrays of a kernel, in the order of its parameters."""
    return tuple(_array(kernel, arg) for arg in kernel.body.block.args if isinstance(arg.type, PrivateType | PGLType))


def _array(kernel: KernelOp, arg: BlockArgument) -> ArrayParameter:
    kind = arg.type
    assert isinstance(kind, PrivateType | PGLType)
    dtype, name, scratch = dtype_name(kind.element_type), kernel.argument_name(arg), kernel.is_scratch(arg)
    written = any(_writes(use.operation) for use in arg.uses)
    if isinstance(kind, PrivateType):
        of = given_type(kernel, arg).dimensions
        return ArrayParameter(name, dtype, of, "private", None, scratch, written=written, padded=kind.padded)
    layout = str(kind.layout)
    assert layout in ("shard", "replicate", "symmetric")
    marks = kernel.has_packets(arg), kernel.is_local(arg), kernel.is_kept(arg)
    return ArrayParameter(name, dtype, kind.dimensions, layout, kind.shard_dim, scratch, kind.zigzag, written, *marks)


def _writes(op: Operation) -> bool:
    return op.has_trait(WritesArray) or op.has_trait(UpdatesArray)


def interface_of(kernel: KernelOp) -> Interface:
    """What a kernel is called with; it may be at any level."""
    arrays = array_parameters(kernel)
    dims = named_dims(arrays, signal_parameters(kernel))
    return Interface(kernel.sym_name.data, arrays, tuple(_scalars(kernel)), tuple(dims))


def _scalars(kernel: KernelOp) -> Iterator[tuple[str, ScalarType]]:
    for arg in kernel.body.block.args:
        kind = _scalar(arg)
        if kind is not None:
            yield kernel.argument_name(arg), kind


def _scalar(arg: BlockArgument) -> ScalarType | None:
    if str(arg.type) == "f32":
        return "f32"
    return "i32" if str(arg.type) == "i32" else None


def signal_parameters(kernel: KernelOp) -> tuple[SignalParameter, ...]:
    """The counters of a kernel."""
    return tuple(
        SignalParameter(kernel.argument_name(arg), tuple(map(_extent, arg.type.extents)), restarts(kernel, arg))
        for arg in kernel.body.block.args
        if isinstance(arg.type, SignalType)
    )


def _extent(extent: str | int | BlockType) -> Extent:
    return (extent.of, extent.extent) if isinstance(extent, BlockType) else extent


def struct_fields(kernel: KernelOp) -> tuple[tuple[Field, ...], dict[SSAValue | str, str]]:
    """The fields that the body uses, tensor maps first; and their names in the struct.

    The names are by tensor map operation, and for other fields by `address:NAME`, `dim:NAME`, `rank` and so on.
    """
    names = Names()
    maps: list[TensorMaps] = []
    found: dict[SSAValue | str, str] = {}
    for op in on_sms(kernel):
        if isinstance(op, TensorMapOp):
            spec = _map(kernel, op)
            same = next((m for m in maps if replace(m, field="") == spec), None)
            if same is None:
                same = replace(spec, field=names.new(f"{spec.array}_map{len(maps)}"))
                maps.append(same)
            found[op.result] = same.field
    others = _others(kernel, names)
    return (*maps, *others.values()), found | {key: field.field for key, field in others.items()}


def _map(kernel: KernelOp, op: TensorMapOp) -> TensorMaps:
    """The tensor maps that an operation asks for, without a name."""
    split = None if op.split is None else op.split.value.data
    swizzle = op.swizzle.value.data
    assert swizzle in (0, 32, 64, 128)
    joined = isinstance(op.array, BlockArgument) and kernel.joined(op.array) is not None
    return TensorMaps("", _array_name(kernel, op.array), tuple(op.box.get_values()), swizzle, split, joined)


def _array_name(kernel: KernelOp, array: SSAValue) -> str:
    assert isinstance(array, BlockArgument)
    return kernel.argument_name(array)


def _others(kernel: KernelOp, names: Names) -> dict[str, Field]:
    """All other fields, each once: those of eight bytes first, then those of four."""
    wide: dict[str, Field] = {}
    narrow: dict[str, Field] = {}
    for op in on_sms(kernel):
        if isinstance(op, AddressOp):
            name = _array_name(kernel, op.array)
            if f"address:{name}" not in wide:
                wide[f"address:{name}"] = Base(names.new(f"{name}_base"), name)
        elif isinstance(op, LaunchValueOp) and op.what.data not in wide:
            what = op.what.data
            wide[what] = _LAUNCH_FIELDS[what](names.new(what))
        elif isinstance(op, RankOp) and "rank" not in narrow:
            narrow["rank"] = RankField(names.new("rank"), "rank")
        elif isinstance(op, DimOp) and f"dim:{op.dim.data}" not in narrow:
            dim, field = op.dim.data, names.new(op.dim.data)
            narrow[f"dim:{dim}"] = RankField(field, "ranks") if dim == RANKS else Dimension(field, dim)
    for arg in kernel.body.block.args:
        dtype = _scalar(arg)
        if dtype is not None and arg.uses:
            name = kernel.argument_name(arg)
            narrow[f"scalar:{name}"] = Scalar(names.new(f"{name}_value"), name, dtype)
    return wide | narrow
