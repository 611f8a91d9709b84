"""One thread of a litmus test as CUDA C++: its statements in an instance, each the instruction that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.litmus.places import Places
from tests.litmus.statements import Statement, Thread

_MMAS = ("mma", "mma.issue", "mma.wait")
_BY_ALL = ("consume", "fence", *_MMAS)

TIMES = 64
"""How often an MMA multiplies what it reads, so that it takes as long as what comes after it."""


def width(thread: Thread) -> int:
    return 128 if multiplies(thread) else 32


def multiplies(thread: Thread) -> bool:
    return any(s.op in _MMAS for s in thread.body)


class Body:
    """The statements of one thread, in an instance."""

    def __init__(self, places: Places, thread: Thread, depth: int, first: int) -> None:
        self._places, self._thread, self._depth, self._first = places, thread, depth, first
        self._registers = [name.split(".")[1] for name in places.outcomes if name.split(".")[0] == thread.name]
        self._acquired: dict[str, int] = {}
        self._committed: dict[str, int] = {}
        self._consumed: dict[str, int] = {}
        self._released: dict[str, int] = {}
        self._barriers: dict[str, int] = {}
        self._arriving: dict[str, int] = {}
        """Loads by TMA into the stage of each ring that is not committed."""
        self._loaded: list[tuple[str, int]] = []
        """The stages that TMA fills, and which commit announced them."""
        self._issued: list[str] = []
        self._awaited = 0

    def lines(self) -> Iterator[str]:
        wide = multiplies(self._thread)
        unknown = [str(s) for s in self._thread.body if wide and s.op not in (*_BY_ALL, "release", "signal")]
        if unknown:
            raise ValueError(f"a warpgroup does not do `{unknown[0]}`")
        who = f"threadIdx.x / 128 * 128 == {self._first}" if wide else f"threadIdx.x == {self._first}"
        yield f"    if (rank == {self._thread.rank} && {who}) {{  // {self._thread.name}"
        for register in self._registers:
            yield f"      u32 {register}[4] = {{0, 0, 0, 0}};"
        for number in range(sum(s.op in ("mma", "mma.issue") for s in self._thread.body)):
            yield f"      float sum{number}[4] = {{0, 0, 0, 0}};"
        yield "      rest(delay(next(chance)));"
        count = len(self._thread.body)
        # Half of the instances have no delay between statements.
        yield f"      const u32 late = next(chance) % {2 * count}, cycles_late = delay(next(chance));"
        yield "      do {"
        for number, s in enumerate(self._thread.body):
            yield f"        if (late == {number}) rest(cycles_late);  // {s}"
            yield from (f"        {line}" for line in self._lines(s))
        yield "      } while (false);"
        yield from (f"      {line}" for line in self._rest())
        yield "    }"

    def _lines(self, s: Statement) -> Iterable[str]:
        if s.op.startswith(("ld.", "st.")):
            return self._strong(s)
        return getattr(self, "_" + s.op.replace(".", "_"))(s)

    def _rest(self) -> Iterator[str]:
        """What ends an instance: registers to memory, and nothing in flight."""
        wide = multiplies(self._thread)
        for register in self._registers:
            place = self._places.outcome(f"{self._thread.name}.{register}")
            if wide:
                yield "if (threadIdx.x % 32 == 8 * (threadIdx.x / 32 % 4))"
                yield f"  {place}[threadIdx.x / 32 % 4] = {register}[0];"
            else:
                yield f"for (u32 i = 0; i < 4; ++i) {place}[i] = {register}[i];"
        if not wide:
            yield _asm("cp.async.bulk.wait_group 0;")
        for ring, number in {self._places.stage(r, n): (r, n) for r, n in self._loaded}.values():
            yield f"if (ended) completes({self._places.barrier('full', ring, number)}, {self._parity(number)});"

    def _parity(self, number: int) -> int:
        return number // self._depth % 2

    def _address(self, s: Statement, location: str) -> str:
        return self._places.place(location, self._rank(s))

    def _rank(self, s: Statement) -> int:
        return self._thread.rank if s.rank is None else s.rank

    def _values(self, operand: str) -> tuple[str, str]:
        """What declares the four elements of a number or a register, and their name."""
        if not operand.isdigit():
            return "", operand
        return f"const u32 v[4] = {{{', '.join([self._places.encoded(int(operand))] * 4)}}};", "v"

    # Accesses

    def _st(self, s: Statement) -> Iterator[str]:
        made, name = self._values(s.operands[1])
        yield f"{{ {made} st({self._address(s, s.operands[0])}, run.bytes, {name}); }}"

    def _ld(self, s: Statement) -> Iterator[str]:
        register, location = s.operands
        yield f"for (u32 i = 0; i < 4; ++i) {register}[i] = ld({self._address(s, location)} + ELEMENT(i));"

    def _strong(self, s: Statement) -> Iterator[str]:
        op, sem, scope = s.op.split(".")
        if op == "ld":
            text = f"ld.{sem}.{scope}.global.b32 %0, [%1];"
            place = f'"l"({self._address(s, s.operands[1])} + ELEMENT(i))'
            yield f'for (u32 i = 0; i < 4; ++i) asm volatile("{text}" : "=r"({s.operands[0]}[i]) : {place} : "memory");'
            return
        made, name = self._values(s.operands[1])
        text, place = f"st.{sem}.{scope}.global.b32 [%0], %1;", f'"l"({self._address(s, s.operands[0])} + ELEMENT(i))'
        yield f'{{ {made} for (u32 i = 0; i < 4; ++i) asm volatile("{text}" :: {place}, "r"({name}[i]) : "memory"); }}'

    def _red(self, s: Statement) -> Iterator[str]:
        made, name = self._values(s.operands[1])
        text = "red.relaxed.sys.global.add.u32 [%0], %1;"
        place = f'"l"({self._address(s, s.operands[0])} + i)'
        yield f'{{ {made} for (u32 i = 0; i < run.bytes / 4; ++i) asm volatile("{text}" :: {place}, "r"({name}[0])'
        yield '  : "memory"); }'

    def _send(self, s: Statement) -> Iterator[str]:
        location, value = s.operands
        word = f"{0x10000 + int(value):#x}u"
        text = "st.relaxed.sys.global.v4.b32 [%0], {%1, %1, %1, %1};"
        place = f'"l"({self._address(s, location)} + 4 * i)'
        yield f'for (u32 i = 0; i < run.bytes / 16; ++i) asm volatile("{text}" :: {place}, "r"({word}) : "memory");'

    def _receive(self, s: Statement) -> Iterator[str]:
        register, location = s.operands
        place = f"{self._address(s, location)} + ELEMENT(i)"
        yield f"for (u32 i = 0; i < 4; ++i) ended = ended && receives({place}, &{register}[i]);"
        yield "if (!ended) break;"

    # Counters and fences

    def _signal(self, s: Statement) -> Iterator[str]:
        yield from self._once(self._added(s.operands[0], self._rank(s), s.operands[1]))

    def _added(self, counter: str, rank: int, order: str) -> str:
        return _asm(f"red.{order}.global.add.u32 [%0], 1;", f'"l"({self._places.counter(counter, rank)})')

    def _raise(self, s: Statement) -> Iterator[str]:
        counter, value, order = s.operands
        place = f'"l"({self._places.counter(counter, self._rank(s))})'
        yield _asm(f"red.{order}.global.max.u32 [%0], {value};", place)

    def _wait(self, s: Statement) -> Iterator[str]:
        place = self._places.counter(s.operands[0], self._thread.rank)
        yield f"if (!reaches({place}, {s.operands[1]})) {{ ended = false; break; }}"

    def _reset(self, s: Statement) -> Iterator[str]:
        yield _asm(
            "st.relaxed.sys.global.u32 [%0], 0;", f'"l"({self._places.counter(s.operands[0], self._thread.rank)})'
        )

    def _barrier(self, s: Statement) -> Iterator[str]:
        counter, ranks = s.operands[0], self._places.ranks
        number = self._barriers[counter] = self._barriers.get(counter, 0) + 1
        for rank in range(ranks):
            yield self._added(counter, rank, "release.sys")
        yield from self._wait(Statement("wait", (counter, str(number * ranks))))

    def _fence(self, s: Statement) -> Iterator[str]:
        kinds = {"async.global": "fence.proxy.async.global;", "async.shared": "fence.proxy.async.shared::cta;"}
        yield _asm(kinds.get(s.operands[0], f"fence.{s.operands[0]};"))

    def _wait_group(self, s: Statement) -> Iterator[str]:
        yield _asm(f"cp.async.bulk.wait_group {s.operands[0]};")

    def _wait_group_read(self, s: Statement) -> Iterator[str]:
        yield _asm(f"cp.async.bulk.wait_group.read {s.operands[0]};")

    def _wait_loads(self, s: Statement) -> Iterator[str]:
        for ring, number in self._loaded:
            yield self._until("full", ring, number)

    # Stages

    def _until(self, kind: str, ring: str, number: int) -> str:
        barrier = self._places.barrier(kind, ring, number)
        return f"if (!completes({barrier}, {self._parity(number)})) {{ ended = false; break; }}"

    def _acquire(self, s: Statement) -> Iterator[str]:
        ring = s.operands[0]
        number = self._acquired[ring] = self._acquired.get(ring, -1) + 1
        if number >= self._depth:
            yield self._until("empty", ring, number - self._depth)

    def _tma_ld(self, s: Statement) -> Iterator[str]:
        ring, location = s.operands
        number = self._acquired[ring]
        self._arriving[ring] = self._arriving.get(ring, 0) + 1
        yield _asm(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];",
            f'"r"({self._places.stage(ring, number)}), "l"({self._address(s, location)}), "r"(run.bytes), '
            f'"r"({self._places.barrier("full", ring, number)})',
        )

    def _put(self, s: Statement) -> Iterator[str]:
        ring, value = s.operands
        made, name = self._values(value)
        yield f"{{ {made} put({self._places.stage(ring, self._acquired[ring])}, run.bytes, {name}); }}"

    def _commit(self, s: Statement) -> Iterator[str]:
        ring = s.operands[0]
        number = self._committed[ring] = self._committed.get(ring, -1) + 1
        barrier = f'"r"({self._places.barrier("full", ring, number)})'
        loads = self._arriving.pop(ring, 0)
        if not loads:
            yield _asm("mbarrier.arrive.shared::cta.b64 _, [%0];", barrier)
            return
        self._loaded.append((ring, number))
        yield _asm("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", f'{barrier}, "r"({loads} * run.bytes)')

    def _consume(self, s: Statement) -> Iterator[str]:
        ring = s.operands[0]
        number = self._consumed[ring] = self._consumed.get(ring, -1) + 1
        yield self._until("full", ring, number)

    def _read(self, s: Statement) -> Iterator[str]:
        register, ring = s.operands
        stage = self._places.stage(ring, self._consumed[ring])
        yield f"for (u32 i = 0; i < 4; ++i) {register}[i] = lds({stage} + 4 * ELEMENT(i));"

    def _tma_st(self, s: Statement) -> Iterator[str]:
        return self._bulk(s, "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;")

    def _tma_red(self, s: Statement) -> Iterator[str]:
        return self._bulk(s, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;")

    def _bulk(self, s: Statement, text: str) -> Iterator[str]:
        location, ring = s.operands
        stage = self._places.stage(ring, self._consumed[ring])
        yield _asm(text, f'"l"({self._address(s, location)}), "r"({stage}), "r"(run.bytes)')
        yield _asm("cp.async.bulk.commit_group;")

    def _release(self, s: Statement) -> Iterator[str]:
        ring = s.operands[0]
        number = self._released[ring] = self._released.get(ring, -1) + 1
        yield from self._once(
            _asm("mbarrier.arrive.shared::cta.b64 _, [%0];", f'"r"({self._places.barrier("empty", ring, number)})')
        )

    def _once(self, line: str) -> Iterator[str]:
        """What one thread of a warpgroup does when all have come."""
        if not multiplies(self._thread):
            yield line
            return
        yield "__syncwarp();"
        yield _asm("bar.sync 1, 128;")
        yield f"if (threadIdx.x % 128 == 0) {{ {line} }}"

    # MMAs

    def _mma(self, s: Statement) -> Iterator[str]:
        register, ring = s.operands
        yield from self._mma_issue(Statement("mma.issue", (ring,)))
        yield from self._mma_wait(Statement("mma.wait", (register, "0")))

    def _mma_issue(self, s: Statement) -> Iterator[str]:
        ring = s.operands[0]
        name = f"sum{len(self._issued)}"
        self._issued.append(name)
        stage = self._places.stage(ring, self._consumed[ring])
        yield "__syncwarp();"
        yield _asm("wgmma.fence.sync.aligned;")
        operands = ", ".join(f'"+f"({name}[{i}])' for i in range(4))
        yield f"for (u32 i = 0; i < {TIMES}; ++i)"
        yield (
            '  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5,'
            f' 1, 1, 1, 0, 0;" : {operands}'
        )
        yield f'    : "l"(matrix({stage}, 128, 256)), "l"(matrix(smem(unit), 128, 256)) : "memory");'
        yield _asm("wgmma.commit_group.sync.aligned;")

    def _mma_wait(self, s: Statement) -> Iterator[str]:
        register, left = s.operands
        name = self._issued[self._awaited]
        self._awaited += 1
        yield _asm(f"wgmma.wait_group.sync.aligned {left};")
        yield f"for (u32 i = 0; i < 4; ++i) {register}[i] = (__float_as_uint({name}[i]) >> 16) * 0x10001u;"


def _asm(text: str, operands: str = "") -> str:
    return f'asm volatile("{text}" :: {operands} : "memory");' if operands else f'asm volatile("{text}" ::: "memory");'
