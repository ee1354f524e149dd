/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_options.c - one table of options: how each value is read, and where it
 * goes.
 */
#include "tools/plan/plan_options.h"

#include "cases/case_precision.h"
#include "cli/line/arguments.h"
#include "judge/oracle/expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct plan_options, field)

static int take_switch(const struct option_row *row, char *value, void *options)
{
    (void)value;
    *(uint32_t *)option_field(row, options) = 1;
    return 0;
}

/* The name of an offload of all units, without the word that ids put before
 * it. */
static const char *offload_name(uint32_t offload)
{
    static const char *const name[] = {"none", "all", "optimizer", "params"};

    return offload <= CASE_OFFLOAD_PARAMS ? name[offload] : NULL;
}

/* The dtypes of unsharded and of reduced values: floating point. */
static const char *float_name(uint32_t i)
{
    const uint32_t dtype = FSDP_DTYPE_F32 + i;

    return dtype <= FSDP_DTYPE_F16 ? record_dtype_name(dtype) : NULL;
}

static int take_dtype(const struct option_row *row, char *value, void *options)
{
    const int code = option_name(row, value, options);

    *(uint32_t *)option_field(row, options) += FSDP_DTYPE_F32;
    return code;
}

/* "40GB" is 40 * 10^9, "40GiB" 40 * 2^30. */
static int take_bytes(const struct option_row *row, char *value, void *options)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } unit[] = {{"", 1},
                {"GB", 1000000000},
                {"MB", 1000000},
                {"GiB", (uint64_t)1 << 30},
                {"MiB", (uint64_t)1 << 20}};
    const char *end;
    uint64_t n;

    if (!option_digits(value, &n, &end)) {
        return option_wrong(row, value);
    }
    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
        if (strcmp(end, unit[i].name) == 0 && n > 0 &&
            n <= INT64_MAX / unit[i].bytes) {
            *(uint64_t *)option_field(row, options) = n * unit[i].bytes;
            return 0;
        }
    }
    return option_wrong(row, value);
}

static int take_share(const struct option_row *row, char *value, void *options)
{
    char *end = NULL;
    const double x = strtod(value, &end);

    if (end == value || *end != '\0' || !(x >= 0.0 && x <= 1.0)) {
        return option_wrong(row, value);
    }
    *(double *)option_field(row, options) = x;
    return 0;
}

/* For strategies that others have and no engine of the suite: an option of its
 * own, so that a plan without it is not taken for one with it. */
static int take_foreign(const struct option_row *row, char *value,
                        void *options)
{
    (void)value;
    (void)options;
    return option_refuse("--%s is not modelled: a plan is of FSDP and hybrid "
                         "sharding alone (docs/plan.md)",
                         row->name);
}

static int take_units(const struct option_row *row, char *value, void *options)
{
    uint32_t *const units = option_field(row, options);

    if (strcmp(value, "whole") == 0) {
        *units = 0;
        return 0;
    }
    if (strcmp(value, "leaf") == 0) {
        *units = UINT32_MAX;
        return 0;
    }
    return option_number(row, value, options);
}

static int take_sync(const struct option_row *row, char *value, void *options)
{
    struct run_case *const c = option_field(row, options);
    const size_t n = strlen(value);

    if (n < 1 || n > CASE_MAX_MICROBATCHES || strspn(value, "sn") != n ||
        value[n - 1] != 's') {
        return option_wrong(row, value);
    }
    c->microbatches = (uint32_t)n;
    for (size_t b = 0; b < CASE_MAX_MICROBATCHES; b++) {
        c->sync[b] = b < n && value[b] == 's';
    }
    return 0;
}

#define MOST_TOKENS ((uint64_t)1 << 40)
#define BYTES_RIGHT \
    "bytes from 1 to 2^63, as 85899345920, 80GB (10^9) or 80GiB (2^30)"

