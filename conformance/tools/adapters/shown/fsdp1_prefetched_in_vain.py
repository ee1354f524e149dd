# SPDX-License-Identifier: Apache-2.0
"""FSDP1 with NO_SHARD, use_orig_params and forward_prefetch: a unit that a
forward prefetches, as its first forward had it, and then does not call (here: an
evaluation that leaves a layer out) cannot be trained any more. Its next backward
ends where FSDP1 sets gradients, with a RuntimeError about a view. Sharded, not
prefetched, without use_orig_params, or where all are called it trains."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import ShardingStrategy
from two_ranks import layers, play

NO, FULL = ShardingStrategy.NO_SHARD, ShardingStrategy.FULL_SHARD


class Skips(torch.nn.Module):
    """In an evaluation it does not call its last layer."""

    def __init__(self, wrap, skips):
        super().__init__()
        self.rows = torch.nn.ModuleList(wrap(layer) for layer in layers(2))
        self.skips = skips

    def forward(self, x):
        x = self.rows[0](x)
        return self.rows[1](x) if self.training or not self.skips else x


def trained(strategy=NO, keep=True, ahead=True, skips=True):
    def wrap(module):
        return Fsdp(module, sharding_strategy=strategy, use_orig_params=keep,
                    forward_prefetch=ahead, device_id=torch.device("cpu"))

    model, x = wrap(Skips(wrap, skips)), torch.ones(1, 4)
    model(x).sum().backward()
    with torch.no_grad():
        model.eval()(x)
    try:
        model.train()(x).sum().backward()
    except RuntimeError as error:
        return str(error)
    return "trains"


def main(rank):
    vain = trained()
    others = [trained(strategy=FULL), trained(keep=False), trained(ahead=False),
              trained(skips=False)]
    if rank == 0:
        print(f"prefetched in vain: {vain[:96]}; else: {others}")
    assert "has been modified inplace" in vain and set(others) == {"trains"}


if __name__ == "__main__":
    play(main)
