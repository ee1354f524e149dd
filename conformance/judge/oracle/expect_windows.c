/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_windows.c - which points of a call sequence open a unit's window and
 * which close it. A sequence is cut into phases, maximal runs of forward and
 * of backward points (a recomputed forward is part of the backward that needs
 * it); in each phase a unit has one window at most.
 *
 * Also here: which parameters and units a training pass uses, and in which
 * order the gradients come that add up to a parameter's. There is one from each
 * backward of a module that has the parameter, under any of its names.
 */
#include "judge/oracle/expect_walk.h"

#include <stdlib.h>

bool expect_is_pre(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
           point == FSDP_PRE_RECOMPUTE;
}

static bool is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
}

/* Marks the windows of one phase, stops [begin, end). last[u]: scratch. */
static int mark_phase(const struct expect *e, const struct fsdp_sequence *s,
                      struct expect_stop *stop, uint32_t begin, uint32_t end,
                      uint32_t *last)
{
    const uint32_t direction =
        is_forward(s->point[stop[begin].point]) ? 0 : EXPECT_BACKWARD;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        last[u] = UINT32_MAX; /* has no window here yet */
    }
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t u = stop[i].unit;

        stop[i].flags = (uint8_t)direction;
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if (last[u] == UINT32_MAX) {
            if (!expect_is_pre(s->point[stop[i].point])) {
                return FSDP_ERR_INVALID;
            }
            stop[i].flags |= EXPECT_OPENS;
        }
        last[u] = i;
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (last[u] == UINT32_MAX) {
            continue;
        }
        if (expect_is_pre(s->point[stop[last[u]].point])) {
            return FSDP_ERR_INVALID;
        }
        stop[last[u]].flags |= EXPECT_CLOSES;
    }
    return FSDP_OK;
}

/* Going backwards: which units still have a backward window to come. */
static void mark_held(const struct expect *e, struct expect_stop *stop,
                      uint32_t n, uint32_t *last)
{
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        last[u] = 0;
    }
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t u = stop[i].unit;

        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if ((stop[i].flags & EXPECT_BACKWARD) != 0) {
            last[u] = 1;
        } else if ((stop[i].flags & EXPECT_CLOSES) != 0 && last[u] != 0) {
            stop[i].flags |= EXPECT_HOLDS;
        }
    }
}

static int mark(const struct expect *e, const struct fsdp_sequence *s,
                struct expect_stop *stop, uint32_t n, uint32_t *last)
{
    uint32_t begin = 0;

    for (uint32_t i = 1; i <= n; i++) {
        if (i == n || is_forward(s->point[stop[i].point]) !=
                          is_forward(s->point[stop[begin].point])) {
            FSDP_TRY(mark_phase(e, s, stop, begin, i, last));
            begin = i;
        }
    }
    mark_held(e, stop, n, last);
    return FSDP_OK;
}

bool expect_is_of(const struct expect *e, uint32_t module, uint32_t u)
{
    if (e->units->unit_of_module[module] == u) {
        return true;
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->model->parameter_module[p] == module &&
            e->unit_of_parameter[p] == u) {
            return true;
        }
    }
    return false;
}

/* The units of every module: [n_modules][n_units]; the caller frees it. */
static bool *find_units(const struct expect *e)
{
    const size_t n = e->units->n_units;
    bool *of = calloc(e->model->n_modules * n + 1, sizeof(*of));

    for (uint32_t m = 0; of && m < e->model->n_modules; m++) {
        if (e->units->unit_of_module[m] != FSDP_NO_UNIT) {
            of[m * n + e->units->unit_of_module[m]] = true;
        }
    }
    for (uint32_t p = 0; of && p < e->model->n_parameters; p++) {
        if (!expect_is_ignored(e, p)) {
            of[e->model->parameter_module[p] * n + e->unit_of_parameter[p]] =
                true;
        }
    }
    return of;
}

/* Lists the stops, and writes them if `stop` is not NULL. Returns how many
 * there are. */
