"""From IR to machine code: passes to the machine level, CUDA C++, NVRTC."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from pkc.codegen import build_errors as errors
from pkc.codegen.artifact import Artifact
from pkc.codegen.cubin import KernelFacts, code_of, kernel_facts
from pkc.codegen.cuda import entry_name, print_kernel
from pkc.codegen.kernel_parameters import array_parameters, signal_parameters, struct_fields
from pkc.codegen.mma_overlap import lost_overlap
from pkc.codegen.nvrtc import Compiled, Finding, compile_cuda
from pkc.codegen.probes import trace_of, waits_of
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.attributes import number_on, planned
from pkc.dialect.engines import engines_text
from pkc.dialect.machine import InstructionOp, RegistersOp, RegistersType
from pkc.dialect.program import CLUSTER, COMM_SMS, QUEUE, KernelOp
from pkc.location import span_of
from pkc.passes import FEWER_REGISTERS, MACHINE_PIPELINE
from pkc.passes.machine.check_machine import CheckMachine
from pkc.passes.machine.lower_tiles import MACHINE, THREADS
from pkc.passes.machine.machine_errors import NotLowered
from pkc.passes.machine.plan_memory import SHARED_BYTES
from pkc.passes.machine.recompute_integers import RecomputeIntegers, recomputes
from pkc.passes.run import run_pipeline
from pkc.remarks import Remark
from pkc.targets.target import target_of


@dataclass(frozen=True)
class Built:
    """A kernel as machine code, with what it comes from and what the compiler remarks on it."""

    artifact: Artifact
    source: str
    compiled: Compiled
    facts: KernelFacts
    warnings: tuple[Diagnostic, ...]
    remarks: tuple[Remark, ...]
    """What the compiler undid of what passes had planned."""


def build(module: ModuleOp, *, kernel: str | None = None) -> Artifact:
    """The machine code of a kernel, the first one unless it is named, of a module at the roles or machine level,
    for its target.

    The module stays as it is. Raises `PkcError`.
    """
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    found = next(op for op in kernels if kernel in (None, op.sym_name.data))
    return build_kernel(found).artifact


def build_kernel(kernel: KernelOp) -> Built:
    """As `build`, of one kernel, with the texts in between and what the compiler found."""
    kernel, source, compiled = _compiled(machine_level(kernel))
    target = target_of(kernel)
    found = list(_lints(kernel, compiled))
    wrong = [finding for finding in found if finding.severity == "error"]
    if wrong:
        raise PkcError(*wrong)
    name = entry_name(kernel)
    fields, _ = struct_fields(kernel)
    artifact = Artifact(
        name,
        target.code,
        compiled.cubin,
        array_parameters(kernel),
        signal_parameters(kernel),
        fields,
        threads=planned(kernel, THREADS),
        shared_bytes=planned(kernel, SHARED_BYTES),
        cluster=number_on(kernel, CLUSTER) or 1,
        comm_sms=planned(kernel, COMM_SMS),
        source=hashlib.sha256(source.encode()).hexdigest(),
        trace=trace_of(kernel),
        waits=waits_of(kernel),
        queue=QUEUE in kernel.attributes,
        engines=engines_text(kernel),
    )
    serialized = dict.fromkeys(finding.text for finding in compiled.findings if finding.kind == "serialized")
    remarks = tuple(lost_overlap(kernel, code_of(compiled.cubin, name), serialized))
    return Built(artifact, source, compiled, kernel_facts(compiled.cubin)[name], tuple(found), remarks)


def _compiled(kernel: KernelOp) -> tuple[KernelOp, str, Compiled]:
    """A kernel of the machine level, its text in CUDA C++, and what this is compiled to. As long as registers spill, it
    goes through what leaves more of them, one after the other; the form that spills least is taken, if its MMAs overlap
    as before."""
    found = [_compile(kernel)]
    for step in FEWER_REGISTERS:
        if not _spilled(found[-1][2]):
            break
        if isinstance(step, RecomputeIntegers) and recomputes(kernel):  # it was foreseen
            continue
        module = ModuleOp([found[-1][0].clone()])
        run_pipeline(module, (step, CheckMachine()), verify_each=False)
        (other,) = module.ops
        assert isinstance(other, KernelOp)
        found.append(_compile(other))
    return min(found, key=lambda each: (_serialized(each[2]) > _serialized(found[0][2]), _spilled(each[2])))


def _compile(kernel: KernelOp) -> tuple[KernelOp, str, Compiled]:
    source = print_kernel(kernel)
    return kernel, source, compile_cuda(source, target_of(kernel).code, kernel.sym_name.data)


def _serialized(compiled: Compiled) -> bool:
    return any(finding.kind == "serialized" for finding in compiled.findings)


def _spilled(compiled: Compiled) -> int:
    """The bytes that a thread spills."""
    texts = (finding.text for finding in compiled.findings if finding.kind == "spills")
    return sum(int(text.split()[0]) for text in texts)


def machine_level(kernel: KernelOp) -> KernelOp:
    """The kernel itself if it is at the machine level, else a copy lowered to it."""
    if MACHINE in kernel.attributes:
        return kernel
    if not kernel.roles:
        what = "a kernel without roles"
        hint = "compile it to the roles level first"
        raise PkcError(NotLowered(span_of(kernel.location), target_of(kernel).name, what, hint))
    module = ModuleOp([kernel.clone()])
    run_pipeline(module, MACHINE_PIPELINE, verify_each=False)
    (lowered,) = module.ops
    assert isinstance(lowered, KernelOp)
    return lowered


def resources(built: Built) -> str:
    """What the kernel needs of its GPU, as a line of text."""
    artifact, facts = built.artifact, built.facts
    spilled = next((warning.found for warning in built.warnings if isinstance(warning, errors.Spills)), "no spills")
    return (
        f"{artifact.name}: {artifact.threads} threads of {facts.registers} registers at launch, {spilled},"
        f" {artifact.shared_bytes} bytes of shared memory, {facts.code} bytes of code for {artifact.target}"
    )


# What the compiler remarks on


def _lints(kernel: KernelOp, compiled: Compiled) -> Iterator[Diagnostic]:
    """The findings of the compiler as diagnostics, each at the line that it is about."""
    seen: set[Finding] = set()
    for finding in compiled.findings:
        if finding not in seen:
            seen.add(finding)
            yield _lint(kernel, finding)


def _lint(kernel: KernelOp, finding: Finding) -> Diagnostic:
    name = kernel.sym_name.data
    if finding.kind == "spills":
        return errors.Spills(span_of(_largest(kernel).location), name, finding.text)
    if finding.kind == "setmaxnreg":
        return errors.RegistersNotMoved(span_of(_first(kernel, "setmaxnreg").location), name, finding.text)
    if finding.kind == "serialized":
        return errors.MmasSerialized(span_of(_first(kernel, "wgmma_n").location), name, finding.text)
    if finding.kind == "barriers":
        return errors.AllBarriers(span_of(kernel.location), name)
    return errors.Remark(span_of(kernel.location), name, finding.text)


def _first(kernel: KernelOp, prefix: str) -> Operation:
    """The first instruction of that family; the kernel if it has none."""
    ops = (op for op in kernel.walk() if isinstance(op, InstructionOp))
    return next((op for op in ops if op.instruction_name.data.startswith(prefix)), kernel)


def _largest(kernel: KernelOp) -> Operation:
    """The operation that asks for most registers at once."""
    return max((op for op in kernel.walk() if isinstance(op, RegistersOp)), key=_count, default=kernel)


def _count(op: Operation) -> int:
    kind = op.results[0].type
    return kind.count if isinstance(kind, RegistersType) else 0
