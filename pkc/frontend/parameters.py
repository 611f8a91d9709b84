"""Parameters of a kernel: constants, dimensions, arrays, signals, scalars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import DictionaryAttr, IndexType, StringAttr, UnitAttr
from xdsl.ir import Attribute, BlockArgument

from pkc.diagnostics import Diagnostic, Label, PkcError
from pkc.dialect.program import NAME, SCRATCH
from pkc.dialect.tile import SplatOp
from pkc.dialect.types import DTYPES, RANKS, Dim, Layout, PGLType, PrivateType, SignalType, TileType, f32, i32
from pkc.frontend import elsewhere, tree
from pkc.frontend.check_errors import (
    BadAnnotation,
    BadDimension,
    BadModifier,
    BadShard,
    DuplicateName,
    MissingConstant,
    OtherOrder,
    ReservedName,
    UnknownName,
    UnknownType,
)
from pkc.frontend.expressions import evaluate
from pkc.frontend.frame import Frame
from pkc.frontend.indexing import constant_integer
from pkc.frontend.kinds import ArrayRef, Constant, Dimension, Integer, SignalRef, Tile, Value, family
from pkc.location import Span

_LAYOUTS = {"replicate": Layout.Replicate, "symmetric": Layout.Symmetric}


@dataclass(frozen=True)
class Parameter:
    """One argument of the IR kernel."""

    node: tree.Param
    type: Attribute
    scratch: bool

    @property
    def attributes(self) -> DictionaryAttr:
        entries: dict[str, Attribute] = {NAME: StringAttr(self.node.name)}
        return DictionaryAttr(entries | ({SCRATCH: UnitAttr()} if self.scratch else {}))


def constants_of(frame: Frame, params: tuple[tree.Param, ...], given: Mapping[str, int | float | bool]) -> None:
    """Bind every `const` parameter: what is given, else its default."""
    for param in params:
        if param.annotation.base != "const":
            continue
        if param.annotation.dims is not None or param.annotation.modifiers:
            problem = "a constant has no dimensions and no layout"
            raise PkcError(BadAnnotation(param.annotation.span, param.name, problem))
        frame.names[param.name] = _constant(frame, param, given)


def _constant(frame: Frame, param: tree.Param, given: Mapping[str, int | float | bool]) -> Constant:
    if param.name in given:
        return Constant(given[param.name], param.name)
    if param.default is None:
        raise PkcError(MissingConstant(param.span, param.name))
    value = evaluate(frame, param.default)
    if not isinstance(value, Constant):
        raise PkcError(BadAnnotation(param.default.span, param.name, "a default is a constant"))
    return Constant(value.value, param.name)


def parameters_of(frame: Frame, params: tuple[tree.Param, ...]) -> list[Parameter]:
    """The arguments of the kernel, in order; constants are none."""
    _check_names(params)
    frame.fixed |= {param.name: "a parameter" for param in params if param.annotation.base != "const"}
    found: list[Parameter] = []
    wrong: list[Diagnostic] = []
    for param in params:
        if param.annotation.base == "const":
            continue
        try:
            found.append(_parameter(frame, param))
        except PkcError as error:
            wrong += error.diagnostics
    if wrong:
        raise PkcError(*wrong)
    return found


def bind(frame: Frame, parameters: list[Parameter], arguments: tuple[BlockArgument, ...]) -> None:
    """Make the parameters and their dimensions known by name."""
    for parameter, argument in zip(parameters, arguments, strict=True):
        name = parameter.node.name
        argument.name_hint = name
        frame.names[name] = _argument_value(frame, parameter, argument)


def _argument_value(frame: Frame, parameter: Parameter, argument: BlockArgument) -> Value:
    name, span = parameter.node.name, parameter.node.span
    match parameter.type:
        case PrivateType() | PGLType():
            dims = parameter.node.annotation.dims or ()
            names = tuple(dim.id if isinstance(dim, tree.Name) else "" for dim in dims)
            return ArrayRef(argument, name, parameter.type, names, tuple(dim.span.text for dim in dims))
        case SignalType():
            return SignalRef(argument, name, parameter.type)
        case _ if parameter.type == f32:
            return Tile(frame.value(SplatOp(argument, TileType((), f32)), span), f32, ())
        case _:
            return Integer(frame.value(arith.IndexCastOp(argument, IndexType()), span))


def _check_names(params: tuple[tree.Param, ...]) -> None:
    first: dict[str, tree.Param] = {}
    for param in params:
        if param.name in ("rank", RANKS) or param.name in DTYPES:
            raise PkcError(ReservedName(param.span, param.name, "a word of the language"))
        if param.name in first:
            also = (Label(first[param.name].span, "the first one"),)
            raise PkcError(DuplicateName(param.span, param.name, "parameter", also=also))
        first[param.name] = param


def _parameter(frame: Frame, param: tree.Param) -> Parameter:
    annotation = param.annotation
    if param.default is not None:
        raise PkcError(BadAnnotation(param.default.span, param.name, "only a constant has a default"))
    if annotation.base == "signal":
        if annotation.modifiers or not annotation.dims:
            raise PkcError(BadAnnotation(annotation.span, param.name, "a signal array is written `signal[n]`"))
        return Parameter(param, SignalType([_dim(frame, dim, param) for dim in annotation.dims]), scratch=False)
    dtype = DTYPES.get(annotation.base)
    if dtype is None:
        start = annotation.span.start
        span = Span(annotation.span.source, start, start + len(annotation.base))
        raise PkcError(UnknownType(span, annotation.base, elsewhere.of_type(annotation.base)))
    if annotation.dims is None:
        if annotation.modifiers or dtype not in (f32, i32):
            problem = "a parameter without dimensions is a scalar: `f32`, `i32`, or a `const`"
            raise PkcError(BadAnnotation(annotation.span, param.name, problem))
        return Parameter(param, dtype, scratch=False)
    if not annotation.dims:
        raise PkcError(BadAnnotation(annotation.span, param.name, "an array has at least one dimension"))
    dims = [_dim(frame, dim, param) for dim in annotation.dims]
    return _array(frame, param, dims, dtype)


def _dim(frame: Frame, node: tree.Expr, param: tree.Param) -> Dim:
    if isinstance(node, tree.Name) and not isinstance(frame.names.get(node.id), Constant):
        return _dimension_name(frame, node)
    names = frame.names
    frame.names = {name: value for name, value in names.items() if isinstance(value, Constant)}
    try:
        value = evaluate(frame, node)
    except PkcError as error:
        raise _without_names(frame, node, error) from None
    finally:
        frame.names = names
    if not isinstance(value, Constant) or family(value) != "integer":
        raise PkcError(BadDimension(node.span, "neither a name nor an integer constant"))
    size = constant_integer(value, "a dimension", node.span)
    if not 1 <= size < 2**31:
        raise PkcError(BadDimension(node.span, f"the size is {size}"))
    return size


def _without_names(frame: Frame, node: tree.Expr, error: PkcError) -> PkcError:
    """The error for arithmetic of a dimension, which may use constants only."""
    found = error.diagnostics[0]
    if not isinstance(found, UnknownName):
        return error
    problem = f"`{found.name}` is not a constant"
    if frame.fixed.get(found.name) == "a parameter":
        return PkcError(BadDimension(found.span, problem))
    times = _factor(node, found.name)
    inside = (
        f", and index it with `n + {found.name}` and the like, where `n` is a block of {found.name}" if times else ""
    )
    hint = f"give it a name of its own, such as `{found.name}{times or 1}`{inside}: arrays say how long it is"
    return PkcError(BadDimension(found.span, problem, hint))


def _factor(node: tree.Expr, name: str) -> int:
    """By what a dimension is multiplied; 0 if that is not all."""
    match node:
        case tree.Binary(op="*", left=tree.Number(value=int() as times), right=tree.Name(id=other)) if other == name:
            return times
        case tree.Binary(op="*", left=tree.Name(id=other), right=tree.Number(value=int() as times)) if other == name:
            return times
        case _:
            return 0


def _dimension_name(frame: Frame, node: tree.Name) -> str:
    if node.id == RANKS:
        return RANKS
    if node.id == "rank" or node.id in DTYPES:
        raise PkcError(BadDimension(node.span, f"`{node.id}` is a word of the language"))
    if frame.fixed.get(node.id) == "a parameter":
        raise PkcError(BadDimension(node.span, f"`{node.id}` is a parameter"))
    frame.names[node.id] = Dimension(node.id)
    frame.fixed[node.id] = "a dimension"
    return node.id


def _array(frame: Frame, param: tree.Param, dims: list[Dim], dtype: Attribute) -> Parameter:
    layouts = [m for m in param.annotation.modifiers if m.name != "scratch"]
    scratches = [m for m in param.annotation.modifiers if m.name == "scratch"]
    for modifier in param.annotation.modifiers:
        _check_modifier(modifier)
    if len(layouts) > 1:
        raise PkcError(BadModifier(layouts[1].span, f"`{param.name}` has two layouts"))
    if len(scratches) > 1:
        raise PkcError(BadModifier(scratches[1].span, "`.scratch()` is given twice"))
    if not layouts:
        return Parameter(param, PrivateType(dims, dtype), bool(scratches))
    layout = layouts[0]
    if layout.name != "shard":
        return Parameter(param, PGLType(dims, dtype, _LAYOUTS[layout.name]), bool(scratches))
    shard, zigzag = _shard(frame, param, dims, layout), _is_zigzag(frame, layout)
    return Parameter(param, PGLType(dims, dtype, Layout.Shard, shard, zigzag=zigzag), bool(scratches))


def _check_modifier(modifier: tree.Modifier) -> None:
    if modifier.name not in ("shard", "scratch", *_LAYOUTS):
        raise PkcError(BadModifier(modifier.span, f"unknown layout `.{modifier.name}`"))
    wanted = 1 if modifier.name == "shard" else 0
    if len(modifier.args) != wanted:
        text = "one argument, the dimension to split" if wanted else "no argument"
        raise PkcError(BadModifier(modifier.span, f"`.{modifier.name}` takes {text}"))
    for keyword in modifier.keywords:
        if (modifier.name, keyword.name) != ("shard", "zigzag"):
            raise PkcError(BadModifier(keyword.span, f"`.{modifier.name}` takes no `{keyword.name}`"))


def _is_zigzag(frame: Frame, modifier: tree.Modifier) -> bool:
    """Whether `.shard(d, zigzag=...)` asks for zigzag order."""
    for keyword in modifier.keywords:
        value = evaluate(frame, keyword.value)
        if not isinstance(value, Constant) or not isinstance(value.value, bool):
            raise PkcError(BadModifier(keyword.span, f"`zigzag` is True or False, not {value}"))
        return value.value
    return False


def zigzag_dimensions(parameters: list[Parameter]) -> frozenset[str]:
    """The dimensions in zigzag order. Raises `PkcError` if an array that is passed has one of them in another order."""
    first: dict[Dim, Parameter] = {}
    for parameter in parameters:
        if isinstance(parameter.type, PGLType) and parameter.type.zigzag:
            assert parameter.type.shard_dim is not None
            first.setdefault(parameter.type.dimensions[parameter.type.shard_dim], parameter)
    for parameter in parameters:
        kind = parameter.type
        if parameter.scratch or not isinstance(kind, PrivateType | PGLType):
            continue
        for axis, dim in enumerate(kind.dimensions):
            if dim in first and not (isinstance(kind, PGLType) and kind.zigzag and kind.shard_dim == axis):
                raise PkcError(_other_order(parameter, str(dim), first[dim], axis))
    return frozenset(map(str, first))


def _other_order(parameter: Parameter, dim: str, first: Parameter, axis: int) -> OtherOrder:
    name, span = parameter.node.name, parameter.node.annotation.span
    if parameter is first:
        return OtherOrder(span, name, dim, f"give one of the two dimensions of `{name}` another name")
    also = (Label(first.node.annotation.span, f"{dim} is in zigzag order here"),)
    hint = f"declare all arrays of {dim} with `zigzag=True`, this one with `.shard({axis}, zigzag=True)`, or none"
    return OtherOrder(span, name, dim, hint, also=also)


def _shard(frame: Frame, param: tree.Param, dims: list[Dim], modifier: tree.Modifier) -> int:
    position = constant_integer(evaluate(frame, modifier.args[0]), "the dimension to shard", modifier.args[0].span)
    if not 0 <= position < len(dims):
        problem = f"it has dimensions 0 to {len(dims) - 1}" if len(dims) > 1 else "it has only dimension 0"
        raise PkcError(BadShard(modifier.span, param.name, position, problem))
    dim = dims[position]
    if isinstance(dim, int) or dim == RANKS:
        problem = "it is the number of ranks" if dim == RANKS else f"it is the constant {dim}"
        hint = "only a run-time dimension can be sharded: a name that is not a `const` parameter"
        raise PkcError(BadShard(modifier.span, param.name, position, problem, hint))
    return position
