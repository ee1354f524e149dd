/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_thaw.c - parameters are frozen and thawed between passes. The states of
 * their unit get storage of their own: a parameter that trains on keeps what it
 * had, and one that is thawed begins with +0. All else that depends on this
 * (sizes, plans, places of gradients) is made anew.
 */
#include "impl_calls.h"

#include <stdlib.h>
#include <string.h>

/* What is remembered of each parameter, as it was before. */
struct before {
    bool frozen;
    uint64_t state_local;
};

static int check_thaw(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    uint32_t u;

    FSDP_TRY(impl_at_rest(s, "impl.set_requires_grad"));
    if (impl_is_saving(s)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.set_requires_grad",
                         "a save is under way: save_wait comes first");
    }
    if (impl_has_gradients(s, &u)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.set_requires_grad",
                         "unit %u has gradients: zero_grad comes first", u);
    }
    return p < s->model->n_parameters && on <= 1
               ? impl_check_owned(s, p, "impl.set_requires_grad")
               : impl_fail(s->env, FSDP_ERR_INVALID, "impl.set_requires_grad",
                           "parameter %u of %u is set to %u: 0 or 1", p,
                           s->model->n_parameters, on);
}

/* Copies one state to `to`: from its old places to those of the new layout. */
static int move(struct fsdp_sharded *s, uint32_t u, const struct before *before,
                const float *from, float *to)
{
    const struct impl_index *of = &s->of_unit;

    const struct impl_value all = {FSDP_OPTIM, u, FSDP_DTYPE_F32,
                                   s->unit[u].n_state, s->unit[u].step_on_host};

    FSDP_TRY(impl_fill_zero_at(s, s->env->compute, &all, to));
    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        const uint32_t p = of->parameter[i];
        const struct impl_parameter *x = &s->parameter[p];

        if (x->n > 0 && !x->frozen && !before[p].frozen) {
            FSDP_TRY(impl_cast(
                s, s->env->compute,
                &(struct impl_cast){.unit = u,
                                    .from_dtype = FSDP_DTYPE_F32,
                                    .to_dtype = FSDP_DTYPE_F32,
                                    .from = from + before[p].state_local,
                                    .to = to + x->state_local,
                                    .n = x->n,
                                    .on_host = all.on_host}));
        }
    }
    return FSDP_OK;
}

/* Takes room for all states of the unit as it is laid out now; nothing uses it
 * yet. */
static int take_room(struct fsdp_sharded *s, uint32_t u, void **out)
{
    const struct fsdp_device *d = impl_place_of(s, s->unit[u].step_on_host);
    const uint64_t room =
        s->n_states * impl_room(s->unit[u].n_state) * sizeof(float);
    int status = d->alloc(d->self, room, out);

    return status == FSDP_OK
               ? FSDP_OK
               : impl_fail(s->env, status, "impl.alloc",
                           "the %s has no %llu bytes for moments",
                           s->unit[u].step_on_host ? "host" : "device",
                           (unsigned long long)room);
}

static int move_states(struct fsdp_sharded *s, uint32_t u,
                       const struct before *before, uint64_t n_before, void *p)
{
    struct impl_unit *x = &s->unit[u];
    const struct fsdp_device *d = impl_place_of(s, x->step_on_host);
    const struct impl_value state = {FSDP_OPTIM, u, FSDP_DTYPE_F32, x->n_state,
                                     x->step_on_host};
    int status = FSDP_OK;
    float *next = p;

    for (uint32_t i = 0; i < s->n_states && status == FSDP_OK; i++) {
        float *old = x->state[i];

        x->state[i] = next;
        next += impl_room(x->n_state);
        impl_live(s, s->env->compute, &state, x->state[i]);
        status = move(s, u, before, old, x->state[i]);
        impl_over_at(s, x->step_on_host, s->env->compute, old, n_before);
    }
    if (status == FSDP_OK) {
        status = s->env->device->sync(s->env->device->self, s->env->compute);
    }
    d->free(d->self, x->own_states);
    x->own_states = p;
    return status;
}

/* Sets the flags and makes the layout anew, but moves no states. */
static int turn(struct fsdp_sharded *s, uint32_t original, bool frozen)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (s->parameter[p].original == original) {
            s->flags[p] &= ~(uint32_t)FSDP_FROZEN;
            s->flags[p] |= frozen ? FSDP_FROZEN : 0;
        }
    }
    s->turned = true; /* the next step is one of another kind */
    s->planned = false;
    return impl_lay_out_again(s);
}

/* Takes storage first: if there is none, nothing has changed. */
static int change(struct fsdp_sharded *s, uint32_t original, bool frozen,
                  const struct before *before)
{
    struct impl_parameter *x = &s->parameter[original];
    const uint32_t u = x->unit;
    const uint64_t n_before = s->unit[u].n_state;
    const uint64_t begun = x->begun;
    struct impl_plan *plan = NULL;
    void *room = NULL;
    int status;

    x->begun = s->unit[u].steps;
    status = turn(s, original, frozen);
    if (status == FSDP_OK) {
        status = impl_make_plans(s, &plan);
    }
    if (status == FSDP_OK && s->n_states > 0) {
        status = take_room(s, u, &room);
    }
    if (status != FSDP_OK) {
        impl_release_plans(s, plan);
        x->begun = begun;
        (void)turn(s, original, !frozen);
        return status;
    }
    impl_take_plans(s, plan);
    impl_slots_resize(s);
    impl_checkpoints_changed(s);
    return s->n_states > 0 ? move_states(s, u, before, n_before, room)
                           : FSDP_OK;
}

int impl_set_requires_grad(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    const size_t n = s->model->n_parameters;
    struct before *before;
    int status;

    FSDP_TRY(check_thaw(s, p, on));
    FSDP_TRY(impl_retire_all(s));
    if (s->parameter[p].frozen == (on == 0)) {
        return FSDP_OK;
    }
    before = calloc(n + 1, sizeof(*before));
    if (!before) {
        return impl_out_of_memory(s->env);
    }
    for (uint32_t i = 0; i < n; i++) {
        before[i] = (struct before){s->parameter[i].frozen,
                                    s->parameter[i].state_local};
    }
    status = change(s, s->parameter[p].original, on == 0, before);
    free(before);
    return status;
}
