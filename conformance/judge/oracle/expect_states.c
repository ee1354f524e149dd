/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_states.c - the optimizer's states: how many elements each shard has of
 * them, which one has most, and what the others have less.
 */
#include "judge/oracle/expect_walk.h"
#include "judge/oracle/expect_walk_units.h"

/* A state of unit u in shard s. */
static uint64_t state_of(const struct expect *e, uint32_t u, uint32_t s)
{
    const bool flat = e->options.layout == FSDP_LAYOUT_FLAT;
    uint64_t n = 0;

    if (!e->unit[u].has_holes && (flat || !e->late_states)) {
        return e->unit[u].grad_chunk;
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->unit_of_parameter[p] == u && expect_is_trainable(e, p) &&
            expect_original(e, p) == p) {
            n += expect_share(e, p, s);
        }
    }
    return n;
}

/* Of all units. */
static uint64_t states_of(const struct expect *e, uint32_t s)
{
    uint64_t n = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        n += state_of(e, u, s);
    }
    return n;
}

/* Of those whose states are on the host, or of those whose are not: elements
 * that shard s has less than the one that has most of all. */
static uint64_t less_of(const struct expect *e, uint32_t s, bool host)
{
    uint64_t less = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (e->unit[u].step_on_host == host) {
            less += e->unit[u].state - state_of(e, u, s);
        }
    }
    return less;
}

/* Those of the shard that has most of all units together. */
void expect_find_states(struct expect *e)
{
    uint32_t most = 0;

    e->states = 0;
    for (uint32_t s = 1; s < e->shards; s++) {
        most = states_of(e, s) > states_of(e, most) ? s : most;
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        e->unit[u].state = state_of(e, u, most);
        e->states += e->unit[u].state;
    }
    e->fullest = most;
}

uint64_t expect_states_less(const struct expect *e, uint32_t k)
{
    return less_of(e, k % e->shards, false) * sizeof(float) *
           expect_walk_states(e);
}

uint64_t expect_rest_of(const struct expect *e, uint32_t k, uint32_t kind,
                        const uint64_t most[static RECORD_N_KINDS])
{
    const bool host = kind == RECORD_HOST + FSDP_OPTIM;
    const bool begun = most[FSDP_OPTIM] + most[RECORD_HOST + FSDP_OPTIM] > 0;

    return begun && (kind == FSDP_OPTIM || host)
               ? most[kind] - less_of(e, k % e->shards, host) * sizeof(float) *
                                  expect_walk_states(e)
               : most[kind];
}

/* Of all states of shard s on the device: bytes, each state of a unit in whole
 * lines. */
static uint64_t states_stored(const struct expect *e, uint32_t s)
{
    uint64_t bytes = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        bytes += e->unit[u].step_on_host
                     ? 0
                     : expect_walk_in_lines(state_of(e, u, s) * sizeof(float));
    }
    return bytes * expect_walk_states(e);
}

uint64_t expect_peak_storage(const struct expect *e, uint32_t k)
{
    return e->peak_storage - states_stored(e, e->fullest) +
           states_stored(e, k % e->shards);
}