static const struct option_row rows[] = {
    {"ranks", "K", 0, "ranks, 1 to 65536 (1)", option_number, .at = AT(c.ranks),
     .given = AT(ranks_given), .least = 1, .most = EXPECT_MAX_RANKS},
    {"strategy", "S", 0, "this one alone, and more about it; else all five",
     option_name, .at = AT(c.strategy), .given = AT(one),
     .nth = case_strategy_name},
    {"replicas", "R", 0, "of the two hybrid ones (2)", option_number,
     .at = AT(c.replicas), .least = 2, .most = EXPECT_MAX_RANKS},
    {"layout", "L", 0, "flat (default) or per-parameter", option_name,
     .at = AT(c.layout), .nth = case_layout_name},
    {"optimizer", "O", 0, "sgd, momentum or adamw (default)", option_name,
     .at = AT(c.optimizer), .nth = case_optimizer_name},
    {"param-dtype", "D", 0, "of unsharded parameters: f32 (default), bf16, f16",
     take_dtype, .at = AT(param_dtype), .nth = float_name},
    {"reduce-dtype", "D", 0, "of gradients, summed and sent (f32)", take_dtype,
     .at = AT(reduce_dtype), .nth = float_name},
    {"precision", "P", 0,
     "these two and all other dtypes, as a case names them: bf16, bf16r ...",
     option_name, .at = AT(c.precision), .given = AT(precision_given),
     .nth = case_precision_name},
    {"units", "N", 0, "N units of the model as one; whole; or leaf: one each",
     take_units, .at = AT(units), .least = 1, .most = 65536,
     .right = "a number from 1, whole or leaf"},
    {"offload", "WHAT", 0,
     "rests on the host: optimizer (gradients too), params, all or none",
     option_name, .at = AT(c.offload), .nth = offload_name},
    {"keep-root", NULL, 0, "the root's unit is not resharded after its forward",
     take_switch, .at = AT(c.keep_root)},
    {"sync", "LETTERS", 0, "a letter a microbatch: s reduced, n not (s)",
     take_sync, .at = AT(c), .right = "up to four letters s and n, s the last"},
    {"prefetch-forward", "N", 0, "units gathered ahead (0)", option_number,
     .at = AT(c.prefetch_forward), .most = CASE_MAX_AHEAD},
    {"prefetch-backward", "N", 0, "units gathered ahead (0)", option_number,
     .at = AT(c.prefetch_backward), .most = CASE_MAX_AHEAD},
    {"reduces-in-flight", "N", 0, "reductions not waited for (0)",
     option_number, .at = AT(c.reduces_in_flight), .most = CASE_MAX_AHEAD},
    {"memory", "BYTES", 0,
     "of a rank (a --cluster's): says what fits, as 80GB or 80GiB", take_bytes,
     .at = AT(memory), .right = BYTES_RIGHT},
    {"activations", "BYTES", 0, "that the model needs beside it", take_bytes,
     .at = AT(activations), .right = BYTES_RIGHT},
    {"cluster", "C", 0,
     "simulate a step on a100, h100, h100-96gb, h200, or a file's cluster",
     option_text, .at = AT(cluster)},
    {"tokens", "N", 0, "of a rank and microbatch (--sequence)", option_number64,
     .at = AT(batch.tokens), .least = 1, .most = MOST_TOKENS,
     .right = "a number from 1 to 2^40"},
    {"sequence", "N", 0, "tokens of one sequence (2048)", option_number64,
     .at = AT(batch.sequence), .least = 1, .most = MOST_TOKENS,
     .right = "a number from 1 to 2^40"},
    {"recompute", "SHARE", 0,
     "of what blocks compute in the forward, again in the backward: 0 to 1 (0)",
     take_share, .at = AT(batch.recompute), .right = "a number from 0 to 1"},
    {"least-ranks", NULL, 0,
     "with --memory or --cluster: the fewest ranks, a power of two, of which "
     "each fits",
     option_flag, .at = AT(least_ranks)},
    {"try-units", NULL, 0,
     "with --strategy and --cluster: which units are fastest, by trying",
     option_flag, .at = AT(try_units)},
    {"page", "FILE", 0,
     "with --strategy: draw memory, and with --cluster time, as HTML",
     option_text, .at = AT(page)},
    {"check", NULL, 0,
     "of a record: whether it has the bytes that were planned", option_flag,
     .at = AT(check)},
    {"list", NULL, 0, "list the models that are brought along", option_flag,
     .at = AT(list)},
    {"exercises", NULL, 0, "answer the textbook's questions, and no other",
     option_flag, .at = AT(exercises)},
    {"tensor-parallel", "N", 0, "not modelled", .take = take_foreign},
    {"pipeline-parallel", "N", 0, "not modelled", .take = take_foreign},
    {"context-parallel", "N", 0, "not modelled", .take = take_foreign},
    {"float8", NULL, 0, "not modelled", .take = take_foreign},
    {"json", NULL, 0, "print JSON", option_flag, .at = AT(json)},
    {"help", NULL, 0, "this text", option_flag, .at = AT(help)},
};
static const struct option_table table = OPTION_TABLE(rows);

