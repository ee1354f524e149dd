/* SPDX-License-Identifier: Apache-2.0 */
/*
 * factor_mutants.c - engines that divide gradients by another factor than was
 * asked for, or at another moment; and engines that step parameters by the
 * numbers of another group.
 */
#include "mutants/mutant_kit.h"

#include <math.h>

/* Cases that only train, in float32. */
static bool is_plain(const struct run_case *c, uint32_t factors)
{
    return c->factors == factors && c->scenario == CASE_TRAIN &&
           c->precision == CASE_F32;
}

static bool predivides(const struct run_case *c)
{
    return is_plain(c, CASE_PRE3);
}

static bool is_pending(const struct run_case *c)
{
    return predivides(c) && c->microbatches == 3 && !c->sync[0] && !c->sync[1];
}

static bool asks_for_factor(const struct run_case *c)
{
    return predivides(c) && c->divide_factor != 0.0f;
}

static bool has_unit_factors(const struct run_case *c)
{
    return is_plain(c, CASE_UNIT_FACTORS);
}

static bool has_one_group(const struct run_case *c)
{
    return is_plain(c, CASE_ONE_GROUP);
}

static bool has_empty_group(const struct run_case *c)
{
    return is_plain(c, CASE_EMPTY_GROUP);
}

static bool has_own_groups(const struct run_case *c)
{
    return is_plain(c, CASE_OWN_GROUPS) && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool has_no_decay(const struct run_case *c)
{
    return has_own_groups(c) && c->workload[0] == 'g';
}

/* ---- Factors -------------------------------------------------------------*/

/* The factors of the options that the mutant's engine was given. */
static _Thread_local struct {
    float before, behind, all;
} asked;

static void note_factors(struct fsdp_options *o)
{
    const float divide =
        o->divide_factor != 0.0f ? o->divide_factor : (float)mutant_real.world;

    asked.before = 1.0f / o->predivide_factor;
    asked.behind = o->predivide_factor / divide;
    asked.all = 1.0f / divide;
}

static void divide_by_all(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_SCALE && op->f[0] == asked.behind) {
        op->f[0] = asked.all;
    }
}

static int predivide_twice(void *self, struct fsdp_stream *stream,
                           const struct fsdp_op *op)
{
    (void)self;
    if (op->kind == FSDP_OP_SCALE && op->f[0] == asked.before) {
        FSDP_TRY(mutant_run(stream, op));
    }
    return mutant_run(stream, op);
}

static float predivided(float x)
{
    return x * asked.before;
}

/* Predivides pending sums when a later gradient is added to them. */
static int predivide_pending(void *self, struct fsdp_stream *stream,
                             const struct fsdp_op *op)
{
    (void)self;
    if (op->kind == FSDP_OP_ADD && mutant_now.in_pass && mutant_now.backward) {
        FSDP_TRY(mutant_each(stream, op->out[0].p, op->dim[0], predivided));
    }
    return mutant_run(stream, op);
}

enum {
    MOST = 64 /* units, groups or parameters of these cases */
};

static _Thread_local float divide_of[MOST];
static _Thread_local float predivide_of[MOST];

/* Each unit has the factors of the unit behind it. */
static int unit_factors_shifted(struct mutant_told *t,
                                const struct fsdp_env *env)
{
    const uint32_t n = t->units.n_units;

    (void)env;
    if (!t->units.divide_factor || !t->units.predivide_factor) {
        return FSDP_OK; /* an offer that has none, to be refused */
    }
    for (uint32_t u = 0; u < n && u < MOST; u++) {
        divide_of[u] = t->units.divide_factor[(u + 1) % n];
        predivide_of[u] = t->units.predivide_factor[(u + 1) % n];
    }
    t->units.divide_factor = divide_of;
    t->units.predivide_factor = predivide_of;
    return FSDP_OK;
}

/* ---- Groups --------------------------------------------------------------*/

static void betas_of_options(struct fsdp_options *o)
{
    o->beta1_of_group = o->beta2_of_group = NULL;
    o->eps_of_group = o->momentum_of_group = NULL;
}

static _Thread_local float first[4][MOST];

static const float *all_as_first(const struct fsdp_options *o,
                                 const float *of_group, float to[MOST])
{
    for (uint32_t g = 0; of_group && g < o->n_groups && g < MOST; g++) {
        to[g] = of_group[0];
    }
    return of_group ? to : NULL;
}

static void betas_of_first(struct fsdp_options *o)
{
    o->beta1_of_group = all_as_first(o, o->beta1_of_group, first[0]);
    o->beta2_of_group = all_as_first(o, o->beta2_of_group, first[1]);
    o->eps_of_group = all_as_first(o, o->eps_of_group, first[2]);
    o->momentum_of_group = all_as_first(o, o->momentum_of_group, first[3]);
}

