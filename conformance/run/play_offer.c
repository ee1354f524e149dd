/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_offer.c - models that are offered to be sharded in a way that must be
 * refused: options that do not fit, and ranks that do not agree.
 */
#include "run/engine_claims.h"
#include "run/play.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SEQUENCES = 8 /* of a model that is offered */
};

/* What is offered; an offer changes something in its copies. */
struct offer {
    struct fsdp_env env;
    struct fsdp_mesh mesh;
    uint32_t extent[2];
    struct fsdp_model model;
    struct fsdp_units units;
    uint32_t *flags; /* [n_parameters], of the model, as all that
                      * follows up to `dtype` */
    int32_t *alias;
    uint64_t (*shape)[FSDP_MAX_DIMS];
    uint32_t *n_dims, *dtype;
    uint32_t *of_module;    /* [n_modules], of units */
    uint32_t *of_parameter; /* [n_parameters]: groups */
    uint32_t *unit_of;      /* [n_parameters], of units */
    uint32_t *of_unit;      /* [n_units], 0: dtypes */
    float *factor_of_unit;  /* [n_units], 0 */
    const char **buffer;    /* [n_buffers]: names */
    struct fsdp_options options;
    const char *option;  /* NULL, or what the refusal must name */
    const char *tied[2]; /* the same of two parameters */
    /* The training sequence, with four points more; and those of the model, of
     * which it is one. */
    struct fsdp_sequence trains;
    uint32_t *point, *module;
    const struct fsdp_sequence *sequence[MOST_SEQUENCES];
};

/* ---- What is wrong ------------------------------------------------------ */

static void unknown_layout(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.layout = 99;
}

static void unknown_optimizer(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.optimizer = 99;
}

static void unknown_fold(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.fold = 99;
}

static void negative_divide_factor(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.divide_factor = -2.0f;
}

static void nan_divide_factor(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.divide_factor = NAN;
}

static void infinite_divide_factor(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.divide_factor = INFINITY;
}

static void negative_predivide_factor(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.predivide_factor = -2.0f;
}

static void nan_predivide_factor(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.predivide_factor = NAN;
}

/* Of the last unit only. */
static void negative_factor_of_unit(struct driver *x, struct offer *o)
{
    o->factor_of_unit[x->units->n_units - 1] = -2.0f;
    o->units.divide_factor = o->factor_of_unit;
}

static void infinite_predivide_of_unit(struct driver *x, struct offer *o)
{
    o->factor_of_unit[x->units->n_units - 1] = INFINITY;
    o->units.predivide_factor = o->factor_of_unit;
}

static void unclaimed_dtype(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.param_dtype = FSDP_DTYPE_BF16;
}

static void unclaimed_param_f16(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.param_dtype = FSDP_DTYPE_F16;
}

static void unclaimed_reduce_bf16(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.reduce_dtype = FSDP_DTYPE_BF16;
}

static void unclaimed_reduce_f16(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.reduce_dtype = FSDP_DTYPE_F16;
}

/* Of the last unit only. */
static void unclaimed_param_of_unit(struct driver *x, struct offer *o)
{
    o->of_unit[x->units->n_units - 1] = FSDP_DTYPE_BF16;
    o->units.param_dtype = o->of_unit;
}

static void unclaimed_reduce_of_unit(struct driver *x, struct offer *o)
{
    o->of_unit[x->units->n_units - 1] = FSDP_DTYPE_BF16;
    o->units.reduce_dtype = o->of_unit;
}

/* The last parameter only. */
static void unclaimed_frozen(struct driver *x, struct offer *o)
{
    o->flags[x->model->n_parameters - 1] |= FSDP_FROZEN;
}

static int no_initial_buffer(void *context, uint32_t b, uint64_t first,
                             uint64_t n, void *out)
{
    (void)context;
    (void)b;
    (void)first;
    memset(out, 0, n * sizeof(float));
    return FSDP_OK;
}

/* The model has one, of one element. */
static void unclaimed_buffers(struct driver *x, struct offer *o)
{
    static const char *const name[] = {"offered"};
    static const uint32_t module[] = {0};
    static const uint32_t dtype[] = {FSDP_DTYPE_F32};
    static const uint32_t flags[] = {0};
    static const uint64_t numel[] = {1};

    (void)x;
    o->model.n_buffers = 1;
    o->model.buffer_name = name;
    o->model.buffer_module = module;
    o->model.buffer_dtype = dtype;
    o->model.buffer_flags = flags;
    o->model.buffer_numel = numel;
    o->model.initial_buffer = no_initial_buffer;
}

