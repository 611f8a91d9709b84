"""The figures of docs/reliability.md that need no GPU, each counted now.

    python -m tools.reliability                # all
    python -m tools.reliability protocols      # some of: protocols, litmus, mutants
    python -m tools.reliability mutants gemm_rs

Wrong protocols that `pkc check` finds and right ones that it accuses (tests/check/collected.py), litmus verdicts that
agree with PTX (tests/litmus; published ones if `PKC_LITMUS` names a copy), and mutants by mistakes that people make
(tools/mutant_mistakes.py), of each example with its default schedule and of each kernel of tests/written.py.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from pkc.cli.main import main as pkc
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.check.collected import ALL_RIGHT, ALL_WRONG
from tests.litmus.__main__ import main as compare
from tests.litmus.published.__main__ import FOLDERS
from tests.litmus.published.__main__ import main as compare_published
from tests.written import WRITTEN
from tools import mutants, told
from tools.mutant_equivalents import BY_PEOPLE
from tools.mutant_mistakes import MISTAKES


def main(arguments: Sequence[str]) -> int:
    """Print the figures asked for; the exit status is 1 if something was not found, or accused."""
    kinds = {"protocols": protocols, "litmus": litmus, "mutants": lambda: subjects(names)}
    asked = [name for name in arguments if name in kinds] or list(kinds)
    names = [name for name in arguments if name not in kinds]
    results = [kinds[name]() for name in asked]
    return int(not all(results))


def protocols() -> bool:
    """Programs that an author could write: wrong ones found for their reason, right ones accused."""
    cases = [(name, ranks) for name, right in ALL_RIGHT.items() for ranks in right.ranks]
    with ProcessPoolExecutor() as pool:
        found = zip(ALL_WRONG, pool.map(_is_found, ALL_WRONG), strict=True)
        missed = [name for name, right in found if not right]
        said = zip(cases, pool.map(_is_accused, cases), strict=True)
        accused = [f"{name}, {ranks} ranks" for (name, ranks), wrong in said if wrong]
    print(f"wrong protocols found: {len(ALL_WRONG) - len(missed)} of {len(ALL_WRONG)}")
    print(f"right protocols accused: {len(accused)} of {len(cases)} ({len(ALL_RIGHT)} on several numbers of ranks)")
    for name in (*missed, *accused):
        print(f"- {name}")
    return not missed and not accused


def _is_found(name: str) -> bool:
    wrong = ALL_WRONG[name]
    found = _says(wrong.text, wrong.ranks, wrong.options)
    return any(f"[{code}]" in found.split("\n")[0] for code in wrong.codes)


def _is_accused(case: tuple[str, int]) -> bool:
    name, ranks = case
    return bool(_says(ALL_RIGHT[name].text, ranks, ALL_RIGHT[name].options))


def _says(text: str, ranks: int, options: Sequence[str]) -> str:
    """What `pkc check` prints about a program to stderr: nothing of a right one."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "k.pk"
        path.write_text(text.lstrip(), encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            pkc(["check", str(path), "--ranks", str(ranks), *options])
    return said.getvalue()


def litmus() -> bool:
    """Litmus tests whose verdict is that of PTX; others differ for a reason that is written beside them. Published
    ones too, if `PKC_LITMUS` says where a copy of them is."""
    status, said = _last_line(compare)
    print(f"litmus verdicts: {said}")
    if os.environ.get(FOLDERS):
        also, said = _last_line(compare_published)
        print(said)
        status = status or also
    return status == 0


def _last_line(command: Callable[[Sequence[str]], int]) -> tuple[int, str]:
    table = io.StringIO()
    with contextlib.redirect_stdout(table):
        status = command([])
    return status, table.getvalue().splitlines()[-1]


def subjects(names: Sequence[str]) -> bool:
    """Mutants by subject: how many were made, how many caught, and which breaks had nothing to break."""
    whole = True
    total = Counter[str]()
    written = [name for name in WRITTEN if not names or name in names]
    with ProcessPoolExecutor() as pool:
        for tally in pool.map(_tally, [*mutants.examples(names), *written]):
            none = [operator.name for operator in MISTAKES if operator.name not in tally.by_operator]
            without = f"; not applicable: {', '.join(none)}" if none else ""
            beside = f", {len(tally.same)} that change nothing" if tally.same else ""
            print(f"{tally.name}: {tally.caught} of {tally.made} mutants caught{beside}{without}", flush=True)
            for line in (*tally.survivors, *tally.same):
                print(f"- {line}")
            whole &= not tally.survivors
            total += Counter(subjects=1, made=tally.made, caught=tally.caught, same=len(tally.same))
    counts = f"{total['caught']} of {total['made']}, of {total['subjects']} subjects"
    print(f"mutants caught: {counts}; {total['same']} change nothing, each for a reason")
    return whole


def _tally(subject: Path | str) -> mutants.Tally:
    """Break an example, at its place, with its default schedule, or a kernel whose roles an author wrote."""
    found = mutants.subject_at(subject, "") if isinstance(subject, Path) else _written(subject)
    return mutants.tally(found, MISTAKES).judge(BY_PEOPLE)


def _written(name: str) -> mutants.Subject:
    program = parse_text(Source("k.pk", WRITTEN[name].lstrip("\n")))
    tile, roles = (compile_program(program, level=level) for level in ("tile", "roles"))
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    sizes = {dim: size for dim, size in _SIZES.items() if dim in used}
    return mutants.subject_of(name, tile, roles, sizes)


_SIZES = {"M": 50, "N": 40, "K": 36}


if __name__ == "__main__":
    sys.exit(main(told.words(__doc__, rest="PART")))
