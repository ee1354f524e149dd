/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_groups.c - parameter groups: told when sharding, by an array that is
 * there for the call only, and lies elsewhere on every rank; then by numbers
 * of their own in each step.
 */
#include "run/drive.h"

#include <stdlib.h>
#include <string.h>

int drive_shard_model(struct driver *x)
{
    const struct run_case *c = x->d->c;
    struct fsdp_options options = x->options;
    const uint32_t n = x->told.n_parameters;
    const uint32_t elsewhere = x->env.rank * 4; /* another address */
    uint32_t *made = calloc((size_t)n + elsewhere + 1, sizeof *made);
    uint32_t *group = made ? made + elsewhere : NULL;
    int status;

    if (!group) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < n; p++) {
        group[p] = case_group_of(c, p);
    }
    if (case_groups(c) > 1) {
        options.n_groups = case_groups(c);
        options.group_of_parameter = group;
    }
    status =
        x->engine.shard(&x->env, &x->told, x->units, &options, &x->sharded);
    memset(group, 0xff, n * sizeof *group); /* who still reads it is wrong */
    free(made);
    return status;
}

int drive_step_groups(struct driver *x, struct fsdp_step *step)
{
    const struct run_case *c = x->d->c;
    float lr[CASE_MAX_GROUPS];
    float decay[CASE_MAX_GROUPS];
    int status;

    step->n_groups = case_groups(c);
    for (uint32_t g = 0; g < step->n_groups; g++) {
        lr[g] = case_group_lr(c, g);
        decay[g] = case_group_decay(c, g);
    }
    step->lr = lr;
    step->weight_decay = decay;
    status = x->engine.step(x->sharded, step);
    step->lr = step->weight_decay = NULL;
    return status;
}
