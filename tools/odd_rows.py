"""Matmuls of 16-bit arrays whose rows begin at no multiple of 16 bytes, on one GPU: `python -m tools.odd_rows`.

    python -m tools.odd_rows [--json FILE]

Each shape with its operands as they are, transposed on the left, and on the right; with the operands copied to rows
that TMA moves (`pk-align-rows`), without that (`aligned_copies=false`), and by torch. All in turns, medians of rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pkc.driver.builder import artifact_for
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.gpu import present
from tools.launches import batch

ROUNDS, LAUNCHES = 9, 5
SHAPES = (
    (4096, 4096, 4096),
    (4096, 4095, 4096),
    (4096, 4096, 4095),
    (4095, 4096, 4096),
    (1000, 1001, 999),
    (16, 50257, 4096),
    (512, 50257, 4096),
    (8192, 4096, 50257),
    (8192, 50257, 4096),
)
"""M, N, K; the last ones are those of a vocabulary of GPT-2."""

FORMS = {"A B": ("M, K", "A[m, k]", "K, N", "B[k, n]"), "A.T B": ("K, M", "A[k, m].T", "K, N", "B[k, n]")}
FORMS["A B.T"] = ("M, K", "A[m, k]", "N, K", "B[n, k].T")
TEXT = """kernel matmul(A: bf16[{a}], B: bf16[{b}], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += {left} @ {right}
        C[m, n] = acc
"""


def measured(mesh: Mesh, form: str, sizes: tuple[int, int, int]) -> dict[str, float]:
    """Milliseconds of each contestant. Raises `AssertionError` if a result is not that of torch's within 2 %."""
    import torch

    a, left, b, right = FORMS[form]
    dims = dict(zip("MNK", sizes, strict=True))
    program = parse_text(Source("matmul.pk", TEXT.format(a=a, b=b, left=left, right=right)))
    shapes = [[dims[dim] for dim in of.split(", ")] for of in (a, b, "M, N")]
    one, two, result = (torch.randn(shape, device="cuda").bfloat16() for shape in shapes)
    x, y = (each.t() if text.endswith(".T") else each for each, text in ((one, left), (two, right)))
    calls: dict[str, Callable[[], Any]] = {"torch": lambda: x @ y}
    expected = (x @ y).float()
    for name, schedule in (("pkc", {}), ("pkc, not copied", {"aligned_copies": "false"})):
        kernel = LoadedKernel(artifact_for(program, dims=dims, ranks=1, schedule=schedule), mesh)
        calls[name] = lambda kernel=kernel: kernel(
            {"A": [one], "B": [two], "C": [result]}, dims=dims, stream=[torch.cuda.current_stream()]
        )
        result.fill_(float("nan"))
        calls[name]()
        torch.cuda.synchronize()
        worst = (result.float() - expected).abs().max() / expected.abs().max()
        assert float(worst) < 0.02, f"{name}: {form} of {sizes} is off by {float(worst):.3f}"
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS + 1):
        for name, call in calls.items():
            taken = batch(call, LAUNCHES)
            if number:  # the first round warms up
                times[name].append(taken)
    return {name: round(statistics.median(found), 5) for name, found in times.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args(arguments)
    present.gpus(1)
    import torch

    mesh, found = Mesh.single_process([0]), list[dict[str, Any]]()
    for sizes in SHAPES:
        for form in FORMS:
            times = measured(mesh, form, sizes)
            found.append({"form": form, "sizes": sizes, "ms": times})
            print(f"{form:6} {' x '.join(map(str, sizes)):20}", *(f"{name} {ms:.4f}" for name, ms in times.items()))
    if given.json is not None:
        content = {"command": "python -m tools.odd_rows", "gpu": torch.cuda.get_device_name(), "times": found}
        given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