static void unknown_buffer_dtype(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.buffer_dtype = 99;
}

static void offload(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.offload = FSDP_OFFLOAD_ALL;
}

/* Of the last unit only. */
static void offload_of_unit(struct driver *x, struct offer *o)
{
    o->of_unit[x->units->n_units - 1] = FSDP_OFFLOAD_ALL;
    o->units.offload = o->of_unit;
}

static void unknown_offload(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.offload = 1u << 9;
}

/* Not its own, and no other number that a unit may say. */
static void unknown_offload_of_unit(struct driver *x, struct offer *o)
{
    offload_of_unit(x, o);
    o->of_unit[x->units->n_units - 1] = FSDP_OFFLOAD_PARAMS;
}

static void offload_no_host(struct driver *x, struct offer *o)
{
    offload(x, o);
    o->env.host = NULL;
}

static void offload_of_unit_no_host(struct driver *x, struct offer *o)
{
    offload_of_unit(x, o);
    o->env.host = NULL;
}

/* All of it is one unit, if two parameters are not in one. */
static void join(struct driver *x, struct offer *o, uint32_t p, uint32_t q)
{
    const uint32_t *module = x->model->parameter_module;

    if (o->of_module[module[p]] == o->of_module[module[q]]) {
        return;
    }
    for (uint32_t m = 0; m < x->model->n_modules; m++) {
        o->of_module[m] = o->of_module[m] == FSDP_NO_UNIT ? FSDP_NO_UNIT : 0;
    }
    o->units.n_units = 1;
}

/* Parameter p is told to be another name of q, and is like it. */
static void tie(struct driver *x, struct offer *o, uint32_t p, uint32_t q)
{
    o->alias[p] = (int32_t)q;
    memcpy(o->shape[p], o->shape[q], sizeof(*o->shape));
    o->n_dims[p] = o->n_dims[q];
    o->flags[p] = o->flags[q];
    o->dtype[p] = o->dtype[q];
    o->tied[0] = x->model->parameter_name[p];
    o->tied[1] = x->model->parameter_name[q];
}

/* The last parameter to the first, which may be itself. */
static void join_and_tie(struct driver *x, struct offer *o)
{
    join(x, o, x->model->n_parameters - 1, 0);
    tie(x, o, x->model->n_parameters - 1, 0);
}

static void unclaimed_shared(struct driver *x, struct offer *o)
{
    join_and_tie(x, o);
    o->tied[0] = o->tied[1] = NULL;
}

static void tied_across_units(struct driver *x, struct offer *o)
{
    const uint32_t p = x->model->n_parameters - 1;
    const uint32_t first = o->of_module[x->model->parameter_module[0]];
    uint32_t *own = &o->of_module[x->model->parameter_module[p]];

    tie(x, o, p, 0);
    if (*own == first) {
        *own = o->units.n_units > 1 ? (first + 1) % o->units.n_units
                                    : FSDP_NO_UNIT;
    }
}

/* To the last but one, which is the first one's. */
static void tied_to_tied(struct driver *x, struct offer *o)
{
    const uint32_t p = x->model->n_parameters - 1;
    const uint32_t between = p > 0 ? p - 1 : 0;

    join(x, o, between, 0);
    join(x, o, p, 0);
    tie(x, o, between, 0);
    tie(x, o, p, between);
}

static void tied_to_later(struct driver *x, struct offer *o)
{
    join(x, o, 0, x->model->n_parameters - 1);
    tie(x, o, 0, x->model->n_parameters - 1);
    o->alias[x->model->n_parameters - 1] = x->model->n_parameters > 1 ? -1 : 0;
}

static void tied_other_shape(struct driver *x, struct offer *o)
{
    join_and_tie(x, o);
    o->shape[x->model->n_parameters - 1][0]++;
}

static void tied_other_dtype(struct driver *x, struct offer *o)
{
    join_and_tie(x, o);
    o->dtype[x->model->n_parameters - 1] = FSDP_DTYPE_BF16;
    o->tied[0] = o->tied[1] = NULL; /* or it is another refusal */
}

