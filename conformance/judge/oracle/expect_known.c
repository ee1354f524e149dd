/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_known.c - what the oracle knows without its walk: for which cases,
 * models and units it has rules; how many elements of the optimizer's states
 * each shard has; and, for a script that freezes and thaws parameters, what is
 * expected after each such action.
 */
#include "judge/oracle/expect_walk.h"
#include "judge/oracle/expect_walk_units.h"

#include <stdlib.h>
#include <string.h>

/* ---- What there are rules for -------------------------------------------- */

/* Whether the oracle has rules for this case. */
static bool case_is_known(const struct run_case *c)
{
    return c->ranks >= 1 && c->ranks <= EXPECT_MAX_RANKS && c->replicas >= 1 &&
           c->ranks % c->replicas == 0 &&
           c->layout <= FSDP_LAYOUT_PER_PARAMETER &&
           c->fold <= FSDP_FOLD_TREE && c->microbatches >= 1 &&
           c->microbatches <= CASE_MAX_MICROBATCHES &&
           c->optimizer <= FSDP_OPTIMIZER_ADAMW &&
           c->scenario < CASE_N_SCENARIOS;
}

/* Another name must be that of an earlier parameter, in the same unit. */
static bool tie_is_known(const struct fsdp_model *model,
                         const struct fsdp_units *units, uint32_t p)
{
    const int64_t original = model->parameter_alias[p];

    return original < 0 ||
           (original < p && model->parameter_alias[original] < 0 &&
            fsdp_numel(model, (uint32_t)original) == fsdp_numel(model, p) &&
            fsdp_unit_of(model, units, (uint32_t)original) ==
                fsdp_unit_of(model, units, p));
}

/* Whether p is in a unit; it may be in none only if the parameter itself says
 * so. */
static bool unit_is_known(const struct fsdp_model *model,
                          const struct fsdp_units *units, uint32_t p)
{
    const uint32_t u = fsdp_unit_of(model, units, p);

    return u < units->n_units ||
           (u == FSDP_NO_UNIT && units->unit_of_parameter);
}

static bool model_is_known(const struct fsdp_model *model,
                           const struct fsdp_units *units)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint32_t m = model->parameter_module[p];

        if (m >= model->n_modules || !tie_is_known(model, units, p) ||
            model->parameter_dtype[p] != FSDP_DTYPE_F32 ||
            model->parameter_n_dims[p] > FSDP_MAX_DIMS ||
            !unit_is_known(model, units, p)) {
            return false;
        }
    }
    for (uint32_t m = 0; m < model->n_modules; m++) {
        if (units->unit_of_module[m] != FSDP_NO_UNIT &&
            units->unit_of_module[m] >= units->n_units) {
            return false;
        }
    }
    return model->n_modules >= 1 && model->n_sequences >= 1;
}

bool expect_is_known(const struct run_case *c, const struct fsdp_model *model,
                     const struct fsdp_units *units)
{
    return case_is_known(c) && model_is_known(model, units);
}

/* ---- States -------------------------------------------------------------- */

/* Elements of one state that shard s has for unit u. */
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

/* In units whose states are on the host, or in all others: by how many elements
 * shard s has fewer than the shard that has most of each. */
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

/* Finds the shard that has most states of all units together. */
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

/* Bytes of storage of all states that shard s has on the device; each state of
 * a unit takes whole lines. */
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

/* ---- Other parameters ---------------------------------------------------- */

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = calloc(n + 1, size);

    if (to && n > 0) {
        memcpy(to, from, n * size);
    }
    return to;
}

static void release_set(struct expect *e)
{
    free(e->unit);
    free(e->grad_offset);
    free(e->stepped);
    free(e->has_gradient);
    free(e->trained);
    free(e->frozen);
    free(e);
}

/* A copy that shares all that does not depend on what is trained. */
static struct expect *copy_set(const struct expect *from)
{
    const size_t n = from->model->n_parameters;
    const size_t units = from->units->n_units;
    struct expect *e = calloc(1, sizeof(*e));

    if (!e) {
        return NULL;
    }
    *e = *from;
    e->unit = copy_of(from->unit, units, sizeof(*e->unit));
    e->grad_offset = copy_of(from->grad_offset, n, sizeof(*e->grad_offset));
    e->stepped = copy_of(from->stepped, n, sizeof(*e->stepped));
    e->has_gradient = calloc(n + 1, sizeof(*e->has_gradient));
    e->trained = calloc(units + 1, sizeof(*e->trained));
    e->frozen = copy_of(from->frozen, n, sizeof(*e->frozen));
    if (!e->unit || !e->grad_offset || !e->stepped || !e->has_gradient ||
        !e->trained || !e->frozen) {
        release_set(e);
        return NULL;
    }
    return e;
}

int expect_trains_others(struct expect *base, const struct expect *from,
                         uint32_t parameter, bool frozen,
                         const struct expect **out)
{
    struct expect **grown = realloc(base->set, (base->n_sets + (size_t)1) *
                                                   sizeof(struct expect *));
    struct expect *e;

    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    base->set = grown;
    e = copy_set(from);
    if (!e) {
        return FSDP_ERR_NOMEM;
    }
    base->set[base->n_sets++] = e;
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (parameter == SCRIPT_ALL ||
            expect_original(e, p) == expect_original(e, parameter)) {
            e->frozen[p] = frozen || expect_is_ignored(e, p);
        }
    }
    expect_lay_out_again(e);
    expect_find_trained(e, base->idle);
    *out = e;
    return FSDP_OK;
}

const struct expect *expect_at(const struct expect *e, uint32_t i)
{
    return i < e->n_events && e->event[i].as ? e->event[i].as : e;
}

void expect_release_sets(struct expect *e)
{
    for (uint32_t i = 0; i < e->n_sets; i++) {
        release_set(e->set[i]);
    }
    free(e->set);
}
