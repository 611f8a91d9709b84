"""Arrays that operations on memory access: which there are, and what of them these take."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.ir import BlockArgument, SSAValue
from xdsl.irdl import AnyOf, AttrSizedOperandSegments, BaseAttr
from xdsl.utils.exceptions import VerifyException

from pkc.dialect.program import KernelOp
from pkc.dialect.types import Layout, PGLType, PrivateType, SignalType

ARRAY = AnyOf((BaseAttr(PrivateType), BaseAttr(PGLType)))
SIZED = (AttrSizedOperandSegments(as_property=True),)

Array: TypeAlias = PrivateType | PGLType


def array_type(value: SSAValue) -> Array:
    """The type of a value that is known to be a private or parallel global array."""
    assert isinstance(value.type, PrivateType | PGLType)
    return value.type


def is_pgl(value: SSAValue, layout: Layout) -> bool:
    """Whether a value is a parallel global array of this layout."""
    return isinstance(value.type, PGLType) and value.type.layout is layout


def is_shared(array: SSAValue) -> bool:
    """Whether ranks share an array: the elements are the same for all."""
    return is_pgl(array, Layout.Shard) or is_pgl(array, Layout.Replicate)


def verify_rank(array: SSAValue, rank: SSAValue | None) -> None:
    copies = is_pgl(array, Layout.Symmetric) or is_pgl(array, Layout.Replicate)
    if rank is not None and not (copies or isinstance(array.type, SignalType)):
        raise VerifyException("only an array of which each rank has a copy is addressed by rank")


def verify_local(array: PrivateType | PGLType, local: PrivateType | PGLType) -> None:
    alike = local.dimensions == array.dimensions and local.element_type == array.element_type
    if not alike or not isinstance(local, PGLType) or local.layout is not Layout.Shard:
        raise VerifyException(f"`local` is a sharded array like {array}, not {local}")


def verify_one_copy(array: SSAValue) -> None:
    """That an array is private, or has a copy on each rank."""
    if isinstance(array.type, PGLType):
        verify_symmetric(array)


def verify_symmetric(array: SSAValue) -> None:
    if not is_pgl(array, Layout.Symmetric):
        raise VerifyException(f"expected a symmetric array, got {array.type}")


def verify_summed(array: SSAValue) -> None:
    if not is_shared(array):
        raise VerifyException(f"a sum over ranks goes to a sharded or replicated array, got {array.type}")


def given_type(kernel: KernelOp, arg: BlockArgument) -> Array:
    """The type of an array as a launch gives it."""
    kind, last = array_type(arg), kernel.joined(arg)
    if last is None:
        return kind
    assert isinstance(kind, PrivateType) and isinstance(kind.dimensions[-1], int)
    return PrivateType([*kind.dimensions[:-1], kind.dimensions[-1] // last, last], kind.element_type)
