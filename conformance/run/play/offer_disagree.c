/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer_disagree.c - offers on which ranks disagree: rank 0 is told something
 * else than the others, or has no initial values where they have some.
 */
#include "run/play/offer.h"

#include <fsdp/arith/cast.h>

/* Rank 0 is told another fold. */
static void another_fold(struct driver *x, struct offer *o)
{
    if (x->env.rank == 0) {
        o->options.fold =
            o->options.fold == FSDP_FOLD_RANK ? FSDP_FOLD_RING : FSDP_FOLD_RANK;
    }
}

/* Whether as many units are ahead or in flight as there are: with one unit less
 * the rank would refuse by itself, without meeting another rank. */
static bool reaches_all_units(const struct driver *x, const struct offer *o)
{
    const uint32_t n = x->units->n_units;

    return o->options.prefetch_forward >= n ||
           o->options.prefetch_backward >= n ||
           o->options.reduces_in_flight >= n;
}

/* Rank 0 wraps its last two units as one; if there is only one unit, or all are
 * reached ahead, rank 0 has another fold instead. */
static void another_wrap(struct driver *x, struct offer *o)
{
    if (x->units->n_units < 2 || reaches_all_units(x, o)) {
        another_fold(x, o);
        return;
    }
    if (x->env.rank != 0) {
        return;
    }
    o->units.n_units--;
    for (uint32_t m = 0; m < x->model->n_modules; m++) {
        if (o->of_module[m] == o->units.n_units) {
            o->of_module[m]--;
        }
    }
    for (uint32_t p = 0;
         x->units->unit_of_parameter && p < x->model->n_parameters; p++) {
        if (o->unit_of[p] == o->units.n_units) {
            o->unit_of[p]--;
        }
        o->units.unit_of_parameter = o->unit_of;
    }
}

/* Whether p is a name of the last parameter. All its names are changed alike,
 * so that the ranks disagree and none is wrong by itself. */
static bool is_last(const struct driver *x, uint32_t p)
{
    const struct fsdp_model *m = x->model;

    return fsdp_original(m, p) == fsdp_original(m, m->n_parameters - 1);
}

/* The last parameter is frozen on rank 0 alone, or everywhere else. */
static void another_frozen(struct driver *x, struct offer *o)
{
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        o->flags[p] ^= x->env.rank == 0 && is_last(x, p) ? FSDP_FROZEN : 0;
    }
}

/* Rank 0 is told that nothing is tied. */
static void another_tie(struct driver *x, struct offer *o)
{
    for (uint32_t p = 0; x->env.rank == 0 && p < x->model->n_parameters; p++) {
        o->alias[p] = -1;
    }
}

/* Gives the last parameter another unit, on rank 0 alone. */
static void another_parameter_unit(struct driver *x, struct offer *o)
{
    if (x->env.rank == 0) {
        offer_move_to_another(x, o);
    }
}

static void another_ignored(struct driver *x, struct offer *o)
{
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        if (x->env.rank == 0 && is_last(x, p)) {
            o->unit_of[p] = FSDP_NO_UNIT;
            o->units.unit_of_parameter = o->unit_of;
        }
    }
}

/* Gives the last unit a divide factor on rank 0 that no other rank has. */
static void another_factor(struct driver *x, struct offer *o)
{
    const float *of = x->units->divide_factor;
    const uint32_t n = x->units->n_units;

    if (x->env.rank == 0) {
        for (uint32_t u = 0; of && u < n; u++) {
            o->of_unit[u].f = of[u];
        }
        o->of_unit[n - 1].f += 0.625f; /* no size of a world and no option is
                                          such a factor */
        o->units.divide_factor = &o->of_unit->f;
    }
}