static void tied_other_flags(struct driver *x, struct offer *o)
{
    join_and_tie(x, o);
    o->flags[x->model->n_parameters - 1] ^= FSDP_NO_DECAY;
}

/* Rank 0 is told that nothing is tied. */
static void another_tie(struct driver *x, struct offer *o)
{
    for (uint32_t p = 0; x->env.rank == 0 && p < x->model->n_parameters; p++) {
        o->alias[p] = -1;
    }
}

static void unknown_param_dtype(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.param_dtype = 99;
}

static void unknown_reduce_dtype(struct driver *x, struct offer *o)
{
    (void)x;
    o->options.reduce_dtype = 99;
}

static void unit_out_of_range(struct driver *x, struct offer *o)
{
    o->of_module[x->model->n_modules - 1] = x->units->n_units + 7;
}

static void group_out_of_range(struct driver *x, struct offer *o)
{
    o->of_parameter[x->model->n_parameters - 1] = 2;
    o->options.n_groups = 2;
    o->options.group_of_parameter = o->of_parameter;
}

/* Further ahead than there are units. */
static void prefetch_forward_beyond(struct driver *x, struct offer *o)
{
    o->options.prefetch_forward = x->units->n_units + 1;
    o->option = "prefetch_forward";
}

static void prefetch_backward_beyond(struct driver *x, struct offer *o)
{
    o->options.prefetch_backward = x->units->n_units + 1;
    o->option = "prefetch_backward";
}

static void reduces_beyond(struct driver *x, struct offer *o)
{
    o->options.reduces_in_flight = x->units->n_units + 1;
    o->option = "reduces_in_flight";
}

static void mesh_does_not_divide(struct driver *x, struct offer *o)
{
    (void)x;
    o->extent[0]++;
}

static void shards_do_not_divide(struct driver *x, struct offer *o)
{
    (void)x;
    o->extent[1]++;
}

/* Rank 0 is told another fold. */
static void another_fold(struct driver *x, struct offer *o)
{
    if (x->env.rank == 0) {
        o->options.fold =
            o->options.fold == FSDP_FOLD_RANK ? FSDP_FOLD_RING : FSDP_FOLD_RANK;
    }
}

/* With one unit less it would be refused by the rank alone, which meets no
 * other then. */
static bool reaches_all_units(const struct driver *x, const struct offer *o)
{
    const uint32_t n = x->units->n_units;

    return o->options.prefetch_forward >= n ||
           o->options.prefetch_backward >= n ||
           o->options.reduces_in_flight >= n;
}

/* Rank 0 wraps its last two units as one; where there is one alone, or as many
 * are reached ahead, its fold is another. */
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

/* ---- Units of parameters ------------------------------------------------ */

/* The last one's: another unit, or none. */
static void move_last(struct driver *x, struct offer *o, uint32_t unit)
{
    o->unit_of[x->model->n_parameters - 1] = unit;
    o->units.unit_of_parameter = o->unit_of;
}

/* Where there is one alone, it stays. */
static void move_to_another(struct driver *x, struct offer *o)
{
    const uint32_t last = x->model->n_parameters - 1;

    move_last(x, o, (o->unit_of[last] + 1) % x->units->n_units);
}

static void unclaimed_parameter_units(struct driver *x, struct offer *o)
{
    move_to_another(x, o);
}

static void unclaimed_ignored(struct driver *x, struct offer *o)
{
    move_last(x, o, FSDP_NO_UNIT);
}

static void parameter_unit_out_of_range(struct driver *x, struct offer *o)
{
    move_last(x, o, x->units->n_units + 7);
    /* Who claims none refuses any, whatever its number is. */
    if (engine_claims(&x->engine, "parameter-units")) {
        o->option = x->model->parameter_name[x->model->n_parameters - 1];
    }
}

/* Of what is stored once, one name is in a unit and the other is not. */
static void tied_to_ignored(struct driver *x, struct offer *o)
{
    join_and_tie(x, o);
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        o->unit_of[p] = o->of_module[x->model->parameter_module[p]];
    }
    move_last(x, o, FSDP_NO_UNIT);
}

/* On rank 0 alone. */
static void another_parameter_unit(struct driver *x, struct offer *o)
{
    if (x->env.rank == 0) {
        move_to_another(x, o);
    }
}

