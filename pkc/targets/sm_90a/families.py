"""Families of instructions of sm_90a: the name says shapes, numbers of dimensions, and what must be immediate."""

from __future__ import annotations

import re
from collections.abc import Callable

from pkc.targets.instruction import Instruction
from pkc.targets.sm_90a.arch import ARCH
from pkc.targets.sm_90a.inline_ptx import asm, effect

_SETTLED = 4
"""Registers of an array that `settle` looks at."""


def _tma(match: re.Match[str]) -> Instruction | None:
    """`tma_load_3d(stage, map, barrier, x, y, z)`, `tma_store_3d(stage, map, x, y, z)`, `tma_add_3d(...)`.

    `tma_load_3d_keep`, `tma_load_3d_once`, `tma_store_3d_once`: the L2 cache gives the box up last, or first.
    """
    what, rank, hint = match[1], int(match[2]), match[3]
    if what == "add" and hint:
        return None
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
    ptx, meaning = forms[what], meanings[what]
    if hint:
        ptx, meaning = _hinted(ptx, meaning, hint)
    return Instruction(match[0], operands, None, asm(ptx, "", ", ".join(inputs)), meaning)


def _row(match: re.Match[str]) -> Instruction | None:
    """`tma_load_row(stage, address, barrier, bytes)`, `tma_store_row(stage, address, bytes)`, and `tma_add_row` of f32.

    `tma_load_row_keep`, `..._once` and `tma_store_row_keep`, `..._once` as of boxes. `tma_load_row_around` is the same
    of bytes of which some, in the first 16 and the last, may belong to nothing.
    """
    what, around, hint = match[1], match[2], match[3]
    if (what == "add" and hint) or (around and what != "load"):
        return None
    ptx, meaning = {
        "load": (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];",
            "d bytes at b to shared memory at a; they arrive at the barrier c",
        ),
        "store": (
            "cp.async.bulk.global.shared::cta.bulk_group [%1], [%0], %2;",
            "c bytes of shared memory at a to b",
        ),
        "add": (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%1], [%0], %2;",
            "c bytes of shared memory at a added to those at b, each f32 atomically",
        ),
    }[what]
    operands = ("index", "i64", "index", *(("index",) if what == "load" else ()))
    inputs = ['"r"(a)', '"l"(b)', '"r"(c)', *(('"r"(d)',) if what == "load" else ())]
    if hint:
        ptx, meaning = _hinted(ptx, meaning, hint)
    return Instruction(match[0], operands, None, asm(ptx, "", ", ".join(inputs)), meaning)


def _hinted(ptx: str, meaning: str, hint: str) -> tuple[str, str]:
    """A copy that tells the L2 cache to give up last what it moves (`keep`), or first (`once`)."""
    kind = "last" if hint == "keep" else "first"
    ptx = ptx.replace(" [", ".L2::cache_hint [", 1).replace(";", ", q;")
    ptx = f"{{ .reg .b64 q; createpolicy.fractional.L2::evict_{kind}.b64 q, 1.0; {ptx} }}"
    return ptx, f"{meaning}; the L2 cache gives it up {kind}"


def _type(dtype: str) -> str:
    """How an MMA reads numbers: of f32 the first 10 bits behind the leading one."""
    return "tf32" if dtype == "f32" else dtype


