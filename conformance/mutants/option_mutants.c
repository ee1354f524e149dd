/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_mutants.c - engines that do not do what an option asks for, or do not
 * refuse what they should.
 */
#include "mutants/mutant_kit.h"

#include <math.h>
#include <string.h>

static bool asks_for_factor(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_TRAIN && c->ranks > 1 &&
           c->divide_factor != 0.0f;
}

static bool asks_for_other_fold(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_TRAIN && c->ranks > 2 &&
           c->strategy == CASE_FULL_SHARD && c->fold != FSDP_FOLD_RANK;
}

enum {
    KEEPS_AND_RESHARDS = 3007 /* the seed of a graph */
};

static bool keeps_root(const struct run_case *c)
{
    return c->keep_root && c->scenario == CASE_TRAIN &&
           c->strategy == CASE_FULL_SHARD && strcmp(c->size, "odd") == 0;
}

/* The reshard option of the root's own unit comes before keep_root. */
static int own_reshard_first(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    const uint32_t *const own = units->reshard_after_forward;
    const uint32_t root = units->unit_of_module[0];
    struct fsdp_options o = *options;

    o.keep_root =
        o.keep_root && !(own && root < units->n_units && own[root] == 1);
    return mutant_real.engine.shard(env, model, units, &o, out);
}

/* A graph whose root is kept, while the root's unit says that it is
 * resharded. */
static bool keeps_root_of_graph(const struct run_case *c)
{
    return c->keep_root && strcmp(c->workload, "graph") == 0 &&
           c->scenario == CASE_TRAIN && c->ranks == 2 && c->steps == 1 &&
           c->seed == KEEPS_AND_RESHARDS;
}

static bool keeps_units(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_SHARD_GRAD_OP && c->ranks > 1;
}

/* Cuts the options of running ahead to the units that there are. */
static void options_ahead_unchecked(struct fsdp_options *o)
{
    o->prefetch_forward = o->prefetch_forward > 3 ? 1 : o->prefetch_forward;
    o->prefetch_backward = o->prefetch_backward > 3 ? 1 : o->prefetch_backward;
    o->reduces_in_flight = o->reduces_in_flight > 3 ? 1 : o->reduces_in_flight;
}

/* Predivide factors that do not fit are replaced by the default. */
static void factors_unchecked(struct fsdp_options *o)
{
    o->predivide_factor =
        isfinite(o->predivide_factor) && o->predivide_factor > 0.0f
            ? o->predivide_factor
            : 0.0f;
}

/* Options that do not fit are replaced by the default. */
static void options_unchecked(struct fsdp_options *o)
{
    o->layout = FSDP_LAYOUT_FLAT;
    o->fold = o->fold > FSDP_FOLD_TREE ? FSDP_FOLD_RANK : o->fold;
    o->optimizer =
        o->optimizer > FSDP_OPTIMIZER_ADAMW ? FSDP_OPTIMIZER_SGD : o->optimizer;
    o->divide_factor = o->divide_factor >= 0.0f ? o->divide_factor : 0.0f;
}

static _Thread_local struct fsdp_env mesh_world;

static int mesh_unchecked(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    const uint32_t *extent = env->mesh->extent;

    mesh_world = *env;
    mesh_world.world = extent[FSDP_DIM_REPLICATE] * extent[FSDP_DIM_SHARD];
    return mutant_real.engine.shard(
        mesh_world.world == env->world ? env : &mesh_world, model, units,
        options, out);
}

/* Answers without asking other ranks, as there are fewer than the mesh has. */
static int mesh_unchecked_exchange(void *self, const void *mine, uint64_t bytes,
                                   void *all)
{
    (void)self;
    for (uint64_t r = 0; r < 2 * (uint64_t)mutant_real.world; r++) {
        memcpy((char *)all + r * bytes, mine, bytes);
    }
    return FSDP_OK;
}

static void ask_no_mesh(struct fsdp_env *env)
{
    env->exchange = mesh_unchecked_exchange;
}

static bool has_bad_mesh(const struct run_case *c)
{
    return mutant_bad_options(c) && c->ranks == c->replicas;
}

