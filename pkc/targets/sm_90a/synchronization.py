"""The instructions of sm_90a by which threads wait for each other, and that order what they do."""

from __future__ import annotations

from pkc.targets.instruction import Instruction
from pkc.targets.sm_90a.inline_ptx import RAISE, RAISED, asm, bounded, effect, guarded, report, words

_TRY = (
    'asm volatile("{\\n.reg .pred p;\\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\\n'
    'selp.u32 %0, 1, 0, p;\\n}" : "=r"(p) : "r"(a), "r"(b) : "memory");'
)

_LOOK_AT_8 = (
    "for (int i = 0; i < 2; ++i) {"
    ' asm volatile("ld.relaxed.sys.global.v4.b32 {%0, %1, %2, %3}, [%4];"'
    ' : "=r"(w[4 * i]), "=r"(w[4 * i + 1]), "=r"(w[4 * i + 2]), "=r"(w[4 * i + 3]) : "l"(b + 16 * i) : "memory"); }'
    " late = 0; for (int i = 0; i < 8; ++i) late |= w[i] ^ ((unsigned)c << 16);"
)
_ELEMENTS_OF_8 = "for (int i = 0; i < 4; ++i) a[i] = __byte_perm(w[2 * i], w[2 * i + 1], 0x5410);"
_LOOK_AT_1 = 'asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(w) : "l"(a) : "memory");'
_LOOK_AT_COUNTER = 'asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory");'
_COUNTED = "if ((int)(v - (unsigned)b) >= 0) return;"


def _spin_guarded(*, again: bool) -> str:
    """Wait for a counter. It is looked at once more before a report is written, by ever fewer registers."""
    say = (
        _LOOK_AT_COUNTER,
        _COUNTED,
        report("d", "e", again=again),
        words({3: "v", 4: "b", 5: "(int)a", 6: "0", 7: "0", 1: "f", 2: "g"}),
        RAISED.format("c"),
        words({0: "s ? 2 : 1"}),
    )
    return f"unsigned v; {guarded(_LOOK_AT_COUNTER, _COUNTED, 'c', ' '.join(say))}"


