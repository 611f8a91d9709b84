"""Hand-written kernels for tests of the runtime; pkc generates nothing of them."""

from __future__ import annotations

from dataclasses import replace

from pkc.codegen.artifact import (
    ArrayParameter,
    Artifact,
    Base,
    Dimension,
    Epochs,
    Field,
    HeapStride,
    RankField,
    Scalar,
    SignalParameter,
    TensorMaps,
)
from pkc.codegen.nvrtc import compile_cuda

TILE = 64
"""Rows and columns of a tile."""

SHARED_BYTES = 100 << 10
"""More than a kernel may have unless its launcher says so."""

_HEAD = """
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(128) TensorMap { char bytes[128]; };

static __device__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
static __device__ u32 load_relaxed(u64 p) {
    u32 v; asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v;
}
static __device__ void add_release(u64 p) {
    asm volatile("red.release.sys.global.add.u32 [%0], 1;" :: "l"(p) : "memory");
}
static __device__ void wait_for(u64 p, u32 count) {
    while ((int)(load_relaxed(p) - count) < 0) {}
    asm volatile("fence.acquire.sys;" ::: "memory");
}
static __device__ void load_box(const TensorMap& map, u32 to, u32 barrier, int x, int y, int z, u32 bytes) {
    asm volatile("fence.proxy.async.global;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" :: "r"(to), "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}
static __device__ void store_box(const TensorMap& map, u32 from, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
        :: "l"(&map), "r"(from), "r"(x), "r"(y), "r"(z) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
static __device__ void barrier_init(u32 barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ void barrier_wait(u32 barrier, u32 parity) {
    u32 done = 0;
    while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}
static __device__ float widen(unsigned short bits) { return __uint_as_float((u32)bits << 16); }
static __device__ unsigned short narrow(float value) { return __float_as_uint(value) >> 16; }
"""

_PASS_ON = (
    _HEAD
    + """
struct alignas(128) Args {
    TensorMap X_map[2]; TensorMap Y_map[2];
    u64 Y_base; u64 Z_base; u64 arrived; u64 left; u64 heap_stride; u64 epochs;
    float scale; int rank; int ranks; int M;
};
// A tile of the next rank's X, times `scale`, into the Y of the rank after that; what arrives in Y here, into Z.
extern "C" __global__ void __launch_bounds__(128, 1) pass_on(const __grid_constant__ Args args) {
    extern __shared__ __align__(1024) unsigned short tile[];
    const u32 full = shared_address(tile + 64 * 64);
    const u64 counter = args.epochs + 4ull * blockIdx.x;
    const u32 epoch = load_relaxed(counter) + 1;
    if (threadIdx.x == 0) barrier_init(full);
    __syncthreads();
    const int source = (args.rank + 1) % args.ranks, target = (args.rank + 2) % args.ranks;
    const u64 here = (u64)args.rank * args.heap_stride;
    u32 parity = 0;
    for (int t = blockIdx.x; t * 64 < args.M; t += gridDim.x, parity ^= 1) {
        if (threadIdx.x == 0) load_box(args.X_map[0], shared_address(tile), full, 0, t * 64, source, 64 * 64 * 2);
        barrier_wait(full, parity);
        for (int i = threadIdx.x; i < 64 * 64; i += 128) tile[i] = narrow(widen(tile[i]) * args.scale);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            store_box(args.Y_map[0], shared_address(tile), 0, t * 64, target);
            add_release(args.arrived + (u64)target * args.heap_stride + 4ull * t);
            wait_for(args.arrived + here + 4ull * t, epoch);
        }
        __syncthreads();
        const int rows = min(64, args.M - t * 64);
        for (int i = threadIdx.x; i < rows * 64; i += 128) {
            unsigned short bits;
            asm volatile("ld.global.b16 %0, [%1];" : "=h"(bits) : "l"(args.Y_base + here + 2ull * (t * 4096 + i)));
            ((float*)args.Z_base)[t * 4096 + i] = widen(bits);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        for (int r = 0; r < args.ranks; ++r) add_release(args.left + (u64)r * args.heap_stride);
        wait_for(args.left + here, epoch * args.ranks * gridDim.x);
        *(u32*)counter = epoch;
    }
}
"""
)

