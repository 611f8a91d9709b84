"""Channels that a role goes through in step have one place in their rings; the last operation of a block counts it."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser

from pkc.dialect.pk import context
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ChannelOp
from pkc.passes.machine.lowering.in_step import counted_later, in_step

_ROLE = """
pk.kernel @k(%A: !pk.private<[M], f32> {{pk.name = "A"}}) attributes {{derived}} {{
  %a = pk.channel "a" stages 2 : !pk.channel<!pk.tile<64xf32>>
  %b = pk.channel "b" stages 2 : !pk.channel<!pk.tile<64xf32>>
  %c = pk.channel "c" stages {depth} : !pk.channel<!pk.tile<64xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role consumer {{
    pk.tasks (%i) in (%one) {{
{body}
    }}
  }}
}}
"""
_TILE = "!pk.channel<!pk.tile<64xf32>>"


def _written(steps: str) -> str:
    """The operations of a role: `a+` consumes a tile of `a`, `a-` releases it, `a!` fills a stage, `(` and `)` begin
    and end a loop, `|` waits until all stages are filled."""
    lines = {
        "(": "scf.for %j = %zero to %one step %one {{",
        ")": "}}",
        "+": "%{a}{n} = pk.consume %{a} : {kind} -> !pk.tile<64xf32>",
        "-": "pk.release %{a} : {kind}",
        "!": "pk.acquire %{a} : {kind}\n%{a}{n} = pk.full 0.0 : f32 : !pk.tile<64xf32>\n"
        "pk.commit %{a}, %{a}{n} : {kind}, !pk.tile<64xf32>",
        "|": "pk.drain loads",
    }
    return "\n".join(lines[step[-1]].format(a=step[0], n=n, kind=_TILE) for n, step in enumerate(steps.split()))


def _of(steps: str, depth: int = 2) -> tuple[list[str], list[str]]:
    """The groups of channels, and the operations behind which a later one counts."""
    module = Parser(context(), _ROLE.format(depth=depth, body=_written(steps))).parse_module()
    (kernel,) = module.ops
    assert isinstance(kernel, KernelOp)
    (role,) = kernel.roles
    channels = {op.result: op.label.data for op in kernel.body.block.ops if isinstance(op, ChannelOp)}
    users: dict[SSAValue, list[Operation]] = {
        channel: [op for op in role.walk() if channel in op.operands] for channel in channels
    }
    users = {channel: ops for channel, ops in users.items() if ops}
    groups = in_step(users)
    later = counted_later(groups, users)
    names = ["".join(channels[channel] for channel in group) for group in groups]
    return names, [
        name for op in role.walk() if op in later for channel, name in channels.items() if channel in op.operands
    ]


@pytest.mark.parametrize(
    ("steps", "groups", "later"),
    {
        "side by side": ("( a+ b+ a- b- )", ["ab"], ["a"]),
        "one after the other": ("( a+ a- b+ b- )", ["ab"], ["a"]),
        "of three": ("( a+ b+ c+ c- b- a- )", ["abc"], ["c", "b"]),
        "used before the other is released": ("( a- a+ b+ b- )", ["a", "b"], []),
        "in two loops": ("( a+ a- ) ( b+ b- )", ["a", "b"], []),
        "inside and behind": ("( a+ a- ) b+ b-", ["a", "b"], []),
        "in two loops, side by side": ("( a+ b+ a- b- ) ( a+ b+ b- a- )", ["ab"], ["a", "b"]),
        "twice in a block": ("( a+ a- a+ a- b+ b- b+ b- )", ["a", "b"], []),
        "a loop between that uses one": ("a+ b+ a- ( a+ ) b-", ["a", "b"], []),
        "filled one after the other": ("( a! b! )", ["ab"], ["a"]),
        "filled, with a wait for all between": ("( a! | b! )", ["a", "b"], []),
        "one is filled, the other released": ("( a! b+ b- )", ["ab"], ["a"]),
        "the third with the first": ("( a- a+ b+ b- c+ c- )", ["a", "bc"], ["b"]),
    }.values(),
)
def test_groups(steps: str, groups: list[str], later: list[str]) -> None:
    assert _of(steps) == (groups, later)


def test_rings_of_other_lengths_are_apart() -> None:
    assert _of("( a+ b+ c+ c- b- a- )", depth=3) == (["ab", "c"], ["b"])
