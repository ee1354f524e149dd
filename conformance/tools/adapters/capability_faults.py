# SPDX-License-Identifier: Apache-2.0
"""capability_faults.py - implementations that are wrong in one thing that they
claim: groups of an optimizer, 16 bits, tied and frozen parameters, scaled
losses, replicas, values that are given, saves. Each fault patches what the
implementation calls; planted.txt says what has to find it."""

import functools
import weakref

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def around(owner, method, make):
    """`make` has the function as it was, and gives the one that is wrong."""
    real = getattr(owner, method)
    setattr(owner, method, functools.wraps(real)(make(real)))


def local(t):
    return t.to_local() if hasattr(t, "to_local") else t


def rounded(t):
    return t.to(torch.bfloat16).to(t.dtype)


# ---- Optimizers: of all implementations that have torch's ------------------


def optimizers(before=None, after=None):
    """What is done to one of torch's around its step."""

    def make(real):
        def step(optimizer, *args, **kwargs):
            if before:
                before(optimizer)
            result = real(optimizer, *args, **kwargs)
            if after:
                after(optimizer)
            return result

        return step

    for kind in (torch.optim.SGD, torch.optim.AdamW):
        around(kind, "step", make)


def one_of_all(*keys):
    """All groups have what the first one has."""

    def before(optimizer):
        for group in optimizer.param_groups[1:]:
            group.update((key, optimizer.param_groups[0][key])
                         for key in keys if key in group)

    return lambda: optimizers(before)


@torch.no_grad()
def round_moments(optimizer):
    for state in optimizer.state.values():
        for key in ("exp_avg_sq", "momentum_buffer"):
            if state.get(key) is not None:
                local(state[key]).copy_(rounded(local(state[key])))


@torch.no_grad()
def round_masters(optimizer):
    for group in optimizer.param_groups:
        for w in group["params"]:
            local(w).copy_(rounded(local(w)))


@torch.no_grad()
def decay_frozen(optimizer):
    for group in optimizer.param_groups:
        for w in group["params"]:
            if not w.requires_grad:
                local(w).mul_(1 - 2.0 ** -10)


def found_alone():
    """Each rank looks for infinities in its own shards alone."""

    def make(_):
        def unscale(scaler, optimizer, inverse, found, allow):
            for group in optimizer.param_groups:
                for w in group["params"]:
                    if w.grad is not None:
                        own = local(w.grad)
                        found.logical_or_((~own.isfinite()).any())
                        own.mul_(inverse.to(own.dtype))
            return {found.device: found}

        return unscale

    around(torch.amp.GradScaler, "_unscale_grads_", make)


OF_ALL = {"one-rate": one_of_all("lr"),
          "one-beta": one_of_all("betas", "momentum"),
          "decay-everywhere": one_of_all("weight_decay"),
          "moments-rounded": lambda: optimizers(after=round_moments),
          "masters-rounded": lambda: optimizers(after=round_masters),
          "frozen-decays": lambda: optimizers(after=decay_frozen),
          "found-alone": found_alone}


# ---- FSDP2 -----------------------------------------------------------------


def tie_lost():
    """Of modules that share a parameter the second has one of its own."""
    import __main__
    from adapter_models import leaves_of

    def make(real):
        def shard(engine, life, plain):
            seen = set()
            for leaf in leaves_of(plain):
                for name in leaf.index:
                    w = getattr(leaf, name)
                    if id(w) in seen:
                        setattr(leaf, name, torch.nn.Parameter(
                            w.detach().clone()))
                    seen.add(id(w))
            return real(engine, life, plain)

        return shard

    around(__main__.Fsdp2, "shard", make)


def recomputed_twice():
    """What is computed again is resharded behind it, and gathered again."""
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group as at

    around(at, "is_bw", lambda real: lambda: False)


def buffers_rounded():
    """Behind each step floating buffers have lost bits."""
    import __main__
    sharded = []

    def make(real):
        def shard(module, *args, **kwargs):
            sharded.append(weakref.ref(module))
            return real(module, *args, **kwargs)

        return shard

    def after(_):
        for b in sharded[-1]().buffers():
            if b.is_floating_point():
                b.copy_(rounded(b))

    around(__main__, "fully_shard", make)
    optimizers(after=after)


def sent_to_some():
    """Values of rank 0 come to all ranks but the last, as far as rows go."""
    import __main__

    def make(real):
        def load(model, state, *, options):
            told = real(model, state, options=options)
            if dist.get_rank() == dist.get_world_size() - 1:
                for w in model.parameters():
                    local(w.data)[:1].zero_()
            return told

        return load

    around(__main__, "set_model_state_dict", make)


def wire_of_parameters():
    """Gradients are reduced in the parameters' dtype, not in reduce_dtype."""
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import (
        FSDPParamGroup,
    )

    def make(real):
        def dtypes(group):
            real(group)
            group._reduce_dtype = group.fsdp_params[0].param_dtype
            for param in group.fsdp_params:
                param.reduce_dtype = param.param_dtype

        return dtypes

    around(FSDPParamGroup, "_init_mp_dtypes", make)


