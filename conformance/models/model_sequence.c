/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_sequence.c - call sequences as walks over a tree, without recursion:
 * how deep a tree is, its writer decides.
 */
#include "model_sequence.h"

#include <stdio.h>
#include <stdlib.h>

/* The next child of `parent` behind `child` (-1: its first), or n. */
static uint32_t next_child(uint32_t n, const int32_t *parent, int32_t of,
                           int32_t child)
{
    uint32_t m = child < 0 ? (uint32_t)of + 1 : (uint32_t)child + 1;

    while (m < n && parent[m] != of) {
        m++;
    }
    return m;
}

void model_sequence_forward(uint32_t n, const int32_t *parent, uint32_t *point,
                            uint32_t *module)
{
    int32_t at = 0;    /* the module that is open */
    int32_t done = -1; /* its child that was closed last */

    point[0] = FSDP_PRE_FORWARD;
    module[0] = 0;
    for (uint32_t i = 1; i < 2 * n; i++) {
        const uint32_t child = next_child(n, parent, at, done);

        if (child < n) {
            at = (int32_t)child;
            done = -1;
            point[i] = FSDP_PRE_FORWARD;
            module[i] = child;
        } else {
            point[i] = FSDP_POST_FORWARD;
            module[i] = (uint32_t)at;
            done = at;
            at = parent[at];
        }
    }
}

void model_sequence_mirror(uint32_t n, uint32_t *point, uint32_t *module)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = n - 1 - i;

        point[n + i] = point[from] == FSDP_POST_FORWARD ? FSDP_PRE_BACKWARD
                                                        : FSDP_POST_BACKWARD;
        module[n + i] = module[from];
    }
}

/* What follows `at` points of a sequence: the 2 * n points of a forward that
 * are of a checkpoint, as those of a recompute. */
static uint32_t add_recompute(uint32_t n, const uint32_t *checkpoint,
                              uint32_t which, uint32_t at, uint32_t *point,
                              uint32_t *module)
{
    for (uint32_t i = 0; i < 2 * n; i++) {
        if (checkpoint[module[i]] == which) {
            point[at] = point[i] == FSDP_PRE_FORWARD ? FSDP_PRE_RECOMPUTE
                                                     : FSDP_POST_RECOMPUTE;
            module[at++] = module[i];
        }
    }
    return at;
}

uint32_t model_sequence_recompute(uint32_t n, const int32_t *parent,
                                  const uint32_t *checkpoint, uint32_t *point,
                                  uint32_t *module)
{
    uint32_t at = 2 * n;
    uint32_t done = 0; /* checkpoints are met from the last to the first */

    model_sequence_forward(n, parent, point, module);
    for (uint32_t i = 2 * n; i-- > 0;) {
        const uint32_t m = module[i];

        if (checkpoint[m] != 0 && checkpoint[m] != done) {
            done = checkpoint[m];
            at = add_recompute(n, checkpoint, done, at, point, module);
        }
        point[at] = point[i] == FSDP_POST_FORWARD ? FSDP_PRE_BACKWARD
                                                  : FSDP_POST_BACKWARD;
        module[at++] = m;
    }
    return at;
}

/* The PRE point that a POST point closes; BEGIN for what closes nothing. */
static uint32_t opener(uint32_t point)
{
    switch (point) {
    case FSDP_POST_FORWARD:
        return FSDP_PRE_FORWARD;
    case FSDP_POST_BACKWARD:
        return FSDP_PRE_BACKWARD;
    case FSDP_POST_RECOMPUTE:
        return FSDP_PRE_RECOMPUTE;
    default:
        return FSDP_BEGIN;
    }
}

/* `open` is a stack of indices into the sequence. */
static int check_nesting(const struct fsdp_sequence *s, uint32_t n_modules,
                         uint32_t *open, char *detail, size_t bytes)
{
    uint32_t n_open = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t wants = opener(s->point[i]);

        if (s->module[i] >= n_modules) {
            snprintf(detail, bytes, "point %u: there is no module %u",
                     (unsigned)i, (unsigned)s->module[i]);
            return FSDP_ERR_INVALID;
        }
        if (s->point[i] == FSDP_PRE_FORWARD ||
            s->point[i] == FSDP_PRE_BACKWARD ||
            s->point[i] == FSDP_PRE_RECOMPUTE) {
            open[n_open++] = i;
            continue;
        }
        if (wants == FSDP_BEGIN) {
            snprintf(detail, bytes, "point %u: a %u is neither PRE nor POST",
                     (unsigned)i, (unsigned)s->point[i]);
            return FSDP_ERR_INVALID;
        }
        if (n_open == 0 || s->point[open[n_open - 1]] != wants ||
            s->module[open[n_open - 1]] != s->module[i]) {
            snprintf(detail, bytes, "point %u: module %u was not opened last",
                     (unsigned)i, (unsigned)s->module[i]);
            return FSDP_ERR_INVALID;
        }
        n_open--;
    }
    if (n_open != 0) {
        snprintf(detail, bytes, "module %u stays open",
                 (unsigned)s->module[open[n_open - 1]]);
        return FSDP_ERR_INVALID;
    }
    return FSDP_OK;
}

int model_sequence_check(const struct fsdp_sequence *sequence,
                         uint32_t n_modules, char *detail, size_t bytes)
{
    uint32_t *open = calloc((size_t)sequence->n + 1, sizeof(*open));
    int status;

    if (!open) {
        snprintf(detail, bytes, "out of memory");
        return FSDP_ERR_NOMEM;
    }
    status = check_nesting(sequence, n_modules, open, detail, bytes);
    free(open);
    return status;
}
