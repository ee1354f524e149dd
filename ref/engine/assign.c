/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign.c - values from outside, for a part of a parameter: each rank keeps
 * those of the elements that it owns.
 */
#include "sharded.h"

static int check_assign(const struct fsdp_sharded *s, uint32_t p,
                        uint64_t first, uint64_t n)
{
    FSDP_TRY(ref_at_rest(s, "ref.assign"));
    if (p >= s->model->n_parameters) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.assign",
                        "parameter %u of %u", p, s->model->n_parameters);
    }
    FSDP_TRY(ref_check_owned(s, p, "ref.assign"));
    if (first > s->parameter[p].numel || n > s->parameter[p].numel - first) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.assign",
                        "%llu elements of %s from %llu on, but it has %llu",
                        (unsigned long long)n, s->model->parameter_name[p],
                        (unsigned long long)first,
                        (unsigned long long)s->parameter[p].numel);
    }
    return FSDP_OK;
}

int ref_assign(struct fsdp_sharded *s, uint32_t p, uint64_t first, uint64_t n,
               const void *host)
{
    const struct fsdp_device *d = s->env->device;
    struct ref_part part;
    uint64_t begin;
    uint64_t end;

    FSDP_TRY(check_assign(s, p, first, n));
    ref_reshard_each(s); /* unsharded copies were kept of the old weights */
    if (!ref_part(s, s->parameter[p].original, s->coordinate, &part)) {
        return FSDP_OK;
    }
    begin = first > part.first ? first : part.first;
    end = first + n < part.first + part.n ? first + n : part.first + part.n;
    if (begin >= end) {
        return FSDP_OK;
    }
    s->loaded = true; /* a load that fails must restore these values */
    /* Work in flight may still read the values that are replaced. */
    FSDP_TRY(d->sync(d->self, NULL));
    FSDP_TRY(d->copy(
        d->self, NULL,
        s->unit[s->parameter[p].unit].shard + part.local + (begin - part.first),
        (const float *)host + (begin - first), (end - begin) * sizeof(float)));
    ref_has_values(s, s->parameter[p].unit, part.local + (begin - part.first),
                   end - begin);
    return FSDP_OK;
}
