"""On what grounds `pkc check` says that a kernel is right: what is proved, what is checked, and what is sampled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

from xdsl.ir import Operation

from pkc.check.counterexample import Exploration
from pkc.check.static import Static
from pkc.dialect.counters import BarrierOp, WaitOp
from pkc.dialect.program import KernelOp
from pkc.dialect.transfers import FENCED
from pkc.dialect.types import SignalType
from pkc.location import span_of
from pkc.passes.roles.remote_accesses import array_name
from pkc.passes.roles.signal_counts import counted
from pkc.sim.draw import tables_given_to
from pkc.sim.program import Program


class Word(StrEnum):
    """How far something is known."""

    Proved = auto()
    """For all sizes, numbers of ranks and orders."""
    Checked = auto()
    """For some sizes and ranks, in every order."""
    Sampled = auto()
    """For some sizes and ranks, in the orders that were tried."""


@dataclass(frozen=True)
class Ground:
    """What is known of a kernel, how far, and for which instances."""

    word: Word
    where: str
    about: Sequence[str]

    def __str__(self) -> str:
        return f"{self.word} {self.where}: {'; '.join(self.about)}"


def proved(kernel: KernelOp) -> Iterator[Ground]:
    """What `pk-check-roles` says for all sizes: the protocol of stages, and waits that are for what is sent."""
    if kernel.roles:
        # What the target cannot run is checked as it is written, before it has stages.
        protocol = "stages, budgets and orders of tasks" if FENCED in kernel.attributes else "orders of tasks"
        about = [protocol, *_counts(kernel, shown=True)]
        yield Ground(Word.Proved, "for all sizes and numbers of ranks", about)


def followed(kernel: KernelOp, static: Static, instance: str) -> Iterator[Ground]:
    """What the static layer says of an instance. One run stands for every order as long as counters only grow."""
    if static.undecided or not static.warp_roles:
        return
    word, orders = (Word.Sampled, "1 order") if static.lowered else (Word.Checked, "every order")
    given = tables_given_to(kernel)
    parts = {"given": [name for name in static.drawn if name in given]}
    parts["drawn"] = [name for name in static.drawn if name not in given]
    drawn = "".join(f" with {_names(names)} as {how}" for how, names in parts.items() if names)
    about = ["tasks and cycles of waits", *_counters(kernel), *_counts(kernel, shown=False, but=static.partial)]
    yield Ground(word, f"in {orders} on {instance}{drawn}", about)


def simulated(kernel: KernelOp, word: Word, orders: str, instance: str) -> Ground:
    """What simulations say of an instance: memory and results, and waits and signals once more."""
    called = Program(kernel)
    scratch = {name for name, argument in kernel.arguments.items() if kernel.is_scratch(argument)}
    results = [name for name in called.arrays if name in called.written and name not in scratch]
    about = [f"accesses to {_names(called.arrays)}", *_counters(kernel)]
    about += [f"results in {_names(results)}, of drawn inputs"] if results else []
    return Ground(word, f"in {orders} on {instance}", about)


def explored(kernel: KernelOp, exploration: Exploration) -> Ground:
    """What simulations of a small instance say of it, in every order or in as many as were tried."""
    where = f"{instance_text(exploration.ranks, exploration.dims)}, 1 and 2 CTAs for each role"
    if exploration.complete:
        return simulated(kernel, Word.Checked, "every order", where)
    return simulated(kernel, Word.Sampled, orders_text(exploration.runs), where)


def instance_text(ranks: int, dims: Mapping[str, int]) -> str:
    """An instance in words: `2 ranks, M = 257`."""
    sizes = "".join(f", {name} = {size}" for name, size in dims.items())
    return f"{ranks} ranks{sizes}" if ranks > 1 else f"1 rank{sizes}"


def orders_text(count: int) -> str:
    return "1 order" if count == 1 else f"{count} orders"


def _counters(kernel: KernelOp) -> list[str]:
    names = [name for name, argument in kernel.arguments.items() if isinstance(argument.type, SignalType)]
    return [f"counters {_names(names)}"] if names else []


def _counts(kernel: KernelOp, *, shown: bool, but: Collection[Operation] = ()) -> list[str]:
    """The waits whose counts are right for all sizes, or the others but some, by counter and line."""
    known = {each.wait for each in counted(kernel) if each.shown}
    waits = [
        op for op in kernel.walk() if isinstance(op, WaitOp | BarrierOp) and (op in known) == shown and op not in but
    ]
    places = dict.fromkeys(f"`{array_name(op.signal)}` in line {span_of(op.location).line}" for op in waits)
    return [f"counts of waits for {', '.join(places)}"] if places else []


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
