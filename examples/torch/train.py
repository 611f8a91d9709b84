"""Trains a small transformer with tensor parallelism, and the same one on each GPU by itself, and compares the losses:

    torchrun --nproc-per-node 2 examples/torch/train.py

`--device cpu` needs no GPUs. The exit status says whether the losses agree.
"""

from __future__ import annotations

import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import pkc.nn
import pkc.torch

WORDS, LENGTH, BATCH = 64, 64, 4
HIDDEN, INNER, HEADS, BLOCKS = 256, 1024, 8, 2
STEPS = 40
BOUNDS = {torch.float64: 1e-9, torch.bfloat16: 0.02}
"""How far a loss may be from that of one GPU, relative to it; bf16 keeps 8 bits of each number, 0.4 %."""


class Block(nn.Module):
    """Attention and MLP; activations are [positions, batch, features]."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = (nn.Parameter(torch.ones(HIDDEN)) for _ in range(2))
        self.heads = HEADS
        # For each head its queries, keys and values, so that shards have whole heads.
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.out(self.attention(self.qkv(norm(x, self.before_attention))))
        return x + self.down(F.gelu(self.up(norm(x, self.before_mlp))))

    def attention(self, qkv: torch.Tensor) -> torch.Tensor:
        positions, batch, _ = qkv.shape
        q, k, v = qkv.view(positions, batch, self.heads, 3, HIDDEN // HEADS).permute(3, 1, 2, 0, 4)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return found.permute(2, 0, 1, 3).reshape(positions, batch, -1)


class Model(nn.Module):
    """Tokens [positions, batch] to the logarithms of probabilities of the next ones."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.randn(WORDS, HIDDEN) * 0.1)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.last = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = F.embedding(tokens, same(self.words))
        for block in self.blocks:
            x = block(x)
        return F.log_softmax(F.linear(norm(x, self.last), same(self.words)), -1)


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (HIDDEN,), same(weight))


same = nn.Identity()
"""What is done to parameters that all ranks have."""


def parallel(model: Model, sequence: bool) -> None:
    """Replace the linear layers by shards of them."""
    for block in model.blocks:
        for name in ("qkv", "up"):
            layer = pkc.nn.ColumnParallelLinear.from_linear(getattr(block, name), sequence_parallel=sequence)
            setattr(block, name, layer)
        for name in ("out", "down"):
            setattr(block, name, pkc.nn.RowParallelLinear.from_linear(getattr(block, name), sequence_parallel=sequence))
        block.heads = HEADS // dist.get_world_size()


def train(model: Model, tokens: torch.Tensor, part: slice, share: bool) -> list[float]:
    """The losses of all steps; this process computes those of some positions, and with `share` others the rest."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses: list[float] = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        found = model(tokens[:-1][part])
        loss = (
            F.nll_loss(found.flatten(0, 1).double(), tokens[1:][part].flatten(), reduction="sum") / tokens[1:].numel()
        )
        loss.backward()
        optimizer.step()
        whole = loss.detach()
        if share:
            dist.all_reduce(whole)
        losses.append(whole.item())
    return losses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    device = parser.parse_args().device
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dtype = torch.bfloat16 if device == "cuda" else torch.float64

    torch.manual_seed(0)
    start = Model().state_dict()
    # Sequence b goes up by b + 1.
    tokens = (torch.arange(LENGTH + 1)[:, None] * torch.arange(1, BATCH + 1) % WORDS).to(device)

    def made() -> Model:
        model = Model()
        model.load_state_dict(start)
        return model.to(device, dtype)

    alone = train(made(), tokens, slice(None), share=False)
    right = True
    for sequence in (True, False):
        model = made()
        parallel(model, sequence)
        length = LENGTH // ranks
        part = slice(rank * length, (rank + 1) * length) if sequence else slice(None)
        globals()["same"] = pkc.nn.replicated if sequence else nn.Identity()
        losses = train(model, tokens, part, share=sequence)
        worst = max(abs(one - other) / other for one, other in zip(losses, alone, strict=True))
        right &= worst <= BOUNDS[dtype] and losses[-1] < losses[0] / 2
        if rank == 0:
            kind = "sequence and tensor" if sequence else "tensor"
            print(
                f"{kind} parallel, {ranks} ranks: loss {losses[0]:.4f} to {losses[-1]:.4f}, "
                f"{worst:.2g} from one rank's {alone[-1]:.4f} at most",
                flush=True,
            )
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
