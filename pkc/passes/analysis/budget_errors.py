"""Diagnostics of what a kernel asks of its GPU: SMs, warps, registers, barriers (PK464...)."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class NobodyCommunicates(Diagnostic):
    """The schedule gives SMs to communication, and the kernel has no communicator."""

    code = "PK464"
    title = "`comm_sms={sms}` is not possible: `{kernel}` has no communicator"
    label = "its loader and storer reach other ranks themselves"
    help = "leave `comm_sms` out, or use a communicator: `overlap=inter_sm`"
    kernel: str
    sms: int


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


class TooManyWarps(Diagnostic):
    """The roles that run in one CTA need more threads than a CTA can have."""

    code = "PK466"
    title = "the roles of `{kernel}` need {threads} threads, and a CTA has {available}"
    label = "each role takes some warps of every CTA"
    help = "use fewer `consumers`, or fewer roles"
    kernel: str
    threads: int
    available: int


class NoSuchWarp(Diagnostic):
    """A role has a warp that a CTA does not have, or that another role has."""

    code = "PK476"
    title = "{role} cannot have warp {warp}: {problem}"
    label = "the warps of this role"
    help = "`first_warp` and `warps` of the roles of a group say which warps of a CTA run them, each for one role"
    role: str
    warp: int
    problem: str


class NoSmsLeft(Diagnostic):
    """More SMs communicate than the GPU can spare: a CTA that waits needs an SM on which it stays."""

    code = "PK467"
    title = "`comm_sms={sms}` leaves none of the {available} SMs for the roles that compute"
    label = "all CTAs are on the GPU at the same time, one on each SM"
    help = "give communication at most {most} SMs"
    sms: int
    available: int
    most: int


class TooManyRegisters(Diagnostic):
    """The tiles that a role computes with at the same time do not fit into the registers of its threads."""

    code = "PK468"
    title = "tiles of {registers} registers live here, {each} for each of {threads} threads, which have {available}"
    label = "as many as anywhere in the {role}"
    note = "{tiles}; {reserve} registers of a thread are needed for addresses and the like"
    help = "{hint}"
    role: str
    registers: int
    each: int
    threads: int
    available: int
    reserve: int
    tiles: str
    hint: str = "use smaller blocks"


class RegisterFile(Diagnostic):
    """The threads of a CTA have more registers than it is launched with."""

    code = "PK469"
    title = "the roles that {group} have {needed} registers, and their CTA has {available}"
    label = "warpgroups of one CTA"
    help = "`registers` of all warpgroups, times the threads of each, fit into what a CTA is launched with"
    group: str
    needed: int
    available: int


class TooManyBarriers(Diagnostic):
    """The roles of a CTA need more named barriers than there are."""

    code = "PK470"
    title = "the roles of `{kernel}` need {needed} named barriers, and a CTA has {available}"
    label = "one for the CTA, one for each role of several warps, one for each of several warpgroups of a role"
    help = "use fewer roles, or fewer `consumers`"
    kernel: str
    needed: int
    available: int


class TooWideMma(Diagnostic):
    """A CTA of so many threads is launched with too few registers per thread for one MMA."""

    code = "PK475"
    title = "an MMA of {columns} columns needs {needed} registers per thread, and each of {threads} has {available}"
    label = "`setmaxnreg` does not help: ptxas counts those that a CTA is launched with"
    help = "use narrower blocks, fewer `consumers`, or fewer roles: `separate_loader=false`"
    columns: int
    needed: int
    threads: int
    available: int
