/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred.c - a model that begins without values: which elements of this
 * rank's parts have been given none yet.
 */
#include "sharded.h"

#include <stdlib.h>

int ref_defer(struct fsdp_sharded *s)
{
    s->deferred = true;
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        s->unit[u].lacks = calloc(s->unit[u].chunk + 1, sizeof(bool));
        if (!s->unit[u].lacks) {
            return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.shard",
                            "out of memory");
        }
    }
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];
        bool *lacks = s->unit[s->parameter[part->parameter].unit].lacks;

        for (uint64_t k = 0; k < part->n; k++) {
            lacks[part->local + k] = true;
        }
    }
    return FSDP_OK;
}

void ref_has_values(struct fsdp_sharded *s, uint32_t u, uint64_t first,
                    uint64_t n)
{
    for (uint64_t k = 0; s->unit[u].lacks && k < n; k++) {
        s->unit[u].lacks[first + k] = false;
    }
}

/* The first parameter of which this rank lacks an element; or n_parameters. */
static uint32_t first_lacking(const struct fsdp_sharded *s)
{
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];
        const bool *lacks = s->unit[s->parameter[part->parameter].unit].lacks;

        for (uint64_t k = 0; k < part->n; k++) {
            if (lacks[part->local + k]) {
                return part->parameter;
            }
        }
    }
    return s->model->n_parameters;
}

int ref_find_lacking(struct fsdp_sharded *s, const char *where, bool any_rank)
{
    uint32_t all[REF_MAX_RANKS];
    uint32_t first;

    first = first_lacking(s);
    if (any_rank) {
        const uint32_t mine = first;

        FSDP_TRY(
            s->env->exchange(s->env->exchange_self, &mine, sizeof(mine), all));
        for (uint32_t r = 0; r < s->env->world; r++) {
            first = all[r] < first ? all[r] : first;
        }
        s->deferred = first < s->model->n_parameters;
    }
    return first == s->model->n_parameters
               ? FSDP_OK
               : ref_fail(s->env, FSDP_ERR_INVALID, where,
                          "%s has elements without a value: assign or load "
                          "gives them",
                          s->model->parameter_name[first]);
}
