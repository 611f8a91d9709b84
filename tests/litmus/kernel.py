"""A litmus test as a kernel at the roles level: each thread is a role, which does nothing on other ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.litmus.statements import Litmus, Statement, Thread

_SIGNAL = "!pk.signal<[1]>"
_BLOCK = "!pk.block<4 by 4>"
_BY_TMA = '{transfer = {by = "tma", why = "as the test says"}}'

# The operations whose first operand is a location, a counter or a ring; for `ld`, `read` and `tma.ld` see `_names`.
_LOCATIONS = ("st", "red", "tma.st", "tma.red", "send")
_COUNTERS = ("signal", "raise", "wait", "reset", "barrier")
_RINGS = ("acquire", "put", "commit", "consume", "release", "tma.ld")

REGISTERS = ("ld", "read", "receive", "mma", "mma.wait")
"""The operations whose first operand is the register that they load."""


class _Types:
    """The types of a test: tiles of 4 elements, or of 4 by 4 where MMAs read them."""

    def __init__(self, test: Litmus) -> None:
        axes = 2 if uses_mma(test) else 1
        sizes = ", ".join(["4"] * axes)
        self.tile = f"!pk.tile<{'x'.join(['4'] * axes)}xf32>"
        self.array = f"!pk.pgl<[{sizes}], f32, symmetric>"
        self.own = f"!pk.private<[{sizes}], f32>"
        self.channel = f"!pk.channel<{self.tile}>"
        self.all = f"[{', '.join(['%all'] * axes)} : {', '.join([_BLOCK] * axes)}]"


def uses_mma(test: Litmus) -> bool:
    """Whether an MMA reads a stage."""
    return any(s.op in ("mma", "mma.issue") for thread in test.threads for s in thread.body)


def ranks_of(test: Litmus) -> int:
    """The number of ranks that a test needs."""
    named = [s.rank for thread in test.threads for s in thread.body if s.rank is not None]
    return 1 + max([thread.rank for thread in test.threads] + named)


def weakened(test: Litmus) -> Litmus:
    """The test with weak accesses in place of relaxed and ordered ones, and without `fence.sc`: pkc has neither."""
    return replace(test, threads=tuple(replace(t, body=tuple(_weakened(t.body))) for t in test.threads))


def _weakened(body: Iterable[Statement]) -> Iterator[Statement]:
    for s in body:
        if s.op == "fence" and s.operands[0].startswith("sc."):
            continue
        strong = s.op.startswith(("ld.", "st."))
        yield replace(s, op=s.op[:2]) if strong else s


def locations_of(test: Litmus) -> list[str]:
    """The names of its locations."""
    return list(dict.fromkeys(_names(test, _LOCATIONS, 0) + _names(test, ("ld", "tma.ld", "receive"), 1)))


def packets_of(test: Litmus) -> list[str]:
    """The names of those whose elements travel in packets."""
    return _names(test, ("send",), 0)


def registers_of(thread: Thread) -> list[str]:
    """The registers that a thread loads into."""
    return list(dict.fromkeys(s.operands[0] for s in thread.body if s.op in REGISTERS))


def kernel_of(test: Litmus) -> str:
    """The IR of a litmus test."""
    return "\n".join(_kernel(test))


def _names(test: Litmus, ops: tuple[str, ...], operand: int) -> list[str]:
    return list(dict.fromkeys(s.operands[operand] for thread in test.threads for s in thread.body if s.op in ops))


def _kernel(test: Litmus) -> Iterator[str]:
    types = _Types(test)
    registers = [f"{thread.name}.{register}" for thread in test.threads for register in registers_of(thread)]
    in_packets = packets_of(test)
    arguments = [
        f'%{name}: {types.array} {{pk.name = "{name}"{", pk.packets" if name in in_packets else ""}}}'
        for name in locations_of(test)
    ]
    arguments += [f'%{name}_sent: {_SIGNAL} {{pk.name = "{name}.sent", pk.packets}}' for name in in_packets]
    arguments += [f'%{_value(name)}: {types.own} {{pk.name = "{name}"}}' for name in registers]
    arguments += [f'%{name}: {_SIGNAL} {{pk.name = "{name}"}}' for name in _names(test, _COUNTERS, 0)]
    yield f"pk.kernel @litmus({', '.join(arguments)}) attributes {{fenced}} {{"
    for number in range(8):
        yield f"  %c{number} = arith.constant {number} : index"
    yield "  %rank = pk.rank"
    yield f"  %all = pk.block[%c0] : {_BLOCK}"
    for ring in _names(test, _RINGS, 0):
        yield f'  %{ring} = pk.channel "{ring}" stages {test.stages} : {types.channel}'
    for number, thread in enumerate(test.threads):
        yield "  pk.role communicator {"
        yield f"    %here{number} = arith.cmpi eq, %rank, %c{thread.rank} : index"
        yield f"    scf.if %here{number} {{"
        yield from _Body(thread, types).lines()
        yield "    }"
        yield "  }"
    yield "}"


def _value(name: str) -> str:
    return name.replace(".", "_")


class _Body:
    """The operations of one thread."""

    def __init__(self, thread: Thread, types: _Types) -> None:
        self._thread = thread
        self._types = types
        self._made = 0
        self._issued: list[str] = []
        self._tiles: dict[str, str] = {}
        """The tile of each register, of each stage that is being filled (`S<`), and of each that is consumed."""

    def lines(self) -> Iterator[str]:
        for statement in self._thread.body:
            method = getattr(self, "_" + statement.op.replace(".", "_"), None)
            if method is None:
                raise ValueError(f"there is no statement `{statement}`")
            yield from (f"      {line}" for line in method(statement))

    def _new(self) -> str:
        self._made += 1
        return f"%{self._thread.name}_{self._made}"

    def _rank(self, s: Statement) -> str:
        return "%rank" if s.rank is None else f"%c{s.rank}"

    def _tile(self, operand: str) -> tuple[list[str], str]:
        """What makes the tile of a number, or nothing for that of a register or stage; and its name."""
        if operand in self._tiles:
            return [], self._tiles[operand]
        made = self._new()
        return [f"{made} = pk.full {int(operand)}.0 : f32 : {self._types.tile}"], made

    def _write(self, s: Statement, op: str, how: str = "") -> Iterator[str]:
        location, value = s.operands
        made, tile = self._tile(value)
        yield from made
        types = f"{self._types.tile}, {self._types.array}"
        yield f"{op} {tile}, %{location} at {self._rank(s)}{self._types.all} {how} : {types}"

    def _keep(self, register: str, tile: str) -> Iterator[str]:
        self._tiles[register] = tile
        place = f"%{self._thread.name}_{register}{self._types.all}"
        yield f"pk.store {tile}, {place} : {self._types.tile}, {self._types.own}"

    def _load(self, s: Statement, location: str, how: str = "") -> tuple[str, str]:
        made = self._new()
        place = f"%{location} at {self._rank(s)}{self._types.all}"
        return f"{made} = pk.load {place} {how} : {self._types.array} -> {self._types.tile}", made

    # Accesses

    def _st(self, s: Statement) -> Iterator[str]:
        return self._write(s, "pk.store")

    def _red(self, s: Statement) -> Iterator[str]:
        return self._write(s, "pk.store_add")

    def _tma_st(self, s: Statement) -> Iterator[str]:
        return self._write(s, "pk.store", _BY_TMA)

    def _tma_red(self, s: Statement) -> Iterator[str]:
        return self._write(s, "pk.store_add", _BY_TMA)

    def _ld(self, s: Statement) -> Iterator[str]:
        register, location = s.operands
        line, made = self._load(s, location)
        yield line
        yield from self._keep(register, made)

    def _send(self, s: Statement) -> Iterator[str]:
        yield from self._write(s, "pk.store")
        yield f'pk.signal %{s.operands[0]}_sent at {self._rank(s)}[%c0] by %c1 {{order = "in_packets"}} : {_SIGNAL}'

    def _receive(self, s: Statement) -> Iterator[str]:
        yield f"pk.wait %{s.operands[1]}_sent[%c0] for %c1 : {_SIGNAL}"
        yield from self._ld(s)

    # Counters and fences

    def _signal(self, s: Statement) -> Iterator[str]:
        counter, order = s.operands
        yield f'pk.signal %{counter} at {self._rank(s)}[%c0] by %c1 {{order = "{_value(order)}"}} : {_SIGNAL}'

    def _raise(self, s: Statement) -> Iterator[str]:
        counter, value, order = s.operands
        yield f'pk.raise %{counter} at {self._rank(s)}[%c0] to %c{value} {{order = "{_value(order)}"}} : {_SIGNAL}'

    def _wait(self, s: Statement) -> Iterator[str]:
        counter, value = s.operands
        yield f"pk.wait %{counter}[%c0] for %c{value} : {_SIGNAL}"

    def _reset(self, s: Statement) -> Iterator[str]:
        yield f"pk.reset %{s.operands[0]} : {_SIGNAL}"

    def _barrier(self, s: Statement) -> Iterator[str]:
        yield f'pk.barrier %{s.operands[0]}[%c0] {{order = "release_sys"}} : {_SIGNAL}'

    def _fence(self, s: Statement) -> Iterator[str]:
        yield f"pk.fence {_value(s.operands[0])}"

    def _wait_group(self, s: Statement) -> Iterator[str]:
        yield f"pk.drain full{_left(s)}"

    def _wait_group_read(self, s: Statement) -> Iterator[str]:
        yield f"pk.drain read{_left(s)}"

    def _wait_loads(self, s: Statement) -> Iterator[str]:
        yield "pk.drain loads"

    # Stages

    def _acquire(self, s: Statement) -> Iterator[str]:
        yield f"pk.acquire %{s.operands[0]} : {self._types.channel}"

    def _tma_ld(self, s: Statement) -> Iterator[str]:
        ring, location = s.operands
        line, self._tiles[f"{ring}<"] = self._load(s, location, _BY_TMA)
        yield line

    def _put(self, s: Statement) -> Iterator[str]:
        ring, value = s.operands
        made, tile = self._tile(value)
        yield from made
        self._tiles[f"{ring}<"] = tile

    def _commit(self, s: Statement) -> Iterator[str]:
        ring = s.operands[0]
        yield f"pk.commit %{ring}, {self._tiles[f'{ring}<']} : {self._types.channel}, {self._types.tile}"

    def _consume(self, s: Statement) -> Iterator[str]:
        ring = s.operands[0]
        made = self._tiles[ring] = self._new()
        yield f"{made} = pk.consume %{ring} : {self._types.channel} -> {self._types.tile}"

    def _read(self, s: Statement) -> Iterator[str]:
        register, ring = s.operands
        yield from self._keep(register, self._tiles[ring])

    # MMAs: a register holds what the stage holds, summed over 4 elements that are multiplied by 1 / 4

    def _mma(self, s: Statement) -> Iterator[str]:
        register, ring = s.operands
        made = self._new()
        yield from self._multiply(made, "pk.mma", ring)
        yield from self._keep(register, made)

    def _mma_issue(self, s: Statement) -> Iterator[str]:
        (ring,) = s.operands
        self._issued.append(self._new())
        yield from self._multiply(self._issued[-1], "pk.mma_issue", ring)

    def _mma_wait(self, s: Statement) -> Iterator[str]:
        made = self._new()
        yield f"{made} = pk.mma_wait {self._issued.pop(0)} left {int(s.operands[1])} : {self._types.tile}"
        yield from self._keep(s.operands[0], made)

    def _multiply(self, made: str, op: str, ring: str) -> Iterator[str]:
        tile, acc, quarter = self._types.tile, self._new(), self._new()
        yield f"{acc} = pk.full 0.0 : f32 : {tile}"
        yield f"{quarter} = pk.full 0.25 : f32 : {tile}"
        yield f"{made} = {op} {self._tiles[ring]}, {quarter}, {acc} : {tile}, {tile} -> {tile}"

    def _release(self, s: Statement) -> Iterator[str]:
        yield f"pk.release %{s.operands[0]} : {self._types.channel}"


def _left(s: Statement) -> str:
    left = int(s.operands[0])
    return f" left {left}" if left else ""
