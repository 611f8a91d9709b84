"""Operations of the machine level: what one thread does, in instructions of the target.

Structure is `scf.for` and `scf.if`, integers and floats are `arith`; everything else is an entry of the instruction
table of the kernel's target, by which `pkc/passes/verify.py` checks it. Registers that instructions write in place are
arrays:

    %acc = pk.registers : !pk.registers<128 x f32>
    %x = pk.get %acc[%i] : !pk.registers<128 x f32> -> f32
    pk.set %x, %acc[%i] : f32, !pk.registers<128 x f32>
    pk.instruction "wgmma_commit"() : () -> ()
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.types import ArrayType, PGLType, PrivateType, dtype_bytes

MAX_BOX = 256
"""Elements that a box may have in one dimension (CUDA driver API: cuTensorMapEncodeTiled)."""

MAP_DIMENSIONS = 5
"""Dimensions that a tensor map may have."""

SWIZZLES = (0, 32, 64, 128)
"""Widths of a swizzle: the bytes of a row within which 16-byte units are permuted; 0 is no swizzle."""

b32 = IntegerType(32, Signedness.UNSIGNED)
"""The type of a register of 32 bits, of any meaning."""

LAUNCH_VALUES = ("heap_stride", "epochs", "alarm")
"""The values that `pk.launch_value` can give."""

ROLE = "role"
"""On a branch: the role whose threads take it; the attribute `first_warp` tells which warp role."""

ONE = "one"
"""On the branch of a role: a single thread takes it, instead of all warps of the role."""

TASKS = "tasks"
"""On a loop: its variable is the number of a task."""

AWAITS, UNTIL = "awaits", "until"
"""On an instruction that waits: the counters or the channel, and for what: counters `raised`, a stage of a channel
`filled`, or `free` to be filled again."""

ARRAY, PLACE = "array", "place"
"""On an instruction that stands where an index is found to be no position: the array, and which index it is: `row` of a
table, `rank` of one, or `index` and the dimension."""

KINDS = {"index": "int", "i32": "int", "i64": "unsigned long long", "f32": "float", "b32": "unsigned", "i1": "bool"}
"""C++ types by kind: `index` and `i32` integers, `i64` addresses and descriptors, `b32` bits of 32-bit registers."""

_TYPES: dict[str, Attribute] = {
    "index": IndexType(),
    "i32": IntegerType(32),
    "i64": i64,
    "f32": f32,
    "b32": b32,
    "i1": IntegerType(1),
}


@irdl_attr_definition
class RegistersType(ParametrizedAttribute, TypeAttribute):
    """`count` registers of each thread, written in place."""

    name = "pk.registers"
    length: IntAttr
    element_type: Attribute

    def __init__(self, count: int, element_type: Attribute) -> None:
        super().__init__(IntAttr(count), element_type)

    @property
    def count(self) -> int:
        return self.length.data

    def verify(self) -> None:
        if self.count <= 0:
            raise VerifyException(f"expected at least one register, got {self.count}")
        if self.element_type not in _TYPES.values():
            raise VerifyException(f"{self.element_type} is not the type of a register")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element_type = parser.parse_ranked_shape()
        return IntAttr(shape[0]), element_type

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.count}x")
            printer.print_attribute(self.element_type)


@irdl_attr_definition
class MapType(ParametrizedAttribute, TypeAttribute):
    """A tensor map (PTX ISA: tensor-map; `CUtensorMap` of the driver API)."""

    name = "pk.map"


@cache
def kind_type(kind: str) -> Attribute:
    """The type of an operand or result of an instruction."""
    if kind == "map":
        return MapType()
    if kind.startswith("registers<"):
        count, element = kind.removeprefix("registers<").removesuffix(">").split(" x ")
        return RegistersType(int(count), _TYPES[element])
    return _TYPES[kind]


@irdl_op_definition
class InstructionOp(IRDLOperation):
    """One instruction of the target's table."""

    name = "pk.instruction"
    instruction_name = prop_def(StringAttr)
    arguments = var_operand_def()
    results_ = var_result_def()

    def __init__(self, name: str, arguments: Sequence[SSAValue], results: Sequence[Attribute] = ()) -> None:
        super().__init__(
            operands=[arguments], properties={"instruction_name": StringAttr(name)}, result_types=[results]
        )

    @classmethod
    def parse(cls, parser: Parser) -> InstructionOp:
        name = parser.parse_str_literal()
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        kind = parser.parse_type()
        if not isinstance(kind, FunctionType):
            parser.raise_error("expected a function type")
        values = parser.resolve_operands(operands, kind.inputs.data, start)
        return cls.build(
            operands=[values],
            properties={"instruction_name": StringAttr(name)},
            attributes=attributes,
            result_types=[list(kind.outputs.data)],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.instruction_name.data)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(
            FunctionType.from_lists([a.type for a in self.arguments], [r.type for r in self.results])
        )


