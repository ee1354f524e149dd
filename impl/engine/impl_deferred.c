/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_deferred.c - models without initial values: a bit for each element of
 * this rank's shards, which is set until the element is given a value.
 */
#include "impl_calls.h"

#include <stdlib.h>

enum {
    BITS = 64
};

int impl_defer(struct fsdp_sharded *s)
{
    if (s->model->initial || s->rank0) {
        return FSDP_OK;
    }
    s->deferred = true;
    s->lacking = calloc(s->env->world, sizeof(*s->lacking));
    if (!s->lacking) {
        return impl_out_of_memory(s->env);
    }
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        s->unit[u].lacks =
            calloc(s->unit[u].chunk / BITS + 1, sizeof(uint64_t));
        if (!s->unit[u].lacks) {
            return impl_out_of_memory(s->env);
        }
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];

        for (uint64_t i = x->local; i < x->local + x->n; i++) {
            s->unit[x->unit].lacks[i / BITS] |= 1ull << i % BITS;
        }
    }
    return FSDP_OK;
}

void impl_has_values(struct fsdp_sharded *s, uint32_t u, uint64_t first,
                     uint64_t n)
{
    for (uint64_t i = first; s->unit[u].lacks && i < first + n; i++) {
        s->unit[u].lacks[i / BITS] &= ~(1ull << i % BITS);
    }
}

/* Whether this rank lacks an element of p. */
static bool lacks(const struct fsdp_sharded *s, uint32_t p)
{
    const struct impl_parameter *x = &s->parameter[p];

    for (uint64_t i = x->local; i < x->local + x->n; i++) {
        if ((s->unit[x->unit].lacks[i / BITS] >> i % BITS & 1) != 0) {
            return true;
        }
    }
    return false;
}

static int least_of_all(const struct fsdp_sharded *s, uint32_t *first)
{
    const uint32_t mine = *first;

    FSDP_TRY(s->env->exchange(s->env->exchange_self, &mine, sizeof(mine),
                              s->lacking));
    for (uint32_t r = 0; r < s->env->world; r++) {
        *first = s->lacking[r] < *first ? s->lacking[r] : *first;
    }
    return FSDP_OK;
}

int impl_check_filled(struct fsdp_sharded *s, const char *where, bool any_rank)
{
    const uint32_t n = s->model->n_parameters;
    uint32_t first = 0;

    if (!s->deferred) {
        return FSDP_OK;
    }
    while (first < n && !lacks(s, first)) {
        first++;
    }
    if (any_rank) {
        FSDP_TRY(least_of_all(s, &first));
        s->deferred = first < n;
    }
    return first == n ? FSDP_OK
                      : impl_fail(s->env, FSDP_ERR_INVALID, where,
                                  "not all of %s has a value: neither assigned "
                                  "nor loaded",
                                  s->model->parameter_name[first]);
}
