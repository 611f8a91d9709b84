"""Tasks from a queue: the next ones go to whichever CTA has room for them.

CTA c of n begins with tasks c and c + n. Those behind the first 2n go to CTAs in pairs: a counter of the GPU has how
many pairs were asked for. One role of a CTA, which is ahead of the others, takes the next pair when it begins with the
last one, so that the number is there when it is needed, and passes all numbers on through a ring of places in shared
memory, with two mbarriers each. Whoever gets a number that is no task ends.

Each CTA asks once for each pair that it begins with, if there are more tasks than those that all begin with. So it is
known how often all ask, and who asks last sets the counter to zero for the next launch.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import SSAValue

from pkc.dialect.machine import TASKS
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import entries
from pkc.passes.machine.lowering.context import TaskQueue, WarpRole, first_thread
from pkc.passes.roles.plan_queue import TAKE

_LABEL = "tasks"
"""What waits for numbers, or for places of these, say they wait for."""


def initialise(emit: Emitter, base: SSAValue, queue: TaskQueue) -> None:
    """Initialise the barriers, which one thread does before any other touches them."""
    for number in range(queue.places):
        place = emit.const(number)
        emit.do("mbarrier_init", _filled(emit, base, queue, place), emit.const(1))
        emit.do("mbarrier_init", _free(emit, base, queue, place), emit.const(queue.readers))


def lower(role: WarpRole, total: SSAValue, body: Callable[[SSAValue], None]) -> None:
    """Emit a task for each number below `total` that the CTA gets."""
    emit, ring = role.emit, _Ring(role, total)

    def is_task() -> tuple[SSAValue, SSAValue]:
        found = emit.get(ring.number, 0)
        return emit.compare("slt", found, total), found

    with emit.repeat(is_task) as task:
        ring.begin()
        body(task)
        ring.end(task)
    loop = task.owner.parent_op()
    assert loop is not None
    loop.attributes[TASKS] = UnitAttr()
    ring.close()


class _Ring:
    """A role's place in the ring, and the `number` of its task."""

    def __init__(self, role: WarpRole, total: SSAValue) -> None:
        queue = role.launch.tasks
        assert queue is not None
        self._role, self._emit, self._queue, self._total = role, role.emit, queue, total
        self._ctas = role.launch.ctas[role.group]
        self.number = self._register("number", role.launch.cta_of[role.group])
        self._passed = self._register("passed", 0)
        if role.takes_tasks:
            self._taken = self._register("taken", 0)
            self._second = self._register("second", 0)
            self._step = self._register("task_step", self._ctas)
            self._more = self._emit.compare("sgt", total, self._emit.times(self._ctas, 2))

    def _register(self, hint: str, value: SSAValue | int) -> SSAValue:
        register = self._emit.registers(1, IndexType(), hint)
        self._emit.set(self._emit.const(value) if isinstance(value, int) else value, register, 0)
        return register

    def begin(self) -> None:
        """Take a pair with the first task of each, if there are any but those that CTAs begin with."""
        if self._role.takes_tasks:
            emit = self._emit
            is_first = emit.compare("eq", emit.get(self._second, 0), 0)
            with first_thread(self._role), emit.when(emit.both(is_first, self._more)):
                emit.set(emit.value(TAKE, self._queue.counter), self._taken, 0)

    def end(self, task: SSAValue) -> None:
        """Go on to the number of the next task, and pass it on or get it."""
        role, emit = self._role, self._emit
        passed, places = emit.get(self._passed, 0), self._queue.places
        place, phase = emit.rest(passed, places), emit.rest(emit.part(passed, places), 2)
        if role.takes_tasks:
            with first_thread(role):
                self._pass_on(task, place, phase)
        if not (role.takes_tasks and role.threads.one):
            emit.set(self._receive(place, phase), self.number, 0)
        emit.set(emit.plus(passed, 1), self._passed, 0)

    def _pass_on(self, task: SSAValue, place: SSAValue, phase: SSAValue) -> None:
        emit, queue, base = self._emit, self._queue, self._role.launch.base
        second = emit.get(self._second, 0)
        emit.set(emit.plus(task, emit.get(self._step, 0)), self.number, 0)
        with emit.when(emit.compare("ne", second, 0)):
            pairs = emit.plus(emit.get(self._taken, 0), self._ctas)
            emit.set(emit.times(pairs, 2), self.number, 0)
            emit.set(emit.const(1), self._step, 0)
        emit.set(emit.bit_xor(second, 1), self._second, 0)
        free = _free(emit, base, queue, place)
        emit.wait("mbarrier_wait", free, emit.bit_xor(phase, 1), awaits=_LABEL, until="free")
        emit.do("store_shared_b32", _number(emit, base, queue, place), entries.word(emit, emit.get(self.number, 0)))
        emit.do("mbarrier_arrive", _filled(emit, base, queue, place))

    def close(self) -> None:
        """Set the counter to zero, if all have asked it for the last time."""
        if not self._role.takes_tasks:
            return
        emit, ctas = self._emit, self._ctas
        pairs = emit.round_up_over(emit.minus(self._total, emit.times(ctas, 2)), 2)
        last = emit.minus(emit.plus(ctas, pairs), 1)
        was_last = emit.both(self._more, emit.compare("eq", emit.get(self._taken, 0), last))
        with first_thread(self._role), emit.when(was_last):
            emit.do("store_u32", self._queue.counter, emit.const(0))

    def _receive(self, place: SSAValue, phase: SSAValue) -> SSAValue:
        role, emit, queue, base = self._role, self._emit, self._queue, self._role.launch.base
        emit.wait("mbarrier_wait", _filled(emit, base, queue, place), phase, awaits=_LABEL, until="filled")
        found = entries.index(emit, emit.value("load_shared_b32", _number(emit, base, queue, place)))
        free = _free(emit, base, queue, place)
        if role.threads.one:
            emit.do("mbarrier_arrive", free)
            return found
        emit.do("sync_warp")
        with emit.when(emit.compare("eq", role.threads.lane, 0)):
            emit.do("mbarrier_arrive", free)
        return found


def _filled(emit: Emitter, base: SSAValue, queue: TaskQueue, place: SSAValue) -> SSAValue:
    return emit.plus(emit.plus(base, queue.offset), emit.times(place, emit.target.arch.mbarrier_bytes))


def _free(emit: Emitter, base: SSAValue, queue: TaskQueue, place: SSAValue) -> SSAValue:
    behind = queue.offset + queue.places * emit.target.arch.mbarrier_bytes
    return emit.plus(emit.plus(base, behind), emit.times(place, emit.target.arch.mbarrier_bytes))


def _number(emit: Emitter, base: SSAValue, queue: TaskQueue, place: SSAValue) -> SSAValue:
    behind = queue.offset + 2 * queue.places * emit.target.arch.mbarrier_bytes
    return emit.plus(emit.plus(base, behind), emit.times(place, emit.target.arch.register_bytes))
