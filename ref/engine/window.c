/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - 2. When: the windows of units in a call sequence (model.h).
 *
 * A unit is unsharded at the first PRE point of its modules in a phase and
 * resharded at the last POST point; after forward it may stay as it is if a
 * backward of it follows in the sequence.
 */
#include "sharded.h"

#include <string.h>

static bool is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
}

static bool is_pre(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
           point == FSDP_PRE_RECOMPUTE;
}

bool ref_reshards_after_forward(const struct fsdp_units *units,
                                const struct fsdp_options *options, uint32_t u)
{
    if (options->keep_root && u == units->unit_of_module[0]) {
        return false;
    }
    if (units->reshard_after_forward && units->reshard_after_forward[u]) {
        return units->reshard_after_forward[u] == 1;
    }
    return options->reshard_after_forward != 0;
}

/* Whether a backward point of unit u follows point i. */
static bool backward_follows(const struct fsdp_sequence *q,
                             const struct fsdp_units *units, uint32_t i,
                             uint32_t u)
{
    for (uint32_t j = i + 1; j < q->n; j++) {
        if (!is_forward(q->point[j]) &&
            units->unit_of_module[q->module[j]] == u) {
            return true;
        }
    }
    return false;
}

/* Whether point i is its unit's first (step -1) or last (step +1) one in its
 * phase. */
static bool is_end(const struct fsdp_sequence *q,
                   const struct fsdp_units *units, uint32_t i, int step)
{
    uint32_t u = units->unit_of_module[q->module[i]];
    int64_t j = (int64_t)i + step;

    for (; j >= 0 && j < q->n; j += step) {
        if (is_forward(q->point[j]) != is_forward(q->point[i])) {
            return true;
        }
        if (units->unit_of_module[q->module[j]] == u) {
            return false;
        }
    }
    return true;
}

int ref_plan(const struct fsdp_sequence *q, const struct fsdp_units *units,
             uint8_t *action)
{
    memset(action, 0, q->n);
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t u = units->unit_of_module[q->module[i]];
        bool forward = is_forward(q->point[i]);
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if (is_pre(q->point[i]) && is_end(q, units, i, -1)) {
            action[i] = REF_UNSHARD;
        } else if (!is_pre(q->point[i]) && is_end(q, units, i, +1)) {
            bool holdable = forward && backward_follows(q, units, i, u);
            action[i] = REF_RESHARD | (holdable ? REF_HOLDABLE : 0);
        }
        if (action[i] && !forward) {
            action[i] |= REF_BACKWARD;
        }
    }
    return FSDP_OK;
}