/* What is one with the last parameter: where ranks are to disagree, none of
 * them is to be wrong by itself. */
static bool is_last(const struct driver *x, uint32_t p)
{
    const struct fsdp_model *m = x->model;

    return fsdp_original(m, p) == fsdp_original(m, m->n_parameters - 1);
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

/* An engine that was built before there were units of parameters reads none,
 * and one from before `assign` calls an `initial` that is NULL. */
static bool reads_it(const struct driver *x, uint32_t call)
{
    if (call == SCRIPT_CALL_UNCLAIMED_DEFERRED) {
        return x->engine.size > offsetof(struct fsdp_engine, assign);
    }
    return x->engine.size > offsetof(struct fsdp_engine, reshard) ||
           (call != SCRIPT_CALL_UNCLAIMED_PARAMETER_UNITS &&
            call != SCRIPT_CALL_UNCLAIMED_IGNORED &&
            call != SCRIPT_CALL_TIED_TO_IGNORED &&
            call != SCRIPT_CALL_PARAMETER_UNIT_OUT_OF_RANGE);
}

/* Behind the last point of the training sequence the module of the last
 * parameter has another forward and another backward: its unit has two backward
 * windows. */
static void two_windows(struct driver *x, struct offer *o)
{
    static const uint32_t more[] = {FSDP_PRE_FORWARD, FSDP_POST_FORWARD,
                                    FSDP_PRE_BACKWARD, FSDP_POST_BACKWARD};
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_TRAIN];

    memcpy(o->point, q->point, q->n * sizeof(*o->point));
    memcpy(o->module, q->module, q->n * sizeof(*o->module));
    for (uint32_t i = 0; i < 4; i++) {
        o->point[q->n + i] = more[i];
        o->module[q->n + i] =
            x->model->parameter_module[x->model->n_parameters - 1];
    }
    o->trains = *q;
    o->trains.n = q->n + 4;
    o->trains.point = o->point;
    o->trains.module = o->module;
    for (uint32_t i = 0; i < x->model->n_sequences && i < MOST_SEQUENCES; i++) {
        o->sequence[i] =
            i == FSDP_SEQUENCE_TRAIN ? &o->trains : x->model->sequence[i];
    }
    o->model.sequence = o->sequence;
}

/* The last parameter is frozen on rank 0 alone, or everywhere else. */
static void another_frozen(struct driver *x, struct offer *o)
{
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        o->flags[p] ^= x->env.rank == 0 && is_last(x, p) ? FSDP_FROZEN : 0;
    }
}

/* The last unit's divide factor on rank 0 is none that another has. */
static void another_factor(struct driver *x, struct offer *o)
{
    const float *of = x->units->divide_factor;
    const uint32_t n = x->units->n_units;

    if (x->env.rank == 0) {
        for (uint32_t u = 0; of && u < n; u++) {
            o->factor_of_unit[u] = of[u];
        }
        o->factor_of_unit[n - 1] += 0.625f; /* no world, no option is that */
        o->units.divide_factor = o->factor_of_unit;
    }
}

/* The last buffer has another name on rank 0. Where there is none, its fold is
 * another. */
static void another_buffer(struct driver *x, struct offer *o)
{
    if (o->model.n_buffers == 0) {
        another_fold(x, o);
    } else if (x->env.rank == 0) {
        o->buffer[o->model.n_buffers - 1] = "of rank 0";
        o->model.buffer_name = o->buffer;
    }
}

/* Who plays all ranks has them in any case. */
static void give_values(struct driver *x, struct offer *o, bool has)
{
    o->model.initial = has || x->serial ? x->model->initial : NULL;
}

static void unclaimed_deferred(struct driver *x, struct offer *o)
{
    give_values(x, o, false);
}

static void values_of_last(struct driver *x, struct offer *o)
{
    give_values(x, o, x->env.rank == x->env.world - 1);
    o->option = "initial";
}

/* All but the last rank have initial values; of two ranks the second one. */
static void another_values(struct driver *x, struct offer *o)
{
    if (x->env.world == 2) {
        values_of_last(x, o);
    } else {
        give_values(x, o, x->env.rank != x->env.world - 1);
        o->option = "initial";
    }
}

