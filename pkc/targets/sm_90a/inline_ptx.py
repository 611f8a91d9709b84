"""How instructions are written as inline PTX in CUDA C++ (Inline PTX Assembly in CUDA)."""

from __future__ import annotations

from collections.abc import Sequence

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


def report(reports: str, warps: str, *words: str) -> str:
    """Write six words, the report of this warp, of so many in a CTA. As these lines are, no kernel spills for them."""
    first, second = (", ".join(f'"r"({word})' for word in some) for some in (words[:4], (*words[4:], "0", "0")))
    return (
        f"const unsigned long long to = {reports} + (blockIdx.x * {warps} + threadIdx.x / 32) * 32ull;"
        f' asm volatile("st.global.v4.b32 [%0], {{%1, %2, %3, %4}};" : : "l"(to), {first} : "memory");'
        f' asm volatile("st.global.v4.b32 [%0+16], {{%1, %2, %3, %4}};" : : "l"(to), {second} : "memory");'
    )


RAISE = 'asm volatile("st.release.sys.global.u32 [%0], 1;" :  : "l"({}) : "memory");'
"""The alarm at an address is raised, after what was written before."""


def guarded(look: str, done: str, alarm: str, say: str = "") -> str:
    """Look until it is done, which leaves the loop or the function, as long as the alarm allows; else raise that.

    The alarm and the clock are looked at once in 1024 looks. Registers are short where this stands: a millisecond is
    taken for 2^20 ns, so that 32 bits have the time.
    """
    return (
        f"unsigned s = 0, now, limit, first = 0; for (unsigned n = 1;; ++n) {{ {look} {done} if (n % 1024) continue;"
        ' asm volatile("{.reg .u64 t; mov.u64 t, %%globaltimer; shr.u64 t, t, 20; cvt.u32.u64 %0, t;}" : "=r"(now) ::'
        ' "memory"); if (!first) first = now;'
        ' asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];" : "=r"(s), "=r"(limit)'
        f' : "l"({alarm}) : "memory");'
        " if (s || now - first > limit) { s = s ? 2 : 1; break; } }"
        f" if (s) {{ {say} if (s == 1) {RAISE.format(alarm)} }}"
    )
