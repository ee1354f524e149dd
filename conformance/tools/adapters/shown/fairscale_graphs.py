# SPDX-License-Identifier: Apache-2.0
"""FairScale: a module that has one tensor under two names is refused, as the
second name is not seen (named_parameters leaves it out); a unit that no forward
has called ends the backward in an error; of a unit of one element a first
microbatch is averaged once more, as it is in FSDP1 (fsdp1_one_element.py)."""

import torch
from fairscale_units import lend_streams, wrap
from two_ranks import layers, play


class Scale(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(n))

    def forward(self, x):
        return (x * self.w).sum()


class Some(torch.nn.Module):
    """Of two units one is called."""

    def __init__(self):
        super().__init__()
        self.called, self.idle = wrap(layers(1)), wrap(layers(1))

    def forward(self, x):
        return self.called(x).sum()


def trains(make):
    try:
        wrap(make())(torch.ones(1, 4)).backward()
    except (AssertionError, AttributeError) as error:
        return str(error).split(" ;")[0]
    return "trains"


def tied():
    model = Scale(4)
    model.also = model.w
    return model


def reduced(n):
    """Of the first element, of two microbatches of 8 and of 1."""
    model = wrap(Scale(n))
    for x in (8.0, 1.0):
        model(torch.full((n,), x)).backward()
    return next(model.parameters()).grad[0].item()


def main(rank):
    lend_streams()
    got = (trains(tied), trains(Some), reduced(1), reduced(2))
    if rank == 0:
        print(f"two names: {got[0]}; not called: {got[1]}; "
              f"8 + 1: {got[2]} of one element, {got[3]} of two")
        assert got[0] == "found unsharded parameter: also"
        assert "_full_param_padded" in got[1]
        assert got[2:] == (5.0, 9.0)


if __name__ == "__main__":
    play(main)
