"""What H100 and H200 (SXM) have, and how fast H200 is."""

from __future__ import annotations

from pkc.targets.arch import Arch, Rates, Registers, Threads, Tuning

ARCH = Arch(
    sms=132,
    threads=1024,
    shared_memory=232448,
    register_bytes=4,
    registers=65536,
    thread_registers=255,
    most_registers=240,
    named_barriers=16,
    mbarrier_bytes=8,
    warp=32,
    warpgroup=4,
    consumers=2,
    cache=50 << 20,
    cluster=8,
)
"""CUDA C++ Programming Guide, technical specifications; SMs of the SXM boards."""

REGISTERS = Registers(
    moving=32,
    reaching=40,
    dimension=8,
    tile=2,
    adding=120,
    copying=88,
    carrying=104,
    holding=112,
    idle=24,
    row=49152,
    reserve=20,
    kept=0.38,
    chunked=20,
    beside=40,
    named_row=4,
)
"""As many as ptxas needs without spills, two of which it never uses. 24 are too few for the loader of four-dimensional
arrays, and more of fewer movers is of no use: three warpgroups of consumers have 160 with movers of 32. The loader of a
GRU cell, of 12 tiles, spills with 48, and does not with 56. With 120 a thread that adds up tiles has four chunks of
each of four ranks in flight, with 80 two (bench/results/passes/adding_x2.json). Attention of all kinds and sizes that
are measured spills with 0.42 of `kept` and more, and does not with 0.35."""

H200 = Rates(
    clock=1.5,
    boost=1.98,
    boosted=(5_000, 70_000),
    # GEMM + RS and GEMM + AR: 880 times at 97 shapes on two H200 (bench/results/schedules/regret_*_x2.json). Fitted to
    # a half of the shapes, such rates make the other half lose a fifth less.
    mmas_over_ranks=(("boost", 1.85), ("load_bytes", 105), ("load_latency", 1150)),
    mma_flops=4096,
    # CUDA C++ Programming Guide, throughput of native arithmetic instructions.
    lanes=128,
    special=16,
    dependent=170,
    exposed=0.1,
    alone=0.25,
    beside=0.6,
    awaited=0.3,
    converted=2.5,
    converting=120,
    converting_alone=120,
    shared_bytes=128,
    load_bytes=85,
    load_row=1.0,
    outside_row=4.3,
    # 1239 times of three kernels at 90 shapes on one H200, launches one after the other, with other stages and
    # warpgroups too (bench/results/schedules/regret_*_x1.json).
    line=0.74,
    line_shared=0.33,
    outside_line=3.3,
    least_iteration=85,
    stream_iteration=48,
    scaled_iteration=16,
    warpgroup=650,
    copied_chunks=44,
    load_begins=90,
    load_latency=1000,
    stream_latency=240,
    alike=3.0,
    memory_bytes=4300,
    cache_bytes=7600,
    # All-gathers of 1 GiB: 361 on 2 H200, 347 on 4 H100; of 128 MiB 335 and 327. Reduce-scatters and all-reduces of
    # 1 GiB: 318 and 350 on those 2, 337 and 345 on these 4.
    link_bytes=345,
    # Of what is fetched, on H200; not measured since.
    pulled_bytes=311,
    iteration=15,
    task=500,
    add_bytes=60,
    # GEMM + RS 8192 x 8192 x 2048 on two H200, which that limits: 0.279 ms.
    add_bytes_beside=3.5,
    copy=1700,
    fetch_bytes=38,
    announce=2000,
    signal=900,
    packet=1300,
    packet_row=60,
    receive_bytes=1.5,
    launch=6000,
    launch_behind=2400,
    # 362 times near the best of kernels of rows and elementwise ones at 68 shapes, in nine of these files: least
    # squares of their logarithms, those of a shape beside each other, the slower the less, fitted by hand. With the
    # rates of eight files, at the shapes of the one left out, each in turn, rows lose 0.76 per cent in the mean and 4.0
    # at worst, elementwise kernels 1.3 and 17.
    flow_launch=2050,
    flow_warpgroup=242,
    flow_task=178,
    flow_line=0.47,
    flow_panel=13.8,
    flow_moved=0.76,
    flow_row=0.09,
    flow_issue=0.57,
    flow_latency=26,
    engine_copy=4500,
    enqueue=3000,
    while_fetching=0.13,
    # Dispatch of 4096, 8192 and 32768 tokens on 4 H100: 0.13, 0.23 and 0.51 ms more than the grouped matmul alone for
    # 0.12, 0.23 and 0.94 GB.
    rows_beside=1000,
    # tests/cost/test_estimate.py; without MMAs nothing was measured: 500 ns for each task are those of a matmul.
    error_of_mmas=0.14,
    # Collectives on 2 GPUs with tiles of 128 x 256, 16 x 256 and 8 x 128, 16 KiB to 1 GiB.
    error_of_exchanges=0.25,
    error_of_others=0.5,
)
"""Measured on H200 SXM (docs/performance.md)."""

