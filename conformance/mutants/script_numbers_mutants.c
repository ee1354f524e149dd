/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_numbers_mutants.c - engines that are right with the numbers that most
 * runs have, all of them the same in every step, and wrong with others; and one
 * that takes a call which must be refused.
 */
#include "mutants/mutant_kit.h"

enum {
    GROUPS = 8,
    PARAMETERS = 64
};

static _Thread_local uint32_t clips; /* by the second norm, since zero_grad */
static _Thread_local float norm;
static _Thread_local float rate[GROUPS];
static _Thread_local uint32_t group[PARAMETERS];

static void script_forget(void)
{
    clips = 0;
    rate[0] = 0.0f;
}

/* ---- Numbers ------------------------------------------------------------ */

static int first_rate_for_ever(struct fsdp_sharded *s, struct fsdp_step *how)
{
    const float *given = how->lr;
    int status;

    for (uint32_t g = 0; g < how->n_groups && g < GROUPS && given; g++) {
        rate[g] = mutant_now.steps == 0 ? given[g] : rate[g];
    }
    how->lr = rate;
    status = mutant_real.engine.step(s, how);
    how->lr = given;
    return status;
}

static void betas_hard_coded(struct fsdp_options *o)
{
    o->beta1 = 0.9f;
    o->beta2 = 0.999f;
}

static void eps_hard_coded(struct fsdp_options *o)
{
    o->eps = 1e-8f;
}

static void momentum_hard_coded(struct fsdp_options *o)
{
    o->momentum = 0.9f;
}

static bool plays_numbers_of_adamw(const struct run_case *c)
{
    return mutant_plays(c, "numbers") && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool plays_numbers_of_momentum(const struct run_case *c)
{
    return mutant_plays(c, "numbers") &&
           c->optimizer == FSDP_OPTIMIZER_MOMENTUM;
}

static int groups_modulo_two(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    struct fsdp_options own = *options;

    for (uint32_t p = 0; p < model->n_parameters && p < PARAMETERS &&
                         options->group_of_parameter;
         p++) {
        group[p] = options->group_of_parameter[p] % 2;
    }
    if (options->group_of_parameter) {
        own.group_of_parameter = group;
    }
    return mutant_real.engine.shard(env, model, units, &own, out);
}

static int rate_zero_skipped(struct fsdp_sharded *s, struct fsdp_step *how)
{
    if (how->lr && how->lr[0] == 0.0f) {
        how->found_inf = 0;
        return FSDP_OK;
    }
    return mutant_real.engine.step(s, how);
}

/* ---- What is remembered for too long ------------------------------------ */

static int norm_kept(struct fsdp_sharded *s, const struct fsdp_clip *how,
                     float *out_norm)
{
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    if (how->p == 2.0f && clips++ == 0) {
        norm = *out_norm;
    } else if (how->p == 2.0f) {
        *out_norm = norm;
    }
    return FSDP_OK;
}

static int norm_kept_zero(struct fsdp_sharded *s)
{
    clips = 0;
    return mutant_real.engine.zero_grad(s);
}

/* ---- What is not refused ------------------------------------------------ */

static int zero_in_pass(struct fsdp_sharded *s)
{
    return mutant_now.in_pass ? FSDP_OK : mutant_real.engine.zero_grad(s);
}

const struct mutant script_numbers_mutants[] = {
    /* A schedule that is never looked at. */
    {.name = "first-rate-for-ever",
     .text = "every step is made with the learning rate of the first",
     .evidence = "a rate that is captured with the graph of a step",
     .kills = "script.losses",
     .shows = {.script = "rates"},
     .calls = {.step = first_rate_for_ever},
     .forget = script_forget},
    /* These are the usual numbers. */
    {.name = "betas-hard-coded",
     .text = "betas are 0.9 and 0.999 whatever the options say",
     .evidence = "defaults that are written into a fused kernel",
     .kills = "script.losses",
     .shows = {.in = plays_numbers_of_adamw},
     .options = betas_hard_coded},
    {.name = "eps-hard-coded",
     .text = "eps is 1e-8 whatever the options say",
     .evidence = "defaults that are written into a fused kernel",
     .kills = "script.losses",
     .shows = {.in = plays_numbers_of_adamw},
     .options = eps_hard_coded},
    {.name = "momentum-hard-coded",
     .text = "momentum is 0.9 whatever the options say",
     .evidence = "defaults that are written into a fused kernel",
     .kills = "script.losses",
     .shows = {.in = plays_numbers_of_momentum},
     .options = momentum_hard_coded},
    {.name = "rate-zero-skipped",
     .text = "a step with a learning rate of 0 is left out as a whole",
     .evidence = "the first step of a warm-up that begins at 0",
     .kills = "script.values",
     .shows = {.script = "rate-zero"},
     .calls = {.step = rate_zero_skipped}},
    /* One bit tells two groups apart. */
    {.name = "groups-modulo-two",
     .text = "of parameter groups only the last bit is kept",
     .evidence = "a flag where a number is needed",
     .kills = "script.values",
     .shows = {.script = "five-groups"},
     .calls = {.shard = groups_modulo_two}},
    /* The same gradients, as far as the cache knows. */
    {.name = "norm-kept",
     .text = "until zero_grad the first norm is said again",
     .evidence = "a norm that is cached for logging",
     .kills = "script.norms",
     .shows = {.script = "clips-again"},
     .calls = {.clip_grad_norm = norm_kept, .zero_grad = norm_kept_zero},
     .forget = script_forget},
    /* The engine does not expect such a call. */
    {.name = "zero-in-pass",
     .text = "zero_grad succeeds in the middle of a pass, and does nothing",
     .evidence = "a call that is checked nowhere",
     .kills = "script.answers",
     .shows = {.script = "summon-pending"},
     .calls = {.zero_grad = zero_in_pass}},
    {0},
};
