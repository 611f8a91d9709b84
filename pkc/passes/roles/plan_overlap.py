"""The pass `pk-plan-overlap`: how each remote access overlaps with compute."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation

from pkc.diagnostics import Label, PkcError
from pkc.dialect.access import AccumulateOp, AtomicAddOp, LoadOp, ReadOp, StoreOp
from pkc.dialect.arrays import is_pgl
from pkc.dialect.by_table import GatherOp, ScatterAccumulateOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.names import task_variable
from pkc.dialect.program import PHASE, KernelOp, TasksOp
from pkc.dialect.tile import tile_type
from pkc.dialect.types import Layout
from pkc.location import describe, span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.apart import have_other_constants
from pkc.passes.analysis.dependence import maker
from pkc.passes.build import phase_of, phases
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import from_memory, variables
from pkc.passes.roles.fetches import can_fetch, has_shared_tiles
from pkc.passes.roles.pushes import CannotPushError, push_of
from pkc.passes.roles.remote_accesses import (
    ALL_REDUCE,
    REMOTE,
    Read,
    RemoteAccess,
    Sum,
    address,
    array_name,
    chooses_one_shot,
    idle_tasks,
    plan,
    planned,
    remote_reads,
    remote_stores,
    sums,
)
from pkc.passes.roles.stage_rows import whole_rows
from pkc.passes.roles.straddling import may_straddle
from pkc.remarks import missed

ORDER = "order"
"""On a kernel: the order of its tasks, one of the values of the schedule's `order`; `ring` is `local_first`."""


class PlanOverlap(KernelPass):
    """Choose, for each access that may reach another rank, where its communication happens.

    The schedule's `overlap` decides if it names one that makes a difference, else ParallelKittens' rule (arXiv
    2511.13940, section 3.1.3): a write, or an operand used once, is moved by the SM that computes (`intra_sm`); an
    operand that several tasks use, and a sum that every rank gets, by a communicator (`inter_sm`); a row that a task
    reads once is moved by the SM that computes, too. Written as an attribute, with the reason:

    Before:

        %a = pk.load %A[%m, %k : ...] : !pk.pgl<[M, K], bf16, shard 0> -> !pk.tile<128x64xbf16>

    After:

        %a = pk.load %A[%m, %k : ...] {remote = {overlap = "inter_sm", why = "used again along n: ..."}} : ...
    """

    name = "pk-plan-overlap"

    def run(self, kernel: KernelOp) -> None:
        if not kernel.roles:
            _plan_kernel(kernel)
            return
        for key in sorted(_OF_DERIVED_ROLES & set(kernel.schedule)):
            missed(PlanOverlap.name, kernel, f"`{key}` of the schedule changes nothing: the author wrote the roles")


_OF_DERIVED_ROLES = {"overlap", "transfer", "order", "straddle", ALL_REDUCE}
"""Keys of the schedule that say how roles are derived."""


_ACCESS: dict[type[Operation], str] = {
    LoadOp: "read",
    GatherOp: "gather",
    StoreOp: "write",
    AccumulateOp: "sum",
    ScatterAccumulateOp: "scattered sum",
}
"""What an access is called in the language."""


@dataclass(frozen=True)
class Explanation:
    """Why one access overlaps as it does."""

    place: str
    access: str
    array: str
    overlap: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.access} of `{self.array}`: {self.overlap} ({self.why})"


def explain(module: ModuleOp) -> list[Explanation]:
    """What the pass decided, for each access that may reach another rank."""
    found: list[Explanation] = []
    for op in module.walk():
        attr = op.attributes.get(REMOTE)
        if not isinstance(attr, DictionaryAttr):
            continue
        overlap, why = attr.data["overlap"], attr.data["why"]
        assert isinstance(overlap, StringAttr) and isinstance(why, StringAttr)
        assert isinstance(op, RemoteAccess)
        place, access = describe(op.location), _ACCESS[type(op)]
        found.append(Explanation(place, access, array_name(op.array), overlap.data, why.data))
    return found


_AROUND: tuple[tuple[type[Operation], str, str], ...] = (
    (
        scf.ForOp,
        "this loop has `tasks` in it",
        "`tasks(...)` in place of the loop, if no iteration needs what another one stores: `tasks` may be nested; "
        "else a kernel for each phase, or `with role(...)`",
    ),
    (scf.IfOp, "this branch has `tasks` in it", "put the `if` into the tasks"),
)
"""Of what must not stand around tasks: what is said, and what may be written."""


def _outside(kernel: KernelOp) -> errors.OutsideTasks:
    """What keeps a kernel from being a sequence of phases."""
    name = kernel.sym_name.data
    for op in kernel.body.block.ops:
        for kind, what, hint in _AROUND:
            if isinstance(op, kind) and any(isinstance(inner, TasksOp) for inner in op.walk()):
                return errors.OutsideTasks(span_of(op.location), name, what, hint)
    return errors.OutsideTasks(span_of(kernel.location), name)


