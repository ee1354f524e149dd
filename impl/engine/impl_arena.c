/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_arena.c - takes storage and gives it back, in one step by the example of
 * an earlier one.
 */
#include "impl_arena.h"
#include "impl_calls.h"

#include <stdlib.h>

/* ---- The allocation ---------------------------------------------------- */

static int allocate(const struct fsdp_env *env, uint64_t n, float **out)
{
    void *p = NULL;
    int status = env->device->alloc(env->device->self, n * sizeof(**out), &p);

    if (status != FSDP_OK) {
        return impl_fail(env, status, "impl.alloc",
                         "the device has no %llu bytes for what is unsharded",
                         (unsigned long long)(n * sizeof(**out)));
    }
    *out = p;
    return FSDP_OK;
}

int impl_arena_rest(struct impl_arena *a)
{
    const struct fsdp_device *d = a->env->device;

    if (!a->p || a->n_taken > 0) {
        return FSDP_OK;
    }
    FSDP_TRY(d->sync(d->self, NULL)); /* streams may still use it */
    d->free(d->self, a->p);
    a->p = NULL;
    return FSDP_OK;
}

/* Makes storage as large as any known step needs. Nothing lives in it now. */
static int ensure(struct impl_arena *a)
{
    uint64_t room = 0;

    for (uint32_t i = 0; i < IMPL_KNOWN_STEPS; i++) {
        room = a->known[i].room > room ? a->known[i].room : room;
    }
    if (a->p && a->room == room) {
        return FSDP_OK;
    }
    FSDP_TRY(impl_arena_rest(a));
    if (room > 0) {
        FSDP_TRY(allocate(a->env, room, &a->p));
        a->room = room;
    }
    return FSDP_OK;
}

/* ---- Steps and passes -------------------------------------------------- */

static void move_to_front(struct impl_arena *a, uint32_t i)
{
    struct impl_trace x = a->known[i];

    for (; i > 0; i--) {
        a->known[i] = a->known[i - 1];
    }
    a->known[0] = x;
}

static bool recall(struct impl_arena *a, uint32_t sequence, uint32_t knobs)
{
    for (uint32_t i = 0; i < IMPL_KNOWN_STEPS; i++) {
        if (impl_follow_first(&a->follow, &a->known[i], sequence, knobs)) {
            return true;
        }
    }
    return false;
}

int impl_arena_begin(struct impl_arena *a, uint32_t sequence, uint32_t knobs)
{
    FSDP_TRY(impl_arena_settle(a));
    if (a->step.n_passes > 0) {
        impl_follow_next(&a->follow, sequence, knobs);
    } else if (recall(a, sequence, knobs)) {
        FSDP_TRY(ensure(a));
    } else {
        FSDP_TRY(impl_arena_rest(a));
    }
    if (impl_trace_begin(&a->step, sequence, knobs) != FSDP_OK) {
        return impl_out_of_memory(a->env);
    }
    a->in_pass = true;
    return FSDP_OK;
}

void impl_arena_end(struct impl_arena *a, bool cancelled)
{
    if (!a->in_pass) {
        return; /* not of this profile */
    }
    a->in_pass = false;
    a->cancelled = a->cancelled || cancelled;
    impl_trace_end(&a->step);
}

/* The oldest one makes room. */
static int learn(struct impl_arena *a)
{
    struct impl_trace *oldest = &a->known[IMPL_KNOWN_STEPS - 1];

    if (impl_trace_place(&a->step) != FSDP_OK) {
        return impl_out_of_memory(a->env);
    }
    impl_trace_release(oldest);
    *oldest = a->step;
    a->step = (struct impl_trace){0};
    move_to_front(a, IMPL_KNOWN_STEPS - 1);
    return ensure(a);
}

int impl_arena_settle(struct impl_arena *a)
{
    bool learns = !a->follow.trace && !a->cancelled;

    if (a->in_pass || a->n_taken > 0 || a->step.n_passes == 0) {
        return FSDP_OK;
    }
    a->follow.trace = NULL;
    a->cancelled = false;
    if (learns) {
        return learn(a);
    }
    impl_trace_forget(&a->step);
    return FSDP_OK;
}

/* ---- Places ------------------------------------------------------------ */

