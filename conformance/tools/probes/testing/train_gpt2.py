# SPDX-License-Identifier: Apache-2.0
"""train_gpt2.py - a training script that knows of no probe: GPT-2 of
transformers, made small, each block sharded, gradients clipped, AdamW, three
steps.

usage: torchrun --nproc-per-node K train_gpt2.py
"""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from transformers import GPT2Config, GPT2LMHeadModel


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(
        n_layer=2, n_head=2, n_embd=64, n_positions=32, vocab_size=512,
        attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0))
    for block in model.transformer.h:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(3):
        tokens = torch.randint(512, (2, 32))
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"{step}: {loss.item():.9g}")
    dist.destroy_process_group()


main()
