/* SPDX-License-Identifier: Apache-2.0 */
/*
 * misuse_mutants.c - engines that do not refuse a wrong call, or that behave
 * differently after one, or after a cancelled pass.
 */
#include "mutants/mutant_kit.h"

#include <stdio.h>

static bool is_at_bracket(void)
{
    return mutant_now.point == FSDP_BEGIN || mutant_now.point == FSDP_END;
}

static bool is_between_brackets(void)
{
    return !is_at_bracket();
}

static bool is_parameter(void)
{
    return mutant_now.parameter < mutant_real.model->n_parameters;
}

static bool is_no_parameter(void)
{
    return !is_parameter();
}

static bool was_refused(void)
{
    return mutant_now.status == FSDP_ERR_INVALID &&
           mutant_now.point != FSDP_END;
}

static bool misuses_shards(const struct run_case *c)
{
    return mutant_misuse(c) && c->ranks > c->replicas;
}

static bool misuses_pending(const struct run_case *c)
{
    return c->scenario == CASE_MISUSE && c->microbatches > 1 && !c->sync[0];
}

static bool misuses_reduced(const struct run_case *c)
{
    return c->scenario == CASE_MISUSE && c->sync[0] &&
           (c->sync[1] || c->microbatches < 2);
}

static int tells_later(struct fsdp_sharded *s, uint32_t p,
                       struct fsdp_tensor *out)
{
    const struct fsdp_error first = *mutant_real.env->error;
    int status;

    *mutant_real.env->error = (struct fsdp_error){0};
    status = mutant_real.engine.param(s, p, out);
    if (status == FSDP_OK) {
        *mutant_real.env->error = first;
    }
    return status;
}

/* Refuses without a message. */
static int clips_silently(struct fsdp_sharded *s, const struct fsdp_clip *clip,
                          float *out)
{
    const int status = mutant_real.engine.clip_grad_norm(s, clip, out);

    if (status != FSDP_OK) {
        mutant_say("");
    }
    return status;
}

/* Refuses without naming the parameter, if the model has it. */
static int assigns_unnamed(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                           uint64_t n, const void *host)
{
    const int status = mutant_real.engine.assign(s, p, first, n, host);

    if (status != FSDP_OK && p < mutant_real.model->n_parameters) {
        mutant_say("no part of it");
    }
    return status;
}

/* Reads the whole struct, whatever its size says. */
static int clips_beyond(struct fsdp_sharded *s, const struct fsdp_clip *clip,
                        float *out)
{
    struct fsdp_clip whole = *clip;

    whole.size = sizeof(whole);
    return mutant_real.engine.clip_grad_norm(s, &whole, out);
}

static int refuse_size(const char *where)
{
    struct fsdp_error *const e = mutant_real.env->error;

    if (e->status == FSDP_OK) {
        *e = (struct fsdp_error){.status = FSDP_ERR_INVALID,
                                 .rank = (int32_t)mutant_real.env->rank};
        snprintf(e->where, sizeof(e->where), "%s", where);
        snprintf(e->message, sizeof(e->message), "another version");
    }
    return FSDP_ERR_INVALID;
}

static int clips_known_alone(struct fsdp_sharded *s,
                             const struct fsdp_clip *clip, float *out)
{
    return clip->size > sizeof(*clip)
               ? refuse_size("clip_grad_norm")
               : mutant_real.engine.clip_grad_norm(s, clip, out);
}

static int steps_known_alone(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return how->size > sizeof(*how) ? refuse_size("step")
                                    : mutant_real.engine.step(s, how);
}

static int shards_known_alone(const struct fsdp_env *env,
                              const struct fsdp_model *model,
                              const struct fsdp_units *units,
                              const struct fsdp_options *options,
                              struct fsdp_sharded **out)
{
    return options->size > sizeof(*options)
               ? refuse_size("shard")
               : mutant_real.engine.shard(env, model, units, options, out);
}

static int units_known_alone(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    return units->size > sizeof(*units)
               ? refuse_size("shard")
               : mutant_real.engine.shard(env, model, units, options, out);
}

static int models_known_alone(const struct fsdp_env *env,
                              const struct fsdp_model *model,
                              const struct fsdp_units *units,
                              const struct fsdp_options *options,
                              struct fsdp_sharded **out)
{
    return model->size > sizeof(*model)
               ? refuse_size("shard")
               : mutant_real.engine.shard(env, model, units, options, out);
}

/* Reads whole structs, whatever their sizes say; the copies stay, as engines
 * may borrow them. */
