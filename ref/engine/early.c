/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early.c - a step that is made in a pass: each unit is stepped as soon as it
 * has been reduced, so that the gradients of all units never exist at once.
 */
#include "sharded.h"

#include <stdlib.h>
#include <string.h>

/* ---- What was given ----------------------------------------------------- */

int ref_keep_step(const struct fsdp_env *env, const struct fsdp_step *step,
                  struct ref_early *to)
{
    const size_t n = step->n_groups ? step->n_groups : 1;
    float *numbers = calloc(2 * n, sizeof(*numbers));

    if (!numbers) {
        return ref_fail(env, FSDP_ERR_NOMEM, "set_step", "out of memory");
    }
    memcpy(numbers, step->lr, n * sizeof(*numbers));
    if (step->weight_decay) {
        memcpy(numbers + n, step->weight_decay, n * sizeof(*numbers));
    }
    free(to->numbers);
    *to = (struct ref_early){.numbers = numbers, .set = true};
    to->how = (struct fsdp_step){.size = sizeof(to->how),
                                 .n_groups = step->n_groups,
                                 .lr = numbers,
                                 .weight_decay =
                                     step->weight_decay ? numbers + n : NULL};
    return FSDP_OK;
}

/* ---- What is refused ---------------------------------------------------- */

/* How many backward windows unit u has in a sequence. */
static uint32_t backwards(const struct fsdp_sharded *s, uint32_t sequence,
                          uint32_t u)
{
    const uint32_t n = s->units->n_units;
    const uint32_t end = REF_BACKWARD | REF_RESHARD;
    uint32_t windows = 0;

    for (uint32_t i = 0; i < s->model->sequence[sequence]->n; i++) {
        const uint8_t action = s->action[sequence][(size_t)i * n + u];
        windows += (action & end) == end;
    }
    return windows;
}

/* With two backward windows, the second would see weights that were stepped
 * after the first. */
static int check_windows(const struct fsdp_sharded *s)
{
    for (uint32_t i = 0; i < s->model->n_sequences; i++) {
        for (uint32_t u = 0; u < s->units->n_units; u++) {
            if (backwards(s, i, u) > 1) {
                return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set_step",
                                "unit %u has %u backward windows in sequence "
                                "%u: a step between them would change weights "
                                "under the model",
                                u, backwards(s, i, u), i);
            }
        }
    }
    return FSDP_OK;
}

int ref_set_step(struct fsdp_sharded *s, const struct fsdp_step *step)
{
    FSDP_TRY(ref_at_rest(s, "ref.set_step"));
    FSDP_TRY(ref_check_groups(s, step, "ref.set_step"));
    if (step->inverse_scale != 0.0f) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set_step",
                        "inverse_scale %g: whether all gradients are finite "
                        "is not known when the first unit is stepped",
                        (double)step->inverse_scale);
    }
    FSDP_TRY(check_windows(s));
    return ref_keep_step(s->env, step, &s->early);
}

/* ---- In the pass -------------------------------------------------------- */

bool ref_steps_early(const struct fsdp_sharded *s, uint32_t u)
{
    const struct ref_unit *x = &s->unit[u];

    return x->trains && x->knob.sync &&
           (s->replicas == 1 || x->knob.all_reduce);
}

int ref_step_early(struct fsdp_sharded *s, uint32_t u)
{
    FSDP_TRY(ref_step_unit(s, u, &s->early.how, !s->early.counted));
    s->early.counted = true;
    ref_drop(s, s->unit[u].step_at, &s->unit[u].grad_shard);
    return FSDP_OK;
}
