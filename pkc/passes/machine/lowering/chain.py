"""Chains: the elements of one place go through all operations before those of the next (`pk-fuse-chains`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.tile import CastOp, MmaOp, chain_of, pieces_of, tile_type
from pkc.passes.analysis.chains import following, is_elementwise, members, takes
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import fragments, mma
from pkc.passes.machine.lowering.computed import converted, of_elements
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.elements import constant
from pkc.passes.machine.lowering.fragments import PACKED, LazyTile, PieceTile, RegisterTile
from pkc.passes.machine.lowering.spread import fragment_of
from pkc.targets.layout import Fragment


def compute(role: WarpRole, op: Operation) -> bool:
    """Lower an element-wise operation of a chain: its elements are computed where they are used, once for each use of
    an index in a block. False if `op` is none."""
    if chain_of(op) is None or not is_elementwise(op):
        return False
    value = op.results[0]
    kind = tile_type(value).element_type
    if isinstance(op, CastOp) and kind in PACKED:
        exact, name = _once(converted(role, op)), f"low_{PACKED[kind]}"

        def rounded(emit: Emitter, index: SSAValue) -> SSAValue:
            return emit.value(name, emit.value(f"pack_{PACKED[kind]}", exact(emit, index), constant(emit, 0, kind)))

        role.tiles[value] = LazyTile(fragment_of(role, value), kind, _once(rounded), exact)
    else:
        role.tiles[value] = LazyTile(fragment_of(role, value), kind, _once(of_elements(role, op)))
    return True


def finish(role: WarpRole, op: Operation) -> None:
    """Behind the last element-wise operation of a chain: tiles that are used behind the chain get registers, all in one
    go. What only the end of the chain takes gets none."""
    after = following(op)
    if chain_of(op) is None or takes(op):
        return
    if after is not None and chain_of(after) == chain_of(op) and not takes(after):
        return
    made: list[tuple[SSAValue, LazyTile, RegisterTile]] = []
    mmas = _in_pieces(role, members(op))
    for other in members(op):
        found = role.tiles.get(other.results[0])
        if is_elementwise(other) and isinstance(found, LazyTile) and _is_kept(other):
            kind = found.element_type
            target = fragments.allocate(role, found.fragment, kind, other.results[0].name_hint)
            made.append((other.results[0], found, target))
    for fragment in dict.fromkeys(tile.fragment for _, tile, _ in made):
        _fill(role, fragment, [(tile, target) for _, tile, target in made if tile.fragment == fragment], mmas)
    for value, _, target in made:
        role.tiles[value] = target


def _in_pieces(role: WarpRole, chain: Sequence[Operation]) -> list[MmaOp]:
    """The MMAs whose products a chain uses piece by piece, in their order."""
    products = (value for op in chain for value in op.operands if isinstance(role.tiles.get(value), PieceTile))
    return [value.owner for value in dict.fromkeys(products) if isinstance(value.owner, MmaOp)]


def _is_kept(op: Operation) -> bool:
    """Whether something uses a result that is not in the chain."""
    users = (use.operation for value in op.results for use in value.uses)
    return any(chain_of(user) != chain_of(op) or user.parent is not op.parent for user in users)


def _fill(
    role: WarpRole, fragment: Fragment, tiles: Sequence[tuple[LazyTile, RegisterTile]], mmas: Sequence[MmaOp]
) -> None:
    """Element by element, or pair by pair if neighbours share a register, of all tiles at once; piece by piece behind
    the MMAs whose products have registers for a piece."""
    pieces = pieces_of(mmas[0]) if mmas else 1
    each = fragment.count // pieces
    for piece in range(pieces):
        for op in mmas:
            if piece:
                mma.issue_piece(role, op, piece)
            mma.finish_piece(role, op)
        _fill_some(role, range(piece * each, (piece + 1) * each), tiles)


def _fill_some(role: WarpRole, elements: range, tiles: Sequence[tuple[LazyTile, RegisterTile]]) -> None:
    emit = role.emit
    at_once = 2 if any(target.packed for _, target in tiles) else 1
    with emit.loop(elements.start // at_once, elements.stop // at_once, unroll=True) as number:
        first = emit.times(number, at_once)
        places = [first, emit.plus(first, 1)][:at_once]
        for tile, target in tiles:
            found = [(tile.exact or tile.element)(emit, index) for index in places]
            if target.packed:
                emit.set(emit.value(f"pack_{PACKED[target.element_type]}", *found), target.registers, number)
                continue
            for index, value in zip(places, found, strict=True):
                emit.set(value, target.registers, index)


def _once(make: Callable[[Emitter, SSAValue], SSAValue]) -> Callable[[Emitter, SSAValue], SSAValue]:
    """The same, without computing an element again where it is known already."""
    known: dict[tuple[Block, SSAValue], SSAValue] = {}

    def element(emit: Emitter, index: SSAValue) -> SSAValue:
        key = (emit.block, index)
        if key not in known:
            known[key] = make(emit, index)
        return known[key]

    return element
