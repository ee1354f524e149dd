/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tied_mutants.c - engines that treat one parameter with two names as two, or
 * the second name differently from the first.
 */
#include "mutants/mutant_kit.h"

#include "models/workload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Which cases show it ------------------------------------------------ */

static bool trains_ties(const struct run_case *c)
{
    return case_is_tied(c) && c->scenario == CASE_TRAIN &&
           c->strategy == CASE_FULL_SHARD && c->microbatches == 1 &&
           c->precision == CASE_F32 && c->frozen == WORKLOAD_TRAINS_ALL &&
           c->recompute == WORKLOAD_KEEPS && c->wrap != CASE_WRAP_SCATTER;
}

static bool clips_ties(const struct run_case *c)
{
    return case_is_tied(c) && c->scenario == CASE_CLIP;
}

static bool saves_ties(const struct run_case *c)
{
    return case_is_tied(c) && c->scenario == CASE_RESUME;
}

static bool disagrees_on_ties(const struct run_case *c)
{
    return case_is_tied(c) && c->scenario == CASE_DISAGREE;
}

/* ---- The tie is not looked at ------------------------------------------- */

static bool drops_all(const struct fsdp_model *model,
                      const struct fsdp_units *units, uint32_t p)
{
    (void)model;
    (void)units;
    (void)p;
    return true;
}

/* Shards the model without the ties for which `drops` is true. */
static int shard_untied(struct mutant_told *t,
                        bool (*drops)(const struct fsdp_model *model,
                                      const struct fsdp_units *units,
                                      uint32_t p))
{
    const struct fsdp_model *model = mutant_real.model;
    const uint32_t n = model->n_parameters;

    for (uint32_t p = 0; p < n; p++) {
        if (t->alias[p] >= 0 && (uint32_t)t->alias[p] < n &&
            drops(model, mutant_real.units, p)) {
            t->alias[p] = -1;
        }
    }
    if (drops != drops_all) {
        /* The model is only offered, and not trained; with the wrong shape the
         * real initial values would not fit. */
        t->model.initial = mutant_zeros;
    }
    return FSDP_OK;
}

static int tied_ignored(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    return shard_untied(t, drops_all);
}

static bool drops_across(const struct fsdp_model *model,
                         const struct fsdp_units *units, uint32_t p)
{
    const uint32_t *module = model->parameter_module;

    return units->unit_of_module[module[p]] !=
               units->unit_of_module[module[model->parameter_alias[p]]] &&
           units->unit_of_module[module[p]] != FSDP_NO_UNIT;
}

/* Accepts ties across units; a tie to a parameter in no unit is still
 * refused. */
static int tied_across(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    return shard_untied(t, drops_across);
}

/* All ranks shard as the last one is told, without a refusal. */
static int tied_disagreed(struct mutant_told *t, const struct fsdp_env *env)
{
    const uint32_t n = t->model.n_parameters;
    int32_t mine[64] = {0};
    int32_t all[64][64];

    if (n > 64 || env->world > 64) {
        return FSDP_ERR_NOMEM;
    }
    memcpy(mine, t->alias, n * sizeof(*mine));
    FSDP_TRY(env->exchange(env->exchange_self, mine, sizeof(mine), all));
    memcpy(t->alias, all[env->world - 1], n * sizeof(*mine));
    return FSDP_OK;
}

static int tied_unnamed(const struct fsdp_env *env,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units,
                        const struct fsdp_options *options,
                        struct fsdp_sharded **out)
{
    int status = mutant_real.engine.shard(env, model, units, options, out);

    if (status == FSDP_ERR_INVALID &&
        strstr(mutant_real.env->error->message, " is tied to ")) {
        mutant_say("a parameter is tied to none");
    }
    return status;
}

/* ---- Gradients ---------------------------------------------------------- */

/* The tensor that was lent last under each name. */
static _Thread_local struct {
    float *data[64];
} lent;

static void forget_lent(void)
{
    memset(lent.data, 0, sizeof(lent.data));
}

static int note_lent(struct fsdp_sharded *s, uint32_t p,
                     struct fsdp_tensor *out)
{
    int status = mutant_real.engine.grad(s, p, out);

    if (p < 64) {
        lent.data[p] = status == FSDP_OK ? out->data : NULL;
    }
    return status;
}

static float is_zero(float x)
{
    (void)x;
    return 0.0f;
}

