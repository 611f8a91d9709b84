"""Findings about what a kernel asks of its GPU: SMs, warps, registers, barriers (PK464...)."""

from __future__ import annotations

from dataclasses import dataclass

from pkc.diagnostics import Diagnostic


@dataclass(frozen=True)
class NobodyCommunicates(Diagnostic):
    """The schedule gives SMs to communication, and no part of the kernel communicates by itself."""

    code = "PK464"
    title = "`comm_sms={sms}` is not possible: `{kernel}` has no part that only communicates"
    label = "its loader and storer reach other ranks themselves"
    help = "leave `comm_sms` out, or let SMs of their own communicate: `overlap=inter_sm`"
    kernel: str
    sms: int


@dataclass(frozen=True)
class RowsNotShared(Diagnostic):
    """The schedule asks for more warpgroups than the rows of an accumulator can be divided among."""

    code = "PK465"
    title = "{rows} rows of an accumulator cannot be divided among {consumers} warpgroups"
    label = "accumulated here"
    help = "a warpgroup multiplies {step} rows at a time: blocks of {needed} rows, or other `consumers`"
    rows: int
    consumers: int
    step: int
    needed: int


@dataclass(frozen=True)
class TooManyWarps(Diagnostic):
    """The parts that run in one CTA need more threads than a CTA can have."""

    code = "PK466"
    title = "the parts of `{kernel}` need {threads} threads, and a CTA has {available}"
    label = "each part is some warps of every CTA"
    help = "use fewer `consumers`, or fewer parts"
    kernel: str
    threads: int
    available: int
