/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip.c - the norm of the whole gradient, of which a rank has a part. Replicas
 * hold the same parts, and each replica adds up its own. What ranks tell each
 * other about a norm goes out of band, so that the step's collectives stay the
 * same.
 */
#include "norm.h"
#include "ref/engine/sharded.h"

#include <stdlib.h>

static int check_clip(const struct fsdp_sharded *s,
                      const struct fsdp_clip *clip)
{
    FSDP_TRY(ref_at_rest(s, "ref.clip_grad_norm"));
    FSDP_TRY(ref_check_unset(s, "ref.clip_grad_norm"));
    FSDP_TRY(ref_check_reduced(s, "ref.clip_grad_norm"));
    return ref_check_clip(s->env, clip);
}

/* The gradient of a part, or NULL if it is frozen, or its unit took no part in
 * this step. */
static float *gradient(const struct fsdp_sharded *s,
                       const struct ref_part *part)
{
    float *g = s->unit[s->parameter[part->parameter].unit].grad_shard;

    return g && !part->frozen ? g + part->grad : NULL;
}

/* Sums are numbers of this replica's ranks: they lie side by side. */
static int add_up(const struct fsdp_sharded *s, const struct ref_sum *mine,
                  struct ref_sum *out)
{
    const struct fsdp_env *env = s->env;
    uint32_t first = env->rank - s->coordinate;
    struct ref_sum *all = calloc(env->world, sizeof(*all));
    int status =
        all ? env->exchange(env->exchange_self, mine, sizeof(*mine), all)
            : ref_fail(env, FSDP_ERR_NOMEM, "ref.clip_grad_norm",
                       "out of memory");

    *out = (struct ref_sum){0};
    for (uint32_t i = 0; status == FSDP_OK && i < s->shards; i++) {
        ref_sum_merge(out, &all[first + i]);
    }
    free(all);
    return status;
}

/* ---- Loss scaling ------------------------------------------------------- */

/* Whether the gradient of any rank is not finite: ranks of other replicas, and
 * ranks that own nothing, are asked as well. */
int ref_find_inf(struct fsdp_sharded *s, uint32_t *found)
{
    const struct fsdp_env *env = s->env;
    uint32_t *all = calloc(env->world, sizeof(*all));
    uint32_t mine = 0;
    int status = all ? env->device->sync(env->device->self, NULL)
                     : ref_fail(env, FSDP_ERR_NOMEM, "ref", "out of memory");

    for (uint32_t i = 0; status == FSDP_OK && i < s->n_parts; i++) {
        const float *g = gradient(s, &s->part[i]);

        mine |= g && !ref_all_finite(g, s->part[i].n);
    }
    if (status == FSDP_OK) {
        status = env->exchange(env->exchange_self, &mine, sizeof(mine), all);
    }
    *found = 0;
    for (uint32_t r = 0; status == FSDP_OK && r < env->world; r++) {
        *found |= all[r];
    }
    free(all);
    return status;
}

int ref_scale_gradients(struct fsdp_sharded *s, float factor)
{
    for (uint32_t i = 0; i < s->n_parts; i++) {
        float *g = gradient(s, &s->part[i]);

        if (g) {
            FSDP_TRY(ref_run(
                s, s->unit[s->parameter[s->part[i].parameter].unit].step_at,
                ref_scale_op(FSDP_NO_UNIT, g, s->part[i].n, factor)));
        }
    }
    return FSDP_OK;
}

/* ---- Clipping ----------------------------------------------------------- */

/* The gradients as they will be are measured before anything is multiplied, so
 * that a norm that is an error leaves them as they are. */
int ref_clip_grad_norm(struct fsdp_sharded *s, const struct fsdp_clip *given,
                       float *out_norm)
{
    const struct fsdp_device *d = s->env->device;
    const struct fsdp_clip clip = ref_read_clip(given);
    struct ref_sum mine = {0};
    struct ref_sum sum;
    float factor;

    FSDP_TRY(check_clip(s, &clip));
    FSDP_TRY(d->sync(d->self, NULL));
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const float *g = gradient(s, &s->part[i]);
        if (g) {
            ref_sum_add(&mine, clip.p, ref_clip_scale(&clip), g, s->part[i].n);
        }
    }
    FSDP_TRY(add_up(s, &mine, &sum));
    *out_norm = ref_sum_root(&sum, clip.p);
    FSDP_TRY(ref_check_norm(s->env, &clip, *out_norm));
    if (clip.inverse_scale != 0.0f) {
        FSDP_TRY(ref_scale_gradients(s, clip.inverse_scale));
    }
    return ref_clip_factor(&clip, *out_norm, &factor)
               ? ref_scale_gradients(s, factor)
               : FSDP_OK;
}
