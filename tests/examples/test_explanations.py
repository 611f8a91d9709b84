"""What `--explain` says of every example happens, and what it says was not optimised is written down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from pkc.codegen.build import machine_level
from pkc.diagnostics import PkcError
from pkc.dialect.access import AtomicAddOp, LoadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.by_table import GatherOp, ScatterAddOp
from pkc.dialect.coordinates import InterleaveOp, RotateOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import WaitOp
from pkc.dialect.machine import GetOp, InstructionOp, TensorMapOp
from pkc.dialect.program import COMM_SMS, FIRST_WARP, GROUP, LONGEST_FIRST, REGISTERS, KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import MmaIssueOp, MmaOp, MmaWaitOp, in_flight
from pkc.dialect.transfers import pieces
from pkc.driver.compiler import EXPLAINED, Why, load
from pkc.location import describe, span_of
from pkc.passes import ROLES_PIPELINE
from pkc.passes.machine.lower_tiles import THREADS
from pkc.passes.roles.budgets import bytes_of, channel_group, read_behind
from pkc.passes.roles.order_arrivals import OWN_FIRST
from pkc.passes.roles.order_tasks import OrderExplanation
from pkc.passes.roles.pipeline_mma import PipelinePlan
from pkc.passes.roles.plan_fetch import FetchPlan
from pkc.passes.roles.plan_mma import MmaPlan
from pkc.passes.roles.plan_overlap import Explanation
from pkc.passes.roles.plan_queue import QueueExplanation
from pkc.passes.roles.plan_stages import StagePlan
from pkc.passes.roles.plan_transfers import TransferPlan
from pkc.passes.roles.plan_warps import WarpPlan
from pkc.passes.run import run_pipeline
from pkc.remarks import Remark, collecting
from pkc.targets.target import target_of
from tests.examples.fetched import counters_of, extents_of, is_fetched
from tests.examples.test_examples import CASES, EXAMPLES
from tests.sweeps import sweep

GOLDEN = Path(__file__).parent / "remarks"
NAMES = sorted({name.partition(" ")[0] for name in CASES})
SCHEDULES = (
    "",
    *(f"overlap={overlap}" for overlap in ("none", "intra_sm", "inter_sm", "copy_engine")),
    "overlap=inter_sm,comm_sms=8",
    "transfer=push",
    "straddle=true",
)


@dataclass
class Explained:
    """An example under one schedule: what was said of it, and what became of it."""

    roles: KernelOp
    machine: KernelOp | None
    claims: list[Why]
    remarks: list[Remark]


@cache
def explained(name: str, schedule: str) -> Explained | None:
    """Nothing if the schedule is refused. All but the machine level is there for what has no lowering."""
    claims: list[Why] = []

    def watch(step: ModulePass, module: ModuleOp) -> None:
        explain = EXPLAINED.get(type(step))
        claims.extend(explain(module) if explain is not None else ())

    with collecting() as remarks:
        try:
            options = dict(setting.split("=") for setting in schedule.split(",") if setting)
            compiled = load(EXAMPLES / f"{name}.pk", schedule=options)
            run_pipeline(compiled.module, ROLES_PIPELINE, verify=False, after=watch)
        except PkcError:
            return None
        try:
            machine = machine_level(compiled.kernel)
        except PkcError:
            machine = None
    return Explained(compiled.kernel, machine, claims, [*compiled.remarks, *remarks])


OFTEN = {"gemm", "gemm_rs", "ag_gemm", "attention", "ring_attention", "moe_combine", "swiglu"}


@pytest.mark.parametrize("name", sweep(NAMES, lambda name: name in OFTEN))
def test_what_is_explained_happens(name: str, golden: Callable[[Path, str], None]) -> None:
    """And what was not optimised is in the example's file: an optimisation that no longer applies is a line more."""
    wrong: list[str] = []
    texts: dict[str, list[str]] = {}
    default = explained(name, "")
    assert default is not None and default.claims
    between_ranks = any(isinstance(claim, Explanation) for claim in default.claims)
    for schedule in SCHEDULES if between_ranks else ("", "overlap=inter_sm"):
        found = explained(name, schedule) if schedule else default
        if found is None:
            continue
        wrong += [f"{schedule}: {claim}" for claim in found.claims if not _holds(claim, found)]
        lines = "\n".join(str(remark) for remark in sorted(found.remarks, key=lambda remark: remark.span.start))
        texts.setdefault(lines.replace(f"{EXAMPLES}/", ""), []).append(schedule or "default")
    assert not wrong
    golden(GOLDEN / f"{name}.txt", "\n".join(f"[{'; '.join(of)}]\n{text}\n" for text, of in texts.items()))


