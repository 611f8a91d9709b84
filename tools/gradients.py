"""The gradients of attention on one GPU, beside torch's.

    python -m tools.gradients [--json FILE]

`torch.autograd.grad` of `torch.ops.pkc.attention`, which runs `examples/attention_delta.pk`, `attention_dq.pk` and
`attention_dkdv.pk`, and of torch's attention by its cuDNN and its flash backend, on the same random tensors. Times are
medians of rounds in milliseconds, contestants in turn; TFLOP/s are 10 B H S S D, halved if causal. The times of the
three kernels are those of each by itself.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.gpu import present
from tools.launches import median

SIZES = ((4, 16, 8192, 128), (4, 16, 4096, 128), (16, 16, 2048, 128), (4, 16, 8192, 64), (4, 32, 4096, 64))
"""Sequences, heads, positions, features of each."""

ROUNDS, LAUNCHES = 7, 16


def ours(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    torch: Any = importlib.import_module("torch")

    import pkc.torch  # registers the operators

    assert pkc.torch.OPERATORS
    return torch.ops.pkc.attention(q, k, v, causal)[0]


def torchs(backend: str) -> Callable[..., Any]:
    def attend(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
        kinds: Any = importlib.import_module("torch.nn.attention")
        functional: Any = importlib.import_module("torch.nn.functional")
        with kinds.sdpa_kernel(getattr(kinds.SDPBackend, f"{backend.upper()}_ATTENTION")):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return attend


CONTESTANTS: dict[str, Callable[..., Any]] = {"pkc": ours, "cudnn": torchs("cudnn"), "flash": torchs("flash")}


def gradients(size: tuple[int, int, int, int], *, causal: bool) -> dict[str, float]:
    """Milliseconds by contestant, whose gradients are compared, and of pkc's kernels."""
    torch: Any = importlib.import_module("torch")

    q, k, v, given = (torch.randn(*size, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    runs: dict[str, Callable[[], Any]] = {}
    for name, attend in CONTESTANTS.items():
        inputs = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
        out = attend(*inputs, causal=causal)
        runs[name] = lambda out=out, inputs=inputs: torch.autograd.grad(out, inputs, given, retain_graph=True)
    expected = runs["cudnn"]()
    for found in runs.values():
        for one, other in zip(found(), expected, strict=True):
            torch.testing.assert_close(one, other, atol=0.02 * other.abs().max().item(), rtol=0.05)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name].append(median(run, LAUNCHES, 1))
    return {name: sorted(each)[ROUNDS // 2] for name, each in times.items()} | _kernels(q, k, v, given, causal=causal)


def _kernels(q: Any, k: Any, v: Any, given: Any, *, causal: bool) -> dict[str, float]:
    torch: Any = importlib.import_module("torch")

    from pkc.torch import attending

    out, sums = torch.ops.pkc.attention(q, k, v, causal)
    back = attending.AttentionBackward(q, k, causal=causal, scale=1 / math.sqrt(q.shape[-1]))
    delta, found = torch.empty_like(sums), [torch.empty_like(tensor) for tensor in (q, k, v)]
    return {
        "delta": median(lambda: back.delta(given, out, delta), LAUNCHES, ROUNDS),
        "dq": median(lambda: back.of_rows(q, k, v, given, sums, delta, found[0]), LAUNCHES, ROUNDS),
        "dkdv": median(lambda: back.of_keys(q, k, v, given, sums, delta, *found[1:]), LAUNCHES, ROUNDS),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    parser.add_argument("--features", type=int, help="heads of so many features alone")
    given = parser.parse_args(arguments)
    present.gpus(1)
    torch: Any = importlib.import_module("torch")

    torch.zeros(1, device="cuda")
    results: list[dict[str, Any]] = []
    for causal in (False, True):
        for size in SIZES:
            if given.features not in (None, size[-1]):
                continue
            times = gradients(size, causal=causal)
            flops = 10 * math.prod(size) * size[2] / (2 if causal else 1) / 1e9
            listed = ", ".join(
                f"{name} {time:.3f} ms" + f" {flops / time:.0f} TFLOP/s" * (name in CONTESTANTS)
                for name, time in times.items()
            )
            print(f"{' x '.join(map(str, size))}{' causal' * causal}: {listed}", flush=True)
            results.append({"size": size, "causal": causal, "ms": times})
    if given.json is not None:
        device = torch.cuda.get_device_name()
        found = {"command": "python -m tools.gradients", "device": device, "torch": torch.__version__}
        given.json.write_text(json.dumps(found | {"results": results}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
