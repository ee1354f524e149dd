# SPDX-License-Identifier: Apache-2.0
"""flat_faults.py - engines with flat parameters, FSDP1 and FairScale, that are
wrong in what they hold, and in nothing else: their values and their collectives
stay as they are. An engine says where it does what is made wrong."""

import functools

import torch


def nothing(*_):
    pass


def around(owner, method, before=nothing, after=nothing):
    """Both have what the method is called with."""
    real = getattr(owner, method)

    @functools.wraps(real)
    def call(*args, **kwargs):
        before(*args)
        result = real(*args, **kwargs)
        after(*args)
        return result

    setattr(owner, method, call)


def take(flat):
    """What was gathered, out of its owner's hands: the next time it is gathered
    elsewhere."""
    whole = flat._full_param_padded
    flat._full_param_padded = torch.empty_like(whole)
    flat._full_param_padded.untyped_storage().resize_(0)
    return whole


class FlatFaults:
    """`flats` are those that a call is about, of what it has; the first of that
    owns them. `free` and so on: (class or module, function)."""

    def __init__(self, flats, free, end, reduce, shard):
        self.flats = flats
        self.free, self.end, self.reduce, self.shard = free, end, reduce, shard

    def filled(self, *args):
        return [flat for flat in self.flats(*args)
                if hasattr(flat, "_full_param_padded")
                and flat._full_param_padded.untyped_storage().size()]

    def unit_kept(self):
        """Of the first unit what was gathered last stays."""

        def keep(owner, *args):
            if owner.unit == 0 and self.filled(owner, *args):
                owner.kept = [take(flat) for flat in self.filled(owner, *args)]

        around(*self.free, keep)

    def copy_kept(self):
        """What was gathered in a pass is there until its end."""
        copies = []

        def keep(*args):
            copies.extend(take(flat) for flat in self.filled(*args))

        def drop(*_):
            for whole in copies:  # modules have views of it still
                whole.untyped_storage().resize_(0)
            copies.clear()

        around(*self.free, keep)
        around(*self.end, after=drop)

    def gradients_kept(self):
        """Whole gradients stay behind their reduction."""
        kept = []

        def keep(*args):
            kept.extend(flat.grad.data for flat in self.flats(*args)
                        if flat.grad is not None)

        around(*self.reduce, keep)

    def whole_kept(self):
        """The whole parameter that a shard was cut from stays beside it."""

        def keep(owner, *args):
            owner.whole = [flat.data.clone()
                           for flat in self.flats(owner, *args)]

        around(*self.shard, keep)

    def all(self):
        return {"unit-kept": self.unit_kept, "copy-kept": self.copy_kept,
                "gradients-kept": self.gradients_kept,
                "whole-kept": self.whole_kept}
