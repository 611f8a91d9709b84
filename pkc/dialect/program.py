"""Operations that make the frame of a program: kernel, tasks, roles, blocks, ranks.

Sequential loops and branches are `scf.for` and `scf.if`, integer arithmetic is `arith` on `index`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, IndexType, IntegerAttr, StringAttr, i64
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, region_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, RecursiveMemoryEffect, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.attributes import Role, RoleAttr, number_on
from pkc.dialect.types import ArrayType, BlockType, TileType
from pkc.dialect.walks import Walked

NAME = "pk.name"
"""Argument attribute: the parameter's name in the source."""

SCRATCH = "pk.scratch"
"""Argument attribute: allocated by pkc for the length of the kernel, undefined at entry."""

DIVISORS = "divisors"
"""On a kernel: by `row_of`, what the lengths of rows are multiples of, if that is no multiple of what TMA needs; by
`every_shard`, what the lengths of all shards of a dimension are multiples of, if they are equal."""

DERIVED = "derived"
"""On a kernel and its roles: pkc derived the roles from tasks that stood in none, so passes may change them."""

WRITTEN = "written"
"""On a kernel: an author wrote its roles. Its signals count from zero in each launch, and are reset at the end."""

DETERMINISTIC = "deterministic"
"""The key of the schedule that is false where contributions to sums are added as they come."""

UNORDERED = "unordered"
"""On a sum into rows that a table names: why pkc cannot add it up in a fixed order."""

FRESH = "pk.fresh"
"""Argument attribute: the kernel reads it, but never what it had at entry: its sums begin at zero."""

KEPT = "pk.kept"
"""Argument attribute: scratch memory that other ranks write before its rank has entered a launch, so that it is of
this kernel alone between launches too."""

LOCAL = "pk.local"
"""Argument attribute: no other rank reaches the array, so that it may lie anywhere in the memory of its rank."""

PACKETS = "pk.packets"
"""Argument attribute: of scratch memory, each element is stored with the epoch in one piece of twice its bytes, a
packet, and a load waits until the packets of its launch are there; of signals, they travel in such packets, so that no
counter is raised and a wait is over when the load is."""

JOINED = "pk.joined"
"""Argument attribute: the last two dimensions of the array that a launch gives are one here; the last of them has so
many elements (`pk-join-dimensions`)."""

AFTER_ALL = "after_all"
"""On a role: all that it does comes after signals of the same launch from every rank."""

PART = "part"
"""Attribute of `pk.tasks` of an author: their number in the kernel, the same in all roles that a role is split into."""

PER_CTA = "per_cta"
"""Attribute of `pk.tasks`: each CTA that runs the role takes its share of the tasks, one after the other."""

TARGET = "target"
"""Attribute of `pk.kernel`: the name of the target that it is compiled for. The tile level has none."""

AROUND = "around"
"""On a kernel: rows of its arrays begin anywhere, and its tiles have room for what lies around theirs."""

FLAT = "flat"
"""Attribute of `pk.kernel`: its tiles lie in their stages without a swizzle."""

QUEUE = "queue"
"""Attribute of `pk.kernel`: its CTAs take tasks from a queue, which has so many places in shared memory for the numbers
of the next ones (`pk-plan-queue`)."""

CONSUMERS, STAGES = "consumers", "stages"
"""Keys of the schedule: how many warpgroups compute, and how many stages loops have."""

COMM_SMS = "comm_sms"
"""Attribute of `pk.kernel`: how many SMs run only the roles of the group `communicate`; all others run `compute`."""

CLUSTER, SPREAD = "cluster", "spread"
"""Attributes of `pk.kernel`: its CTAs are clusters of that many CTAs of the GPU, each of which has an equal part of all
rows of so many elements (`pk-plan-clusters`); they are what CTAs are at the roles level."""

GROUP = "group"
"""Attribute of `pk.role`: the SMs that run it, `compute` or `communicate`."""

FIRST_WARP = "first_warp"
"""Attribute of `pk.role`: the first of its warps in the CTA."""

REGISTERS = "registers"
"""Attribute of `pk.role`: registers of each of its threads; the same for all roles in a warpgroup."""

RASTER = "raster"
"""Attribute of `pk.tasks` with two counts: tasks are numbered by bands of that many first indices
(`pkc/dialect/task_order.py`). CTAs take them in the order of their numbers."""

WIDE = "wide"
"""Attribute of `pk.tasks` with a raster: it holds only where there are more than twice as many columns as rows of a
band. Fewer columns are all worked on at the same time anyway, by CTAs that then share rows."""

LONGEST_FIRST = "longest_first"
"""Attribute of `pk.tasks`: none has longer loops than those before it in its band. CTAs take them back and forth
(`pkc/dialect/task_order.py`)."""

PHASE = "phase"
"""On task sets, and on roles that serve one: which phase of a kernel of several it is, from 0. On channels that lie in
the same shared memory: the one that they serve."""

IN_ORDER = "in_order"
"""Attribute of `pk.tasks`: how many of the last indices were loops; these ascend as in the loops of the reader."""