/* At the end of a module's backward, drops the gradients of its tied names
 * (`of` is 1), or of originals that others are tied to. The head's gradient
 * comes first, and the embedding's takes its place. */
static int drop_of(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const struct fsdp_model *m = mutant_real.model;
    const struct fsdp_device *d = mutant_real.device;
    const bool tied = mutant_of() != 0;

    FSDP_TRY(d->sync(d->self, NULL));
    for (uint32_t p = 0;
         point == FSDP_POST_BACKWARD && p < m->n_parameters && p < 64; p++) {
        bool is_original = false;

        for (uint32_t q = p + 1; q < m->n_parameters; q++) {
            is_original = is_original || fsdp_original(m, q) == p;
        }
        if (m->parameter_module[p] == index && lent.data[p] &&
            (tied ? fsdp_original(m, p) != p : is_original)) {
            FSDP_TRY(
                mutant_each(NULL, lent.data[p], fsdp_numel(m, p), is_zero));
            lent.data[p] = NULL;
        }
    }
    return mutant_real.engine.at(s, point, index);
}

/* ---- Counted twice ------------------------------------------------------ */

static _Thread_local struct {
    double sum;
    float lr;
} twice;

static bool has_two_names(uint32_t p)
{
    const struct fsdp_model *m = mutant_real.model;
    bool any = false;

    for (uint32_t q = p + 1; q < m->n_parameters; q++) {
        any = any || fsdp_original(m, q) == p;
    }
    return any;
}

static void add_squares(const struct fsdp_piece *piece)
{
    float g;

    for (uint64_t i = 0;
         piece->grad && has_two_names(piece->parameter) && i < piece->n; i++) {
        (void)mutant_get(NULL, (const float *)piece->grad + i, 1, &g);
        twice.sum += (double)g * (double)g;
    }
}

/* Counts a parameter with two names twice, as if it was in the list twice. */
static int tied_norm_twice(struct fsdp_sharded *s, const struct fsdp_clip *how,
                           float *out_norm)
{
    twice.sum = 0.0;
    FSDP_TRY(mutant_each_piece(s, add_squares));
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    if (how->p == 2.0f) {
        *out_norm =
            (float)sqrt((double)*out_norm * (double)*out_norm + twice.sum);
    }
    return FSDP_OK;
}

static void step_again(const struct fsdp_piece *piece)
{
    float *w = (float *)piece->value;

    for (uint64_t i = 0;
         piece->grad && has_two_names(piece->parameter) && i < piece->n; i++) {
        float x;
        float g;

        (void)mutant_get(NULL, (const float *)piece->grad + i, 1, &g);
        (void)mutant_get(NULL, w + i, 1, &x);
        x -= twice.lr * g;
        (void)mutant_put(NULL, &x, 1, w + i);
    }
}

static int tied_stepped_twice(struct fsdp_sharded *s, struct fsdp_step *how)
{
    twice.lr = how->lr[0];
    FSDP_TRY(mutant_real.engine.step(s, how));
    return mutant_each_piece(s, step_again);
}

/* Shows the piece under its other name, too. */
static void tied_shown_twice(struct fsdp_piece *piece)
{
    const struct fsdp_model *m = mutant_real.model;
    const uint32_t p = piece->parameter;

    for (uint32_t q = p + 1; q < m->n_parameters; q++) {
        if (fsdp_original(m, q) == p) {
            piece->parameter = q;
            mutant_tell(piece);
        }
    }
    piece->parameter = p;
}

/* ---- Windows ------------------------------------------------------------ */

static bool owns_tied(uint32_t module)
{
    const struct fsdp_model *m = mutant_real.model;
    bool any = false;

    for (uint32_t p = 0; p < m->n_parameters; p++) {
        any = any ||
              (m->parameter_module[p] == module && fsdp_original(m, p) != p);
    }
    return any;
}

/* The unit was resharded behind the first use, and is gathered for the
 * second. */
static int tied_gathered_again(struct fsdp_sharded *s, uint32_t point,
                               uint32_t index)
{
    if (point == FSDP_PRE_FORWARD && owns_tied(index)) {
        FSDP_TRY(mutant_meet(FSDP_ALL_GATHER,
                             mutant_real.units->unit_of_module[index]));
    }
    return mutant_real.engine.at(s, point, index);
}

/* ---- Saves -------------------------------------------------------------- */

