/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_sets.c - what is expected once other parameters are trained: of a
 * script that freezes and thaws them, after each action that does.
 */
#include "judge/oracle/expect_walk.h"

#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = calloc(n + 1, size);

    if (to && n > 0) {
        memcpy(to, from, n * size);
    }
    return to;
}

static void release_set(struct expect *e)
{
    free(e->unit);
    free(e->grad_offset);
    free(e->stepped);
    free(e->has_gradient);
    free(e->trained);
    free(e->frozen);
    free(e);
}

/* What does not depend on it is the same, and not its own. */
static struct expect *copy_set(const struct expect *from)
{
    const size_t n = from->model->n_parameters;
    const size_t units = from->units->n_units;
    struct expect *e = calloc(1, sizeof(*e));

    if (!e) {
        return NULL;
    }
    *e = *from;
    e->unit = copy_of(from->unit, units, sizeof(*e->unit));
    e->grad_offset = copy_of(from->grad_offset, n, sizeof(*e->grad_offset));
    e->stepped = copy_of(from->stepped, n, sizeof(*e->stepped));
    e->has_gradient = calloc(n + 1, sizeof(*e->has_gradient));
    e->trained = calloc(units + 1, sizeof(*e->trained));
    e->frozen = copy_of(from->frozen, n, sizeof(*e->frozen));
    if (!e->unit || !e->grad_offset || !e->stepped || !e->has_gradient ||
        !e->trained || !e->frozen) {
        release_set(e);
        return NULL;
    }
    return e;
}

int expect_trains_others(struct expect *base, const struct expect *from,
                         uint32_t parameter, bool frozen,
                         const struct expect **out)
{
    struct expect **grown = realloc(base->set, (base->n_sets + (size_t)1) *
                                                   sizeof(struct expect *));
    struct expect *e;

    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    base->set = grown;
    e = copy_set(from);
    if (!e) {
        return FSDP_ERR_NOMEM;
    }
    base->set[base->n_sets++] = e;
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (parameter == SCRIPT_ALL ||
            expect_original(e, p) == expect_original(e, parameter)) {
            e->frozen[p] = frozen || expect_is_ignored(e, p);
        }
    }
    expect_lay_out_again(e);
    expect_find_trained(e, base->idle);
    *out = e;
    return FSDP_OK;
}

const struct expect *expect_at(const struct expect *e, uint32_t i)
{
    return i < e->n_events && e->event[i].as ? e->event[i].as : e;
}

void expect_release_sets(struct expect *e)
{
    for (uint32_t i = 0; i < e->n_sets; i++) {
        release_set(e->set[i]);
    }
    free(e->set);
}