@irdl_op_definition
class RegistersOp(IRDLOperation):
    """Registers of each thread, undefined until they are written."""

    name = "pk.registers"
    result = result_def(RegistersType)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, count: int, element_type: Attribute) -> None:
        super().__init__(result_types=[RegistersType(count, element_type)])


@irdl_op_definition
class GetOp(IRDLOperation):
    """One register."""

    name = "pk.get"
    registers = operand_def(RegistersType)
    index = operand_def(IndexType())
    result = result_def()
    assembly_format = "$registers `[` $index `]` attr-dict `:` type($registers) `->` type($result)"

    def __init__(self, registers: SSAValue, index: SSAValue) -> None:
        kind = registers.type
        assert isinstance(kind, RegistersType)
        super().__init__(operands=[registers, index], result_types=[kind.element_type])

    def verify_(self) -> None:
        _verify_element(self.registers, self.index, self.result)


@irdl_op_definition
class SetOp(IRDLOperation):
    """One register is written."""

    name = "pk.set"
    value = operand_def()
    registers = operand_def(RegistersType)
    index = operand_def(IndexType())
    assembly_format = "$value `,` $registers `[` $index `]` attr-dict `:` type($value) `,` type($registers)"

    def __init__(self, value: SSAValue, registers: SSAValue, index: SSAValue) -> None:
        super().__init__(operands=[value, registers, index])

    def verify_(self) -> None:
        _verify_element(self.registers, self.index, self.value)


@irdl_op_definition
class SubviewOp(IRDLOperation):
    """A subview: a range of the registers of an array, from `start` on; the same registers, not a copy."""

    name = "pk.subview"
    registers = operand_def(RegistersType)
    start = prop_def(IntegerAttr.constr(i64))
    result = result_def(RegistersType)
    assembly_format = "$registers `from` $start attr-dict `:` type($registers) `->` type($result)"

    def __init__(self, registers: SSAValue, start: int, count: int) -> None:
        kind = registers.type
        assert isinstance(kind, RegistersType)
        super().__init__(
            operands=[registers],
            properties={"start": IntegerAttr(start, i64)},
            result_types=[RegistersType(count, kind.element_type)],
        )

    def verify_(self) -> None:
        whole, subview = self.registers.type, self.result.type
        assert isinstance(whole, RegistersType)
        assert isinstance(subview, RegistersType)
        first = self.start.value.data
        if subview.element_type != whole.element_type or first < 0 or first + subview.count > whole.count:
            raise VerifyException(f"{subview} from {first} is not a subview of {whole}")


def _verify_element(registers: SSAValue, index: SSAValue, value: SSAValue) -> None:
    kind = registers.type
    assert isinstance(kind, RegistersType)
    if value.type != kind.element_type:
        raise VerifyException(f"{value.type} is not the type of registers {kind}")
    owner = index.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        number = owner.value.value.data
        if not 0 <= number < kind.count:
            raise VerifyException(f"there is no register {number} in {kind}")


