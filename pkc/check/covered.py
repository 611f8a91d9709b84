"""Whether each wait counts exactly the signals that its counter gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from xdsl.ir import Operation

from pkc.check import static_errors as errors
from pkc.check.progress import Progress
from pkc.check.trace import Counter, WarpRole, counter_name, of_channel
from pkc.diagnostics import Diagnostic, Label
from pkc.dialect.program import TasksOp
from pkc.dialect.roles import CommitOp, ConsumeOp, channel_of
from pkc.location import span_of
from pkc.sim.ledger import is_left_to_tasks, waits_for


def covered(progress: Progress, launch: int, warp_roles: Sequence[WarpRole]) -> Iterator[Diagnostic]:
    """Findings after a launch that came to its end.

    Every wait is for all signals that its counter has got by the end of the launch, so that no wait ends early; or for
    so many that the last one is needed. Of counters that a launch resets, in protocols written by hand, some signals
    may be awaited first and the rest later, and what is awaited on more ranks may be of no use on so many. Signals
    there may also follow from the end of a wait, as credits do of which the last are for nobody: what such a wait
    orders is for the simulation.
    """
    held: dict[tuple[Operation, int], Progress] = {}

    def answered(counter: Counter, sent: int, wanted: int, wait: Operation) -> bool:
        """Whether the wait ends with the last of the signals, or some come only after it has ended, or may be too many
        for it, as they come in batches, and it is one of several waits, or as a single role sends them, one after the
        other: then so many are always the first ones."""
        if counter not in progress.reset:
            return False
        if wanted > sent - progress.least[counter]:
            return True  # what it is for is not reached as long as one of them is missing
        in_batches = counter in progress.batched and len({number for number, _ in progress.awaited[counter]}) > 1
        if in_batches or len(progress.senders[counter]) == 1:
            progress.partial.add(wait)
            return True
        if (wait, wanted) not in held:
            held[wait, wanted] = progress.without(wait, wanted, warp_roles)
        answers = held[wait, wanted].reached(counter) < sent
        progress.partial |= {wait} if answers else set()
        return answers

    begun = {(warp_role.rank, visit[0]) for warp_role in warp_roles for visit in warp_role.visits}
    awaited_names = {name for name, _, _ in progress.awaited}
    for counter, op in progress.sent.items():
        sent, awaited = progress.reached(counter), progress.awaited.get(counter, {})
        if of_channel(counter):
            yield from _channel(progress, counter)
            continue
        if counter[0] not in awaited_names and not _may_await(op, counter, progress, begun):
            yield errors.NeverAwaited(span_of(op.location), counter_name(counter), counter[1], sent)
        if not awaited:
            continue  # a rank without tasks waits for nothing
        chosen = max if counter in progress.reset else min
        wanted, waits = chosen(awaited, key=lambda wait: wait[0])
        if wanted < sent and not answered(counter, sent, wanted, waits):
            where = (counter_name(counter), counter[1], sent, wanted, launch)
            also = (Label(span_of(op.location), "signalled here"),)
            yield errors.NotAllAwaited(span_of(waits.location), *where, also=also)


def _may_await(op: Operation, counter: Counter, progress: Progress, begun: Set[tuple[int, TasksOp]]) -> bool:
    """Whether a wait for a counter of this array could have come: of a protocol written by hand any, of a derived one
    those of tasks that the rank has none of at these sizes."""
    return bool(waits_for(op)) if counter in progress.reset else is_left_to_tasks(op, counter[1], begun)


def _channel(progress: Progress, counter: Counter) -> Iterator[Diagnostic]:
    """Stages that are committed and not consumed; acquires and releases follow from these."""
    op = progress.sent[counter]
    if not isinstance(op, CommitOp):
        return
    consumed = [number for number, wait in progress.awaited.get(counter, {}) if isinstance(wait, ConsumeOp)]
    committed, last = progress.counters[counter], max(consumed, default=0)
    if last < committed:
        _, rank, (cta,) = counter
        channel = channel_of(op.channel)
        where = (channel.label.data, committed, rank, cta, last)
        yield errors.TilesLeft(span_of(op.location), *where)
