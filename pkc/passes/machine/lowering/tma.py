"""Loads and stores by TMA: boxes of a tensor map, one for each panel of a staged tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, ReadOp, Scatter, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.inverse import SumRowsOp
from pkc.dialect.machine import MAP_DIMENSIONS, MAX_BOX, TensorMapOp
from pkc.dialect.roles import CommitOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type, tile_type
from pkc.dialect.transfers import CACHE, pieces
from pkc.dialect.types import ArrayType, Layout, PGLType, dtype_bytes
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import channels
from pkc.passes.machine.lowering.blocks import Placed
from pkc.passes.machine.lowering.context import Staged, WarpRole, first_thread, round_the_ranks
from pkc.passes.machine.lowering.missing import CannotLowerError, slow
from pkc.passes.roles.remote_accesses import array_name
from pkc.targets.arch import Tuning
from pkc.targets.layout import BOX, CHUNK, SharedLayout
from pkc.targets.target import Target

Access: TypeAlias = LoadOp | ReadOp | StoreOp | AddToArrayOp | SumRowsOp


def placed(role: WarpRole, op: Access) -> tuple[list[Placed], int | None]:
    """Where each index of an access is, and the dimension that is sharded in the tensor map.

    Where a local array is read in place of the shard of another, both are sharded along that dimension.
    """
    kind = op.array.type
    assert isinstance(kind, ArrayType)
    shard = _sharded(op)
    places: list[Placed] = []
    for position, (dim, index) in enumerate(zip(kind.dimensions, op.indices, strict=True)):
        found = role.blocks.get(index)
        if found is None:
            found = role.dims.at(dim, role.known[index], split=position == shard)
        places.append(found)
    split = shard
    if split is None:
        split = next((position for position, place in enumerate(places) if place.shard is not None), None)
    return places, split


def _sharded(op: Access) -> int | None:
    local = op.local if isinstance(op, LoadOp) else None
    kinds = [value.type for value in (op.array, local) if value is not None]
    dims = {kind.shard_dim for kind in kinds if isinstance(kind, PGLType)} - {None}
    if len(dims) > 1:
        raise CannotLowerError(op, "a load of two arrays that are sharded along different dimensions")
    return next(iter(dims), None)


def in_one_shard(role: WarpRole, op: LoadOp | StoreOp | AddToArrayOp) -> tuple[list[Placed], int | None]:
    """As `placed`, of a tile that lies on one rank; a block that may straddle is refused."""
    places, split = placed(role, op)
    if _sharded(op) is not None and split is not None and places[split].shard is None:
        raise CannotLowerError(op, "a block that may straddle two shards of an array")
    return places, split


@dataclass(frozen=True)
class Destination:
    """Where in shared memory the tile of a load goes, and the barrier at which its bytes arrive, which expects them
    already if TMA fills the whole stage."""

    address: SSAValue
    barrier: SSAValue
    expected: bool

    def announce(self, role: WarpRole, op: LoadOp | GatherOp) -> None:
        """Say at the barrier how many bytes the load brings, if threads fill the rest of the stage."""
        if not self.expected:
            size = role.emit.target.shared_layout(tile_type(op.result)).moved_bytes
            role.emit.do("mbarrier_announce", self.barrier, role.emit.const(size))


def load(role: WarpRole, op: LoadOp) -> None:
    """A tile into each stage that it is committed to."""
    for each in destinations(role, op):
        with first_thread(role):
            each.announce(role, op)
            _move(role, op, each.address, "load", each.barrier)


def destinations(role: WarpRole, op: LoadOp | GatherOp) -> list[Destination]:
    """The stages that a load fills: one for each role that its tile goes to, each by a copy of its own."""
    emit = role.emit
    found: list[Destination] = []
    for commit in (use.operation for use in op.result.uses):
        if not isinstance(commit, CommitOp):
            raise CannotLowerError(op, "a copy by a role that also computes")
        ring, stage = role.launch.rings[commit.channel], channels.stage_of(role, commit.channel)
        start = channels.stage_address(role, ring, stage)
        addresses = [
            emit.plus(start, slot) for slot, tile in zip(ring.slots, commit.tiles, strict=True) if tile is op.result
        ]
        barrier = ring.full(stage, emit, role.launch.base)
        found.extend(Destination(address, barrier, bool(ring.by_bytes)) for address in addresses)
    return found


def staged(role: WarpRole, op: StoreOp | AddToArrayOp) -> Staged:
    """What a store by TMA moves."""
    tile = role.tiles[op.tile]
    if not isinstance(tile, Staged) or tile.transposed:
        raise CannotLowerError(op, "a tile stored by TMA that does not lie in its stage as it is stored")
    return tile


def hint(op: Access) -> str:
    """How the name of a copy ends that tells the L2 cache what it moves (`pk-plan-cache`)."""
    said = op.attributes.get(CACHE)
    return f"_{said.data}" if isinstance(said, StringAttr) else ""


def store(role: WarpRole, op: StoreOp | AddToArrayOp) -> None:
    """A staged tile to where it belongs, or added to what is there."""
    tile = staged(role, op)
    emit, what = role.emit, "store" if isinstance(op, StoreOp) else "add"
    with first_thread(role):
        _move(role, op, tile.address, what, None)
        if pieces(op) is None:
            emit.do("bulk_commit")


@dataclass(frozen=True)
class _Boxes:
    """How a tile is divided into boxes: `places` of its dimensions, `split` that of a shard."""

    places: list[Placed]
    split: int | None
    layout: SharedLayout
    sizes: list[int]
    """Elements of a box, innermost dimension first."""
    rows: int | None
    """The dimension along which boxes of a panel follow each other, which has `extent` elements, `step` in a box but
    perhaps the last one."""
    extent: int
    step: int
    parts: int | None
    """Elements of the parts of a row of which one box has all, if it has several."""


def _divided(op: LoadOp | StoreOp | AddToArrayOp, places: list[Placed], split: int | None, target: Target) -> _Boxes:
    tile, kind, piece = tile_type(op.result if isinstance(op, LoadOp) else op.tile), op.array.type, pieces(op)
    layout, box = target.shared_layout(tile), [place.extent for place in places]
    box[-1] = layout.columns
    rows = next((position for position, place in enumerate(places[:-1]) if place.extent > 1), None)
    extent = step = 1
    if rows is not None:
        extent = box[rows]
        box[rows] = step = piece or _in_a_box(extent, layout.rows // extent * layout.width)
    parts = _parts(op, layout, split, target.tuning) if piece is None and step == extent else None
    if parts is not None:
        box[-1] = parts
    if max(box) > MAX_BOX:
        raise CannotLowerError(op, f"a tile of {max(box)} elements along a dimension that is not its first")
    by_rank = isinstance(kind, PGLType) and kind.shard_dim is None
    sizes = [*reversed(box), *[1] * ((split is not None) + by_rank)]
    if parts is not None and len(sizes) < MAP_DIMENSIONS:
        sizes.append(tile.shape[-1] // parts)
    else:
        parts = None
        sizes[0] = layout.columns
    return _Boxes(places, split, layout, sizes, rows, extent, step, parts)


def _in_a_box(extent: int, size: int) -> int:
    """How many of `extent` positions of `size` bytes a box has: as many as divide them, if boxes then begin where they
    can, else the most."""
    step = next(n for n in range(min(extent, MAX_BOX), 0, -1) if extent % n == 0)
    return step if step == extent or step * size % BOX == 0 else MAX_BOX


def _tensor_map(role: WarpRole, op: LoadOp | StoreOp | AddToArrayOp, boxes: _Boxes, last: SSAValue) -> SSAValue:
    """The tensor map of an array, or of what takes its place on this rank, for some boxes."""
    emit, layout, split = role.emit, boxes.layout, boxes.split
    found = TensorMapOp(op.array, last, boxes.sizes, layout.swizzle, split)
    emit.add(found)
    if not isinstance(op, LoadOp) or op.local is None:
        return found.results[0]
    assert split is not None
    local = TensorMapOp(op.local, last, boxes.sizes, layout.swizzle, split)
    is_local = emit.compare("eq", role.dims.owner(boxes.places[split]), role.rank)
    emit.add(local)
    return emit.select(is_local, local.result, found.results[0])


def _move(
    role: WarpRole,
    op: LoadOp | StoreOp | AddToArrayOp,
    address: SSAValue,
    what: str,
    barrier: SSAValue | None,
) -> None:
    """Copy a tile between its stage and an array, box by box: each to all ranks before the next, if all get it."""
    emit, kind = role.emit, op.array.type
    places, split = in_one_shard(role, op)
    boxes = _divided(op, places, split, emit.target)
    layout, parts = boxes.layout, boxes.parts
    outer, last = _shard(role, places, split)
    to_all = not isinstance(op, LoadOp) and copies(op)
    if isinstance(kind, PGLType) and kind.shard_dim is None and not to_all:
        outer.append(role.rank if op.rank is None else role.known[op.rank])
    tensor_map, inner = _tensor_map(role, op, boxes, last), layout.rows // boxes.extent
    columns, narrow = _last_panel(role, op, boxes), tensor_map
    if columns:
        narrow = _tensor_map(role, op, replace(boxes, sizes=[columns, *[1] * (len(boxes.sizes) - 1)]), last)
    short = tensor_map
    if boxes.rows is not None and (rest := boxes.extent % boxes.step):
        sizes = list(boxes.sizes)
        sizes[len(places) - 1 - boxes.rows] = rest
        short = _tensor_map(role, op, replace(boxes, sizes=sizes), last)

    def start(box: SSAValue, panel: int, row: SSAValue | int, offsets: Mapping[int, SSAValue | int]) -> None:
        inside: list[SSAValue] = []
        for position, place in reversed(list(enumerate(places))):
            begin = place.local if position == split else role.dims.position(place)
            if position == len(places) - 1:
                begin = emit.plus(begin, panel * layout.columns) if parts is None else emit.const(0)
            if position in offsets:
                begin = emit.plus(begin, offsets[position])
            inside.append(begin)
        behind: list[SSAValue] = []
        if parts is not None:
            behind.append(emit.over(role.dims.position(places[-1]), parts))
        below = emit.times(row, layout.width) if isinstance(row, SSAValue) else row * layout.width
        target = emit.plus(emit.plus(address, panel * layout.panel_bytes), below)
        first = [target, box, *([barrier] if barrier is not None else [])]

        def start_on(*ranks: SSAValue) -> None:
            coordinates = [*inside, *outer, *ranks, *behind]
            emit.do(f"tma_{what}_{len(coordinates)}d{hint(op)}", *first, *coordinates)

        if not to_all:
            start_on()
            return
        with round_the_ranks(role) as rank:
            start_on(rank)

    def move(panel: int, first: SSAValue | int) -> None:
        begin = emit.times(first, inner) if isinstance(first, SSAValue) else first * inner
        count = boxes.step if isinstance(first, SSAValue) else min(boxes.step, boxes.extent - first)
        if not columns or panel < layout.panels - 1:
            box = tensor_map if count == boxes.step else short
            start(box, panel, begin, {} if boxes.rows is None else {boxes.rows: first})
            return
        with emit.loop(0, count * inner) as number:
            row = emit.plus(number, begin)
            start(narrow, panel, row, _along(emit, places[:-1], row))

    if pieces(op) is None:
        for panel in range(layout.panels if parts is None else 1):
            for first in range(0, boxes.extent, boxes.step):
                move(panel, first)
        return
    with emit.loop(0, boxes.extent, boxes.step) as first:
        for panel in range(layout.panels):
            move(panel, first)
            emit.do("bulk_commit")
            emit.do("bulk_wait_read")


def _last_panel(role: WarpRole, op: LoadOp | StoreOp | AddToArrayOp, boxes: _Boxes) -> int:
    """How many columns the boxes of the last panel have, of which one has a row then; 0 if these are as others.

    A box may go on behind the array, where nothing is stored, and loads may read on: what they bring lies in the
    padding. But a store must not write behind its tile.
    """
    last = boxes.places[-1]
    columns = last.extent % boxes.layout.columns
    left = constant_of(role.dims.valid(last)) if last.stop is None else None
    if not columns or isinstance(op, LoadOp) or (left is not None and left <= last.extent):
        return 0
    what = f"{columns} of {last.extent} columns of `{array_name(op.array)}` are stored row by row"
    slow(op, f"{what}: the next columns are another tile's")
    return columns


def _along(emit: Emitter, places: Sequence[Placed], row: SSAValue) -> dict[int, SSAValue | int]:
    """Where a row of a tile is along each of its blocks but the last one."""
    found: dict[int, SSAValue | int] = {}
    for position, place in reversed(list(enumerate(places))):
        if place.extent > 1:
            found[position] = emit.rest(row, place.extent)
            row = emit.part(row, place.extent)
    return found


def _parts(op: LoadOp | StoreOp | AddToArrayOp, layout: SharedLayout, split: int | None, tuning: Tuning) -> int | None:
    """How long the parts of rows are of which one box has all that a tile has: panels lie one behind the other, as the
    parts of a row do. Nothing where a few panels have the rows, or where rows or the tile might end within a part."""
    kind, index = array_type(op.array), op.indices[-1].owner
    last, size = kind.dimensions[-1], dtype_bytes(kind.element_type)
    few = layout.panels < (tuning.row_panels if layout.rows == 1 else tuning.panels)
    if few or split == len(kind.dimensions) - 1 or not isinstance(last, int):
        return None
    if not isinstance(index, BlockOp) or layout.panel_bytes != layout.rows * layout.width:
        return None
    begin = 0 if index.start is None else constant_of(index.start)
    if begin is None or index.stop is not None:
        return None
    # Of one row a part may be shorter than a panel.
    long = layout.columns if layout.rows > 1 else gcd(layout.columns, last, begin)
    each = block_type(index.result).extent
    kept = any(number % long for number in (last, begin, layout.columns, each))
    count = layout.columns * layout.panels // long
    return None if kept or long * size < tuning.box_part or long * size % CHUNK or count > MAX_BOX else long


def _shard(role: WarpRole, places: list[Placed], split: int | None) -> tuple[list[SSAValue], SSAValue]:
    """The coordinate of the shard, if a dimension is sharded, and which of the two maps it is in."""
    emit = role.emit
    if split is None:
        return [], emit.const(0)
    shard = role.dims.owner(places[split])
    beyond = emit.compare("sge", shard, role.dims.whole_shards(places[split].dim))
    last = emit.select(beyond, emit.const(1), emit.const(0))
    return [emit.select(emit.compare("eq", last, 1), emit.const(0), shard)], last


def copies(op: StoreOp | AddToArrayOp | Scatter) -> bool:
    """Whether what is written goes to every rank's copy of an array."""
    kind, one = op.array.type, op.rank is not None
    return isinstance(kind, PGLType) and kind.layout is Layout.Replicate and not one
