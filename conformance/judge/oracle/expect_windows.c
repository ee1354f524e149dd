/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_windows.c - which points of a call sequence open a unit's window and
 * which close it. A sequence is cut into phases, maximal runs of forward and
 * of backward points (a recomputed forward is part of the backward that needs
 * it); in each phase a unit has one window at most.
 */
#include "judge/oracle/expect_walk.h"

#include <stdlib.h>

static bool is_pre(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
           point == FSDP_PRE_RECOMPUTE;
}

static bool is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
}

/* Marks the windows of one phase, points [begin, end). last[u]: scratch. */
static int mark_phase(const struct expect *e, const struct fsdp_sequence *s,
                      uint32_t begin, uint32_t end, uint32_t *last,
                      uint8_t *flags)
{
    uint32_t direction = is_forward(s->point[begin]) ? 0 : EXPECT_BACKWARD;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        last[u] = UINT32_MAX; /* has no window here yet */
    }
    for (uint32_t i = begin; i < end; i++) {
        uint32_t u = e->units->unit_of_module[s->module[i]];

        flags[i] = (uint8_t)direction;
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if (last[u] == UINT32_MAX) {
            if (!is_pre(s->point[i])) {
                return FSDP_ERR_INVALID;
            }
            flags[i] |= EXPECT_OPENS;
        }
        last[u] = i;
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (last[u] == UINT32_MAX) {
            continue;
        }
        if (is_pre(s->point[last[u]])) {
            return FSDP_ERR_INVALID;
        }
        flags[last[u]] |= EXPECT_CLOSES;
    }
    return FSDP_OK;
}

static int mark(const struct expect *e, const struct fsdp_sequence *s,
                uint32_t *last, uint8_t *flags)
{
    uint32_t begin = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        if (s->point[i] < FSDP_PRE_FORWARD ||
            s->point[i] > FSDP_POST_RECOMPUTE ||
            s->module[i] >= e->model->n_modules) {
            return FSDP_ERR_INVALID;
        }
    }
    for (uint32_t i = 1; i <= s->n; i++) {
        if (i == s->n ||
            is_forward(s->point[i]) != is_forward(s->point[begin])) {
            FSDP_TRY(mark_phase(e, s, begin, i, last, flags));
            begin = i;
        }
    }
    /* From the back: which units have a backward window still to come. */
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        last[u] = 0;
    }
    for (uint32_t i = s->n; i-- > 0;) {
        uint32_t u = e->units->unit_of_module[s->module[i]];

        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if ((flags[i] & EXPECT_BACKWARD) != 0) {
            last[u] = 1;
        } else if ((flags[i] & EXPECT_CLOSES) != 0 && last[u] != 0) {
            flags[i] |= EXPECT_HOLDS;
        }
    }
    return FSDP_OK;
}

int expect_windows(const struct expect *e, const struct fsdp_sequence *s,
                   uint8_t *flags)
{
    uint32_t *last = calloc((size_t)e->units->n_units + 1, sizeof(*last));
    int status = FSDP_ERR_NOMEM;

    if (last) {
        status = mark(e, s, last, flags);
    }
    free(last);
    return status;
}
