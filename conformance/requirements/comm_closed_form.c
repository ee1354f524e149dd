/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_closed_form.c - the number of collectives, written as a formula and not
 * walked, so that the oracle is checked too.
 */
#include "judge/compare/compare.h"

/* The premise: every module is called once, forward and backward, and units
 * reshard as the option says. */
static bool is_plain(const struct expect *e)
{
    const struct fsdp_model *m = e->model;
    bool plain = e->units->reshard_after_forward == NULL;

    for (uint32_t s = 0; s < m->n_sequences && s <= FSDP_SEQUENCE_EVAL; s++) {
        const uint64_t passes = s == FSDP_SEQUENCE_TRAIN ? 4 : 2;

        plain = plain && m->sequence[s]->n == passes * m->n_modules;
        for (uint32_t i = 0; plain && i < m->n_modules; i++) {
            uint32_t calls = 0;

            for (uint32_t k = 0; k < m->sequence[s]->n; k++) {
                calls += m->sequence[s]->module[k] == i;
            }
            plain = calls == passes;
        }
    }
    return plain;
}

static bool applies(const struct expect *e)
{
    return compare_case_communicates(e) && e->c->scenario != CASE_CANCEL &&
           is_plain(e);
}

static bool check(const struct expect *e,
                  const struct record_sequence *sequence, struct finding at,
                  struct finding *f)
{
    uint64_t units = e->units->n_units;
    uint64_t passes = e->c->microbatches;
    uint64_t synced = 0;
    bool reshards = e->options.reshard_after_forward != 0;
    bool keeps = reshards && e->options.keep_root != 0 &&
                 e->units->unit_of_module[0] != FSDP_NO_UNIT;
    uint64_t want[3];

    for (uint32_t b = 0; b < e->c->microbatches; b++) {
        synced += e->c->sync[b] != 0;
    }
    want[FSDP_ALL_GATHER] =
        passes * (units * (reshards ? 2 : 1) - (keeps ? 1 : 0));
    if (e->c->scenario == CASE_EVAL) {
        want[FSDP_ALL_GATHER] += units;
    }
    want[FSDP_ALL_GATHER] *= e->shards > 1;
    want[FSDP_REDUCE_SCATTER] = units * synced * (e->shards > 1);
    want[FSDP_ALL_REDUCE] = units * synced * (e->replicas > 1);
    for (uint32_t kind = 0; kind < 3; kind++) {
        uint64_t got = compare_count(sequence, kind);

        if (got != want[kind]) {
            return finding_count(f, at, got, want[kind],
                                 compare_kind_words(kind));
        }
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_steps(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    (void)e;
    if (c == NULL) {
        return false;
    }
    c->kind = FSDP_BARRIER;
    return true;
}

REQUIREMENT(comm_closed_form) = {
    .id = "comm.closed-form",
    .text = "With U units and B microbatches a step makes U B (1 + "
            "reshard) all-gathers (one less a microbatch if the root is "
            "kept), and U reduce-scatters and all-reduces for each "
            "synchronised microbatch, where shard and replica degree "
            "exceed 1.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.all-gather-count comm.reduce-scatter-count "
             "comm.all-reduce-count",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
