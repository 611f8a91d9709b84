"""The passes and their order: this file is the whole pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.passes import ModulePass

from pkc.passes.attach_target import AttachTarget
from pkc.passes.canonicalize import Canonicalize
from pkc.passes.cse import Cse
from pkc.passes.dce import Dce
from pkc.passes.machine.bound_waits import BoundWaits
from pkc.passes.machine.check_indices import CheckIndices
from pkc.passes.machine.check_lowering import CheckLowering
from pkc.passes.machine.check_machine import CheckMachine
from pkc.passes.machine.guard_waits import GuardWaits
from pkc.passes.machine.lower_tiles import LowerTiles
from pkc.passes.machine.overlap_epilogues import OverlapEpilogues
from pkc.passes.machine.plan_barriers import PlanBarriers
from pkc.passes.machine.plan_memory import PlanMemory
from pkc.passes.machine.rebase_stages import RebaseStages
from pkc.passes.machine.recompute_integers import RecomputeIntegers
from pkc.passes.machine.restart_counters import RestartCounters
from pkc.passes.machine.spread_rows import SpreadRows
from pkc.passes.machine.trace import Trace
from pkc.passes.roles.align_rows import AlignRows
from pkc.passes.roles.assign_roles import AssignRoles
from pkc.passes.roles.balance_tasks import BalanceTasks
from pkc.passes.roles.begin_together import BeginTogether
from pkc.passes.roles.check_roles import CheckRoles
from pkc.passes.roles.clip_operands import ClipOperands
from pkc.passes.roles.defer_signals import DeferSignals
from pkc.passes.roles.delay_signals import DelaySignals
from pkc.passes.roles.drop_prints import DropPrints
from pkc.passes.roles.expand_barriers import ExpandBarriers
from pkc.passes.roles.expand_fetch import ExpandFetch
from pkc.passes.roles.expand_reduce import ExpandReduce
from pkc.passes.roles.fuse_chains import FuseChains
from pkc.passes.roles.fuse_phases import FusePhases
from pkc.passes.roles.give_registers import GiveRegisters
from pkc.passes.roles.guard_launches import GuardLaunches
from pkc.passes.roles.insert_fences import InsertFences
from pkc.passes.roles.keep_tiles import KeepTiles
from pkc.passes.roles.load_once import LoadOnce
from pkc.passes.roles.look_ahead import LookAhead
from pkc.passes.roles.merge_channels import MergeChannels
from pkc.passes.roles.order_arrivals import OrderArrivals
from pkc.passes.roles.order_phases import OrderPhases
from pkc.passes.roles.order_tasks import OrderTasks
from pkc.passes.roles.overlap_mma import OverlapMma
from pkc.passes.roles.piece_gathers import PieceGathers
from pkc.passes.roles.piece_tiles import PieceTiles
from pkc.passes.roles.pipeline_mma import PipelineMma
from pkc.passes.roles.plan_boxes import PlanBoxes
from pkc.passes.roles.plan_cache import PlanCache
from pkc.passes.roles.plan_clusters import PlanClusters
from pkc.passes.roles.plan_epilogues import PlanEpilogues
from pkc.passes.roles.plan_fetch import PlanFetch
from pkc.passes.roles.plan_layouts import PlanLayouts
from pkc.passes.roles.plan_mma import PlanMma
from pkc.passes.roles.plan_overlap import PlanOverlap
from pkc.passes.roles.plan_packets import PlanPackets
from pkc.passes.roles.plan_padding import PlanPadding
from pkc.passes.roles.plan_queue import PlanQueue
from pkc.passes.roles.plan_stages import PlanStages
from pkc.passes.roles.plan_transfers import PlanTransfers
from pkc.passes.roles.plan_warps import PlanWarps
from pkc.passes.roles.release_shared import ReleaseShared
from pkc.passes.roles.repeat_tables import RepeatTables
from pkc.passes.roles.reuse_memory import ReuseMemory
from pkc.passes.roles.share_stages import ShareStages
from pkc.passes.roles.share_sums import ShareSums
from pkc.passes.roles.split_copies import SplitCopies
from pkc.passes.roles.split_loads import SplitLoads
from pkc.passes.roles.split_roles import SplitRoles
from pkc.passes.roles.split_stores import SplitStores
from pkc.passes.roles.spread_roles import SpreadRoles
from pkc.passes.roles.stage_axes import StageAxes
from pkc.passes.roles.stage_operands import StageOperands
from pkc.passes.roles.stage_packets import StagePackets
from pkc.passes.roles.stage_remote_reads import StageRemoteReads
from pkc.passes.roles.stage_remote_stores import StageRemoteStores
from pkc.passes.roles.stage_rows import StageRows
from pkc.passes.roles.stage_sums import StageSums
from pkc.passes.roles.straddle_shards import StraddleShards
from pkc.passes.roles.swap_operands import SwapOperands
from pkc.passes.roles.zero_sums import ZeroSums
from pkc.passes.tile.check_program import CheckProgram
from pkc.passes.tile.coarsen_tasks import CoarsenTasks
from pkc.passes.tile.collect_sums import CollectSums
from pkc.passes.tile.drop_clips import DropClips
from pkc.passes.tile.fold_columns import FoldColumns
from pkc.passes.tile.guard_tasks import GuardTasks
from pkc.passes.tile.guard_values import GuardValues
from pkc.passes.tile.hoist_loads import HoistLoads
from pkc.passes.tile.join_dimensions import JoinDimensions
from pkc.passes.tile.join_tasks import JoinTasks
from pkc.passes.tile.lift_sums import LiftSums
from pkc.passes.tile.load_quotients import LoadQuotients
from pkc.passes.tile.load_windows import LoadWindows
from pkc.passes.tile.order_scatters import OrderScatters
from pkc.passes.tile.pad_axes import PadAxes
from pkc.passes.tile.part_axes import PartAxes
from pkc.passes.tile.shift_blocks import ShiftBlocks
from pkc.passes.tile.simplify_arithmetic import SimplifyArithmetic
from pkc.passes.tile.skip_blocks import SkipBlocks
from pkc.passes.tile.split_blocks import SplitBlocks
from pkc.passes.tile.split_edges import SplitEdges
from pkc.passes.tile.split_loops import SplitLoops
from pkc.passes.tile.split_rows import SplitRows
from pkc.passes.tile.start_at_zero import StartAtZero
from pkc.passes.tile.store_own_sums import StoreOwnSums
from pkc.passes.tile.unroll_phases import UnrollPhases
from pkc.passes.tile.unroll_taps import UnrollTaps
from pkc.passes.tile.wrap_statements import WrapStatements
from pkc.targets import DEFAULT

TILE_PIPELINE: tuple[ModulePass, ...] = (
    CheckProgram(),  # first: findings speak of the program as it was written
    Cse(),  # equal blocks become one value, by which the patterns after it know them
    ShiftBlocks(),  # as the frontend spells them; before all that asks what moves by tables
    UnrollPhases(),  # before all that asks for the phases of a kernel
    GuardTasks(),  # what stood in loops is in front of it
    WrapStatements(),  # equal values are one; all that follows knows of tasks alone
    JoinTasks(),  # tasks are phases; all that follows knows how many indices each has
    LiftSums(),  # equal places are one value now; before patterns that let matmuls add into what loops carry
    PadAxes(),  # equal blocks are one value; before patterns that drop clips, and all that looks at edges
    Canonicalize(),  # matmuls add into their accumulator, clips of zero padding go
    SimplifyArithmetic(),  # equal constants are one value; at this level alone, whose bits the others keep
    DropClips(),  # padding is known as patterns left it; before all that looks at edges
    SplitBlocks(),  # sums stand behind what they add up; before all that looks at loops
    SplitRows(),  # whole rows have no clips; before all that looks at loops
    CoarsenTasks(),  # sums are lifted, and rows split: each task contributes once, and its tiles are what they stay
    StartAtZero(),  # matmuls add into what loops carry; before the next pass, which divides sums that begin at zero
    SplitLoops(),  # matmuls are operations that add; both levels must have the same order of additions
    CollectSums(),  # after sums are lifted: what a task contributes in a loop is one contribution
    StoreOwnSums(),  # what several tasks add is one contribution now; before all that tells sums from stores
    OrderScatters(),  # after sums are lifted, and loops split; before loads are hoisted: it has tasks of its own
    LoadQuotients(),  # blocks are what they stay; before loads are hoisted
    JoinDimensions(),  # blocks are what they stay; before loads are hoisted, of which each would go its own way
    UnrollTaps(),  # loops are divided where they are; before the next pass, which looks for constant places
    LoadWindows(),  # blocks are what they stay; before loads are hoisted, of which each would go its own way
    HoistLoads(),  # loops are what they stay; before the roles, which fetch and load where loads stand
    SkipBlocks(),  # masks are still operations of the loop's body
    FoldColumns(),  # behind what evaluates the bodies of loops; before their masks go into branches
    SplitEdges(),  # last of those that change arithmetic on tiles: they need not look into branches
    GuardValues(),  # loops compute what they stay to; it need not look into branches either
    Cse(),  # constants that folding made twice, those of splits and edges, loads that two loops share now
    PartAxes(),  # nothing merges any more what is equal; before roles, which pass on tiles that lie one way
    Dce(),  # what only merged operations used, or a loop in the tasks that add up its splits
)
"""From the IR that the frontend builds to the tile IR: what the program means."""

_TO_ROLES: tuple[ModulePass, ...] = (
    DropPrints(),  # first: no role prints, and no other pass needs to know of it
    PlanClusters(),  # before all that asks how much of a tile a CTA has; roles are not yet derived, an author's remain
    ExpandReduce(),  # what an author wrote in one word, before anything looks at accesses
    PieceTiles(),  # of each copy that is added there is a load; before anything is planned for tiles
    ExpandBarriers(),  # and at signals
    SpreadRoles(),  # of what an author wrote as roles everything is known; from here on they are as derived ones
    AlignRows(),  # tasks are what they stay; before phases get their numbers
    PlanOverlap(),  # first to plan: every later pass obeys what it writes on remote accesses
    StraddleShards(),  # tasks are what they stay before anything is derived from them; refuses by what is planned
    PlanPackets(),  # what is sent, and whether blocks straddle, is known; before what is sent gets its memory
    StageRows(),  # rows that tables name, before the operands that are left
    StageRemoteReads(),  # operands of other ranks, before sums: a staged operand may feed a sum
    PlanFetch(),  # transfers are known, and still one operation each, which takes all decisions about it
    ExpandFetch(),  # obeys that; before sums, which are derived from tasks that load what they add
    StageSums(),  # sums over ranks; now every transfer is a load, a store or a signal
    FusePhases(),  # of sums that are added up tile by tile; before all that looks at phases
    StagePackets(),  # stores in packets: the only ones left to other ranks that go through scratch memory
    ZeroSums(),  # the sums that are left are added where they live, in no order
    StageRemoteStores(),  # what copy engines send to other ranks, contributions to sums among it
    SwapOperands(),  # operands and results are what tasks load and store; before all that looks at tiles of roles
    Cse(),  # address arithmetic that the derived roles share
    Canonicalize(),
    Cse(),
    Dce(),  # what only replaced accesses used
    OrderArrivals(),  # what tables name is staged; before tasks get their numbers, and roles that all go through them
    BeginTogether(),  # of lists that wait as they will; before tasks get their numbers, too
    BalanceTasks(),  # of every role alike, and before the next pass, which numbers the other tasks by bands
    OrderTasks(),  # of every role alike, before they are split: roles of a CTA must go through the same tasks
    PieceGathers(),  # roles go through all their tasks; before tiles get their layouts, and roles their tables
    PlanBoxes(),  # gathers are final, and their tables not yet repeated; before the next pass, which looks for boxes
    ClipOperands(),  # of loads that are final; before the next pass, which looks for clips
    PlanPadding(),  # loads are final; before they are split from what uses them
    PlanCache(),  # tasks are whole: what they load again is seen in one place
    PlanLayouts(),  # of every tile of a kernel alike; before all that asks for the room of a stage
    RepeatTables(),  # of all accesses; before roles, of which each has its own tables
    AssignRoles(),  # needs the final accesses: reads load, writes store, the rest computes
    KeepTiles(),  # roles are known; before they are split, and each tile that is loaded has a stage
    SplitCopies(),  # communicators that move tiles; before the others, which share the rest of shared memory
    DelaySignals(),  # of the communicators that are left whole, whose threads go over tiles in chunks
    SplitRoles(),  # obeys the roles; values across roles go through channels
    StageOperands(),  # what comes through channels is known; computed operands get channels too
    StageAxes(),  # so do tiles that lie both ways; roles have all their operations
    SplitLoads(),  # channels are made; before passes that count roles, and add waits to each
    ShareSums(),  # tasks are split: consumers are the roles that have the registers
    ReuseMemory(),  # needs the roles and their phases; before the next ones, which obey it
    MergeChannels(),  # of the phases that share memory as a whole; before stages are counted, or shared by two channels
    OrderPhases(),  # needs every role of a phase, and where its tasks stand in it
    PlanTransfers(),  # needs the final roles: what a role does with a tile decides how it gets it
    PlanWarps(),  # roles are known, and do not change any more; needs the transfers, which threads carry out or start
    ShareStages(),  # needs the warps, which read and write rows of their own; before stages are counted
    LoadOnce(),  # channels are what they stay, but for the place of their operations; one stage is enough for them then
    PlanQueue(),  # roles and their tasks are what they stay; before stages, which have the rest of shared memory
    PlanStages(),  # channels are known, and which CTAs they share shared memory in
    GuardLaunches(),  # last to add signals: it must know every role that reaches another rank
    Cse(),  # integers that each role now computes for itself
    Dce(),
    SplitStores(),  # obeys the transfers; before all that looks at stores one by one
    PipelineMma(),  # needs the stages; before the next pass, which plans the MMAs that this one leaves
    OverlapMma(),  # of the loops that the last pass leaves; before the next one, which plans the MMAs that are left
    PlanMma(),  # needs the stages, of which an MMA in flight keeps one; before drains, which obey deferred releases
    PlanEpilogues(),  # MMAs and registers stay what they are; before chains, which what may wait has to be
    FuseChains(),  # needs the registers; releases and MMAs stand where they stay, and nothing merges what it repeats
    GiveRegisters(),  # what tiles need is final; warps and launches are what they stay
    LookAhead(),  # MMAs are issued and waited for where they stay, and in pieces where they are
    DeferSignals(),  # needs the transfers: only stores by TMA are still in flight when their role goes on
    ReleaseShared(),  # obeys what stages share; before the drains that releases need
    InsertFences(),  # last to change anything: it obeys the transfers, and nothing may move across what it places
    CheckRoles(),  # last: what every earlier pass must have left
)


def roles_pipeline(target: str = DEFAULT) -> tuple[ModulePass, ...]:
    """From tile IR to the roles level: roles that are joined by channels and signals."""
    return (AttachTarget(target), *_TO_ROLES)  # before all that asks for the target


def written_pipeline(target: str = DEFAULT) -> tuple[ModulePass, ...]:
    """From tile IR to roles as their author wrote them, which run once on each rank: for checks of what cannot be
    shared out among CTAs."""
    spread = (ExpandReduce, ExpandBarriers, SpreadRoles)
    return tuple(step for step in roles_pipeline(target) if not isinstance(step, spread))


ROLES_PIPELINE: tuple[ModulePass, ...] = roles_pipeline()
"""The same for the default target."""

_LOWERING: tuple[ModulePass, ...] = (
    CheckLowering(),  # first: what is refused is refused in the program's words
    RestartCounters(),  # before lowering: what waits are for; the host has no epochs
    SpreadRows(),  # what was said of clusters holds of CTAs from here on
    PlanMemory(),  # channels are final
    PlanBarriers(),  # and so are the warps of roles
    LowerTiles(),  # obeys it, and the warps, MMAs, registers and transfers planned before
    OverlapEpilogues(),  # obeys what is said on commits; before equal integers of different tasks could become one
    Cse(),  # addresses and extents that operations of one role share
    Dce(),
    RecomputeIntegers(),  # nothing merges what it repeats; it counts what is left
)

INSTRUMENTS: dict[str, tuple[ModulePass, ...]] = {
    "trace": (Trace(),),  # after all that could move what it measures
    "unguarded": (),
    "debug": (BoundWaits(),),  # after the trace, which knows waits by the instructions they were
}
"""What is done to a kernel at the machine level if it is asked for: to see inside of it while it runs, or to leave its
waits as they are. A debugged kernel bounds what guards bound, and more."""

_GUARDS: tuple[ModulePass, ...] = (GuardWaits(),)

BEFORE_LOWERING: dict[str, tuple[ModulePass, ...]] = {
    "debug": (CheckIndices(),),  # accesses are still operations of the roles level
}
"""What is added to a kernel at the roles level then."""


def machine_pipeline(instruments: Iterable[str] = ()) -> tuple[ModulePass, ...]:
    """From the roles level to the machine level, with some of `INSTRUMENTS`."""
    asked = set(instruments)
    added = (step for name, steps in INSTRUMENTS.items() if name in asked for step in steps)
    before = (step for name, steps in BEFORE_LOWERING.items() if name in asked for step in steps)
    return (
        *before,
        *_LOWERING,
        *added,
        *(_GUARDS if asked.isdisjoint(("unguarded", "debug")) else ()),  # after the trace, as `debug`
        CheckMachine(),  # last: the printer writes what is there, and decides nothing
    )


def with_limits(steps: Iterable[ModulePass], instruments: Iterable[str]) -> tuple[ModulePass, ...]:
    """The passes to the roles level of a kernel with some of `INSTRUMENTS`: its waits may have to end after a time."""
    limited = "debug" in instruments
    return tuple(PlanPackets(limited=limited) if isinstance(step, PlanPackets) else step for step in steps)


MACHINE_PIPELINE: tuple[ModulePass, ...] = machine_pipeline()
"""From the roles level to the machine level: what each thread does, in instructions of the kernel's target."""


FEWER_REGISTERS: tuple[ModulePass, ...] = (RecomputeIntegers(always=True), RebaseStages())
"""What a kernel of the machine level goes through if its registers spill, one after the other as long as they do."""


def _thunk(kind: type[ModulePass]) -> Callable[[], type[ModulePass]]:
    return lambda: kind


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    step.name: _thunk(type(step))
    for step in (*TILE_PIPELINE, *ROLES_PIPELINE, *machine_pipeline(INSTRUMENTS), *_GUARDS, *FEWER_REGISTERS)
}
"""Every pass by the name it has in `pkc opt -p`."""
