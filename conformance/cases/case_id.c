/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_id.c - what a case, and each value of its axes, is called; and by which
 * key cases find the unsharded run that they share. case_check.c goes the
 * other way.
 */
#include "cases/case.h"
#include "cases/case_factors.h"
#include "cases/case_precision.h"

#include "models/workload.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        snprintf(text, CASE_FLOAT_BYTES, "%.*g", digits, (double)x);
        /* Read as a double first, as readers of JSON do. */
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

/* R where the strategy leaves no choice of it; 0 where it leaves one. */
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
    if (!case_is_script(c)) { /* the steps of a script are its actions */
        id_add_unless(id, "steps", c->steps, CASE_DEFAULT_STEPS);
        id_add_unless(id, "rec", c->recorded_steps,
                      c->steps < CASE_DEFAULT_RECORDED_STEPS
                          ? c->steps
                          : CASE_DEFAULT_RECORDED_STEPS);
    }
    id_add_unless(id, "seed", c->seed, CASE_DEFAULT_SEED);
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

void case_baseline_key(const struct run_case *c, char key[CASE_ID_BYTES])
{
    struct id out = {key, 0};
    char sync[CASE_MAX_MICROBATCHES + 1];

    case_sync_text(c, sync);
    id_add(&out, "%.16s.%.16s.%s.seed%llu.k%ur%u.%s", c->workload, c->size,
           named(case_data_name(c->data)), (unsigned long long)c->seed,
           c->ranks, c->replicas, named(case_fold_name(c->fold)));
    if (c->fold == FSDP_FOLD_RING || c->wrap == CASE_WRAP_DRAWN ||
        (c->wrap == CASE_WRAP_SCATTER && strcmp(c->workload, "graph") == 0) ||
        c->wrap == CASE_WRAP_IGNORE || /* ignored parameters have no pieces */
        case_has_units_dtypes(c) || c->factors == CASE_UNIT_FACTORS) {
        /* The baseline depends on the units. Under the ring fold an element is
         * folded in an order that begins after its owner, which depends on the
         * units. Where modules are left out, the units decide which parameters
         * are stepped; and where units have dtypes or factors of their own, the
         * units decide the dtype of a parameter and what its gradient is
         * divided by. */
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
    if (case_recomputes_alone(c)) {
        id_add(&out, ".%s", named(case_recompute_name(c->recompute)));
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

/* Whether the key of c is new; then it is added to `keys`, which has those of
 * the cases so far: with thousands of cases they are not made anew for each. */
static bool add_key(char (*keys)[CASE_ID_BYTES], uint32_t n,
                    const struct run_case *c)
{
    case_baseline_key(c, keys[n]);
    for (uint32_t k = 0; k < n; k++) {
        if (strcmp(keys[n], keys[k]) == 0) {
            return false;
        }
    }
    return true;
}

int case_baselines(const struct case_list *cases, struct case_list *out)
{
    char(*keys)[CASE_ID_BYTES] = malloc((cases->n + 1u) * sizeof(*keys));

    *out = (struct case_list){calloc(cases->n + 1u, sizeof(*out->c)), 0};
    for (uint32_t i = 0; i < cases->n && keys && out->c; i++) {
        struct run_case plain = cases->c[i];

        if (!case_trains(&plain) || !add_key(keys, out->n, &plain)) {
            continue;
        }
        if (plain.scenario != CASE_EVAL && plain.scenario != CASE_CLIP &&
            plain.scenario != CASE_GROUPS && !case_is_script(&plain)) {
            plain.scenario = CASE_TRAIN; /* what the key stands for */
        }
        if (!case_recomputes_alone(&plain)) {
            plain.recompute = WORKLOAD_KEEPS; /* no part of the key, */
        }
        plain.offload = CASE_NOT_OFFLOADED; /* nor is this */
        out->c[out->n++] = plain;
    }
    if (!keys) {
        manifest_release(out);
    }
    free(keys);
    return out->c ? FSDP_OK : FSDP_ERR_NOMEM;
}