def reduction(change):
    """Of the call that reduces a unit's gradients, its arguments."""
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group as at

    def make(real):
        def call(*args, **kwargs):
            return real(*change(list(args)), **kwargs)

        return call

    around(at, "foreach_reduce", make)


def partial_dropped():
    """What awaits the other replicas has the last microbatch alone."""

    def change(args):
        args[11] = None
        return args

    reduction(change)


def replicas_in_vain():
    """Replicas add up a copy."""

    def make(real):
        def all_reduce(tensor, *args, **kwargs):
            return real(tensor.clone(), *args, **kwargs)

        return all_reduce

    around(dist, "all_reduce", make)


def ignored_anyway():
    """What is to be ignored is sharded all the same."""
    import __main__

    def make(real):
        def shard(*args, ignored_params=None, **kwargs):
            del ignored_params
            return real(*args, **kwargs)

        return shard

    around(__main__, "fully_shard", make)


def tensors_in(state):
    for value in state.values():
        if isinstance(value, dict):
            yield from tensors_in(value)
        elif isinstance(value, torch.Tensor) and value.dim():
            yield local(value)


def staged_over():
    """An asynchronous save has one buffer for all tensors of a shape."""

    def make(real):
        def save(state, **kwargs):
            last = {}
            for t in tensors_in(state):
                last[t.shape] = t
            kept = [(t, t.clone()) for t in tensors_in(state)]
            for t, _ in kept:
                t.copy_(last[t.shape])
            done = real(state, **kwargs)
            done.result()
            for t, was in kept:
                t.copy_(was)
            return done

        return save

    around(dcp, "async_save", make)


def last_row_stays():
    """What is loaded into the last of several rows is its neighbour's."""

    def make(real):
        def load(state, **kwargs):
            real(state, **kwargs)
            for t in tensors_in(state):
                if t.dim() > 1 and len(t) > 1:
                    t[-1].copy_(t[-2])

        return load

    around(dcp, "load", make)


def states_to_one():
    """A full state of an optimizer comes to rank 0 alone."""
    import __main__

    def make(real):
        def load(model, optimizer, state, **kwargs):
            real(model, optimizer, state, **kwargs)
            for of in optimizer.state.values() if dist.get_rank() else ():
                for t in tensors_in(of):
                    t.zero_()

        return load

    around(__main__, "set_optimizer_state_dict", make)


def lenient_forgets():
    """A lenient load sets what it does not find to zero."""

    def zero(state, there, path=""):
        for key, value in state.items():
            if isinstance(value, dict):
                zero(value, there, f"{path}{key}.")
            elif isinstance(value, torch.Tensor) and path + key not in there:
                local(value).zero_()

    def make(real):
        def load(state, *, checkpoint_id, planner=None):
            real(state, checkpoint_id=checkpoint_id, planner=planner)
            if planner:
                reader = dcp.FileSystemReader(checkpoint_id)
                zero(state, reader.read_metadata().state_dict_metadata)

        return load

    around(dcp, "load", make)


def given_to_one():
    """Values that are given come to rank 0 alone."""
    import __main__

    def make(real):
        def load(model, state, *, options):
            kept = [(local(w.data), local(w.data).clone())
                    for w in model.parameters()] if dist.get_rank() else ()
            told = real(model, state, options=options)
            for t, was in kept:
                t.copy_(was)
            return told

        return load

    around(__main__, "set_model_state_dict", make)


def saved_whole():
    """A save of a part has the others, too."""
    import __main__

    around(__main__, "has_part", lambda real: lambda parts, part: True)


def thawed_later():
    """A parameter that is trained again is reduced from the next pass on."""
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam

    def make(real):
        def dtypes(param, *args):
            result = real(param, *args)
            trained = param.sharded_param.requires_grad
            whole = getattr(param, "_unsharded_param", None)
            if whole is not None and trained and not param.was_trained:
                whole.requires_grad_(False)
            param.was_trained = trained
            return result

        return dtypes

    FSDPParam.was_trained = True
    around(FSDPParam, "to_unsharded", make)


OF_FSDP2 = {"tie-lost": tie_lost, "recomputed-twice": recomputed_twice,
            "buffers-rounded": buffers_rounded, "sent-to-some": sent_to_some,
            "wire-of-parameters": wire_of_parameters,
            "partial-dropped": partial_dropped,
            "replicas-in-vain": replicas_in_vain,
            "ignored-anyway": ignored_anyway, "staged-over": staged_over,
            "last-row-stays": last_row_stays, "states-to-one": states_to_one,
            "lenient-forgets": lenient_forgets, "given-to-one": given_to_one,
            "saved-whole": saved_whole, "thawed-later": thawed_later}


# ---- FSDP1 -----------------------------------------------------------------


def found_unsaid():
    """Ranks do not tell each other which of them found an infinity."""
    from torch.distributed.fsdp import sharded_grad_scaler as at

    class Alone:
        def all_reduce(self, *_, **__):
            return self

        def wait(self):
            pass

    at.dist = Alone()


OF_FSDP1 = {"found-unsaid": found_unsaid}
