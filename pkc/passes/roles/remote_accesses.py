"""Remote accesses, which may reach another rank, and what the planning passes say of each."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from pkc.dialect.access import (
    READING,
    AccumulateOp,
    AllReduceOp,
    AtomicAddOp,
    LoadOp,
    ReadOp,
    ReduceOp,
    Store,
    StoreAddOp,
    StoreOp,
    places_of,
)
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.by_table import ByTable, GatherOp, ScatterAccumulateOp, ScatterAddOp, ScatterStoreAddOp, ScatterStoreOp
from pkc.dialect.coordinates import RankOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.inverse import SumRowsOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import BlockType, Layout, PGLType
from pkc.passes.analysis.covering import block_of
from pkc.passes.analysis.dependence import enclosing_tasks, sources
from pkc.passes.analysis.local_shards import is_in_local_shard, is_local

ALL_REDUCE = "all_reduce"
"""The key of the schedule: whether owners add up what all ranks get, or every rank."""

REMOTE = "remote"
"""The attribute in which planning passes write and which rewriting passes obey."""

_ACCESSES = (
    *READING,
    StoreOp,
    StoreAddOp,
    ScatterStoreOp,
    ScatterStoreAddOp,
    AllReduceOp,
    AccumulateOp,
    ScatterAccumulateOp,
    AtomicAddOp,
    ScatterAddOp,
)
_KINDS = frozenset((CopyOp, SumRowsOp, *_ACCESSES))

Read = LoadOp | GatherOp
Sum = AccumulateOp | ScatterAccumulateOp | AtomicAddOp | ScatterAddOp
RemoteAccess = Read | Sum | StoreOp


def remote_reads(root: Operation) -> Iterator[Read]:
    """Loads and gathers of sharded arrays, unless they surely stay on this rank."""
    for op in root.walk():
        if isinstance(op, Read) and is_pgl(op.array, Layout.Shard) and not is_local(op.array, places_of(op)):
            yield op


def remote_stores(root: Operation) -> Iterator[StoreOp]:
    """Stores to replicated arrays, and to sharded ones unless they surely stay on this rank."""
    for op in root.walk():
        if not isinstance(op, StoreOp):
            continue
        sharded = is_pgl(op.array, Layout.Shard) and not is_local(op.array, op.indices)
        if sharded or is_pgl(op.array, Layout.Replicate):
            yield op


def reached(root: Operation) -> Iterator[tuple[Operation, BlockArgument]]:
    """The operations in `root` that may reach arrays on other ranks, and those arrays."""
    for op in root.walk():
        if type(op) not in _KINDS:
            continue
        for array in _touched(op):
            if _reaches(op, array):
                assert isinstance(array, BlockArgument)
                yield op, array


def _touched(op: Operation) -> tuple[SSAValue, ...]:
    if isinstance(op, CopyOp):
        return op.source, op.target
    if isinstance(op, SumRowsOp):
        return op.slots, op.array
    return (op.array,) if isinstance(op, _ACCESSES) else ()


def _reaches(op: Operation, array: SSAValue) -> bool:
    if isinstance(op, SumRowsOp):
        return array is op.slots or is_pgl(array, Layout.Replicate)
    if isinstance(op, ReduceOp | AllReduceOp | Sum):
        return True
    at = getattr(op, "rank", None)
    if is_pgl(array, Layout.Replicate) and at is None:
        return isinstance(op, Store | CopyOp) and array is not getattr(op, "source", None)
    if is_pgl(array, Layout.Symmetric) or is_pgl(array, Layout.Replicate):
        return (isinstance(op, GatherOp) and op.of_rows) or (at is not None and not isinstance(at.owner, RankOp))
    if not is_pgl(array, Layout.Shard):
        return False
    if isinstance(op, CopyOp):
        box = op.source_box if array is op.source else op.target_box
        return not is_in_local_shard(box[shard_of(array)])
    assert isinstance(op, LoadOp | ReadOp | StoreOp | StoreAddOp | ByTable)
    return not is_local(array, places_of(op))


def sums(root: Operation) -> Iterator[Sum]:
    """Contributions to sums over ranks."""
    for op in root.walk():
        if isinstance(op, Sum):
            yield op


def address(op: RemoteAccess) -> tuple[SSAValue, ...]:
    """The values that say where an access goes."""
    return tuple(places_of(op))


def idle_tasks(op: RemoteAccess) -> list[SSAValue]:
    """The task indices around `op` that its address does not depend on: it is repeated along each of them."""
    known = sources(address(op))
    return [index for tasks in enclosing_tasks(op) for index in tasks.body.block.args if index not in known]


def array_name(array: SSAValue) -> str:
    """The name of an array parameter in the source."""
    assert isinstance(array, BlockArgument)
    kernel = array.owner.parent_op()
    assert isinstance(kernel, KernelOp)
    return kernel.argument_name(array)


def plan(op: Operation, overlap: str, why: str, *, push: bool = False) -> None:
    """Write the plan of a remote access; `push` if the owner of an operand sends it to all ranks."""
    entries: dict[str, Attribute] = {"overlap": StringAttr(overlap), "why": StringAttr(why)}
    if push:
        entries["direction"] = StringAttr("push")
    op.attributes[REMOTE] = DictionaryAttr(entries)


def is_pushed(op: Operation) -> bool:
    """Whether the owner of an operand is planned to send it."""
    attr = op.attributes.get(REMOTE)
    return isinstance(attr, DictionaryAttr) and attr.data.get("direction") == StringAttr("push")


def planned(op: Operation) -> str:
    """The overlap planned for a remote access; empty if there is none."""
    attr = op.attributes.get(REMOTE)
    if not isinstance(attr, DictionaryAttr):
        return ""
    overlap = attr.data["overlap"]
    assert isinstance(overlap, StringAttr)
    return overlap.data


def plan_packets(op: Operation) -> None:
    """Write on a planned remote access that its tiles travel in packets."""
    attr = op.attributes[REMOTE]
    assert isinstance(attr, DictionaryAttr)
    op.attributes[REMOTE] = DictionaryAttr({**attr.data, "packets": UnitAttr()})


def in_packets(op: Operation) -> bool:
    """Whether the tiles of a remote access are planned to travel in packets."""
    attr = op.attributes.get(REMOTE)
    return isinstance(attr, DictionaryAttr) and "packets" in attr.data


def is_one_shot(kernel: KernelOp, op: AccumulateOp) -> bool:
    """Whether every rank adds up every tile itself, as the schedule may say of sums that all ranks get, and as there is
    no other way if no dimension can be divided among owners."""
    if not is_pgl(op.array, Layout.Replicate):
        return False
    if divided_along(op) is None:
        return planned(op) != "copy_engine"
    return chooses_one_shot(kernel, op)


def chooses_one_shot(kernel: KernelOp, op: AccumulateOp) -> bool:
    """Whether it is the schedule that lets every rank add up every tile itself, which owners could."""
    wanted = kernel.schedule.get(ALL_REDUCE) == StringAttr("one_shot") and planned(op) == "inter_sm"
    return wanted and is_pgl(op.array, Layout.Replicate) and divided_along(op) is not None


def is_divided(kernel: KernelOp, op: AccumulateOp) -> bool:
    """Whether owners add up the tiles of a sum that all ranks get, each those of its shard of a dimension."""
    return is_pgl(op.array, Layout.Replicate) and divided_along(op) is not None and not is_one_shot(kernel, op)


def divided_dim(op: AccumulateOp) -> str:
    """The name of the dimension by which the tiles of a sum are divided among owners."""
    split = divided_along(op)
    assert split is not None
    dim = array_type(op.array).dimensions[split]
    assert isinstance(dim, str)
    return dim


def divided_along(op: AccumulateOp) -> int | None:
    """The dimension by which the tiles of a sum are divided among the owners: the sharded one, or the first with
    blocks of a dimension that is no constant."""
    places = [shard_of(op.array)] if is_pgl(op.array, Layout.Shard) else range(len(op.indices))
    kinds = {place: block_of(op.indices[place]).type for place in places}
    return next((at for at, kind in kinds.items() if isinstance(kind, BlockType) and isinstance(kind.of, str)), None)


def shard_of(array: SSAValue) -> int:
    """The sharded dimension of an array that is known to have one."""
    kind = array_type(array)
    assert isinstance(kind, PGLType) and kind.shard_dim is not None
    return kind.shard_dim