def _wgmma(match: re.Match[str]) -> Instruction | None:
    """`wgmma_n256_bf16_ss_kn(acc, a, b, accumulate)`: A from shared memory (s) or registers (r), majors of A and B.

    `wgmma_n256_e4m3_e5m2_ss_kk` if B has another type than A; f32 is read as tf32.
    """
    n, dtype, source, major_a, major_b = int(match[1]), match[2], match[4], match[5], match[6]
    count = n // 2
    k = {"f32": 8, "bf16": 16, "f16": 16, "e4m3": 32, "e5m2": 32}[dtype]
    other = match[3] or dtype
    if (match[3] and (k < 32 or other == dtype)) or (k == 8 and source == "r"):
        return None
    # Only 16-bit operands in shared memory may have the other major.
    by_k = ("k", "k") if k != 16 else ("k", major_b) if source == "r" else (major_a, major_b)
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
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{_type(dtype)}.{_type(other)}"
        f" {{{d}}}, {a}, {b}, p, 1, 1{transposes};\\n}}"
    )
    outputs = ", ".join(f'"+f"(a[{i}])' for i in range(count))
    if source == "s":
        operands: tuple[str, ...] = (f"registers<{count} x f32>", "i64", "i64", "index")
        inputs = '"l"(b), "l"(c), "r"(d)'
    else:
        operands = (f"registers<{count} x f32>", "b32", "b32", "b32", "b32", "i64", "index")
        inputs = '"r"(b), "r"(c), "r"(d), "r"(e), "l"(f), "r"(g)'
    description = f"a += A[64, {k}] @ B[{k}, {n}] if the last operand is not 0, else a = A @ B; asynchronous"
    return Instruction(match[0], operands, None, asm(ptx, outputs, inputs, memory=False), description)


