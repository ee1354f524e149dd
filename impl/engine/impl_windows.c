/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_windows.c - where windows begin and end: in each phase, a maximal run
 * of forward or of backward points, from a unit's first point to its last.
 */
#include "impl_windows.h"

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

/* Every window, as if no unit were kept. */
static bool mark(const struct fsdp_sequence *q, const struct fsdp_units *units,
                 uint8_t *window, uint32_t *phase_of, uint32_t *last)
{
    uint32_t phase = 1;

    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t u = units->unit_of_module[q->module[i]];
        window[i] = direction(q->point[i]);
        if (i > 0 && window[i] != direction(q->point[i - 1])) {
            phase++;
        }
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if (phase_of[u] != phase) {
            window[i] |= IMPL_BEGINS;
            if (!is_pre(q->point[i])) {
                return false;
            }
        } else {
            window[last[u]] &= (uint8_t)~IMPL_ENDS;
            window[i] |= is_pre(q->point[i]) ? 0 : IMPL_ENDS;
        }
        phase_of[u] = phase;
        last[u] = i;
    }
    return true;
}

/* From the back, so that a unit's backward is known before its forward: drops
 * the end where a unit is kept, and sees that every window has an end. */
static bool settle(const struct impl_schedule *x, const struct fsdp_sequence *q,
                   uint8_t *window, uint32_t *backward_follows, uint32_t *ended)
{
    for (uint32_t i = q->n; i-- > 0;) {
        uint32_t u = x->units->unit_of_module[q->module[i]];
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
                 const struct fsdp_sequence *sequence, uint8_t *window,
                 uint32_t *scratch, const char **what)
{
    uint32_t n = x->units->n_units;

    if (!points_exist(x->model, sequence)) {
        *what = "every point is one of model.h, of a module of the model";
        return FSDP_ERR_INVALID;
    }
    memset(scratch, 0, 2 * (size_t)n * sizeof(*scratch));
    if (!mark(sequence, x->units, window, scratch, scratch + n)) {
        *what = "a unit's window begins with a PRE point";
        return FSDP_ERR_INVALID;
    }
    memset(scratch, 0, 2 * (size_t)n * sizeof(*scratch));
    if (!settle(x, sequence, window, scratch, scratch + n)) {
        *what = "a unit's window ends with a POST point";
        return FSDP_ERR_INVALID;
    }
    return FSDP_OK;
}
