/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_core.h - what the files of the core share. Private to them.
 */
#ifndef FSDP_CTS_MANIFEST_CORE_H
#define FSDP_CTS_MANIFEST_CORE_H

#include "cases/manifest_axes.h"

struct core {
    struct manifest_axes axes;
    bool own; /* the suite's own world sizes, not asked ones */
    struct manifest_world first; /* where one world is enough */
    struct case_list *list;
};

/* World i of the axes, or NULL. */
const struct manifest_world *core_world(const struct core *core, uint32_t i);
/* Whether it has as many dimensions as the strategy. */
bool core_fits(uint32_t strategy, const struct manifest_world *world);
/* Whether a world is small for a strategy, and so cheap; asked worlds all
 * are, as there may be no other. */
bool core_is_small(const struct core *core, const struct manifest_world *world,
                   uint32_t ranks);

/* The miniature of seed 003. */
void core_start_seed(uint32_t strategy, struct manifest_world world,
                     struct run_case *c);
/* Prefetch forward and backward, reductions in flight; and how far ahead of
 * its strict twin a case is to run. */
void core_run_ahead(struct run_case *c, const uint32_t ahead[3]);
extern const uint32_t core_ahead[3][3];

/* manifest_layouts.c */
int core_add_rows(const struct core *core);
int core_add_both_layouts(const struct core *core);
/* manifest_resumed.c */
int core_add_checkpoints(const struct core *core);

#endif
