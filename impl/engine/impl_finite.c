/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_finite.c - whether a gradient of any rank is infinite or NaN: looked for
 * on the host, a piece at a time, and told to all ranks out of band. Padding
 * is looked at as well: it is +0.
 */
#include "impl_calls.h"

#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE = 1 << 12 /* elements */
};

/* The exponent of such a number is all ones. Without branches, so that it
 * vectorises. */
static bool all_finite(const float *x, uint64_t n)
{
    const uint32_t exponent = 0x7f800000u;
    uint32_t bad = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], sizeof(bits));
        bad |= (bits & exponent) == exponent;
    }
    return bad == 0;
}

static int look_at_gradient(const struct fsdp_sharded *s,
                            const struct impl_unit *x, uint32_t *found)
{
    const struct fsdp_device *d = s->env->device;
    float host[AT_ONCE];

    for (uint64_t at = 0; at < x->grad_chunk && !*found; at += AT_ONCE) {
        uint64_t n =
            x->grad_chunk - at < AT_ONCE ? x->grad_chunk - at : AT_ONCE;

        FSDP_TRY(d->copy(d->self, NULL, host, x->grad_shard + at,
                         n * sizeof(*host)));
        *found = !all_finite(host, n);
    }
    return FSDP_OK;
}

static int tell_found(const struct fsdp_sharded *s, uint32_t *found)
{
    const struct fsdp_env *env = s->env;
    uint32_t *all = calloc(env->world, sizeof(*all));
    uint32_t mine = *found;
    int status =
        all ? env->exchange(env->exchange_self, &mine, sizeof(mine), all)
            : impl_out_of_memory(env);

    for (uint32_t r = 0; status == FSDP_OK && r < env->world; r++) {
        *found |= all[r];
    }
    free(all);
    return status;
}

int impl_find_inf(struct fsdp_sharded *s, uint32_t *found)
{
    *found = 0;
    FSDP_TRY(s->env->device->sync(s->env->device->self, s->env->compute));
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        if (s->unit[u].grad_shard) {
            FSDP_TRY(look_at_gradient(s, &s->unit[u], found));
        }
    }
    return tell_found(s, found);
}
