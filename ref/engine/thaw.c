/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thaw.c - which parameters are trained changes between passes. A parameter
 * that is thawed gets states of +0, one that is frozen loses its states; the
 * states of all others in its unit move to their new places.
 */
#include "sharded.h"

#include <stdlib.h>
#include <string.h>

static int check_thaw(const struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    FSDP_TRY(ref_at_rest(s, "ref.set_requires_grad"));
    if (ref_is_saving(s)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set_requires_grad",
                        "a save is under way: save_wait comes first");
    }
    if (ref_has_gradients(s)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set_requires_grad",
                        "there are gradients: zero_grad comes first");
    }
    if (p >= s->model->n_parameters || on > 1) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.set_requires_grad",
                        "parameter %u of %u is set to %u: 0 or 1", p,
                        s->model->n_parameters, on);
    }
    return ref_check_owned(s, p, "ref.set_requires_grad");
}

static int copy(struct fsdp_sharded *s, uint32_t u, uint64_t n,
                const float *from, float *to)
{
    return ref_convert(s, s->unit[u].step_at, u, n, FSDP_DTYPE_F32, from,
                       FSDP_DTYPE_F32, to);
}

/* Takes storage for the states of the unit as it is laid out now; nothing uses
 * it yet. On failure it takes none. */
static int take_states(struct fsdp_sharded *s, uint32_t u, float *next[2])
{
    int status = FSDP_OK;

    for (uint32_t k = 0; k < s->n_states && status == FSDP_OK; k++) {
        status = ref_take(s, s->unit[u].step_at, FSDP_OPTIM, u,
                          s->unit[u].n_states, FSDP_DTYPE_F32, &next[k]);
    }
    for (uint32_t k = 0; k < s->n_states && status != FSDP_OK; k++) {
        ref_drop(s, s->unit[u].step_at, &next[k]);
    }
    return status;
}

/* Moves one state of the unit to its new place. `old` are the parts as they
 * were laid out before. */
static int move_state(struct fsdp_sharded *s, uint32_t u, uint32_t k,
                      const struct ref_part *old, float *after)
{
    struct ref_unit *x = &s->unit[u];
    float *before = x->state[k];

    x->state[k] = after;
    FSDP_TRY(
        ref_fill_zero(s, x->step_at, u, FSDP_DTYPE_F32, after, x->n_states));
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct ref_part *part = &s->part[i];
        if (s->parameter[part->parameter].unit == u && !part->frozen &&
            !old[i].frozen) {
            FSDP_TRY(copy(s, u, part->n, before + old[i].state,
                          after + part->state));
        }
    }
    ref_drop(s, x->step_at, &before);
    return FSDP_OK;
}

/* Sets the flag of the original and of every other name of it; the parameter
 * has no gradient. */
static void turn(struct fsdp_sharded *s, uint32_t original, bool frozen)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (s->parameter[p].original == original) {
            s->flags[p] &= ~(uint32_t)FSDP_FROZEN;
            s->flags[p] |= frozen ? FSDP_FROZEN : 0;
        }
    }
    ref_layout(s);
    ref_checkpoints_changed(s);
}

/* Takes storage first: if there is none, nothing has changed. */
static int change(struct fsdp_sharded *s, uint32_t original, bool frozen,
                  const struct ref_part *old)
{
    const uint32_t u = s->parameter[original].unit;
    float *next[2] = {NULL, NULL};
    int status;

    turn(s, original, frozen);
    status = take_states(s, u, next);
    if (status != FSDP_OK) {
        turn(s, original, !frozen);
        return status;
    }
    ref_set_own_steps(s, original, 0);
    for (uint32_t k = 0; k < s->n_states && status == FSDP_OK; k++) {
        /* next[k] was taken.
         * NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
        status = move_state(s, u, k, old, next[k]);
    }
    return status;
}

int ref_set_requires_grad(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    struct ref_part *old;
    int status;

    FSDP_TRY(check_thaw(s, p, on));
    if (s->parameter[p].frozen == (on == 0)) {
        return FSDP_OK;
    }
    old = malloc((s->n_parts + (size_t)1) * sizeof(*old));
    if (!old) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.set_requires_grad",
                        "out of memory");
    }
    memcpy(old, s->part, s->n_parts * sizeof(*old));
    status = change(s, s->parameter[p].original, on == 0, old);
    free(old);
    return status;
}
