/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_trace.c - a step is written down, and later steps are compared with it
 * as they go on. A trace that is followed is a guess at what comes next, and no
 * more: the caller that asks it for a place checks that nothing lies there.
 */
#include "impl_trace.h"

#include <fsdp/status.h>

#include <stdlib.h>

/* Room for one more of `size` bytes each. */
static int grow(void **array, uint32_t n, uint32_t *capacity, size_t size)
{
    uint32_t wanted = *capacity ? 2 * *capacity : 64;
    void *grown;

    if (n < *capacity) {
        return FSDP_OK;
    }
    grown = wanted > *capacity ? realloc(*array, wanted * size) : NULL;
    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    *array = grown;
    *capacity = wanted;
    return FSDP_OK;
}

/* ---- Writing ----------------------------------------------------------- */

int impl_trace_begin(struct impl_trace *t, uint32_t sequence, uint32_t knobs)
{
    void *array = t->pass;

    FSDP_TRY(grow(&array, t->n_passes, &t->pass_capacity, sizeof(*t->pass)));
    t->pass = array;
    t->pass[t->n_passes++] = (struct impl_trace_pass){.sequence = sequence,
                                                      .knobs = knobs,
                                                      .first = t->n_lives,
                                                      .begin = t->moment};
    return FSDP_OK;
}

int impl_trace_take(struct impl_trace *t, uint64_t size, uint32_t *life)
{
    void *array = t->life;

    FSDP_TRY(grow(&array, t->n_lives, &t->life_capacity, sizeof(*t->life)));
    t->life = array;
    *life = t->n_lives++;
    t->life[*life] = (struct impl_life){
        .size = size, .begin = t->moment++, .end = UINT32_MAX};
    return FSDP_OK;
}

void impl_trace_give(struct impl_trace *t, uint32_t life)
{
    t->life[life].end = t->moment++;
}

static uint32_t lives_end(const struct impl_trace *t, uint32_t pass)
{
    return pass + 1 < t->n_passes ? t->pass[pass + 1].first : t->n_lives;
}

static bool is_kind(const struct impl_trace_pass *x, uint32_t sequence,
                    uint32_t knobs)
{
    return x->sequence == sequence && x->knobs == knobs;
}

/* Whether pass b, the last one, is like pass a before it; both are plain. */
static bool alike(const struct impl_trace *t, uint32_t a, uint32_t b)
{
    const struct impl_trace_pass *x = &t->pass[a];
    const struct impl_trace_pass *y = &t->pass[b];
    uint32_t n = t->n_lives - y->first;

    if (!is_kind(x, y->sequence, y->knobs) || y->first - x->first != n) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct impl_life *p = &t->life[x->first + i];
        const struct impl_life *q = &t->life[y->first + i];
        if (p->size != q->size || p->begin - x->begin != q->begin - y->begin ||
            p->end - x->begin != q->end - y->begin) {
            return false;
        }
    }
    return true;
}

void impl_trace_end(struct impl_trace *t)
{
    struct impl_trace_pass *last = &t->pass[t->n_passes - 1];
    uint32_t n = t->n_lives - last->first;

    /* As many lives ended as began, and all of its own ended. */
    last->plain = t->moment - last->begin == 2 * n;
    for (uint32_t i = last->first; i < t->n_lives; i++) {
        last->plain = last->plain && t->life[i].end != UINT32_MAX;
    }
    if (last->plain && t->n_passes > 1 && last[-1].plain &&
        alike(t, t->n_passes - 2, t->n_passes - 1)) {
        t->moment = last->begin;
        t->n_lives = last->first;
        t->n_passes--;
    }
}

int impl_trace_place(struct impl_trace *t)
{
    for (uint32_t i = 0; i < t->n_lives; i++) {
        if (t->life[i].end == UINT32_MAX) {
            t->life[i].end = t->moment;
        }
    }
    return impl_place(t->life, t->n_lives, IMPL_THOROUGHLY, &t->room);
}

void impl_trace_forget(struct impl_trace *t)
{
    t->n_passes = t->n_lives = t->moment = 0;
}

void impl_trace_release(struct impl_trace *t)
{
    free(t->pass);
    free(t->life);
    *t = (struct impl_trace){0};
}

/* ---- Reading along ----------------------------------------------------- */

static void enter(struct impl_follow *f, uint32_t pass)
{
    f->pass = pass;
    f->next = f->trace->pass[pass].first;
}

bool impl_follow_first(struct impl_follow *f, const struct impl_trace *t,
                       uint32_t sequence, uint32_t knobs)
{
    if (t->n_passes == 0 || !is_kind(&t->pass[0], sequence, knobs)) {
        return false;
    }
    f->trace = t;
    enter(f, 0);
    return true;
}

void impl_follow_next(struct impl_follow *f, uint32_t sequence, uint32_t knobs)
{
    const struct impl_trace *t = f->trace;

    for (uint32_t i = f->pass + 1; t && i < t->n_passes; i++) {
        if (is_kind(&t->pass[i], sequence, knobs)) {
            enter(f, i);
            return;
        }
        if (!t->pass[i].plain) {
            break;
        }
    }
    if (t && t->pass[f->pass].plain &&
        is_kind(&t->pass[f->pass], sequence, knobs)) {
        enter(f, f->pass);
        return;
    }
    f->trace = NULL;
}

const struct impl_life *impl_follow_take(struct impl_follow *f, uint64_t size)
{
    const struct impl_trace *t = f->trace;

    if (!t || f->next == lives_end(t, f->pass) ||
        t->life[f->next].size != size) {
        f->trace = NULL;
        return NULL;
    }
    return &t->life[f->next++];
}
