/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case.c - what a case is called, and what an engine and the unsharded run
 * are told of it. Everything follows from the fields of
 * a case alone, so that every process that has the case has all of this.
 */
#include "cases/case_factors.h"
#include "cases/case_precision.h"

#include "models/workload.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an id does not mention. */
enum {
    DEFAULT_SEED = 1,
    DEFAULT_STEPS = 4,
    DEFAULT_RECORDED_STEPS = 2,
};

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

const char *case_strategy_name(uint32_t strategy)
{
    static const char *const name[] = {"full-shard", "shard-grad-op",
                                       "no-shard", "hybrid-shard",
                                       "hybrid-shard-zero2"};

    return strategy < N_OF(name) ? name[strategy] : NULL;
}

const char *case_wrap_name(uint32_t wrap)
{
    static const char *const name[] = {"whole",  "layer",  "pair",  "size",
                                       "block",  "head",   "drawn", "apart",
                                       "ignore", "scatter"};

    return wrap < N_OF(name) ? name[wrap] : NULL;
}

const char *case_scenario_name(uint32_t scenario)
{
    static const char *const name[] = {
        "train",  "eval",  "cancel", "misuse",      "options",      "disagree",
        "summon", "again", "resume", "resume-full", "resume-local", "grow",
        "shrink", "clip",  "groups", "shard",       "script"};

    return scenario < N_OF(name) ? name[scenario] : NULL;
}

const char *case_fold_name(uint32_t fold)
{
    static const char *const name[] = {"rank", "ring", "tree"};

    return fold < N_OF(name) ? name[fold] : NULL;
}

const char *case_optimizer_name(uint32_t optimizer)
{
    static const char *const name[] = {"sgd", "momentum", "adamw"};

    return optimizer < N_OF(name) ? name[optimizer] : NULL;
}

const char *case_layout_name(uint32_t layout)
{
    static const char *const name[] = {"flat", "per-parameter"};

    return layout < N_OF(name) ? name[layout] : NULL;
}

const char *case_data_name(uint32_t data)
{
    static const char *const name[] = {"natural", "exact", "replicated",
                                       "exact16"};

    return data < N_OF(name) ? name[data] : NULL;
}

const char *case_recompute_name(uint32_t recompute)
{
    static const char *const name[] = {"none", "recompute-block",
                                       "recompute-around", "recompute-pair",
                                       "recompute-half"};

    return recompute < N_OF(name) ? name[recompute] : NULL;
}

const char *case_frozen_name(uint32_t frozen)
{
    static const char *const name[] = {
        "none",        "frozen-prefix", "frozen-alternate", "frozen-matrices",
        "frozen-body", "frozen-base"};

    return frozen < N_OF(name) ? name[frozen] : NULL;
}

const char *case_offload_name(uint32_t offload)
{
    static const char *const name[] = {
        "none",           "offload",      "offload-optimizer",
        "offload-params", "offload-less", "offload-some"};

    return offload < N_OF(name) ? name[offload] : NULL;
}

