/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case.c - what can be asked about a case, and what an engine and the unsharded
 * run are told of it. Everything follows from the fields of a case alone, so
 * that every process that has the case can work it out. Factors and groups
 * (case_factors.h) and precisions (case_precision.h) are tables, a row each.
 */
#include "cases/case_factors.h"
#include "cases/case_graph.h"
#include "cases/case_precision.h"

#include "models/workload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

float case_default_lr(const struct run_case *c)
{
    /* Learning rates, by workload and then optimizer: small enough that the
     * loss of every case falls. */
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
    out->steps = CASE_DEFAULT_STEPS;
    out->recorded_steps = CASE_DEFAULT_RECORDED_STEPS;
}

bool case_is_script(const struct run_case *c)
{
    return c->scenario == CASE_SCRIPT;
}

bool case_is_graph(const struct run_case *c)
{
    return strcmp(c->workload, CASE_GRAPH) == 0;
}

static bool has_drawn_units(const struct run_case *c)
{
    return c->wrap == CASE_WRAP_DRAWN || c->wrap == CASE_WRAP_SCATTER;
}

bool case_has_own_units(const struct run_case *c)
{
    return c->wrap == CASE_WRAP_APART || c->wrap == CASE_WRAP_IGNORE ||
           c->wrap == CASE_WRAP_SCATTER ||
           (has_drawn_units(c) && (case_graph_has(c, GRAPH_OWN_UNIT) ||
                                   case_graph_has(c, GRAPH_IGNORED)));
}

bool case_ignores(const struct run_case *c)
{
    return c->wrap == CASE_WRAP_IGNORE ||
           (has_drawn_units(c) && case_graph_has(c, GRAPH_IGNORED));
}

bool case_leaves_unreduced(const struct run_case *c)
{
    for (uint32_t b = 0; b < c->microbatches && b < CASE_MAX_MICROBATCHES;
         b++) {
        if (c->sync[b] == 0) {
            return true;
        }
    }
    return false;
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

/* The ranks that load have another mesh and other units than those that saved;
 * under the wrap by hand (HEAD) also the other layout. */
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

/* Three steps clip by 2, 1 and infinity, far below the norm that gradients
 * have; the fourth asks for a norm far above it; then again. */
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

    snprintf(name, CASE_NORM_BYTES, "%s-step-%u",
             word[n < CASE_N_NORMS ? n : CASE_N_NORMS], step);
}

bool case_has_buffers(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "track") == 0;
}

bool case_is_tied(const struct run_case *c)
{
    return (strcmp(c->workload, "gpt") == 0 && strcmp(c->size, "tied") == 0) ||
           (strcmp(c->workload, "graph") == 0 &&
            (c->size[0] == 't' || c->size[0] == 'b'));
}

