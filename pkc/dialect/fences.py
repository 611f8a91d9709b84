"""Operations that order memory between proxies and ranks (PTX ISA, Memory Consistency Model; proxies).

The generic proxy is what ordinary loads and stores go through, the async proxy what TMA and wgmma go through.
"""

from __future__ import annotations

from enum import auto

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from pkc.dialect.effects import OrdersMemory


class Fence(StrEnum):
    """What a fence orders."""

    AsyncShared = "async_shared"
    AsyncGlobal = "async_global"
    AcquireGpu = "acquire_gpu"
    AcquireSys = "acquire_sys"


class Drain(StrEnum):
    """What a drain waits for."""

    Read = auto()
    Full = auto()
    Loads = auto()


@irdl_attr_definition
class FenceAttr(EnumAttribute[Fence], SpacedOpaqueSyntaxAttribute):
    name = "pk.fence_kind"


@irdl_attr_definition
class DrainAttr(EnumAttribute[Drain], SpacedOpaqueSyntaxAttribute):
    name = "pk.drain_kind"


@irdl_op_definition
class FenceOp(IRDLOperation):
    """Orders the accesses of this warp role before it against those after it.

    `async_shared`, `async_global`: accesses through the generic proxy before it, against accesses through the async
    proxy after it, in shared or global memory (PTX: fence.proxy.async). For a commit, `async_shared` stands between the
    writes of the tiles to their stage and the commit; of tiles that are still on their way then, behind the consume.
    `acquire_gpu`, `acquire_sys`: what was released to a counter that this warp role has read, against its later
    accesses (PTX: fence.acquire).
    """

    name = "pk.fence"
    kind = prop_def(FenceAttr)
    traits = traits_def(OrdersMemory())
    assembly_format = "$kind attr-dict"

    def __init__(self, kind: Fence) -> None:
        super().__init__(properties={"kind": FenceAttr(kind)})


@irdl_op_definition
class DrainOp(IRDLOperation):
    """Waits for the asynchronous accesses of this warp role.

    `read`: its stores have read their stages, which may be used again (PTX: cp.async.bulk.wait_group.read).
    `full`: its stores are complete and visible to it (PTX: cp.async.bulk.wait_group). With `left n` the youngest n
    stores may still be in flight; each `pk.store` is one group, or one for each of its chunks. `loads`: its loads have
    arrived in the stages it has committed (PTX: mbarrier.test_wait on what their consumers wait for).
    """

    name = "pk.drain"
    kind = prop_def(DrainAttr)
    left = opt_prop_def(IntegerAttr.constr(i64))
    traits = traits_def(OrdersMemory())
    assembly_format = "$kind (`left` $left^)? attr-dict"

    def __init__(self, kind: Drain, left: int = 0) -> None:
        super().__init__(properties={"kind": DrainAttr(kind), "left": IntegerAttr(left, i64) if left else None})

    @property
    def may_remain(self) -> int:
        """How many of the youngest stores may still be in flight."""
        return self.left.value.data if self.left is not None else 0

    def verify_(self) -> None:
        if self.left is not None and (self.kind.data is Drain.Loads or self.may_remain < 1):
            raise VerifyException("`left` is at least one store in flight; a drain of loads leaves none")
