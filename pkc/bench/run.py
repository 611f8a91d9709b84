"""`pkc bench`: one kernel at several sizes, beside its peers, in one run."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pkc import console
from pkc.bench import errors, kernels, record
from pkc.bench.peers import contest, ranks
from pkc.bench.peers.contest import WARMUP, Entrant, Step
from pkc.bench.peers.problem import ALONE, Case, Problem, alone_ms, field
from pkc.bench.peers.ranks import Job
from pkc.bench.peers.timing import Hung
from pkc.bench.suite import Entry, Machine, limit_ms, link_ms, machine, suite
from pkc.bench.tables import DERIVED, WRITTEN, table
from pkc.codegen.artifact import Artifact
from pkc.console import OutputUnwritable
from pkc.diagnostics import PkcError
from pkc.driver.compiler import load_program
from pkc.frontend import tree
from pkc.location import NOWHERE
from pkc.runtime import driver
from pkc.runtime.mesh import Mesh
from pkc.targets.target import lookup

QUICK = 2
"""Repetitions to warm up where only the order of magnitude matters."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for; each variant is a schedule on top of `schedule`, measured too.

    Without `sizes` those of the suite are measured. `quick` leaves out all but pkc and the work alone.
    """

    path: str
    kernel: str
    sizes: str | None
    schedule: Mapping[str, str]
    variants: Sequence[Mapping[str, str]]
    repetitions: int
    output: Path | None
    target: str
    quick: bool = False


def entry_of(kernel: str) -> Entry:
    """The entry of a kernel in the suite. Raises `PkcError`."""
    if kernel not in suite():
        raise PkcError(errors.NotInSuite(NOWHERE, kernel, ", ".join(f"`{name}`" for name in suite())))
    return suite()[kernel]


def execute(program: tree.Program, request: Request) -> bool:
    """Measure, print and write; True if every kernel of pkc has a time. Raises `PkcError`."""
    entry = entry_of(request.kernel)
    lookup(request.target)
    entry.problems(request.sizes, ranks=1)
    # Without a GPU the answer must come at once, and be the same with and without torch.
    driver.load().devices()
    if importlib.util.find_spec("torch") is None:
        raise PkcError(errors.NoTorch(NOWHERE, "there is no module named torch"))
    job = ranks.join()
    try:
        fine = _Run(program, entry, request, job).execute()
    except Hung as hung:
        _end(PkcError(errors.NotFinished(NOWHERE, str(hung))))
    except Exception as error:
        if job.ranks == 1:
            raise
        _end(error)
    job.leave()
    return fine


def _end(error: Exception) -> NoReturn:
    """End this process without the clean-up that would wait for other ranks, or for a GPU that hangs."""
    console.failure(error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


class _Run:
    def __init__(self, program: tree.Program, entry: Entry, request: Request, job: Job) -> None:
        self._program, self._entry, self._request, self._job = program, entry, request, job
        self._warmup = QUICK if request.quick else WARMUP
        self._record = record.header(job, request.repetitions, self._warmup)
        self._machine: Machine | None = machine(self._record["machine"]["gpu"])
        self._failed: list[str] = []

    def execute(self) -> bool:
        problems = self._entry.problems(self._request.sizes, self._job.ranks)
        for problem in problems:
            if problem.uneven is not None:
                raise PkcError(errors.UnevenSize(NOWHERE, self._entry.kernel, *problem.uneven, problem.ranks))
        self._write()
        for problem in problems:
            self._measure(problem)
        self._say(f"\n{table([self._record])}")
        if self._failed and self._job.rank == 0:
            console.diagnostics([errors.Failed(NOWHERE, ", ".join(self._failed))])
        return not self._failed

    def _say(self, text: str) -> None:
        if self._job.rank == 0:
            contest.say(text)

    def _measure(self, problem: Problem) -> None:
        self._say(f"{self._entry.kernel} {problem.size} on {problem.ranks}")
        clocks = record.Clocks(self._job.device) if self._job.rank == 0 else None
        mesh = kernels.make_mesh(self._job)
        broken: dict[str, Any] = {}
        entrants, repetitions = self._entrants(problem, mesh, broken), self._request.repetitions
        found = contest.compete(entrants, self._job, repetitions=repetitions, warmup=self._warmup)
        # Not after an error: it would wait for ranks that have left, or for kernels that do not end.
        mesh.close()
        found |= broken
        for name, times in found.items():
            self._say(f"  {name}: {contest.line(times, problem.flops, problem.link_bytes)}")
        failed = [name for name in found if name.startswith("pkc") and "error" in found[name]]
        self._failed += [f"{name} at {problem.size}" for name in failed]
        self._keep(problem, found, clocks.stop() if clocks is not None else {})

    def _keep(self, problem: Problem, found: Mapping[str, Any], clocks: Mapping[str, int]) -> None:
        known = self._machine
        rate = known.rate(problem.exchange, problem.ranks) if known else None
        alone = alone_ms(found) if problem.flops else 0.0
        link = link_ms(problem, rate)
        self._record["results"].append(
            {
                "kernel": self._entry.kernel,
                "title": self._entry.title,
                "ranks": problem.ranks,
                **problem.fields,
                "flops": problem.flops,
                "link_bytes": problem.link_bytes,
                "link_gbps": rate,
                "link_ms": link,
                "limit_ms": limit_ms(problem, known, alone, link),
                "published_ms": known.published_ms(self._entry.kernel, problem) if known else None,
                "schedule": dict(self._request.schedule),
                "sm_mhz": clocks,
                "contestants": found,
            }
        )
        self._write()

    def _write(self) -> None:
        path = self._request.output
        if path is None or self._job.rank:
            return
        try:
            record.write(path, self._record)
        except OSError as error:
            raise PkcError(OutputUnwritable(NOWHERE, str(path), error.strerror or str(error))) from None

    # Contestants

    def _entrants(self, problem: Problem, mesh: Mesh, broken: dict[str, Any]) -> list[Entrant]:
        """The peers, the kernel with each schedule, the work alone; the errors of those that fail go to `broken`."""
        case, alone = problem.draw(self._job), [same.draw(self._job) for same in problem.alone()]
        schedules: dict[str, Mapping[str, str]] = {"pkc": {}}
        schedules |= {variant_name(variant): variant for variant in self._request.variants}
        given = self._request.schedule
        built = [
            self._build(_Source(name, self._program, self._entry, {**given, **variant}), [case], mesh)
            for name, variant in schedules.items()
        ]
        if not self._request.quick and problem.ranks > 1:
            built += self._written(_Source(WRITTEN, self._program, self._entry, given, writes=True), case, mesh)
        if not self._request.quick:
            beside = [("pkc_alone", self._entry.alone, alone), (DERIVED, self._entry.derived, [case])]
            built += [
                self._build(source, cases, mesh)
                for name, file, cases in beside
                if file and cases and (source := self._beside(name, file)) is not None
            ]
        broken |= {name: {"error": error} for name, error in built if isinstance(error, str)}
        ready = [entrant for _, entrant in built if isinstance(entrant, Entrant)]
        others = [peer for peer in field(case, alone) if peer.name in ALONE or not self._request.quick]
        return [*others, *ready]

    def _beside(self, name: str, file: str) -> _Source | None:
        """The kernel of a file beside this one's, if it is there."""
        path = Path(self._request.path).parent / file
        if not path.is_file():
            return None
        program = load_program(path)
        return _Source(name, program, entry_of(program.kernels[0].name), {})

    def _written(self, source: _Source, case: Case, mesh: Mesh) -> list[tuple[str, Entrant | str]]:
        """The kernel with its operands written into the symmetric heap each time, if it has some there."""
        return [self._build(source, [case], mesh)] if self._shares(source, case) else []

    def _shares(self, source: _Source, case: Case) -> bool:
        try:
            artifact = self._compile(source, case)
        except PkcError:
            return False  # said of `pkc` already
        shared = {parameter.name for parameter in artifact.arrays if parameter.layout != "private"}
        return bool(shared & set(source.entry.operands))

    def _compile(self, source: _Source, case: Case) -> Artifact:
        program, entry, schedule = source.program, source.entry, source.schedule
        return kernels.compile_kernel(program, entry, case.problem, schedule, self._request.target)

    def _build(self, source: _Source, cases: Sequence[Case], mesh: Mesh) -> tuple[str, Entrant | str]:
        """A kernel of pkc as an entrant that does all cases in turn, or why it fails; on all ranks if on one."""
        made: Entrant | str
        try:
            made = Entrant(source.name, [self._step(source, case, mesh) for case in cases])
        except PkcError as error:
            made = str(error)
        except Exception as error:
            # A bug in pkc must not lose the results of the peers.
            made = f"internal error: {type(error).__name__}: {error}"
        if self._job.any(isinstance(made, str)) and not isinstance(made, str):
            made = "it fails on another rank"
        return source.name, made

    def _step(self, source: _Source, case: Case, mesh: Mesh) -> Step:
        artifact = self._compile(source, case)
        given = kernels.operands(artifact, source.entry, case, self._job, mesh)
        return Step(kernels.launches(artifact, given, mesh, writes=source.writes), case.reference)


@dataclass(frozen=True)
class _Source:
    """The source of a contestant, which writes its operands into the symmetric heap each time if it `writes`."""

    name: str
    program: tree.Program
    entry: Entry
    schedule: Mapping[str, str]
    writes: bool = False


def variant_name(variant: Mapping[str, str]) -> str:
    """The name of a variant in tables and files."""
    return f"pkc {','.join(f'{key}={value}' for key, value in variant.items())}"