bool case_recomputes_alone(const struct run_case *c)
{
    return strcmp(c->workload, "graph") == 0 &&
           c->recompute == WORKLOAD_RECOMPUTE_PAIR;
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

static const struct factors {
    const char *name;
    float predivide; /* 0: none */
    bool units;      /* units have factors of their own */
    uint32_t groups; /* groups with numbers of their own; 0: none */
} factors[CASE_N_FACTORS] = {
    [CASE_USUAL_FACTORS] = {.name = "usual-factors"},
    [CASE_PRE2] = {.name = "pre2", .predivide = 2.0f},
    [CASE_PRE3] = {.name = "pre3", .predivide = 3.0f},
    [CASE_UNIT_FACTORS] = {.name = "unit-factors", .units = true},
    [CASE_ONE_GROUP] = {.name = "one-group", .groups = 1},
    [CASE_EMPTY_GROUP] = {.name = "empty-group", .groups = 3},
    [CASE_OWN_GROUPS] = {.name = "own-groups", .groups = 5},
};

/* No number equals that of the options, so that an engine that takes those for
 * a group is found out. */
static const struct case_numbers numbers[CASE_MAX_GROUPS] = {
    {0.875f, 0.8f, 0.99f, 1e-6f}, {0.5f, 0.75f, 0.9f, 1e-3f},
    {0.25f, 0.95f, 0.95f, 1e-2f}, {0.0f, 0.5f, 0.875f, 1e-4f},
    {0.75f, 0.0f, 0.75f, 0.125f},
};

static const struct factors *factors_of(const struct run_case *c)
{
    return &factors[c->factors < CASE_N_FACTORS ? c->factors : 0];
}

const char *case_factors_name(uint32_t factor)
{
    return factor < CASE_N_FACTORS ? factors[factor].name : NULL;
}

float case_predivide(const struct run_case *c)
{
    return factors_of(c)->predivide;
}

/* Neighbouring units are divided by different factors: the first by the
 * option's; the second by 2.5, which is no power of two, and 3 of it before the
 * fold; the third by 1. */
bool case_factors_of_unit(const struct run_case *c, uint32_t unit,
                          struct case_unit_factors *out)
{
    static const struct case_unit_factors own[] = {
        {0.0f, 0.0f}, {2.5f, 3.0f}, {1.0f, 0.0f}};

    *out = own[factors_of(c)->units ? unit % 3 : 0];
    return factors_of(c)->units;
}

bool case_has_numbers(const struct run_case *c)
{
    return factors_of(c)->groups > 0;
}

bool case_numbers_of_group(const struct run_case *c, uint32_t group,
                           struct case_numbers *out)
{
    *out = numbers[group < CASE_MAX_GROUPS ? group : 0];
    return case_has_numbers(c);
}

uint32_t case_groups(const struct run_case *c)
{
    if (case_has_numbers(c)) {
        return factors_of(c)->groups;
    }
    return c->scenario == CASE_GROUPS ? 2 : 1;
}

/* Groups are neither layers, nor weights and biases: neighbouring parameters
 * are in different groups. Of three groups the middle one is empty. */
uint32_t case_group_of(const struct run_case *c, uint32_t parameter)
{
    const uint32_t n = case_groups(c);

    if (n > 3) {
        return parameter % n;
    }
    return n > 1 && parameter % 3 == 1 ? n - 1 : 0;
}

/* By powers of two, so that what is exact stays so. */
float case_group_lr(const struct run_case *c, uint32_t group)
{
    static const float times[CASE_MAX_GROUPS] = {1.0f, 0.25f, 0.5f, 0.125f,
                                                 2.0f};

    return c->lr * times[group < CASE_MAX_GROUPS ? group : 0];
}

float case_group_decay(const struct run_case *c, uint32_t group)
{
    static const float times[CASE_MAX_GROUPS] = {1.0f, 8.0f, 2.0f, 4.0f, 0.5f};

    return c->weight_decay * times[group < CASE_MAX_GROUPS ? group : 0];
}

enum {
    F32 = FSDP_DTYPE_F32,
    BF16 = FSDP_DTYPE_BF16,
    F16 = FSDP_DTYPE_F16,
    NONE = FSDP_DTYPE_NONE
};

static const struct precision {
    const char *name;
    struct case_dtypes d; /* param, grad, accumulate, reduce, sum */
} precisions[CASE_N_PRECISIONS] = {
    [CASE_F32] = {"f32", {F32, F32, F32, F32, F32}},
    [CASE_BF16] = {"bf16", {BF16, BF16, F32, F32, F32}},
    [CASE_BF16_REDUCE] = {"bf16r", {BF16, BF16, BF16, BF16, BF16}},
    [CASE_BF16_SUM] = {"bf16s", {BF16, BF16, BF16, BF16, F32}},
    [CASE_REDUCE_BF16] = {"r16", {F32, F32, F32, BF16, BF16}},
    [CASE_BF16_ACCUMULATE] = {"bf16a", {BF16, BF16, BF16, F32, F32}},
    [CASE_FP16] = {"fp16", {F16, F16, F16, F16, F16}},
    [CASE_FP16_REDUCE_F32] = {"fp16r32", {F16, F16, F32, F32, F32}},
    [CASE_UNITS] = {"units", {BF16, BF16, F32, F32, F32}},
    [CASE_DEFAULTS] = {"defaults", {BF16, NONE, NONE, NONE, NONE}},
    [CASE_REDUCE_BF16_PENDING] = {"r16a", {F32, F32, BF16, BF16, BF16}},
};

const char *case_precision_name(uint32_t precision)
{
    return precision < CASE_N_PRECISIONS ? precisions[precision].name : NULL;
}

struct case_dtypes case_dtypes(const struct run_case *c)
{
    return precisions[c->precision < CASE_N_PRECISIONS ? c->precision : 0].d;
}

bool case_has_units_dtypes(const struct run_case *c)
{
    return c->precision == CASE_UNITS || c->precision == CASE_DEFAULTS;
}

/* Neighbouring units have different dtypes: those of the options, float32,
 * float16. Under DEFAULTS the dtypes that a unit leaves out follow from its
 * own, not from the options; its gradients are then wider than their sum (F32,
 * sent in F16), or as narrow. */
bool case_dtypes_of_unit(const struct run_case *c, uint32_t unit,
                         struct case_dtypes *out)
{
    static const uint32_t of[] = {CASE_UNITS, CASE_F32, CASE_FP16};

    static const struct case_dtypes less[] = {{BF16, NONE, NONE, NONE, NONE},
                                              {F32, NONE, NONE, F16, NONE},
                                              {F16, NONE, NONE, F16, NONE}};

    *out = case_dtypes(c);
    if (!case_has_units_dtypes(c)) {
        return false;
    }
    *out = c->precision == CASE_UNITS ? precisions[of[unit % 3]].d
                                      : less[unit % 3];
    return unit % 3 != 0;
}

bool case_uses_dtype(const struct run_case *c, uint32_t dtype)
{
    for (uint32_t u = 0; u < 3; u++) {
        struct case_dtypes d;

        (void)case_dtypes_of_unit(c, u, &d);
        if (d.param == dtype || d.grad == dtype || d.accumulate == dtype ||
            d.reduce == dtype) {
            return true;
        }
    }
    return false;
}

uint32_t case_buffer_dtype(const struct run_case *c, uint32_t param)
{
    return case_has_buffers(c) && c->precision != CASE_DEFAULTS ? param : NONE;
}

bool case_sums_wide(const struct run_case *c)
{
    const struct case_dtypes d = case_dtypes(c);

    return d.sum != NONE && d.sum != d.reduce;
}