OTHERS = (
    "deterministic=False",
    "order=natural",
    "order=ring",
    "order=local_last",
    "split_K=2,tile_M=64,tile_N=64",
    "separate_loader=true,tile_N=128",
    "stages=1",
)


@pytest.mark.parametrize("schedule", OTHERS)
@pytest.mark.parametrize("name", ["ag_gemm", "gemm_ar"])
def test_it_happens_under_other_schedules(name: str, schedule: str) -> None:
    found = explained(name, schedule)
    assert found is not None
    assert [str(claim) for claim in found.claims if not _holds(claim, found)] == []


def test_a_claim_that_does_not_hold_is_found() -> None:
    """Each kind of claim, with one word changed."""
    kinds: set[type[Why]] = set()
    for name, schedule in (
        ("gemm_rs", ""),
        *(("ag_gemm", schedule) for schedule in SCHEDULES),
        ("ring_attention", ""),
        ("attention", ""),
        ("attention_delta", ""),
    ):
        found = explained(name, schedule)
        assert found is not None
        kinds |= {type(claim) for claim in found.claims}
        for claim in found.claims:
            for changed in _changed(claim):
                assert not _holds(changed, found), f"{schedule}: {changed}"
    assert kinds == set(get_args(Why))


def _changed(claim: Why) -> Iterator[Why]:
    match claim:
        case Explanation():
            yield from (replace(claim, overlap=other) for other in ("copy_engine", "none") if other != claim.overlap)
        case FetchPlan():
            engines = claim.by == "copy engines"
            yield replace(claim, arrays=claim.arrays[::-1] if len(claim.arrays) > 1 else ("B",))
            yield replace(claim, by="4 CTAs" if engines else "copy engines", pushed=False, loops=None)
            yield replace(claim, local=not claim.local)
            yield replace(claim, visited=not claim.visited)
            yield replace(claim, group=claim.group + 1)
            yield replace(claim, group=0, again=claim.again + 1)
            if not engines:
                yield replace(claim, by="4 CTAs")
                yield replace(claim, by="one CTA")
                yield replace(claim, pushed=not claim.pushed, loops=None)
            if claim.loops is not None:
                yield replace(claim, loops=claim.loops + 1)
        case OrderExplanation():
            orders = ({"local_first", "ring"}, {"natural"}, {"local_last"})
            yield from (replace(claim, order=min(others)) for others in orders if claim.order not in others)
        case WarpPlan():
            yield replace(claim, warps=claim.warps + 1)
            yield replace(claim, registers=claim.registers + 8)
            if claim.half:
                yield replace(claim, half=claim.half.replace("stores" if "stores" in claim.half else "loads", "has"))
                yield replace(claim, half=f"{claim.half} and `C`")
        case QueueExplanation():
            yield replace(claim, places=claim.places + 1)
        case StagePlan():
            yield replace(claim, stages=claim.stages + 1)
        case TransferPlan():
            yield replace(claim, by="tma" if claim.by == "register" else "register")
        case PipelinePlan():
            yield replace(claim, early=claim.late, late=claim.early)
            yield replace(claim, late=claim.early)
            yield replace(claim, place=claim.place + "0")
        case MmaPlan():
            yield replace(claim, left=claim.left + 1)


def _holds(claim: Why, found: Explained) -> bool:
    match claim:
        case Explanation():
            fetched = [other for other in found.claims if isinstance(other, FetchPlan) and claim.array in other.arrays]
            return _overlaps(claim, found.roles, fetched)
        case FetchPlan():
            return is_fetched(claim, found.roles)
        case OrderExplanation():
            return _is_ordered(claim, found.roles)
        case WarpPlan():
            return _runs(claim, found.roles, found.machine)
        case QueueExplanation():
            return _takes_tasks(claim, found.machine)
        case StagePlan():
            return _has_stages(claim, found.roles, found.machine)
        case TransferPlan():
            return _moves(claim, found.roles, found.machine)
        case PipelinePlan():
            return _is_pipelined(claim, found.roles, found.machine)
        case MmaPlan():
            return _is_in_flight(claim, found.roles, found.machine)


def _ops_at(claim: Explanation, role: RoleOp) -> list[Operation]:
    return [op for op in role.walk() if describe(op.location) == claim.place]


