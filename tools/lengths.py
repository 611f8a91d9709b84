"""Attention of sequences of different lengths, and of few rows, on one GPU beside torch.

    python -m tools.lengths [--json FILE]

`examples/packed_attention.pk` beside torch's `varlen_attn`, and at equal lengths beside `examples/attention.pk` and
cuDNN; `examples/decode_attention.pk` beside torch's flash and cuDNN backends, with all rows of a head of K and V as one
tile, and as heads that share it. Times are medians of rounds in milliseconds; TFLOP/s are 4 H L L D of each sequence,
halved if causal; the share is that of the rate at which torch copies.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pkc
from pkc.runtime.mesh import Mesh
from tests.gpu import present
from tools.launches import median

ROOT = Path(__file__).parents[1]
D, HEADS = 128, 16
LENGTHS = {
    "4 x 8192": [8192] * 4,
    "16 x 2048": [2048] * 16,
    "16384 to 256": [16384, 8192, 4096, 2048, 1024, 512, 256, 256],
    "no whole blocks": [5000, 3001, 7777, 1, 0, 129, 9000, 2500, 5360],
    "64 of 512": [512] * 64,
}
DECODE = [(16, 8, 8, 8192), (64, 8, 8, 8192), (16, 8, 8, 32768), (16, 1, 16, 32768), (1, 8, 8, 131072)]
"""Sequences, heads of K and V of each, rows for each, keys."""
SPLITS = (1, 2, 4, 8, 16)
SCALE = math.log2(math.e) / math.sqrt(D)
ROUNDS, LAUNCHES = 7, 10


def timed(run: Callable[[], object]) -> float:
    """Milliseconds of a launch; nan, with the reason, where it cannot be run."""
    try:
        run()
    except (RuntimeError, TypeError, pkc.PkcError) as error:
        print(f"# {str(error).splitlines()[0][:100]}")
        return math.nan
    return median(run, LAUNCHES, ROUNDS)


def backend(name: str, q: Any, k: Any, v: Any, **options: Any) -> Callable[[], Any]:
    """torch's attention by one of its backends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    def run() -> Any:
        with sdpa_kernel(getattr(SDPBackend, f"{name.upper()}_ATTENTION")):
            return scaled_dot_product_attention(q, k, v, **options)

    return run


def varlen(q: Any, k: Any, v: Any, offsets: Any, longest: int, *, causal: bool) -> Callable[[], Any]:
    """torch's attention of packed sequences."""
    from torch.nn.attention.varlen import varlen_attn

    new = "window_size" in inspect.signature(varlen_attn).parameters
    options = {"window_size": (-1, 0 if causal else -1)} if new else {"is_causal": causal}
    return lambda: varlen_attn(q, k, v, offsets, offsets, longest, longest, **options)


def packed(lengths: Sequence[int], *, causal: bool) -> dict[str, float]:
    """Milliseconds by contestant."""
    import torch

    kernel, alone = (pkc.load(ROOT / "examples" / f"{name}.pk") for name in ("packed_attention", "attention"))
    total = sum(lengths)
    q, k, v, o = (torch.randn(total, HEADS, D, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    ends = torch.tensor([0, *lengths], device="cuda").cumsum(0).to(torch.int32)
    found = {"pkc": timed(lambda: kernel(q, k, v, o, ends, ends, SCALE, causal=causal))}
    other = varlen(q, k, v, ends, max(lengths), causal=causal)
    found["torch varlen"] = timed(other)
    torch.testing.assert_close(o, other(), atol=0.02, rtol=0.05)
    if len(set(lengths)) == 1:
        q, k, v, o = (torch.randn(len(lengths), HEADS, lengths[0], D, device="cuda").bfloat16() for _ in range(4))
        found["pkc attention"] = timed(lambda: alone(q, k, v, o, SCALE, causal=causal))
        found["cudnn"] = timed(backend("cudnn", q, k, v, is_causal=causal))
    return found


def decode(batch: int, heads: int, rows: int, keys: int) -> dict[str, float]:
    """Milliseconds by contestant."""
    import torch

    kernel, mesh = pkc.load(ROOT / "examples" / "decode_attention.pk"), Mesh.single_process([0])
    k, v = (torch.randn(batch, heads, keys, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    given = torch.randn(batch, heads, rows, D, device="cuda", dtype=torch.bfloat16)
    flat = [array.view(batch * heads, keys, D) for array in (k, v)]
    length = torch.full((batch * heads,), keys, device="cuda", dtype=torch.int32)
    q, o = (kernel.empty(name, mesh, H=batch * heads, R=rows) for name in "QO")
    q.tensor().copy_(given.view(batch * heads, rows, D))
    found: dict[str, float] = {}
    wanted = backend("flash", given, k, v)()
    for splits in SPLITS:
        found[f"pkc splits={splits}"] = timed(lambda: kernel(q, *flat, length, o, SCALE, splits=splits))  # noqa: B023
        torch.testing.assert_close(o.tensor().view_as(wanted), wanted, atol=0.01, rtol=0.05)
    shared = given.reshape(batch, heads * rows, 1, D)
    for name in ("flash", "cudnn"):
        found[f"{name}, one tile"] = timed(backend(name, given, k, v))
        found[f"{name}, shared heads"] = timed(backend(name, shared, k, v, enable_gqa=True))
    q.free()
    o.free()
    return found


def copied() -> float:
    """GB/s that torch reads and writes when it copies."""
    import torch

    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    return 2 * source.numel() / timed(lambda: target.copy_(source)) / 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args(arguments)
    present.gpus(1)
    import torch

    rate = copied()
    results: list[dict[str, Any]] = []
    for causal in (False, True):
        for name, lengths in LENGTHS.items():
            times = packed(lengths, causal=causal)
            flops = sum(4 * HEADS * length**2 * D for length in lengths) / (2 if causal else 1) / 1e9
            print(f"{name}{' causal' * causal}: " + _listed(times, lambda time: f"{flops / time:.0f} TFLOP/s"))  # noqa: B023
            results.append({"lengths": lengths, "heads": HEADS, "causal": causal, "ms": times})
    for shape in DECODE:
        times = decode(*shape)
        size = 4 * math.prod((*shape[:2], shape[3], D)) / 1e6
        print(f"decode {' x '.join(map(str, shape))}: " + _listed(times, lambda time: f"{size / time / rate:.2f}"))  # noqa: B023
        results.append({"decode": shape, "ms": times})
    if given.json is not None:
        device = torch.cuda.get_device_name()
        found = {"command": "python -m tools.lengths", "device": device, "torch": torch.__version__, "copy": rate}
        given.json.write_text(json.dumps(found | {"results": results}, indent=1))
    return 0


def _listed(times: dict[str, float], value: Callable[[float], str]) -> str:
    return ", ".join(f"{name} {time:.4g} ms ({value(time)})" for name, time in times.items())


if __name__ == "__main__":
    raise SystemExit(main())