static _Thread_local uint32_t group_of[MOST];

static void skip_empty(struct fsdp_options *o)
{
    if (!o->group_of_parameter) {
        return;
    }
    for (uint32_t p = 0; p < mutant_real.model->n_parameters && p < MOST; p++) {
        group_of[p] = o->group_of_parameter[p] > 0 ? 1 : 0;
    }
    o->group_of_parameter = group_of;
}

static void group_of_unit(struct fsdp_options *o)
{
    if (!o->group_of_parameter) {
        return;
    }
    for (uint32_t p = 0; p < mutant_real.model->n_parameters && p < MOST; p++) {
        uint32_t q = 0;

        while (mutant_unit(q) != mutant_unit(p)) {
            q++;
        }
        group_of[p] = o->group_of_parameter[q];
    }
    o->group_of_parameter = group_of;
}

static void products_of_options(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_ADAMW) {
        op->f[5] = op->f[6] = 1.0f;
        for (uint32_t t = 0; t <= mutant_now.steps; t++) {
            op->f[5] *= 0.9f;
            op->f[6] *= 0.999f;
        }
    }
}

/* The steps that have been taken, and those taken when the checkpoint was
 * saved. */
static _Thread_local struct {
    uint32_t steps, saved;
} count;

static void forget_steps(void)
{
    count.steps = count.saved = 0;
}

static void step_counted(void)
{
    count.steps++;
}

static int save_counted(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    count.saved = count.steps;
    return mutant_real.engine.save_begin(s, save);
}

static int load_counted(struct fsdp_sharded *s, const char *directory)
{
    count.steps = count.saved;
    return mutant_real.engine.load(s, directory);
}

static void products_by_power(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_ADAMW) {
        op->f[5] = powf(op->f[2], (float)count.steps);
        op->f[6] = powf(op->f[3], (float)count.steps);
    }
}

static bool loads_own_groups(const struct run_case *c)
{
    return c->factors == CASE_EMPTY_GROUP && c->scenario == CASE_RESUME &&
           c->recorded_steps == 4;
}

static int no_decay_ignored(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    for (uint32_t p = 0; p < t->model.n_parameters; p++) {
        t->flags[p] &= ~(uint32_t)FSDP_NO_DECAY;
    }
    return FSDP_OK;
}

static bool predivides_bf16(const struct run_case *c)
{
    return c->factors == CASE_PRE2 && c->precision == CASE_BF16_REDUCE;
}

/* A predivide by 2 is left out, as it is exact and seems to change nothing. */
static void predivide_of_two_left_out(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_SCALE && op->aux[0] == FSDP_DTYPE_BF16 &&
        op->f[0] == 0.5f) {
        op->f[0] = 1.0f;
    }
}

static bool predivides_wider(const struct run_case *c)
{
    return c->factors == CASE_PRE3 && c->precision == CASE_REDUCE_BF16;
}

/* Leaves the predivide out where gradients are added up, in float32, */
static void predivide_later(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_SCALE && op->aux[0] == FSDP_DTYPE_F32 &&
        op->f[0] == asked.before) {
        op->f[0] = 1.0f;
    }
}

/* and does it on what is sent, in bf16. */
static int predivide_sent(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    const uint64_t n = c->n * mutant_real.shards;
    const uint64_t bytes = n * fsdp_dtype_bytes(c->dtype);
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_SCALE,
                         .unit = c->unit,
                         .aux = {c->dtype},
                         .dim = {n},
                         .f = {asked.before},
                         .n_in = 1,
                         .in = {{c->in, bytes}},
                         .n_out = 1,
                         .out = {{(void *)c->in, bytes}}};

    (void)self;
    if (c->kind == FSDP_REDUCE_SCATTER) { /* which is communicated at once */
        FSDP_TRY(mutant_run(NULL, &op));
    }
    return mutant_communicate(stream, c);
}

static bool disagrees(const struct run_case *c)
{
    return c->scenario == CASE_DISAGREE && c->factors == CASE_UNIT_FACTORS;
}

