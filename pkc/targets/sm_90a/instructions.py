"""The instructions of sm_90a that pkc emits: one entry each, with operands, text, and what it does.

An entry becomes a `__device__` function of the generated CUDA C++, and `pk.instruction` names it. Text is inline
PTX (PTX ISA 9.0) or a CUDA built-in. Where PTX has a family (shapes, numbers of dimensions, counts that must be
immediate), `families.py` makes the entry that a name asks for.
"""

from __future__ import annotations

from functools import cache

from pkc.targets.instruction import Instruction
from pkc.targets.sm_90a.families import of_family
from pkc.targets.sm_90a.inline_ptx import asm, effect, pure
from pkc.targets.sm_90a.synchronization import SYNCHRONIZATION

_WAVE = (
    # k quarter turns, which are in the low bits of t, and r of what is left of a, in f64, whose rate is half of f32's:
    # two parts of pi / 2 serve for all k. A branch for large numbers would leave threads waiting for each element.
    "const double x = a, t = fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52), k = t - 0x1.8p52;"
    " double z = fma(k, -0x1.921fb54442d18p0, x); z = fma(k, -0x1.1a62633145c07p-54, z);"
    " const float r = fabsf(a) < 0x1p51f ? (float)z : __int_as_float(0x7fffffff), u = r * r;"
    " const unsigned n = __double2loint(t){quarter}; const bool y = n & 1;"
    # The sine of r or its cosine, least in the largest relative error for |r| up to pi / 4; the sign of n / 2 turns.
    " float p = y ? 2.4432564e-05f : 2.8045024e-06f; p = fmaf(p, u, y ? -0.0013887311f : -0.00019850302f);"
    " p = fmaf(p, u, y ? 0.041666646f : 0.008333373f); p = fmaf(p, u, y ? -0.5f : -0.16666667f);"
    " p = fmaf(p, u, 1.0f) * (y ? 1.0f : r); return __uint_as_float(__float_as_uint(p) ^ (n & 2) << 30);"
)
"""The sine of a, or of so many quarter turns more."""