def _plan_kernel(kernel: KernelOp) -> None:
    found = phases(kernel)
    if not found:
        raise PkcError(_outside(kernel))
    for number, tasks in enumerate(found if len(found) > 1 else ()):
        tasks.attributes[PHASE] = IntegerAttr(number, i64)
    for op in sums(kernel):
        _check_alike(kernel, op)
        _check_begin(op)
    accesses: list[RemoteAccess] = [*remote_reads(kernel), *remote_stores(kernel), *sums(kernel)]
    wanted, in_place = _wanted(kernel, "overlap"), kernel.in_any_order
    for op in accesses:
        overlap, why = _default(op, in_place, may_straddle(kernel))
        if wanted:
            if not _is_table(op):
                _check_legal(op, wanted, several=len(found) > 1)
            if _matters(op, wanted, in_place):
                overlap, why = wanted, "the schedule says so"
            elif wanted != overlap:
                what = f"this {_ACCESS[type(op)]} of `{array_name(op.array)}`"
                missed(PlanOverlap.name, op, f"`overlap={wanted}` changes nothing for {what}: {why}")
        if not isinstance(op, Read) or _wanted(kernel, "transfer") != "push":
            plan(op, overlap, why)
            continue
        if not wanted:
            overlap, why = "inter_sm", "the schedule lets its owner send it"
        _check_pushed(op, overlap)
        plan(op, overlap, why, push=True)
    pushed = _wanted(kernel, "transfer") == "push" and not any(isinstance(op, Read) for op in accesses)
    if pushed or (wanted and not accesses):
        key = "transfer=push" if pushed else f"overlap={wanted}"
        what = "no operand comes from other ranks" if accesses else "nothing goes from rank to rank"
        missed(PlanOverlap.name, kernel, f"`{key}` changes nothing: {what}")
    summed = [op for op in accesses if isinstance(op, AccumulateOp)]
    if _wanted(kernel, ALL_REDUCE) == "one_shot" and not any(chooses_one_shot(kernel, op) for op in summed):
        missed(PlanOverlap.name, kernel, f"`{ALL_REDUCE}=one_shot` changes nothing: no owner sends a sum to all ranks")
    kernel.attributes[ORDER] = StringAttr(_wanted(kernel, "order") or _order(accesses))


def _order(accesses: list[RemoteAccess]) -> str:
    """Local shard first if remote operands are fetched ahead; local shard last if sums or tiles go to owners."""
    if any(isinstance(op, Read) and planned(op) in ("inter_sm", "none", "copy_engine") for op in accesses):
        return "local_first"
    return "local_last" if any(isinstance(op, Sum) or _goes_to_owners(op) for op in accesses) else "natural"


def _goes_to_owners(op: RemoteAccess) -> bool:
    """Whether tasks store to the shards of all ranks, each to that of its block."""
    if not isinstance(op, StoreOp):
        return False
    blocks = [value.owner for value in address(op) if isinstance(value.owner, BlockOp)]
    return any(block.of_all_shards and isinstance(maker(block.index), TasksOp) for block in blocks)


def _wanted(kernel: KernelOp, key: str) -> str:
    """What the schedule says of a key, if anything."""
    value = kernel.schedule.get(key)
    return value.data if isinstance(value, StringAttr) else ""


def _matters(op: RemoteAccess, wanted: str, in_place: bool) -> bool:
    """Whether the schedule's overlap makes a difference: only operands are fetched by somebody else than who computes
    with them, and what is stored leaves the SM that has it unless a copy engine takes it."""
    if _is_table(op):
        return False
    if isinstance(op, Sum):
        return not in_place and wanted in ("none", "copy_engine")
    return isinstance(op, Read) or wanted == "copy_engine"


def _is_table(op: RemoteAccess) -> bool:
    """Whether an access stores what a table names, a few bytes, to all who add up rows."""
    return any(isinstance(use.operation, InvertOp) and op.array is use.operation.table for use in op.array.uses)


_ONE_INDEX = ", so that several tasks have the same tile; with an index for it, and one for those tasks, it comes once"

_IN_PLACE = "`deterministic=False`: each contribution is added where the array lives, by the SM that computed it"


