"""CPU time of what evaluates the integers of kernels, best of three: `python -m tools.evaluator_times [NAME ...]`.

docs/decisions/0010-evaluator.md has a table of them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from pkc.check.run import baseline_of, check_roles
from pkc.check.static import check_statically
from pkc.cost.estimate import estimate
from pkc.cost.work import count_work
from pkc.dialect.engines import engines_text
from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes import machine_pipeline
from pkc.passes.roles.plan_overlap import PlanOverlap
from pkc.passes.run import run_pipeline
from pkc.runtime.engines import Engines
from pkc.targets.target import target_of
from tests.examples.test_examples import CASES
from tools import told

EXAMPLES = Path("examples")
LARGE = {"M": 8192, "N": 8192, "K": 8192}

Work = Callable[[], object]


def command(*arguments: str) -> Work:
    """A command of pkc, with its start."""
    return lambda: subprocess.run([sys.executable, "-m", "pkc", *arguments], check=True, capture_output=True)


def trials() -> Work:
    tile, roles = (load(EXAMPLES / "ag_gemm.pk", level=level) for level in ("tile", "roles"))
    meaning = baseline_of(tile, ranks=3, dims={"M": 300, "N": 256, "K": 128})
    return lambda: check_roles(roles, meaning)


def static() -> Work:
    """The static layer on all examples, on 3 and 8 ranks."""
    made = {name: load(EXAMPLES / f"{name}.pk", level="roles").kernel for name in CASES if " " not in name}
    named = {name: {dim for arg in kernel.arguments.values() for dim in getattr(arg.type, "dimensions", ())}
             for name, kernel in made.items()}  # fmt: skip

    def check() -> None:
        for name, kernel in made.items():
            for ranks in (3, 8):
                dims = CASES[name].ragged(ranks)
                check_statically(kernel, ranks=ranks, dims={dim: dims[dim] for dim in dims if dim in named[name]})

    return check


def cost(name: str) -> Work:
    """100 estimates for 4 ranks."""
    made = load(EXAMPLES / f"{name}.pk")
    run_pipeline(made.module, (PlanOverlap(),))
    target = target_of(made.kernel)
    return lambda: [estimate(count_work(made.kernel, LARGE, 4, target), 4, target) for _ in range(100)]


def chosen() -> Work:
    """Schedules for ten sizes that are new each time."""
    path = EXAMPLES / "ag_gemm.pk"
    program, sizes = parse_text(Source(str(path), path.read_text(encoding="utf-8"))), iter(range(8192, 100000, 8))
    autoschedule(program, dims=LARGE, ranks=4)
    return lambda: [autoschedule(program, dims={**LARGE, "M": next(sizes)}, ranks=4) for _ in range(10)]


def engines(*, parse: bool) -> Work:
    """What copy engines of 4 ranks do, from the text or from what is parsed of it."""
    made = load(EXAMPLES / "ag_gemm.pk", level="roles", schedule={"overlap": "copy_engine"})
    run_pipeline(made.module, machine_pipeline())
    text, dims = engines_text(made.kernel), {**LARGE, "ranks": 4}
    parsed = Engines(text)
    return lambda: [(Engines(text) if parse else parsed).sections(rank, dims, {}) for rank in range(4)]


WORKS: dict[str, Callable[[], Work]] = {
    "pkc run": lambda: command("run", "examples/gemm_rs.pk", "--ranks", "8", "--set", "M=1024,N=512,K=512"),
    "pkc check": lambda: command("check", "examples/ring_attention.pk", "--ranks", "4"),
    "24 trials of ag_gemm": trials,
    "static layer, all examples": static,
    "100 estimates of gemm_rs": lambda: cost("gemm_rs"),
    "100 estimates of ag_gemm": lambda: cost("ag_gemm"),
    "10 schedules of ag_gemm": chosen,
    "copy engines of ag_gemm": lambda: engines(parse=False),
    "the same, parsed": lambda: engines(parse=True),
}


def seconds(work: Work) -> float:
    began, children = time.process_time(), getrusage(RUSAGE_CHILDREN)
    work()
    ended = getrusage(RUSAGE_CHILDREN)
    return time.process_time() - began + sum(ended[:2]) - sum(children[:2])


def main(names: Sequence[str]) -> None:
    for name, prepare in WORKS.items():
        if not names or name in names:
            work = prepare()
            print(f"{name:28} {1000 * min(seconds(work) for _ in range(3)):8.1f} ms", flush=True)


if __name__ == "__main__":
    main(told.words(__doc__, rest="NAME"))
