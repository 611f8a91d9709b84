"""Kernels that engines and trainers fuse, beside torch.compile: `python -m tools.ordinary [NAME ...] [--json FILE]`, on
one GPU.

The programs are those of bench/ordinary, written as one writes them first. Each runs with the schedule that is chosen
for its sizes, launched one after the other; torch.compile gets the function below in the same run, on the same inputs.
`worst` is the largest difference to the function in eager mode over the largest number, and of integers the share that
differ, as where two are nearly equal; `limit` the time of the bytes at 4.2 TB/s or of the FLOPs at 800 TFLOP/s,
whichever is longer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.dialect.types import RANKS
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import load_program
from tests.gpu import present
from tools.fused import Case, Tensors
from tools.launches import batch
from tools.ordinary_more import MORE

KERNELS = Path(__file__).parents[1] / "bench" / "ordinary"
MEMORY, TENSOR_CORES = 4.2e12, 8e14
JOBS, ROUNDS, TOTAL_MS = 14, 5, 20


def _quantized(torch: Any, y: Any, least: float) -> tuple[Any, Any]:
    s = y.abs().amax(-1).clamp_min(least) / 448.0
    return (y / s[..., None]).to(torch.float8_e4m3fn), s


def _add_rmsnorm_fp8(torch: Any, t: Tensors) -> tuple[Any, ...]:
    s = t["X"].float() + t["R"].float()
    y = s * torch.rsqrt((s * s).mean(-1, keepdim=True) + 1e-5) * t["w"].float()
    return s.bfloat16(), *_quantized(torch, y, 1e-12)


def _silu_mul_quant(torch: Any, t: Tensors) -> tuple[Any, ...]:
    a, u = t["X"][:, 0].float(), t["X"][:, 1].float()
    q, s = _quantized(torch, a * torch.sigmoid(a) * u, 1e-10)
    return q, s.t().contiguous()


def _rmsnorm_bwd(torch: Any, t: Tensors) -> tuple[Any, ...]:
    r, dy = t["rstd"][:, None], t["dY"].float()
    x, g = t["X"].float() * r, dy * t["w"].float()
    return (r * (g - x * (g * x).mean(-1, keepdim=True))).bfloat16(), (dy * x).sum(0)


def _layernorm_bwd(torch: Any, t: Tensors) -> tuple[Any, ...]:
    r, dy = t["rstd"][:, None], t["dY"].float()
    x, g = (t["X"].float() - t["mean"][:, None]) * r, dy * t["w"].float()
    dx = r * (g - g.mean(-1, keepdim=True) - x * (g * x).mean(-1, keepdim=True))
    return dx.bfloat16(), (dy * x).sum(0), dy.sum(0)


def _softmax_bwd(torch: Any, t: Tensors) -> tuple[Any, ...]:
    p, d = t["P"].float(), t["dP"].float()
    return ((p * (d - (p * d).sum(-1, keepdim=True)) * 0.125).half(),)


def _swiglu_bwd(torch: Any, t: Tensors) -> tuple[Any, ...]:
    g, u, dy = t["X"][:, 0].float(), t["X"][:, 1].float(), t["dY"].float()
    s = torch.sigmoid(g)
    return (torch.stack([dy * u * s * (1 + g * (1 - s)), dy * g * s], 1).bfloat16(),)


def _kl_div(torch: Any, t: Tensors) -> tuple[Any, ...]:
    ls, lt = (torch.log_softmax(t[name].float() * 0.5, -1) for name in "ST")
    p = lt.exp()
    return (p * (lt - ls)).sum(-1), ((ls.exp() - p) * 0.5).bfloat16()


def _linear_ce(torch: Any, t: Tensors) -> tuple[Any, ...]:
    found = (t["X"] @ t["W"].t()).float()
    lse = torch.logsumexp(found, -1)
    return lse, lse - found.gather(1, t["target"].long()[:, None])[:, 0]


def _gate_topk(torch: Any, t: Tensors) -> tuple[Any, ...]:
    s = torch.sigmoid(t["L"])
    idx = torch.topk(s + t["bias"], 8, -1).indices
    w = s.gather(1, idx)
    return idx.int(), w / w.sum(-1, keepdim=True) * 2.5


def _histogram(torch: Any, t: Tensors) -> tuple[Any, ...]:
    zero = torch.zeros(256, dtype=torch.int32, device=t["ids"].device)
    return (zero.index_add_(0, t["ids"], torch.ones_like(t["ids"])),)


def _qkv_rope_norm(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x, at = t["X"], t["pos"].long()
    c, s = t["c"][at][:, None], t["s"][at][:, None]

    def turned(y: Any, w: Any) -> Any:
        y = y.float()
        y = y * torch.rsqrt((y * y).mean((-1, -2), keepdim=True) + 1e-6) * w.float()
        a, b = y[:, :, 0], y[:, :, 1]
        return torch.stack([a * c - b * s, b * c + a * s], 2).bfloat16()

    return turned(x[:, :32], t["wq"]), turned(x[:, 32:40], t["wk"]), x[:, 40:].clone()


def _softmaxed(torch: Any, s: Any, v: Any) -> Any:
    return torch.softmax(s, -1).bfloat16() @ v


def _attn_misc(torch: Any, t: Tensors) -> tuple[Any, ...]:
    q, (k, v) = t["Q"], (t[name].repeat_interleave(4, 1) for name in "KV")
    s = torch.tanh((q @ k.transpose(-1, -2)).float() * (0.08838834764831845 / 30.0)) * 30.0
    at = torch.arange(q.shape[2], device=q.device)
    d = at[:, None] - at
    s = s - t["slope"][:, None, None] * d
    s = torch.where((d >= 0) & (t["keep"] != 0)[:, None, None], s, -torch.inf)
    sink = t["sink"][None, :, None, None].expand(*s.shape[:3], 1)
    p = torch.softmax(torch.cat([s, sink], -1), -1)[..., :-1]
    return (p.bfloat16() @ v,)


def _mla(torch: Any, t: Tensors) -> tuple[Any, ...]:
    q = torch.cat([t["Qn"], t["Qr"]], -1).transpose(1, 2)
    shared = t["Kr"][:, :, None].expand(-1, -1, t["Kn"].shape[2], -1)
    k, v = torch.cat([t["Kn"], shared], -1).transpose(1, 2), t["V"].transpose(1, 2)
    of = torch.nn.functional.scaled_dot_product_attention
    return (of(q, k, v, is_causal=True, scale=192**-0.5).transpose(1, 2).contiguous(),)


def _paged_decode(torch: Any, t: Tensors) -> tuple[Any, ...]:
    at, (b, n) = t["table"].long(), t["table"].shape
    live = torch.arange(n * 16, device=at.device) < t["length"][:, None]
    k, v = (t[name][at].view(b, n * 16, 8, 128).transpose(1, 2) for name in ("KC", "VC"))
    s = (t["Q"] @ k.transpose(-1, -2)).float() * 128**-0.5
    return (_softmaxed(torch, torch.where(live[:, None, None], s, -torch.inf), v),)


def _kv_update(torch: Any, t: Tensors) -> tuple[Any, ...]:
    slot = t["slot"].long()
    made = (t[c].clone().view(-1, 8, 128).index_copy_(0, slot, t[x]) for c, x in (("KC", "K"), ("VC", "V")))
    return tuple(one.view(t["KC"].shape) for one in made)


def _rope_gptj(torch: Any, t: Tensors) -> tuple[Any, ...]:
    a, b, c, s = t["X"][..., 0].float(), t["X"][..., 1].float(), t["c"][:, None], t["s"][:, None]
    return (torch.stack([a * c - b * s, b * c + a * s], -1).bfloat16(),)


def _delta_decode(torch: Any, t: Tensors) -> tuple[Any, ...]:
    s = t["S"] * torch.exp(t["g"])[..., None, None]
    u = (t["v"].float() - (s * t["k"][..., None]).sum(-2)) * t["beta"][..., None]
    s = s + t["k"][..., None] * u[..., None, :]
    return s, (s * t["q"][..., None]).sum(-2).bfloat16()


def _conv1d(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x, length = torch.nn.functional.pad(t["X"].float(), (0, 0, 3, 0)), t["X"].shape[1]
    a = sum(x[:, k : k + length] * t["w"][k] for k in range(4)) + t["bias"]
    return ((a * torch.sigmoid(a)).bfloat16(),)


def _lora(torch: Any, t: Tensors) -> tuple[Any, ...]:
    return (t["X"] @ t["W"] + (t["X"] @ t["A"]) @ t["B"] * 2.0,)


def _wgrad_bias(torch: Any, t: Tensors) -> tuple[Any, ...]:
    return (t["X"].t() @ t["dY"]).float(), t["dY"].float().sum(0)


def _w4a16(torch: Any, t: Tensors) -> tuple[Any, ...]:
    k = torch.arange(t["X"].shape[1], device=t["W"].device)
    code = (t["W"][k // 8] >> (k % 8 * 4).int()[:, None]) & 15
    w = (code.float() - t["Z"].float()[k // 128]) * t["S"].float()[k // 128]
    return (t["X"] @ w.bfloat16(),)


def _w8a16(torch: Any, t: Tensors) -> tuple[Any, ...]:
    return (t["X"] @ (t["W"].float() * t["S"].repeat_interleave(128, 1)).bfloat16().t(),)


def _adamw(torch: Any, t: Tensors) -> tuple[Any, ...]:
    g = t["G"].float()
    a, v = t["m1"] * 0.9 + g * (1 - 0.9), t["m2"].abs() * 0.99 + g * g * (1 - 0.99)
    p = t["M"] * (1 - 1e-3 * 0.1) - 1e-3 * (a / 0.5) / (torch.sqrt(v / 0.3) + 1e-8)
    return p.bfloat16(), p, a, v


def _argmax(torch: Any, t: Tensors) -> tuple[Any, ...]:
    return (t["X"].argmax(-1).int(),)


def _dropout(torch: Any, t: Tensors) -> tuple[Any, ...]:
    bit = (t["mask"][..., None] >> torch.arange(32, device=t["X"].device, dtype=torch.int32)) & 1
    kept = torch.where(bit.reshape(t["X"].shape) != 0, t["X"].float() * 1.25, 0.0)
    return ((kept + t["R"].float()).bfloat16(),)


def _meanpool(torch: Any, t: Tensors) -> tuple[Any, ...]:
    live = torch.arange(t["X"].shape[1], device=t["X"].device) < t["length"][:, None]
    return (torch.where(live[..., None], t["X"].float(), 0.0).sum(1) / t["length"].clamp_min(1)[:, None],)


def _groupnorm(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x = t["X"].float()
    m = x.mean((1, 3), keepdim=True)
    v = (x * x).mean((1, 3), keepdim=True) - m * m
    return (((x - m) * torch.rsqrt(v + 1e-5) * t["w"] + t["b"]).bfloat16(),)


def _embed_ln(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x = t["W"][t["ids"].long()].float() + t["P"].float()
    return (torch.nn.functional.layer_norm(x, (1024,), t["w"].float(), t["b"].float(), 1e-5).bfloat16(),)


_ROWS, _WIDE = {"M": 16384, "N": 4096}, 16384 * 4096
_GATED = 8192 * 14336
CASES: dict[str, Case] = {
    "add_rmsnorm_fp8": Case(_ROWS, ("S", "Q", "scale"), _add_rmsnorm_fp8, _WIDE * 7),
    "silu_mul_quant": Case({"M": 8192, "G": 112}, ("Q", "scale"), _silu_mul_quant, _GATED * 5),
    "rmsnorm_bwd": Case(_ROWS, ("dX", "dw"), _rmsnorm_bwd, _WIDE * 6),
    "layernorm_bwd": Case(_ROWS, ("dX", "dw", "db"), _layernorm_bwd, _WIDE * 6),
    "softmax_bwd": Case({"M": 32768, "N": 4096, "scale": 0.125}, ("dX",), _softmax_bwd, _WIDE * 12, scale={"P": 1e-3}),
    "swiglu_bwd": Case({"M": 8192, "N": 14336}, ("dX",), _swiglu_bwd, _GATED * 10, file="gated"),
    "kl_div": Case({"M": 4096, "V": 32768, "it": 0.5}, ("loss", "dS"), _kl_div, 4096 * 32768 * 6),
    "linear_ce": Case(
        {"M": 8192, "K": 4096, "V": 32768},
        ("lse", "loss"),
        _linear_ce,
        (8192 + 32768) * 8192,
        2 * 8192 * 4096 * 32768,
        {"target": (0, 32768)},
        {"W": 0.02},
    ),
    "gate_topk": Case({"T": 16384, "factor": 2.5}, ("idx", "weight"), _gate_topk, 16384 * 1088, scale={"bias": 0.1}),
    "histogram": Case({"T": 65536}, ("count",), _histogram, 65536 * 4, ints={"ids": (0, 256)}),
    "qkv_rope_norm": Case(
        {"T": 8192, "P": 8192}, ("Q", "K", "V"), _qkv_rope_norm, 8192 * 48 * 128 * 4, ints={"pos": (0, 8192)}
    ),
    "attn_misc": Case(
        {"B": 2, "S": 4096, "T": 4096, "scale": 0.08838834764831845, "cap": 30.0},
        ("O",),
        _attn_misc,
        2 * 4096 * 128 * 2 * 80,
        2 * 32 * 4096 * 4096 * 128 * 2,
        {"keep": (0, 2)},
        {"slope": 0.01},
    ),
    "mla": Case(
        {"B": 2, "S": 4096, "T": 4096, "H": 32, "scale": 192**-0.5 * 1.4426950408889634},
        ("O",),
        _mla,
        2 * 4096 * 2 * (32 * 576 + 64),
        2 * 32 * 4096 * 4096 * (192 + 128),
    ),
    "paged_decode": Case(
        {"B": 64, "G": 8, "P": 32768, "N": 512, "scale": 128**-0.5 * 1.4426950408889634},
        ("O",),
        _paged_decode,
        64 * 4608 * 8 * 128 * 4,
        ints={"table": (0, 32768), "length": (1024, 8193)},
    ),
    "kv_update": Case({"T": 8192, "P": 4096}, ("KC", "VC"), _kv_update, 8192 * 1024 * 8, ints={"slot": (0, 0)}),
    "rope_gptj": Case({"T": 8192}, ("Y",), _rope_gptj, 8192 * 32 * 128 * 4),
    "delta_decode": Case(
        {"B": 256, "H": 32, "E": 128},
        ("S", "O"),
        _delta_decode,
        256 * 32 * 128 * 128 * 8,
        scale={"q": 0.1, "k": 0.1, "g": 0.1},
    ),
    "conv1d": Case({"B": 8, "L": 4096, "C": 4096}, ("Y",), _conv1d, 8 * 4096 * 4096 * 4),
    "lora": Case(
        {"M": 8192, "K": 4096, "N": 4096, "s": 2.0},
        ("Y",),
        _lora,
        20480 * 8192,
        2 * 8192 * 4096 * 4128,
        scale={"W": 0.02, "A": 0.02},
    ),
    "wgrad_bias": Case(
        {"T": 8192, "K": 4096, "N": 4096}, ("dW", "db"), _wgrad_bias, 8192 * 16384, 2 * 8192 * 4096 * 4096
    ),
    "w4a16": Case(
        {"M": 4096, "N": 4096}, ("Y",), _w4a16, 4096 * 18432, 2 * 4096**3, {"W": (-(2**31), 2**31)}, {"S": 0.01}
    ),
    "w8a16": Case({"M": 4096, "N": 4096}, ("Y",), _w8a16, 4096 * 20480, 2 * 4096**3, {"W": (-128, 128)}, {"S": 1e-3}),
    "adamw": Case(
        {"N": 2**27, "lr": 1e-3, "b1": 0.9, "b2": 0.99, "c1": 0.5, "c2": 0.3, "wd": 0.1},
        ("P", "M", "m1", "m2"),
        _adamw,
        2**27 * 28,
    ),
    "grad_norm": Case({"N": 2**27}, ("total",), lambda _, t: ((t["G"].float() ** 2).sum()[None],), 2**28),
    "argmax": Case({"M": 256}, ("best",), _argmax, 256 * 151936 * 2),
    "dropout": Case(
        {"M": 16384, "N": 4096, "inv": 1.25}, ("Y",), _dropout, _WIDE * 6.125, ints={"mask": (-(2**31), 2**31)}
    ),
    "meanpool": Case({"B": 64, "S": 4096, "H": 1024}, ("Y",), _meanpool, 64 * 2048 * 2048, ints={"length": (1, 4097)}),
    "permute": Case(
        {"B": 4, "S": 8192, "H": 32}, ("Y",), lambda _, t: (t["X"].permute(0, 2, 3, 1).contiguous(),), 4 * 8192 * 16384
    ),
    "maxpool": Case(
        {"B": 32, "H": 112, "W": 112, "C": 64, "P": 56, "Q": 56},
        ("Y",),
        lambda _, t: (t["X"].view(32, 56, 2, 56, 2, 64).amax((2, 4)),),
        32 * 112 * 112 * 64 * 2.5,
    ),
    "groupnorm": Case({"B": 16, "S": 4096, "G": 32}, ("Y",), _groupnorm, 16 * 4096 * 512 * 4),
    "embed_ln": Case(
        {"V": 30522, "L": 512, "B": 64, "S": 512}, ("Y",), _embed_ln, 64 * 512 * 4100, ints={"ids": (0, 30522)}
    ),
    **MORE,
}


def built(name: str) -> tuple[Artifact, dict[str, int], dict[str, float]]:
    """The machine code of a case, its dimensions and its scalars."""
    case = CASES[name]
    program = load_program(KERNELS / f"{case.file or name}.pk")
    (params,) = (kernel.params for kernel in program.kernels if kernel.name == name)
    scalars = {one.name: case.sizes[one.name] for one in params if one.name in case.sizes}
    constants = [one.name for one in params if one.annotation.base == "const"]
    dims = {dim: int(size) for dim, size in case.sizes.items() if dim not in scalars}
    given = {key: int(scalars.pop(key)) for key in constants if key in scalars}
    return artifact_for(program, dims=dims, ranks=1, kernel=name, constants=given), dims, scalars


def _drawn(torch: Any, case: Case, view: Any, name: str, generator: Any) -> Any:
    """A tensor of random contents for an array."""
    low, high = case.ints.get(name, (-128, 128))
    if low == high:  # places that differ
        return torch.randperm(1 << 16, device=view.device, generator=generator)[: view.shape[0]].int()
    if not view.dtype.is_floating_point:
        return torch.randint(low, high, view.shape, device=view.device, generator=generator).to(view.dtype)
    made = torch.randn(view.shape, device=view.device, generator=generator) * case.scale.get(name, 1.0)
    return (made.abs() if name in ("m2", "S", "rstd") else made).to(view.dtype)


def _apart(found: Any, want: Any) -> float:
    """The largest difference over the largest number; of integers the share that differ."""
    want = want.reshape(found.shape)
    if not want.dtype.is_floating_point:
        return (found != want).float().mean().item()
    found, want = found.float(), want.float()
    most = want.abs().nan_to_num(posinf=0).max().clamp_min(1e-30)
    return ((found - want).abs().nan_to_num().max() / most).item()


def measured(name: str, artifact: Artifact, dims: dict[str, int], scalars: dict[str, float]) -> dict[str, float]:
    """Microseconds of pkc and of torch.compile, the limit, and how far pkc is from the function in eager mode."""
    import torch

    from pkc.runtime.launch import LoadedKernel
    from pkc.runtime.mesh import Mesh
    from pkc.runtime.torch import tensor

    case, mesh, generator = CASES[name], Mesh.single_process([0]), torch.Generator("cuda").manual_seed(1)
    sizes = {**dims, RANKS: 1}
    arguments: dict[str, Any] = {}
    views: dict[str, Any] = {}
    for array in artifact.arrays:
        if not array.scratch:
            shape = [sizes[dim] if isinstance(dim, str) else dim for dim in array.dims]
            made = mesh.empty(
                shape, array.dtype, "symmetric" if array.layout == "private" else array.layout, array.shard
            )
            views[array.name] = tensor(made.local(0))
            views[array.name].copy_(_drawn(torch, case, views[array.name], array.name, generator))
            arguments[array.name] = [made.local(0)] if array.layout == "private" else made
    inputs = {array: view.clone() for array, view in views.items()}
    kernel = LoadedKernel(artifact, mesh)
    known = {dim: size for dim, size in dims.items() if dim in artifact.interface.dims}

    def launch() -> None:
        kernel({**arguments, **scalars}, dims=known, stream=[torch.cuda.current_stream()])

    launch()
    expected = case.torch(torch, inputs)
    worst = max(_apart(views[output], want) for output, want in zip(case.outputs, expected, strict=True))
    del expected
    compiled = torch.compile(lambda: case.torch(torch, inputs), dynamic=False)
    compiled()
    times: list[float] = []
    for call in (launch, compiled):
        call()
        count = max(3, min(40, int(TOTAL_MS / max(1e-3, batch(call, 3)))))
        times.append(statistics.median(batch(call, count) for _ in range(ROUNDS)) * 1e3)
    limit = max(case.bytes / MEMORY, case.flops / TENSOR_CORES) * 1e6
    mesh.close()
    return {"pkc_us": times[0], "torch_us": times[1], "limit_us": limit, "worst": worst}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CASES])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    present.gpus(1)
    import torch

    names = options.names or list(CASES)
    found: dict[str, dict[str, float]] = {}
    with ProcessPoolExecutor(JOBS) as pool:
        for name, of in zip(names, pool.map(built, names), strict=True):
            torch._dynamo.reset()
            with torch.no_grad():
                found[name] = one = {key: round(value, 5) for key, value in measured(name, *of).items()}
            torch.cuda.empty_cache()
            print(f"{name:18}" + "".join(f"{key} {value:10.4g}  " for key, value in one.items()), flush=True)
            if options.json:
                about = {"time": time.strftime("%Y-%m-%d"), "machine": torch.cuda.get_device_name(0)}
                options.json.write_text(json.dumps(about | {"kernels": found}, indent=1) + "\n", encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main()
