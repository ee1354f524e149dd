/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.c - the few lines around the device that everything else uses: one
 * allocation for each thing that is live, from live to dead.
 */
#include "sharded.h"

#include <stdarg.h>
#include <stdio.h>

int ref_fail(const struct fsdp_env *env, int32_t status, const char *where,
             const char *format, ...)
{
    struct fsdp_error *e = env->error;
    va_list arguments;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)env->rank;
        snprintf(e->where, sizeof(e->where), "%s", where);
        va_start(arguments, format);
        vsnprintf(e->message, sizeof(e->message), format, arguments);
        va_end(arguments);
    }
    return status;
}

int ref_take(struct fsdp_sharded *s, uint32_t kind, uint32_t unit, uint64_t n,
             float **out)
{
    const struct fsdp_device *d = s->env->device;
    const uint64_t bytes = n * sizeof(**out);
    void *p = NULL;
    int status = d->alloc(d->self, bytes, &p);

    if (status != FSDP_OK) {
        return ref_fail(s->env, status, "ref.alloc",
                        "the device has no %llu bytes for unit %u",
                        (unsigned long long)bytes, unit);
    }
    d->live(d->self, s->env->compute, kind, unit, p, bytes);
    *out = p;
    return FSDP_OK;
}

void ref_drop(struct fsdp_sharded *s, float **p)
{
    const struct fsdp_device *d = s->env->device;

    if (*p) {
        d->dead(d->self, s->env->compute, *p);
        (void)d->wait(d->self, NULL, s->env->compute, 0, "dead->free");
        d->free(d->self, *p);
    }
    *p = NULL;
}

int ref_run(struct fsdp_sharded *s, struct fsdp_op op)
{
    op.size = sizeof(op);
    return s->env->device->run(s->env->device->self, s->env->compute, &op);
}

int ref_fill_zero(struct fsdp_sharded *s, uint32_t unit, float *p, uint64_t n)
{
    return ref_run(s, (struct fsdp_op){.kind = FSDP_OP_FILL,
                                       .unit = unit,
                                       .dim = {n},
                                       .f = {0.0f},
                                       .n_out = 1,
                                       .out = {{p, n * sizeof(*p)}}});
}
