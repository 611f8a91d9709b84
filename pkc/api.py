"""What a Python program uses: compile a kernel, run it on simulated ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkc.language import Kernel

if TYPE_CHECKING:
    import numpy as np

    from pkc.compiler import Compiled

Number = int | float | bool


def compile(
    kernel: Kernel | str | Path,
    *,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
) -> Compiled:
    """The checked tile-level IR of a kernel, or of the kernels of a file.

    `constants` gives values to `const` parameters, `schedule` overrides the kernel's own. Raises `PkcError`.
    """
    from pkc.compiler import compile_program, load

    if isinstance(kernel, Kernel):
        return compile_program(kernel.tree, constants=constants, schedule=schedule)
    return load(kernel, constants=constants, schedule=schedule)


def simulate(
    kernel: Kernel | str | Path,
    *,
    ranks: int,
    seed: int = 0,
    constants: Mapping[str, Number] | None = None,
    dims: Mapping[str, int] | None = None,
    **arrays: Any,
) -> dict[str, np.ndarray[Any, Any]]:
    """Run a kernel on `ranks` simulated ranks; the arrays that it writes, by name.

    Arrays and scalars are given by the names of the parameters. Private and symmetric arrays have a leading axis of
    ranks, sharded and replicated ones are the global array. Run-time dimensions that no array shows go into `dims`.
    Raises `PkcError`.
    """
    from pkc.sim.run import resolve_dims
    from pkc.sim.run import simulate as run

    compiled = compile(kernel, constants=constants)
    resolved = resolve_dims(compiled.kernel, dims or {}, arrays, ranks)
    return run(compiled.module, ranks=ranks, dims=resolved, inputs=arrays, kernel=None, seed=seed)