_COLLECT = (
    _HEAD
    + """
struct alignas(128) Args { TensorMap A_map[2]; u64 Z_base; int rank; int ranks; int M; };
// All shards of A, of which each rank has one or this rank has all, one after the other into Z.
extern "C" __global__ void __launch_bounds__(128, 1) collect(const __grid_constant__ Args args) {
    extern __shared__ __align__(1024) unsigned short tile[];
    const u32 full = shared_address(tile + 64 * 64);
    if (threadIdx.x == 0) barrier_init(full);
    __syncthreads();
    const int shard = (args.M + args.ranks - 1) / args.ranks, whole = args.M / shard;
    u32 parity = 0;
    for (int p = blockIdx.x; p * shard < args.M; p += gridDim.x) {
        const int length = min(shard, args.M - p * shard), last = p >= whole;
        for (int row = 0; row < length; row += 64, parity ^= 1) {
            if (threadIdx.x == 0)
                load_box(args.A_map[last], shared_address(tile), full, 0, row, last ? 0 : p, 64 * 64 * 2);
            barrier_wait(full, parity);
            const int rows = min(64, length - row);
            for (int i = threadIdx.x; i < 64 * 64; i += 128) {
                if (i < rows * 64) ((float*)args.Z_base)[(p * shard + row) * 64 + i] = widen(tile[i]);
                else if (widen(tile[i]) != 0) __trap();  // beyond a shard TMA gives zeros
            }
            __syncthreads();
        }
    }
}
"""
)

_STALL = (
    _HEAD
    + """
struct alignas(128) Args { u64 never; u64 heap_stride; int rank; int seconds; };
// Waits for a signal that nobody sends, though not for ever.
extern "C" __global__ void __launch_bounds__(32, 1) stall(const __grid_constant__ Args args) {
    u64 begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (!load_relaxed(args.never + args.rank * args.heap_stride) && now - begin < args.seconds * 1000000000ull);
}
"""
)

_RANKS: tuple[Field, ...] = (RankField("rank", "rank"), RankField("ranks", "ranks"))


def pass_on() -> Artifact:
    """Z of rank r is `scale` times the X of rank r - 1, through the Y of rank r: peer load, peer store, signals."""
    return _artifact(
        "pass_on",
        _PASS_ON,
        arrays=(
            ArrayParameter("X", "bf16", ("M", TILE), "symmetric", None, False),
            ArrayParameter("Y", "bf16", ("M", TILE), "symmetric", None, True),
            ArrayParameter("Z", "f32", ("M", TILE), "private", None, False),
        ),
        signals=(SignalParameter("arrived", (("M", TILE),)), SignalParameter("left", (1,))),
        fields=(
            TensorMaps("X_map", "X", (TILE, TILE, 1), 0, None),
            TensorMaps("Y_map", "Y", (TILE, TILE, 1), 0, None),
            Base("Y_base", "Y"),
            Base("Z_base", "Z"),
            Base("arrived", "arrived"),
            Base("left", "left"),
            HeapStride("heap_stride"),
            Epochs("epochs"),
            Scalar("scale", "scale", "f32"),
            *_RANKS,
            Dimension("M", "M"),
        ),
    )


def collect(*, private: bool) -> Artifact:
    """Z is all of A, whose shards are read through the two maps of a split dimension."""
    kind = ("private", None) if private else ("shard", 0)
    return _artifact(
        "collect",
        _COLLECT,
        arrays=(
            ArrayParameter("A", "bf16", ("M", TILE), kind[0], kind[1], False),
            ArrayParameter("Z", "f32", ("M", TILE), "private", None, False),
        ),
        fields=(
            TensorMaps("A_map", "A", (TILE, TILE, 1), 0, 0),
            Base("Z_base", "Z"),
            *_RANKS,
            Dimension("M", "M"),
        ),
    )


def stall() -> Artifact:
    """Runs for `seconds`."""
    fields = (Base("never", "never"), HeapStride("heap_stride"), _RANKS[0], Scalar("seconds", "seconds", "i32"))
    kernel = _artifact("stall", _STALL, fields=fields, signals=(SignalParameter("never", (1,)),))
    return replace(kernel, threads=32)


def _artifact(
    name: str,
    source: str,
    *,
    fields: tuple[Field, ...],
    arrays: tuple[ArrayParameter, ...] = (),
    signals: tuple[SignalParameter, ...] = (),
) -> Artifact:
    cubin = compile_cuda(source, "sm_90a", name).cubin
    return Artifact(name, "sm_90a", cubin, arrays, signals, fields, 128, SHARED_BYTES, 1, 0)