void plan_options_help(void)
{
    options_help(&table);
}

/* --param-dtype and --reduce-dtype: the precision that has both. */
static int find_precision(struct plan_options *o)
{
    const bool given = o->param_dtype != 0 || o->reduce_dtype != 0;
    const uint32_t param =
        given && o->param_dtype != 0 ? o->param_dtype : FSDP_DTYPE_F32;
    const uint32_t reduce =
        given && o->reduce_dtype != 0 ? o->reduce_dtype : FSDP_DTYPE_F32;

    if (given && o->precision_given) {
        return option_refuse("--precision says what --param-dtype and "
                             "--reduce-dtype do: one or the other");
    }
    if (!given) {
        return 0;
    }
    for (uint32_t p = 0; p < CASE_UNITS; p++) {
        const struct case_dtypes d =
            case_dtypes(&(struct run_case){.precision = p});

        if (d.param == param && d.reduce == reduce) {
            o->c.precision = p;
            return 0;
        }
    }
    return option_refuse("--param-dtype %s and --reduce-dtype %s: no precision "
                         "has both; bf16 goes with bf16 and f32, f16 too",
                         record_dtype_name(param), record_dtype_name(reduce));
}

static int check_together(const struct plan_options *o)
{
    const struct run_case *const c = &o->c;

    if (!o->model && !o->list && !o->exercises) {
        return option_refuse("needs a MODEL; see: fsdp-cts plan --help");
    }
    if (o->least_ranks &&
        ((o->memory == 0 && !o->cluster) || o->json || o->check)) {
        return option_refuse(
            "--least-ranks needs --memory or --cluster, and prints no JSON");
    }
    if (o->cluster && o->c.offload != CASE_NOT_OFFLOADED) {
        return option_refuse(
            "--offload does not go with --cluster: what is copied to the host "
            "takes time that is not modelled");
    }
    if (o->page && (!o->one || o->check || o->least_ranks)) {
        return option_refuse("--page needs --strategy, and goes with neither "
                             "--check nor --least-ranks");
    }
    if (o->try_units && (!o->one || !o->cluster || o->json)) {
        return option_refuse(
            "--try-units needs --strategy and --cluster, and prints no JSON");
    }
    if (c->replicas > 1 &&
        (c->replicas >= c->ranks || c->ranks % c->replicas != 0)) {
        return option_refuse(
            "--replicas %u: must be below --ranks %u and divide it",
            c->replicas, c->ranks);
    }
    return 0;
}

int plan_options_parse(int argc, char **argv, struct plan_options *out)
{
    int rest;
    int code;

    memset(out, 0, sizeof(*out));
    out->c = (struct run_case){.ranks = 1,
                               .replicas = 1,
                               .optimizer = FSDP_OPTIMIZER_ADAMW,
                               .microbatches = 1,
                               .sync = {1},
                               .steps = 1};
    out->units = 1;
    out->batch.sequence = 2048;
    code = options_read(&table, argc, argv, out, &rest);
    if (code != 0 || out->help) {
        return code;
    }
    if (rest + 1 < argc) {
        return option_refuse("one MODEL was expected, and not also '%.200s'",
                             argv[rest + 1]);
    }
    out->model = argv[rest];
    if (out->batch.tokens == 0) {
        out->batch.tokens = out->batch.sequence;
    }
    code = find_precision(out);
    return code != 0 ? code : check_together(out);
}