SYNCHRONIZATION: tuple[Instruction, ...] = (
    # mbarrier (PTX ISA: Parallel Synchronization and Communication Instructions, mbarrier)
    effect(
        "mbarrier_init",
        ("index", "index"),
        "mbarrier.init.shared::cta.b64 [%0], %1;",
        "barrier at a: a phase is complete after b arrivals",
    ),
    effect(
        "mbarrier_init_fence",
        (),
        "fence.mbarrier_init.release.cluster;",
        "initialised barriers are visible to the async proxy",
    ),
    effect(
        "mbarrier_expect",
        ("index", "index"),
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;",
        "arrives at a; the phase also waits for b bytes",
    ),
    effect(
        "mbarrier_announce",
        ("index", "index"),
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;",
        "the phase at a also waits for b bytes",
    ),
    effect("mbarrier_arrive", ("index",), "mbarrier.arrive.shared::cta.b64 _, [%0];", "arrives at a (release, CTA)"),
    effect(
        "mbarrier_wait",
        ("index", "index"),
        "{\\n.reg .pred p;\\nagain%=:\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n"
        "@p bra done%=;\\nbra again%=;\\ndone%=:\\n}",
        "until the phase of parity b is complete at a (acquire, CTA)",
    ),
    Instruction(
        "mbarrier_test",
        ("index", "index"),
        "index",
        'unsigned r; asm volatile("{\\n.reg .pred p;\\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\\n'
        'selp.u32 %0, 1, 0, p;\\n}" : "=r"(r) : "r"(a), "r"(b) : "memory"); return r;',
        "whether the phase of parity b is complete at a (acquire, CTA): 1, or 0",
    ),
    Instruction(
        "mbarrier_wait_bounded",
        ("index", "index", "i64"),
        "index",
        bounded("unsigned p;", f"{_TRY} if (p) return 0;", "if (why && now >= end) return why;", "c", every=8),
        "as mbarrier_wait, as long as the alarm at c allows: 0, or 1 or 2 if it gives up",
    ),
    Instruction(
        "mbarrier_wait_bounded_warp",
        ("index", "index", "i64"),
        "index",
        bounded(
            "unsigned p, all = 0;",
            f"{_TRY} all |= p; if (__all_sync(0xffffffffu, all)) return 0;",
            "int most = __reduce_max_sync(0xffffffffu, why && now >= end ? why : 0); if (most) return most;",
            "c",
            every=8,
        ),
        "the same, with one answer for all threads of a warp",
    ),
    # clusters (PTX ISA: barrier.cluster, mapa, st.async)
    effect(
        "sync_cluster",
        (),
        "barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;",
        "barrier over all threads of the cluster, with memory order",
    ),
    effect(
        "send_cluster_b32",
        ("index", "b32", "index", "index"),
        "{\\n.reg .b32 p, q;\\nmapa.shared::cluster.u32 p, %0, %3;\\nmapa.shared::cluster.u32 q, %2, %3;\\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [p], %1, [q];\\n}",
        "b to a in the shared memory of CTA d of the cluster, 4 bytes for the phase at c there",
    ),
    effect(
        "mbarrier_wait_cluster",
        ("index", "index"),
        "{\\n.reg .pred p;\\nagain%=:\\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\\n"
        "@p bra done%=;\\nbra again%=;\\ndone%=:\\n}",
        "until the phase of parity b is complete at a (acquire, cluster)",
    ),
    # order (PTX ISA: Memory Consistency Model, membar/fence)
    effect("fence_async_shared", (), "fence.proxy.async.shared::cta;", "generic before async, shared"),
    effect("fence_async_global", (), "fence.proxy.async.global;", "generic before async, global"),
    effect("fence_release_sys", (), "fence.release.sys;", "releases what was written, to all GPUs"),
    effect("fence_release_gpu", (), "fence.release.gpu;", "releases what was written, to this GPU"),
    effect("fence_acquire_sys", (), "fence.acquire.sys;", "acquires what was released, all GPUs"),
    effect("fence_acquire_gpu", (), "fence.acquire.gpu;", "acquires what was released, this GPU"),
    # bulk groups
    effect("bulk_commit", (), "cp.async.bulk.commit_group;", "ends a group of asynchronous stores"),
    effect("bulk_wait_read", (), "cp.async.bulk.wait_group.read 0;", "stores have read their source"),
    effect("bulk_wait_full", (), "cp.async.bulk.wait_group 0;", "stores are complete and visible"),
    # signals
    effect(
        "signal_release_sys",
        ("i64", "index"),
        "red.release.sys.global.add.u32 [%0], %1;",
        "adds b to the counter at a, after all earlier writes of this thread, on any GPU",
    ),
    effect("signal_release_gpu", ("i64", "index"), "red.release.gpu.global.add.u32 [%0], %1;", "the same on this GPU"),
    effect(
        "signal_relaxed_sys",
        ("i64", "index"),
        "red.relaxed.sys.global.add.u32 [%0], %1;",
        "adds b to the counter at a, without memory order",
    ),
    effect(
        "raise_release_sys",
        ("i64", "index"),
        "red.release.sys.global.max.u32 [%0], %1;",
        "raises the counter at a to b, after all earlier writes of this thread, on any GPU",
    ),
    effect("raise_release_gpu", ("i64", "index"), "red.release.gpu.global.max.u32 [%0], %1;", "the same on this GPU"),
    effect(
        "raise_relaxed_sys",
        ("i64", "index"),
        "red.relaxed.sys.global.max.u32 [%0], %1;",
        "raises the counter at a to b, without memory order",
    ),
    # packets: an element in the low half of a word, the epoch in the high one, which memory writes and reads at once
    # (PTX ISA, Memory Consistency Model, Vector Data-types: each word is a scalar)
    Instruction(
        "send_v4_where",
        ("registers<4 x b32>", "i64", "index", "i1"),
        None,
        "if (!d) return; for (int i = 0; i < 2; ++i) {"
        ' asm volatile("st.relaxed.sys.global.v4.b32 [%4], {%0, %1, %2, %3};" :'
        ' : "r"(__byte_perm(a[2 * i], c, 0x5410)), "r"(__byte_perm(a[2 * i], c, 0x5432)),'
        ' "r"(__byte_perm(a[2 * i + 1], c, 0x5410)), "r"(__byte_perm(a[2 * i + 1], c, 0x5432)),'
        ' "l"(b + 16 * i) : "memory"); }',
        "8 elements of 16 bits in packets with the epoch c, 32 bytes at b, if d",
    ),
    Instruction(
        "receive_v4_where",
        ("registers<4 x b32>", "i64", "index", "i1"),
        None,
        f"if (!d) return; unsigned w[8], late; do {{ {_LOOK_AT_8} }} while (late >> 16); {_ELEMENTS_OF_8}",
        "until 8 packets at b have the epoch c, if d; their elements",
    ),
    Instruction(
        "receive_v4_guarded",
        ("registers<4 x b32>", "i64", "index", "i1", "i64"),
        None,
        "if (!d) return; unsigned w[8], late; "
        + guarded(_LOOK_AT_8, "if (!(late >> 16)) break;", "e")
        + f" {_ELEMENTS_OF_8}",
        "the same, as long as the alarm at e allows, which it may raise",
    ),
    Instruction(
        "send_b16",
        ("i64", "b32", "index"),
        None,
        'asm volatile("st.relaxed.sys.global.b32 [%0], %1;" : : "l"(a), "r"(__byte_perm(b, c, 0x5410)) : "memory");',
        "the low 16 bits in a packet with the epoch c",
    ),
    Instruction(
        "receive_b16",
        ("i64", "index"),
        "b32",
        f"unsigned w; do {{ {_LOOK_AT_1} }} while ((w ^ ((unsigned)b << 16)) >> 16); return w & 0xffffu;",
        "until the packet at a has the epoch b; its element",
    ),
    Instruction(
        "receive_b16_guarded",
        ("i64", "index", "i64"),
        "b32",
        "unsigned w; "
        + guarded(_LOOK_AT_1, "if (!((w ^ ((unsigned)b << 16)) >> 16)) break;", "c")
        + " return w & 0xffffu;",
        "the same, as long as the alarm at c allows, which it may raise",
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
        ("registers<1 x index>", "i64", "index", "i64"),
        "index",
        bounded(
            "unsigned v;",
            'asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(b) : "memory");'
            " if ((int)(v - (unsigned)c) >= 0) return 0;",
            "if (why && now >= end) { a[0] = v; return why; }",
            "d",
            every=64,
        ),
        "until the counter at b is at least c, as long as the alarm at d allows: 0, or 1 (it waited too long) or 2"
        " (another did) if it gives up at value a",
    ),
    Instruction(
        "spin_guarded",
        ("i64", "index", "i64", "i64", "index", "index", "index"),
        None,
        _spin_guarded(again=False),
        "until the counter at a is at least b, as long as the alarm at c allows, at which it looks once in 16384 looks;"
        " if it gives up, it says so as `report`(d, e, why, f, g, value, b, a) and `raise_alarm`(c)",
    ),
    Instruction(
        "spin_guarded_in_task",
        ("i64", "index", "i64", "i64", "index", "index", "index"),
        None,
        _spin_guarded(again=True),
        "`spin_guarded` in a loop over tasks, which keeps nothing for a report",
    ),
    Instruction(
        "report",
        ("i64", *["index"] * 7),
        None,
        f"{report('a', 'b')} {words(dict(enumerate('cdefgh00')))}",
        "writes c (1: waited too long, 2: others did, 3: index), d, e, f, g, h: a report of this warp, of b in a CTA",
    ),
    Instruction("raise_alarm", ("i64",), None, RAISE.format("a"), "raises the alarm at a, for all ranks"),
    Instruction("any_of_warp", ("i1",), "i1", "return __any_sync(0xffffffffu, a);", "whether it holds for any thread"),
    effect("end_thread", (), "exit;", "the thread ends"),
    Instruction("out_of_range", ("index", "index"), None, "", "marks an index a that is not below b"),
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
        + asm(
            "st.global.v4.b32 [%0], {%1, %2, %3, %4};",
            "",
            '"l"(b + 16ull * (unsigned)a[0]), "r"(d), "r"(e), "r"(f), "r"(g)',
        )
        + " } ++a[0];",
        "writes d, e, f and g to record a of the c records at b, if a < c; increments a",
    ),
    Instruction("load_u32", ("i64",), "index", "return *(const volatile unsigned*)a;", "the counter at a"),
    Instruction("store_u32", ("i64", "index"), None, "*(volatile unsigned*)a = b;", "a counter of this CTA"),
    Instruction(
        "take_number",
        ("i64",),
        "index",
        "unsigned r; " + asm("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;", '"=r"(r)', '"l"(a)') + " return r;",
        "the number that the counter at a of this GPU had, which is one more then",
    ),
    Instruction("clear_u32", ("i64",), None, "*(volatile unsigned*)a = 0;", "a counter of this rank, to zero"),
)
"""Barriers, fences, groups of copies, and signals."""