static int options_beyond(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    struct fsdp_options whole = *options;

    whole.size = sizeof(whole);
    return mutant_real.engine.shard(env, model, units, &whole, out);
}

static _Thread_local struct fsdp_units whole_units;

static int units_beyond(const struct fsdp_env *env,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units,
                        const struct fsdp_options *options,
                        struct fsdp_sharded **out)
{
    whole_units = *units;
    whole_units.size = sizeof(whole_units);
    return mutant_real.engine.shard(env, model, &whole_units, options, out);
}

static int saves_beyond(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save whole = *save;

    whole.size = sizeof(whole);
    return mutant_real.engine.save_begin(s, &whole);
}

static int saves_known_alone(struct fsdp_sharded *s,
                             const struct fsdp_save *save)
{
    return save->size > sizeof(*save) ? refuse_size("save_begin")
                                      : mutant_real.engine.save_begin(s, save);
}

static int loads_known_alone(struct fsdp_sharded *s,
                             const struct fsdp_load *how)
{
    return how->size != sizeof(*how) ? refuse_size("load_from")
                                     : mutant_real.engine.load_from(s, how);
}

static int summons_known_alone(struct fsdp_sharded *s,
                               const struct fsdp_summon *how)
{
    return how->size != sizeof(*how) ? refuse_size("summon")
                                     : mutant_real.engine.summon(s, how);
}

static int sends_known_alone(struct fsdp_sharded *s,
                             const struct fsdp_values *from)
{
    return from->size != sizeof(*from)
               ? refuse_size("send_values")
               : mutant_real.engine.send_values(s, from);
}

static bool clips(const struct run_case *c)
{
    return c->scenario == CASE_CLIP && mutant_mlp(c);
}

