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

static struct requirement rows[MAX_REQUIREMENTS];
static const struct requirement *table[MAX_REQUIREMENTS + 1];

/* Inserts q into the n sorted requirements. */
static void insert(const struct requirement *q, uint32_t n)
{
    uint32_t i = n;

    for (; i > 0 && strcmp(table[i - 1]->id, q->id) > 0; i--) {
        table[i] = table[i - 1];
    }
    table[i] = q;
}

/* Fills in the fields of q that its row leaves out with those that its family
 * shares. */
static void complete(struct requirement *q, const struct requirement *shared)
{
    q->since = q->since ? q->since : shared->since;
    q->must = q->must || (shared->must && !q->should);
    q->level = q->level ? q->level : shared->level;
    q->needs = q->needs ? q->needs : shared->needs;
    q->claim = q->claim ? q->claim : shared->claim;
    q->applies = q->applies ? q->applies : shared->applies;
    q->looked_at = q->looked_at ? q->looked_at : shared->looked_at;
    q->check = q->check ? q->check : shared->check;
}

static void put_together(void)
{
    static const struct requirement nothing;
    uint32_t n = 0;

    for (uint32_t i = 0; i < N_FAMILIES; i++) {
        const bool shares = !families[i]->id;
        const struct requirement *shared = shares ? families[i] : &nothing;

        for (const struct requirement *q = families[i] + shares; q->id; q++) {
            if (n == MAX_REQUIREMENTS) {
                abort(); /* adding one more must not go unnoticed */
            }
            rows[n] = *q;
            complete(&rows[n], shared);
            insert(&rows[n], n);
            n++;
        }
    }
}

const struct requirement *const *requirement_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, put_together);
    return table;
}