static bool is_free(const struct impl_arena *a, uint64_t at, uint64_t n)
{
    if (!a->p || at > a->room || n > a->room - at) {
        return false;
    }
    for (uint32_t i = 0; i < a->n_taken; i++) {
        const struct impl_taken *x = &a->taken[i];
        if (!x->own && a->p + at < x->p + x->n && x->p < a->p + at + n) {
            return false;
        }
    }
    return true;
}

/* The lowest place of which a value ends, or the lowest of all. */
static bool find_gap(const struct impl_arena *a, uint64_t n, uint64_t *at)
{
    bool found = is_free(a, 0, n);

    *at = 0;
    for (uint32_t i = 0; i < a->n_taken && (!found || *at > 0); i++) {
        const struct impl_taken *x = &a->taken[i];
        uint64_t end = x->own ? 0 : (uint64_t)(x->p - a->p) + impl_room(x->n);
        if (!x->own && (!found || end < *at) && is_free(a, end, n)) {
            *at = end;
            found = true;
        }
    }
    return found;
}

static int find_place(struct impl_arena *a, struct impl_taken *x)
{
    const struct impl_life *life =
        a->in_pass ? impl_follow_take(&a->follow, x->n) : NULL;
    uint64_t at = 0;

    if (life && is_free(a, life->offset, x->n)) {
        x->p = a->p + life->offset;
        return FSDP_OK;
    }
    if (a->in_pass) {
        a->follow.trace = NULL; /* another step than that one */
    }
    if (find_gap(a, x->n, &at)) {
        x->p = a->p + at;
        return FSDP_OK;
    }
    x->own = true;
    return allocate(a->env, x->n, &x->p);
}

static int make_room(struct impl_arena *a)
{
    uint32_t capacity = a->capacity ? 2 * a->capacity : 64;
    struct impl_taken *grown;

    if (a->n_taken < a->capacity) {
        return FSDP_OK;
    }
    grown = realloc(a->taken, capacity * sizeof(*grown));
    if (!grown) {
        return impl_out_of_memory(a->env);
    }
    a->taken = grown;
    a->capacity = capacity;
    return FSDP_OK;
}

int impl_arena_take(struct impl_arena *a, uint64_t n, float **out)
{
    struct impl_taken x = {.n = n, .life = IMPL_NO_LIFE};

    FSDP_TRY(make_room(a));
    FSDP_TRY(find_place(a, &x));
    a->taken[a->n_taken++] = x;
    if (a->in_pass && impl_trace_take(&a->step, n, &x.life) != FSDP_OK) {
        return impl_out_of_memory(a->env);
    }
    a->taken[a->n_taken - 1].life = x.life;
    *out = x.p;
    return FSDP_OK;
}

/* The search begins at the end, since the value that was taken last is mostly
 * given back first: gradient shards, which wait for the step, lie at the
 * front. */
void impl_arena_give(struct impl_arena *a, struct fsdp_stream *stream,
                     const void *p)
{
    struct impl_taken x;
    uint32_t i = a->n_taken;

    while (i > 0 && a->taken[i - 1].p != p) {
        i--;
    }
    if (i == 0) {
        return;
    }
    x = a->taken[i - 1];
    a->taken[i - 1] = a->taken[--a->n_taken];
    if (x.life != IMPL_NO_LIFE) {
        impl_trace_give(&a->step, x.life);
    }
    if (x.own) { /* what failed on the stream, its next wait tells */
        const struct fsdp_device *d = a->env->device;
        (void)d->wait(d->self, NULL, stream, 0, "dead->free");
        d->free(d->self, x.p);
    }
}

void impl_arena_release(struct impl_arena *a)
{
    for (uint32_t i = 0; i < a->n_taken; i++) {
        if (a->taken[i].own) {
            a->env->device->free(a->env->device->self, a->taken[i].p);
        }
    }
    if (a->p) {
        a->env->device->free(a->env->device->self, a->p);
    }
    for (uint32_t i = 0; i < IMPL_KNOWN_STEPS; i++) {
        impl_trace_release(&a->known[i]);
    }
    impl_trace_release(&a->step);
    free(a->taken);
    *a = (struct impl_arena){.env = a->env};
}
