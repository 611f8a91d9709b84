"""The integers of a kernel as a Python function: control flow and integer arithmetic.

    def run(frame):
        for v1, v2 in g0((v0, g1), None):
            v3 = v1 + v2
            v4 = g2(v3, frame.rank)
            g3(frame, (v3,), v4)

What an operation on integers and blocks computes is in `pkc.dialect` (`scalars`, `positions`). The simulator, the
static layer, the cost model and the host of copy engines derive from `Evaluator`, and define what tasks and all other
operations do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from types import CodeType
from typing import Any, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.positions import EPOCH, RANK, Machine, depends_on, itself, position_function
from pkc.dialect.program import WIDE, TasksOp
from pkc.dialect.scalars import scalar
from pkc.dialect.task_order import in_order, in_order_from

Argument: TypeAlias = "SSAValue | Sequence[SSAValue] | None"

_SPELLED: dict[Any, str] = {
    operator.add: "{} + {}",
    operator.sub: "{} - {}",
    operator.mul: "{} * {}",
    operator.eq: "{} == {}",
    operator.ne: "{} != {}",
    operator.lt: "{} < {}",
    operator.le: "{} <= {}",
    operator.gt: "{} > {}",
    operator.ge: "{} >= {}",
}
"""Functions that Python has an operator for, which is faster than a call."""


class Call:
    """What an operation becomes: a call of a function with some of its operands; a sequence of them becomes a tuple."""

    def __init__(self, function: Callable[..., Any], *arguments: Argument) -> None:
        self.function, self.arguments = function, arguments


class Evaluator:
    """Writes a Python function, operation by operation. Each value is a variable, named in order of its first use."""

    context = {RANK: "rank", EPOCH: "epoch"}
    """Expressions for what some operations depend on besides their operands."""
    fixed: Mapping[str, int] = {}
    """What of it is known before the run."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._lines: list[str] = []
        self._depth = 0
        self._known: dict[SSAValue, Any] = {}
        self._names: dict[SSAValue, str] = {}
        self._globals: dict[str, Any] = {}

    # Overridden by derived classes

    def leaf(self, op: Operation) -> bool:
        """Write what an operation does; False leaves it to the evaluator."""
        raise NotImplementedError

    def tasks(self, op: TasksOp) -> None:
        """Write the distribution of tasks, with the body of each."""
        raise NotImplementedError

    def unknown(self, op: Operation) -> None:
        """Called for an operation that neither the evaluator nor `leaf` handles."""
        raise AssertionError(f"{op.name} is no operation on integers")

    def needs(self, value: SSAValue) -> bool:
        """Whether a value is to be computed at all."""
        return True

    def enters(self, op: scf.ForOp | scf.IfOp) -> bool:
        """Whether a loop or a branch has anything to evaluate."""
        return True

    def begins(self, op: scf.ForOp) -> None:
        """Write what happens before the first iteration of a loop."""

    # Text

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def inside(self, head: str) -> Generator[None]:
        """Write the following lines inside of a statement."""
        self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def constant(self, value: Any) -> str:
        """The name of any Python object. The text does not depend on the object, so it is compiled once."""
        name = f"g{len(self._globals)}"
        self._globals[name] = value
        return name

    def name(self, value: SSAValue) -> str:
        if value not in self._names:
            known = value in self._known
            self._names[value] = self.constant(self._known[value]) if known else f"v{len(self._names)}"
        return self._names[value]

    def names(self, values: Iterable[SSAValue]) -> str:
        """Values as a tuple."""
        return f"({''.join(f'{self.name(value)}, ' for value in values)})"

    def bind(self, value: SSAValue, known: Any) -> None:
        """Set a value that is known before the run."""
        self._known[value] = known

    def known(self, value: SSAValue) -> Any:
        """The value, if it is known before the run; else None."""
        return self._known.get(value)

    def assign(self, results: Sequence[SSAValue], text: str) -> None:
        """Assign an expression to the results of an operation: a tuple, unless there is one result."""
        target = self.name(results[0]) if len(results) == 1 else self.names(results)
        self.line(f"{target} = {text}" if results else text)

    def call(self, call: Call, *context: str) -> str:
        """A call, with arguments before its operands."""
        return f"{self.constant(call.function)}({', '.join((*context, *map(self._argument, call.arguments)))})"

    def _argument(self, argument: Argument) -> str:
        if argument is None:
            return "None"
        return self.name(argument) if isinstance(argument, SSAValue) else self.names(argument)

    def compiled(self) -> Callable[..., Any]:
        """The function `run` that has been written."""
        exec(_code("\n".join(self._lines)), self._globals)
        return self._globals["run"]

    # Operations

    def block(self, block: Block) -> None:
        self.operations(block.ops)

    def operations(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        if type(op) is TasksOp:
            self.tasks(op)
        elif type(op) is scf.ForOp:
            self.loop(op)
        elif type(op) is scf.IfOp:
            self.branch(op)
        elif not self.leaf(op) and any(map(self.needs, op.results)):
            self._integer(op)

    def _integer(self, op: Operation) -> None:
        function = position_function(op, self.machine) or scalar(op)
        if function is None:
            self.unknown(op)
            return
        (result,), values, on = op.results, op.operands, depends_on(op)
        if (on is None or on in self.fixed) and all(value in self._known for value in values):
            first = [] if on is None else [self.fixed[on]]
            with suppress(PkcError):  # the error is left for the run that reaches the operation
                self._known[result] = function(*first, *[self._known[value] for value in values])
                return
        operands = [*([self.context[on]] if on else []), *map(self.name, values)]
        if function is itself:
            self._names[result] = operands[0]
        elif function in _SPELLED:
            self.line(f"{self.name(result)} = {_SPELLED[function].format(*operands)}")
        else:
            self.line(f"{self.name(result)} = {self.constant(function)}({', '.join(operands)})")

    @contextmanager
    def each_task(self, op: TasksOp, share: tuple[str, str] | None = None) -> Generator[None]:
        """Write the body of a loop through tasks, in the order of their numbers: all, or with `share` (first, step)."""
        order = self.constant(partial(in_order_from, turns=op.back_and_forth) if share else in_order)
        indices = "".join(f"{self.name(index)}, " for index in op.body.block.args)
        rows = f"{self.constant(op.band)}({self.name(op.counts[-1])})" if WIDE in op.attributes else f"{op.raster}"
        with self.inside(f"for {indices}in {order}({', '.join((*(share or ()), self.names(op.counts)))}, {rows}):"):
            yield

    def loop(self, op: scf.ForOp) -> None:
        if not self.enters(op):
            return
        variable, *carried = op.body.block.args
        ends = _yielded(op.body.block)
        kept = [i for i, value in enumerate(carried) if self.needs(value) or self.needs(op.results[i])]
        self.begins(op)
        for i in kept:
            self.line(f"{self.name(carried[i])} = {self.name(op.iter_args[i])}")
        with self.inside(f"for {self.name(variable)} in range{self.names((op.lb, op.ub, op.step))}:"):
            self.block(op.body.block)
            if kept:
                self.line(f"{self.names(carried[i] for i in kept)} = {self.names(ends[i] for i in kept)}")
        for i in kept:
            self._names[op.results[i]] = self.name(carried[i])

    def branch(self, op: scf.IfOp) -> None:
        if not self.enters(op):
            return
        for head, region in ((f"if {self.name(op.cond)}:", op.true_region), ("else:", op.false_region)):
            with self.inside(head):
                if not region.blocks:
                    continue
                self.block(region.block)
                for result, end in zip(op.results, _yielded(region.block), strict=True):
                    if self.needs(result):
                        self.line(f"{self.name(result)} = {self.name(end)}")


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.operands if isinstance(last, scf.YieldOp) else ()


@lru_cache(maxsize=256)
def _code(text: str) -> CodeType:
    return compile(text, f"{__file__}: kernel", "exec")  # so that tracebacks take it for a file of pkc's