static void (*const offers[SCRIPT_N_CALLS])(struct driver *, struct offer *) = {
    [SCRIPT_CALL_UNKNOWN_LAYOUT] = unknown_layout,
    [SCRIPT_CALL_UNKNOWN_OPTIMIZER] = unknown_optimizer,
    [SCRIPT_CALL_UNKNOWN_FOLD] = unknown_fold,
    [SCRIPT_CALL_NEGATIVE_DIVIDE_FACTOR] = negative_divide_factor,
    [SCRIPT_CALL_NAN_DIVIDE_FACTOR] = nan_divide_factor,
    [SCRIPT_CALL_UNCLAIMED_DTYPE] = unclaimed_dtype,
    [SCRIPT_CALL_UNIT_OUT_OF_RANGE] = unit_out_of_range,
    [SCRIPT_CALL_GROUP_OUT_OF_RANGE] = group_out_of_range,
    [SCRIPT_CALL_PREFETCH_FORWARD_BEYOND] = prefetch_forward_beyond,
    [SCRIPT_CALL_PREFETCH_BACKWARD_BEYOND] = prefetch_backward_beyond,
    [SCRIPT_CALL_REDUCES_BEYOND] = reduces_beyond,
    [SCRIPT_CALL_MESH_DOES_NOT_DIVIDE] = mesh_does_not_divide,
    [SCRIPT_CALL_SHARDS_DO_NOT_DIVIDE] = shards_do_not_divide,
    [SCRIPT_CALL_UNCLAIMED_PARAM_F16] = unclaimed_param_f16,
    [SCRIPT_CALL_UNCLAIMED_REDUCE_BF16] = unclaimed_reduce_bf16,
    [SCRIPT_CALL_UNCLAIMED_REDUCE_F16] = unclaimed_reduce_f16,
    [SCRIPT_CALL_UNCLAIMED_PARAM_OF_UNIT] = unclaimed_param_of_unit,
    [SCRIPT_CALL_UNCLAIMED_REDUCE_OF_UNIT] = unclaimed_reduce_of_unit,
    [SCRIPT_CALL_UNKNOWN_PARAM_DTYPE] = unknown_param_dtype,
    [SCRIPT_CALL_UNKNOWN_REDUCE_DTYPE] = unknown_reduce_dtype,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_FOLD] = another_fold,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_UNITS] = another_wrap,
    [SCRIPT_CALL_INFINITE_DIVIDE_FACTOR] = infinite_divide_factor,
    [SCRIPT_CALL_NEGATIVE_PREDIVIDE_FACTOR] = negative_predivide_factor,
    [SCRIPT_CALL_NAN_PREDIVIDE_FACTOR] = nan_predivide_factor,
    [SCRIPT_CALL_NEGATIVE_FACTOR_OF_UNIT] = negative_factor_of_unit,
    [SCRIPT_CALL_INFINITE_PREDIVIDE_OF_UNIT] = infinite_predivide_of_unit,
    [SCRIPT_CALL_UNCLAIMED_FROZEN] = unclaimed_frozen,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_FROZEN] = another_frozen,
    [SCRIPT_CALL_UNCLAIMED_SHARED] = unclaimed_shared,
    [SCRIPT_CALL_TIED_ACROSS_UNITS] = tied_across_units,
    [SCRIPT_CALL_TIED_TO_TIED] = tied_to_tied,
    [SCRIPT_CALL_TIED_TO_LATER] = tied_to_later,
    [SCRIPT_CALL_TIED_OTHER_SHAPE] = tied_other_shape,
    [SCRIPT_CALL_TIED_OTHER_DTYPE] = tied_other_dtype,
    [SCRIPT_CALL_TIED_OTHER_FLAGS] = tied_other_flags,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_TIES] = another_tie,
    [SCRIPT_CALL_UNCLAIMED_PARAMETER_UNITS] = unclaimed_parameter_units,
    [SCRIPT_CALL_UNCLAIMED_IGNORED] = unclaimed_ignored,
    [SCRIPT_CALL_PARAMETER_UNIT_OUT_OF_RANGE] = parameter_unit_out_of_range,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_PARAMETER_UNITS] = another_parameter_unit,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_IGNORED] = another_ignored,
    [SCRIPT_CALL_UNCLAIMED_BUFFERS] = unclaimed_buffers,
    [SCRIPT_CALL_UNKNOWN_BUFFER_DTYPE] = unknown_buffer_dtype,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_FACTORS] = another_factor,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_BUFFERS] = another_buffer,
    [SCRIPT_CALL_BACKWARD_STEP_WINDOWS] = two_windows,
    [SCRIPT_CALL_UNCLAIMED_OFFLOAD] = offload,
    [SCRIPT_CALL_UNCLAIMED_OFFLOAD_OF_UNIT] = offload_of_unit,
    [SCRIPT_CALL_UNKNOWN_OFFLOAD] = unknown_offload,
    [SCRIPT_CALL_UNKNOWN_OFFLOAD_OF_UNIT] = unknown_offload_of_unit,
    [SCRIPT_CALL_OFFLOAD_NO_HOST] = offload_no_host,
    [SCRIPT_CALL_OFFLOAD_OF_UNIT_NO_HOST] = offload_of_unit_no_host,
    [SCRIPT_CALL_TIED_TO_IGNORED] = tied_to_ignored,
    [SCRIPT_CALL_RANKS_DISAGREE_ON_VALUES] = another_values,
    [SCRIPT_CALL_LAST_RANK_HAS_VALUES] = values_of_last,
    [SCRIPT_CALL_UNCLAIMED_DEFERRED] = unclaimed_deferred,
};