def _overlaps(claim: Explanation, kernel: KernelOp, fetched: Sequence[FetchPlan]) -> bool:
    """Who moves the tiles of an access, by what the parts of the kernel do at its line."""
    roles: dict[Role, list[Operation]] = {role: [] for role in Role}
    for role in kernel.body.block.ops:
        if isinstance(role, RoleOp):
            roles[role.role.data] += _ops_at(claim, role)

    def of(ops: Sequence[Operation], *kinds: type[Operation]) -> list[Operation]:
        return [op for op in ops if isinstance(op, kinds) and kernel.argument_name(_array(op, claim)) == claim.array]

    def is_whole(ops: Sequence[Operation]) -> bool:
        """Whether all is awaited at once."""
        return all(not extents_of(op.signal.type) for op in ops if isinstance(op, WaitOp))

    communicators, engines = roles[Role.Communicator], roles[Role.CopyEngine]
    others = [*roles[Role.Loader], *roles[Role.Consumer], *roles[Role.Storer]]
    match claim.access, claim.overlap:
        case (("read" | "gather"), "intra_sm"):
            return bool(of(others, LoadOp, GatherOp)) and not of(communicators, LoadOp, GatherOp)
        case (("read" | "gather"), "inter_sm" | "none"):
            moved = of(communicators, LoadOp, GatherOp) and not of(others, LoadOp, GatherOp)
            whole = [not extents_of(counters_of(plan, kernel)) for plan in fetched]
            return bool(moved) and whole == [claim.overlap == "none"] * len(whole) != []
        case (("read" | "gather"), "copy_engine"):
            return bool(of(engines, CopyOp)) and not of(others, LoadOp, GatherOp)
        case "write", "intra_sm":
            return bool(of(others, StoreOp)) and not engines
        case "write", "copy_engine":
            return bool(of(engines, CopyOp)) and not of(others, StoreOp)
        case "scattered sum", "intra_sm":
            return bool(of(others, ScatterAddOp))
        case "sum", "intra_sm" if "added where the array lives" in claim.why:
            return bool(of(others, AtomicAddOp))
        case "sum", overlap:
            sent = engines if overlap == "copy_engine" else [op for op in others if isinstance(op, StoreOp)]
            added = bool(of(communicators, StoreOp)) or overlap == "copy_engine"
            whole = is_whole(communicators) == (overlap == "none")
            return bool(sent) and added and bool(engines) == (overlap == "copy_engine") and whole
    return False


def _array(op: Operation, claim: Explanation) -> BlockArgument:
    """The array that an access is to, or that a copy engine reads or writes."""
    array = op.array if not isinstance(op, CopyOp) else op.source if claim.access in ("read", "gather") else op.target
    assert isinstance(array, BlockArgument)
    return array


def _is_ordered(claim: OrderExplanation, kernel: KernelOp) -> bool:
    if claim.order == OWN_FIRST:
        return any(isinstance(op, WaitOp) and op.rows is not None for op in kernel.walk())
    if claim.order == LONGEST_FIRST:
        return any(LONGEST_FIRST in op.attributes for op in kernel.walk())
    rotated = any(isinstance(op, RotateOp) for op in kernel.walk())
    interleaved = any(isinstance(op, InterleaveOp) for op in kernel.walk())
    return (rotated, interleaved) == (claim.order in ("local_first", "ring"), claim.order == "local_last")


def _takes_tasks(claim: QueueExplanation, machine: KernelOp | None) -> bool:
    """One thread takes numbers, and all numbers that were passed on are counted modulo so many places."""
    assert machine is not None
    taken = [op for op in machine.walk() if _is_instruction(op, "take_number")]
    rests = {constant_of(op.rhs) for op in machine.walk() if isinstance(op, arith.AndIOp) and _counts_numbers(op.lhs)}
    return len(taken) == 1 and rests == {claim.places - 1}


def _is_instruction(op: Operation, name: str) -> bool:
    return isinstance(op, InstructionOp) and op.instruction_name.data == name


def _counts_numbers(value: SSAValue) -> bool:
    """Whether a value is read from a register that counts numbers which were passed on, as its name says."""
    owner = value.owner
    return isinstance(owner, GetOp) and re.fullmatch(r"passed(_\d+)?", owner.registers.name_hint or "") is not None