const struct mutant misuse_mutants[] = {
    {.name = "assign-ignored-unnamed",
     .text = "an assign of an ignored parameter is refused, and does not say "
             "of which",
     .evidence = "an error must name what is wrong",
     .kills = "error.says-which",
     .shows = {.script = "rewrite-ignored"},
     .calls.assign = assigns_unnamed},
    /* BEGIN in a pass, and END before its end, are ignored without a word. */
    {.name = "brackets-unchecked",
     .text = "BEGIN twice and an early END are not refused",
     .evidence = "pytorch/pytorch#117510",
     .kills = "error.out-of-order error.pass-edges",
     .shows = {.in = mutant_misuse},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(at), FSDP_ERR_INVALID},
     .when = is_at_bracket},
    /* A pass after a cancelled one differs from a pass after a whole one. */
    {.name = "cancel-disturbs",
     .text = "the pass after a cancelled one is averaged in another way",
     .evidence = "deepspeedai/DeepSpeed#3582",
     .kills = "error.cancel-harmless",
     .shows = {.in = mutant_cancels},
     .fault.kind = MUTANT_DOUBLES_AVERAGE,
     .when = mutant_is_cancelling},
    {.name = "clip-older-beyond",
     .text = "a clip of an older caller is read beyond its end",
     .evidence = "a struct that has grown, and a reader that does not ask",
     .kills = "error.struct-sizes",
     .shows = {.in = clips},
     .calls.clip_grad_norm = clips_beyond},
    {.name = "clip-newer-refused",
     .text = "a clip of a newer caller, whose struct is longer, is refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.in = clips},
     .calls.clip_grad_norm = clips_known_alone},
    {.name = "load-newer-refused",
     .text = "a load of a newer caller is refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.script = "load-lenient"},
     .calls.load_from = loads_known_alone},
    {.name = "model-newer-refused",
     .text = "a model of a newer caller is refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.in = mutant_misuse},
     .calls.shard = models_known_alone},
    {.name = "options-older-beyond",
     .text = "options of an older caller are read beyond their end",
     .evidence = "a struct that has grown, and a reader that does not ask",
     .kills = "error.struct-sizes",
     .shows = {.in = clips},
     .calls.shard = options_beyond},
    {.name = "options-newer-refused",
     .text = "options of a newer caller are refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.in = mutant_misuse},
     .calls.shard = shards_known_alone},
    {.name = "step-newer-refused",
     .text = "a step of a newer caller is refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.in = mutant_misuse},
     .calls.step = steps_known_alone},
    {.name = "save-newer-refused",
     .text = "a save of a newer caller is refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.in = mutant_any_mlp, .script = "save-parts"},
     .calls.save_begin = saves_known_alone},
    {.name = "save-older-beyond",
     .text = "a save of an older caller is read beyond its end",
     .evidence = "a struct that has grown, and a reader that does not ask",
     .kills = "error.struct-sizes",
     .shows = {.in = mutant_resume},
     .calls.save_begin = saves_beyond},
    {.name = "send-newer-refused",
     .text = "values of a newer caller are refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.script = "send-fill"},
     .calls.send_values = sends_known_alone},
    {.name = "summon-newer-refused",
     .text = "a summon of a newer caller is refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.script = "summon-some"},
     .calls.summon = summons_known_alone},
    {.name = "units-newer-refused",
     .text = "units of a newer caller are refused",
     .evidence = "a size that is compared for equality",
     .kills = "error.struct-sizes",
     .shows = {.in = mutant_misuse},
     .calls.shard = units_known_alone},
    {.name = "units-older-beyond",
     .text = "units of an older caller are read beyond their end",
     .evidence = "a struct that has grown, and a reader that does not ask",
     .kills = "error.struct-sizes",
     .shows = {.in = clips},
     .calls.shard = units_beyond},
    {.name = "clip-refused-silently",
     .text = "a clip is refused without a word",
     .evidence = "an error must name what is wrong",
     .kills = "error.says-why",
     .shows = {.script = "scale-clip-refused"},
     .calls.clip_grad_norm = clips_silently},
    /* Storage for a gradient is lent outside the backward. */
    {.name = "grad-outside-backward",
     .text = "grad succeeds outside its module's backward",
     .evidence = "pytorch/pytorch#117510",
     .kills = "error.gradient-after-backward error.gradient-outside-backward",
     .shows = {.in = mutant_misuse},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(grad), FSDP_ERR_INVALID}},
    /* The first error is replaced by one that follows from it. */
    {.name = "later-error-told",
     .text = "an error takes the place of the one before",
     .evidence = "logs that end with the last of many failures",
     .kills = "error.first-stays",
     .shows = {.in = mutant_misuse},
     .calls.param = tells_later},
    /* Points that are not the next of the sequence are ignored without a word.
     */
    {.name = "order-unchecked",
     .text = "a point out of order is not refused",
     .evidence = "pytorch/pytorch#64629",
     .kills = "error.out-of-order error.pass-edges error.unknown-index",
     .shows = {.in = mutant_misuse},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(at), FSDP_ERR_INVALID},
     .when = is_between_brackets},
    /* Parameters of a unit that is sharded are lent all the same. */
    {.name = "param-outside-window",
     .text = "param succeeds outside its unit's window",
     .evidence = "deepspeedai/DeepSpeed#8486",
     .kills = "error.outside-window",
     .shows = {.in = misuses_shards},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(param), FSDP_ERR_INVALID},
     .when = is_parameter},
    /* Pieces are told in the middle of a pass. */
    {.name = "pieces-in-pass",
     .text = "pieces succeeds between BEGIN and END",
     .evidence = "a checkpoint that is taken while weights change",
     .kills = "error.pieces-in-pass",
     .shows = {.in = mutant_misuse},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(pieces), FSDP_ERR_INVALID}},
    /* A call that is refused leaves its trace. */
    {.name = "refusal-disturbs",
     .text = "the pass in which a point was refused is averaged in another way",
     .evidence = "a failure that changes what it refused to do",
     .kills = "error.misuse-harmless",
     .shows = {.in = mutant_misuse},
     .fault.kind = MUTANT_DOUBLES_AVERAGE,
     .when = was_refused},
    /* The gradients that are pending were not reduced. */
    {.name = "step-drops-pending",
     .text = "step while gradients are pending is not refused",
     .evidence = "allenai/open-instruct#1498",
     .kills = "error.step-arguments error.step-with-pending",
     .shows = {.in = misuses_pending},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(step), FSDP_ERR_INVALID},
     .when = mutant_is_outside_pass},
    /* Step is taken for granted in the middle of a pass. */
    {.name = "step-in-pass",
     .text = "step succeeds where it must be refused, and does nothing",
     .evidence = "pytorch/pytorch#180666",
     .kills = "error.step-arguments error.step-in-pass",
     .shows = {.in = misuses_reduced},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(step), FSDP_ERR_INVALID}},
    /* A parameter that the model does not have is lent. */
    {.name = "unknown-parameter-lent",
     .text = "param succeeds for a number that is no parameter",
     .evidence = "an index that is not checked",
     .kills = "error.unknown-index",
     .shows = {.in = mutant_misuse},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(param), FSDP_ERR_INVALID},
     .when = is_no_parameter},
    {0},
};