/* ---- The offer ---------------------------------------------------------- */

static bool names(const struct fsdp_error *e, const char *what)
{
    return memmem(e->message, sizeof(e->message), what,
                  strnlen(what, sizeof(e->message) / 2)) != NULL;
}

/* The units of the last parameter's module. */
static bool names_unit(const struct driver *x)
{
    const uint32_t p = x->model->n_parameters - 1;
    const uint32_t unit[] = {
        fsdp_unit_of(x->model, x->units, p),
        x->units->unit_of_module[x->model->parameter_module[p]]};
    const struct fsdp_error *e = x->env.error;
    char text[16];

    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof(text), "%u", unit[i]);
        if (memmem(e->message, strnlen(e->message, sizeof(e->message)), text,
                   strlen(text))) {
            return true;
        }
    }
    return false;
}

/* What can be sharded, and not be given a step of a pass. */
static int offer_step(struct driver *x, const char *name,
                      struct fsdp_sharded *sharded)
{
    const float lr[SCRIPT_MAX_GROUPS] = {x->d->c->lr};
    const struct fsdp_step step = {
        .size = sizeof(step), .n_groups = x->options.n_groups, .lr = lr};
    const int status = x->engine.set_step(sharded, &step);
    const bool named = status == FSDP_OK || names_unit(x);

    FSDP_TRY(drive_answer(x, name, status));
    return drive_answer_number(x, "backward-step-unit", named);
}

/* Shards, asks for the answer, destroys. */
static int shard(struct driver *x, const char *name, struct offer *o)
{
    /* What an engine that does not set it would have destroyed. */
    struct fsdp_sharded *sharded = (struct fsdp_sharded *)(void *)x;
    const struct fsdp_error *e = x->env.error;
    int status;
    bool unnamed = false;
    bool untied = false;

    o->mesh.extent = o->extent;
    o->env.mesh = &o->mesh;
    o->units.unit_of_module = o->of_module;
    o->units.size = sizeof(o->units);
    o->model.parameter_flags = o->flags;
    o->model.parameter_alias = o->alias;
    o->model.parameter_shape = (const uint64_t(*)[FSDP_MAX_DIMS])o->shape;
    o->model.parameter_n_dims = o->n_dims;
    o->model.parameter_dtype = o->dtype;
    status =
        x->engine.shard(&o->env, &o->model, &o->units, &o->options, &sharded);
    unnamed = status != FSDP_OK && o->option && !names(e, o->option);
    for (uint32_t i = 0; i < 2 && status != FSDP_OK && o->tied[i]; i++) {
        untied = untied || !names(e, o->tied[i]);
    }
    if (status == FSDP_OK && o->trains.n > 0) {
        status = offer_step(x, name, sharded);
        x->engine.destroy(sharded);
        return status;
    }
    x->engine.destroy(sharded);
    FSDP_TRY(drive_answer(x, name, status));
    if (untied) {
        FSDP_TRY(drive_answer(x, "unnamed-tie", FSDP_OK));
    }
    return unnamed ? drive_answer(x, "unnamed-option", FSDP_OK) : FSDP_OK;
}

