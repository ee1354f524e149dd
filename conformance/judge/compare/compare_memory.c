/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_memory.c - peaks, what is live at rest, and memory traded for
 * all-gathers.
 */
#include "judge/compare/compare_memory.h"

#include <stdio.h>

const char *compare_peak_stage(uint32_t peak)
{
    static const char *const stages[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = "unsharded parameter",
        [COMPARE_PEAK_PARAMETERS] = "parameters",
        [COMPARE_PEAK_GRADIENTS] = "unsharded gradient",
        [COMPARE_PEAK_TOTAL] = "memory"};

    return stages[peak];
}

uint64_t compare_peak_recorded(const struct record_memory *m, uint32_t peak)
{
    const uint64_t bytes[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = m->peak[FSDP_PARAM_FULL],
        [COMPARE_PEAK_PARAMETERS] = m->peak_parameters,
        [COMPARE_PEAK_GRADIENTS] = m->peak[FSDP_GRAD_FULL],
        [COMPARE_PEAK_TOTAL] = m->peak_engine};

    return bytes[peak];
}

uint64_t compare_peak_expected(const struct expect *e, uint32_t peak)
{
    const uint64_t bytes[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = e->peak_full,
        [COMPARE_PEAK_PARAMETERS] = e->peak_parameters,
        [COMPARE_PEAK_GRADIENTS] = e->peak_grads,
        [COMPARE_PEAK_TOTAL] = e->peak_engine};

    return bytes[peak];
}

bool compare_peak(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t peak, struct finding *f)
{
    static const char *const words[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = "unsharded parameters at once",
        [COMPARE_PEAK_PARAMETERS] = "parameters at once, sharded and not",
        [COMPARE_PEAK_GRADIENTS] = "unsharded gradients at once",
        [COMPARE_PEAK_TOTAL] = "live at once, all kinds but activations"};
    uint64_t got = compare_peak_recorded(&rank->memory, peak);
    uint64_t want = compare_peak_expected(e, peak);

    want -= peak == COMPARE_PEAK_TOTAL ? expect_states_less(e, k) : 0;
    return got == want ||
           finding_peak(f, finding_at(compare_peak_stage(peak), -1, -1, k), got,
                        want, words[peak], &rank->memory);
}

bool compare_spoil_peak(const struct expect *e, struct record *r, uint32_t peak)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);
    uint64_t *bytes[COMPARE_N_PEAKS];

    if (!rank) {
        return false;
    }
    bytes[COMPARE_PEAK_UNSHARDED] = &rank->memory.peak[FSDP_PARAM_FULL];
    bytes[COMPARE_PEAK_PARAMETERS] = &rank->memory.peak_parameters;
    bytes[COMPARE_PEAK_GRADIENTS] = &rank->memory.peak[FSDP_GRAD_FULL];
    bytes[COMPARE_PEAK_TOTAL] = &rank->memory.peak_engine;
    *bytes[peak] = compare_peak_expected(e, peak) + 1;
    return true;
}

const char *compare_kind_of_bytes(uint32_t kind)
{
    static const char *const kinds[RECORD_N_KINDS] = {
        "parameter shard",
        "unsharded parameter",
        "gradient shard",
        "unsharded gradient",
        "optimizer state",
        "staging",
        "activation",
        "buffer",
        "parameter shard on the host",
        "unsharded parameter on the host",
        "gradient shard on the host",
        "unsharded gradient on the host",
        "optimizer state on the host",
        "staging on the host",
        "activation on the host",
        "buffer on the host"};

    return kinds[kind];
}

bool compare_rest(const struct expect *e, const struct record_rest *got,
                  struct finding at, struct finding *f)
{
    for (uint32_t kind = 0; kind < FSDP_N_KINDS; kind++) {
        const bool later = e->late_states && kind == FSDP_OPTIM && at.step < 0;
        const uint64_t want =
            later ? 0
                  : expect_rest_of(e, (uint32_t)at.rank, kind, e->rest.live);

        if (kind != FSDP_ACTIVATION && kind != FSDP_BUFFER &&
            got->live[kind] != want) {
            at.stage = compare_kind_of_bytes(kind);
            return finding_bytes(f, at, got->live[kind], want, "live at rest");
        }
    }
    return true;
}

/* All-gathers of a rank's first step. */
static uint64_t gathers_of(const struct record_rank *rank)
{
    const struct record_sequence *s = compare_step_sequence(rank, 0);

    return !s ? 0 : compare_count(s, FSDP_ALL_GATHER);
}

bool compare_trade_off(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, void (*change)(struct run_case *c),
                       const char *other, struct finding *f)
{
    const struct record *companion = compare_companion(e, change);
    const struct record_rank *there =
        !companion ? NULL : compare_rank(companion, k);
    uint64_t got = rank->memory.peak[FSDP_PARAM_FULL];
    char note[sizeof(f->note)];

    if (!there) {
        return finding_missing(f, finding_at("memory", -1, -1, k),
                               "there is no record to compare with");
    }
    if (got >= there->memory.peak[FSDP_PARAM_FULL]) {
        snprintf(note, sizeof(note), "at once; not less than %s", other);
        return finding_bytes(f, finding_at("unsharded parameter", -1, -1, k),
                             got, there->memory.peak[FSDP_PARAM_FULL], note);
    }
    if (gathers_of(rank) <= gathers_of(there)) {
        snprintf(note, sizeof(note), "all-gathers; not more than %s", other);
        return finding_count(f, finding_at("all-gather", 0, -1, k),
                             gathers_of(rank), gathers_of(there), note);
    }
    return true;
}

bool compare_spoil_trade_off(const struct expect *e, struct record *r,
                             void (*change)(struct run_case *c))
{
    const struct record *companion = compare_companion(e, change);
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    if (!rank || !companion || !compare_rank(companion, 0)) {
        return false;
    }
    rank->memory.peak[FSDP_PARAM_FULL] =
        companion->rank[0].memory.peak[FSDP_PARAM_FULL];
    return true;
}