static int disagreement_ignored(void *self, const void *mine, uint64_t bytes,
                                void *all)
{
    (void)self;
    for (uint32_t r = 0; r < mutant_real.world; r++) {
        memcpy((char *)all + r * bytes, mine, bytes);
    }
    return FSDP_OK;
}

static void ask_nobody(struct fsdp_env *env)
{
    env->exchange = disagreement_ignored;
}

static bool disagrees(const struct run_case *c)
{
    return c->scenario == CASE_DISAGREE && c->ranks > 1;
}

/* Reads only whether anything of a unit is offloaded, and not what. */
static int unit_kinds_unread(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    for (uint32_t u = 0;
         t->units.offload && u < t->units.n_units && u < MUTANT_MOST_PARAMETERS;
         u++) {
        const uint32_t said = t->units.offload[u];

        t->unit[u] = said > FSDP_OFFLOAD_OWN ? FSDP_OFFLOAD_ALL : said;
    }
    t->units.offload = t->units.offload ? t->unit : NULL;
    return FSDP_OK;
}

static bool disagrees_on_dtypes(const struct run_case *c)
{
    return disagrees(c) && c->precision == CASE_BF16;
}

static bool disagrees_on_buffers(const struct run_case *c)
{
    return disagrees_on_dtypes(c) && case_has_buffers(c);
}

static bool disagrees_on_offload(const struct run_case *c)
{
    return disagrees(c) && c->offload != CASE_NOT_OFFLOADED;
}

/* Leaves a message that is not ended, and is no text. */
static int refusal_endless(const struct fsdp_env *env,
                           const struct fsdp_model *model,
                           const struct fsdp_units *units,
                           const struct fsdp_options *options,
                           struct fsdp_sharded **out)
{
    struct fsdp_error *e = env->error;
    int status = mutant_real.engine.shard(env, model, units, options, out);
    size_t n = strnlen(e->message, sizeof(e->message));

    if (status != FSDP_OK) {
        memset(e->message + n, '!', sizeof(e->message) - n);
    }
    return status;
}

static _Thread_local struct fsdp_error nobody_reads;
static _Thread_local struct fsdp_env silent; /* is borrowed until destroy */

static int refusal_silent(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    silent = *env;

    nobody_reads = (struct fsdp_error){0};
    silent.error = &nobody_reads;
    return mutant_real.engine.shard(&silent, model, units, options, out);
}

/* Checks what the options say, but not what a unit says. */
static int units_unchecked(const struct fsdp_env *env,
                           const struct fsdp_model *model,
                           const struct fsdp_units *units,
                           const struct fsdp_options *options,
                           struct fsdp_sharded **out)
{
    if (options->param_dtype > FSDP_DTYPE_F32 ||
        options->reduce_dtype > FSDP_DTYPE_F32) {
        *out = NULL;
        *env->error = (struct fsdp_error){.status = FSDP_ERR_UNSUPPORTED,
                                          .rank = (int32_t)env->rank,
                                          .where = "mutant",
                                          .message = "param_dtype or "
                                                     "reduce_dtype is not "
                                                     "float32 (1)"};
        return FSDP_ERR_UNSUPPORTED;
    }
    return mutant_real.engine.shard(env, model, units, options, out);
}

static bool has_many_grains(const struct run_case *c)
{
    return c->grains > CASE_GRAINS;
}

static void tree_of_eight(struct fsdp_options *o)
{
    if (o->fold == FSDP_FOLD_TREE && mutant_real.world > CASE_GRAINS) {
        o->fold = FSDP_FOLD_RANK;
    }
}

