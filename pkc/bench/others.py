"""The peers without pkc: `torchrun --nproc-per-node 4 -m pkc.bench.others --kernel gemm_rs --sizes 4096,8192`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pkc.bench.peers.contest import compete, line, say
from pkc.bench.peers.problem import field
from pkc.bench.peers.ranks import join
from pkc.bench.suite import suite


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what would be run instead of pkc."""
    parser = argparse.ArgumentParser(prog="python -m pkc.bench.others", description=main.__doc__)
    parser.add_argument("--kernel", choices=[*suite()], action="append", help="the peers of this kernel; several times")
    parser.add_argument("--sizes", help="as for `pkc bench`; those of the suite if left out")
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    job = join()
    results: list[dict[str, Any]] = []
    for kernel in given.kernel or [*suite()]:
        for problem in suite()[kernel].problems(given.sizes, job.ranks):
            entrants = field(problem.draw(job), [alone.draw(job) for alone in problem.alone()])
            found = compete(entrants, job, repetitions=given.repetitions)
            results.append({"kernel": kernel, "ranks": job.ranks, **problem.fields, "contestants": found})
            if job.rank:
                continue
            for name, times in found.items():
                say(f"{kernel} {problem.size} on {job.ranks}: {name} {line(times, problem.flops, problem.link_bytes)}")
            if given.json:
                given.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    job.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
