# SPDX-License-Identifier: Apache-2.0
"""FairScale, what it saves: on a CPU the full state of Adam has second moments
in place of the first (one buffer takes each, and `.cpu()` of what lies there is
no copy); the optimizer that it is made of steps no more, as its counts of steps
are numbers from then on; and a local state is not loaded before a unit was
gathered for the first time. (On a CPU it needs streams that do nothing.)"""

import torch
from fairscale_units import lend_streams, wrap
from two_ranks import layers, play


def units():
    return wrap(torch.nn.Sequential(*(wrap(layer) for layer in layers(2))))


def stepped():
    model = units()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return model, optimizer


def raised(function, *args):
    try:
        function(*args)
    except (RuntimeError, AttributeError) as error:
        return str(error)
    return ""


def main(rank):
    lend_streams()
    model, optimizer = stepped()
    own = [s["exp_avg"].clone() for s in optimizer.state.values()]
    whole = model.gather_full_optim_state_dict(optimizer)
    if rank == 0:
        first = whole["state"][0]
        alike = torch.equal(first["exp_avg"], first["exp_avg_sq"])
        assert alike and not torch.equal(first["exp_avg"].reshape(-1)[:8],
                                         own[0])
    model(torch.ones(1, 4)).sum().backward()
    step = raised(optimizer.step)
    load = raised(units().load_local_state_dict, model.local_state_dict())
    if rank == 0:
        print(f"first moments are the second: {alike}; the next step: "
              f"{step[:60]}; a local load: {load}")
    assert "singleton tensors" in step and "_full_param_padded" in load


if __name__ == "__main__":
    play(main)
