"""Whether each wait is covered by exactly the signals that its counter gets."""

from __future__ import annotations

from collections.abc import Iterator

from pkc.check import static_errors as errors
from pkc.check.progress import Progress
from pkc.check.trace import Counter, counter_name, of_channel
from pkc.diagnostics import Diagnostic, Label
from pkc.dialect.roles import CommitOp, ConsumeOp, channel_of
from pkc.location import span_of


def covered(progress: Progress, launch: int) -> Iterator[Diagnostic]:
    """Findings after a launch that came to its end.

    Every wait is for all the signals that its counter has got by then: whoever goes on, does so when nothing is still
    to come. Of counters that a launch resets, those of a protocol written by hand, some signals may be awaited first
    and the rest later.
    """
    anybody = {name for name, _, _ in progress.awaited}
    for counter, op in progress.sent.items():
        sent, awaited = progress.reached(counter), progress.awaited.get(counter, {})
        if of_channel(counter):
            yield from _channel(progress, counter)
            continue
        if counter[0] not in anybody:
            yield errors.NeverAwaited(span_of(op.location), counter_name(counter), counter[1], sent)
        if not awaited:
            continue  # a rank without tasks waits for nothing
        chosen = max if counter in progress.reset else min
        wanted, waits = chosen(awaited, key=lambda wait: wait[0])
        if wanted < sent:
            where = (counter_name(counter), counter[1], sent, wanted, launch)
            also = (Label(span_of(op.location), "signalled here"),)
            yield errors.NotAllAwaited(span_of(waits.location), *where, also=also)


def _channel(progress: Progress, counter: Counter) -> Iterator[Diagnostic]:
    """Stages that are filled and not consumed; what is acquired and released is in turn with these."""
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
