/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - 2. When: the windows of units in a call sequence (model.h).
 *
 * A unit is unsharded at the first PRE point of its modules in a phase and
 * resharded at the last POST point; after forward it may stay as it is if a
 * backward of it follows in the sequence. A module's points are those of its
 * unit, and of every unit that owns one of its parameters.
 */
#include "sharded.h"

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

void ref_find_uses(const struct fsdp_model *model,
                   const struct fsdp_units *units, bool *uses)
{
    const uint32_t n = units->n_units;

    for (uint32_t m = 0; m < model->n_modules; m++) {
        if (units->unit_of_module[m] != FSDP_NO_UNIT) {
            uses[m * n + units->unit_of_module[m]] = true;
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint32_t u = fsdp_unit_of(model, units, p);
        if (u != FSDP_NO_UNIT) {
            uses[model->parameter_module[p] * n + u] = true;
        }
    }
}

static bool is_of(const struct fsdp_sharded *s, const struct fsdp_sequence *q,
                  uint32_t i, uint32_t u)
{
    return s->uses[q->module[i] * s->units->n_units + u];
}

/* Whether a backward point of unit u follows point i. */
static bool backward_follows(const struct fsdp_sharded *s,
                             const struct fsdp_sequence *q, uint32_t i,
                             uint32_t u)
{
    for (uint32_t j = i + 1; j < q->n; j++) {
        if (!is_forward(q->point[j]) && is_of(s, q, j, u)) {
            return true;
        }
    }
    return false;
}

/* Whether point i is unit u's first (step -1) or last (step +1) one in its
 * phase. */
static bool is_end(const struct fsdp_sharded *s, const struct fsdp_sequence *q,
                   uint32_t i, uint32_t u, int step)
{
    int64_t j = (int64_t)i + step;

    for (; j >= 0 && j < q->n; j += step) {
        if (is_forward(q->point[j]) != is_forward(q->point[i])) {
            return true;
        }
        if (is_of(s, q, (uint32_t)j, u)) {
            return false;
        }
    }
    return true;
}

static uint8_t plan(const struct fsdp_sharded *s, const struct fsdp_sequence *q,
                    uint32_t i, uint32_t u)
{
    bool forward = is_forward(q->point[i]);
    uint8_t action = 0;

    if (is_pre(q->point[i]) && is_end(s, q, i, u, -1)) {
        action = REF_UNSHARD;
    } else if (!is_pre(q->point[i]) && is_end(s, q, i, u, +1)) {
        bool holdable = forward && backward_follows(s, q, i, u);
        action = REF_RESHARD | (holdable ? REF_HOLDABLE : 0);
    }
    return action && !forward ? action | REF_BACKWARD : action;
}

void ref_plan(const struct fsdp_sharded *s, const struct fsdp_sequence *q,
              uint8_t *action)
{
    uint32_t n = s->units->n_units;

    for (uint32_t i = 0; i < q->n; i++) {
        for (uint32_t u = 0; u < n; u++) {
            action[i * n + u] = is_of(s, q, i, u) ? plan(s, q, i, u) : 0;
        }
    }
}