def _default(op: RemoteAccess, in_place: bool, straddles: bool) -> tuple[str, str]:
    if isinstance(op, ScatterAccumulateOp):
        return "intra_sm", "rows go where a table says: each is added at its owner by the SM that has it"
    if isinstance(op, Sum):
        if in_place:
            return "intra_sm", _IN_PLACE
        if is_pgl(op.array, Layout.Replicate):
            return "inter_sm", "every rank gets the sum: its owner adds it up and sends it back beside the tasks"
        return "intra_sm", "one aligned write for each tile: the SM that computed it sends it"
    if isinstance(op, Read):
        again = [task_variable(index)[0] or "a task index" for index in idle_tasks(op)]
        if again and not can_fetch(op) and not (isinstance(op, GatherOp) and not whole_rows(op)):
            shared = has_shared_tiles(op)
            why = "a quotient of an index names it" if shared else "its address is known only where it is used"
            reason = f"each task along {', '.join(again)} fetches it again: {why}{_ONE_INDEX if shared else ''}"
            missed(PlanOverlap.name, op, f"`{array_name(op.array)}` is not fetched ahead, and {reason}", of_ranks=True)
            return "intra_sm", f"{why}: the SM that computes fetches it"
        if again and _is_short(op) and not straddles:
            return "intra_sm", f"a row, once in a task: the SM that computes fetches it, again along {', '.join(again)}"
        if again:
            return "inter_sm", f"used again along {', '.join(again)}: fetched once, by a communicator"
        return "intra_sm", "used once: the SM that computes with it fetches it"
    return "intra_sm", "one aligned write for each tile: the SM that computed it sends it"


def _is_short(op: Read) -> bool:
    """Whether a task reads few bytes, and once: roles and a receive buffer for them take more than the link does. What
    straddles shards is always fetched."""
    return isinstance(op, LoadOp) and tile_type(op.result).rank < 2 and isinstance(op.parent_op(), TasksOp)


def _check_alike(kernel: KernelOp, op: Sum) -> None:
    """Refuse sums in order into an array to which some statements add by tables, and others without a table of the same
    dimensions (`pk-order-scatters`): these are added up in another way."""
    if not isinstance(op, AccumulateOp) or kernel.in_any_order:
        return
    for use in op.array.uses:
        other = use.operation
        if isinstance(other, ScatterAccumulateOp) or (isinstance(other, SumRowsOp) and other.array is op.array):
            reason = "other statements add to it by tables, which do not go through the same blocks"
            hint = "let the one by a table sum into scratch memory, and store both together behind it; or "
            also = (Label(span_of(other.location), "by a table"),)
            found = errors.CannotStageSum(span_of(op.location), array_name(op.array), reason, hint, also=also)
            raise PkcError(found)


def _check_begin(op: Sum) -> None:
    """Refuse to sum into an array that a kernel of several phases has read or written before."""
    others = (use.operation for use in op.array.uses if not isinstance(use.operation, Sum))
    before = [other for other in others if (phase_of(other) or 0) <= (phase_of(op) or 0)]
    clash = next((other for other in before if not _other_elements(op, other)), None)
    if clash is not None:
        also = (Label(span_of(clash.location), "used here"),)
        raise PkcError(errors.UsedBeforeSum(span_of(op.location), array_name(op.array), also=also))


def _other_elements(op: Sum, other: Operation) -> bool:
    """Whether what is read of an array that is summed are surely other elements than those of a sum, by constants, and
    a sum as well: that this stands before the read is checked of it."""
    if not isinstance(other, ReadOp | LoadOp):
        return False
    of_array = [use.operation for use in op.array.uses if isinstance(use.operation, Sum)]
    if not all(isinstance(one, AccumulateOp | AtomicAddOp) for one in of_array):
        return False
    apart = [have_other_constants(one.indices, other.indices) for one in of_array]
    return apart[of_array.index(op)] and not all(apart)


def _check_legal(op: RemoteAccess, overlap: str, *, several: bool) -> None:
    reason = _not_copied(op) if overlap == "copy_engine" else ""
    if isinstance(op, ScatterAccumulateOp) and overlap != "intra_sm":
        reason = "a table says where each row goes, so that no owner knows how many rows to wait for"
    written = any(not isinstance(use.operation, Read) for use in op.array.uses)
    if overlap == "copy_engine" and several and written:
        reason = "a copy engine cannot tell other ranks that a phase is over"
    if reason:
        found = errors.IllegalOverlap(span_of(op.location), overlap, _ACCESS[type(op)], array_name(op.array), reason)
        raise PkcError(found)


def _check_pushed(op: Read, overlap: str) -> None:
    reason = "" if overlap in ("inter_sm", "none") else f"with `overlap={overlap}` no communicator moves it"
    try:
        push_of(op, variables(op, address(op)))
    except CannotPushError as error:
        reason = str(error)
    if reason:
        raise PkcError(errors.CannotPush(span_of(op.location), _ACCESS[type(op)], array_name(op.array), reason))


def _not_copied(op: RemoteAccess) -> str:
    """Why a copy engine cannot move what an access moves; empty if it can. The host enqueues the copies beforehand."""
    if isinstance(op, GatherOp):
        return f"{why}: so copies follow a table, which the host does not know" if (why := whole_rows(op)) else ""
    if not isinstance(op, Read) and not isinstance(op.parent_op(), TasksOp):
        return "it stands in a loop or branch, and the host enqueues one copy for each task"
    if from_memory(op, address(op)):
        return "where it goes is read from an array, and the host does not know it when it enqueues copies"
    return ""