bool case_value(const char *(*name)(uint32_t), const char *text, uint32_t *out)
{
    for (uint32_t i = 0; name(i); i++) {
        if (strcmp(name(i), text) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

void case_sync_text(const struct run_case *c,
                    char text[CASE_MAX_MICROBATCHES + 1])
{
    uint32_t n = 0;

    while (n < c->microbatches && n < CASE_MAX_MICROBATCHES) {
        text[n] = c->sync[n] != 0 ? 's' : 'n';
        n++;
    }
    text[n] = '\0';
}

void case_float_text(float x, char text[CASE_FLOAT_BYTES])
{
    char *plus;

    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(text, CASE_FLOAT_BYTES, "%.*g", digits, (double)x);
        /* By way of double, as readers of JSON go. */
        if ((float)strtod(text, NULL) == x) {
            break;
        }
    }
    plus = strchr(text, '+');
    if (plus) {
        memmove(plus, plus + 1, strlen(plus));
    }
}

/* A text that grows from the left in a buffer of CASE_ID_BYTES. What does not
 * fit is cut off; the ids of well-formed cases fit. */
struct id {
    char *text;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void
id_add(struct id *id, const char *format, ...)
{
    const size_t room = CASE_ID_BYTES - id->length;
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(id->text + id->length, room, format, arguments);
    va_end(arguments);
    if (n > 0) {
        id->length += (size_t)n < room ? (size_t)n : room - 1;
    }
}

static void id_add_float(struct id *id, const char *what, float x)
{
    char text[CASE_FLOAT_BYTES];

    case_float_text(x, text);
    id_add(id, ".%s%s", what, text);
}

static void id_add_unless(struct id *id, const char *what, uint64_t value,
                          uint64_t unless)
{
    if (value != unless) {
        id_add(id, ".%s%llu", what, (unsigned long long)value);
    }
}

/* Only malformed cases have a value without a name. */
static const char *named(const char *name)
{
    return name ? name : "unknown";
}

/* Bits, so that a difference in the sign of zero shows as well. */
static bool same_float(float a, float b)
{
    uint32_t x;
    uint32_t y;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    return x == y;
}

/* R where the strategy leaves no choice; 0 where it does. */
static uint32_t usual_replicas(const struct run_case *c)
{
    switch (c->strategy) {
    case CASE_FULL_SHARD:
    case CASE_SHARD_GRAD_OP:
        return 1;
    case CASE_NO_SHARD:
        return c->ranks;
    default:
        return 0;
    }
}

static void id_add_what_is_special(struct id *id, const struct run_case *c)
{
    const uint32_t usual_grains = case_grains(c->fold, c->ranks);

    if (case_is_script(c)) {
        id_add(id, ".%.23s", c->script);
    } else if (c->scenario != CASE_TRAIN) {
        id_add(id, ".%s", named(case_scenario_name(c->scenario)));
    }
    if (c->precision != CASE_F32) {
        id_add(id, ".%s", named(case_precision_name(c->precision)));
    }
    if (c->factors != CASE_USUAL_FACTORS) {
        id_add(id, ".%s", named(case_factors_name(c->factors)));
    }
    if (c->offload != CASE_NOT_OFFLOADED) {
        id_add(id, ".%s", named(case_offload_name(c->offload)));
    }
    if (c->keep_root != 0) {
        id_add(id, ".keep-root");
    }
    if (c->recompute != WORKLOAD_KEEPS) {
        id_add(id, ".%s", named(case_recompute_name(c->recompute)));
    }
    if (c->frozen != WORKLOAD_TRAINS_ALL) {
        id_add(id, ".%s", named(case_frozen_name(c->frozen)));
    }
    id_add_unless(id, "grains", c->grains, usual_grains);
    if (!same_float(c->lr, case_default_lr(c))) {
        id_add_float(id, "lr", c->lr);
    }
    if (!same_float(c->weight_decay, 0.0f)) {
        id_add_float(id, "wd", c->weight_decay);
    }
    if (!same_float(c->divide_factor, 0.0f)) {
        id_add_float(id, "div", c->divide_factor);
    }
    id_add_unless(id, "pf", c->prefetch_forward, 0);
    id_add_unless(id, "pb", c->prefetch_backward, 0);
    id_add_unless(id, "rif", c->reduces_in_flight, 0);
    if (!case_is_script(c)) { /* which has as many as actions */
        id_add_unless(id, "steps", c->steps, DEFAULT_STEPS);
        id_add_unless(id, "rec", c->recorded_steps,
                      c->steps < DEFAULT_RECORDED_STEPS
                          ? c->steps
                          : DEFAULT_RECORDED_STEPS);
    }
    id_add_unless(id, "seed", c->seed, DEFAULT_SEED);
}

void case_id(const struct run_case *c, char id[CASE_ID_BYTES])
{
    struct id out = {id, 0};
    char sync[CASE_MAX_MICROBATCHES + 1];

    id_add(&out, "%.16s.%.16s.%s.%s.k%u", c->workload, c->size,
           named(case_data_name(c->data)),
           named(case_strategy_name(c->strategy)), c->ranks);
    if (c->replicas != usual_replicas(c)) {
        id_add(&out, "r%u", c->replicas);
    }
    case_sync_text(c, sync);
    id_add(&out, ".%s.%s.%s.%s.%s", named(case_layout_name(c->layout)),
           named(case_wrap_name(c->wrap)), named(case_fold_name(c->fold)), sync,
           named(case_optimizer_name(c->optimizer)));
    id_add_what_is_special(&out, c);
}

float case_default_lr(const struct run_case *c)
{
    /* By workload, then optimizer: small enough that every curve falls. */
    static const float mlp[] = {0.05f, 0.02f, 0.01f};
    static const float gpt[] = {0.1f, 0.02f, 0.001f};
    static const float other[] = {0.25f, 0.25f, 0.03125f};
    const uint32_t o = c->optimizer < N_OF(mlp) ? c->optimizer : 0;

    if (strncmp(c->workload, "gpt", sizeof(c->workload)) == 0 ||
        strncmp(c->workload, "lora", sizeof(c->workload)) == 0) {
        return gpt[o];
    }
    if (strncmp(c->workload, "mlp", sizeof(c->workload)) == 0 ||
        strncmp(c->workload, "graph", sizeof(c->workload)) == 0) {
        /* Exact data ask for a power of two. */
        return c->data == WORKLOAD_EXACT ? 0.0625f : mlp[o];
    }
    return c->data == WORKLOAD_EXACT16 ? 0.125f : other[o];
}

bool case_trains(const struct run_case *c)
{
    return c->scenario != CASE_OPTIONS && c->scenario != CASE_DISAGREE &&
           c->scenario != CASE_SHARD;
}

void case_sharded(const struct run_case *c, struct run_case *out)
{
    *out = *c;
    out->scenario = CASE_SHARD;
    memset(out->script, 0, sizeof(out->script));
    out->fold = FSDP_FOLD_RANK;
    out->grains = 0;
    out->keep_root = 0;
    out->microbatches = 1;
    memset(out->sync, 0, sizeof(out->sync));
    out->sync[0] = 1;
    out->optimizer = FSDP_OPTIMIZER_SGD;
    out->precision = CASE_F32; /* what rests is float32 */
    out->data = c->data == WORKLOAD_EXACT16 ? WORKLOAD_EXACT : c->data;
    out->factors = CASE_USUAL_FACTORS;
    out->offload = CASE_NOT_OFFLOADED;
    out->lr = case_default_lr(out);
    out->weight_decay = out->divide_factor = 0.0f;
    out->prefetch_forward = out->prefetch_backward = 0;
    out->reduces_in_flight = 0;
    out->recompute = WORKLOAD_KEEPS;
    if (c->wrap != CASE_WRAP_APART && c->wrap != CASE_WRAP_IGNORE) {
        out->frozen = WORKLOAD_TRAINS_ALL;
    }
    out->steps = DEFAULT_STEPS;
    out->recorded_steps = DEFAULT_RECORDED_STEPS;
}

bool case_is_script(const struct run_case *c)
{
    return c->scenario == CASE_SCRIPT;
}

uint32_t case_losses_a_step(const struct run_case *c)
{
    return case_is_script(c) ? 1 : c->microbatches;
}

bool case_resumes(const struct run_case *c)
{
    return c->scenario >= CASE_RESUME && c->scenario <= CASE_SHRINK;
}

bool case_is_weighed(const struct run_case *c)
{
    const bool large = strcmp(c->workload, "gpt") == 0 &&
                       strcmp(c->size, "small") == 0 && c->steps < 20;
    const bool lasting = strcmp(c->workload, "mlp") == 0 &&
                         c->data == WORKLOAD_NATURAL && c->steps == 40 &&
                         c->ranks == 4 && c->wrap == CASE_WRAP_LAYER;

    return (large || lasting) && c->scenario == CASE_TRAIN &&
           c->precision == CASE_F32 && c->factors == CASE_USUAL_FACTORS &&
           c->offload == CASE_NOT_OFFLOADED && c->prefetch_forward == 0 &&
           c->prefetch_backward == 0 && c->reduces_in_flight == 0;
}

/* Whoever loads has another mesh and other units; under the wrap by hand also
 * the other layout. */
bool case_saver(const struct run_case *c, struct run_case *out)
{
    *out = *c;
    if (c->scenario != CASE_GROW && c->scenario != CASE_SHRINK) {
        return false;
    }
    out->scenario = CASE_TRAIN;
    out->ranks = c->scenario == CASE_GROW ? c->ranks / 2 : 2 * c->ranks;
    out->wrap = c->wrap == CASE_WRAP_WHOLE ? CASE_WRAP_LAYER : CASE_WRAP_WHOLE;
    if (c->wrap == CASE_WRAP_HEAD) {
        out->layout = c->layout == FSDP_LAYOUT_FLAT ? FSDP_LAYOUT_PER_PARAMETER
                                                    : FSDP_LAYOUT_FLAT;
    }
    out->keep_root = 0;
    out->strategy = CASE_FULL_SHARD;
    out->replicas = 1;
    if (c->strategy == CASE_FULL_SHARD && out->ranks >= 4) {
        out->strategy = CASE_HYBRID_SHARD;
        out->replicas = 2;
    }
    out->recorded_steps = 0;
    return true;
}

uint32_t case_grains(uint32_t fold, uint32_t ranks)
{
    const uint32_t grains[] = {CASE_GRAINS, CASE_MANY_GRAINS};

    for (uint32_t i = 0; i < 2 && fold == FSDP_FOLD_TREE && ranks > 0; i++) {
        if (grains[i] % ranks == 0) {
            return grains[i];
        }
    }
    return 0;
}

const float case_norm_p[CASE_N_NORMS] = {1.0f, 2.0f, INFINITY};

/* One norm after the other, far below what gradients have; then one that is
 * far above, and so on. */
void case_clip(const struct run_case *c, uint32_t step, struct fsdp_clip *out)
{
    static const float p[] = {2.0f, 1.0f, INFINITY, 2.0f};

    (void)c;
    *out = (struct fsdp_clip){.size = sizeof(*out),
                              .max_norm = step % 4 == 3 ? 0x1p40f : 0x1p-6f,
                              .p = p[step % 4]};
}

void case_norm_name(uint32_t n, uint32_t step, char name[CASE_NORM_BYTES])
{
    static const char *const word[] = {"norm-1", "norm-2", "norm-inf",
                                       "norm-clipped"};

    (void)snprintf(name, CASE_NORM_BYTES, "%s-step-%u",
                   word[n < CASE_N_NORMS ? n : CASE_N_NORMS], step);
}

bool case_has_buffers(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "track") == 0;
}

bool case_is_tied(const struct run_case *c)
{
    return (strcmp(c->workload, "gpt") == 0 && strcmp(c->size, "tied") == 0) ||
           (strcmp(c->workload, "graph") == 0 && c->size[0] == 't');
}

uint32_t case_offload_of_unit(const struct run_case *c, uint32_t unit)
{
    static const uint32_t less[] = {0, 2,
                                    FSDP_OFFLOAD_OWN | FSDP_OFFLOAD_OPTIMIZER,
                                    FSDP_OFFLOAD_OWN | FSDP_OFFLOAD_PARAMS};
    static const uint32_t some[] = {
        1, 0, FSDP_OFFLOAD_OWN | FSDP_OFFLOAD_PARAMS,
        FSDP_OFFLOAD_OWN | FSDP_OFFLOAD_ALL | FSDP_OFFLOAD_OPTIMIZER};

    return c->offload == CASE_OFFLOAD_LESS   ? less[unit % N_OF(less)]
           : c->offload == CASE_OFFLOAD_SOME ? some[unit % N_OF(some)]
                                             : 0;
}

uint32_t case_shard_degree(const struct run_case *c)
{
    return c->replicas != 0 ? c->ranks / c->replicas : 0;
}

void case_options(const struct run_case *c, struct fsdp_options *out)
{
    static const uint32_t offload[CASE_N_OFFLOADS] = {
        [CASE_OFFLOAD_ALL] = FSDP_OFFLOAD_ALL,
        [CASE_OFFLOAD_OPTIMIZER] = FSDP_OFFLOAD_OPTIMIZER,
        [CASE_OFFLOAD_PARAMS] = FSDP_OFFLOAD_PARAMS,
        [CASE_OFFLOAD_LESS] = FSDP_OFFLOAD_OPTIMIZER | FSDP_OFFLOAD_PARAMS};

    memset(out, 0, sizeof(*out));
    out->size = sizeof(*out);
    out->layout = c->layout;
    out->offload = c->offload < CASE_N_OFFLOADS ? offload[c->offload] : 0;
    out->fold = c->fold;
    out->reshard_after_forward =
        c->strategy == CASE_FULL_SHARD || c->strategy == CASE_HYBRID_SHARD;
    out->keep_root = c->keep_root;
    out->optimizer = c->optimizer;
    out->momentum = 0.9f;
    out->beta1 = 0.9f;
    out->beta2 = 0.999f;
    out->eps = 1e-8f;
    out->divide_factor = c->divide_factor;
    out->predivide_factor = case_predivide(c);
    if (c->precision != CASE_F32) {
        const struct case_dtypes d = case_dtypes(c);

        out->param_dtype = d.param;
        out->grad_dtype = d.grad;
        out->accumulate_dtype = d.accumulate;
        out->reduce_dtype = d.reduce;
        out->sum_dtype = d.sum;
        out->buffer_dtype = case_buffer_dtype(c, d.param);
    }
    out->prefetch_forward = c->prefetch_forward;
    out->prefetch_backward = c->prefetch_backward;
    out->reduces_in_flight = c->reduces_in_flight;
}

void case_baseline_key(const struct run_case *c, char key[CASE_ID_BYTES])
{
    struct id out = {key, 0};
    char sync[CASE_MAX_MICROBATCHES + 1];

    case_sync_text(c, sync);
    id_add(&out, "%.16s.%.16s.%s.seed%llu.k%ur%u.%s", c->workload, c->size,
           named(case_data_name(c->data)), (unsigned long long)c->seed,
           c->ranks, c->replicas, named(case_fold_name(c->fold)));
    if (c->fold == FSDP_FOLD_RING || c->wrap == CASE_WRAP_DRAWN ||
        c->wrap == CASE_WRAP_IGNORE || /* it has no pieces of what is ignored */
        case_has_units_dtypes(c) || c->factors == CASE_UNIT_FACTORS) {
        /* An element is folded in an order that begins after its owner, and
         * who that is depends on the units. And where modules are left out,
         * it depends on the units which parameters are stepped; or what
         * dtype they have, or what they are divided by. */
        id_add(&out, ".%s.%s", named(case_layout_name(c->layout)),
               named(case_wrap_name(c->wrap)));
    }
    id_add(&out, ".g%u.%s.%s", c->grains, sync,
           named(case_optimizer_name(c->optimizer)));
    id_add_float(&out, "lr", c->lr);
    id_add_float(&out, "wd", c->weight_decay);
    id_add_float(&out, "div", c->divide_factor);
    id_add(&out, ".steps%u.rec%u", c->steps, c->recorded_steps);
    if (c->precision != CASE_F32) {
        id_add(&out, ".%s", named(case_precision_name(c->precision)));
    }
    if (c->frozen != WORKLOAD_TRAINS_ALL) {
        id_add(&out, ".%s", named(case_frozen_name(c->frozen)));
    }
    if (c->factors != CASE_USUAL_FACTORS) {
        id_add(&out, ".%s", named(case_factors_name(c->factors)));
    }
    if (c->scenario == CASE_EVAL) {
        id_add(&out, ".eval");
    }
    if (case_is_script(c)) {
        id_add(&out, ".%.23s", c->script);
    }
    if (c->scenario == CASE_CLIP || c->scenario == CASE_GROUPS) {
        id_add(&out, ".%s", case_scenario_name(c->scenario));
    }
}