static uint32_t list(const struct expect *e, const struct fsdp_sequence *s,
                     const bool *of, struct expect_stop *stop)
{
    const uint32_t n_units = e->units->n_units;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const bool *own = of + (size_t)s->module[i] * n_units;
        const uint32_t first = n;

        for (uint32_t u = 0; u <= n_units; u++) {
            const bool none = u == n_units && n == first;

            if (none || (u < n_units && own[u])) {
                if (stop) {
                    stop[n] = (struct expect_stop){
                        .point = i, .unit = none ? FSDP_NO_UNIT : u};
                }
                n++;
            }
        }
    }
    return n;
}

int expect_windows(const struct expect *e, const struct fsdp_sequence *s,
                   struct expect_stop **out, uint32_t *n)
{
    uint32_t *last = calloc((size_t)e->units->n_units + 1, sizeof(*last));
    bool *of = find_units(e);
    int status = last && of ? FSDP_OK : FSDP_ERR_NOMEM;

    *out = NULL;
    *n = 0;
    for (uint32_t i = 0; i < s->n && status == FSDP_OK; i++) {
        if (s->point[i] < FSDP_PRE_FORWARD ||
            s->point[i] > FSDP_POST_RECOMPUTE ||
            s->module[i] >= e->model->n_modules) {
            status = FSDP_ERR_INVALID;
        }
    }
    if (status == FSDP_OK) {
        *n = list(e, s, of, NULL);
        *out = calloc((size_t)*n + 1, sizeof(**out));
        status = *out ? FSDP_OK : FSDP_ERR_NOMEM;
    }
    if (status == FSDP_OK) {
        (void)list(e, s, of, *out);
        status = mark(e, s, *out, *n, last);
    }
    free(last);
    free(of);
    return status;
}

/* Finds uses by the training sequence, and by what the model does not use. */
void expect_find_uses(struct expect *e, const uint8_t *idle)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const uint32_t module = e->model->parameter_module[p];
        const uint32_t left = idle ? idle[p] : 0;

        for (uint32_t i = 0; i < s->n; i++) {
            if (s->module[i] != module) {
                continue;
            }
            e->backwards[p] += s->point[i] == FSDP_PRE_BACKWARD;
            e->seen[p] = e->seen[p] || (s->point[i] == FSDP_PRE_FORWARD &&
                                        !expect_is_ignored(e, p) &&
                                        (left & WORKLOAD_UNSEEN) == 0);
        }
    }
    expect_find_trained(e, idle);
}

void expect_find_trained(struct expect *e, const uint8_t *idle)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];
    const uint8_t all = (1u << CASE_MAX_MICROBATCHES) - 1;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const uint32_t left = idle ? idle[p] : 0;

        if (e->backwards[p] > 0 && expect_is_trainable(e, p)) {
            e->has_gradient[p] = (uint8_t)(~left & all);
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->module[i] >= e->model->n_modules ||
            (s->point[i] != FSDP_PRE_BACKWARD &&
             s->point[i] != FSDP_PRE_RECOMPUTE)) {
            continue;
        }
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            e->trained[u] = e->trained[u] || (e->unit[u].trains &&
                                              expect_is_of(e, s->module[i], u));
        }
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        e->stepped[p] =
            e->trained[e->unit_of_parameter[p]] && expect_is_trainable(e, p);
    }
}

/* How many backwards of this module there are before point `end`. */
static uint32_t backwards_before(const struct fsdp_sequence *s, uint32_t end)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < end; i++) {
        n +=
            s->module[i] == s->module[end] && s->point[i] == FSDP_POST_BACKWARD;
    }
    return n;
}

uint32_t expect_uses(const struct expect *e, uint32_t p, uint32_t b,
                     uint32_t most, struct expect_use *out)
{
    const struct fsdp_model *m = e->model;
    const struct fsdp_sequence *s = m->sequence[FSDP_SEQUENCE_TRAIN];
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t q = p;
             q < m->n_parameters && s->point[i] == FSDP_POST_BACKWARD; q++) {
            if (m->parameter_module[q] != s->module[i] ||
                expect_original(e, q) != p ||
                (e->has_gradient[q] >> b & 1) == 0) {
                continue;
            }
            if (n < most) {
                out[n] = (struct expect_use){q, backwards_before(s, i)};
            }
            n++;
        }
    }
    return n;
}
