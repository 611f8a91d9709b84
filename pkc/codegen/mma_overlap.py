"""Whether the compiler has kept instructions between an MMA that is issued and the wait for it: it may move waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import arith, scf
from xdsl.ir import Operation

from pkc.dialect.machine import GetOp, InstructionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import MmaIssueOp
from pkc.dialect.types import f32
from pkc.location import span_of
from pkc.passes.machine.emit import UNROLL, constant_of
from pkc.remarks import Remark
from pkc.targets.target import MachineCode, target_of

STEP = "ptxas"
"""The step that remarks name."""

_FUSED = 4
"""Operations on elements that one instruction may stand for: a multiplication and an addition, on two elements."""


def lost_overlap(kernel: KernelOp, code: bytes, serialized: Iterable[str]) -> Iterator[Remark]:
    """A remark for each MMA of a kernel at the machine level that is to run beside other instructions and does not in
    the machine code, at its line. `serialized` is what the compiler says of MMAs that it waits for itself."""
    target = target_of(kernel)
    groups = [(op, _computed_beside(op)) for op in kernel.walk() if _name(op) == "wgmma_commit"]
    first = next((op for op, planned in groups if planned), None)
    if target.machine_code is None or first is None:
        return
    counts = beside(target.machine_code, code)
    if len(counts) == len(groups):  # else the compiler has copied loops
        for (op, planned), count in zip(groups, counts, strict=True):
            if count * _FUSED < planned:
                yield Remark(STEP, MmaIssueOp.name, _MOVED.format(count=count, planned=planned), span_of(op.location))
    for text in serialized:
        yield Remark(STEP, MmaIssueOp.name, f"MMAs may run one after the other: {text}", span_of(first.location))


_MOVED = (
    "the compiler has moved its wait: {count} instructions of the machine code stand between them, for {planned}"
    " operations on elements"
)


def beside(machine_code: MachineCode, code: bytes) -> list[int]:
    """For each group of MMAs, in the order of the code, how many instructions stand between its end and the wait after
    which it is complete, or the end of the code; MMAs and waits apart."""
    counts: list[int] = []
    flying: list[int] = []
    size = machine_code.instruction_bytes
    for at in range(0, len(code), size):
        instruction = int.from_bytes(code[at : at + size], "little")
        left = machine_code.left(instruction)
        if machine_code.ends_group(instruction):
            flying.append(len(counts))
            counts.append(0)
        elif left is not None:
            del flying[: max(0, len(flying) - left)]
        else:
            for group in flying:
                counts[group] += 1
    return counts


def _computed_beside(commit: Operation) -> int:
    """How many operations on elements stand between a wait for other MMAs and that for this group, in the same block:
    what the group is to run beside. 0 if its own wait stands elsewhere."""
    later, waited, computed = 0, False, 0
    following = commit.next_op
    while following is not None:
        name = _name(following)
        if name == "wgmma_commit":
            later += 1
        elif name.startswith("wgmma_wait_"):
            if int(name.rpartition("_")[2]) <= later:
                return computed
            waited = True
        elif waited:
            computed += _operations(following)
        following = following.next_op
    return 0


def _operations(op: Operation) -> int:
    """The operations on elements of an operation, all iterations of an unrolled loop counted."""
    inner = sum(_operations(inside) for region in op.regions for block in region.blocks for inside in block.ops)
    if isinstance(op, scf.ForOp) and UNROLL in op.attributes:
        first, last, step = map(constant_of, (op.lb, op.ub, op.step))
        assert first is not None and last is not None and step is not None
        return inner * max(0, -(-(last - first) // step))
    return inner + any(result.type == f32 for result in op.results if not isinstance(op, GetOp | arith.ConstantOp))


def _name(op: Operation) -> str:
    return op.instruction_name.data if isinstance(op, InstructionOp) else ""
