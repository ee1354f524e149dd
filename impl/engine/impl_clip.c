/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_clip.c - gradients are measured on the host, a piece at a time, and
 * scaled where they lie. What ranks tell each other for this goes out of band.
 */
#include "impl_calls.h"
#include "impl_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE = 1 << 14 /* elements */
};

struct scratch {
    struct impl_norm_bins bins;
    float host[AT_ONCE];
};

static int check_clip(const struct fsdp_sharded *s,
                      const struct fsdp_clip *clip)
{
    FSDP_TRY(impl_at_rest(s, "impl.clip_grad_norm"));
    FSDP_TRY(impl_check_unset(s, "impl.clip_grad_norm"));
    if (!(clip->max_norm > 0.0f) || !(clip->p == 1.0f || clip->p == 2.0f ||
                                      (isinf(clip->p) && clip->p > 0.0f))) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.clip_grad_norm",
                         "max_norm %g, p %g: the one is over 0, the other 1, "
                         "2 or infinity",
                         (double)clip->max_norm, (double)clip->p);
    }
    FSDP_TRY(impl_check_scale(s, "impl.clip_grad_norm", clip->inverse_scale));
    return impl_check_reduced(s, "impl.clip_grad_norm");
}

/* The gradient of this rank's shards as it will be without the loss's scale,
 * padding left out. */
static int measure(const struct fsdp_sharded *s, const struct fsdp_clip *clip,
                   struct scratch *scratch, struct impl_norm *out)
{
    const struct fsdp_device *d = s->env->device;
    const float inverse =
        clip->inverse_scale != 0.0f ? clip->inverse_scale : 1.0f;

    for (uint32_t i = 0; i < s->n_spans; i++) {
        const struct impl_span *span = &s->span[i];
        const float *g = s->unit[span->unit].grad_shard;

        for (uint64_t at = 0; g && at < span->n; at += AT_ONCE) {
            uint64_t n = span->n - at < AT_ONCE ? span->n - at : AT_ONCE;
            FSDP_TRY(d->copy(d->self, NULL, scratch->host, g + span->grad + at,
                             n * sizeof(*g)));
            for (uint64_t k = 0; k < n; k++) {
                scratch->host[k] *= inverse;
            }
            impl_norm_add(out, &scratch->bins, clip->p, scratch->host, n);
        }
    }
    impl_norm_settle(out, &scratch->bins, clip->p);
    return FSDP_OK;
}

/* Adds up the sums of this replica's ranks, which lie side by side. */
static int add_up(const struct fsdp_sharded *s, const struct impl_norm *mine,
                  struct impl_norm *out)
{
    const struct fsdp_env *env = s->env;
    const uint32_t first = env->rank - s->coordinate;
    struct impl_norm *all = calloc(env->world, sizeof(*all));
    int status =
        all ? env->exchange(env->exchange_self, mine, sizeof(*mine), all)
            : impl_out_of_memory(env);

    for (uint32_t k = 0; status == FSDP_OK && k < s->shards; k++) {
        impl_norm_merge(out, &all[first + k]);
    }
    free(all);
    return status;
}

static int scale(const struct fsdp_sharded *s, float factor)
{
    for (uint32_t i = 0; i < s->n_spans; i++) {
        const struct impl_span *span = &s->span[i];
        float *g = s->unit[span->unit].grad_shard;
        uint64_t bytes = span->n * sizeof(*g);

        if (g) {
            g += span->grad;
            FSDP_TRY(impl_run_at(s, s->unit[span->unit].step_on_host,
                                 s->env->compute,
                                 (struct fsdp_op){.kind = FSDP_OP_SCALE,
                                                  .unit = span->unit,
                                                  .dim = {span->n},
                                                  .f = {factor},
                                                  .n_in = 1,
                                                  .in = {{g, bytes}},
                                                  .n_out = 1,
                                                  .out = {{g, bytes}}}));
        }
    }
    return FSDP_OK;
}

/* The fields that the caller's version of the struct has; the rest is 0. */
static struct fsdp_clip known(const struct fsdp_clip *given)
{
    struct fsdp_clip clip;

    memset(&clip, 0, sizeof(clip));
    memcpy(&clip, given,
           given->size < sizeof(clip) ? given->size : sizeof(clip));
    return clip;
}

static int measure_all(struct fsdp_sharded *s, const struct fsdp_clip *clip,
                       float *out_norm)
{
    struct impl_norm mine = {.largest = 0.0f};
    struct impl_norm sum = {.largest = 0.0f};
    struct scratch *scratch;
    int status;

    scratch = calloc(1, sizeof(*scratch));
    if (!scratch) {
        return impl_out_of_memory(s->env);
    }
    status = s->env->device->sync(s->env->device->self, s->env->compute);
    if (status == FSDP_OK) {
        status = measure(s, clip, scratch, &mine);
    }
    free(scratch);
    FSDP_TRY(status);
    FSDP_TRY(add_up(s, &mine, &sum));
    *out_norm = impl_norm_root(&sum, clip->p);
    return FSDP_OK;
}

/* A norm that is an error is found before anything is multiplied. */
int impl_clip_grad_norm(struct fsdp_sharded *s, const struct fsdp_clip *given,
                        float *out_norm)
{
    const struct fsdp_clip clip = known(given);

    FSDP_TRY(check_clip(s, &clip));
    FSDP_TRY(impl_retire_all(s));
    FSDP_TRY(impl_wait(s, s->env->compute, s->last, 0, "reduce->optimizer"));
    FSDP_TRY(measure_all(s, &clip, out_norm));
    if (clip.error_if_nonfinite && !isfinite(*out_norm)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.clip_grad_norm",
                         "the norm is not finite");
    }
    if (clip.inverse_scale != 0.0f) {
        FSDP_TRY(impl_unscale(s, clip.inverse_scale));
        if (!isfinite(*out_norm)) {
            return FSDP_OK; /* the step will skip it */
        }
    }
    return *out_norm > clip.max_norm
               ? scale(s, clip.max_norm / (*out_norm + 1e-6f))
               : FSDP_OK;
}
