"""The roles of a kernel as a picture: who hands tiles to whom through which channel, and who signals whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from xdsl.ir import Operation, SSAValue

from pkc.dialect import counters, roles
from pkc.dialect.program import KernelOp, RoleOp
from pkc.timeline.names import names_of, task_work

_WIDTH, _STEP, _BOX, _TALL = 1000, 34, 150, 40


@dataclass(frozen=True)
class Arrow:
    """From one role to another (positions): a channel with its stages, or a signal between ranks."""

    source: int
    target: int
    text: str
    kind: str


def arrows(kernel: KernelOp) -> list[Arrow]:
    """All channels, then all signals that a role waits for."""
    found = [op for op in kernel.body.block.ops if isinstance(op, RoleOp)]
    return [*_channels(kernel, found), *dict.fromkeys(_signals(kernel, found))]


def _channels(kernel: KernelOp, found: Sequence[RoleOp]) -> Iterator[Arrow]:
    for op in kernel.body.block.ops:
        if isinstance(op, roles.ChannelOp):
            ends = [_at(found, op.result, kind) for kind in (roles.CommitOp, roles.ConsumeOp)]
            for source in ends[0]:
                for target in ends[1]:
                    stages = f"{op.depth} stage{'s' * (op.depth > 1)}"
                    yield Arrow(source, target, f"{op.label.data}: {stages}", "channel")


def _signals(kernel: KernelOp, found: Sequence[RoleOp]) -> Iterator[Arrow]:
    senders = (counters.SignalOp, counters.SignalAllOp, counters.RaiseOp, counters.BarrierOp)
    for argument in kernel.body.block.args:
        for source in _at(found, argument, senders):
            for target in _at(found, argument, (counters.WaitOp, counters.BarrierOp)):
                yield Arrow(source, target, kernel.argument_name(argument), "signal")


def _at(found: Sequence[RoleOp], value: SSAValue, kinds: type[Operation] | tuple[type[Operation], ...]) -> list[int]:
    """The roles in which such operations use a value."""
    users = [use.operation for use in value.uses if isinstance(use.operation, kinds)]
    return [place for place, role in enumerate(found) if any(role.is_ancestor(user) for user in users)]


def text(kernel: KernelOp) -> list[str]:
    """A line for each channel and signal."""
    found = [op for op in kernel.body.block.ops if isinstance(op, RoleOp)]
    names = names_of(found)
    marks = {"channel": "-->", "signal": "~~>"}
    return [f"{names[one.source]} {marks[one.kind]} {names[one.target]}   {one.text}" for one in arrows(kernel)]


def svg(kernel: KernelOp) -> str:
    """A column for each role, an arrow for each channel (solid) and signal (dashed)."""
    found = [op for op in kernel.body.block.ops if isinstance(op, RoleOp)]
    names, lines = names_of(found), arrows(kernel)
    across = _WIDTH / max(1, len(found))
    centres = [across * (place + 0.5) for place in range(len(found))]
    height = _TALL + 30 + _STEP * len(lines)
    shapes = [_MARKER]
    for centre, name, role in zip(centres, names, found, strict=True):
        box = f'x="{centre - _BOX / 2:.0f}" y="2" width="{_BOX}" height="{_TALL}" rx="5"'
        middle = f'x="{centre:.0f}" text-anchor="middle"'
        shapes += (
            f'<rect {box} fill="#eef3ee" stroke="#1f6f4a"/>',
            f'<text {middle} y="19">{escape(name.partition(",")[0])}</text>',
            f'<text {middle} y="34">{escape(_about(role))}</text>',
            f'<line x1="{centre:.0f}" x2="{centre:.0f}" y1="{_TALL + 2}" y2="{height}" stroke="#ddd"/>',
        )
    for place, line in enumerate(lines):
        shapes.append(_arrow(line, centres, _TALL + 34 + place * _STEP))
    return f'<svg viewBox="0 0 {_WIDTH} {height}" width="100%" role="img">{"".join(shapes)}</svg>'


def _about(role: RoleOp) -> str:
    warps = "" if role.warps is None else f", {role.warps.value.data} warp{'s' * (role.warps.value.data > 1)}"
    return f"{task_work(role)}{warps}"


_MARKER = (
    '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
)


def _arrow(line: Arrow, centres: Sequence[float], height: float) -> str:
    begin, end = centres[line.source], centres[line.target]
    dashed = ' stroke-dasharray="5 3"' if line.kind == "signal" else ""
    style = f'fill="none" stroke="#222"{dashed} marker-end="url(#end)"'
    if line.source == line.target:
        path = f"M{begin:.0f},{height - 8:.0f} h26 v14 h-22"
        return f'<path d="{path}" {style}/><text x="{begin + 32:.0f}" y="{height + 3:.0f}">{escape(line.text)}</text>'
    middle = (begin + end) / 2
    return (
        f'<path d="M{begin:.0f},{height:.0f} L{end:.0f},{height:.0f}" {style}/>'
        f'<text x="{middle:.0f}" y="{height - 5:.0f}" text-anchor="middle">{escape(line.text)}</text>'
    )