TUNING = Tuning(
    loop_stages=4,
    most_stages=32,
    # Looking at a counter takes as long as the MMAs of two tiles of 128 x 64.
    awaited_tiles=8,
    awaited_bytes=8 * 128 * 64 * 2,
    carriers=2,
    # If 8 SMs pull at the rate of the link, 40 GB/s each, a copy is in flight for 2 to 3 us: 5 to 8 tiles of 16 KB that
    # are loaded, and up to 4 that stores still read or have not released.
    copies=12,
    # A tile of 128 x 64, or some smaller ones.
    copied_bytes=16 * 1024,
    # Rows of other GPUs take some microseconds to come, and are stored when they are there.
    copied_piece=2 * 1024,
    # At 40 GB/s for each SM a tile of 16 KB takes 0.4 us, a store 1 us.
    stores=3,
    # Reading a stage takes as long as filling it.
    read_stages=3,
    signals=8,
    store_bytes=2048,
    band=8,
    aligned_rows=16,
    aligned_bytes=2048,
    fetched_rows=16,
    # 2 bytes at 380 GB/s, and 2 FLOPs for each column at 750 TFLOP/s; of half and twice as many, 3 and 0.5 per cent
    # slower (dispatch of 32,768 tokens on 2 H100).
    arrival_columns=2048,
    # Weights of an expert are loaded as fast as a matmul of 160 to 230 rows is computed.
    leading_blocks=2,
    cluster_part=512,
    summed_rows=32,
    inverted_rows=64,
    piece_columns=128,
    # 4 x 4096 elements in 16 panels took 2 per cent longer in one box.
    row_panels=8,
    panels=32,
    box_part=64,
    # GELU by `erf` on 128 x 256: cycles in which a warp may not issue are 4683 of all at once, 2882 of 32, 2943 of 16.
    group=32,
    long_chain=16,
    later_chain=9,
    # GEMM of 8192 with half of its epilogue beside the next task: of SiLU, 9 of them, 0.6 to 1.1 per cent faster, of
    # others, 10 and 12, 0.9 to 1.2 per cent, and of one with `erf`, 22, 0.6 to 1.1 per cent slower.
    later_lanes=12,
    # 8 elements of two warps of SiLU take half as long as the MMAs of 64 x 256 x 64.
    later_piece=8,
    gain=0.93,
    gain_over_ranks=0.96,
    gain_of_pointwise=1.05,
    gain_of_chains=0.995,
    # All-gather + GEMM of 16 and 64 rows on 4 H200, with blocks of 2 ranks: 0.83 and 0.88 of the time as estimated, and
    # 1.13 and 1.14 as measured (bench/results/schedules/ag_gemm_joined_x4.json).
    gain_of_straddling=0.8,
    gain_of_copies=0.97,
    # Dispatch to 256 experts: copy engines lose 6 to 16 % on 4 H100, where they are estimated to lose 20 to 28; on 2,
    # where these estimates are 8 to 10 %, they fetch a fourth of the rows that lists would.
    gain_of_all_rows=1.15,
    # Ring attention on 2 GPUs: where 4 SMs of their own seem as fast as copies beside, they are by up to a fifth.
    gain_of_separate=1.03,
    gain_of_splits=0.85,
    idle=1.2,
    splits_from=8_000,
    equal=1.03,
    as_busy=1.01,
    as_busy_streams=1.05,
    stream_stages=3,
    # Fetching by SMs slows MMAs by a tenth where these are at the limit of power, as after a millisecond; at 0.37 ms
    # copy engines lose 2 per cent, at 2.9 ms they gain 5.
    separate_sms=(4, 8, 16, 24),
    engines_from=1e6,
    # GEMM + all-reduce at 66 shapes on two H200: each rank that adds up everything saves 2 to 4 us, and takes 1 us more
    # for each MB.
    one_shot_to=8e3,
    packets_to=6e4,
    # An all-reduce of 1 MiB on 4 H200 is estimated to take 22 us, in packets 20: measured, it takes 18.9 and 21.3.
    packets_twice_to=2.1e4,
)
"""Measured on H200 SXM (docs/performance.md)."""

THREADS = Threads(
    elements=32,
    chains=4,
    chunks=8,
    iterations=4,
    loads=4,
    singles=16,
    # The combine of moe_mlp took 1.2 ms on 4 H100 with four, of which 0.6 are those of the link.
    copies=16,
    table_loads=8,
    slots=4,
    slot_chunks=4,
    addresses=32,
    kept=16,
    quotients=8,
)
"""Chosen for kernels of H200 SXM; none was measured by itself."""
