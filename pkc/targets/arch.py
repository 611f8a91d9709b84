"""What a GPU has, and how fast it is: the records of a target."""

from __future__ import annotations

import os
from dataclasses import dataclass

QUEUES = 8
"""Hardware queues of a GPU, unless `CUDA_DEVICE_MAX_CONNECTIONS` says otherwise."""


def hardware_queues() -> int:
    """How many streams of a process can run at the same time on one GPU."""
    return int(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS") or QUEUES)


@dataclass(frozen=True)
class Arch:
    """The resources of one GPU, as the CUDA C++ Programming Guide lists them by compute capability."""

    sms: int
    threads: int
    """The most that one CTA can have."""
    shared_memory: int
    """Bytes that one CTA can have, beside what the system reserves."""
    register_bytes: int
    registers: int
    """32-bit registers of one SM, all of which one resident CTA may have."""
    thread_registers: int
    """The most that one thread can address."""
    most_registers: int
    """The most that `setmaxnreg` is asked for: a multiple of 8 that leaves the compiler some; 0 without `setmaxnreg`,
    where every thread keeps the registers that its CTA is launched with."""
    named_barriers: int
    """Barriers of one CTA, 0 being that of `__syncthreads`."""
    mbarrier_bytes: int
    warp: int
    """Threads in a warp."""
    warpgroup: int
    """Warps in a warpgroup, which issue MMAs and change their registers together."""
    consumers: int
    """The most warpgroups of a consumer, unless the schedule says more: others would share the registers too thinly."""
    cache: int = 0
    """Bytes of the L2 cache."""
    cache_line: int = 128
    """Bytes of a line of it."""
    cluster: int = 1
    """The most CTAs of a cluster, which reach each other's shared memory, that every GPU of the kind has."""


@dataclass(frozen=True)
class Registers:
    """Registers of a thread, by what it does; all but `reserve` apply only where there is `setmaxnreg`."""

    moving: int
    """It starts copies within its GPU: addresses, coordinates, phases."""
    reaching: int
    """It also starts copies from or to other GPUs, or signals: addresses of ranks, counters, epochs."""
    dimension: int
    """More for each dimension beyond two of an array whose tiles it moves from or to other GPUs: a coordinate, an
    extent, a shard."""
    tile: int
    """More for each tile beyond a few that its tasks move within its GPU: an address, a stage, a phase."""
    adding: int
    """It also adds up tiles of ranks, some elements at a time, with loads in flight."""
    copying: int
    """It also computes where rows lie, or copies rows that a table names, beside two for the address of each of them,
    and as many as for a dimension for each further set of tasks."""
    carrying: int
    """It also carries tiles by its threads, many elements at a time."""
    holding: int
    """It starts copies on an SM with room for it, where it may defer signals."""
    idle: int
    """It does nothing: the fewest that `setmaxnreg` can leave it."""
    row: int
    """Elements of one row that all threads of a CTA have registers for."""
    reserve: int
    """Of a thread that computes, beside those of tiles: addresses, descriptors, counters of loops."""
    kept: float
    """The share of those of a thread that computes, beside those of tiles, which integers may take that loops keep."""
    chunked: int
    """Of a thread that goes over tiles in chunks, beside those of elements: addresses, counters, conditions."""
    beside: int
    """Of a thread that computes an epilogue beside the MMAs of the next task, beside those of elements."""
    named_row: int
    """More for the address of a chunk that follows from a table, and for whether it exists."""


@dataclass(frozen=True)
class Rates:
    """How fast a GPU is, for estimates: what one SM does in a nanosecond, and how long single things take."""

    clock: float
    """Cycles of an SM in a nanosecond, while all of them run MMAs: more take more power than there is."""
    boost: float
    """The same while MMAs wait for what they multiply."""
    boosted: tuple[float, float]
    """Between so many nanoseconds of MMAs ranks that add up what they multiply have the rates `mmas_over_ranks`: power
    lasts so long, and fewer are not what takes time."""
    mmas_over_ranks: tuple[tuple[str, float], ...]
    """Rates that are others there."""
    mma_flops: float
    """Floating-point operations of 16-bit MMAs that an SM completes in a cycle; twice as many of 8 bits."""
    lanes: float
    """Instructions of full throughput, for one element each, that an SM's threads carry out in a cycle."""
    special: float
    """Results of special-function units in a cycle of an SM."""
    dependent: float
    """Nanoseconds of each iteration whose MMAs need one another, beside what overlaps: results go to threads, of which
    each row has several, and what these compute goes back."""
    exposed: float
    """What warpgroups fail to compute beside the MMAs of others, as a fraction, where their own are not pipelined."""
    alone: float
    """The same of a single warpgroup whose own are pipelined."""
    beside: float
    """What MMAs lose, as a share of what warpgroups compute with the results of one of their own beside those of
    others."""
    awaited: float
    """The same where operands come from other ranks, or results go there: from eleven times with scales of blocks."""
    converted: float
    """Instructions of full throughput for an element of an operand of an MMA that threads compute, beside those that
    compute it: it is read from a stage, and made one of a pair."""
    converting: float
    """Nanoseconds of each iteration in which no MMA runs because threads begin to compute operands."""
    converting_alone: float
    """The same of a single warpgroup."""
    shared_bytes: float
    """Bytes that shared memory takes and gives in a cycle: what TMA writes there and wgmma reads."""
    load_bytes: float
    """Bytes that an SM gets from the L2 cache in a nanosecond."""
    load_row: float
    """Nanoseconds for each row of a TMA box, of at most 128 bytes."""
    outside_row: float
    """Nanoseconds for each row of a TMA box that lies outside of its array, and is filled with zeros."""
    line: float
    """Nanoseconds for each line of the L2 cache that rows of TMA boxes touch, with loads of all SMs in flight."""
    line_shared: float
    """The share of these that fewer SMs would take less of, as many as they are fewer."""
    outside_line: float
    """The same of each row of at most 128 bytes that lies outside of its array."""
    least_iteration: float
    """Nanoseconds of an iteration for each MMA, whatever it loads: loader and consumer wait for one another."""
    stream_iteration: float
    """Nanoseconds of an iteration that streams operands beside its loads and MMAs."""
    scaled_iteration: float
    """The same where two warpgroups use products in it: one begins while the other multiplies."""
    warpgroup: float
    """Nanoseconds of a launch for each warpgroup of consumers beyond the first."""
    copied_chunks: float
    """Nanoseconds in which a warp starts copies of a chunk of 16 bytes for each of its threads."""
    load_begins: float
    """Nanoseconds of the thread that loads, for each tile of an iteration that has no MMAs to wait for."""
    load_latency: float
    """Nanoseconds until a box is there, with many in flight."""
    stream_latency: float
    """The same, of what other launches have left in the L2 cache."""
    alike: float
    """How many times as long tiles take to arrive if all SMs ask for one at the same time, and then wait for it."""
    memory_bytes: float
    """Bytes that the GPU gets from its memory in a nanosecond."""
    cache_bytes: float
    """The same, of what other launches have left in the L2 cache."""
    link_bytes: float
    """Bytes that a GPU sends to its peers in a nanosecond."""
    pulled_bytes: float
    """Bytes of other GPUs that it fetches in a nanosecond, by all SMs or copy engines."""
    iteration: float
    """Nanoseconds of each iteration of a pipelined loop beside its loads and MMAs: its barriers."""
    task: float
    """Nanoseconds between the last MMA of a task and the first of the next: the result goes into its stage."""
    add_bytes: float
    """Bytes of contributions to a sum that an SM adds up in a nanosecond."""
    add_bytes_beside: float
    """The same of the warps that do so beside MMAs."""
    copy: float
    """Nanoseconds until one tile that is fetched from another GPU is stored and announced."""
    fetch_bytes: float
    """Bytes that an SM which only communicates fetches in a nanosecond, several tiles at a time."""
    announce: float
    """Nanoseconds until a tile that was sent to another GPU is there and signalled, before the next one is sent."""
    signal: float
    """Nanoseconds until another GPU sees a signal."""
    packet: float
    """Nanoseconds until another GPU has an element that is stored with the epoch."""
    packet_row: float
    """Bytes of the link that each row of packets takes beside its own."""
    receive_bytes: float
    """Bytes of elements that the threads of a warp take from packets in a nanosecond."""
    launch: float
    """Nanoseconds of a launch without any work."""
    launch_behind: float
    """The same behind another launch, whose end hides the rest: beside it schedules of streams are compared."""
    flow_launch: float
    """The same of kernels without MMAs, with one warpgroup, beside which their schedules are compared."""
    flow_warpgroup: float
    """Nanoseconds of such a launch for each further warpgroup."""
    flow_task: float
    """Nanoseconds of the threads for each task of such a kernel, beside what they compute."""
    flow_line: float
    """Nanoseconds of an SM for each line of the L2 cache that the rows of its tiles touch, loaded or stored."""
    flow_panel: float
    """The same for each panel of a tile: what a box has of a row."""
    flow_moved: float
    """Instructions for each element that threads move from or to a stage."""
    flow_row: float
    """Instructions for each element of rows that threads reduce, beside those of the program."""
    flow_issue: float
    """The share of an SM's instructions that one warpgroup issues: its threads wait for what they need."""
    flow_latency: float
    """Nanoseconds of a tile of such a kernel beside its lines and panels, which its stages hide."""
    engine_copy: float
    """Nanoseconds that each task of a copy engine takes beside its time on the link."""
    enqueue: float
    """Nanoseconds of the host for each call that enqueues something for a copy engine."""
    while_fetching: float
    """How much longer MMAs take, as a fraction, while SMs store what they fetch from other GPUs."""
    rows_beside: float
    """Bytes that MMAs lose a nanosecond by where the SMs copy them meanwhile, in rows that tables name."""
    error_of_mmas: float
    """The share by which estimates of kernels with MMAs are off."""
    error_of_exchanges: float
    """The same of kernels without MMAs whose tiles go to other ranks."""
    error_of_others: float
    """The same of other kernels without MMAs."""


@dataclass(frozen=True)
class Rate:
    """What an operation takes of an SM's threads for each element: instructions of full throughput that take as long,
    and those of special-function units; `error` is the share by which either may be more."""

    lanes: float
    special: float = 0.0
    error: float = 0.0


ANY = Rate(1.0, error=1.0)
"""Of an operation of which nothing is known but that it works element by element."""


@dataclass(frozen=True)
class Threads:
    """How much of something a thread takes on at once, so that it waits for as little as possible."""

    elements: int
    """Elements of a tile that meets no MMA for which a thread is enough."""
    chains: int
    """The most registers in which it reduces what it has of a row, a power of two: an operation need not wait for the
    one before."""
    chunks: int
    """The most chunks of a tile that it works on at once in a role without a warpgroup, a power of two."""
    iterations: int
    """Iterations of a loop there whose loads are in flight at once."""
    singles: int
    """Elements that it loads one by one, on their way to shared memory, where it has registers for so many."""
    loads: int
    """Chunks that it loads, on their way to shared memory, before it waits for the first of them."""
    copies: int
    """Chunks of rows of a table whose addresses it has looked up before it starts to copy the first of them, a power of
    two: where the next ones are it has not to wait for."""
    table_loads: int
    """Loads of 16 bytes of a table that it has in flight."""
    slots: int
    """Rows of slots that it has in flight."""
    slot_chunks: int
    """Chunks of 16 bytes of each of them."""
    addresses: int
    """The most rows whose addresses it keeps from one iteration of a loop to the next."""
    kept: int
    """The most elements of a row or a column beside MMAs that it keeps in registers; more are read where they are
    used."""
    quotients: int
    """Elements that it divides by one, from which on a reciprocal is worth its instructions."""


@dataclass(frozen=True)
class Tuning:
    """What planning passes and the autoschedule choose by measurements of a GPU. No result depends on it."""

    loop_stages: int
    """Stages of loops before a tile of each task gets a second one: with fewer, loads and MMAs do not overlap."""
    most_stages: int
    """As many stages of the smallest tiles as keep memory busy; each costs two barriers."""
    awaited_tiles: int
    """The fewest fetched tiles that a reader awaits at once: it looks at a counter for as long as some MMAs take."""
    awaited_bytes: int
    """Bytes of fetched tiles that a reader awaits at once, if they are smaller: they come as fast as larger ones."""
    carriers: int
    """Warps of a role whose threads carry tiles between global and shared memory, if there is room."""
    copies: int
    """Tiles from other GPUs that an SM has in flight if it only communicates."""
    copied_bytes: int
    """Bytes of such tiles that an SM has in flight, at least one tile, if it also computes."""
    copied_piece: int
    """Bytes of the pieces in which rows that tables name come there."""
    stores: int
    """Iterations of a communicator whose stores are in flight."""
    read_stages: int
    """Stages of a communicator that these stores may still read."""
    signals: int
    """Deferred signals that share a release, which waits for memory and takes longer than several tiles."""
    store_bytes: int
    """Bytes of the boxes of a store to another GPU: as long as these wait for the link, so do loads behind them."""
    band: int
    """Rows of a band of tasks: those and as many columns as there are CTAs for stay in the L2 cache together."""
    aligned_rows: int
    aligned_bytes: int
    """Rows of what a task copies to rows that TMA moves, and the bytes of these."""
    fetched_rows: int
    """Rows whose first groups of tiles are fetched before their second ones: about those computed at a time."""
    arrival_columns: int
    """Columns of a matmul that takes a GPU as long, for each row, as the link takes to fetch that row."""
    leading_blocks: int
    """The fewest blocks of a list of tasks that are worth loading again what all blocks of the list share."""
    cluster_part: int
    """The fewest elements of a row that each CTA of a cluster has: all lanes of a warp have some of them."""
    summed_rows: int
    """Rows that a task adds up: few, so that tasks end together; enough for two warps with 16 bytes for each thread."""
    inverted_rows: int
    """Rows whose entries of a table a task lists: a warp for each half of them, so that many SMs have some."""
    piece_columns: int
    """The fewest columns of a piece of an MMA: with fewer, tensor cores wait for the left operand, which each piece
    reads again, and smaller tiles are faster."""
    row_panels: int
    """Panels of a tile of one row from which on one box of TMA for all of them is worth a dimension more."""
    panels: int
    """The same of a tile of several rows."""
    box_part: int
    """Bytes of a part of a row from which on boxes have several: TMA moves shorter ones no faster than boxes of one."""
    group: int
    """Elements of a chain of many instructions that a thread computes beside each other: of all at once the compiler
    begins many, and has no registers left to go on with several of them side by side."""
    long_chain: float
    """Instructions for each element from which on a chain is computed so."""
    later_chain: float
    """Instructions for each element, or cycles in which special-function units take as long, from which on the end of
    an epilogue is computed beside the MMAs of the next task."""
    later_lanes: float
    """The most instructions of full throughput for that: more hold up the MMAs as long as they take by themselves."""
    later_piece: int
    """Elements of it that a thread computes in an iteration: its MMAs take longer than these."""
    gain: float
    """Other tiles than the program's, and then straddling blocks, are taken if they need at most this share of the
    time: estimates are no better."""
    gain_over_ranks: float
    """The same where several ranks multiply and exchange."""
    gain_of_pointwise: float
    """The same for tiles that are measured to be the best ones: their estimate may be worse."""
    gain_of_chains: float
    """The same for tiles of loops whose MMAs need one another: only what overlaps differs."""
    gain_of_straddling: float
    """The same for blocks of operands that are fetched from several ranks, and so awaited from all of these."""
    gain_of_copies: float
    """The same for copy engines with the same tiles, in kernels that take long: the error of both estimates is alike,
    so less gain is enough."""
    gain_of_all_rows: float
    """The same for copy engines that fetch all rows where tables name some: what threads take to load rows that lie
    here is estimated to be longer than it is."""
    gain_of_separate: float
    """The same for SMs that only fetch for MMAs which need one another: copies beside these cost more than is
    estimated, so they may seem to lose."""
    gain_of_splits: float
    """The share of the time, a launch aside, that splits may need: another phase awaits all tasks of the one before."""
    idle: float
    """How many times as long as for memory an SM has to compute for that splits are tried."""
    splits_from: float
    """Nanoseconds of a kernel, its launch aside, from which on splits are tried: to merge them takes some."""
    equal: float
    """Estimates that differ by less than this factor are as good as equal."""
    as_busy: float
    """Work for SMs that differs by less than this factor is as much: edges of tiles are estimated no better."""
    as_busy_streams: float
    """The same of streams that memory or power limits alike."""
    stream_stages: int
    """Stages that streams want: with one in use and one that MMAs in flight keep, another is loaded."""
    separate_sms: tuple[int, ...]
    """Numbers of SMs that only fetch operands, of which the autoschedule tries each."""
    engines_from: float
    """Nanoseconds of a kernel from which on less gain is enough for copy engines, for which the host enqueues calls."""
    one_shot_to: float
    """Nanoseconds on the link of what every rank adds up itself, up to which no gain is asked of it."""
    packets_to: float
    """Nanoseconds of a kernel up to which packets are tried."""
    packets_twice_to: float
    """The same of one that only gives all ranks sums: threads receive contributions, and then the sums of others."""
