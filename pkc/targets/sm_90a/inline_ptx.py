"""How instructions are written as inline PTX in CUDA C++ (Inline PTX Assembly in CUDA)."""

from __future__ import annotations

from collections.abc import Sequence

from pkc.targets.instruction import Instruction

_INPUTS = {"index": '"r"({})', "b32": '"r"({})', "i64": '"l"({})', "f32": '"f"({})', "map": '"l"(&{})'}
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


def bounded(setup: str, look: str, give_up: str, stop: str, limit: str, *, every: int = 1) -> str:
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
