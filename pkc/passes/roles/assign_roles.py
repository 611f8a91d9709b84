"""The pass `pk-assign-roles`: which role carries out each operation of a task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.diagnostics import Label, PkcError
from pkc.dialect.access import AddToArrayOp, LoadOp, ReduceOp, Store, StoreOp
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.by_table import AddByTableOp, GatherOp, ScatterStoreOp, tables_of
from pkc.dialect.counters import RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.program import DERIVED, WRITTEN, KernelOp, RoleOp, TasksOp, packed
from pkc.dialect.types import TileType
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.apart import are_apart
from pkc.passes.analysis.dependence import ancestors, enclosing_tasks, sources
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.analysis.tables import is_evaluated
from pkc.passes.build import phase_of, wrap_in_role
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

ROLE = "role"
"""The attribute in which an operation's role is written."""

_LOADS = (LoadOp, GatherOp, ReduceOp, WaitOp)
_STORES = (StoreOp, AddToArrayOp, ScatterStoreOp, AddByTableOp, SignalOp, SignalAllOp, RaiseOp)


class AssignRoles(KernelPass):
    """Write on each operation with an effect or a tile the role that carries it out.

    Reads, and the waits that guard them, go to the loader, writes and the signals that announce them to the storer,
    arithmetic on tiles, lists of entries and sums of what they list to the consumer; a row table that only addresses an
    access goes with the access, but for what it follows from floats or rows by, which consumers pass on. Integers
    belong to nobody: every role computes those it needs. What is loaded to be sent in packets the storer loads. A role
    that an earlier pass has written stays. Communicators that the author wrote are left alone.

    Before:

        %a = pk.load %A[%m, %k : ...] : ...
        %acc = pk.mma %a, %b, %sum : ...

    After:

        %a = pk.load %A[%m, %k : ...] {role = #pk<role_name loader>} : ...
        %acc = pk.mma %a, %b, %sum {role = #pk<role_name consumer>} : ...
    """

    name = "pk-assign-roles"

    def run(self, kernel: KernelOp) -> None:
        if not kernel.roles:
            wrap_in_role(kernel, Role.Consumer)
        for role_op in derived_roles(kernel):
            _check_order(kernel, role_op)
            for op in reversed(list(role_op.body.walk())):
                role = role_of(op) or _role(op)
                if role is not None:
                    op.attributes[ROLE] = RoleAttr(role)


def derived_roles(kernel: KernelOp) -> list[RoleOp]:
    """The roles that are to be split: the one that pkc made from the tasks of a kernel, or those of its author."""
    return [role for role in kernel.roles if DERIVED in role.attributes]


def role_of(op: Operation) -> Role | None:
    """The role written on an operation."""
    attr = op.attributes.get(ROLE)
    return attr.data if isinstance(attr, RoleAttr) else None


def _check_order(kernel: KernelOp, role_op: RoleOp) -> None:
    """Refuse reads that must stay before or behind a write of their phase which only the storer makes."""
    for read in role_op.body.walk():
        if not isinstance(read, LoadOp | GatherOp):
            continue
        for use in read.array.uses:
            store = use.operation
            if not isinstance(store, Store) or not role_op.is_ancestor(store) or _follows(kernel, store, read):
                continue
            if phase_of(store) != phase_of(read) or _joined(kernel, store, read):
                continue
            if are_apart(read, store) or are_exclusive(store, read):
                continue
            label = Label(span_of(store.location), "written here")
            name = kernel.argument_name(read.array) if isinstance(read.array, BlockArgument) else ""
            by_threads = WRITTEN in kernel.attributes and is_spread(role_op)
            hint = "; or write `with role(communicator)`, whose threads keep the order" if by_threads else ""
            found = errors.ReorderedAccess(span_of(read.location), name, hint=hint, also=(label,))
            raise PkcError(replace(found, how=errors.ELSEWHERE) if _stands_behind(kernel, store, read) else found)


def _stands_behind(kernel: KernelOp, store: Store, read: Operation) -> bool:
    """Whether a store stands behind a read in the text, and no loop has both."""
    in_order = span_of(read.location).start < span_of(store.location).start
    return in_order and _loops(kernel, store).isdisjoint(_loops(kernel, read))


def _joined(kernel: KernelOp, store: Store, read: Operation) -> bool:
    """Whether CTAs wait for each other between the two, because they stand in different tasks of an author."""
    return WRITTEN in kernel.attributes and enclosing_tasks(store)[:1] != enclosing_tasks(read)[:1]


def are_exclusive(op: Operation, other: Operation) -> bool:
    """Whether no run of a loop or task has both: they stand in the two branches of a condition."""
    for around in ancestors(op):
        if isinstance(around, scf.ForOp | TasksOp):
            return False
        if isinstance(around, scf.IfOp) and around in ancestors(other):
            return _branch(around, op) is not _branch(around, other)
    return False


def _branch(around: scf.IfOp, op: Operation) -> Block | None:
    return next((region.block for region in around.regions if region.blocks and region.block.is_ancestor(op)), None)


def _loops(kernel: KernelOp, op: Operation) -> set[Operation]:
    """The loops around an operation; of an author's tasks those inside of them, as CTAs wait for each other between
    the iterations of the others."""
    tasks = enclosing_tasks(op)[-1:] if WRITTEN in kernel.attributes else []
    return {
        parent
        for parent in ancestors(op)
        if isinstance(parent, scf.ForOp) and all(around.is_ancestor(parent) for around in tasks)
    }


def _follows(kernel: KernelOp, store: Store, read: LoadOp | GatherOp) -> bool:
    """Whether a store comes after a read: it stores what is computed from it, and no loop has both."""
    return read.results[0] in sources([store.tile]) and _loops(kernel, store).isdisjoint(_loops(kernel, read))


def _role(op: Operation) -> Role | None:
    """The role of an operation whose users have theirs."""
    if isinstance(op, LoadOp) and all(_goes_in_packets(use.operation) for use in op.result.uses):
        return Role.Storer
    if isinstance(op, _LOADS):
        return Role.Loader
    if isinstance(op, _STORES):
        return Role.Storer
    if isinstance(op, InvertOp | SumRowsOp):
        return Role.Consumer
    if isinstance(op, scf.YieldOp | scf.ForOp | scf.IfOp):
        return Role.Consumer if _has_tile(op.operands) or _has_tile(op.results) else None
    if not _has_tile(op.results):
        return None
    served = {_addressed(use.operation, result) for result in op.results for use in result.uses}
    if len(served) > 1 and not served.isdisjoint((Role.Loader, Role.Storer)):
        reason = "it says where an access goes, and is used for something else too"
        missed(AssignRoles.name, op, f"consumers compute this table and pass it on: {reason}")
    if len(served) != 1 or not is_evaluated(op):
        return Role.Consumer
    return served.pop() or Role.Consumer


def _goes_in_packets(user: Operation) -> bool:
    """Whether an operation sends a tile in packets, which threads make of what they load themselves."""
    return isinstance(user, StoreOp) and packed(user)


def _addressed(user: Operation, value: SSAValue) -> Role | None:
    """The role that an operation serves by making `value`, if it only says where `user` goes."""
    if value in tables_of(user) or (isinstance(user, WaitOp) and value is user.rows):
        return role_of(user)
    role = role_of(user)
    return role if role in (Role.Loader, Role.Storer) and not isinstance(user, (*_LOADS, *_STORES)) else None


def _has_tile(values: Iterable[SSAValue]) -> bool:
    return any(isinstance(value.type, TileType) for value in values)
