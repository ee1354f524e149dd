# SPDX-License-Identifier: Apache-2.0
"""adapter_slots.py - what scripts save and load: in parts, too, and leniently,
where names differ."""

import os

import torch.distributed as dist

from adapter_checkpoint import lose_moments, saved_names

MISMATCH = -6  # FSDP_ERR_MISMATCH


class Slot:
    """Of a save, the action `at`: a slot may be saved again, in another form.
    """

    def __init__(self, life, exchange, a, at):
        self.life, self.form = life, life.engine.form(a.form)
        self.folder = os.path.join(exchange, f"slot-{a.slot}-{at}")
        self.parts = a.parts
        self.saved = saved_names(life, a.parts)
        # Before its first step torch's optimizer has no states to save.
        self.made = self.saved if life.optimizer.state else \
            saved_names(life, ("parameters",)) & self.saved

    def save(self, scaler):
        self.scale = scaler.state_dict() if scaler else None
        parts = (self.parts,) if self.parts else ()
        self.end = self.form.begin(self.life, self.folder, *parts)

    def wait(self):
        self.end()
        dist.barrier()

    def load(self, scaler, lenient=False):
        if self.parts:
            self.load_parts(lenient)
        elif lenient:
            self.load_leniently()
        else:
            self.form.load(self.life, self.folder)
        if self.life.fault == "moments-lost":
            lose_moments(self.life)
        if scaler:
            scaler.load_state_dict(self.scale)

    def load_parts(self, lenient):
        """What was left out stays. What there is, another reader says."""
        load = self.form.load_leniently if lenient else self.form.load
        load(self.life, self.folder, self.parts)
        there = self.form.names_in(self.life, self.folder) \
            if self.form.has_names else self.saved
        self.answer("parts-missing", self.made <= there)
        self.answer("parts-unexpected", there <= self.saved)

    def load_leniently(self):
        """Whether what was told of names is what differs."""
        missing, unexpected = self.form.load_leniently(self.life, self.folder)
        now = saved_names(self.life)
        if self.form.has_names:
            self.answer("lenient-missing", missing == now - self.saved)
            self.answer("lenient-unexpected", unexpected == self.saved - now)
        else:
            self.answer("lenient-missing", not missing)
            self.answer("lenient-unexpected", not unexpected)

    def answer(self, name, holds):
        self.life.record.answers.append([name, 0 if holds else MISMATCH])
