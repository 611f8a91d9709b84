"""From a program to machine code, from the cache if the program was compiled before: then no compiler is imported."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict

from pkc import cache
from pkc.codegen import stored
from pkc.codegen.artifact import Artifact
from pkc.codegen.nvrtc import release
from pkc.driver import kept, tuned
from pkc.driver.kept import Number
from pkc.driver.lengths import Lengths
from pkc.driver.outlines import Outline
from pkc.frontend import tree
from pkc.targets import DEFAULT
from pkc.targets.arch import hardware_queues


def artifact_for(
    program: tree.Program,
    *,
    dims: Mapping[str, int],
    ranks: int,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    instruments: Collection[str] = (),
) -> Artifact:
    """The machine code that runs a kernel with these dimensions on so many ranks; the first kernel unless it is named.

    Everything that launches kernels compiles them here. `dims` has a value for every run-time dimension of the
    parameters, without `ranks`. Calls that get equal artifacts may share one `LoadedKernel`. Raises `PkcError`.
    """
    kernel, options = kernel or program.kernels[0].name, dict(schedule or {})
    # Machine code serves all sizes and numbers of ranks, but with the schedule that is best for these.
    best = _schedule(program, kernel, dims, ranks, constants or {}, options, target)
    return build_program(
        program,
        kernel=kernel,
        constants=constants,
        schedule={**options, **best},
        target=target,
        instruments=instruments,
        sizes=(dims, ranks),
    )


def build_program(
    program: tree.Program,
    *,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    instruments: Collection[str] = (),
    sizes: tuple[Mapping[str, int], int] | None = None,
) -> Artifact:
    """The machine code of a kernel, which serves all sizes; with `sizes`, dimensions and ranks, all that suit TMA as
    these do. It depends on the program's IR, the target and pkc; what a text gave before is found without its IR.

    Raises `PkcError`.
    """
    kernel = kernel or program.kernels[0].name
    about = kept.key_of(program, kernel, constants, schedule, target)
    divisors: Mapping[str, int] = {}
    if sizes is not None:
        divisors = _lengths(about, program, kernel, constants, schedule, target).divisors(*sizes)
    added = ",".join(sorted(instruments))
    key = cache.key("artifact of 1", about, release(), added, repr(sorted(divisors.items())))
    name = kept.get(key, target)
    known = None if name is None else kept.get(name.decode(), target)
    if known is not None:
        return stored.unpack(known)
    from pkc.driver.building import built

    where, artifact = built(program, kernel, constants, schedule, target, instruments, divisors)
    kept.put(key, where.encode(), target)
    return artifact


def checked_dims(
    program: tree.Program,
    dims: Mapping[str, object],
    constants: Mapping[str, Number],
    schedule: Mapping[str, str],
    target: str,
) -> Mapping[str, int]:
    """The run-time dimensions of the only kernel of a program, if these are they. Raises `PkcError`."""
    known = outline_of(program, constants, schedule, target).interface.dims
    sizes = {name: size for name, size in dims.items() if type(size) is int and 0 < size < 2**63}
    if set(known) == set(dims) == set(sizes):
        return sizes
    from pkc.driver.building import sizes_of

    return sizes_of(program, dims, constants, schedule)


def outline_of(
    program: tree.Program, constants: Mapping[str, Number], schedule: Mapping[str, str], target: str
) -> Outline:
    """The outline of the only kernel of a program. Raises `PkcError` if it does not compile to the tile level."""
    about = kept.key_of(program, program.kernels[0].name, constants, schedule, target)
    key = cache.key("outline 1", about)
    known = kept.get(key, target)
    if known is not None:
        return Outline.unpack(known)
    from pkc.driver.building import outlined

    found = outlined(program, constants, schedule, target)
    kept.put(key, found.pack(), target)
    return found


def _schedule(
    program: tree.Program,
    kernel: str,
    dims: Mapping[str, int],
    ranks: int,
    constants: Mapping[str, Number],
    options: Mapping[str, str],
    target: str,
) -> Mapping[str, str]:
    """The schedule that was measured to be best for these sizes, or that is chosen for them."""
    measured = tuned.look_up(tuned.key(program, kernel, target, ranks, dims, constants, options))
    if measured is not None:
        return measured.schedule
    # The tree has no positions, on which no schedule depends.
    arguments = repr((program, sorted(dims.items()), ranks, kernel, sorted(constants.items()), sorted(options.items())))
    rates = repr(sorted(tuned.rates_of(target).items()))
    key = cache.key("schedule 2", cache.compiler(), target, str(hardware_queues()), rates, arguments)
    known = kept.get(key, target)
    if known is not None:
        return json.loads(known)
    from pkc.driver.building import chosen

    best = chosen(program, kernel, dims, ranks, constants, options, target)
    kept.put(key, json.dumps(dict(best)).encode(), target)
    return best


def _lengths(
    about: str,
    program: tree.Program,
    kernel: str,
    constants: Mapping[str, Number] | None,
    schedule: Mapping[str, str] | None,
    target: str,
) -> Lengths:
    """What the machine code of a kernel, which is known by `about`, depends on of its sizes."""
    key = cache.key("lengths 1", about)
    known = kept.get(key, target)
    if known is not None:
        return Lengths(**stored.tuples(json.loads(known)))
    from pkc.driver.building import lengths

    found = lengths(program, kernel, constants, schedule)
    kept.put(key, json.dumps(asdict(found)).encode(), target)
    return found
