"""Attributes of the pk dialect: roles, comparison predicates."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class Role(StrEnum):
    """What a group of warps, or of SMs, does (ParallelKittens: the LCSC template).

    A copy engine is no SM: the host enqueues what it does, on a stream of its own, before the kernel runs.
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