/* Changes the last unit's own number on rank 0. */
static const uint32_t *another_of(const struct driver *x, struct offer *o,
                                  const uint32_t *of, uint32_t unit,
                                  uint32_t other)
{
    if (x->env.rank != 0) {
        return of;
    }
    for (uint32_t u = 0; u < x->units->n_units; u++) {
        o->of_unit[u].u = of ? of[u] : 0;
    }
    o->of_unit[unit].u = other;
    return &o->of_unit->u;
}

static const uint32_t *another_own(const struct driver *x, struct offer *o,
                                   const uint32_t *of, uint32_t last)
{
    return another_of(x, o, of, x->units->n_units - 1, last);
}

/* The dtype is the unit's, else the option's, else the usual one. If it is
 * float32 the other is bfloat16; if not, float32. */
static uint32_t other_dtype(const uint32_t *of, uint32_t unit, uint32_t option,
                            uint32_t usual)
{
    const uint32_t own = of ? of[unit] : FSDP_DTYPE_NONE;
    const uint32_t said = own != FSDP_DTYPE_NONE ? own : option;
    const uint32_t is = said != FSDP_DTYPE_NONE ? said : usual;

    return is == FSDP_DTYPE_F32 ? FSDP_DTYPE_BF16 : FSDP_DTYPE_F32;
}

static uint32_t other_dtype_of_last(const struct driver *x, const uint32_t *of,
                                    uint32_t option)
{
    return other_dtype(of, x->units->n_units - 1, option, FSDP_DTYPE_F32);
}

/* The last unit is gathered in float32 on rank 0, or in bfloat16 if float32 is
 * what it had. */
static void another_dtype(struct driver *x, struct offer *o)
{
    const uint32_t *const of = x->units->param_dtype;

    o->units.param_dtype = another_own(
        x, o, of, other_dtype_of_last(x, of, x->options.param_dtype));
}

/* The last unit's gradients are sent in another dtype on rank 0, and summed in
 * that as well: other sums would be another claim. */
static void another_reduce_dtype(struct driver *x, struct offer *o)
{
    const uint32_t *const of = x->units->reduce_dtype;

    o->units.reduce_dtype = another_own(
        x, o, of, other_dtype_of_last(x, of, x->options.reduce_dtype));
    if (x->env.rank == 0) {
        o->units.sum_dtype = o->units.reduce_dtype;
    }
}

static void another_grad_dtype(struct driver *x, struct offer *o)
{
    const uint32_t *const of = x->units->grad_dtype;

    o->units.grad_dtype = another_own(
        x, o, of, other_dtype_of_last(x, of, x->options.grad_dtype));
}

static void another_accumulate_dtype(struct driver *x, struct offer *o)
{
    const uint32_t *const of = x->units->accumulate_dtype;

    o->units.accumulate_dtype = another_own(
        x, o, of, other_dtype_of_last(x, of, x->options.accumulate_dtype));
}

/* On rank 0 the last buffer that is no integer and has a unit is lent in
 * another dtype. If there is none, rank 0 has another fold. */
static void another_buffer_dtype(struct driver *x, struct offer *o)
{
    const struct fsdp_model *const m = x->model;
    const uint32_t *const of = x->units->buffer_dtype;

    for (uint32_t b = m->n_buffers; b-- > 0;) {
        const uint32_t u = x->units->unit_of_module[m->buffer_module[b]];

        if (fsdp_is_float(m->buffer_dtype[b]) && u < x->units->n_units) {
            o->units.buffer_dtype =
                another_of(x, o, of, u,
                           other_dtype(of, u, x->options.buffer_dtype,
                                       m->buffer_dtype[b]));
            return;
        }
    }
    another_fold(x, o);
}

/* On rank 0 the last unit rests on the device, or else wholly on the host. */
static void another_place(struct driver *x, struct offer *o)
{
    const uint32_t n = x->units->n_units;
    const uint32_t said = x->units->offload ? x->units->offload[n - 1] : 0;
    const bool rests = said != 0 ? said != 2 : x->options.offload != 0;

    o->units.offload = another_own(x, o, x->units->offload, rests ? 2 : 1);
}

