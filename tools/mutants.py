"""Breaks the protocols that pkc derives, one place at a time, and counts how many of the breaks are noticed.

    python -m tools.mutants            # every example and overlap; prints the table of docs/mutants.md
    python -m tools.mutants gemm_rs    # some examples
    python -m tools.mutants --jobs 8   # in so many processes; as many as there are cores by default

A mutant is the roles level of an example with one operation changed, or what belongs together. It is caught if the
verifier refuses it, the static layer finds something, or a simulation of `pkc.check.run` deadlocks, reports a finding,
or gives other bits than the tile level: every order of a small instance, then seeded orders of a larger one.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pkc.check.counterexample import CTAS
from pkc.check.run import Baseline, Replay, Trial, Trials, baseline_of
from pkc.check.static import Static, check_statically
from pkc.diagnostics import PkcError
from pkc.dialect.program import WRITTEN, KernelOp
from pkc.driver.compiler import Compiled, load
from pkc.location import describe
from pkc.passes.roles.check_roles import CheckRoles
from pkc.passes.verify import findings
from pkc.sim.small import small_dims
from tools.mutant_changes import RANKS
from tools.mutant_equivalents import OF_PASSES, Known, Same
from tools.mutant_instances import (
    LEADING,
    LEADING_SEED,
    MATRICES,
    ONE_COMM_SM,
    OTHERS,
    OTHERS_SEED,
    OVERLAPS,
    SIZES,
    STRADDLING,
    constants_of,
    schedule_of,
)
from tools.mutant_operators import OPERATORS, Operator
from tools.mutant_stages import about_time

ROOT = Path(__file__).parents[1]
TRIALS = tuple(Trial(1 + seed % 2, seed) for seed in range(60))
"""Six times as many orders as `pkc check` tries: a break of one signal of one CTA shows in few of them."""

FEW = 6
"""As many orders of the instances of `OTHERS`."""

RUNS = 50
"""As many runs at most explore the orders of the small instance."""

PARTS = 4
"""Of the breaks of a subject, each made by any process: some subjects take a hundred times as long as others."""


@dataclass(frozen=True)
class Instance:
    """What a kernel has to compute on some ranks and sizes, and simulations of it as it is."""

    meaning: Baseline
    right: Trials

    def trials(self, kernel: KernelOp) -> Trials:
        """Simulations of a broken kernel."""
        return Trials(kernel, self.meaning, like=self.right)


@dataclass(frozen=True)
class Subject:
    """The roles level of an example with one overlap, on a small and a larger instance."""

    name: str
    compiled: Compiled
    small: Instance
    larger: Instance
    others: tuple[Instance, ...] = ()


def at_roles_level(path: Path, overlaps: Iterable[str] = OVERLAPS) -> Iterator[tuple[str, Compiled]]:
    """An example with every overlap that it can have, unless another one gives the same."""
    seen: set[str] = set()
    for overlap in overlaps:
        try:
            compiled = load(
                path, level="roles", constants=constants_of(path.stem, overlap), schedule=schedule_of(overlap)
            )
        except PkcError:
            continue  # refused, with a reason
        text = re.sub(r"schedule = \{[^}]*\}", "", str(compiled.module))
        if text not in seen:
            seen.add(text)
            yield overlap, compiled


def subjects(names: Collection[str], overlaps: Iterable[str] = OVERLAPS) -> Iterator[Subject]:
    """Every example, or those of these names, with every overlap that it can have."""
    for path in examples(names):
        for overlap, compiled in at_roles_level(path, overlaps):
            yield _subject(path, overlap, compiled)


def subject_at(path: Path, overlap: str) -> Subject:
    """An example with an overlap that it can have."""
    ((_, compiled),) = at_roles_level(path, [overlap])
    return _subject(path, overlap, compiled)


def _subject(path: Path, overlap: str, compiled: Compiled) -> Subject:
    small, larger, *others = (_instance(compiled, meaning) for meaning in _meanings(path, overlap))
    return Subject(f"{path.stem} {overlap or 'default'}", compiled, small, larger, tuple(others))


def subject_of(name: str, tile: Compiled, compiled: Compiled, sizes: Mapping[str, int]) -> Subject:
    """A kernel at both levels, on small instances and on one of given sizes."""
    few = baseline_of(tile, ranks=2, dims=small_dims(tile.kernel, 2), launches=3)
    more = baseline_of(tile, ranks=RANKS, dims=sizes, launches=3)
    return Subject(name, compiled, _instance(compiled, few), _instance(compiled, more))


def _instance(compiled: Compiled, meaning: Baseline) -> Instance:
    right = Trials(compiled.kernel, meaning)
    right.check(Replay(1, ()))
    return Instance(meaning, right)


@cache
def _meanings(path: Path, overlap: str) -> tuple[Baseline, ...]:
    tile = load(path, constants=constants_of(path.stem, overlap))
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    special = {"one_comm_sm": ONE_COMM_SM, "straddle": STRADDLING}.get(overlap, {})
    given = (SIZES | special).get(path.stem, special.get("", MATRICES))
    small = baseline_of(tile, ranks=2, dims=small_dims(tile.kernel, 2), launches=3)
    drawn = [(given, 0), *((sizes, OTHERS_SEED) for sizes in OTHERS.get(path.stem, ()))]
    if overlap == "copy_engine" and path.stem in LEADING:
        drawn = [(sizes, LEADING_SEED) for sizes in LEADING[path.stem]]
    dims = [({dim: size for dim, size in sizes.items() if dim in used}, seed) for sizes, seed in drawn]
    return small, *(baseline_of(tile, ranks=RANKS, dims=sizes, launches=3, seed=seed) for sizes, seed in dims)


def mutants(kernel: KernelOp, operators: Iterable[Operator] = OPERATORS) -> Iterator[tuple[Operator, str, KernelOp]]:
    """Each break of a kernel: the operator, where, the broken kernel."""
    for operator, position in places(kernel, operators):
        yield operator, *_broken(kernel, operator, position)


def places(kernel: KernelOp, operators: Iterable[Operator]) -> list[tuple[Operator, int]]:
    """What each operator breaks: numbers of operations, in the order of a walk."""
    spared = about_time(kernel)
    return [
        (operator, position)
        for operator in operators
        for position, op in enumerate(kernel.walk())
        if op not in spared and isinstance(op, operator.kinds) and operator.breaks(op)
    ]


def _broken(kernel: KernelOp, operator: Operator, position: int) -> tuple[str, KernelOp]:
    module = kernel.parent_op()
    assert module is not None
    broken = next(op for op in module.clone().walk() if isinstance(op, KernelOp))
    op = next(itertools.islice(broken.walk(), position, None))
    where = f"{op.name} at {describe(op.location)}"
    operator.change(op)
    return where, broken


def caught(kernel: KernelOp, subject: Subject, trials: tuple[Trial, ...] = TRIALS) -> str:
    """The layer that notices: `verifier`, the code of a finding, or nothing."""
    module = kernel.parent_op()
    assert module is not None
    if next(iter(findings(module)), None) is not None:  # pyright: ignore[reportArgumentType]
        return "verifier"
    if CheckRoles().findings(module):  # pyright: ignore[reportArgumentType]
        return "check-roles"
    meaning = subject.larger.meaning
    static = _static(kernel, meaning)
    if static.findings:
        return static.findings[0].code
    for other in subject.others:
        if also := _static(kernel, other.meaning).findings:
            return also[0].code
    wide = (Trial(static.spread, len(trials)),) if WRITTEN in kernel.attributes else ()
    return simulated(kernel, subject, (*trials, *wide))


def _static(kernel: KernelOp, meaning: Baseline) -> Static:
    return check_statically(kernel, ranks=meaning.ranks, dims=meaning.dims, seed=meaning.seed)


def simulated(kernel: KernelOp, subject: Subject, trials: tuple[Trial, ...] = TRIALS) -> str:
    """The code of what a simulation finds, or nothing."""
    for ctas in CTAS:
        explored = subject.small.trials(kernel).explore(ctas, RUNS)
        if explored.found:
            return explored.found[0].code
    for instance, tried in (*((other, trials[:FEW]) for other in subject.others), (subject.larger, trials)):
        seeded = instance.trials(kernel)
        code = next((found[0].code for trial in tried if (found := seeded.check(trial))), "")
        if code:
            return code
    return ""


@dataclass
class Tally:
    """The breaks of one subject: how many of each operator which layer notices, and what is wrong."""

    name: str
    by_operator: dict[str, Counter[str]] = field(default_factory=dict)
    unnoticed: list[tuple[str, str]] = field(default_factory=list)
    """Operators, and where they broke it."""
    accused: str = ""
    """What is found in the kernel as it is."""
    survivors: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    """The unnoticed ones, with why those that change nothing do not count."""

    @property
    def made(self) -> int:
        return sum(counts.total() for counts in self.by_operator.values())

    @property
    def caught(self) -> int:
        return self.made - len(self.survivors)

    def add(self, part: Tally) -> None:
        for operator, counts in part.by_operator.items():
            self.by_operator.setdefault(operator, Counter()).update(counts)
        self.unnoticed += part.unnoticed
        self.accused = self.accused or part.accused

    def judge(self, table: Sequence[Same]) -> Tally:
        """Tell those that change nothing from survivors, once all are there."""
        known = Known(table)
        for operator, where in self.unnoticed:
            why = known.why(self.name, where)
            self.by_operator[operator]["survived"] -= bool(why)
            told = self.same if why else self.survivors
            told.append(f"{self.name}: {operator}, {where}" + f": {why}" * bool(why))
        return self


def tally(subject: Subject, operators: Iterable[Operator] = OPERATORS, part: int = 0, parts: int = 1) -> Tally:
    """What notices breaks of a subject, or those at one of so many `parts` of the places."""
    kernel, found = subject.compiled.kernel, Tally(subject.name)
    for operator, position in places(kernel, operators)[part::parts]:
        where, broken = _broken(kernel, operator, position)
        layer = caught(broken, subject)
        found.by_operator.setdefault(operator.name, Counter())[layer or "survived"] += 1
        found.unnoticed += [] if layer else [(operator.name, where)]
    return found


def examples(names: Collection[str]) -> list[Path]:
    """All examples, or those of these names."""
    return [path for path in sorted((ROOT / "examples").rglob("*.pk")) if not names or path.stem in names]


@dataclass(frozen=True)
class _Part:
    """Breaks that one process makes; with the first part it checks the subject as it is."""

    path: Path
    overlap: str
    part: int = 0

    def tally(self) -> Tally:
        subject = subject_at(self.path, self.overlap)
        found = tally(subject, part=self.part, parts=PARTS)
        found.accused = "" if self.part else caught(subject.compiled.kernel, subject)
        return found


def _parts(path: Path) -> list[_Part]:
    return [_Part(path, overlap, part) for overlap, _ in at_roles_level(path) for part in range(PARTS)]


def _tallies(names: Collection[str], jobs: int) -> Iterator[Tally]:
    """Those of each subject, as they come."""
    with ProcessPoolExecutor(jobs) as pool:
        parts = itertools.chain.from_iterable(pool.map(_parts, examples(names)))
        running = {pool.submit(part.tally): part for part in parts}
        left = Counter((part.path, part.overlap) for part in running.values())
        found: dict[str, Tally] = {}
        for future in as_completed(running):
            one, part = running[future], future.result()
            found.setdefault(part.name, Tally(part.name)).add(part)
            left[one.path, one.overlap] -= 1
            if not left[one.path, one.overlap]:
                yield found[part.name].judge(OF_PASSES)


def main(names: Collection[str], jobs: int) -> int:
    """Print the table; the exit status is 1 if a mutant survives or an unchanged kernel is accused."""
    began = time.perf_counter()
    found: list[Tally] = []
    for done in _tallies(names, jobs):
        told = f"{done.name}: {done.caught} of {done.made}, {time.perf_counter() - began:.0f} s"
        print(told, *done.survivors, sep="\n- ", file=sys.stderr, flush=True)
        found.append(done)
    print("| break | mutants | caught | by |\n|---|---|---|---|")
    total = Counter[str]()
    for operator in OPERATORS:
        of_all = sum((done.by_operator.get(operator.name, Counter()) for done in found), Counter[str]())
        number, total = of_all.total(), total + of_all
        by = ", ".join(f"{layer} {n}" for layer, n in sorted(of_all.items()) if layer != "survived")
        print(f"| {operator.name} | {number} | {number - of_all['survived']} | {by} |")
    accused = [f"{done.name}: {done.accused}" for done in found if done.accused]
    caught_all, same = total.total() - total["survived"], sum(len(done.same) for done in found)
    counts = f"{total.total()} mutants, {caught_all} caught, {same} more that change nothing"
    print(f"\n{counts}; {len(accused)} unchanged kernels accused")
    for line in (*(line for done in found for line in done.survivors), *accused):
        print(f"- {line}")
    return 1 if total["survived"] or accused else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Breaks derived protocols at every place, and counts what is found.")
    parser.add_argument("names", nargs="*", metavar="KERNEL", help="only these, of tools/mutants.py; all without one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that break kernels")
    options = parser.parse_args()
    sys.exit(main(options.names, options.jobs))
