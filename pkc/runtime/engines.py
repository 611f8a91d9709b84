"""What copy engines do in a launch: the integers of their roles, evaluated for given dimensions and a rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect import copies, counters, program
from pkc.dialect.engines import engines, is_engine, parse_engines
from pkc.dialect.positions import Sizes
from pkc.runtime.steps import Box, Copy, Index, Raise, Reset, Section, Strand, Wait
from pkc.semantics.evaluate import Call, Evaluator


class Engines:
    """The copy engine roles of a kernel, as `Artifact.engines` has them."""

    def __init__(self, text: str) -> None:
        self._kernel = parse_engines(text)
        self.count = len(engines(self._kernel))
        """How many roles there are."""

    def sections(self, rank: int, dims: Mapping[str, int], scalars: Mapping[str, int | float]) -> list[list[Section]]:
        """The sections of each role, in order. `dims` has `ranks` too."""
        return [_Unroller(self._kernel, dims, scalars).sections(role, rank) for role in engines(self._kernel)]


class _Unroller(Evaluator):
    """Writes a function that appends the steps of a role to sections, the last of which has a single strand."""

    def __init__(self, kernel: program.KernelOp, dims: Mapping[str, int], scalars: Mapping[str, int | float]) -> None:
        super().__init__(Sizes(dims))
        self._kernel = kernel
        self._in_tasks = False
        for name, value in scalars.items():
            self.bind(kernel.arguments[name], value)

    def sections(self, role: program.RoleOp, rank: int) -> list[Section]:
        with self.inside("def run(rank, sections):"):
            self.line("steps = sections[-1][0]")
            self.operations(op for op in self._kernel.body.block.ops if not is_engine(op))
            self.block(role.body.block)
        found: list[Section] = [[[]]]
        self.compiled()(rank, found)
        return [section for section in found if section != [[]]]

    def leaf(self, op: Operation) -> bool:
        match op:
            case copies.CopyOp():
                source, target = self._box(op.source, op.source_box), self._box(op.target, op.target_box)

                def copy(there: Sequence[Index], here: Sequence[Index]) -> Copy:
                    return Copy(source(there), target(here))

                step = Call(copy, op.source_indices, op.target_indices)
            case counters.WaitOp():
                step = Call(partial(Wait, self._array(op.signal)), op.indices, op.count)
            case counters.RaiseOp():
                step = Call(partial(Raise, self._array(op.signal)), op.indices, op.rank, op.value)
            case counters.ResetOp():
                step = Call(partial(Reset, self._array(op.signal)))
            case _:
                return False
        self.line(f"steps.append({self.call(step)})")
        return True

    def tasks(self, op: program.TasksOp) -> None:
        """A strand for each task; nested tasks follow each other in the strand of the outer one."""
        if self._in_tasks:
            with self.each_task(op):
                self.block(op.body.block)
            return
        self._in_tasks = True
        self.line("strands = []")
        with self.each_task(op):
            self.line("steps = []")
            self.line("strands.append(steps)")
            self.block(op.body.block)
        self.line(f"steps = {self.constant(_with_tasks)}(sections, strands)")
        self._in_tasks = False

    def _array(self, argument: SSAValue) -> str:
        assert isinstance(argument, BlockArgument)
        return self._kernel.argument_name(argument)

    def _box(self, array: SSAValue, indices: Mapping[int, SSAValue]) -> Callable[[Sequence[Index]], Box]:
        name, along = self._array(array), tuple(indices)
        return lambda found: Box(name, dict(zip(along, found, strict=True)))


def _with_tasks(sections: list[Section], strands: Section) -> Strand:
    """Add the strands of tasks, or, if at most one does anything, its steps. Returns the strand to go on with."""
    if sum(map(bool, strands)) > 1:
        sections += [strands, [[]]]
    else:
        sections[-1][0].extend(chain(*strands))
    return sections[-1][0]