def _vector(match: re.Match[str]) -> Instruction:
    """`load_global_v4(registers<4 x b32>, address)` and `store_global_v4`: 16, 8 or 4 bytes at once.

    `load_global_v4_where(registers, address, condition)` and `store_global_v4_where` do so only where the condition
    holds; a load leaves the registers as they are elsewhere. A predicate, not a branch: loads stay together.
    `load_global_v4_around_where` is the same of 16 bytes of which some may belong to nothing.
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
        return Instruction(match[0], operands, None, asm(ptx, registers, inputs, memory=False), description)
    return Instruction(match[0], operands, None, asm(ptx, "", f"{registers}, {inputs}"), description)


def _add(match: re.Match[str]) -> Instruction:
    """`add_global_bf16(address, b32)`, of one element; `add_global_bf16_v4(registers<4 x b32>, address)`, of 16 bytes;
    `..._v4_where(registers, address, condition)`, where the condition holds (PTX ISA: red, of vectors from 8.1)."""
    kind, vector, where = match[1], match[2] is not None, match[3] is not None
    form = {"bf16": "add.noftz.bf16", "f16": "add.noftz.f16", "f32": "add.f32", "i32": "add.s32"}[kind]
    red, description = "red.relaxed.sys.global.", f"adds {kind} to global memory, atomic for each element"
    if not vector:
        value = '"h"((unsigned short)b)' if kind in ("bf16", "f16") else '"r"(b)'
        body = asm(f"{red}{form} [%0], %1;", "", f'"l"(a), {value}')
        return Instruction(match[0], ("i64", "b32"), None, body, description)
    if kind == "i32":
        lines = [f"{red}{form} [%4+{4 * i}], %{i};" for i in range(4)]
    else:
        each = form.replace("add.f32", "add.v4.f32").replace("noftz.", "noftz.v4.")
        lines = [f"{red}{each}{'x2' if kind != 'f32' else ''} [%4], {{%0, %1, %2, %3}};"]
    inputs = ", ".join([*(f'"r"(a[{i}])' for i in range(4)), '"l"(b)'])
    ptx = "\\n".join(lines)
    if where:
        guarded = "\\n".join(f"@p {line}" for line in lines)
        ptx = f"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %5, 0;\\n{guarded}\\n}}"
        inputs += ', "r"((int)c)'
    operands = ("registers<4 x b32>", "i64", *(("i1",) if where else ()))
    return Instruction(
        match[0], operands, None, asm(ptx, "", inputs), f"the same for 16 bytes{', if c' if where else ''}"
    )


_CONSTRAINTS = {("load", False): "=r", ("load", True): "+r", ("store", False): "r", ("store", True): "r"}
"""What an instruction does with the registers: writes, or may write, or reads."""


def _wgmma_wait(match: re.Match[str]) -> Instruction | None:
    ptx = f"wgmma.wait_group.sync.aligned {match[1]};"
    return effect(match[0], (), ptx, "at most that many groups are in flight")


def _wgmma_done(match: re.Match[str]) -> Instruction | None:
    """Without it the compiler may copy the registers before the wait, and then runs MMAs one after the other."""
    count = int(match[1])
    if count % 4 or not 4 <= count <= 256:
        return None
    body = asm("", ", ".join(f'"+f"(a[{i}])' for i in range(count)), memory=False)
    return Instruction(match[0], (f"registers<{count} x f32>",), None, body, "MMAs are complete: a may be read")


def _settle(match: re.Match[str]) -> Instruction:
    """ptxas moves arithmetic across a wait for wgmma, and the overlap is lost. What a branch needs it leaves in front
    of the branch: so there is one, next to never taken and harmless then, that needs some of the registers."""
    count = int(match[1])
    looked = sorted({max(0, count * part // _SETTLED - 1) for part in range(1, _SETTLED + 1)})
    first, *others = (f"%{number}, 0fB5A91C3D" for number in range(len(looked)))
    tests = [f"setp.eq.f32 q, {first};", *(f"setp.eq.or.f32 q, {other}, q;" for other in others)]
    ptx = f"{{ .reg .pred q; {' '.join(tests)} @q nanosleep.u32 0; }}"
    body = asm(ptx, "", ", ".join(f'"f"(a[{i}])' for i in looked))
    return Instruction(match[0], (f"registers<{count} x f32>",), None, body, "what makes a comes before what follows")


def _bulk_wait(match: re.Match[str]) -> Instruction:
    """`bulk_wait_read_2()`, `bulk_wait_full_3()`: as those without a number, but for the last groups."""
    form, left = (".read" if match[1] == "read" else ""), match[2]
    ptx = f"cp.async.bulk.wait_group{form} {left};"
    done = "have read their source" if form else "are complete and visible"
    return effect(match[0], (), ptx, f"stores {done}, but for the last {left} groups")


def _setmaxnreg(match: re.Match[str]) -> Instruction | None:
    count = int(match[2])
    if count % 8 or not 24 <= count <= 256:
        return None
    ptx = f"setmaxnreg.{match[1]}.sync.aligned.u32 {count};"
    return effect(match[0], (), ptx, "registers of each thread")


def _sync(match: re.Match[str]) -> Instruction | None:
    """Barrier 0 is that of `sync_threads`."""
    barrier, threads = int(match[2]), int(match[3])
    if not 1 <= barrier < ARCH.named_barriers or threads % ARCH.warp or not 0 < threads <= ARCH.threads:
        return None
    if match[1] == "arrive":
        return effect(match[0], (), f"bar.arrive {barrier}, {threads};", "arrives at a barrier, and goes on")
    return effect(match[0], (), f"bar.sync {barrier}, {threads};", "barrier over that many threads")


_FAMILIES: tuple[tuple[str, Callable[[re.Match[str]], Instruction | None]], ...] = (
    (r"tma_(load|store|add)_([1-5])d(?:_(keep|once))?", _tma),
    (r"tma_(load|store|add)_row(_around)?(?:_(keep|once))?", _row),
    (r"wgmma_n(\d+)_(f32|bf16|f16|e4m3|e5m2)(?:_(e4m3|e5m2))?_([sr])s_([km])([kn])", _wgmma),
    (r"(load|store)_global_v([124])(_where)?", _vector),
    (r"(load)_global_v(4)(_around_where)", _vector),
    (r"add_global_(bf16|f16|f32|i32)(?:(_v4)(_where)?)?", _add),
    (r"wgmma_wait_([0-7])", _wgmma_wait),
    (r"wgmma_done_(\d+)", _wgmma_done),
    (r"settle_(\d+)", _settle),
    (r"bulk_wait_(read|full)_([1-9]\d*)", _bulk_wait),
    (r"setmaxnreg_(inc|dec)_(\d+)", _setmaxnreg),
    (r"(sync|arrive)_(\d+)_of_(\d+)", _sync),
)


def of_family(name: str) -> Instruction | None:
    """The instruction that a name asks for, if a family has it."""
    for pattern, make in _FAMILIES:
        match = re.fullmatch(pattern, name)
        if match:
            return make(match)
    return None
