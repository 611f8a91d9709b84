"""Mutants after mistakes that people make: every one of a derived and of a written protocol is caught."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pkc.check.run import Trials, baseline_of
from pkc.driver.compiler import compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.small import small_dims
from tests.written import WRITTEN
from tools.mutant_mistakes import MISTAKES
from tools.mutants import TRIALS, Subject, caught, mutants, subject_of

EXAMPLES = Path(__file__).parents[2] / "examples"
PULLED = """
kernel k(X: f32[M].shard(0), Z: f32[M].symmetric(), Y: f32[M].symmetric(), G: f32[M].symmetric().scratch(),
         ready: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            signal(ready.at((rank + 1) % ranks)[rank], 1)
    with role(consumer):
        before = (rank + ranks - 1) % ranks
        for m in tasks(blocks(M, 8, of=before)):
            wait(ready[before], len(blocks(M, 8, of=before)))
            store(Y[m], G[m] + Z.at(before)[m])
"""
CHAIN = "tasks that wait for earlier ones"


def written(name: str) -> Subject:
    text = PULLED if name == "pulled" else WRITTEN[name]
    program = parse_text(Source("k.pk", text.lstrip()))
    tile, roles = (compile_program(program, level=level) for level in ("tile", "roles"))
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    sizes = {dim: size for dim, size in {"M": 50, "N": 40}.items() if dim in used}
    return subject_of(name, tile, roles, sizes)


def derived() -> Subject:
    tile, roles = load(EXAMPLES / "gemm_rs.pk"), load(EXAMPLES / "gemm_rs.pk", level="roles")
    return subject_of("gemm_rs", tile, roles, {"M": 130, "N": 70, "K": 20})


@pytest.mark.long
def test_rows_that_no_table_names_are_there_at_the_smallest_instance() -> None:
    """What is fetched for nobody nobody else announces: the exit of the role that fetches must reach its owner."""
    path = EXAMPLES / "moe_mlp.pk"
    tile, roles = load(path, constants={"P": 200}), load(path, level="roles", constants={"P": 200})
    meaning = baseline_of(tile, ranks=2, dims=small_dims(tile.kernel, 2), launches=3)
    (scope,) = [operator for operator in MISTAKES if operator.name == "scope of one GPU"]
    broken = [kernel for _, _, kernel in mutants(roles.kernel, [scope])]
    assert len(broken) == 3
    for kernel in broken:
        (found,) = Trials(kernel, meaning).explore(1, 50).found
        assert found.code in ("PK736", "PK737")


@pytest.mark.parametrize(
    "name",
    ["pulled", CHAIN, *(pytest.param(name, marks=pytest.mark.long) for name in ("gemm_rs", "a signal behind tasks"))],
)
def test_every_mistake_is_caught(name: str) -> None:
    subject = derived() if name == "gemm_rs" else written(name)
    assert not caught(subject.compiled.kernel, subject, TRIALS[:2])
    made = Counter[str]()
    for operator, where, broken in mutants(subject.compiled.kernel, MISTAKES):
        made[operator.name] += 1
        assert caught(broken, subject, TRIALS[:20]), f"{operator.name}, {where}"
    reverse = "tasks in the reverse order"
    if name == "pulled":
        assert {*made, reverse} == {operator.name for operator in MISTAKES}, "each other one applies"
    assert (reverse in made) == (name == CHAIN)