@irdl_op_definition
class TensorMapOp(IRDLOperation):
    """The tensor map of an array for boxes of one shape: of its full shards, or of the `last`, shorter one.

    `box` is innermost first; `split` is the dimension whose shards are the outermost dimension of the map. A box of one
    dimension more has several parts of rows, of `box[0]` elements each (`TensorMaps` in `pkc/codegen/artifact.py`).
    """

    name = "pk.tensor_map"
    array = operand_def(ArrayType)
    last = operand_def(IndexType())
    box = prop_def(DenseArrayBase.constr(i64))
    swizzle = prop_def(IntegerAttr.constr(i64))
    split = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(MapType())
    traits = traits_def(Pure())
    assembly_format = "$array `last` $last `box` $box `swizzle` $swizzle (`split` $split^)? attr-dict `:` type($array)"

    def __init__(self, array: SSAValue, last: SSAValue, box: Sequence[int], swizzle: int, split: int | None) -> None:
        super().__init__(
            operands=[array, last],
            properties={
                "box": DenseArrayBase.from_list(i64, box),
                "swizzle": IntegerAttr(swizzle, i64),
                "split": None if split is None else IntegerAttr(split, i64),
            },
            result_types=[MapType()],
        )

    def verify_(self) -> None:
        kind, box, swizzle = self.array.type, self.box.get_values(), self.swizzle.value.data
        if not isinstance(kind, PrivateType | PGLType):
            raise VerifyException(f"{kind} has no elements")
        # One more for the shards, another one for the ranks that have a copy each.
        by_rank = isinstance(kind, PGLType) and kind.shard_dim is None
        by_shard = self.split is not None or (isinstance(kind, PGLType) and not by_rank)
        dimensions = len(kind.dimensions) + by_shard + by_rank
        last = kind.dimensions[-1]
        parts = len(box) > dimensions and isinstance(last, int) and last % box[0] == 0
        if len(box) != dimensions + parts or len(box) > MAP_DIMENSIONS:
            raise VerifyException(f"expected a box of {dimensions} dimensions, at most {MAP_DIMENSIONS}")
        if any(not 1 <= extent <= MAX_BOX for extent in box):
            raise VerifyException(f"a box has 1 to {MAX_BOX} elements in each dimension")
        if swizzle not in SWIZZLES:
            raise VerifyException(f"no swizzle of {swizzle} bytes, only of {', '.join(map(str, SWIZZLES))}")
        if swizzle and box[0] * dtype_bytes(kind.element_type) > swizzle:
            raise VerifyException(f"the rows of the box are longer than the {swizzle} bytes of the swizzle")
        if self.split is not None and not 0 <= self.split.value.data < len(kind.dimensions):
            raise VerifyException(f"the array has no dimension {self.split.value.data}")


@irdl_op_definition
class AddressOp(IRDLOperation):
    """The address of an array or of counters in this rank's memory, or in the symmetric heap of rank 0."""

    name = "pk.address"
    array = operand_def(ArrayType)
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = "$array attr-dict `:` type($array)"

    def __init__(self, array: SSAValue) -> None:
        super().__init__(operands=[array], result_types=[i64])


@irdl_op_definition
class LaunchValueOp(IRDLOperation):
    """A value of the launch (i64): `heap_stride`, the bytes between the heaps of two ranks; `epochs`, the address of
    one counter for each CTA; `alarm`, the address of what bounded waits look at: a u32, not 0 if all are to give up,
    then a u32, the milliseconds that a wait may take."""

    name = "pk.launch_value"
    what = prop_def(StringAttr)
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = "$what attr-dict"

    def __init__(self, what: str) -> None:
        super().__init__(properties={"what": StringAttr(what)}, result_types=[i64])

    def verify_(self) -> None:
        if self.what.data not in LAUNCH_VALUES:
            raise VerifyException(
                f"a launch has {', '.join(LAUNCH_VALUES[:-1])} and {LAUNCH_VALUES[-1]}, no `{self.what.data}`"
            )


@irdl_op_definition
class CommentOp(IRDLOperation):
    """A line for the reader of the generated code."""

    name = "pk.comment"
    text = prop_def(StringAttr)
    assembly_format = "$text attr-dict"

    def __init__(self, text: str) -> None:
        super().__init__(properties={"text": StringAttr(text)})

    def verify_(self) -> None:
        if not self.text.data.isprintable() or self.text.data.endswith("\\"):
            raise VerifyException("a comment is one line of text, and does not end in a backslash")


def c_type(kind: Attribute) -> str:
    """The C++ type of a machine value."""
    return next(KINDS[name] for name, known in _TYPES.items() if known == kind)