@irdl_op_definition
class KernelOp(Walked, IRDLOperation):
    """One kernel: every rank runs its body. Arguments are arrays, signals and `f32` or `i32` scalars."""

    name = "pk.kernel"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    arg_attrs = prop_def(ArrayAttr[DictionaryAttr])
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(self, name: str, arg_attrs: Sequence[DictionaryAttr], body: Region) -> None:
        function_type = FunctionType.from_lists([arg.type for arg in body.block.args], [])
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "arg_attrs": ArrayAttr(arg_attrs),
            },
            regions=[body],
        )

    @property
    def arguments(self) -> dict[str, BlockArgument]:
        """The arguments by their names in the source."""
        return {self.argument_name(arg): arg for arg in self.body.block.args}

    @property
    def schedule(self) -> Mapping[str, Attribute]:
        """What the schedule says, by key."""
        entries = self.attributes.get("schedule")
        return entries.data if isinstance(entries, DictionaryAttr) else {}

    def scheduled_number(self, key: str) -> int | None:
        """The integer that the schedule has for a key, if any."""
        value = self.schedule.get(key)
        return value.value.data if isinstance(value, IntegerAttr) else None

    @property
    def roles(self) -> list[RoleOp]:
        """The roles, if it is split into such, in their order."""
        return [op for op in self.body.block.ops if isinstance(op, RoleOp)]

    @property
    def in_any_order(self) -> bool:
        """Whether the schedule lets contributions to sums be added where the array lives, as they come."""
        return str(self.schedule.get(DETERMINISTIC, "true")) == "false"

    def argument_name(self, arg: BlockArgument) -> str:
        name = self.arg_attrs.data[arg.index].data[NAME]
        assert isinstance(name, StringAttr)
        return name.data

    def is_scratch(self, arg: BlockArgument) -> bool:
        return SCRATCH in self.arg_attrs.data[arg.index].data

    def is_fresh(self, arg: BlockArgument) -> bool:
        return FRESH in self.arg_attrs.data[arg.index].data

    def is_kept(self, arg: BlockArgument) -> bool:
        return KEPT in self.arg_attrs.data[arg.index].data

    def is_local(self, arg: BlockArgument) -> bool:
        return LOCAL in self.arg_attrs.data[arg.index].data

    def joined(self, arg: BlockArgument) -> int | None:
        """How many elements the last dimension has of an array as a launch gives it, if that is no dimension here."""
        found = self.arg_attrs.data[arg.index].data.get(JOINED)
        return found.value.data if isinstance(found, IntegerAttr) else None

    def has_packets(self, arg: SSAValue) -> bool:
        return isinstance(arg, BlockArgument) and PACKETS in self.arg_attrs.data[arg.index].data

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name, _, _, body, extra, arg_attrs, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type", "arg_attrs")
        )
        if not body.blocks:
            body.add_block(Block())
        if len(body.blocks) > 1:
            parser.raise_error("a kernel has one block")
        if arg_attrs is None:
            arg_attrs = ArrayAttr([DictionaryAttr({})] * len(body.block.args))
        op = KernelOp(name, arg_attrs.data, body)
        if extra is not None:
            op.attributes |= extra.data
        return op

    def print(self, printer: Printer) -> None:
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            arg_attrs=self.arg_attrs,
            reserved_attr_names=("sym_name", "function_type", "arg_attrs"),
        )

    def verify_(self) -> None:
        args = self.body.block.args
        if tuple(self.function_type.inputs) != tuple(arg.type for arg in args):
            raise VerifyException("the types of the arguments are not those of the function type")
        if len(self.arg_attrs) != len(args):
            raise VerifyException(
                f"expected {len(args)} dictionaries of argument attributes, got {len(self.arg_attrs)}"
            )
        names = [attrs.data.get(NAME) for attrs in self.arg_attrs]
        if not all(isinstance(name, StringAttr) for name in names):
            raise VerifyException(f'every argument has its name in the source: {{{NAME} = "A"}}')
        if len(set(names)) != len(names):
            raise VerifyException("two arguments have the same name")
        for arg in args:
            if not isinstance(arg.type, ArrayType) and str(arg.type) not in ("f32", "i32"):
                raise VerifyException(
                    f"{arg.type} is not a type of kernel arguments: expected an array, signal, f32 or i32"
                )


def kernel_of(op: Operation) -> KernelOp | None:
    """The kernel that an operation is, or is in."""
    around: Operation | None = op
    while around is not None and not isinstance(around, KernelOp):
        around = around.parent_op()
    return around


def is_scalar(value: SSAValue) -> bool:
    """Whether a value is a scalar that a launch gives a kernel."""
    given = isinstance(value, BlockArgument) and isinstance(value.owner.parent_op(), KernelOp)
    return given and not isinstance(value.type, ArrayType)


