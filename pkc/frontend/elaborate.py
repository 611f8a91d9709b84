"""From the tree of a program to tile-level IR, with a location on every operation."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from pkc.diagnostics import PkcError
from pkc.dialect.program import KernelOp
from pkc.dialect.types import Layout, PGLType
from pkc.frontend import schedule, statements, tree
from pkc.frontend.captures import constant_of
from pkc.frontend.check_errors import NoTiles, UnknownConstant
from pkc.frontend.construct import check_kernels
from pkc.frontend.expressions import check_call
from pkc.frontend.frame import Frame
from pkc.frontend.parameters import bind, constants_of, parameters_of, zigzag_dimensions


def build_module(
    program: tree.Program,
    *,
    kernel: str | None = None,
    constants: Mapping[str, int | float | bool] | None = None,
    options: Mapping[str, str] | None = None,
) -> ModuleOp:
    """The IR of one kernel of a program, or of all; raises `PkcError` with everything that is wrong.

    `constants` gives values to `const` parameters, `options` overrides the schedule.
    """
    check_kernels(program.kernels)
    chosen = [k for k in program.kernels if kernel in (None, k.name)]
    given = [_constants(k, constants or {}) for k in chosen]
    return ModuleOp([build_kernel(k, found, options or {}) for k, found in zip(chosen, given, strict=True)])


def build_kernel(
    node: tree.Kernel, constants: Mapping[str, int | float | bool], options: Mapping[str, str]
) -> KernelOp:
    """The IR of one kernel."""
    block = Block()
    frame = Frame(block, {}, frozenset(), {}, statements.run)
    constants_of(frame, node.params, constants)
    frame.fixed |= dict.fromkeys(frame.names, "a constant")
    parameters = parameters_of(frame, node.params)
    for position, parameter in enumerate(parameters):
        block.insert_arg(parameter.type, position).location = parameter.node.span.location()
    frame.sharded = frozenset(_sharded(parameter.type) for parameter in parameters) - {""}
    frame.zigzag = zigzag_dimensions(parameters)
    bind(frame, parameters, tuple(block.args))
    frame.functions = {function.name: function for function in node.functions}
    body, entries = _schedule(frame, node)
    entries |= schedule.from_options(options)
    frame.tiles = schedule.tiles_of(entries)
    frame.run(frame, body)
    _check_tiles(frame, node)
    if frame.findings:
        raise PkcError(*frame.findings)
    kernel = KernelOp(node.name, [parameter.attributes for parameter in parameters], Region(block))
    kernel.location = node.span.location()
    kernel.attributes["schedule"] = schedule.schedule_attr(entries)
    return kernel


def _check_tiles(frame: Frame, node: tree.Kernel) -> None:
    """That every dimension whose tiles the schedule sets has some."""
    known = ", ".join(f"`{schedule.TILE}{dim}`" for dim in sorted(frame.tiled))
    for dim in frame.tiles:
        if dim not in frame.tiled:
            hint = f"it has {known}" if known else "it has no blocks that could have another size"
            frame.findings.append(NoTiles(node.span, node.name, dim, hint))


def _sharded(parameter_type: object) -> str:
    """The dimension that a parameter shards, or nothing."""
    if not isinstance(parameter_type, PGLType) or parameter_type.layout is not Layout.Shard:
        return ""
    assert parameter_type.shard_dim is not None
    return str(parameter_type.dimensions[parameter_type.shard_dim])


def _schedule(frame: Frame, node: tree.Kernel):
    """The body without its schedule, and the schedule: the text's, overridden by the decorator's."""
    body = node.body
    entries = {}
    if body and isinstance(body[0], tree.Do) and body[0].call.func == "schedule":
        check_call(frame, body[0].call)
        entries = schedule.from_keywords(body[0].call.keywords)
        body = body[1:]
    return body, entries | schedule.from_keywords(node.schedule)


def _constants(kernel: tree.Kernel, given: Mapping[str, object]) -> dict[str, int | float | bool]:
    """What is given for the constants of a kernel."""
    params = {param.name: param for param in kernel.params if param.annotation.base == "const"}
    for name in given:
        if name not in params:
            text = f"its constants are {', '.join(params)}" if params else "it has no constants"
            raise PkcError(UnknownConstant(kernel.span, kernel.name, name, text))
    return {name: constant_of(kernel.name, name, value, params[name].span) for name, value in given.items()}
