"""The printer of CUDA C++: one statement for each operation. It decides nothing.

The text includes no header. Each instruction that the kernel uses is a small function above it; integer expressions
that are used once are written where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FileLineColLoc, FloatAttr, IntegerAttr, i1, i64
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.codegen.artifact import Alarm, Base, Epochs, Field, HeapStride, Scalar, TensorMaps
from pkc.codegen.kernel_parameters import struct_fields
from pkc.codegen.names import DECLARED, Names
from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.engines import is_engine
from pkc.dialect.machine import (
    KINDS,
    AddressOp,
    CommentOp,
    GetOp,
    InstructionOp,
    LaunchValueOp,
    MapType,
    RegistersOp,
    RegistersType,
    SetOp,
    SubviewOp,
    TensorMapOp,
    c_type,
)
from pkc.dialect.program import KernelOp
from pkc.passes.machine.emit import UNROLL
from pkc.passes.machine.lower_tiles import THREADS
from pkc.targets.instruction import Instruction
from pkc.targets.target import target_of

_INFIX: dict[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.DivSIOp: "/",
    arith.RemSIOp: "%",
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.XOrIOp: "^",
    arith.ShLIOp: "<<",
    arith.ShRUIOp: ">>",
    arith.ShRSIOp: ">>",
    arith.AddfOp: "+",
    arith.SubfOp: "-",
    arith.MulfOp: "*",
}
_LEAST_INT = -(2**31)
_CALL: dict[type[Operation], str] = {arith.MinSIOp: "min", arith.MaxSIOp: "max"}
_COMPARE = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_COMPARE_F = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}


def entry_name(kernel: KernelOp) -> str:
    """The name of the kernel's function: that of the kernel, unless C++, CUDA or an instruction has it."""
    used = (op.instruction_name.data for op in kernel.walk() if isinstance(op, InstructionOp))
    return Names((*DECLARED, *used)).new(kernel.sym_name.data)


def print_kernel(kernel: KernelOp) -> str:
    """The CUDA C++ of a kernel at the machine level."""
    return _Printer(kernel).text()


