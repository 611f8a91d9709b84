"""Attributes of the pk dialect: roles, comparison predicates, and numbers that passes write on operations."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Operation, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class Role(StrEnum):
    """What a group of warps, or of SMs, does (ParallelKittens: the LCSC template).

    A copy engine runs on no SM: the host enqueues its copies, on separate streams, beside the kernel.
    """

    Loader = auto()
    Consumer = auto()
    Storer = auto()
    Communicator = auto()
    CopyEngine = "copy_engine"


ON_SMS = (Role.Loader, Role.Consumer, Role.Storer, Role.Communicator)
"""The roles that warps run, and that a program can write."""


@irdl_attr_definition
class RoleAttr(EnumAttribute[Role], SpacedOpaqueSyntaxAttribute):
    name = "pk.role_name"


class Predicate(StrEnum):
    """How two elements are compared; unordered (NaN) operands make all but `ne` false."""

    Eq = auto()
    Ne = auto()
    Lt = auto()
    Le = auto()
    Gt = auto()
    Ge = auto()


@irdl_attr_definition
class PredicateAttr(EnumAttribute[Predicate], SpacedOpaqueSyntaxAttribute):
    name = "pk.predicate"


def number_on(op: Operation, name: str) -> int | None:
    """The integer attribute of an operation; None if it has none of that name."""
    value = op.attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else None


def planned(op: Operation, name: str) -> int:
    """The integer attribute that an earlier pass has written."""
    found = number_on(op, name)
    assert found is not None, f"{op.name} has no {name}"
    return found