def _runs(claim: WarpPlan, kernel: KernelOp, machine: KernelOp | None) -> bool:
    role = claim.role
    assert role.parent_op() is kernel and role.warps is not None
    planned = (role.attributes[GROUP].data, role.warps.value.data, role.attributes[REGISTERS].value.data)
    if planned != (claim.group, claim.warps, claim.registers) or (claim.half and claim.half != _moved(kernel, role)):
        return False
    if "SMs of its own" in claim.why and not claim.why.startswith("no SMs"):
        return claim.why == f"{kernel.attributes[COMM_SMS].value.data} SMs of its own"
    if machine is None:
        return True
    first = role.attributes[FIRST_WARP]
    branches = [op for op in machine.walk() if op.attributes.get(FIRST_WARP) == first]
    threads = machine.attributes[THREADS].value.data
    changes = {op.instruction_name.data for op in _instructions(machine) if "setmaxnreg" in op.instruction_name.data}
    wanted = {f"setmaxnreg_{way}_{claim.registers}" for way in ("inc", "dec")}
    same = threads <= 128 or target_of(kernel).launched_registers(threads) // threads == claim.registers
    return bool(branches) and (same or bool(changes & wanted))


def _moved(kernel: KernelOp, role: RoleOp) -> str:
    """What a role loads, if it stores nothing, or the other way round."""
    loaded, stored = (
        dict.fromkeys(f"`{kernel.argument_name(op.array)}`" for op in role.walk() if isinstance(op, kind))
        for kind in (LoadOp, StoreOp)
    )
    return "" if loaded and stored else " ".join(("loads" if loaded else "stores", " and ".join(loaded or stored)))


def _has_stages(claim: StagePlan, kernel: KernelOp, machine: KernelOp | None) -> bool:
    channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
    if claim.channel not in channels or claim.channel.depth != claim.stages:
        return False
    if "room" in claim.why:
        beside = [op for op in channels if channel_group(op) == channel_group(claim.channel)]
        more = bytes_of({op: op.depth + (op is claim.channel) for op in beside})
        if more + read_behind(kernel) <= target_of(kernel).stage_memory:
            return False
    made = [op for op in _instructions(machine) if op.instruction_name.data == "mbarrier_init"]
    return machine is None or len(made) == 2 * sum(op.depth for op in channels)


def _moves(claim: TransferPlan, kernel: KernelOp, machine: KernelOp | None) -> bool:
    kind = LoadOp if claim.access == "load" else StoreOp
    accesses = [op for op in kernel.walk() if isinstance(op, kind) and describe(op.location) == claim.place]
    accesses = [op for op in accesses if kernel.argument_name(op.array) == claim.array]
    if not accesses:
        return False
    at_once = [op for op in accesses if f"{pieces(op)} rows at a time" in claim.why]
    if bool(at_once) != ("rows at a time" in claim.why):
        return False
    if machine is None:
        return True
    name = f"tma_{claim.access}"
    copies = [op for op in _instructions(machine) if op.instruction_name.data.startswith(name)]
    copies = [op for op in copies if describe(op.location) == claim.place]
    arrays = {machine.argument_name(array) for op in copies for value in op.operands for array in _mapped(value)}
    return (claim.array in arrays) == (claim.by == "tma")


def _mapped(value: SSAValue) -> Iterator[BlockArgument]:
    """The arrays of the tensor maps that a value may be."""
    made = value.owner
    if isinstance(made, TensorMapOp):
        assert isinstance(made.array, BlockArgument)
        yield made.array
    elif isinstance(made, Operation) and made.name == "arith.select":
        for operand in made.operands[1:]:
            yield from _mapped(operand)


def _is_pipelined(claim: PipelinePlan, kernel: KernelOp, machine: KernelOp | None) -> bool:
    """Whether a loop issues the MMAs of early lines, then those of late ones, and awaits the early ones first."""
    loops = [op for op in kernel.walk() if isinstance(op, scf.ForOp) and describe(op.location) == claim.place]

    def lines(loop: scf.ForOp, kind: type[Operation]) -> tuple[int, ...]:
        return tuple(span_of(op.location).line for op in loop.body.ops if isinstance(op, kind))

    both = (*claim.early, *claim.late)
    if not any(lines(loop, MmaIssueOp) == lines(loop, MmaWaitOp) == both for loop in loops):
        return False
    name = f"wgmma_wait_{len(claim.late)}"
    waits = [op for op in _instructions(machine) if op.instruction_name.data == name]
    return machine is None or any(span_of(op.location).line == claim.early[-1] for op in waits)


def _is_in_flight(claim: MmaPlan, kernel: KernelOp, machine: KernelOp | None) -> bool:
    issued = [op for op in kernel.walk() if isinstance(op, MmaOp) and describe(op.location) == claim.place]
    if claim.left not in map(in_flight, issued):
        return False
    waits = {op.instruction_name.data for op in _instructions(machine) if describe(op.location) == claim.place}
    return machine is None or f"wgmma_wait_{claim.left}" in waits


def _instructions(machine: KernelOp | None) -> list[InstructionOp]:
    return [op for op in machine.walk() if isinstance(op, InstructionOp)] if machine is not None else []
