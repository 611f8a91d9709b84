"""The instructions of sm_90a that pkc emits: one entry each, with operands, text, and what it does.

An entry becomes a `__device__` function of the generated CUDA C++, and `pk.instruction` names it. Text is inline
PTX (PTX ISA 9.0) or a CUDA built-in. Where PTX has a family (shapes, numbers of dimensions, counts that must be
immediate), `instruction` makes the entry that a name asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from pkc.targets.instruction import Instruction
from pkc.targets.sm_90a.arch import ARCH


def _asm(ptx: str, outputs: str = "", inputs: str = "", *, memory: bool = True) -> str:
    clobbers = ' : "memory"' if memory else ""
    return f'asm volatile("{ptx}" : {outputs} : {inputs}{clobbers});'


def _pure(ptx: str, inputs: str, kind: str = "float", constraint: str = "f") -> str:
    return f'{kind} r; asm("{ptx}" : "={constraint}"(r) : {inputs}); return r;'


def _bounded(setup: str, look: str, give_up: str, stop: str, limit: str, *, every: int = 1) -> str:
    """Look until something is there, which gives 0, or give up, which gives why.

    It gives up after `limit` nanoseconds, or a millisecond after another did: by then what was in flight is complete.
    """
    return (
        f"{setup} unsigned long long first = 0, end = 0; int why = 0; for (unsigned n = 0;; ++n) {{ {look}"
        f" if (n % {every}) continue; unsigned long long now; unsigned s;"
        ' asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory"); if (!first) first = now;'
        f' asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(s) : "l"({stop}) : "memory");'
        " if (!why && s) { why = 2; end = now + 1000000; }"
        f" if (!why && now - first > {limit}) {{ why = 1; end = now; }} {give_up} }}"
    )


_TRY = (
    'asm volatile("{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\n'
    'selp.u32 %0, 1, 0, p;\\n}" : "=r"(p) : "r"(a), "r"(b) : "memory");'
)

PLAIN: tuple[Instruction, ...] = (
    Instruction("thread_number", (), "index", "return threadIdx.x;", "number of this thread in its CTA"),
    Instruction("cta_number", (), "index", "return blockIdx.x;", "number of this CTA in the grid"),
    Instruction("cta_count", (), "index", "return gridDim.x;", "CTAs of the grid"),
    Instruction("sync_threads", (), None, "__syncthreads();", "barrier over all threads of the CTA"),
    Instruction("sync_warp", (), None, "__syncwarp();", "barrier over the threads of a warp, with memory order"),
    Instruction(
        "shared_base",
        (),
        "index",
        "extern __shared__ __align__(1024) unsigned char shared[];"
        ' unsigned a; asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(shared));'
        " return (a + 1023) & ~1023;",
        "address of the dynamic shared memory, at a multiple of 1024",
    ),
    Instruction(
        "prefetch_map",
        ("map",),
        None,
        _asm("prefetch.tensormap [%0];", "", '"l"(&a)'),
        "prefetches the tensor map a into the cache",
    ),
    # mbarrier (PTX ISA: Parallel Synchronization and Communication Instructions, mbarrier)
    Instruction(
        "mbarrier_init",
        ("index", "index"),
        None,
        _asm("mbarrier.init.shared::cta.b64 [%0], %1;", "", '"r"(a), "r"(b)'),
        "barrier at a: a phase is complete after b arrivals",
    ),
    Instruction(
        "mbarrier_init_fence",
        (),
        None,
        _asm("fence.mbarrier_init.release.cluster;"),
        "initialised barriers are visible to the async proxy",
    ),
    Instruction(
        "mbarrier_expect",
        ("index", "index"),
        None,
        _asm("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", "", '"r"(a), "r"(b)'),
        "arrives at a; the phase also waits for b bytes",
    ),
    Instruction(
        "mbarrier_arrive",
        ("index",),
        None,
        _asm("mbarrier.arrive.shared::cta.b64 _, [%0];", "", '"r"(a)'),
        "arrives at a (release, CTA)",
    ),
    Instruction(
        "mbarrier_wait",
        ("index", "index"),
        None,
        _asm(
            "{\\n.reg .pred p;\\nagain:\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n"
            "@p bra done;\\nbra again;\\ndone:\\n}",
            "",
            '"r"(a), "r"(b)',
        )
        .replace("again", "again%=")
        .replace("done", "done%="),
        "until the phase of parity b is complete at a (acquire, CTA)",
    ),
    Instruction(
        "mbarrier_wait_bounded",
        ("index", "index", "i64", "i64"),
        "index",
        _bounded("unsigned p;", f"{_TRY} if (p) return 0;", "if (why && now >= end) return why;", "c", "d"),
        "as mbarrier_wait, for d nanoseconds, or until the counter at c is not 0: 0, or 1 or 2 if it gives up",
    ),
    Instruction(
        "mbarrier_wait_bounded_warp",
        ("index", "index", "i64", "i64"),
        "index",
        _bounded(
            "unsigned p, all = 0;",
            f"{_TRY} all |= p; if (__all_sync(0xffffffffu, all)) return 0;",
            "int most = __reduce_max_sync(0xffffffffu, why && now >= end ? why : 0); if (most) return most;",
            "c",
            "d",
        ),
        "the same, with one answer for all threads of a warp",
    ),
    # order (PTX ISA: Memory Consistency Model, membar/fence)
    Instruction("fence_async_shared", (), None, _asm("fence.proxy.async.shared::cta;"), "generic before async, shared"),
    Instruction("fence_async_global", (), None, _asm("fence.proxy.async.global;"), "generic before async, global"),
    Instruction("fence_release_sys", (), None, _asm("fence.release.sys;"), "releases what was written, to all GPUs"),
    Instruction("fence_release_gpu", (), None, _asm("fence.release.gpu;"), "releases what was written, to this GPU"),
    Instruction("fence_acquire_sys", (), None, _asm("fence.acquire.sys;"), "acquires what was released, all GPUs"),
    Instruction("fence_acquire_gpu", (), None, _asm("fence.acquire.gpu;"), "acquires what was released, this GPU"),
    # bulk groups
    Instruction("bulk_commit", (), None, _asm("cp.async.bulk.commit_group;"), "ends a group of asynchronous stores"),
    Instruction("bulk_wait_read", (), None, _asm("cp.async.bulk.wait_group.read 0;"), "stores have read their source"),
    Instruction("bulk_wait_full", (), None, _asm("cp.async.bulk.wait_group 0;"), "stores are complete and visible"),
    # signals
    Instruction(
        "signal_release_sys",
        ("i64", "index"),
        None,
        _asm("red.release.sys.global.add.u32 [%0], %1;", "", '"l"(a), "r"(b)'),
        "adds b to the counter at a, after all earlier writes of this thread, on any GPU",
    ),
    Instruction(
        "signal_release_gpu",
        ("i64", "index"),
        None,
        _asm("red.release.gpu.global.add.u32 [%0], %1;", "", '"l"(a), "r"(b)'),
        "the same on this GPU",
    ),
    Instruction(
        "signal_relaxed_sys",
        ("i64", "index"),
        None,
        _asm("red.relaxed.sys.global.add.u32 [%0], %1;", "", '"l"(a), "r"(b)'),
        "adds b to the counter at a, without memory order",
    ),
    Instruction(
        "raise_release_sys",
        ("i64", "index"),
        None,
        _asm("red.release.sys.global.max.u32 [%0], %1;", "", '"l"(a), "r"(b)'),
        "raises the counter at a to b, after all earlier writes of this thread, on any GPU",
    ),
    Instruction(
        "raise_release_gpu",
        ("i64", "index"),
        None,
        _asm("red.release.gpu.global.max.u32 [%0], %1;", "", '"l"(a), "r"(b)'),
        "the same on this GPU",
    ),
    Instruction(
        "raise_relaxed_sys",
        ("i64", "index"),
        None,
        _asm("red.relaxed.sys.global.max.u32 [%0], %1;", "", '"l"(a), "r"(b)'),
        "raises the counter at a to b, without memory order",
    ),
    Instruction(
        "spin",
        ("i64", "index"),
        None,
        'unsigned v; do { asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); }'
        " while ((int)(v - (unsigned)b) < 0);",
        "until the counter at a is at least b, modulo 2^32",
    ),
    Instruction(
        "spin_bounded",
        ("registers<1 x index>", "i64", "index", "i64", "i64"),
        "index",
        _bounded(
            "unsigned v;",
            'asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(b) : "memory");'
            " if ((int)(v - (unsigned)c) >= 0) return 0;",
            "if (why && now >= end) { a[0] = v; return why; }",
            "d",
            "e",
            every=64,
        ),
        "until the counter at b is at least c, for e nanoseconds, or until the counter at d is not 0:"
        " 0, or 1 or 2 if it gives up at value a",
    ),
    Instruction("any_of_warp", ("i1",), "i1", "return __any_sync(0xffffffffu, a);", "whether it holds for any thread"),
    Instruction("end_thread", (), None, _asm("exit;"), "the thread ends"),
    Instruction(
        "timer",
        (),
        "b32",
        'unsigned t; asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(t) :: "memory"); return t;',
        "nanoseconds on this GPU, modulo 2^32, in steps of 32",
    ),
    Instruction(
        "cycle",
        (),
        "index",
        'unsigned t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t;',
        "cycles of this SM, modulo 2^32",
    ),
    Instruction(
        "sm_number", (), "index", 'int s; asm("mov.u32 %0, %%smid;" : "=r"(s)); return s;', "the SM of this CTA"
    ),
    Instruction(
        "record",
        ("registers<1 x index>", "i64", "index", "b32", "index", "index", "index"),
        None,
        "if (a[0] < c) { "
        + _asm(
            "st.global.v4.b32 [%0], {%1, %2, %3, %4};",
            "",
            '"l"(b + 16ull * (unsigned)a[0]), "r"(d), "r"(e), "r"(f), "r"(g)',
        )
        + " } ++a[0];",
        "writes d, e, f and g to record a of the c records at b, if a < c; increments a",
    ),
    Instruction("load_u32", ("i64",), "index", "return *(const volatile unsigned*)a;", "the counter at a"),
    Instruction("store_u32", ("i64", "index"), None, "*(volatile unsigned*)a = b;", "a counter of this CTA"),
    # wgmma (PTX ISA: Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions)
    Instruction("wgmma_fence", (), None, _asm("wgmma.fence.sync.aligned;"), "registers before wgmma"),
    Instruction("wgmma_commit", (), None, _asm("wgmma.commit_group.sync.aligned;"), "ends a group of wgmma"),
    # registers and shared memory
    Instruction(
        "stmatrix_x4",
        ("index", "b32", "b32", "b32", "b32"),
        None,
        _asm(
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};",
            "",
            '"r"(a), "r"(b), "r"(c), "r"(d), "r"(e)',
        ),
        "four 8x8 matrices of 16-bit elements; thread 8i + j has the address of row j of matrix i",
    ),
    Instruction(
        "pack_bf16",
        ("f32", "f32"),
        "b32",
        _pure("cvt.rn.bf16x2.f32 %0, %2, %1;", '"f"(a), "f"(b)', "unsigned", "r"),
        "two bf16, a in the low half, to nearest even",
    ),
    Instruction(
        "pack_f16",
        ("f32", "f32"),
        "b32",
        _pure("cvt.rn.f16x2.f32 %0, %2, %1;", '"f"(a), "f"(b)', "unsigned", "r"),
        "two f16, a in the low half, to nearest even",
    ),
    Instruction("low_bf16", ("b32",), "f32", "return __uint_as_float(a << 16);", "the low bf16"),
    Instruction("high_bf16", ("b32",), "f32", "return __uint_as_float(a & 0xffff0000u);", "the high bf16"),
    Instruction(
        "low_f16",
        ("b32",),
        "f32",
        _pure("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }", '"r"(a)'),
        "the low f16",
    ),
    Instruction(
        "high_f16",
        ("b32",),
        "f32",
        _pure("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }", '"r"(a)'),
        "the high f16",
    ),
    Instruction("bits_f32", ("f32",), "b32", "return __float_as_uint(a);", "the bits of an f32"),
    Instruction("float_bits", ("b32",), "f32", "return __uint_as_float(a);", "the f32 with these bits"),
    Instruction(
        "load_shared_b32",
        ("index",),
        "b32",
        'unsigned r; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r) : "r"(a) : "memory"); return r;',
        "32 bits of shared memory",
    ),
    Instruction(
        "load_shared_v4",
        ("registers<4 x b32>", "index"),
        None,
        _asm("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];", ", ".join(f'"=r"(a[{i}])' for i in range(4)), '"r"(b)'),
        "16 bytes of shared memory at b",
    ),
    Instruction(
        "store_shared_v4",
        ("registers<4 x b32>", "index"),
        None,
        _asm("st.shared.v4.b32 [%4], {%0, %1, %2, %3};", "", ", ".join(f'"r"(a[{i}])' for i in range(4)) + ', "r"(b)'),
        "16 bytes to shared memory at b",
    ),
    Instruction(
        "store_shared_b32",
        ("index", "b32"),
        None,
        _asm("st.shared.b32 [%0], %1;", "", '"r"(a), "r"(b)'),
        "32 bits to shared memory",
    ),
    Instruction(
        "store_shared_b16",
        ("index", "b32"),
        None,
        _asm("st.shared.b16 [%0], %1;", "", '"r"(a), "h"((unsigned short)b)'),
        "the low 16 bits to shared memory",
    ),
    # functions; those of CUDA without `-use_fast_math` (CUDA C++ Programming Guide, Mathematical Functions)
    Instruction("exp_f32", ("f32",), "f32", "return expf(a);", "e to the power a", "pk.exp"),
    Instruction(
        "exp2_f32", ("f32",), "f32", _pure("ex2.approx.f32 %0, %1;", '"f"(a)'), "2 to the power a, 2 ulp", "pk.exp2"
    ),
    Instruction("log2_f32", ("f32",), "f32", "return log2f(a);", "logarithm to base 2", "pk.log2"),
    Instruction("tanh_f32", ("f32",), "f32", "return tanhf(a);", "hyperbolic tangent", "pk.tanh"),
    Instruction("log_f32", ("f32",), "f32", "return logf(a);", "natural logarithm", "pk.log"),
    Instruction("erf_f32", ("f32",), "f32", "return erff(a);", "error function", "pk.erf"),
    Instruction("rsqrt_f32", ("f32",), "f32", "return rsqrtf(a);", "1 / sqrt(a)", "pk.rsqrt"),
    Instruction(
        "sigmoid_f32",
        ("f32",),
        "f32",
        # Of e to the power -|a|, which does not overflow, and keeps what is below the normal numbers.
        "float e = expf(-fabsf(a)); return __fdiv_rn(a < 0.0f ? e : 1.0f, 1.0f + e);",
        "1 / (1 + e to the power -a)",
        "pk.sigmoid",
    ),
    Instruction(
        "sqrt_f32", ("f32",), "f32", _pure("sqrt.rn.f32 %0, %1;", '"f"(a)'), "square root, to nearest", "pk.sqrt"
    ),
    Instruction(
        "divide",
        ("f32", "f32"),
        "f32",
        _pure("div.rn.f32 %0, %1, %2;", '"f"(a), "f"(b)'),
        "a / b, to nearest",
        "pk.div",
    ),
    Instruction("absolute", ("f32",), "f32", _pure("abs.f32 %0, %1;", '"f"(a)'), "|a|", "pk.abs"),
    Instruction("int_bits", ("b32",), "i32", "return (int)a;", "the i32 with these bits"),
    Instruction("bits_i32", ("i32",), "b32", "return (unsigned)a;", "the bits of an i32"),
    Instruction(
        "max_nan",
        ("f32", "f32"),
        "f32",
        _pure("max.NaN.f32 %0, %1, %2;", '"f"(a), "f"(b)'),
        "maximum or NaN",
        "pk.max",
    ),
    Instruction(
        "min_nan",
        ("f32", "f32"),
        "f32",
        _pure("min.NaN.f32 %0, %1, %2;", '"f"(a), "f"(b)'),
        "minimum or NaN",
        "pk.min",
    ),
    Instruction(
        "load_global_b32",
        ("i64",),
        "b32",
        'unsigned r; asm volatile("ld.global.b32 %0, [%1];" : "=r"(r) : "l"(a) : "memory"); return r;',
        "32 bits of global memory",
    ),
    Instruction(
        "load_global_b16",
        ("i64",),
        "b32",
        'unsigned short r; asm volatile("ld.global.b16 %0, [%1];" : "=h"(r) : "l"(a) : "memory"); return r;',
        "16 bits of global memory",
    ),
    Instruction(
        "store_global_b32",
        ("i64", "b32"),
        None,
        _asm("st.global.b32 [%0], %1;", "", '"l"(a), "r"(b)'),
        "32 bits to global memory",
    ),
    Instruction(
        "store_global_b16",
        ("i64", "b32"),
        None,
        _asm("st.global.b16 [%0], %1;", "", '"l"(a), "h"((unsigned short)b)'),
        "the low 16 bits to global memory",
    ),
    Instruction(
        "warp_number", (), "index", "return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);", "this warp, in its CTA"
    ),
    Instruction(
        "shuffle_xor",
        ("f32", "index"),
        "f32",
        "return __shfl_xor_sync(0xffffffffu, a, b);",
        "a of the thread whose number in the warp differs from this one's by the bits b",
    ),
    Instruction(
        "shuffle_xor_i32",
        ("i32", "index"),
        "i32",
        "return __shfl_xor_sync(0xffffffffu, a, b);",
        "the same for an i32",
    ),
)
"""The instructions that are not of a family."""


def _tma(match: re.Match[str]) -> Instruction:
    """`tma_load_3d(stage, map, barrier, x, y, z)`, `tma_store_3d(stage, map, x, y, z)`, `tma_add_3d(...)`."""
    what, rank = match[1], int(match[2])
    first = 3 if what == "load" else 2
    operands = ("index", "map", *(("index",) if what == "load" else ()), *("index",) * rank)
    names = "abcdefgh"
    place = ", ".join(f"%{first + i}" for i in range(rank))
    inputs = ['"r"(a)', '"l"(&b)', *(f'"r"({name})' for name in names[2 : first + rank])]
    forms = {
        "load": f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        f" [%0], [%1, {{{place}}}], [%2];",
        "store": f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%1, {{{place}}}], [%0];",
        "add": f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.tile.bulk_group [%1, {{{place}}}], [%0];",
    }
    meanings = {
        "load": "a box of the tensor of map b to shared memory at a; its bytes arrive at the barrier c",
        "store": "shared memory at a to a box of the tensor of map b",
        "add": "shared memory at a added to a box of the tensor of map b, each element atomically",
    }
    return Instruction(match[0], operands, None, _asm(forms[what], "", ", ".join(inputs)), meanings[what])


def _wgmma(match: re.Match[str]) -> Instruction | None:
    """`wgmma_n256_bf16_ss_kn(acc, a, b, accumulate)`: A from shared memory (s) or registers (r), majors of A and B.

    `wgmma_n256_e4m3_e5m2_ss_kk` if B has another type than A.
    """
    n, dtype, source, major_a, major_b = int(match[1]), match[2], match[4], match[5], match[6]
    count = n // 2
    k = {"bf16": 16, "f16": 16, "e4m3": 32, "e5m2": 32}[dtype]
    other = match[3] or dtype
    if match[3] and (k == 16 or other == dtype):
        return None
    # Only 16-bit operands in shared memory may have the other major.
    by_k = ("k", "k") if k == 32 else ("k", major_b) if source == "r" else (major_a, major_b)
    if n % 8 or not 8 <= n <= 256 or by_k != (major_a, major_b):
        return None
    d = ", ".join(f"%{i}" for i in range(count))
    transposes = f", {int(major_a == 'm')}, {int(major_b == 'n')}" if k == 16 and source == "s" else ""
    transposes = f", {int(major_b == 'n')}" if k == 16 and source == "r" else transposes
    first = 1 if source == "s" else 4
    a = f"%{count}" if source == "s" else "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}"
    b, use = f"%{count + first}", f"%{count + first + 1}"
    ptx = (
        f"{{\\n.reg .pred p;\\nsetp.ne.b32 p, {use}, 0;\\n"
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{dtype}.{other} {{{d}}}, {a}, {b}, p, 1, 1{transposes};\\n}}"
    )
    outputs = ", ".join(f'"+f"(a[{i}])' for i in range(count))
    if source == "s":
        operands: tuple[str, ...] = (f"registers<{count} x f32>", "i64", "i64", "index")
        inputs = '"l"(b), "l"(c), "r"(d)'
    else:
        operands = (f"registers<{count} x f32>", "b32", "b32", "b32", "b32", "i64", "index")
        inputs = '"r"(b), "r"(c), "r"(d), "r"(e), "l"(f), "r"(g)'
    description = f"a += A[64, {k}] @ B[{k}, {n}] if the last operand is not 0, else a = A @ B; asynchronous"
    return Instruction(match[0], operands, None, _asm(ptx, outputs, inputs, memory=False), description)


def _vector(match: re.Match[str]) -> Instruction:
    """`load_global_v4(registers<4 x b32>, address)` and `store_global_v4`: 16, 8 or 4 bytes at once.

    `load_global_v4_where(registers, address, condition)` and `store_global_v4_where` do so only where the condition
    holds; a load leaves the registers as they are elsewhere. A predicate, not a branch: loads stay together.
    """
    what, count, where = match[1], int(match[2]), match[3] is not None
    names = ", ".join(f"%{i}" for i in range(count))
    form = "b32"
    if count > 1:
        names, form = f"{{{names}}}", f"v{count}.b32"
    operands = (f"registers<{count} x b32>", "i64", *(("i1",) if where else ()))
    description = f"{4 * count} bytes {'of' if what == 'load' else 'to'} global memory at b{', if c' if where else ''}"
    ptx = f"ld.global.{form} {names}, [%{count}];" if what == "load" else f"st.global.{form} [%{count}], {names};"
    registers = ", ".join(f'"{_CONSTRAINTS[what, where]}"(a[{i}])' for i in range(count))
    inputs = '"l"(b)'
    if where:
        ptx = f"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 1}, 0;\\n@p {ptx}\\n}}"
        inputs += ', "r"((int)c)'
    if what == "load":
        return Instruction(match[0], operands, None, _asm(ptx, registers, inputs, memory=False), description)
    return Instruction(match[0], operands, None, _asm(ptx, "", f"{registers}, {inputs}"), description)


_CONSTRAINTS = {("load", False): "=r", ("load", True): "+r", ("store", False): "r", ("store", True): "r"}
"""What an instruction does with the registers: writes, or may write, or reads."""


def _wgmma_wait(match: re.Match[str]) -> Instruction | None:
    ptx = f"wgmma.wait_group.sync.aligned {match[1]};"
    return Instruction(match[0], (), None, _asm(ptx), "at most that many groups are in flight")


def _wgmma_done(match: re.Match[str]) -> Instruction | None:
    """Without it the compiler may copy the registers before the wait, and then runs MMAs one after the other."""
    count = int(match[1])
    if count % 4 or not 4 <= count <= 256:
        return None
    body = _asm("", ", ".join(f'"+f"(a[{i}])' for i in range(count)), memory=False)
    return Instruction(match[0], (f"registers<{count} x f32>",), None, body, "MMAs are complete: a may be read")


def _bulk_wait(match: re.Match[str]) -> Instruction:
    """`bulk_wait_read_2()`, `bulk_wait_full_3()`: as those without a number, but for the last groups."""
    form, left = (".read" if match[1] == "read" else ""), match[2]
    ptx = f"cp.async.bulk.wait_group{form} {left};"
    done = "have read their source" if form else "are complete and visible"
    return Instruction(match[0], (), None, _asm(ptx), f"stores {done}, but for the last {left} groups")


def _setmaxnreg(match: re.Match[str]) -> Instruction | None:
    count = int(match[2])
    if count % 8 or not 24 <= count <= 256:
        return None
    ptx = f"setmaxnreg.{match[1]}.sync.aligned.u32 {count};"
    return Instruction(match[0], (), None, _asm(ptx), "registers of each thread")


def _sync(match: re.Match[str]) -> Instruction | None:
    """Barrier 0 is that of `sync_threads`."""
    barrier, threads = int(match[1]), int(match[2])
    if not 1 <= barrier < ARCH.named_barriers or threads % ARCH.warp or not 0 < threads <= ARCH.threads:
        return None
    return Instruction(match[0], (), None, _asm(f"bar.sync {barrier}, {threads};"), "barrier over that many threads")


_FAMILIES: tuple[tuple[str, Callable[[re.Match[str]], Instruction | None]], ...] = (
    (r"tma_(load|store|add)_([1-5])d", _tma),
    (r"wgmma_n(\d+)_(bf16|f16|e4m3|e5m2)(?:_(e4m3|e5m2))?_([sr])s_([km])([kn])", _wgmma),
    (r"(load|store)_global_v([124])(_where)?", _vector),
    (r"wgmma_wait_([0-7])", _wgmma_wait),
    (r"wgmma_done_(\d+)", _wgmma_done),
    (r"bulk_wait_(read|full)_([1-9]\d*)", _bulk_wait),
    (r"setmaxnreg_(inc|dec)_(\d+)", _setmaxnreg),
    (r"sync_(\d+)_of_(\d+)", _sync),
)


@cache
def instruction(name: str) -> Instruction | None:
    """The entry of that name, if the target has one."""
    for entry in PLAIN:
        if entry.name == name:
            return entry
    for pattern, make in _FAMILIES:
        match = re.fullmatch(pattern, name)
        if match:
            return make(match)
    return None


@cache
def computing(operation: str, element: str) -> Instruction | None:
    """The instruction for an operation on elements of a type, if the target has one."""
    return next((entry for entry in PLAIN if entry.computes == operation and entry.operands[0] == element), None)