/* On rank 0 its gradients and states rest elsewhere than on the other ranks,
 * and its shards in the same place. */
static void another_kind(struct driver *x, struct offer *o)
{
    const uint32_t all = FSDP_OFFLOAD_OPTIMIZER | FSDP_OFFLOAD_PARAMS;
    const uint32_t n = x->units->n_units;
    const uint32_t said = x->units->offload ? x->units->offload[n - 1] : 0;
    uint32_t rests = said == 0 ? x->options.offload : said;

    if (rests == FSDP_OFFLOAD_ALL) {
        rests = all;
    }
    rests = said == 2 ? 0 : rests & all;
    o->units.offload =
        another_own(x, o, x->units->offload,
                    FSDP_OFFLOAD_OWN | (rests ^ FSDP_OFFLOAD_OPTIMIZER));
}

/* On rank 0 the last unit stays unsharded behind its forward, or no longer
 * does. That says nothing for a root that is kept; then rank 0 has another
 * fold. */
static void another_reshard(struct driver *x, struct offer *o)
{
    const uint32_t n = x->units->n_units;
    const uint32_t *of = x->units->reshard_after_forward;
    const bool reshards = of && of[n - 1] != 0
                              ? of[n - 1] == 1
                              : x->options.reshard_after_forward != 0;

    if (x->options.keep_root && x->units->unit_of_module[0] == n - 1) {
        another_fold(x, o);
    } else {
        o->units.reshard_after_forward =
            another_own(x, o, of, reshards ? 2 : 1);
    }
}

/* The last buffer has another name on rank 0. If there is none, rank 0 has
 * another fold. */
static void another_buffer(struct driver *x, struct offer *o)
{
    if (o->model.n_buffers == 0) {
        another_fold(x, o);
    } else if (x->env.rank == 0) {
        o->buffer[o->model.n_buffers - 1] = "of rank 0";
        o->model.buffer_name = o->buffer;
    }
}

/* Gives the rank initial values, or none; a serial run has them in any case. */
static void give_values(struct driver *x, struct offer *o, bool has)
{
    o->model.initial = has || x->serial ? x->model->initial : NULL;
}

static void no_values(struct driver *x, struct offer *o)
{
    give_values(x, o, false);
}

static void values_of_last(struct driver *x, struct offer *o)
{
    give_values(x, o, x->env.rank == x->env.world - 1);
    o->option = "initial";
}

/* All but the last rank have initial values; of two ranks only the second
 * one. */
static void another_values(struct driver *x, struct offer *o)
{
    if (x->env.world == 2) {
        values_of_last(x, o);
    } else {
        give_values(x, o, x->env.rank != x->env.world - 1);
        o->option = "initial";
    }
}

offer_change *const offer_disagree[SCRIPT_N_CALLS] = {
    [SCRIPT_CALL_RANKS_DISAGREE_ON_FOLD] = another_fold,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_UNITS] = another_wrap,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_FROZEN] = another_frozen,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_TIES] = another_tie,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_PARAMETER_UNITS] = another_parameter_unit,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_IGNORED] = another_ignored,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_FACTORS] = another_factor,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_BUFFERS] = another_buffer,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_DTYPES] = another_dtype,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_OFFLOAD] = another_place,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_RESHARD] = another_reshard,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_REDUCE_DTYPE] = another_reduce_dtype,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_GRAD_DTYPE] = another_grad_dtype,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_ACCUMULATE_DTYPE] = another_accumulate_dtype,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_BUFFER_DTYPE] = another_buffer_dtype,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_OFFLOAD_KINDS] = another_kind,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_VALUES] = another_values,
    [SCRIPT_CALL_LAST_RANK_HAS_VALUES] = values_of_last,
    [SCRIPT_CALL_UNCLAIMED_DEFERRED] = no_values,
};