const struct mutant option_mutants[] = {
    /* Ranks do not compare what they shard. */
    {.name = "disagreement-ignored",
     .text = "ranks that are given other options are not told",
     .evidence = "pytorch/pytorch#170667",
     .kills = "error.ranks-disagree error.units-disagree",
     .shows = {.in = disagrees},
     .change_env = ask_nobody},
    /* The divide factor that was asked for is not used. */
    {.name = "divide-factor-ignored",
     .text = "gradients are divided by the world whatever the option says",
     .evidence = "pytorch/pytorch#167178",
     .kills = "reduce.scale",
     .shows = {.in = asks_for_factor},
     .fault = {MUTANT_SETS, MUTANT_OPTION(divide_factor), 0}},
    /* bf16 is accepted, though the engine does not claim it. */
    {.name = "dtype-unclaimed",
     .text = "a dtype that is not claimed is not refused",
     .evidence = "pytorch/pytorch#194628",
     .kills = "error.unclaimed error.unclaimed-dtype",
     .shows = {.in = mutant_bad_options},
     .drops = "bf16 fp16"},
    {.name = "dtype-of-unit-unclaimed",
     .text = "a unit's own dtype that is not claimed is not refused",
     .evidence = "the unit would be gathered in float32, unnoticed",
     .kills = "error.unclaimed",
     .shows = {.in = mutant_bad_options},
     .drops = "bf16 fp16",
     .calls = {.shard = units_unchecked}},
    {.name = "factors-unchecked",
     .text = "a predivide factor that is no positive number counts as 1",
     .evidence = "an option that is silently changed",
     .kills = "error.factors",
     .shows = {.in = mutant_bad_options, .engine = "impl"},
     .options = factors_unchecked},
    {.name = "fold-ignored",
     .text = "gradients are folded by rank whatever the option says",
     .evidence = "the order of a sum is part of the specification",
     .kills = "comm.fold-declared reduce.fold",
     .shows = {.in = asks_for_other_fold},
     .fault = {MUTANT_SETS, MUTANT_OPTION(fold), FSDP_FOLD_RANK}},
    {.name = "frozen-unclaimed",
     .text = "a frozen parameter is not refused, though none is claimed",
     .evidence = "facebookresearch/fairscale#721: a flag that was not looked "
                 "at",
     .kills = "error.unclaimed",
     .shows = {.in = mutant_bad_options},
     .drops = "frozen"},
    /* The root is resharded after forward though it was to be kept. */
    {.name = "keep-root-behind-own",
     .text = "what the root's unit says of resharding comes before keep_root",
     .evidence = "fully_shard: what is said for the root comes first",
     .kills = "comm.all-gather-count",
     .shows = {.in = keeps_root_of_graph},
     .calls.shard = own_reshard_first},
    {.name = "keep-root-ignored",
     .text = "the root unit is gathered twice a step",
     .evidence = "pytorch/pytorch#149029",
     .kills = "comm.all-gather-count",
     .shows = {.in = keeps_root},
     .fault = {MUTANT_SETS, MUTANT_OPTION(keep_root), 0}},
    /* Whatever layout was asked for, the engine knows one. */
    {.name = "layout-ignored",
     .text = "units are flat, whatever the option says",
     .evidence = "an option that is read by one of two code paths",
     .kills = "comm.message-size layout.whole-rows memory.rest-after-shard",
     .shows = {.in = mutant_rows},
     .fault = {MUTANT_SETS, MUTANT_OPTION(layout), FSDP_LAYOUT_FLAT}},
    {.name = "mesh-unchecked",
     .text = "a mesh whose product is not the world is not refused",
     .evidence = "pytorch/pytorch#154888",
     .kills = "error.options",
     .shows = {.in = has_bad_mesh},
     .calls.shard = mesh_unchecked,
     .change_env = ask_no_mesh},
    /* The strategy asks for a reshard. */
    {.name = "no-reshard",
     .text = "a unit stays unsharded until its backward",
     .evidence = "pytorch/pytorch#149029",
     .kills = "comm.all-gather-count memory.peak-unsharded",
     .shows = {.in = mutant_plain},
     .fault = {MUTANT_SETS, MUTANT_OPTION(reshard_after_forward), 0}},
    {.name = "options-ahead-unchecked",
     .text = "prefetch beyond the units is cut, not refused",
     .evidence = "an option that is silently changed",
     .kills = "error.options-ahead",
     .shows = {.in = mutant_bad_options, .engine = "impl"},
     .options = options_ahead_unchecked},
    {.name = "options-unchecked",
     .text = "unknown layouts, optimizers, folds and factors are not refused",
     .evidence = "an enum that is not checked",
     .kills = "error.options",
     .shows = {.in = mutant_bad_options},
     .options = options_unchecked},
    {.name = "refusal-endless",
     .text = "the message of a refusal fills its room, without an end",
     .evidence = "strncpy ends no string that is too long",
     .kills = "error.says-why",
     .shows = {.in = mutant_bad_options},
     .calls.shard = refusal_endless},
    /* Refuses as it should, and says nothing. */
    {.name = "refusal-silent",
     .text = "options are refused without a word",
     .evidence = "an error must name what is wrong",
     .kills = "error.says-why",
     .shows = {.in = mutant_bad_options},
     .calls.shard = refusal_silent},
    /* A strategy that keeps units unsharded after forward is treated as one
     * that does not: slow, and right. */
    {.name = "reshards-anyway",
     .text =
         "a unit is gathered again for its backward where it should be kept",
     .evidence = "pytorch/pytorch#131965",
     .kills = "comm.all-gather-count memory.peak-unsharded",
     .shows = {.in = keeps_units},
     .fault = {MUTANT_SETS, MUTANT_OPTION(reshard_after_forward), 1}},
    {.name = "unit-buffer-dtypes-disagreed",
     .text = "ranks do not compare the dtypes of single units' buffers",
     .evidence = "a hash over what the model says of buffers",
     .kills = "error.buffer-dtypes-disagree",
     .shows = {.in = disagrees_on_buffers, .mixed = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(buffer_dtype)}},
    {.name = "unit-dtypes-disagreed",
     .text = "ranks do not compare the dtypes of single units",
     .evidence = "a hash over the options alone",
     .kills = "error.dtypes-disagree",
     .shows = {.in = disagrees_on_dtypes, .mixed = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(param_dtype)}},
    {.name = "unit-grad-dtypes-disagreed",
     .text = "ranks do not compare the dtypes of single units' gradients",
     .evidence = "a hash over the options alone",
     .kills = "error.dtypes-disagree",
     .shows = {.in = disagrees_on_dtypes, .mixed = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(grad_dtype),
               MUTANT_UNITS(accumulate_dtype)}},
    {.name = "unit-kinds-disagreed",
     .text = "ranks do not compare what of single units is offloaded",
     .evidence = "a comparison of whether anything is",
     .kills = "error.offload-disagree",
     .shows = {.in = disagrees_on_offload, .offload = true},
     .told = unit_kinds_unread},
    {.name = "unit-offload-disagreed",
     .text = "ranks do not compare where single units rest",
     .evidence = "a hash over the options alone",
     .kills = "error.offload-disagree",
     .shows = {.in = disagrees_on_offload, .offload = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(offload)}},
    {.name = "unit-reshard-disagreed",
     .text = "ranks do not compare which units are resharded after forward",
     .evidence = "a hash over the options alone",
     .kills = "error.reshard-disagree",
     .shows = {.script = "reshard-disagree"},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(reshard_after_forward)}},
    {.name = "unit-wire-dtypes-disagreed",
     .text = "ranks do not compare the dtypes in which single units are "
             "reduced",
     .evidence = "a hash over the options alone",
     .kills = "error.dtypes-disagree",
     .shows = {.in = disagrees_on_dtypes, .mixed = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(reduce_dtype),
               MUTANT_UNITS(sum_dtype)}},
    {.name = "shared-unclaimed",
     .text = "a tied parameter is not refused, though none is claimed",
     .evidence = "FullyShardedDataParallel unties it without a word",
     .kills = "error.unclaimed",
     .shows = {.in = mutant_bad_options},
     .drops = "shared"},
    /* A tree is made only for up to 8 ranks, and a chain for more. */
    {.name = "tree-of-eight",
     .text = "more than 8 ranks are folded by rank instead of by tree",
     .evidence = "a fold that was written out for small worlds",
     .kills = "accumulate.no-sync comm.fold-declared",
     .shows = {.in = has_many_grains},
     .options = tree_of_eight},
    {0},
};
