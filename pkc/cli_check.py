"""`pkc check`: the derived protocol against the meaning of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from pkc import report
from pkc.checker import Trial, check_roles, meaning_of
from pkc.cli_settings import Number, sort_settings
from pkc.compiler import Compiled
from pkc.dialect.access import BarrierOp, RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.program import RoleOp
from pkc.dialect.roles import ChannelOp
from pkc.sim.run import resolve_dims


def execute(
    tile: Compiled,
    roles: Compiled,
    ranks: int,
    values: Mapping[str, Number],
    constants: Sequence[str],
    seeds: int,
) -> bool:
    """Simulate both levels, print what was checked and what was found; whether nothing was."""
    settings = sort_settings(tile.kernel, values, constants)
    dims = resolve_dims(tile.kernel, settings.dims, settings.scalars, ranks)
    click.echo(_summary(roles))
    trials = [Trial(1 + seed % 2, seed) for seed in range(seeds)]
    with report.progress(f"simulating {seeds} orders on {ranks} ranks"):
        meaning = meaning_of(tile, ranks=ranks, dims=dims)
        found = check_roles(roles, meaning, trials)
    report.diagnostics(found)
    if found:
        return False
    launches = len(meaning.inputs)
    click.echo(f"ok: {seeds} orders, {launches} launches each, on {ranks} ranks give the bits that the program means")
    return True


def _summary(roles: Compiled) -> str:
    ops = list(roles.kernel.walk())
    parts = ", ".join(str(op.role.data) for op in ops if isinstance(op, RoleOp)) or "none"
    channels = [op for op in ops if isinstance(op, ChannelOp)]
    stages = sum(op.shared_bytes for op in channels)
    signals = sum(isinstance(op, SignalOp | SignalAllOp | RaiseOp | BarrierOp) for op in ops)
    waits = sum(isinstance(op, WaitOp | BarrierOp) for op in ops)
    return (
        f"{roles.kernel.sym_name.data}: roles {parts}; {len(channels)} channels, {stages} bytes of shared memory;"
        f" {signals} signals, {waits} waits"
    )
