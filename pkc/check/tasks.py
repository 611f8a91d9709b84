"""Whether the CTAs of each role run every task exactly once, and the roles of a CTA the same ones in one order."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, zip_longest

from pkc.check import static_errors as errors
from pkc.check.trace import Visit, Worker
from pkc.diagnostics import Diagnostic
from pkc.dialect.program import RoleOp, TasksOp
from pkc.dialect.roles import CHANNEL_OPS, CommitOp, ConsumeOp
from pkc.location import span_of
from pkc.passes.derive import phase_of


def tasks_once(workers: Sequence[Worker]) -> Iterator[Diagnostic]:
    """Findings about the tasks of one launch, of parts whose tasks are shared out."""
    by_part: dict[tuple[int, RoleOp], list[Worker]] = {}
    by_cta: dict[tuple[int, int | None], list[Worker]] = {}
    for worker in workers:
        by_part.setdefault((worker.rank, worker.part), []).append(worker)
        by_cta.setdefault((worker.rank, worker.cta), []).append(worker)
    for (rank, part), group in by_part.items():
        yield from _once(rank, part, [visit for worker in group for visit in worker.visits])
    joined = _joined(list(dict.fromkeys(worker.part for worker in workers)))
    found = {visit[0] for worker in workers for visit in worker.visits}
    passing = {tasks: phase_of(tasks) for tasks in found if _passes_on(tasks)}
    for (rank, cta), group in by_cta.items():
        for one, other in combinations(group, 2):
            if (one.part, other.part) in joined:
                yield from _same(rank, cta or 0, one, other, passing)


def _once(rank: int, part: RoleOp, visits: Iterable[Visit]) -> Iterator[Diagnostic]:
    by_tasks: dict[TasksOp, list[Visit]] = {}
    for visit in visits:
        by_tasks.setdefault(visit[0], []).append(visit)
    for tasks, own in by_tasks.items():
        # There are as many as there should be, so that one which is run twice stands for one that is not run.
        task, times = Counts(map(_meant, own)).most_common(1)[0]
        if times > 1:
            yield errors.TasksNotOnce(span_of(tasks.location), str(part.role.data), rank, str(list(task)), times)


def _meant(visit: Visit) -> tuple[int, ...]:
    """The blocks that a task is about."""
    _, numbers, picked = visit
    return tuple(number if other is None else other for number, other in zip(numbers, picked, strict=True))


def _joined(parts: Sequence[RoleOp]) -> set[tuple[RoleOp, RoleOp]]:
    """Pairs of parts between which tiles go through channels, over other parts too."""
    ends: dict[RoleOp, set[object]] = {
        part: {op.channel for op in part.walk() if isinstance(op, CommitOp | ConsumeOp)} for part in parts
    }
    pairs = {(one, other) for one, other in combinations(parts, 2) if ends[one] & ends[other]}
    while True:
        links = pairs | {(other, one) for one, other in pairs}
        further = {(a, d) for a, b in links for c, d in links if b is c and parts.index(a) < parts.index(d)}
        if further <= pairs:
            return pairs
        pairs |= further


def _same(
    rank: int, cta: int, one: Worker, other: Worker, passing: Mapping[TasksOp, int | None]
) -> Iterator[Diagnostic]:
    """Compare the tasks of two roles of a CTA, of those that pass tiles on, in the phases in which both do.

    An index that only one of them reorders is its own affair.
    """
    both = [[visit for visit in worker.visits if visit[0] in passing] for worker in (one, other)]
    ours, theirs = ({passing[tasks] for tasks in {visit[0] for visit in visits}} for visits in both)
    if ours != theirs and ours & theirs:
        both = [[visit for visit in visits if passing[visit[0]] in ours & theirs] for visits in both]
    for number, pair in enumerate(zip_longest(*both)):
        first, second = pair
        if first is not None and second is not None and _agree(first, second):
            continue
        found = first or second
        assert found is not None
        names = (str(one.part.role.data), str(other.part.role.data))
        texts = [str(list(_meant(visit))) if visit else "none" for visit in pair]
        yield errors.OtherTasks(span_of(found[0].location), *names, cta, rank, texts[0], texts[1], number)
        return


def _passes_on(tasks: TasksOp) -> bool:
    """Whether tasks give tiles to another role, or get them from one."""
    return any(isinstance(op, CHANNEL_OPS) for op in tasks.walk())


def _agree(one: Visit, other: Visit) -> bool:
    both = zip(one[2], other[2], strict=False)
    return one[1] == other[1] and all(a == b for a, b in both if a is not None and b is not None)
