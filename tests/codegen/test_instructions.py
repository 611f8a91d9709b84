"""What the PTX of single instructions does, for one thread; and what their names promise of order and completion."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from pkc.codegen.nvrtc import compile_cuda
from pkc.targets.instruction import Instruction
from pkc.targets.sm_90a.inline_ptx import GUARDED_LOOKS
from pkc.targets.sm_90a.instructions import PLAIN, instruction
from tests.codegen.one_thread import BASE, Thread
from tests.codegen.test_cuda import as_function

LOOKS = 256
"""After how many looks guarded waits look at the clock and the alarm here, instead of `GUARDED_LOOKS`."""

FIRST = [7, 8, 9, 10]
"""What registers have before an instruction."""


@cache
def compiled(body: str, *names: str) -> str:
    """A kernel of a pointer `p` and integers a, b, c, which may call some instructions."""
    entries = [entry for name in names if (entry := instruction(name)) is not None]
    assert len(entries) == len(names)
    head = 'extern "C" __global__ void k(unsigned* p, long long a, long long b, long long c)'
    text = "\n".join([*map(as_function, entries), f"{head} {{ {body} }}"])
    return compile_cuda(text.replace(f"n = {GUARDED_LOOKS};", f"n = {LOOKS};"), "sm_90a", "k").ptx


def run(
    body: str,
    names: Sequence[str],
    *integers: int,
    words: Sequence[int] = (),
    others: Callable[..., None] | None = None,
) -> Thread:
    """A thread that has run a kernel, on memory that begins with some words."""
    thread = Thread(bytearray(256))
    thread.put(0, *words)
    if others is not None:
        thread.others = lambda offset: others(thread, offset)
    given = [BASE, *integers, 0, 0, 0][:4]
    thread.run(compiled(body, *names), given)
    return thread


# 16-bit elements

NUMBERS = np.array([1.0, -2.5, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 65504.0, 2.0**-14, -0.0], np.float32)


@pytest.mark.parametrize(("kind", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_the_first_element_is_in_the_low_half(kind: str, dtype: type) -> None:
    for low, high in zip(NUMBERS, NUMBERS[::-1], strict=True):
        found = run(
            f"float* f = (float*)p; p[2] = pack_{kind}(f[0], f[1]);",
            [f"pack_{kind}"],
            words=[int(value.view(np.uint32)) for value in (low, high)],
        ).word(8)
        bits = [int(value.astype(dtype).view(np.uint16)) for value in (low, high)]
        assert found == bits[1] << 16 | bits[0]


@pytest.mark.parametrize(("kind", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_halves_of_a_register(kind: str, dtype: type) -> None:
    names = [f"low_{kind}", f"high_{kind}"]
    body = f"float* f = (float*)p; f[1] = low_{kind}(p[0]); f[2] = high_{kind}(p[0]);"
    for low, high in ((1.5, -3.0), (-0.25, 96.0)):
        bits = [int(np.array(value).astype(dtype).view(np.uint16)) for value in (low, high)]
        thread = run(body, names, words=[bits[1] << 16 | bits[0]])
        assert [float(np.uint32(thread.word(at)).view(np.float32)) for at in (4, 8)] == [low, high]


EIGHT_BIT = [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)]
ENDS = [
    1.0,
    -0.3,
    2.0**-9,
    2.0**-18,
    448.0,
    464.0,
    464.25,
    -465.0,
    1e9,
    57344.0,
    61439.0,
    -61440.0,
    np.inf,
    -np.inf,
    -0.0,
]
"""Around the largest numbers of 8 bits: e4m3 has none beyond 448, up to half of the next step; e5m2 has infinities."""


@pytest.mark.parametrize(("kind", "dtype"), EIGHT_BIT)
def test_8_bit_elements_do_not_saturate(kind: str, dtype: type) -> None:
    body, names = f"float* f = (float*)p; p[2] = pack_{kind}(f[0], f[1]);", [f"pack_{kind}"]
    numbers = np.array([*ENDS, np.nan], np.float32)
    for pair in zip(numbers, numbers[::-1], strict=True):
        found = run(body, names, words=[int(value.view(np.uint32)) for value in pair]).word(8)
        bits = np.array([found & 0xFF, found >> 8], np.uint8)
        np.testing.assert_array_equal(
            bits.view(dtype).astype(np.float32), np.array(pair).astype(dtype).astype(np.float32)
        )
        assert [np.signbit(x) for x in bits.view(dtype).astype(np.float32) if x == 0] == [
            np.signbit(x) for x in np.array(pair).astype(dtype).astype(np.float32) if x == 0
        ]


@pytest.mark.parametrize(("kind", "dtype"), EIGHT_BIT)
def test_bytes_of_a_register(kind: str, dtype: type) -> None:
    body = f"float* f = (float*)p; f[1] = low_{kind}(p[0]); f[2] = high_{kind}(p[0]);"
    for low, high in ((1.5, -3.0), (-0.25, 96.0), (np.nan, 2.0**-9)):
        bits = [int(np.array(value).astype(dtype).view(np.uint8)) for value in (low, high)]
        thread = run(body, [f"low_{kind}", f"high_{kind}"], words=[0xABCD0000 | bits[1] << 8 | bits[0]])
        found = [float(np.uint32(thread.word(at)).view(np.float32)) for at in (4, 8)]
        np.testing.assert_array_equal(found, [low, high])


def test_integers_of_a_byte_saturate() -> None:
    numbers = [0, 1, -1, 127, 128, -128, -129, 1 << 20, -(1 << 31), (1 << 31) - 1]
    body = "int* i = (int*)p; p[2] = pack_i8(i[0], i[1]); i[3] = low_i8(p[2] | 7u << 16); i[4] = high_i8(p[2]);"
    for pair in zip(numbers, numbers[::-1], strict=True):
        thread = run(body, ["pack_i8", "low_i8", "high_i8"], words=[x % 2**32 for x in pair])
        wanted = [min(max(x, -128), 127) for x in pair]
        assert thread.word(8) == wanted[1] % 256 << 8 | wanted[0] % 256
        assert [thread.word(at) for at in (12, 16)] == [x % 2**32 for x in wanted]


# Global memory


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("condition", [0, 1, 2])
def test_a_masked_load(count: int, condition: int) -> None:
    """Where the condition does not hold, registers keep what they have, and nothing is read: there may be no memory."""
    name = f"load_global_v{count}_where"
    registers = ", ".join(map(str, FIRST[:count]))
    body = f"unsigned r[{count}] = {{{registers}}}; {name}(r, a, b); for (int i = 0; i < {count}; ++i) p[i] = r[i];"
    where = BASE + 64 if condition else BASE - 4096
    thread = run(body, [name], where, condition, words=[0] * 16 + [1, 2, 3, 4])
    assert [thread.word(4 * i) for i in range(4)] == ([1, 2, 3, 4] if condition else FIRST)[:count] + [0] * (4 - count)
    assert thread.loads == (1 if condition else 0)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("condition", [0, 1, 2])
def test_a_masked_store(count: int, condition: int) -> None:
    name = f"store_global_v{count}_where"
    body = f"unsigned r[{count}] = {{{', '.join(map(str, FIRST[:count]))}}}; {name}(r, a, b);"
    thread = run(body, [name], BASE + 16, condition, words=[5] * 12)
    stored = FIRST[:count] + [5] * (4 - count) if condition else [5] * 4
    assert [thread.word(4 * i) for i in range(12)] == [5] * 4 + stored + [5] * 4


def test_only_so_many_bytes_are_stored() -> None:
    thread = run("store_global_b16(a, b); store_global_b32(a + 4, b);", ["store_global_b16", "store_global_b32"],
                 BASE, 0x12345678, words=[0xAAAAAAAA] * 3)  # fmt: skip
    assert [thread.word(at) for at in (0, 4, 8)] == [0xAAAA5678, 0x12345678, 0xAAAAAAAA]
    thread = run("p[4] = load_global_b16(a); p[5] = load_global_b32(a);", ["load_global_b16", "load_global_b32"],
                 BASE, words=[0x12345678])  # fmt: skip
    assert [thread.word(at) for at in (16, 20)] == [0x5678, 0x12345678]


def test_records_have_room_or_are_counted() -> None:
    body = "int n[1] = {(int)b}; record(n, a, 2, 11, 12, 13, 14); p[0] = n[0];"
    for number, written in ((1, [11, 12, 13, 14]), (2, [0] * 4)):
        thread = run(body, ["record"], BASE + 32, number)
        assert thread.word(0) == number + 1
        assert [thread.word(32 + 16 * number + 4 * i) for i in range(4)] == written


# Packets

ELEMENTS = [0x0001_0002, 0xFFFF_8000, 0x1234_0000, 0x0000_ABCD]
"""Four registers of two elements."""


def packets(elements: Sequence[int], epoch: int) -> list[int]:
    halves = [half for word in elements for half in (word & 0xFFFF, word >> 16)]
    return [half | (epoch & 0xFFFF) << 16 for half in halves]


@pytest.mark.parametrize("epoch", [1, 65535, 65536, 3 << 16 | 7])
def test_elements_are_sent_with_the_low_half_of_the_epoch(epoch: int) -> None:
    registers = ", ".join(map(str, ELEMENTS))
    body = f"unsigned r[4] = {{{registers}}}; send_v4_where(r, a, (int)b, c); send_b16(a + 32, r[1], (int)b);"
    for where, sent in ((1, packets(ELEMENTS, epoch)), (0, [0] * 8)):
        thread = run(body, ["send_v4_where", "send_b16"], BASE, epoch, where)
        assert [thread.word(4 * i) for i in range(9)] == [*sent, 0x8000 | (epoch & 0xFFFF) << 16]


@pytest.mark.parametrize("guard", ["", ", a + 128"], ids=["bare", "guarded"])
@pytest.mark.parametrize("late", range(8))
def test_a_reader_waits_for_each_packet(late: int, guard: str) -> None:
    """One comes after the others, whichever it is: the epoch there was that of two launches before."""
    epoch = 65537
    all_there = packets(ELEMENTS, epoch)
    before = [*all_there[:late], packets(ELEMENTS, epoch - 2)[late] ^ 1, *all_there[late + 1 :]]
    looks: list[int] = []

    def others(thread: Thread, offset: int) -> None:
        looks.append(offset)
        if len(looks) == 20:
            thread.put(4 * late, all_there[late])

    name = "receive_v4_guarded" if guard else "receive_v4_where"
    body = f"unsigned r[4]; {name}(r, a, (int)b, 1{guard}); for (int i = 0; i < 4; ++i) p[16 + i] = r[i];"
    thread = run(body, [name], BASE, epoch, words=before, others=others)
    assert [thread.word(64 + 4 * i) for i in range(4)] == ELEMENTS
    assert len(looks) >= 20


@pytest.mark.parametrize("name", ["receive_v4_guarded", "receive_b16_guarded"])
def test_a_reader_gives_up_when_the_alarm_is_raised(name: str) -> None:
    """After `LOOKS` looks; the packets are those of another epoch."""
    thread = Thread(bytearray(384))
    thread.put(0, *packets(ELEMENTS, 4))
    thread.put(128, 1, 10)
    vector = f"unsigned r[4]; {name}(r, a, (int)b, 1, a + 128);"
    thread.run(compiled(vector if "v4" in name else f"{name}(a, (int)b, a + 128);", name), [BASE, BASE, 5])
    assert thread.loads == (2 if "v4" in name else 1) * LOOKS + 1


@pytest.mark.parametrize("name", ["receive_v4_guarded", "receive_b16_guarded"])
def test_a_reader_that_waits_too_long_raises_the_alarm(name: str) -> None:
    thread = Thread(bytearray(384))
    thread.put(0, *packets(ELEMENTS, 4))
    thread.put(132, 2)
    times = iter(range(100 * WRAPS, 200 * WRAPS, 2**20))
    thread.clock = lambda: next(times)
    vector = f"unsigned r[4]; {name}(r, a, (int)b, 1, a + 128);"
    thread.run(compiled(vector if "v4" in name else f"{name}(a, (int)b, a + 128);", name), [BASE, BASE, 5])
    assert thread.word(128) == 1


def test_a_reader_leaves_what_it_does_not_want() -> None:
    body = "unsigned r[4] = {7, 8, 9, 10}; receive_v4_where(r, a, (int)b, 0); for (int i = 0; i < 4; ++i) p[i] = r[i];"
    thread = run(body, ["receive_v4_where"], BASE - 4096, 5)
    assert [thread.word(4 * i) for i in range(4)] == FIRST
    assert thread.loads == 0


def test_one_packet_is_awaited() -> None:
    def others(thread: Thread, offset: int) -> None:
        if thread.loads == 3:
            thread.put(0, 9 << 16 | 0xBEEF)

    thread = run("p[1] = receive_b16(a, (int)b);", ["receive_b16"], BASE, 9, words=[7 << 16 | 1], others=others)
    assert thread.word(4) == 0xBEEF


def test_a_report_is_that_of_its_warp() -> None:
    """Warp 2 of CTA 1, of 3 warps in a CTA: report 5, of which the last two words are not used."""
    thread = Thread(bytearray(256))
    thread.special = {"%ctaid.x": 1, "%tid.x": 75}
    thread.run(compiled("report(a, (int)b, 11, 12, 13, 14, 15, 16);", "report"), [BASE, BASE, 3])
    assert [thread.word(4 * word) for word in range(64)] == [0] * 40 + [11, 12, 13, 14, 15, 16] + [0] * 18


# Counters

WRAPS = 2**32
AWAITED = [
    (3, [0, 1, 2, 3], 4),
    (3, [7], 1),
    (0, [WRAPS - 2, WRAPS - 1, 0], 3),
    (2, [WRAPS - 1, 1, 2], 3),
    (WRAPS - 1, [WRAPS - 3, WRAPS - 1], 2),
    (WRAPS - 1, [4], 1),
    (2**31 + 1, [2**31 - 1, 2**31, 2**31 + 1], 3),
    (2**31 - 1, [2**31 - 2, 2**31 + 5], 2),
]
"""The count that is waited for, what the counter has at each look, and after how many of them the wait is over."""


GUARDED = "spin_guarded(a, (int)b, a + 64, a + 128, 3, 7, 9);"
"""A wait for the counter at 0; the alarm is at 64, reports at 128, 3 warps in a CTA."""

ALARM = [0] * 17 + [1000]
"""Words: at 64 an alarm that is not raised and lets waits take a second."""


def counting(values: Sequence[int], stop: Sequence[int] = (0,)) -> Callable[[Thread, int], None]:
    """Others raise the counter at 0 to the next value before each look at it; then that at 64."""
    left = {0: list(values), 64: list(stop)}

    def step(thread: Thread, offset: int) -> None:
        if left.get(offset):
            thread.put(offset, left[offset].pop(0))

    return step


@pytest.mark.parametrize(("count", "values", "looks"), AWAITED)
def test_a_counter_is_awaited_modulo_2_to_the_32(count: int, values: list[int], looks: int) -> None:
    thread = run("spin(a, (int)b);", ["spin"], BASE, count, others=counting([*values, values[-1] + 1]))
    assert thread.loads == looks


@pytest.mark.parametrize(("count", "values", "looks"), AWAITED)
def test_so_it_is_by_a_bounded_wait(count: int, values: list[int], looks: int) -> None:
    step = counting([*values, values[-1] + 1])
    seen: list[int] = []

    def others(thread: Thread, offset: int) -> None:
        step(thread, offset)
        if offset == 0:
            seen.append(thread.word(0))

    body = "int seen[1] = {-1}; p[1] = spin_bounded(seen, a, (int)b, a + 64);"
    thread = run(body, ["spin_bounded"], BASE, count, others=others, words=ALARM)
    assert thread.word(4) == 0
    assert seen == [value % WRAPS for value in values[:looks]]


@pytest.mark.parametrize(("count", "values", "looks"), AWAITED)
def test_so_it_is_by_a_guarded_wait(count: int, values: list[int], looks: int) -> None:
    """Which looks at nothing but the counter."""
    thread = run(GUARDED, ["spin_guarded"], BASE, count, others=counting([*values, values[-1] + 1]), words=ALARM)
    assert thread.loads == looks


@pytest.mark.parametrize("name", ["spin_guarded", "spin_guarded_in_task"])
@pytest.mark.parametrize(
    ("stop", "why", "loads"), [(0, 1, 5 * (LOOKS + 2) + 2), (1, 2, LOOKS + 3)], ids=["late", "others"]
)
def test_a_guarded_wait_gives_up(stop: int, why: int, loads: int, name: str) -> None:
    """It looks at the clock and the alarm, and its limit if that is not raised, once in `LOOKS` looks, a millisecond
    after the last time here, and waits 3; then warp 2 of CTA 1 looks a last time at counter and alarm, says that it
    waits at place 7, in task 9, for a count of 5, and raises the alarm."""
    thread = _waiting(stop, name=name)
    assert [thread.word(128 + 32 * 5 + 4 * word) for word in range(8)] == [why, 7, 9, 4, 5, BASE % WRAPS, 0, 0]
    assert thread.word(64) == 1
    assert thread.loads == loads


def test_a_guarded_wait_does_not_give_up_for_what_has_come() -> None:
    """Its last look is behind the alarm."""
    thread = _waiting(1, [(LOOKS + 1, 0, 5)])
    assert not any(thread.memory[128:])
    assert thread.loads == LOOKS + 2


@pytest.mark.parametrize(
    ("at", "loads"), [(2 * LOOKS + 2, 2 * LOOKS + 5), (2 * LOOKS + 4, 2 * LOOKS + 6)], ids=["when", "after"]
)
def test_a_guarded_wait_of_which_others_give_up_first_says_so(at: int, loads: int) -> None:
    """Whether it sees the alarm before its own limit is over or behind it."""
    thread = _waiting(0, [(at, 64, 1)], limit=0)
    assert thread.word(128 + 32 * 5) == 2
    assert thread.loads == loads


def _waiting(
    stop: int, others: Sequence[tuple[int, int, int]] = (), limit: int = 3, name: str = "spin_guarded"
) -> Thread:
    """A guarded wait for 5 that sees 4, an alarm, and others who write words after so many loads."""
    thread = Thread(bytearray(384))
    thread.put(0, 4)
    thread.put(64, stop)
    thread.put(68, limit)
    times = iter(range(100 * WRAPS, 200 * WRAPS, 2**20))
    thread.clock = lambda: next(times)
    thread.special = {"%ctaid.x": 1, "%tid.x": 75}

    def step(_offset: int) -> None:
        for after, place, value in others:
            if thread.loads == after:
                thread.put(place, value)

    thread.others = step
    thread.run(compiled(GUARDED.replace("spin_guarded", name), name), [BASE, BASE, 5])
    return thread


@pytest.mark.parametrize(
    ("stop", "why", "after"), [((0,), 1, 5_000_000), ((0, 1), 2, 1_000_000)], ids=["late", "others"]
)
def test_a_bounded_wait_gives_up(stop: tuple[int, ...], why: int, after: int) -> None:
    """After its limit; or a millisecond after another did. It says what it has seen."""
    ticks: list[int] = []
    thread = Thread(bytearray(128))
    thread.put(0, 4)
    thread.put(68, 5 if why == 1 else 1000)
    step = counting([], stop)
    thread.others = lambda offset: step(thread, offset)

    def clock() -> int:
        ticks.append(100 * WRAPS + after // 8 * len(ticks))
        return ticks[-1]

    thread.clock = clock
    body = "int seen[1] = {-1}; p[1] = spin_bounded(seen, a, (int)b, a + 64); p[2] = seen[0];"
    ptx = compiled(body, "spin_bounded")
    thread.run(ptx, [BASE, BASE, 5])
    assert [thread.word(at) for at in (4, 8)] == [why, 4]
    # It looks at both counters at the first tick, and sees that another gave up at the second.
    assert after <= ticks[-1] - ticks[why - 1] <= after + after // 8


@pytest.mark.parametrize(
    ("verb", "before", "amount", "left"),
    [
        ("signal", 5, 3, 8),
        ("signal", WRAPS - 1, 3, 2),
        ("raise", 5, 3, 5),
        ("raise", 5, 9, 9),
    ],
)
@pytest.mark.parametrize("order", ["release_sys", "release_gpu", "relaxed_sys"])
def test_signals(verb: str, before: int, amount: int, left: int, order: str) -> None:
    name = f"{verb}_{order}"
    thread = run(f"{name}(a, (int)b);", [name], BASE + 4, amount, words=[1, before, 1])
    assert [thread.word(at) for at in (0, 4, 8)] == [1, left, 1]
    assert f".{order.replace('_', '.')}." in compiled(f"{name}(a, (int)b);", name)


# What one thread cannot see


@pytest.mark.parametrize("left", [0, 1, 2, 7])
@pytest.mark.parametrize("form", ["read", "full"])
def test_a_wait_for_stores_says_what_it_waits_for(form: str, left: int) -> None:
    """PTX ISA, cp.async.bulk.wait_group: with `.read` until sources are read, else until all is complete."""
    entry = instruction(f"bulk_wait_{form}{f'_{left}' if left else ''}")
    assert entry is not None
    found = re.findall(r"cp\.async\.bulk\.wait_group(\.read)? (\d+);", entry.body)
    assert found == [(".read" if form == "read" else "", str(left))]


FENCES = [entry for entry in PLAIN if re.match("fence_(release|acquire)_", entry.name)]


@pytest.mark.parametrize("entry", FENCES, ids=[entry.name for entry in FENCES])
def test_a_fence_is_of_its_name(entry: Instruction) -> None:
    assert entry.body.count(entry.name.replace("_", ".") + ";") == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fence_async_shared", "fence.proxy.async.shared::cta;"),
        ("fence_async_global", "fence.proxy.async.global;"),
        ("mbarrier_expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"),
        ("mbarrier_arrive", "mbarrier.arrive.shared::cta.b64 _, [%0];"),
        ("mbarrier_test", "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;"),
    ],
)
def test_words_of_the_manual(name: str, words: str) -> None:
    entry = instruction(name)
    assert entry is not None
    assert words in entry.body


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("mbarrier_wait", ""),
        *((f"mbarrier_wait_{form}", ".acquire.cluster") for form in ("cluster", "bounded", "bounded_warp")),
    ],
)
def test_a_wait_for_a_barrier_acquires(name: str, scope: str) -> None:
    """PTX ISA, mbarrier.try_wait: .acquire and .cta where nothing else is said. What CTAs of a cluster hand each other
    needs more, and in debug builds all waits are alike."""
    entry = instruction(name)
    assert entry is not None
    assert re.findall(r"mbarrier\.\w+[\w.:]*", entry.body) == [f"mbarrier.try_wait.parity{scope}.shared::cta.b64"]


@pytest.mark.parametrize("n", [8, 64, 256])
@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("majors", ["kk", "kn", "mk", "mn"])
def test_majors(n: int, kind: str, majors: str) -> None:
    """PTX ISA, wgmma.mma_async: imm-trans-a and imm-trans-b are 0 for K-major, 1 for M- and N-major operands."""
    for source in ("s", "r"):
        entry = instruction(f"wgmma_n{n}_{kind}_{source}s_{majors}")
        if entry is None:  # registers have one form
            assert (source, majors[0]) == ("r", "m")
            continue
        (flags,) = re.findall(r", p, 1, 1((?:, [01])*);", entry.body)
        wanted = [int(major != "k") for major in (majors if source == "s" else majors[1])]
        assert [int(flag) for flag in flags.split(", ")[1:]] == wanted
        assert f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{kind}.{kind} " in entry.body


def test_tf32() -> None:
    """PTX ISA, wgmma.mma_async: k is 8; both operands are K-major, and in shared memory."""
    entry = instruction("wgmma_n64_f32_ss_kk")
    assert entry is not None
    assert "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 " in entry.body
    assert ", p, 1, 1;" in entry.body
    assert instruction("wgmma_n64_f32_rs_kk") is None
    assert instruction("wgmma_n64_f32_ss_kn") is None


@pytest.mark.parametrize(("a", "b"), [("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"), ("e5m2", "e4m3")])
def test_types_of_8_bits(a: str, b: str) -> None:
    """A comes first in the name, as in PTX; there are no flags, as both operands are K-major."""
    entry = instruction(f"wgmma_n64_{a}{'' if a == b else f'_{b}'}_ss_kk")
    assert entry is not None
    assert f"wgmma.mma_async.sync.aligned.m64n64k32.f32.{a}.{b} " in entry.body
    assert ", p, 1, 1;" in entry.body