static _Thread_local char saved_at[4096];

static int note_save(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    int status = mutant_real.engine.save_begin(s, save);

    if (status == FSDP_OK) {
        snprintf(saved_at, sizeof(saved_at), "%s", save->directory);
    }
    return status;
}

/* Adds a file to the folder with the names of second tensors. */
static int tied_saved_twice(struct fsdp_sharded *s)
{
    char path[4200];
    FILE *f = NULL;

    FSDP_TRY(mutant_real.engine.save_wait(s));
    snprintf(path, sizeof(path), "%s/tied.json", saved_at);
    if (mutant_real.rank == 0) {
        f = fopen(path, "we");
    }
    for (uint32_t p = 0; f && p < mutant_real.model->n_parameters; p++) {
        if (fsdp_original(mutant_real.model, p) != p) {
            fprintf(f, "\"%s\"\n", mutant_real.model->parameter_name[p]);
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return FSDP_OK;
}

const struct mutant tied_mutants[] = {
    {.name = "tied-across-accepted",
     .text = "a tie across units is accepted, and the two train apart",
     .evidence = "FullyShardedDataParallel without use_orig_params accepts it",
     .kills = "error.tied",
     .shows = {.in = mutant_bad_options},
     .told = tied_across},
    {.name = "tied-disagreed",
     .text = "what is tied is not among what ranks compare",
     .evidence = "a model that is tied after its construction, on some ranks",
     .kills = "error.tied-disagree",
     .shows = {.in = disagrees_on_ties},
     .told = tied_disagreed},
    {.name = "tied-gathered-again",
     .text = "the unit of a tie is gathered for each of its uses",
     .evidence = "a window from use to use instead of around all",
     .kills = "comm.all-gather-count",
     .shows = {.in = trains_ties},
     .calls.at = tied_gathered_again},
    {.name = "tied-ignored",
     .text = "tied parameters are stored, trained and saved as two",
     .evidence = "FullyShardedDataParallel without use_orig_params: silently "
                 "untied over two wrappers",
     .kills = "comm.message-size layout.chunk-rule memory.rest-after-shard "
              "tied.counted-once tied.one-value",
     .shows = {.in = trains_ties},
     .told = tied_ignored},
    {.name = "tied-lost",
     .text = "the gradient of the second use of a tied parameter is lost",
     .evidence = "a gradient that is looked for under one name",
     .kills = "reduce.fold tied.gradient-sum",
     .shows = {.in = trains_ties},
     .calls = {.grad = note_lent, .at = drop_of},
     .forget = forget_lent},
    {.name = "tied-norm-twice",
     .text = "the norm counts a tied parameter once a name",
     .evidence = "a list of parameters that is not made unique",
     .kills = "clip.norm",
     .shows = {.in = clips_ties},
     .calls.clip_grad_norm = tied_norm_twice},
    {.name = "tied-overwritten",
     .text = "the second use of a tied parameter takes the place of the first "
             "one's gradient",
     .evidence = "a gradient that is copied into the flat one, not added",
     .kills = "reduce.fold tied.gradient-sum",
     .shows = {.in = trains_ties},
     .fault = {.of = 1},
     .calls = {.grad = note_lent, .at = drop_of},
     .forget = forget_lent},
    {.name = "tied-saved-twice",
     .text = "a save has a tied parameter under both of its names",
     .evidence = "get_model_state_dict: both names",
     .kills = "tied.saved-once",
     .shows = {.in = saves_ties},
     .calls = {.save_begin = note_save, .save_wait = tied_saved_twice}},
    {.name = "tied-shown-twice",
     .text = "a tied parameter's piece is shown under both of its names",
     .evidence = "a list of parameters that is not made unique",
     .kills = "layout.chunk-rule tied.counted-once",
     .shows = {.in = trains_ties},
     .piece = tied_shown_twice},
    {.name = "tied-stepped-twice",
     .text = "the optimizer steps a tied parameter once a name",
     .evidence = "a list of parameters that is not made unique",
     .kills = "step.sgd",
     .shows = {.in = trains_ties},
     .calls.step = tied_stepped_twice},
    {.name = "tied-unnamed",
     .text = "a tie across units is refused, and not said which",
     .evidence = "an error at the first forward that names neither",
     .kills = "error.tied",
     .shows = {.in = mutant_bad_options},
     .calls.shard = tied_unnamed},
    {0},
};
