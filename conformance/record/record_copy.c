/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_copy.c - a deep copy of a record. A requirement's spoil damages the
 * copy, so every array in it is an allocation of its own, as in a record that
 * was read; values that are spilled are mapped once more.
 */
#include "record/record_copy.h"

#include "record/record_spill.h"

#include <stdlib.h>
#include <string.h>

/* NULL for nothing to copy, which is no failure: *status tells. */
static void *copy_of(const void *from, size_t n, size_t size, int *status)
{
    void *to = NULL;

    if (!from || *status != FSDP_OK) {
        return NULL;
    }
    to = calloc(n > 0 ? n : 1, size);
    if (!to) {
        *status = FSDP_ERR_NOMEM;
        return NULL;
    }
    memcpy(to, from, n * size);
    return to;
}

static void copy_tensors(const struct record_rank *from, struct record_rank *to,
                         int *status)
{
    uint32_t n = from->n_tensors;

    to->tensor = copy_of(from->tensor, n, sizeof(*to->tensor), status);
    if (!to->tensor) {
        return;
    }
    to->n_tensors = n;
    for (uint32_t i = 0; i < n; i++) {
        to->tensor[i].data = NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        float *const data = from->tensor[i].data;

        to->tensor[i].data =
            to->spill && record_spill_has(from->spill, data)
                ? record_spill_same(from->spill, to->spill, data)
                : copy_of(data, (size_t)from->tensor[i].n, sizeof(*data),
                          status);
    }
}

static void copy_sequences(const struct record_rank *from,
                           struct record_rank *to, int *status)
{
    uint32_t n = from->n_sequences;

    to->sequence = copy_of(from->sequence, n, sizeof(*to->sequence), status);
    if (!to->sequence) {
        return;
    }
    to->n_sequences = n;
    for (uint32_t i = 0; i < n; i++) {
        to->sequence[i].c = NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        to->sequence[i].c = copy_of(from->sequence[i].c, from->sequence[i].n,
                                    sizeof(*to->sequence[i].c), status);
    }
}

static int copy_rank(const struct record_rank *from, struct record_spill *spill,
                     struct record_rank *to)
{
    int status = FSDP_OK;

    *to = *from;
    to->spill = spill;
    to->n_sequences = to->n_tensors = 0;
    to->sequence = NULL;
    to->tensor = NULL;
    to->loss = copy_of(from->loss, from->n_losses, sizeof(*to->loss), &status);
    to->other_loss = copy_of(from->other_loss, from->n_other_losses,
                             sizeof(*to->other_loss), &status);
    to->step_sequence = copy_of(from->step_sequence, from->n_steps,
                                sizeof(*to->step_sequence), &status);
    to->memory.after_step = copy_of(from->memory.after_step, from->n_steps,
                                    sizeof(*to->memory.after_step), &status);
    to->memory.allocations = copy_of(from->memory.allocations, from->n_steps,
                                     sizeof(*to->memory.allocations), &status);
    to->memory.launches = copy_of(from->memory.launches, from->n_steps,
                                  sizeof(*to->memory.launches), &status);
    if (from->memory.hosted) {
        to->memory.hosted = copy_of(from->memory.hosted, from->n_steps,
                                    sizeof(*to->memory.hosted), &status);
    }
    to->memory.moment = copy_of(from->memory.moment, from->memory.n_moments,
                                sizeof(*to->memory.moment), &status);
    to->answer =
        copy_of(from->answer, from->n_answers, sizeof(*to->answer), &status);
    to->edge = copy_of(from->edge, from->n_edges, sizeof(*to->edge), &status);
    to->pass = copy_of(from->pass, from->n_passes, sizeof(*to->pass), &status);
    to->flights.flight = copy_of(from->flights.flight, from->flights.n,
                                 sizeof(*to->flights.flight), &status);
    copy_sequences(from, to, &status);
    copy_tensors(from, to, &status);
    return status;
}

int record_copy(const struct record *from, struct record *out)
{
    int status = FSDP_OK;

    *out = *from;
    out->spill = from->spill ? record_spill_again(from->spill) : NULL;
    out->claim =
        copy_of(from->claim, from->n_claims, sizeof(*out->claim), &status);
    out->rank = NULL;
    out->n_ranks = 0;
    if (status == FSDP_OK) {
        out->rank = calloc((size_t)from->n_ranks + 1, sizeof(*out->rank));
        status = out->rank ? FSDP_OK : FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < from->n_ranks && status == FSDP_OK; i++) {
        out->n_ranks = i + 1;
        status = copy_rank(&from->rank[i], out->spill, &out->rank[i]);
    }
    if (status != FSDP_OK) {
        record_release(out);
    }
    return status;
}
