"""The Python interface: load and compile a kernel, run it on simulated ranks, find the mesh of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkc.frontend.words import Reading
from pkc.kernels import Kernel, words_of
from pkc.targets import DEFAULT

if TYPE_CHECKING:
    import numpy as np

    from pkc.codegen.artifact import Artifact
    from pkc.driver.compiler import Compiled
    from pkc.runtime.mesh import Mesh
    from pkc.sim.reference import Expected

Number = int | float | bool


def load(path: str | Path, *, kernel: str | None = None, target: str = DEFAULT) -> Kernel:
    """The kernel of a file (`.pk` or `.py`), for Python to call; `kernel` names one of several.

    Calls compile for `target`, whatever a decorator in the file says. Raises `PkcError`.
    """
    from pkc.driver.programs import find_kernel, load_program
    from pkc.frontend import tree

    program = load_program(path, known=True)
    chosen = find_kernel(program, str(path), kernel)
    reading = Reading(tree.Program(program.span, (chosen,)))
    return Kernel(lambda: reading, chosen.name, target=target)


def mesh() -> Mesh:
    """The mesh of this program, made at the first call: all GPUs, or one for each process under `torchrun`.

    Under `torchrun` all processes must call this. Raises `PkcError`.
    """
    from pkc.runtime.default import default_mesh

    return default_mesh()


def compile(
    kernel: Kernel | str | Path,
    *,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, object] | None = None,
    level: str = "tile",
    target: str | None = None,
) -> Compiled:
    """The checked IR of a kernel, or of the kernels of a file, at a level: `tile`, `roles` or `machine`.

    `constants` gives values to `const` parameters, `schedule` overrides the schedule of the kernel, by keys and values
    as its decorator has them. Below the tile level the IR is for one target, by default that of the kernel.
    `explanations` of the result say what passes planned, `remarks` what they left undone. Raises `PkcError`.
    """
    from pkc.driver.arguments import LEVELS, one_of
    from pkc.driver.compiler import compile_program, load

    level, options = one_of("level", level, LEVELS), words_of(schedule or {})
    if isinstance(kernel, Kernel):
        options = {**kernel.options, **options}
        wanted = target or kernel.target
        return compile_program(kernel.tree, constants=constants, schedule=options, level=level, target=wanted)
    return load(kernel, constants=constants, schedule=options, level=level, target=target or DEFAULT)


def artifact(
    kernel: Kernel | str | Path,
    *,
    ranks: int,
    dims: Mapping[str, int],
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, object] | None = None,
    target: str | None = None,
) -> Artifact:
    """The machine code that would run a kernel, or the only one of a file, at these sizes on so many ranks.

    `dims` has a value for every run-time dimension of the parameters. The schedule is the one that pkc chooses for
    these sizes; what `schedule` says stays. `target` is by default that of the kernel. Raises `PkcError`.
    """
    from pkc.driver.arguments import whole
    from pkc.driver.builder import artifact_for, checked_dims

    ranks = whole("ranks", ranks, 1)
    found = kernel if isinstance(kernel, Kernel) else load(kernel)
    program, wanted = found.tree, target or found.target
    options = {**found.options, **words_of(schedule or {})}
    sizes = checked_dims(program, dims, constants or {}, options, wanted)
    return artifact_for(program, dims=sizes, ranks=ranks, constants=constants, schedule=options, target=wanted)


def simulate(
    kernel: Kernel | str | Path,
    *,
    ranks: int,
    seed: int | None = None,
    constants: Mapping[str, Number] | None = None,
    dims: Mapping[str, int] | None = None,
    **arrays: Any,
) -> dict[str, np.ndarray[Any, Any]]:
    """Run a kernel on `ranks` simulated ranks. Returns the arrays that it writes, by name.

    Arrays and scalars are keyword arguments with the names of the parameters. Private and symmetric arrays have a
    leading axis of ranks, sharded and replicated ones are the global array. `dims` gives run-time dimensions that no
    array has. What the program prints goes to stdout. Raises `PkcError`.
    """
    from pkc.driver.arguments import refuse_hidden, seed_of, whole
    from pkc.sim.run import resolve_dims
    from pkc.sim.run import simulate as run

    found = kernel if isinstance(kernel, Kernel) else load(kernel)
    refuse_hidden(found.tree.kernels[0], "`simulate`", seed=seed, constants=constants, dims=dims)
    ranks, seed = whole("ranks", ranks), seed_of(0 if seed is None else seed)
    compiled = compile(found, constants=constants)
    resolved = resolve_dims(compiled.kernel, dims or {}, arrays, ranks)
    return run(compiled.module, ranks=ranks, dims=resolved, inputs=arrays, kernel=None, seed=seed, say=print)


def reference(
    kernel: Kernel | str | Path, *, ranks: int = 2, seed: int | None = None, **given: Any
) -> Mapping[str, Expected]:
    """What a kernel should write, in float64, with a bound on the error of each element (`value`, `bound`, `written`).

    `given` is as for `Kernel.simulate`. The bound is what the roundings of the program imply; a result of GPUs for the
    same arrays must keep within it. Raises `PkcError`.
    """
    found = kernel if isinstance(kernel, Kernel) else load(kernel)
    return found.simulate(ranks=ranks, seed=seed, **given).expected