def packed(op: Operation) -> bool:
    """Whether an access is to an array of packets, or an operation on counters to signals that travel in packets."""
    arg = next((value for value in op.operands if isinstance(value.type, ArrayType)), None)
    kernel = arg.owner.parent_op() if isinstance(arg, BlockArgument) else None
    return isinstance(kernel, KernelOp) and arg is not None and kernel.has_packets(arg)


@irdl_op_definition
class TasksOp(Walked, IRDLOperation):
    """Independent work items: the body runs once for each combination of indices below `counts`, in no order.

    pk.tasks (%i, %j) in (%rows, %columns) { ... }
    """

    name = "pk.tasks"
    counts = var_operand_def(IndexType())
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, counts: Sequence[SSAValue], body: Region) -> None:
        super().__init__(operands=[counts], regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> TasksOp:
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        parser.parse_keyword("in")
        counts = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(IndexType()))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([name.resolve(IndexType()) for name in names])
        op = TasksOp(counts, body)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_ssa_value)
        printer.print_string(" in ")
        with printer.in_parens():
            printer.print_list(self.counts, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        if not self.counts:
            raise VerifyException("expected at least one count")
        if [arg.type for arg in self.body.block.args] != [IndexType()] * len(self.counts):
            raise VerifyException(f"expected {len(self.counts)} arguments of type index, one for each count")
        if self.raster is not None and (len(self.counts) < 2 or self.raster < 1):
            raise VerifyException(f"a raster of {self.raster} rows needs two task indices, got {len(self.counts)}")

    @property
    def raster(self) -> int | None:
        """Rows of a band, if tasks are numbered by bands (`pkc/dialect/task_order.py`)."""
        return number_on(self, RASTER)

    def band(self, columns: int) -> int | None:
        """Rows of a band where tasks have so many columns."""
        narrow = self.raster is not None and WIDE in self.attributes and columns <= 2 * self.raster
        return 1 if narrow else self.raster

    @property
    def back_and_forth(self) -> bool:
        """Whether CTAs take tasks back and forth, and change places (`pkc/dialect/task_order.py`)."""
        return LONGEST_FIRST in self.attributes

    @property
    def encloses_tasks(self) -> bool:
        """Whether further tasks stand directly inside: then those are distributed over CTAs, and all CTAs run these."""
        return any(isinstance(op, TasksOp) for op in self.body.block.ops)

    @property
    def outermost(self) -> TasksOp:
        """The tasks around all others that these stand in, or these."""
        around = self.parent_op()
        return around.outermost if isinstance(around, TasksOp) else self


@irdl_op_definition
class RoleOp(Walked, IRDLOperation):
    """What one role does; all roles of a kernel run at the same time."""

    name = "pk.role"
    role = prop_def(RoleAttr)
    sms = opt_prop_def(IntegerAttr.constr(i64))
    warps = opt_prop_def(IntegerAttr.constr(i64))
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())
    assembly_format = "$role (`sms` $sms^)? (`warps` $warps^)? attr-dict-with-keyword $body"

    def __init__(self, role: RoleAttr, body: Region, sms: int | None = None, warps: int | None = None) -> None:
        properties: dict[str, Attribute] = {"role": role}
        properties |= {} if sms is None else {"sms": IntegerAttr(sms, i64)}
        properties |= {} if warps is None else {"warps": IntegerAttr(warps, i64)}
        super().__init__(properties=properties, regions=[body])

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), KernelOp):
            raise VerifyException("a role stands directly in a `pk.kernel`")
        for what, number in (("sms", self.sms), ("warps", self.warps)):
            if number is not None and number.value.data <= 0:
                raise VerifyException(f"{what} must be positive, got {number.value.data}")
            if number is not None and self.role.data is Role.CopyEngine:
                raise VerifyException("a copy engine runs on no SM and has no warps")
        first = number_on(self, FIRST_WARP) or 0
        if first < 0:
            raise VerifyException(f"the first warp of a CTA is 0, not {first}")


def whole(size: int) -> BlockType:
    """The type of the one block that covers a constant dimension."""
    return BlockType(size, size)


def index_shape(types: Sequence[Attribute]) -> tuple[int, ...]:
    """The shape of the tile that indices of these types pick: one axis for each block."""
    return tuple(t.extent for t in types if isinstance(t, BlockType))


def verify_indices(array: ArrayType, indices: Sequence[SSAValue], *, first: int = 0) -> None:
    """Check that `indices` address dimensions `first` and on of `array`: as many, each block of its dimension."""
    dims = array.dimensions[first:]
    if len(indices) != len(dims):
        raise VerifyException(f"expected {len(dims)} indices, one for each dimension, got {len(indices)}")
    for dim, index in zip(dims, indices, strict=True):
        if isinstance(index.type, BlockType) and index.type.of != dim:
            raise VerifyException(f"a block of dimension {index.type.of} cannot index dimension {dim}")


def verify_tile(tile: Attribute, shape: Sequence[int], element_type: Attribute, what: str) -> None:
    """Check the type of a tile that goes to or comes from memory."""
    if tile != TileType(shape, element_type):
        raise VerifyException(f"expected {what} of type {TileType(shape, element_type)}, got {tile}")
