# SPDX-License-Identifier: Apache-2.0
"""GPT-2 of transformers, small and without weights, under fully_shard by
block; its embedding is also its head."""

import torch
from torch.distributed.fsdp import fully_shard
from transformers import GPT2Config, GPT2LMHeadModel

CONFIG = GPT2Config(vocab_size=211, n_positions=32, n_embd=24, n_layer=2,
                    n_head=2)


def model():
    return GPT2LMHeadModel(CONFIG)


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(10000 * step + 100 * microbatch + rank)
    return torch.randint(0, CONFIG.vocab_size, (2, 16), generator=g)


def loss(model, batch):
    return model(input_ids=batch, labels=batch).loss


def shard(model):
    for block in model.transformer.h:
        fully_shard(block)
    fully_shard(model)


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3)