/* As if it had been refused. */
static int add_unread(struct driver *x, const char *name)
{
    *x->env.error = (struct fsdp_error){.status = FSDP_ERR_UNSUPPORTED,
                                        .rank = (int32_t)x->env.rank,
                                        .where = "driver",
                                        .message = "built before it was"};
    return drive_answer(x, name, FSDP_ERR_UNSUPPORTED);
}

/* What of the model an offer may change: n elements of `size` bytes. */
static void *copy(const void *from, uint64_t n, size_t size)
{
    void *to = malloc(n * size + 1);

    if (to) {
        memcpy(to, from, n * size);
    }
    return to;
}

/* Who was built before models had buffers to be asked for is given none. */
static bool is_too_old(const struct driver *x, uint32_t call)
{
    return call == SCRIPT_CALL_UNCLAIMED_BUFFERS &&
           x->engine.size <
               offsetof(struct fsdp_engine, buffer) + sizeof(x->engine.buffer);
}

static int refuse_for(struct driver *x, uint32_t call)
{
    *x->env.error =
        (struct fsdp_error){.status = FSDP_ERR_UNSUPPORTED,
                            .rank = (int32_t)x->env.rank,
                            .where = "driver",
                            .message = "the engine has no `buffer`"};
    return drive_answer(x, script_calls[call].name, FSDP_ERR_UNSUPPORTED);
}

int play_offer(struct driver *x, uint32_t call)
{
    const struct fsdp_model *m = x->model;
    const uint32_t n = m->n_parameters;
    const uint32_t trained = m->sequence[FSDP_SEQUENCE_TRAIN]->n;
    struct offer o = {
        .env = x->env,
        .mesh = x->mesh,
        .extent = {x->extent[0], x->extent[1]},
        .model = *m,
        .units = *x->units,
        .flags = copy(m->parameter_flags, n, sizeof(*o.flags)),
        .alias = copy(m->parameter_alias, n, sizeof(*o.alias)),
        .shape = copy(m->parameter_shape, n, sizeof(*o.shape)),
        .n_dims = copy(m->parameter_n_dims, n, sizeof(*o.n_dims)),
        .dtype = copy(m->parameter_dtype, n, sizeof(*o.dtype)),
        .of_module =
            copy(x->units->unit_of_module, m->n_modules, sizeof(*o.of_module)),
        .of_parameter = calloc(n, sizeof(*o.of_parameter)),
        .unit_of = calloc(n, sizeof(*o.unit_of)),
        .of_unit = calloc(x->units->n_units + 1u, sizeof(*o.of_unit)),
        .factor_of_unit =
            calloc(x->units->n_units + 1u, sizeof(*o.factor_of_unit)),
        .buffer = copy(m->buffer_name, m->n_buffers, sizeof(*o.buffer)),
        .point = calloc(trained + 4u, sizeof(*o.point)),
        .module = calloc(trained + 4u, sizeof(*o.module)),
        .options = x->options};
    int status = FSDP_ERR_NOMEM;

    for (uint32_t p = 0; o.unit_of && p < n; p++) {
        o.unit_of[p] = fsdp_unit_of(m, x->units, p);
    }
    if (call == SCRIPT_CALL_BACKWARD_STEP_WINDOWS && !x->engine.set_step) {
        status = FSDP_OK; /* there is nothing to ask */
    } else if (is_too_old(x, call)) {
        status = refuse_for(x, call);
    } else if (!reads_it(x, call)) {
        status = add_unread(x, script_calls[call].name);
    } else if (o.flags && o.alias && o.shape && o.n_dims && o.dtype &&
               o.of_module && o.of_parameter && o.unit_of && o.of_unit &&
               o.factor_of_unit && o.buffer && o.point && o.module) {
        offers[call](x, &o);
        status = shard(x, script_calls[call].name, &o);
    }
    free(o.flags);
    free(o.alias);
    free(o.shape);
    free(o.n_dims);
    free(o.dtype);
    free(o.of_module);
    free(o.of_parameter);
    free(o.unit_of);
    free(o.of_unit);
    free(o.factor_of_unit);
    free(o.buffer);
    free(o.point);
    free(o.module);
    return status;
}
