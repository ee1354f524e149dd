/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - 1. Shard: flatten, concatenate, pad to a multiple of S, cut into
 * S equal shards, keep mine.
 *
 * All that follows from it is in one table: which part of which parameter
 * lies where in this rank's shards.
 */
#include "sharded.h"

#include <stdlib.h>
#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The part of parameter p that lies in this rank's shard, if any. */
static bool overlap(const struct fsdp_sharded *s, uint32_t p,
                    struct ref_part *out)
{
    const struct ref_parameter *x = &s->parameter[p];
    uint64_t chunk = s->unit[x->unit].chunk;
    uint64_t low = s->coordinate * chunk;
    uint64_t first = x->offset > low ? x->offset : low;
    uint64_t last = least(x->offset + x->numel, low + chunk);

    if (first >= last) {
        return false;
    }
    *out = (struct ref_part){.parameter = p,
                             .first = first - x->offset,
                             .n = last - first,
                             .local = first - low};
    return true;
}

int ref_layout(struct fsdp_sharded *s)
{
    const struct fsdp_model *model = s->model;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        struct ref_parameter *x = &s->parameter[p];
        x->unit = s->units->unit_of_module[model->parameter_module[p]];
        x->numel = fsdp_numel(model, p);
        x->offset = s->unit[x->unit].numel;
        s->unit[x->unit].numel += x->numel;
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct ref_unit *x = &s->unit[u];
        x->chunk = x->numel / s->shards + (x->numel % s->shards != 0);
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        s->n_parts += overlap(s, p, &s->part[s->n_parts]);
    }
    return FSDP_OK;
}

/* Initial values come slice by slice: M is never resident. */
int ref_initialise(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct ref_unit *x = &s->unit[u];
        FSDP_TRY(ref_take(s, FSDP_PARAM_SHARD, u, x->chunk, &x->shard));
        FSDP_TRY(ref_fill_zero(s, u, x->shard, x->chunk));
        for (uint32_t i = 0; i < s->n_states; i++) {
            FSDP_TRY(ref_take(s, FSDP_OPTIM, u, x->chunk, &x->state[i]));
            FSDP_TRY(ref_fill_zero(s, u, x->state[i], x->chunk));
        }
    }
    FSDP_TRY(d->wait(d->self, NULL, s->env->compute, 0, "fill->copy"));
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];
        float slice[1024];
        for (uint64_t done = 0; done < part->n;) {
            uint64_t n = least(part->n - done, 1024);
            float *to = s->unit[s->parameter[part->parameter].unit].shard +
                        part->local + done;
            FSDP_TRY(s->model->initial(s->model->context, part->parameter,
                                       part->first + done, n, slice));
            FSDP_TRY(d->copy(d->self, NULL, to, slice, n * sizeof *to));
            done += n;
        }
    }
    return FSDP_OK;
}
