"""How instructions are written as inline PTX in CUDA C++ (Inline PTX Assembly in CUDA)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pkc.targets.instruction import Instruction

_INPUTS = {
    "index": '"r"({})',
    "i32": '"r"({})',
    "b32": '"r"({})',
    "i64": '"l"({})',
    "f32": '"f"({})',
    "map": '"l"(&{})',
}
"""How an operand is handed to PTX, by kind; those of other kinds are spelled out where they are used."""

_RESULTS = {"f32": ("float", "f"), "b32": ("unsigned", "r")}
"""The C++ type of a result and its constraint, by kind."""


def asm(ptx: str, outputs: str = "", inputs: str = "", *, memory: bool = True) -> str:
    """A statement that stays where it is; if it concerns memory, other accesses stay on their side of it."""
    clobbers = ' : "memory"' if memory else ""
    return f'asm volatile("{ptx}" : {outputs} : {inputs}{clobbers});'


def effect(name: str, operands: tuple[str, ...], ptx: str, description: str) -> Instruction:
    """An instruction without a result, whose operands are %0, %1, ... of the PTX in order."""
    return Instruction(name, operands, None, asm(ptx, "", _inputs(operands)), description)


def pure(
    name: str, operands: tuple[str, ...], result: str, ptx: str, description: str, computes: str = ""
) -> Instruction:
    """An instruction that only computes: its result is %0 of the PTX, its operands are %1, %2, ... in order."""
    kind, constraint = _RESULTS[result]
    body = f'{kind} r; asm("{ptx}" : "={constraint}"(r) : {_inputs(operands)}); return r;'
    return Instruction(name, operands, result, body, description, computes)


def _inputs(operands: Sequence[str]) -> str:
    return ", ".join(_INPUTS[kind].format(name) for kind, name in zip(operands, "abcdefgh", strict=False))


def bounded(setup: str, look: str, give_up: str, alarm: str, *, every: int) -> str:
    """Look until something is there, which gives 0, or give up, which gives why.

    It gives up after the milliseconds that the word behind the `alarm` says, or a millisecond after that was raised: by
    then what was in flight is complete. Both are looked at once in `every` looks.
    """
    return (
        f"{setup} unsigned long long first = 0, end = 0; int why = 0; for (unsigned n = 1;; ++n) {{ {look}"
        f" if (n % {every}) continue; unsigned long long now, s;"
        ' asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory"); if (!first) first = now;'
        f' asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(s) : "l"({alarm}) : "memory");'
        " if (!why && (unsigned)s) { why = 2; end = now + 1000000; }"
        f" if (!why && now - first > (s >> 32) * 1000000) {{ why = 1; end = now; }} {give_up} }}"
    )


def report(reports: str, warps: str, *, again: bool = False) -> str:
    """`to` is where the report of this warp is, of so many in a CTA.

    `again`: the numbers of CTA and thread are read where this stands, or loops around keep them. ptxas then computes
    neither of them again elsewhere: outside of loops they are taken as they are.
    """
    if not again:
        return f"const unsigned long long to = {reports} + (blockIdx.x * {warps} + threadIdx.x / 32) * 32ull;"
    return (
        'unsigned cta, thread; asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(cta) :: "memory");'
        ' asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread) :: "memory");'
        f" const unsigned long long to = {reports} + (cta * {warps} + thread / 32) * 32ull;"
    )


def words(found: Mapping[int, str]) -> str:
    """Write these words of a report, in this order, one by one: four at once take four registers in a row."""
    stores = (
        f'asm volatile("st.global.b32 [%0+{4 * at}], %1;" : : "l"(to), "r"({word}) : "memory");'
        for at, word in found.items()
    )
    return " ".join(stores)


RAISE = 'asm volatile("st.release.sys.global.u32 [%0], 1;" :  : "l"({}) : "memory");'
"""The alarm at an address is raised, after what was written before."""

RAISED = 'asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(s) : "l"({}) : "memory");'
"""Whether the alarm at an address is raised."""


GUARDED_LOOKS = 1 << 14
"""After how many looks a guarded wait looks at the clock and the alarm."""


def guarded(look: str, done: str, alarm: str, say: str = "") -> str:
    """Look until it is done, which leaves the loop or the function, as long as the alarm allows; else raise that.

    The alarm and the clock are looked at once in 16384 looks, a few milliseconds. The alarm is in the memory of the
    host, where thousands of threads that look once in 1024 looks leave nobody else, copy engines among them, a turn: a
    mixture of experts on 2 GPUs took 13 to 200 ms instead of 9. What this needs at once, loops around it have to leave,
    so it needs little: a millisecond is taken for 2^20 ns, so that 32 bits have the time; no looks are counted while
    the clock is looked at; words of the alarm are read one by one, and again for a report.
    """
    return (
        f"unsigned s, now, limit, first = 0; for (unsigned n = {GUARDED_LOOKS};;) {{ {look} {done} if (--n) continue;"
        f" n = {GUARDED_LOOKS};"
        ' asm volatile("{.reg .u64 t; mov.u64 t, %%globaltimer; shr.u64 t, t, 20; cvt.u32.u64 %0, t;}" : "=r"(now) ::'
        f' "memory"); if (!first) first = now; now -= first; {RAISED.format(alarm)}'
        f' if (!s) {{ asm volatile("ld.relaxed.sys.global.u32 %0, [%1+4];" : "=r"(limit) : "l"({alarm}) : "memory");'
        f" if (now <= limit) continue; }} {say} if (!s) {RAISE.format(alarm)} break; }}"
    )
