"""The pass `pk-stage-remote-stores`: a copy engine sends tiles to other ranks, from a buffer of their own."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from pkc.dialect.access import RaiseOp, StoreOp, WaitOp, array_type
from pkc.dialect.attributes import Role
from pkc.dialect.copies import CopyOp
from pkc.dialect.program import KernelOp, RankOp, RoleOp
from pkc.dialect.types import PrivateType
from pkc.passes.cells import cells_along, constant, counter_ops
from pkc.passes.dependence import ancestors
from pkc.passes.derive import AFTER_ALL, add_parameter, add_role, append, before, wrap_in_role
from pkc.passes.edges import EDGE, array_name, planned
from pkc.passes.slices import Known, copy_nest, copy_value, variables


@dataclass(frozen=True)
class StageRemoteStores(ModulePass):
    """Let a copy engine bring tiles to other ranks, for each store planned `copy_engine`.

    The task stores its tile in a buffer of its own rank and raises the tile's counter there. The copy engine goes
    through the same tasks: it waits for the counter, copies the tile and, if the store was announced to its reader,
    announces the copy.

    Before:

        pk.tasks (%i) in (%rows) {
          ...
          pk.store %t, %Y[%m : ...] {edge = {overlap = "copy_engine", ...}} : ..., !pk.pgl<[M], f32, replicate>

    After:

        pk.role copy_engine {
          pk.tasks (%i) in (%rows) {
            pk.wait %Y_computed[%row] for %one : !pk.signal<[M by 128]>
            pk.copy %Y_staged[%m : ...] along [0] to %Y[%m : ...] along [0] : ...
        pk.role consumer {
          pk.tasks (%i) in (%rows) {
            ...
            pk.store %t, %Y_staged[%m : ...] : !pk.tile<128xf32>, !pk.private<[M], f32>
            pk.raise %Y_computed at %rank[%row] to %one : !pk.signal<[M by 128]>
    """

    name = "pk-stage-remote-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                _stage_kernel(kernel)


def _stage_kernel(kernel: KernelOp) -> None:
    stores = [op for op in kernel.walk() if isinstance(op, StoreOp) and planned(op) == "copy_engine"]
    if not stores:
        return
    for store in stores:
        _stage(kernel, store)
    wrap_in_role(kernel, Role.Consumer)


def _stage(kernel: KernelOp, store: StoreOp) -> None:
    name, kind, location = array_name(store.array), array_type(store.array), store.location
    # A dimension of slots has an index for each rank, and the buffer is a rank's own.
    kept = [place for place, index in enumerate(store.indices) if not isinstance(index.owner, RankOp)]
    dims = [kind.dimensions[place] for place in kept]
    indices = [store.indices[place] for place in kept]
    cells = cells_along(dims, indices, range(len(indices)))
    staged = add_parameter(kernel, f"{name}.staged", PrivateType(dims, kind.element_type), location)
    computed = add_parameter(kernel, f"{name}.computed", cells.type, location)

    part = add_role(kernel, Role.CopyEngine, store)
    around = next((op for op in ancestors(store) if isinstance(op, RoleOp)), None)
    engine = part.parent_op()
    if around is not None and engine is not None and AFTER_ALL in around.attributes:
        engine.attributes[AFTER_ALL] = UnitAttr()  # each copy follows what the part around the store has done
    known: Known = {}
    body = copy_nest(part, store, variables(store, store.indices), known)
    target = {place: copy_value(body, index, known) for place, index in enumerate(store.indices)}
    source = {number: target[place] for number, place in enumerate(kept)}
    one = constant(1)
    address, counter = counter_ops(list(source.values()))
    for op in (one, *address, WaitOp(computed, counter, one), CopyOp(staged, source, store.array, target)):
        append(body, op, location)
    announced = _announcement(store)
    if announced is not None:
        where = [copy_value(body, value, known) for value in announced.indices]
        rank, value = (copy_value(body, value, known) for value in (announced.rank, announced.value))
        append(body, RaiseOp(announced.signal, where, rank, value), location)
        announced.detach()
        announced.erase()

    rank, value = RankOp(), constant(1)
    address, counter = counter_ops(indices)
    local = StoreOp(store.tile, staged, indices)
    before(store, [local, rank, value, *address, RaiseOp(computed, counter, rank, value)])
    store.detach()
    store.erase()


def _announcement(store: StoreOp) -> RaiseOp | None:
    """What tells the reader of a store that it is there, and goes with it."""
    op = store.next_op
    while op is not None and not isinstance(op, StoreOp):
        if isinstance(op, RaiseOp) and op.attributes.get(EDGE) is not None:
            return op
        op = op.next_op
    return None
