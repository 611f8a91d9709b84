"""Whether the CTAs of each role run every task exactly once, and the roles of a CTA the same tasks in one order."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, zip_longest
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from pkc.check import static_errors as errors
from pkc.check.trace import Visit, WarpRole
from pkc.diagnostics import Diagnostic
from pkc.dialect.attributes import number_on
from pkc.dialect.program import PART, RoleOp, TasksOp
from pkc.dialect.roles import CHANNEL_OPS, CommitOp, ConsumeOp
from pkc.location import span_of
from pkc.passes.build import phase_of

_List: TypeAlias = tuple["int | None", ...]


def tasks_once(warp_roles: Sequence[WarpRole]) -> Iterator[Diagnostic]:
    """Findings about the tasks of one launch, for roles whose tasks are distributed to CTAs."""
    by_role: dict[tuple[int, RoleOp], list[WarpRole]] = {}
    by_cta: dict[tuple[int, int | None], list[WarpRole]] = {}
    for warp_role in warp_roles:
        by_role.setdefault((warp_role.rank, warp_role.role), []).append(warp_role)
        by_cta.setdefault((warp_role.rank, warp_role.cta), []).append(warp_role)
    for (rank, role), group in by_role.items():
        yield from _once(rank, role, [visit for warp_role in group for visit in warp_role.visits])
    joined = _joined(list(dict.fromkeys(warp_role.role for warp_role in warp_roles)))
    found = {visit[0] for warp_role in warp_roles for visit in warp_role.visits}
    passing = {tasks: _list_of(tasks) for tasks in found if _passes_on(tasks)}
    for (rank, cta), group in by_cta.items():
        for one, other in combinations(group, 2):
            if (one.role, other.role) in joined:
                yield from _same(rank, cta or 0, one, other, passing)


def _once(rank: int, role: RoleOp, visits: Iterable[Visit]) -> Iterator[Diagnostic]:
    by_tasks: dict[TasksOp, list[Visit]] = {}
    for visit in visits:
        by_tasks.setdefault(visit[0], []).append(visit)
    for tasks, visited in by_tasks.items():
        # The number of visits is right by construction, so a task that runs twice stands for another that never runs.
        task, times = Counts(map(_meant, visited)).most_common(1)[0]
        if times > 1:
            yield errors.TasksNotOnce(span_of(tasks.location), str(role.role.data), rank, str(list(task)), times)


def _meant(visit: Visit) -> tuple[int, ...]:
    """The blocks that a task works on."""
    _, numbers, picked = visit
    return tuple(number if other is None else other for number, other in zip(numbers, picked, strict=True))


def _joined(roles: Sequence[RoleOp]) -> set[tuple[RoleOp, RoleOp]]:
    """Pairs of roles between which tiles go through channels, also through further roles."""
    ends = {role: _channels(role) for role in roles}
    pairs = {(one, other) for one, other in combinations(roles, 2) if ends[one] & ends[other]}
    while True:
        links = pairs | {(other, one) for one, other in pairs}
        further = {(a, d) for a, b in links for c, d in links if b is c and roles.index(a) < roles.index(d)}
        if further <= pairs:
            return pairs
        pairs |= further


def _channels(role: RoleOp) -> set[SSAValue]:
    return {op.channel for op in role.walk() if isinstance(op, CommitOp | ConsumeOp)}


def _same(
    rank: int, cta: int, one: WarpRole, other: WarpRole, passing: Mapping[TasksOp, _List]
) -> Iterator[Diagnostic]:
    """Compare the tasks of two roles of a CTA that go through channels, in the lists or sets in which both have
    some, and if one has none here in those in which both may.

    An index that only one of the two reorders is not compared. A role that has no tasks passes on what all tasks share.
    """
    both = [[visit for visit in warp_role.visits if visit[0] in passing] for warp_role in (one, other)]
    ours, theirs = ({passing[tasks] for tasks in {visit[0] for visit in visits}} for visits in both)
    if ours and theirs and not ours & theirs and not _channels(one.role) & _channels(other.role):
        return  # each has what it has in common with a third role in other lists
    if bool(ours) != bool(theirs):
        alike = _lists(one.role) & _lists(other.role)
        both = [[visit for visit in visits if passing[visit[0]] in alike] for visits in both]
    if ours != theirs and ours & theirs:
        both = [[visit for visit in visits if passing[visit[0]] in ours & theirs] for visits in both]
    if any(PART in visit[0].attributes for visits in both for visit in visits):
        shared = _shared_parts(one.role, other.role)
        both = [[visit for visit in visits if number_on(visit[0], PART) in shared] for visits in both]
    for number, pair in enumerate(zip_longest(*both)):
        first, second = pair
        if first is not None and second is not None and _agree(first, second):
            continue
        found = first or second
        assert found is not None
        names = (str(one.role.role.data), str(other.role.role.data))
        texts = [str(list(_meant(visit))) if visit else "none" for visit in pair]
        yield errors.OtherTasks(span_of(found[0].location), *names, cta, rank, texts[0], texts[1], number)
        return


def _shared_parts(one: RoleOp, other: RoleOp) -> set[int]:
    """The sets of tasks of an author in which both of two roles pass tiles on, or get some."""
    parts = [{number_on(op, PART) for op in role.walk() if _is_passing(op)} for role in (one, other)]
    return {part for part in parts[0] & parts[1] if part is not None}


def _lists(role: RoleOp) -> set[_List]:
    """The lists of tasks in which a role passes tiles on or gets some, in whatever CTA."""
    return {_list_of(op) for op in role.walk() if isinstance(op, TasksOp) and _passes_on(op)}


def _list_of(tasks: TasksOp) -> _List:
    """What a list of tasks has in common with those that it became in other roles: its phase, and its place in each
    of the tasks around it."""
    around = tasks.parent_op()
    if not isinstance(around, TasksOp):
        return (phase_of(tasks),)
    lists = [op for op in around.body.block.ops if isinstance(op, TasksOp)]
    return (*_list_of(around), lists.index(tasks))


def _is_passing(op: Operation) -> bool:
    return isinstance(op, TasksOp) and _passes_on(op)


def _passes_on(tasks: TasksOp) -> bool:
    """Whether tasks pass tiles to another role, or get tiles from one."""
    return any(isinstance(op, CHANNEL_OPS) for op in tasks.walk())


def _agree(one: Visit, other: Visit) -> bool:
    both = zip(one[2], other[2], strict=False)
    return one[1] == other[1] and all(a == b for a, b in both if a is not None and b is not None)