class _Printer:
    def __init__(self, kernel: KernelOp) -> None:
        self._kernel = kernel
        self._fields, self._found = struct_fields(kernel)
        self._lines: list[str] = []
        self._depth = 1
        self._names: dict[SSAValue, str] = {}
        self._locals = Names()
        self._inline: dict[SSAValue, str] = {}
        self._line: tuple[str, int] | None = None

    def text(self) -> str:
        kernel, target = self._kernel, target_of(self._kernel)
        used = {op.instruction_name.data: None for op in kernel.walk() if isinstance(op, InstructionOp)}
        table = [known for name in used if (known := target.instruction(name)) is not None]
        entry = entry_name(kernel)
        self._locals = Names((*used, entry))
        threads = kernel.attributes[THREADS]
        assert isinstance(threads, IntegerAttr)
        self._block(kernel.body.block)
        head = [
            f"// {kernel.sym_name.data}",
            "struct alignas(128) TensorMap { char bytes[128]; };",
            "struct alignas(128) Args {",
            *(f"    {_member(field)};" for field in self._fields),
            "};",
            "",
            *(line for known in table for line in _function(known)),
            "",
            f'extern "C" __global__ void __launch_bounds__({threads.value.data}, 1)',
            f"{entry}(const __grid_constant__ Args args) {{",
        ]
        return "\n".join([*head, *self._lines, "}", ""])

    # Statements

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._statement(op)

    def _emit(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def _statement(self, op: Operation) -> None:
        if isinstance(op, scf.YieldOp | scf.ConditionOp) or is_engine(op):
            return
        if isinstance(op, CommentOp):
            self._emit(f"// {op.text.data}")
            return
        expression = self._expression(op)
        if expression is not None:
            self._define(op, expression)
            return
        self._mark(op)
        if isinstance(op, scf.ForOp):
            self._for(op)
        elif isinstance(op, scf.WhileOp):
            self._while(op)
        elif isinstance(op, scf.IfOp):
            self._if(op)
        elif isinstance(op, RegistersOp):
            kind = op.result.type
            assert isinstance(kind, RegistersType)
            self._emit(f"{c_type(kind.element_type)} {self._name(op.result)}[{kind.count}];")
        elif isinstance(op, SubviewOp):
            self._subview(op)
        elif isinstance(op, GetOp):
            register = f"{self._use(op.registers)}[{self._use(op.index)}]"
            self._emit(f"const {c_type(op.result.type)} {self._name(op.result)} = {register};")
        elif isinstance(op, SetOp):
            self._emit(f"{self._use(op.registers)}[{self._use(op.index)}] = {self._use(op.value)};")
        elif isinstance(op, InstructionOp):
            call = f"{op.instruction_name.data}({', '.join(map(self._use, op.arguments))})"
            if op.results:
                self._emit(f"const {c_type(op.results[0].type)} {self._name(op.results[0])} = {call};")
            else:
                self._emit(f"{call};")
        else:
            raise NotImplementedError(op.name)

    def _mark(self, op: Operation) -> None:
        """The line of the source that the next statement comes from."""
        location = op.location
        if not isinstance(location, FileLineColLoc):
            return
        here = (location.filename.data, location.line.data)
        if here != self._line:
            self._line = here
            # Quotes would end the name: PTX has no way to write them.
            file = here[0].replace("\\", "/").replace('"', "'")
            self._lines.append(f'#line {here[1]} "{file}"')

    def _for(self, op: scf.ForOp) -> None:
        variable, first, last, step = self._name(op.body.block.args[0]), *map(self._use, (op.lb, op.ub, op.step))
        self._emit("#pragma unroll" if UNROLL in op.attributes else "#pragma unroll 1")
        advance = f"++{variable}" if step == "1" else f"{variable} += {step}"
        self._nested(f"for (int {variable} = {first}; {variable} < {last}; {advance})", op.body.block)

    def _while(self, op: scf.WhileOp) -> None:
        self._emit("#pragma unroll 1")
        self._emit("while (true) {")
        self._depth += 1
        self._block(op.before_region.block)
        condition = op.before_region.block.last_op
        assert isinstance(condition, scf.ConditionOp)
        self._emit(f"if (!({_bare(self._use(condition.condition))})) break;")
        for value, inside in zip(condition.args, op.after_region.block.args, strict=True):
            self._names[inside] = self._use(value)
        self._block(op.after_region.block)
        self._depth -= 1
        self._emit("}")

    def _if(self, op: scf.IfOp) -> None:
        self._nested(f"if ({_bare(self._use(op.cond))})", op.true_region.block)

    def _nested(self, head: str, block: Block) -> None:
        self._emit(f"{head} {{")
        self._depth += 1
        self._block(block)
        self._depth -= 1
        self._emit("}")

    def _subview(self, op: SubviewOp) -> None:
        kind, whole = op.result.type, op.registers.type
        assert isinstance(kind, RegistersType)
        assert isinstance(whole, RegistersType)
        if kind.count == whole.count:
            self._names[op.result] = self._use(op.registers)
            return
        element = c_type(kind.element_type)
        start = f"{self._use(op.registers)}[{op.start.value.data}]"
        name = self._name(op.result)
        self._emit(f"{element} (&{name})[{kind.count}] = *reinterpret_cast<{element} (*)[{kind.count}]>(&{start});")

    # Values

    def _define(self, op: Operation, expression: str) -> None:
        result = op.results[0]
        uses = list(result.uses)
        if not uses:
            return
        leaf = isinstance(op, arith.ConstantOp | DimOp | RankOp | AddressOp | LaunchValueOp)
        if leaf or isinstance(result.type, MapType):
            self._inline[result] = expression
            return
        user = uses[0].operation
        bound = isinstance(user, scf.ForOp)
        if len(uses) == 1 and user.parent is op.parent and not bound and len(expression) < 100:
            self._inline[result] = expression
            return
        self._mark(op)
        self._emit(f"const {c_type(result.type)} {self._name(result)} = {_bare(expression)};")

    def _use(self, value: SSAValue) -> str:
        if value in self._inline:
            return self._inline[value]
        if isinstance(value, BlockArgument) and isinstance(value.owner.parent_op(), KernelOp):
            return f"args.{self._found[f'scalar:{self._kernel.argument_name(value)}']}"
        return self._names[value]

    def _name(self, value: SSAValue) -> str:
        hint = value.name_hint
        name = self._locals.new("v", numbered=True) if hint is None else self._locals.new(re.sub(r"_\d+$", "", hint))
        self._names[value] = name
        return name

    def _expression(self, op: Operation) -> str | None:
        """The text of an operation without effects; None for any other."""
        if isinstance(op, arith.ConstantOp):
            return _constant(op)
        if isinstance(op, DimOp):
            return f"args.{self._found[f'dim:{op.dim.data}']}"
        if isinstance(op, RankOp):
            return f"args.{self._found['rank']}"
        if isinstance(op, LaunchValueOp):
            return f"args.{self._found[op.what.data]}"
        if isinstance(op, AddressOp):
            assert isinstance(op.array, BlockArgument)
            return f"args.{self._found[f'address:{self._kernel.argument_name(op.array)}']}"
        if isinstance(op, TensorMapOp):
            return f"args.{self._found[op.result]}[{_bare(self._use(op.last))}]"
        operands = [self._use(operand) for operand in op.operands] if type(op) in _PURE else []
        if type(op) in _INFIX:
            return f"({operands[0]} {_INFIX[type(op)]} {operands[1]})"
        if type(op) in _CALL:
            return f"{_CALL[type(op)]}({_bare(operands[0])}, {_bare(operands[1])})"
        if isinstance(op, arith.SelectOp):
            return f"({operands[0]} ? {operands[1]} : {operands[2]})"
        if isinstance(op, arith.CmpiOp):
            return f"({operands[0]} {_COMPARE[op.predicate.value.data]} {operands[1]})"
        if isinstance(op, arith.CmpfOp):
            return f"({operands[0]} {_COMPARE_F[op.predicate.value.data]} {operands[1]})"
        if isinstance(op, arith.IndexCastOp | arith.SIToFPOp | arith.FPToSIOp):
            return f"({c_type(op.results[0].type)}){operands[0]}"
        return None


_PURE = (
    *_INFIX,
    *_CALL,
    arith.SelectOp,
    arith.CmpiOp,
    arith.CmpfOp,
    arith.IndexCastOp,
    arith.SIToFPOp,
    arith.FPToSIOp,
)


def _bare(expression: str) -> str:
    """Without parentheses around the whole."""
    if not (expression.startswith("(") and expression.endswith(")")):
        return expression
    depth = 0
    for place, character in enumerate(expression):
        depth += (character == "(") - (character == ")")
        if depth == 0 and place < len(expression) - 1:
            return expression
    return expression[1:-1]


def _constant(op: arith.ConstantOp) -> str:
    value = op.value
    if isinstance(value, IntegerAttr):
        if value.type == i1:
            return "true" if value.value.data else "false"
        if value.value.data == _LEAST_INT:  # C++ negates 2147483648, which is a long
            return f"({_LEAST_INT + 1} - 1)"
        suffix = "ull" if value.type == i64 else ""
        return f"{value.value.data}{suffix}"
    assert isinstance(value, FloatAttr)
    number = value.value.data
    if number != number:
        return "__int_as_float(0x7fffffff)"
    if number in (float("inf"), float("-inf")):
        return f"__int_as_float({'0x7f800000' if number > 0 else '0xff800000'})"
    return f"{number!r}f" if "e" in repr(number) or "." in repr(number) else f"{number!r}.0f"


def _member(field: Field) -> str:
    if isinstance(field, TensorMaps):
        return f"TensorMap {field.field}[2]"
    if isinstance(field, Base | HeapStride | Epochs | Alarm):
        return f"unsigned long long {field.field}"
    if isinstance(field, Scalar):
        return f"{'float' if field.dtype == 'f32' else 'int'} {field.field}"
    return f"int {field.field}"


def _function(entry: Instruction) -> Sequence[str]:
    """An instruction as a function, with what it does."""
    result = "void" if entry.result is None else KINDS[entry.result]
    parameters = ", ".join(_parameter(kind, name) for kind, name in zip(entry.operands, "abcdefghijk", strict=False))
    return (
        f"// {entry.description}",
        f"static __device__ __forceinline__ {result} {entry.name}({parameters}) {{",
        f"    {entry.body}",
        "}",
    )


def _parameter(kind: str, name: str) -> str:
    if kind == "map":
        return f"const TensorMap& {name}"
    if kind.startswith("registers<"):
        count, element = kind.removeprefix("registers<").removesuffix(">").split(" x ")
        return f"{KINDS[element]} (&{name})[{count}]"
    return f"{KINDS[kind]} {name}"
