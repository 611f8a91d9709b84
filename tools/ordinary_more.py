"""More kernels for `python -m tools.ordinary`: attention of other forms, scans, quantization, stencils, optimizers."""

from __future__ import annotations

from typing import Any

from tools.fused import Case, Tensors


def _bsa(torch: Any, t: Tensors) -> tuple[Any, ...]:
    """Block-sparse attention, dense with a mask of the table."""
    q, k, v = t["Q"], t["K"], t["V"]
    h, s, _ = q.shape
    n = k.shape[1] // 64
    live = torch.arange(t["table"].shape[2], device=q.device) < t["count"][..., None]
    # how often the table names each block: it may name one twice, which then counts twice
    times = torch.zeros(h, s // 64, n, device=q.device).scatter_add_(2, t["table"].long(), live.float())
    times = times.repeat_interleave(64, 1).repeat_interleave(64, 2)
    x = (q @ k.transpose(-1, -2)).float() * 0.125
    return (torch.softmax(x + torch.log(times), -1).bfloat16() @ v,)


def _winsink(torch: Any, t: Tensors) -> tuple[Any, ...]:
    q, k, v = t["Q"], t["K"], t["V"]
    i = torch.arange(q.shape[1], device=q.device)
    d = i[:, None] - i
    mask = (d >= 0) & ((d < 1024) | (i < 4))
    of = torch.nn.functional.scaled_dot_product_attention
    return (of(q[None], k[None], v[None], attn_mask=mask, scale=0.125)[0],)


def _cross(torch: Any, t: Tensors) -> tuple[Any, ...]:
    q, k, v = (t[x].transpose(1, 2) for x in "QKV")
    of = torch.nn.functional.scaled_dot_product_attention
    return (of(q, k, v, attn_mask=t["bias"][None], scale=0.125).transpose(1, 2).contiguous(),)


def _router(torch: Any, t: Tensors) -> tuple[Any, ...]:
    top = torch.topk((t["X"] @ t["W"]).float(), 4, -1)
    return top.indices.int().t().contiguous(), torch.softmax(top.values, -1).t().contiguous()


def _gconv(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x, f = t["X"], t["F"]
    b, h, w, g, c = x.shape
    y = torch.nn.functional.conv2d(
        x.reshape(b, h, w, g * c).permute(0, 3, 1, 2),
        f.permute(2, 4, 3, 0, 1).reshape(g * c, c, 3, 3),
        padding=1,
        groups=g,
    )
    return (y.permute(0, 2, 3, 1).reshape(b, h, w, g, c).contiguous(),)


def _q8(torch: Any, t: Tensors) -> tuple[Any, ...]:
    w = t["W"].float()
    lo, hi = w.amin(0).clamp_max(0), w.amax(0).clamp_min(0)
    s = ((hi - lo) / 255.0).clamp_min(1e-12)
    z = torch.round(-lo / s) - 128.0
    q = (torch.round(w / s) + z).clamp(-128, 127)
    return s, z, q.to(torch.int8), (q - z) * s


def _awq(torch: Any, t: Tensors) -> tuple[Any, ...]:
    order = torch.tensor([0, 16, 4, 20, 8, 24, 12, 28], dtype=torch.int32, device=t["W"].device)

    def codes(x: Any) -> Any:
        return ((x[..., None] >> order) & 15).reshape(x.shape[0], -1).float()

    group = 64
    w = codes(t["W"]) - codes(t["Z"]).repeat_interleave(group, 0)
    return (t["X"] @ (w * t["S"].float().repeat_interleave(group, 0)).bfloat16(),)


def _fp8attn(torch: Any, t: Tensors) -> tuple[Any, ...]:
    q, k, v = (t[x].bfloat16() for x in "QKV")
    s = (q @ k.transpose(-1, -2)).float() * (t["sq"] * 0.125)[:, None, None]
    return (((torch.softmax(s, -1).bfloat16() @ v).float() * t["sv"][:, None, None]).bfloat16(),)


def _lstm(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x, h, w, u = t["X"], t["h"], t["W"], t["U"]
    g = (x @ w.reshape(w.shape[0], -1)).float() + (h @ u.reshape(u.shape[0], -1)).float() + t["b"].reshape(-1)
    i, f, c, o = g.chunk(4, -1)
    s = torch.sigmoid(f) * t["c"] + torch.sigmoid(i) * torch.tanh(c)
    return (torch.sigmoid(o) * torch.tanh(s)).bfloat16(), s


def _retnet(torch: Any, t: Tensors) -> tuple[Any, ...]:
    """Chunks of 64, as everybody writes it in torch."""
    q, k, v = (t[x].unflatten(1, (-1, 64)) for x in "QKV")
    g = t["ld"][:, None]
    i = torch.arange(64, device=q.device).float()
    d = torch.where(i[:, None] >= i, torch.exp(g[..., None] * (i[:, None] - i)), 0.0)
    inner = ((q @ k.transpose(-1, -2)).float() * d[:, None]).bfloat16() @ v
    up, out = torch.exp(g * (i + 1)), torch.exp(g * (63 - i))
    step = (k * out[:, None, :, None]).bfloat16().transpose(-1, -2) @ v
    state, states = torch.zeros_like(step[:, 0]).float(), []
    for c in range(q.shape[1]):
        states.append(state)
        state = state * torch.exp(g[..., None] * 64) + step[:, c]
    before = (q * up[:, None, :, None]).bfloat16() @ torch.stack(states, 1).bfloat16()
    return ((inner + before).flatten(1, 2),)


def _stencil(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x = t["X"]
    p = torch.nn.functional.pad(x, (1, 1, 1, 1))
    return (0.5 * x + 0.125 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]),)


def _bilinear(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x = t["X"].permute(0, 3, 1, 2)
    y = torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    return (y.permute(0, 2, 3, 1).contiguous(),)


def _lnbwd(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x, dy = t["X"].float(), t["dY"].float()
    c = x - x.mean(-1, keepdim=True)
    r = torch.rsqrt((c * c).mean(-1, keepdim=True) + 1e-5)
    h, g = c * r, dy * t["w"]
    dx = r * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
    return dx.bfloat16(), (dy * h).sum(0), dy.sum(0)


def _embbwd(torch: Any, t: Tensors) -> tuple[Any, ...]:
    zero = torch.zeros(32000, t["dY"].shape[1], device=t["dY"].device)
    return (zero.index_add_(0, t["ids"].long(), t["dY"].float()),)


def _newton(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x = t["X"]
    a = x @ x.t()
    return (3.4445 * x + (-4.775 * a + 2.0315 * (a @ a)) @ x,)


def _gnsilu(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x = t["X"].float()
    m = x.mean((2, 3), keepdim=True)
    v = (x * x).mean((2, 3), keepdim=True) - m * m
    y = (x - m) * torch.rsqrt(v + 1e-5) * t["w"][..., None] + t["b"][..., None]
    return ((y * torch.sigmoid(y)).bfloat16(),)


def _rope(torch: Any, t: Tensors) -> tuple[Any, ...]:
    x, c, s = t["X"].float(), t["c"][:, None], t["s"][:, None]
    a, b = x[..., :64], x[..., 64:]
    return (torch.cat([a * c - b * s, b * c + a * s], -1).bfloat16(),)


def _topk(torch: Any, t: Tensors) -> tuple[Any, ...]:
    kth = torch.topk(t["X"], 8, -1).values[:, 7]
    return kth, torch.where(t["X"] >= kth[:, None], t["X"], 0.0)


def _fft(torch: Any, t: Tensors) -> tuple[Any, ...]:
    z = torch.fft.fft(torch.complex(t["R"], t["I"]), dim=-1)
    return z.real.contiguous(), z.imag.contiguous()


_ATT = {"H": 32, "S": 4096, "T": 4096}
MORE: dict[str, Case] = {
    "bsa": Case(
        {"H": 16, "S": 8192, "T": 8192, "QB": 128, "P": 32},
        ("O",),
        _bsa,
        4 * 16 * 8192 * 64 * 2,
        4 * 16 * 128 * 16.5 * 64 * 64 * 64,
        {"table": (0, 128), "count": (1, 33)},
    ),
    "winsink": Case({**_ATT, "W": 1024}, ("O",), _winsink, 4 * 32 * 4096 * 128, 4 * 32 * 4096 * 1024 * 64),
    "cross": Case(
        {"B": 4, "H": 16, "S": 2048, "T": 2048},
        ("O",),
        _cross,
        16 * 2048 * 2048 * 2 + 4 * 4 * 16 * 2048 * 128,
        4 * 4 * 16 * 2048 * 2048 * 64,
    ),
    "router": Case(
        {"T": 16384, "H": 4096}, ("idx", "w"), _router, 16384 * 8192, 2 * 16384 * 4096 * 64, scale={"W": 0.02}
    ),
    "gconv": Case(
        {"B": 32, "H": 56, "W": 56, "G": 8},
        ("Y",),
        _gconv,
        32 * 56 * 56 * 512 * 4,
        2 * 32 * 56 * 56 * 512 * 64 * 9,
        scale={"F": 0.05},
    ),
    "scan": Case({"M": 1024, "N": 65536}, ("Y",), lambda torch, t: (torch.cumsum(t["X"], -1),), 1024 * 65536 * 8),
    "q8": Case({"K": 8192, "N": 8192}, ("S", "Z", "Q", "D"), _q8, 8192 * 8192 * 9),
    "awq": Case(
        {"M": 4096, "K": 4096, "G": 64, "P": 512, "N": 4096},
        ("Y",),
        _awq,
        4096 * 4096 * 4.5,
        2 * 4096**3,
        {"W": (-(2**31), 2**31), "Z": (-(2**31), 2**31)},
        {"S": 0.01},
    ),
    "fp8attn": Case(_ATT, ("O",), _fp8attn, 32 * 4096 * 64 * 5, 4 * 32 * 4096 * 4096 * 64),
    "lstm": Case(
        {"B": 4096, "I": 1024, "H": 1024},
        ("hn", "cn"),
        _lstm,
        4096 * 1024 * 14 + 2 * 4 * 1024 * 1024 * 2,
        2 * 4096 * 2048 * 4096,
        scale={"W": 0.03, "U": 0.03},
    ),
    "retnet": Case(
        {"H": 256, "S": 4096},
        ("O",),
        _retnet,
        4 * 256 * 4096 * 128,
        256 * 4096 * 64 * 64 * 8,
        scale={"Q": 0.2, "K": 0.2, "ld": 0.001},
    ),
    "stencil": Case({"H": 8192, "W": 8192, "a": 0.5, "b": 0.125}, ("Y",), _stencil, 8192 * 8192 * 8),
    "bilinear": Case(
        {"B": 8, "H": 128, "W": 128, "C": 256, "OH": 256, "OW": 256}, ("Y",), _bilinear, 8 * 128 * 128 * 256 * 2 * 5
    ),
    "topk": Case({"M": 4096, "N": 32000}, ("kth", "Y"), _topk, 4096 * 32000 * 8),
    "lnbwd": Case({"M": 16384, "N": 4096}, ("dX", "dw", "db"), _lnbwd, 16384 * 4096 * 6),
    "embbwd": Case(
        {"T": 16384, "V": 32000, "H": 2048},
        ("dW",),
        _embbwd,
        16384 * 2048 * 2 + 32000 * 2048 * 4,
        ints={"ids": (0, 32000)},
    ),
    "newton": Case(
        {"M": 2048, "N": 8192},
        ("Y",),
        _newton,
        2048 * 8192 * 4,
        2 * 2048 * 2048 * (8192 * 2 + 2048),
        scale={"X": 0.0005},
    ),
    "gnsilu": Case({"B": 8, "G": 32, "S": 16384}, ("Y",), _gnsilu, 8 * 32 * 8 * 16384 * 4),
    "rope": Case({"T": 8192, "H": 32}, ("Y",), _rope, 8192 * 32 * 128 * 4),
    "fft": Case({"B": 4096}, ("A", "C"), _fft, 4096 * 1024 * 16),
}
