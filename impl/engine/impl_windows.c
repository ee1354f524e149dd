/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_windows.c - where windows begin and end: in each phase, a maximal run
 * of forward or of backward points, from a unit's first point to its last.
 */
#include "impl_windows.h"

#include <stdlib.h>
#include <string.h>

static bool is_pre(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
           point == FSDP_PRE_RECOMPUTE;
}

/* A recomputed forward belongs to the backward that needs it. */
static uint8_t direction(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD
               ? 0
               : IMPL_BACKWARD;
}

static bool points_exist(const struct fsdp_model *model,
                         const struct fsdp_sequence *q)
{
    for (uint32_t i = 0; i < q->n; i++) {
        if (q->point[i] < FSDP_PRE_FORWARD ||
            q->point[i] > FSDP_POST_RECOMPUTE ||
            q->module[i] >= model->n_modules) {
            return false;
        }
    }
    return true;
}

/* [n_modules][n_units]: its points are the unit's. */
static bool *find_uses(const struct impl_schedule *x)
{
    const struct fsdp_model *model = x->model;
    size_t n = x->units->n_units;
    bool *uses = calloc(model->n_modules * n + 1, sizeof(*uses));

    for (uint32_t m = 0; uses && m < model->n_modules; m++) {
        uint32_t u = x->units->unit_of_module[m];
        if (u != FSDP_NO_UNIT) {
            uses[m * n + u] = true;
        }
    }
    for (uint32_t p = 0; uses && p < model->n_parameters; p++) {
        uint32_t u = fsdp_unit_of(model, x->units, p);
        if (u != FSDP_NO_UNIT) {
            uses[model->parameter_module[p] * n + u] = true;
        }
    }
    return uses;
}

/* Writes the stops of point i, from stop[at] on; returns the index behind
 * them. */
static uint32_t add_stops(const bool *uses, uint32_t n_units, uint32_t i,
                          struct impl_stop *stop, uint32_t at)
{
    uint32_t first = at;

    for (uint32_t u = 0; u < n_units; u++) {
        if (uses[u]) {
            stop[at++] = (struct impl_stop){i, u};
        }
    }
    if (at == first) {
        stop[at++] = (struct impl_stop){i, FSDP_NO_UNIT};
    }
    return at;
}

int impl_stops(const struct impl_schedule *x,
               const struct fsdp_sequence *sequence, struct impl_stop **out,
               uint32_t *n, const char **what)
{
    size_t n_units = x->units->n_units;
    size_t most = 0;
    bool *uses;

    *out = NULL;
    *n = 0;
    if (!points_exist(x->model, sequence)) {
        *what = "every point is one of model.h, of a module of the model";
        return FSDP_ERR_INVALID;
    }
    uses = find_uses(x);
    for (uint32_t i = 0; uses && i < sequence->n; i++) {
        most++;
        for (uint32_t u = 0; u < n_units; u++) {
            most += uses[sequence->module[i] * n_units + u];
        }
    }
    *out = calloc(most + 1, sizeof(**out));
    for (uint32_t i = 0; uses && *out && i < sequence->n; i++) {
        *n = add_stops(uses + sequence->module[i] * n_units, (uint32_t)n_units,
                       i, *out, *n);
    }
    free(uses);
    return uses && *out ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* Marks every window, as if no unit were kept. */
static bool mark(const struct fsdp_sequence *q, const struct impl_stop *stop,
                 uint32_t n, uint8_t *window, uint32_t *phase_of,
                 uint32_t *last)
{
    uint32_t phase = 1;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t u = stop[i].unit;
        uint32_t point = q->point[stop[i].point];
        window[i] = direction(point);
        if (i > 0 && window[i] != (window[i - 1] & IMPL_BACKWARD)) {
            phase++;
        }
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if (phase_of[u] != phase) {
            window[i] |= IMPL_BEGINS;
            if (!is_pre(point)) {
                return false;
            }
        } else {
            window[last[u]] &= (uint8_t)~IMPL_ENDS;
            window[i] |= is_pre(point) ? 0 : IMPL_ENDS;
        }
        phase_of[u] = phase;
        last[u] = i;
    }
    return true;
}

/* From the back, so that a unit's backward is known before its forward: drops
 * the end where a unit is kept, and sees that every window has an end. */
static bool settle(const struct impl_schedule *x, const struct impl_stop *stop,
                   uint32_t n, uint8_t *window, uint32_t *backward_follows,
                   uint32_t *ended)
{
    for (uint32_t i = n; i-- > 0;) {
        uint32_t u = stop[i].unit;
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if (window[i] & IMPL_ENDS) {
            ended[u] = 1;
        }
        if ((window[i] & IMPL_ENDS) && !(window[i] & IMPL_BACKWARD) &&
            backward_follows[u] && x->extent[u].kept) {
            window[i] &= (uint8_t)~IMPL_ENDS;
        }
        if (window[i] & IMPL_BEGINS) {
            if (!ended[u]) {
                return false;
            }
            ended[u] = 0;
        }
        if (window[i] & IMPL_BACKWARD) {
            backward_follows[u] = 1;
        }
    }
    return true;
}

int impl_windows(const struct impl_schedule *x,
                 const struct fsdp_sequence *sequence,
                 const struct impl_stop *stop, uint32_t n, uint8_t *window,
                 uint32_t *scratch, const char **what)
{
    size_t n_units = x->units->n_units;

    memset(scratch, 0, 2 * n_units * sizeof(*scratch));
    if (!mark(sequence, stop, n, window, scratch, scratch + n_units)) {
        *what = "a unit's window begins with a PRE point";
        return FSDP_ERR_INVALID;
    }
    memset(scratch, 0, 2 * n_units * sizeof(*scratch));
    if (!settle(x, stop, n, window, scratch, scratch + n_units)) {
        *what = "a unit's window ends with a POST point";
        return FSDP_ERR_INVALID;
    }
    return FSDP_OK;
}