const struct mutant factor_mutants[] = {
    {.name = "groups-betas-of-first",
     .text = "every group has the betas, eps and momentum of the first",
     .evidence = "an optimizer that is made from the first group's numbers",
     .kills = "groups.betas",
     .shows = {.in = has_own_groups, .factors = true},
     .options = betas_of_first},
    {.name = "groups-betas-of-options",
     .text = "groups have the betas, eps and momentum of the options",
     .evidence = "a field that nobody reads",
     .kills = "groups.betas",
     .shows = {.in = has_one_group, .factors = true},
     .options = betas_of_options},
    {.name = "groups-by-unit",
     .text = "all of a unit is in the group of its first parameter",
     .evidence = "one flat parameter a unit, which has one group",
     .kills = "groups.cut",
     .shows = {.in = has_own_groups, .factors = true},
     .options = group_of_unit},
    {.name = "groups-empty-skipped",
     .text = "a group behind an empty one has that one's numbers",
     .evidence = "groups that are counted as they are met",
     .kills = "groups.empty",
     .shows = {.in = has_empty_group, .factors = true},
     .options = skip_empty},
    {.name = "groups-no-decay-ignored",
     .text = "what must not decay does as its group says",
     .evidence = "a flag that groups take the place of",
     .kills = "groups.no-decay",
     .shows = {.in = has_no_decay, .factors = true},
     .told = no_decay_ignored},
    {.name = "groups-products-by-power",
     .text = "products of betas are powers, rounded once, not running products",
     .evidence = "microsoft/DeepSpeed#7820",
     .kills = "checkpoint.step groups.betas",
     .shows = {.in = loads_own_groups, .factors = true},
     .before_step = step_counted,
     .calls = {.save_begin = save_counted, .load = load_counted},
     .op = products_by_power,
     .forget = forget_steps},
    {.name = "groups-products-shared",
     .text = "all groups have the products of the options' betas",
     .evidence = "a count of steps whose products are kept once",
     .kills = "groups.betas",
     .shows = {.in = has_own_groups, .factors = true},
     .op = products_of_options},
    {.name = "postdivide-by-all",
     .text = "what was predivided is divided by all of the factor again",
     .evidence = "a predivide factor that is no part of the divide factor",
     .kills = "reduce.predivide",
     .shows = {.in = predivides, .factors = true},
     .options = note_factors,
     .op = divide_by_all},
    {.name = "postdivide-by-world",
     .text = "what was predivided is divided by the world, whatever was asked",
     .evidence = "facebookresearch/fairscale: post = world / pre",
     .kills = "reduce.scale",
     .shows = {.in = asks_for_factor, .factors = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(divide_factor), 0}},
    {.name = "predivide-behind",
     .text = "all of the division is behind the fold",
     .evidence = "an option that is taken and not used",
     .kills = "reduce.predivide",
     .shows = {.in = predivides, .factors = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(predivide_factor), 0}},
    {.name = "predivide-behind-rounding",
     .text = "gradients are predivided as they are sent, behind the rounding",
     .evidence = "pytorch FSDP2: what is packed for the reduce-scatter is "
                 "divided",
     .kills = "reduce.predivide",
     .shows = {.in = predivides_wider, .factors = true, .mixed = true},
     .options = note_factors,
     .op = predivide_later,
     .comm.run = predivide_sent},
    {.name = "predivide-of-two-left-out",
     .text = "sums in bf16 are not predivided by a power of two",
     .evidence = "pytorch/pytorch#190745",
     .kills = "reduce.predivide",
     .shows = {.in = predivides_bf16, .mixed = true, .factors = true},
     .op = predivide_of_two_left_out},
    {.name = "predivide-pending",
     .text = "what is pending is predivided with each microbatch",
     .evidence = "a sum that is scaled in place and added to again",
     .kills = "reduce.predivide",
     .shows = {.in = is_pending, .factors = true},
     .options = note_factors,
     .device = {.run = predivide_pending}},
    {.name = "predivide-twice",
     .text = "gradients are predivided twice",
     .evidence = "a hook that is registered twice",
     .kills = "reduce.predivide",
     .shows = {.in = predivides, .factors = true},
     .options = note_factors,
     .device = {.run = predivide_twice}},
    {.name = "unit-factors-disagreed",
     .text = "ranks do not compare what each unit is divided by",
     .evidence = "a hash over the options alone",
     .kills = "error.factors-disagree",
     .shows = {.in = disagrees, .factors = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(divide_factor),
               MUTANT_UNITS(predivide_factor)}},
    {.name = "unit-factors-ignored",
     .text = "every unit is divided as the options say",
     .evidence = "pytorch/pytorch#167178",
     .kills = "reduce.unit-scale",
     .shows = {.in = has_unit_factors, .factors = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(divide_factor),
               MUTANT_UNITS(predivide_factor)}},
    {.name = "unit-factors-shifted",
     .text = "every unit has the factors of the one behind it",
     .evidence = "units that are counted from the root",
     .kills = "reduce.unit-scale",
     .shows = {.in = has_unit_factors, .factors = true},
     .told = unit_factors_shifted},
    {0},
};
