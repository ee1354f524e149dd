/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement_table.c - the requirements of all families in one table, sorted
 * by id: the order of lists and reports, whatever family a row stands in.
 */
#include "requirements/families.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct requirement *const families[] = {
    run_requirements,           layout_requirements,
    gather_requirements,        gradient_requirements,
    reduce_requirements,        clip_requirements,
    step_requirements,          checkpoint_requirements,
    curve_requirements,         invariance_requirements,
    comm_requirements,          comm_step_requirements,
    ahead_requirements,         memory_requirements,
    memory_peak_requirements,   private_requirements,
    error_requirements,         error_options_requirements,
    script_requirements,        script_answers_requirements,
    script_moves_requirements,  recompute_requirements,
    frozen_requirements,        thaw_requirements,
    thaw_moves_requirements,    step_in_backward_requirements,
    offload_requirements,       assign_requirements,
    deferred_requirements,      lenient_requirements,
    send_requirements,          summon_requirements,
    tied_requirements,          parameter_unit_requirements,
    buffer_requirements,        buffer_save_requirements,
    mixed_requirements,         mixed_sum_requirements,
    scale_requirements,         control_requirements,
    control_copy_requirements,  control_factor_requirements,
    factor_requirements,        group_requirements,
    carried_requirements,       carried_values_requirements,
    carried_moves_requirements, carried_passes_requirements,
    carried_steps_requirements, mixed_points_requirements,
};

enum {
    N_FAMILIES = sizeof(families) / sizeof(families[0]),
    MAX_REQUIREMENTS = 1024
};

static const struct requirement *table[MAX_REQUIREMENTS + 1];

/* Puts q among the n that are there. */
static void insert(const struct requirement *q, uint32_t n)
{
    uint32_t i = n;

    if (n == MAX_REQUIREMENTS) {
        abort(); /* whoever adds one more sees it at once */
    }
    for (; i > 0 && strcmp(table[i - 1]->id, q->id) > 0; i--) {
        table[i] = table[i - 1];
    }
    table[i] = q;
}

static void put_together(void)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < N_FAMILIES; i++) {
        for (const struct requirement *q = families[i]; q->id; q++) {
            insert(q, n++);
        }
    }
}

const struct requirement *const *requirement_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, put_together);
    return table;
}