PLAIN: tuple[Instruction, ...] = (
    Instruction("thread_number", (), "index", "return threadIdx.x;", "number of this thread in its CTA"),
    Instruction("cta_number", (), "index", "return blockIdx.x;", "number of this CTA in the grid"),
    Instruction(
        "cta_of_cluster",
        (),
        "index",
        'unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r;',
        "number of this CTA in its cluster",
    ),
    Instruction("cta_count", (), "index", "return gridDim.x;", "CTAs of the grid"),
    Instruction(
        "unknown", ("index",), "index", 'asm volatile("" : "+r"(a)); return a;', "a, as a number that may be any"
    ),
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
    effect("prefetch_map", ("map",), "prefetch.tensormap [%0];", "prefetches the tensor map a into the cache"),
    *SYNCHRONIZATION,
    # wgmma (PTX ISA: Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions)
    effect("wgmma_fence", (), "wgmma.fence.sync.aligned;", "registers before wgmma"),
    effect("wgmma_commit", (), "wgmma.commit_group.sync.aligned;", "ends a group of wgmma"),
    # registers and shared memory
    effect(
        "stmatrix_x4",
        ("index", "b32", "b32", "b32", "b32"),
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};",
        "four 8x8 matrices of 16-bit elements; thread 8i + j has the address of row j of matrix i",
    ),
    effect(
        "stmatrix_x4_trans",
        ("index", "b32", "b32", "b32", "b32"),
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};",
        "the same of the transposes: row j of what is written is column j",
    ),
    pure(
        "pack_bf16",
        ("f32", "f32"),
        "b32",
        "cvt.rn.bf16x2.f32 %0, %2, %1;",
        "two bf16, a in the low half, to nearest even",
    ),
    pure(
        "pack_f16", ("f32", "f32"), "b32", "cvt.rn.f16x2.f32 %0, %2, %1;", "two f16, a in the low half, to nearest even"
    ),
    Instruction("low_bf16", ("b32",), "f32", "return __uint_as_float(a << 16);", "the low bf16"),
    Instruction("high_bf16", ("b32",), "f32", "return __uint_as_float(a & 0xffff0000u);", "the high bf16"),
    pure("low_f16", ("b32",), "f32", "{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }", "the low f16"),
    pure("high_f16", ("b32",), "f32", "{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }", "the high f16"),
    Instruction(
        "pack_e4m3",
        ("f32", "f32"),
        "b32",
        "const float x = fabsf(a) > 464.0f ? __int_as_float(0x7fffffff) : a;"
        " const float y = fabsf(b) > 464.0f ? __int_as_float(0x7fffffff) : b; unsigned short r;"
        ' asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(y), "f"(x)); return r;',
        "two e4m3, a in the low byte, to nearest even; NaN where that is more than 448",
    ),
    Instruction(
        "pack_e5m2",
        ("f32", "f32"),
        "b32",
        'unsigned short s; asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(s) : "f"(b), "f"(a)); unsigned r = s;'
        " if (fabsf(a) >= 61440.0f) r = (r & 0xff80u) | 0x7cu;"
        " if (fabsf(b) >= 61440.0f) r = (r & 0x80ffu) | 0x7c00u; return r;",
        "two e5m2, a in the low byte, to nearest even",
    ),
    *(
        pure(
            f"{half}_{kind}",
            ("b32",),
            "f32",
            "{ .reg .b16 p, l, h; .reg .b32 w; cvt.u16.u32 p, %1; "
            f"cvt.rn.f16x2.{kind}x2 w, p; mov.b32 {{l, h}}, w; cvt.f32.f16 %0, {half[0]}; }}",
            f"the {half} {kind}",
        )
        for kind in ("e4m3", "e5m2")
        for half in ("low", "high")
    ),
    pure(
        "pack_i8",
        ("i32", "i32"),
        "b32",
        "cvt.pack.sat.s8.s32.b32 %0, %2, %1, 0;",
        "two i8, a in the low byte; the nearest one where there is none",
    ),
    Instruction("low_i8", ("b32",), "i32", "return (int)(signed char)a;", "the low i8"),
    Instruction("high_i8", ("b32",), "i32", "return (int)(signed char)(a >> 8);", "the high i8"),
    Instruction(
        "bf16_of_i8",
        ("b32",),
        "b32",
        # The low seven bits behind 128, less 128, or 256 of a negative number: bf16 has eight bits of each.
        "const unsigned p = __byte_perm(a, 0x43434343u, 0x4140), x = p & 0x437f437fu, y = p & 0x43804380u; unsigned r;"
        ' asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r;',
        "two bf16 of two i8, exactly",
    ),
    Instruction(
        "f16_of_i8",
        ("b32",),
        "b32",
        "const unsigned x = __byte_perm(a ^ 0x8080u, 0x64646464u, 0x4140); unsigned r;"
        ' asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(0x64806480u)); return r;',
        "two f16 of two i8, exactly: a number and 128, in the low bits of 1024",
    ),
    Instruction("bits_f32", ("f32",), "b32", "return __float_as_uint(a);", "the bits of an f32"),
    Instruction(
        "shift_pair",
        ("b32", "b32", "index"),
        "b32",
        "return __funnelshift_r(a, b, c);",
        "32 bits from bit c of a on, c below 32; those behind a are b's",
    ),
    *(
        Instruction(
            f"pair_{low}_{high}",
            ("b32", "b32"),
            "b32",
            f"return __byte_perm(a, b, 0x{'76' if high == 'high' else '54'}{'32' if low == 'high' else '10'});",
            f"16 bits each: the {low} half of a, and behind it the {high} half of b",
        )
        for low in ("low", "high")
        for high in ("low", "high")
    ),
    Instruction("float_bits", ("b32",), "f32", "return __uint_as_float(a);", "the f32 with these bits"),
    *(
        Instruction(
            name,
            ("index",),
            "b32",
            'unsigned r; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r) : "r"(a) : "memory"); return r;',
            f"32 bits of shared memory{some}",
        )
        for name, some in (("load_shared_b32", ""), ("load_shared_b32_around", ", of which some may belong to nothing"))
    ),
    Instruction(
        "load_shared_v2",
        ("registers<2 x b32>", "index"),
        None,
        asm("ld.shared.v2.b32 {%0, %1}, [%2];", '"=r"(a[0]), "=r"(a[1])', '"r"(b)'),
        "8 bytes of shared memory at b",
    ),
    *(
        Instruction(
            name,
            ("registers<4 x b32>", "index"),
            None,
            asm("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];", ", ".join(f'"=r"(a[{i}])' for i in range(4)), '"r"(b)'),
            f"16 bytes of shared memory at b{some}",
        )
        for name, some in (("load_shared_v4", ""), ("load_shared_v4_around", ", of which some may belong to nothing"))
    ),
    Instruction(
        "store_shared_v2",
        ("index", "b32", "b32"),
        None,
        asm("st.shared.v2.b32 [%0], {%1, %2};", "", '"r"(a), "r"(b), "r"(c)'),
        "8 bytes to shared memory at a",
    ),
    Instruction(
        "store_shared_v4",
        ("registers<4 x b32>", "index"),
        None,
        asm("st.shared.v4.b32 [%4], {%0, %1, %2, %3};", "", ", ".join(f'"r"(a[{i}])' for i in range(4)) + ', "r"(b)'),
        "16 bytes to shared memory at b",
    ),
    Instruction(
        "copy_shared_v4_where",
        ("index", "i64", "i1"),
        None,
        asm("cp.async.cg.shared.global [%0], [%1], 16, %2;", "", '"r"(a), "l"(b), "r"(c ? 16 : 0)'),
        "16 bytes of global memory at b on their way to shared memory at a; zero, and nothing is read, if not c",
    ),
    Instruction(
        "copy_shared_b32_where",
        ("index", "i64", "i1"),
        None,
        asm("cp.async.ca.shared.global [%0], [%1], 4, %2;", "", '"r"(a), "l"(b), "r"(c ? 4 : 0)'),
        "the same for 4 bytes",
    ),
    effect(
        "mbarrier_arrive_copied",
        ("index",),
        "cp.async.mbarrier.arrive.shared::cta.b64 [%0];",
        "the phase at a also waits for what this thread has on its way to shared memory",
    ),
    Instruction(
        "load_shared_b8x2",
        ("index",),
        "b32",
        'unsigned short r; asm volatile("ld.shared.b16 %0, [%1];" : "=h"(r) : "r"(a) : "memory"); return r;',
        "two bytes of shared memory",
    ),
    Instruction(
        "store_shared_b8x2",
        ("index", "b32"),
        None,
        asm("st.shared.b16 [%0], %1;", "", '"r"(a), "h"((unsigned short)b)'),
        "the low two bytes to shared memory",
    ),
    effect("store_shared_b8", ("index", "b32"), "st.shared.b8 [%0], %1;", "the low byte to shared memory"),
    effect("store_shared_b32", ("index", "b32"), "st.shared.b32 [%0], %1;", "32 bits to shared memory"),
    Instruction(
        "store_shared_b16",
        ("index", "b32"),
        None,
        asm("st.shared.b16 [%0], %1;", "", '"r"(a), "h"((unsigned short)b)'),
        "the low 16 bits to shared memory",
    ),
    # functions; those of CUDA without `-use_fast_math` (CUDA C++ Programming Guide, Mathematical Functions)
    Instruction("exp_f32", ("f32",), "f32", "return expf(a);", "e to the power a", "pk.exp"),
    Instruction(
        "steep_exp_f32",
        ("f32",),
        "f32",
        'float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a * 1.44269502f)); return r;',
        "e to the power a, a ulp less accurate for each unit of |a|; 0 below 2^-126",
        "pk.steep_exp",
    ),
    pure(
        "exp2_f32", ("f32",), "f32", "ex2.approx.ftz.f32 %0, %1;", "2 to the power a, 2 ulp; 0 below 2^-126", "pk.exp2"
    ),
    Instruction("log2_f32", ("f32",), "f32", "return log2f(a);", "logarithm to base 2", "pk.log2"),
    Instruction("tanh_f32", ("f32",), "f32", "return tanhf(a);", "hyperbolic tangent", "pk.tanh"),
    Instruction("log_f32", ("f32",), "f32", "return logf(a);", "natural logarithm", "pk.log"),
    Instruction(
        "erf_f32",
        ("f32",),
        "f32",
        # x P(x^2) / Q(x^2), least in the largest relative error for |x| up to 4, from where on erf is 1: half as many
        # instructions as erff, which has two polynomials and chooses the coefficients of each element.
        'float x, r; asm("min.NaN.f32 %0, %1, 0f40800000;" : "=f"(x) : "f"(a));'
        ' asm("max.NaN.f32 %0, %0, 0fC0800000;" : "+f"(x)); const float s = x * x;'
        " float p = fmaf(1.91111234e-08f, s, -1.94209292e-06f), q = fmaf(0.00102065876f, s, 0.0149543611f);"
        " p = fmaf(p, s, 0.000147239858f); q = fmaf(q, s, 0.117953114f); p = fmaf(p, s, 0.00398873165f);"
        " q = fmaf(q, s, 0.51685375f); p = fmaf(p, s, 0.0515191145f); q = fmaf(q, s, 1.0f);"
        " p = fmaf(p, s, 0.207082972f); p = fmaf(p, s, 1.12837911f);"
        ' asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(q)); return x * p * r;',
        "error function",
        "pk.erf",
    ),
    Instruction("sin_f32", ("f32",), "f32", _WAVE.replace("{quarter}", ""), "sine", "pk.sin"),
    Instruction("cos_f32", ("f32",), "f32", _WAVE.replace("{quarter}", " + 1"), "cosine", "pk.cos"),
    Instruction("rsqrt_f32", ("f32",), "f32", "return rsqrtf(a);", "1 / sqrt(a)", "pk.rsqrt"),
    Instruction(
        "sigmoid_f32",
        ("f32",),
        "f32",
        # e to the power -a is 2 to the power t, t rounded, times 1 + d of what that has left of -a. Where t is so large
        # that d is anything or NaN, that power is 0 or infinite, if no factor changes its sign. A division by
        # instructions that branch would leave threads waiting for each element.
        "const float t = a * -1.44269502f; const float d = fmaf(t, 1.904654e-09f, fmaf(t, -0.693147182f, -a));"
        ' float e, f, r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(t));'
        ' asm("max.f32 %0, %1, 0f3F000000;" : "=f"(f) : "f"(1.0f + d));'
        ' asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(fmaf(e, f, 1.0f))); return r;',
        "1 / (1 + e to the power -a)",
        "pk.sigmoid",
    ),
    Instruction(
        "step_tanh_f32",
        ("f32",),
        "f32",
        'float e, r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(a * -2.88539004f));'
        ' asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.0f + e)); return r;',
        "(1 + tanh(a)) / 2, which is 1 / (1 + e to the power -2 a)",
        "pk.step_tanh",
    ),
    Instruction(
        "step_erf_f32",
        ("f32",),
        "f32",
        # 1 / (1 + 2 to the power a P(a^2)), P least in the largest error of the result.
        "const float s = a * a; float p = fmaf(-4.58634602e-07f, s, 1.72706724e-05f);"
        " p = fmaf(p, s, -0.000258853956f); p = fmaf(p, s, 0.0018054411f); p = fmaf(p, s, 0.000532022576f);"
        " p = fmaf(p, s, -0.296518502f); p = fmaf(p, s, -3.25581561f);"
        ' float e, r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(a * p));'
        ' asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.0f + e)); return r;',
        "(1 + erf(a)) / 2",
        "pk.step_erf",
    ),
    pure("sqrt_f32", ("f32",), "f32", "sqrt.rn.f32 %0, %1;", "square root, to nearest", "pk.sqrt"),
    pure("round_f32", ("f32",), "f32", "cvt.rni.f32.f32 %0, %1;", "the nearest whole number", "pk.round"),
    pure("floor_f32", ("f32",), "f32", "cvt.rmi.f32.f32 %0, %1;", "a rounded down", "pk.floor"),
    pure("divide", ("f32", "f32"), "f32", "div.full.f32 %0, %1, %2;", "a / b, 2 ulp", "pk.div"),
    pure("reciprocal", ("f32",), "f32", "rcp.rn.f32 %0, %1;", "1 / a, to nearest"),
    Instruction(
        "divisor_scale",
        ("f32",),
        "f32",
        "const float m = fabsf(a); return m > 0x1p126f ? 0x1p-32f : m < 0x1p-126f ? 0x1p32f : 1.0f;",
        "a power of two, mostly 1; a times it has a reciprocal among the normal numbers",
    ),
    pure("absolute", ("f32",), "f32", "abs.f32 %0, %1;", "|a|", "pk.abs"),
    Instruction("int_bits", ("b32",), "i32", "return (int)a;", "the i32 with these bits"),
    Instruction("bits_i32", ("i32",), "b32", "return (unsigned)a;", "the bits of an i32"),
    *(
        pure(
            f"{name}_nan_{kind}x2",
            ("b32", "b32"),
            "b32",
            f"{name}.NaN.{kind}x2 %0, %1, %2;",
            f"{'maximum' if name == 'max' else 'minimum'} or NaN of each of two {kind}",
        )
        for name in ("max", "min")
        for kind in ("bf16", "f16")
    ),
    pure("max_nan", ("f32", "f32"), "f32", "max.NaN.f32 %0, %1, %2;", "maximum or NaN", "pk.max"),
    pure("min_nan", ("f32", "f32"), "f32", "min.NaN.f32 %0, %1, %2;", "minimum or NaN", "pk.min"),
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
        "load_global_b8",
        ("i64",),
        "b32",
        'unsigned r; asm volatile("ld.global.u8 %0, [%1];" : "=r"(r) : "l"(a) : "memory"); return r;',
        "a byte of global memory",
    ),
    effect("store_global_b8", ("i64", "b32"), "st.global.b8 [%0], %1;", "the low byte to global memory"),
    effect("store_global_b32", ("i64", "b32"), "st.global.b32 [%0], %1;", "32 bits to global memory"),
    Instruction(
        "store_global_b16",
        ("i64", "b32"),
        None,
        asm("st.global.b16 [%0], %1;", "", '"l"(a), "h"((unsigned short)b)'),
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
    *(
        Instruction(f"{name}{suffix}", (kind, "index"), kind, f"return {call}(0xffffffffu, a, b);", f"{what}{of}")
        for name, call, what in (
            ("shuffle_up", "__shfl_up_sync", "a of the thread of the warp that is b before this one, or its own"),
            ("shuffle_from", "__shfl_sync", "a of thread b of the warp"),
        )
        for suffix, kind, of in (("", "f32", ""), ("_i32", "i32", ", an i32"))
    ),
    Instruction(
        "shuffle_index",
        ("index", "index"),
        "index",
        "return __shfl_sync(0xffffffffu, a, b);",
        "a of thread b of the warp",
    ),
    Instruction(
        "vote",
        ("i1",),
        "index",
        "return __ballot_sync(0xffffffffu, a);",
        "a bit for each thread of the warp, 1 where a holds",
    ),
    Instruction("count_bits", ("index",), "index", "return __popc(a);", "how many bits of a are 1"),
    Instruction("lowest_bit", ("index",), "index", "return __ffs(a) - 1;", "the place of the lowest of these"),
)
"""The instructions that are not of a family."""


@cache
def instruction(name: str) -> Instruction | None:
    """The entry of that name, if the target has one."""
    for entry in PLAIN:
        if entry.name == name:
            return entry
    return of_family(name)


@cache
def computing(operation: str, element: str) -> Instruction | None:
    """The instruction for an operation on elements of a type, if the target has one."""
    return next((entry for entry in PLAIN if entry.computes == operation and entry.operands[0] == element), None)
