/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_assign.c - values from host memory: those of elements in this rank's
 * shard are copied there, at rest, when no stream uses it.
 */
#include "impl_calls.h"

static int check_assign(const struct fsdp_sharded *s, uint32_t p,
                        uint64_t first, uint64_t n)
{
    FSDP_TRY(impl_at_rest(s, "impl.assign"));
    if (p >= s->model->n_parameters) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.assign",
                         "parameter %u of %u", p, s->model->n_parameters);
    }
    FSDP_TRY(impl_check_owned(s, p, "impl.assign"));
    return first <= s->parameter[p].numel && n <= s->parameter[p].numel - first
               ? FSDP_OK
               : impl_fail(s->env, FSDP_ERR_INVALID, "impl.assign",
                           "%s has %llu elements: none are %llu from %llu on",
                           s->model->parameter_name[p],
                           (unsigned long long)s->parameter[p].numel,
                           (unsigned long long)n, (unsigned long long)first);
}

int impl_assign(struct fsdp_sharded *s, uint32_t p, uint64_t first, uint64_t n,
                const void *host)
{
    const struct fsdp_device *d = s->env->device;
    const struct impl_parameter *x;
    uint64_t begin;
    uint64_t end;

    FSDP_TRY(check_assign(s, p, first, n));
    FSDP_TRY(impl_reshard_kept(s));
    x = &s->parameter[s->parameter[p].original];
    begin = first > x->first ? first : x->first;
    end = first + n < x->first + x->n ? first + n : x->first + x->n;
    if (begin >= end) {
        return FSDP_OK;
    }
    s->loaded = true; /* a load that fails must restore these values */
    FSDP_TRY(d->sync(d->self, NULL));
    FSDP_TRY(d->copy(
        d->self, NULL, s->unit[x->unit].shard + x->local + (begin - x->first),
        (const float *)host + (begin - first), (end - begin) * sizeof(float)));
    impl_has_values(s, x->unit, x->local + (begin - x->first), end - begin);
    return FSDP_OK;
}
