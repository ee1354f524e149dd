# SPDX-License-Identifier: Apache-2.0
"""FairScale: a unit of which a part is frozen is refused; PyTorch's checkpoint
around a unit ends in an error, inside one it does not; a frozen unit behind a
trained one stays gathered over a no_sync microbatch. (On a CPU it needs streams
that do nothing.)"""

import contextlib

import torch
from fairscale.nn import FullyShardedDataParallel as Fsdp
from torch.utils.checkpoint import checkpoint
from two_ranks import collectives, gathers, layers, play


class NoStream:
    def wait_stream(self, other):
        pass

    def synchronize(self):
        pass


def lend_streams():
    stream, real = NoStream(), Fsdp._setup_streams
    torch.cuda.current_stream = lambda device=None: stream
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.stream = lambda s: contextlib.nullcontext()
    torch.Tensor.record_stream = lambda tensor, s: None

    def setup(module):
        real(module)
        for name in ("fp32_to_fp16", "all_gather", "post_backward"):
            module._streams[name] = stream

    Fsdp._setup_streams = setup


def wrap(module):
    return Fsdp(module, compute_device=torch.device("cpu"), bucket_cap_mb=0)


def mixed():
    model = layers(2)
    model[0].weight.requires_grad_(False)
    try:
        wrap(model)
    except AssertionError as error:
        return str(error).split(" {")[0]
    return "taken"


def around(how):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            inner = layers(1)
            if how == "inside":
                plain = inner.forward
                inner.forward = lambda x: checkpoint(plain, x,
                                                     use_reentrant=False)
            self.unit = wrap(inner)

        def forward(self, x):
            return checkpoint(self.unit, x, use_reentrant=False) \
                if how == "around" else self.unit(x)

    try:
        wrap(Model())(torch.ones(1, 4)).sum().backward()
    except ValueError as error:
        return str(error)[:29]
    return "trains"


def second_forward(frozen):
    model = layers(2)
    model[1].weight.requires_grad_(not frozen)
    model = wrap(torch.nn.Sequential(*(wrap(layer) for layer in model)))
    x = torch.ones(1, 4)
    with model.no_sync():
        model(x).sum().backward()
    with collectives() as seen:
        loss = model(x).sum()
    loss.backward()
    return gathers(seen)


def main(rank):
    lend_streams()
    got = (mixed(), around("inside"), around("around"), second_forward(False),
           second_forward(True))
    if rank == 0:
        print(f"mixed: {got[0]}; checkpoint inside: {got[1]}, around: {got[2]}; "
              f"gathers behind no_sync: {got[3]}, with a frozen unit: {got[4]}")
    assert "requires_grad" in got[0] and got[1] == "trains"
    assert got[2].startswith("expected") and got[3] > got[4]


if __name__ == "__main__":
    play(main)
