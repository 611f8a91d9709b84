"""A litmus test as CUDA C++: many instances at once on one GPU, each rank a CTA, each thread a warp.

    for each iteration of a group of CTAs:      one for each rank
      stages and mbarriers are as at first; the CTAs meet
      each thread: a random delay, its statements with another random delay somewhere, its registers to memory
    count: for each instance, does the condition hold of its registers and of memory?

Each instance has locations and counters of its own, which are zero before the launch. A location has `bytes`, of which
four elements are read and looked at, each as a test of its own. Every other instance has read its locations before, so
that old values may be in L1. A thread with an MMA is a warpgroup, whose first thread signals and gives back.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.litmus.kernel import ranks_of
from tests.litmus.places import Places, bf16
from tests.litmus.statements import HANG, Atom, Litmus
from tests.litmus.thread import TIMES, Body, multiplies, width

_HEAD = r"""
typedef unsigned u32;
typedef unsigned long long u64;
struct Run { u32 *data, *counters, *outcome, *meet; u64* counts; u32 groups, instances, bytes, seed; };

__device__ u32 smem(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ u32 cycles() { u32 t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t)); return t; }
__device__ u32 next(u32& s) { s ^= s << 13; s ^= s >> 17; s ^= s << 5; return s; }
__device__ void rest(u32 n) { const u32 t = cycles(); while (cycles() - t < n) {} }
__device__ u32 delay(u32 r) {
  return (r & 3) == 0 ? 0 : (r & 3) == 1 ? (r >> 8) & 63 : (r & 3) == 2 ? (r >> 8) & 511 : (r >> 8) & 4095;
}
__device__ u32 ld(const u32* p) {
  u32 v; asm volatile("ld.weak.global.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v;
}
__device__ u32 lds(u32 p) {
  u32 v; asm volatile("ld.weak.shared.b32 %0, [%1];" : "=r"(v) : "r"(p) : "memory"); return v;
}
__device__ void st(u32* p, u32 bytes, const u32* v) {
  for (u32 i = 0, n = bytes / 16; i < n; ++i) {
    const u32 w = v[i * 4 / n], last = n == 1;
    asm volatile("st.weak.global.v4.b32 [%0], {%1, %2, %3, %4};" :: "l"(p + 4 * i), "r"(last ? v[0] : w),
      "r"(last ? v[1] : w), "r"(last ? v[2] : w), "r"(last ? v[3] : w) : "memory");
  }
}
__device__ void put(u32 p, u32 bytes, const u32* v) {
  for (u32 i = 0, n = bytes / 16; i < n; ++i) {
    const u32 w = v[i * 4 / n], last = n == 1;
    asm volatile("st.weak.shared.v4.b32 [%0], {%1, %2, %3, %4};" :: "r"(p + 16 * i), "r"(last ? v[0] : w),
      "r"(last ? v[1] : w), "r"(last ? v[2] : w), "r"(last ? v[3] : w) : "memory");
  }
}
#define ELEMENT(i) ((i) * (run.bytes / 4 - 1) / 3)
#define LOOKS 4000        // at memory: some milliseconds
#define PHASES (1 << 20)  // at an mbarrier, likewise
__device__ bool reaches(const u32* p, u32 value) {
  for (u32 look = 0; look < LOOKS; ++look) {
    u32 v; asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    if (v >= value) return true;
  }
  return false;
}
__device__ bool receives(const u32* p, u32* value) {
  for (u32 look = 0; look < LOOKS; ++look) {
    u32 v; asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    *value = v & 0xffff;
    if (v >> 16) return true;
  }
  return false;
}
__device__ bool completes(u32 barrier, u32 parity) {
#pragma unroll 1
  for (u32 look = 0; look < PHASES; ++look) {
    u32 p;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(p) : "r"(barrier), "r"(parity) : "memory");
    if (p) return true;
  }
  return false;
}
__device__ u64 matrix(u32 p, u64 leading, u64 stride) {
  return ((p & 0x3ffffu) >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32;
}
"""

_COUNT = r"""
extern "C" __global__ void count(const Run run) {
  u64 seen[2] = {0, 0}, hung = 0;
  for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < run.instances; at += gridDim.x * blockDim.x) {
    bool found = false;
    for (u32 e = 0; e < 4; ++e) found = found || (CONDITION);
    const bool hang = HANGS;
    hung += hang;
    seen[at / run.groups & 1] += ASKED;
  }
  if (seen[0]) atomicAdd(run.counts, seen[0]);
  if (seen[1]) atomicAdd(run.counts + 1, seen[1]);
  if (hung) atomicAdd(run.counts + 2, hung);
}
"""


def source_of(test: Litmus) -> str:
    """The file: a kernel `litmus` that runs instances and a kernel `count`. Raises `ValueError` for what it cannot."""
    return _Source(test).text()


def threads_of(test: Litmus) -> int:
    """The threads of a CTA."""
    return max(sum(width(t) for t in test.threads if t.rank == rank) for rank in range(ranks_of(test)))


class _Source:
    """The text of one test."""

    def __init__(self, test: Litmus) -> None:
        self._test, self._places = test, Places(test)
        self._ranks = self._places.ranks

    def text(self) -> str:
        return "\n".join([_HEAD, *self._kernel(), self._counted()])

    def _kernel(self) -> Iterator[str]:
        stages, size = self._places.stages, self._places.stage_bytes
        yield f'extern "C" __global__ void __launch_bounds__({threads_of(self._test)}) litmus(const Run run) {{'
        yield f"  __shared__ alignas(1024) unsigned char stages[{stages}][{size}], unit[1024];"
        yield f"  __shared__ u64 full[{stages}], empty[{stages}];"
        yield "  const u32 rank = blockIdx.x / run.groups, group = blockIdx.x % run.groups;"
        part = bf16(1 / 16 / TIMES) * 0x10001
        yield f"  for (u32 i = threadIdx.x; i < 256; i += blockDim.x) ((u32*)unit)[i] = {part:#x}u;"
        yield "  for (u32 turn = 0; turn * run.groups + group < run.instances; ++turn) {"
        yield "    const u32 at = turn * run.groups + group;"
        yield f"    const u32 own = {self._ranks}u * (threadIdx.x / 32) + rank;"
        yield "    u32 chance = (run.seed + at) * 2654435761u + own * 40503u | 1u;"
        yield "    next(chance); next(chance); bool ended = true;"
        yield "    __syncthreads();"
        yield f"    for (u32 i = threadIdx.x; i < {stages * size // 4}; i += blockDim.x) ((u32*)stages)[i] = 0;"
        yield f"    if (threadIdx.x == 0) for (u32 i = 0; i < {stages}; ++i) for (u32 which = 0; which < 2; ++which) {{"
        yield "      const u32 barrier = smem(which ? &empty[i] : &full[i]);"
        yield '      if (turn) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");'
        yield '      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier) : "memory");'
        yield "    }"
        yield '    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");'
        yield '    asm volatile("fence.proxy.async;" ::: "memory");'
        yield from self._warmed()
        yield "    __syncthreads();"
        yield "    if (threadIdx.x == 0) {"
        yield '      asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" :: "l"(run.meet + 4 * group) : "memory");'
        yield f"      reaches(run.meet + 4 * group, {self._ranks} * (turn + 1));"
        yield "    }"
        yield "    __syncthreads();"
        for rank in range(self._ranks):
            first = 0
            for thread in sorted((t for t in self._test.threads if t.rank == rank), key=lambda t: not multiplies(t)):
                yield from Body(self._places, thread, self._test.stages, first).lines()
                first += width(thread)
        yield f"    if (!ended) {self._places.hung()} = 1;"
        yield "  }"
        yield "}"

    def _warmed(self) -> Iterator[str]:
        """What threads read before, in every other iteration."""
        yield "    u32 old = 0;"
        for rank in range(self._ranks):
            read = {
                (s.operands[1], rank if s.rank is None else s.rank)
                for t in self._test.threads
                for s in t.body
                if t.rank == rank and s.op == "ld"
            }
            for location, other in sorted(read):
                yield f"    if ((turn & 1) && rank == {rank} && threadIdx.x % 32 < 4)"
                yield f"      old |= ld({self._places.place(location, other)} + ELEMENT(threadIdx.x % 32));"
        yield "    if (old == ~0u) run.counts[3] = 1;  // never: what is read has a use"

    def _counted(self) -> str:
        asks_hang = any(atom.what == HANG for every in self._test.exists for atom in every)
        texts = [[self._atom(atom) for atom in every if atom.what != HANG] for every in self._test.exists]
        condition = " || ".join(f"({' && '.join(every) or 'true'})" for every in texts)
        asked = "hang" if asks_hang else "found && !hang"
        return (
            _COUNT.replace("CONDITION", condition)
            .replace("HANGS", f"{self._places.hung()} != 0")
            .replace("ASKED", asked)
        )

    def _atom(self, atom: Atom) -> str:
        equal, value = "==" if atom.equal else "!=", self._places.encoded(atom.value)
        if atom.what in self._places.outcomes:
            return f"{self._places.outcome(atom.what)}[e] {equal} {value}"
        location, rank = atom.what.split("@")
        return f"{self._places.place(location, int(rank))}[ELEMENT(e)] {equal} {value}"
