"""What calls cost the host, beside torch's matmul, on one GPU.

    python -m tools.calls [--json FILE]

Calls of `examples/gemm.pk` with a schedule that sets tiles, and of `torch.ops.pkc.attention`: with tensors that were
passed before, with other tensors of known shapes, with shapes that were never passed. Microseconds are medians of the
time until a call returns; the queue of launches never fills up. The matmul is also measured with a launch that does
nothing: what is left is Python, and with new shapes the driver's encoding of tensor maps. Beside them `torch.mm` and
torch's attention on the same tensors. In new processes: the seconds of `import pkc`, and of reading and first calling
the matmul, which a process before has compiled, when torch has begun to use the GPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from pkc.runtime.driver import load
from tests.gpu import present

ROOT = Path(__file__).parents[1]
TILES = {"tile_M": "128", "tile_N": "128", "tile_K": "64"}
CALLS, PAUSE = 300, 20
"""Calls of each kind, and after how many the GPU is waited for."""

PROCESSES = 5

_IMPORT = "import time; t = time.perf_counter(); import pkc; print(time.perf_counter() - t)"
_FIRST = f"""
import time, torch
a, b, c = (torch.zeros(512, 512, device="cuda", dtype=torch.bfloat16) for _ in range(3))
torch.mm(a, b, out=c)
torch.cuda.synchronize()
t = time.perf_counter()
import pkc
gemm = pkc.load({str(ROOT / "examples" / "gemm.pk")!r}).with_schedule(**{TILES})
gemm(a, b, C=c)
print(time.perf_counter() - t)
torch.cuda.synchronize()
"""


def microseconds(call: Callable[..., object], arguments: Iterable[Sequence[Any]]) -> float:
    """The median time until a call returns."""
    torch: Any = importlib.import_module("torch")
    times: list[float] = []
    for number, given in enumerate(arguments):
        if number % PAUSE == 0:
            torch.cuda.synchronize()
        started = time.perf_counter()
        call(*given)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


def seconds(program: str) -> float:
    """The median of what a program prints, each time in a new process."""
    command = [sys.executable, "-c", program]
    found = (subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True) for _ in range(PROCESSES))
    return statistics.median(float(done.stdout) for done in found)


def of_matmuls() -> dict[str, float]:
    torch: Any = importlib.import_module("torch")
    import pkc

    gemm = pkc.load(ROOT / "examples" / "gemm.pk").with_schedule(**TILES)
    unlaunched = pkc.load(ROOT / "examples" / "gemm.pk").with_schedule(**TILES)

    def drawn(rows: int) -> tuple[Any, ...]:
        shapes = (rows, 512), (512, 256), (rows, 256)
        return tuple(torch.zeros(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes)

    def ours(a: Any, b: Any, c: Any) -> None:
        gemm(a, b, C=c)

    def python(a: Any, b: Any, c: Any) -> None:
        unlaunched(a, b, C=c)

    def torchs(a: Any, b: Any, c: Any) -> None:
        torch.mm(a, b, out=c)

    same = [drawn(512)] * CALLS
    others = [drawn(512) for _ in range(64)] * (CALLS // 64)
    new = [drawn(8 * number) for number in range(65, 65 + CALLS)]
    found: dict[str, float] = {}
    kinds = {"the same tensors": same, "other tensors": others, "new shapes": new}
    for name, call in (("pkc", ours), ("pkc, Python alone", python), ("torch.mm", torchs)):
        call(*same[0])
        with _nothing_launched() if call is python else nullcontext():
            found |= {f"{name}: {kind}": microseconds(call, given) for kind, given in kinds.items()}
    return found


@contextmanager
def _nothing_launched() -> Generator[None]:
    """Calls of pkc do everything but launch."""
    driver = load()
    api = driver.api
    driver.api = _Unlaunched(api)
    try:
        yield
    finally:
        driver.api = api


class _Unlaunched:
    """The driver's interface, with a launch that does nothing."""

    def __init__(self, api: Any) -> None:
        self.__dict__.update(cast("dict[str, Any]", vars(api)))
        self.cuLaunchKernelEx = _nothing


def _nothing(*_: object) -> tuple[int]:
    return (0,)


def of_attention() -> dict[str, float]:
    torch: Any = importlib.import_module("torch")
    importlib.import_module("pkc.torch")
    plain = torch.nn.functional.scaled_dot_product_attention

    def drawn(rows: int) -> tuple[Any, ...]:
        return tuple(torch.zeros(1, 4, rows, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    same, others = [drawn(512)] * CALLS, [drawn(512) for _ in range(64)] * (CALLS // 64)
    # Their schedule is that of 512 rows.
    new = [drawn(rows) for rows in range(452, 512, 4)]
    found: dict[str, float] = {}
    with torch.no_grad():
        for name, call in (("torch.ops.pkc.attention", torch.ops.pkc.attention), ("torch's attention", plain)):
            call(*same[0])
            call(*drawn(448 + 8))
            kinds = {"the same tensors": same, "other tensors": others, "new shapes": new}
            found |= {f"{name}: {kind}": microseconds(call, given) for kind, given in kinds.items()}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args(arguments)
    present.gpus(1)
    torch: Any = importlib.import_module("torch")
    calls = of_matmuls() | of_attention()
    processes = {"import pkc": seconds(_IMPORT), "first call": seconds(_FIRST)}
    for name, found in calls.items():
        print(f"{name:42} {found:8.1f} us")
    for name, found in processes.items():
        print(f"{name:42} {found:8.3f} s")
    if given.json is not None:
        about = {"command": "python -m tools.calls", "device": torch.cuda.get_device_name(), "torch": torch.__version__}
        given.json.write_text(json.dumps(about | {"us": calls, "s": processes}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
