/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_options.c - one table of options: how each value is read, and where it
 * goes.
 */
#include "tools/plan/plan_options.h"

#include "cases/case_precision.h"
#include "cli/line/arguments.h"
#include "judge/oracle/expect.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct option_row {
    const char *name, *value; /* value: what --help calls it; NULL: none */
    const char *help;
    /* False: `value` is none; `right` says what would be. */
    bool (*take)(const struct option_row *row, const char *value,
                 struct plan_options *out);
    size_t at;
    uint64_t least, most;
    const char *(*names)(uint32_t);
    const char *right;
};

#define AT(field) .at = offsetof(struct plan_options, field)

static void *field_of(const struct option_row *row, struct plan_options *out)
{
    return (char *)out + row->at;
}

static bool read_number(const char *text, uint64_t *out, const char **end)
{
    char *rest = NULL;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *out = strtoull(text, &rest, 10);
    *end = rest;
    return errno == 0;
}

static bool take_number(const struct option_row *row, const char *value,
                        struct plan_options *out)
{
    const char *end;
    uint64_t n;

    if (!read_number(value, &n, &end) || *end != '\0' || n < row->least ||
        n > row->most) {
        return false;
    }
    *(uint32_t *)field_of(row, out) = (uint32_t)n;
    return true;
}

static bool take_ranks(const struct option_row *row, const char *value,
                       struct plan_options *out)
{
    out->ranks_given = true;
    return take_number(row, value, out);
}

static bool take_flag(const struct option_row *row, const char *value,
                      struct plan_options *out)
{
    (void)value;
    *(bool *)field_of(row, out) = true;
    return true;
}

static bool take_switch(const struct option_row *row, const char *value,
                        struct plan_options *out)
{
    (void)value;
    *(uint32_t *)field_of(row, out) = 1;
    return true;
}

static bool take_name(const struct option_row *row, const char *value,
                      struct plan_options *out)
{
    return case_value(row->names, value, field_of(row, out));
}

/* What all units have on the host, without the word that ids have before it. */
static const char *offload_name(uint32_t offload)
{
    static const char *const name[] = {"none", "all", "optimizer", "params"};

    return offload <= CASE_OFFLOAD_PARAMS ? name[offload] : NULL;
}

static bool take_strategy(const struct option_row *row, const char *value,
                          struct plan_options *out)
{
    out->one = true;
    return take_name(row, value, out);
}

/* Of what is unsharded, and of what is reduced: floating point. */
static const char *float_name(uint32_t dtype)
{
    return dtype >= FSDP_DTYPE_F32 && dtype <= FSDP_DTYPE_F16
               ? record_dtype_name(dtype)
               : NULL;
}

static bool take_dtype(const struct option_row *row, const char *value,
                       struct plan_options *out)
{
    for (uint32_t d = FSDP_DTYPE_F32; d <= FSDP_DTYPE_F16; d++) {
        if (strcmp(row->names(d), value) == 0) {
            *(uint32_t *)field_of(row, out) = d;
            return true;
        }
    }
    return false;
}

/* "40GB" is 40 * 10^9, "40GiB" 40 * 2^30. */
static bool take_bytes(const struct option_row *row, const char *value,
                       struct plan_options *out)
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

    if (!read_number(value, &n, &end)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
        if (strcmp(end, unit[i].name) == 0) {
            *(uint64_t *)field_of(row, out) = n * unit[i].bytes;
            return n > 0 && n <= INT64_MAX / unit[i].bytes;
        }
    }
    return false;
}

static bool take_text(const struct option_row *row, const char *value,
                      struct plan_options *out)
{
    *(const char **)field_of(row, out) = value;
    return true;
}

static bool take_tokens(const struct option_row *row, const char *value,
                        struct plan_options *out)
{
    const char *end;
    uint64_t n;

    if (!read_number(value, &n, &end) || *end != '\0' || n < 1 ||
        n > (uint64_t)1 << 40) {
        return false;
    }
    *(uint64_t *)field_of(row, out) = n;
    return true;
}

static bool take_share(const struct option_row *row, const char *value,
                       struct plan_options *out)
{
    char *end = NULL;
    const double x = strtod(value, &end);

    if (end == value || *end != '\0' || !(x >= 0.0 && x <= 1.0)) {
        return false;
    }
    *(double *)field_of(row, out) = x;
    return true;
}

/* What others have and no engine of the suite: an option of its own, so that
 * nobody takes a plan without it for one with it. */
static bool take_foreign(const struct option_row *row, const char *value,
                         struct plan_options *out)
{
    (void)value;
    (void)out;
    (void)row;
    return false;
}

static bool take_precision(const struct option_row *row, const char *value,
                           struct plan_options *out)
{
    out->precision_given = true;
    return case_value(row->names, value, field_of(row, out));
}

static bool take_units(const struct option_row *row, const char *value,
                       struct plan_options *out)
{
    if (strcmp(value, "whole") == 0) {
        out->units = 0;
        return true;
    }
    if (strcmp(value, "leaf") == 0) {
        out->units = UINT32_MAX;
        return true;
    }
    return take_number(row, value, out);
}

static bool take_sync(const struct option_row *row, const char *value,
                      struct plan_options *out)
{
    const size_t n = strlen(value);

    (void)row;
    if (n < 1 || n > CASE_MAX_MICROBATCHES || strspn(value, "sn") != n ||
        value[n - 1] != 's') {
        return false;
    }
    out->c.microbatches = (uint32_t)n;
    for (size_t b = 0; b < CASE_MAX_MICROBATCHES; b++) {
        out->c.sync[b] = b < n && value[b] == 's';
    }
    return true;
}

#define BYTES_RIGHT                                                       \
    "bytes from 1 to 2^63 were expected, as 85899345920, 80GB (10^9) or " \
    "80GiB (2^30)"
#define TOKENS_RIGHT "a number from 1 to 2^40 was expected"
#define DTYPE_RIGHT  "f32, bf16 or f16 was expected"
#define FOREIGN_RIGHT \
    "not modelled: a plan is of FSDP and hybrid sharding alone (docs/plan.md)"
#define AHEAD_RIGHT "a number of units from 0 to 64 was expected"

static const struct option_row rows[] = {
    {"ranks", "K", "ranks, 1 to 65536 (1)", take_ranks, AT(c.ranks), .least = 1,
     .most = EXPECT_MAX_RANKS,
     .right = "a number from 1 to 65536 was expected"},
    {"strategy", "S", "this one alone, and more about it; else all five",
     take_strategy, AT(c.strategy), .names = case_strategy_name,
     .right = "full-shard, shard-grad-op, no-shard, hybrid-shard or "
              "hybrid-shard-zero2 was expected"},
    {"replicas", "R", "of the two hybrid ones (2)", take_number, AT(c.replicas),
     .least = 2, .most = EXPECT_MAX_RANKS,
     .right = "a number from 2 was expected"},
    {"layout", "L", "flat (default) or per-parameter", take_name, AT(c.layout),
     .names = case_layout_name, .right = "flat or per-parameter was expected"},
    {"optimizer", "O", "sgd, momentum or adamw (default)", take_name,
     AT(c.optimizer), .names = case_optimizer_name,
     .right = "sgd, momentum or adamw was expected"},
    {"param-dtype", "D", "of unsharded parameters: f32 (default), bf16, f16",
     take_dtype, AT(param_dtype), .names = float_name, .right = DTYPE_RIGHT},
    {"reduce-dtype", "D", "of gradients, summed and sent (f32)", take_dtype,
     AT(reduce_dtype), .names = float_name, .right = DTYPE_RIGHT},
    {"precision", "P",
     "these two and all other dtypes, as a case names them: bf16, bf16r ...",
     take_precision, AT(c.precision), .names = case_precision_name,
     .right = "f32, bf16, bf16r, bf16s, r16, bf16a, fp16, fp16r32, units or "
              "defaults was expected"},
    {"units", "N", "N units of the model as one; whole; or leaf: one each",
     take_units, AT(units), .least = 1, .most = 65536,
     .right = "a number from 1, whole or leaf was expected"},
    {"offload", "WHAT",
     "rests on the host: optimizer (gradients too), params, all or none",
     take_name, AT(c.offload), .names = offload_name,
     .right = "optimizer, params, all or none was expected"},
    {"keep-root", NULL, "the root's unit is not resharded after its forward",
     take_switch, AT(c.keep_root)},
    {"sync", "LETTERS", "a letter a microbatch: s reduced, n not (s)",
     take_sync, 0,
     .right = "up to four letters s and n were expected, s the last"},
    {"prefetch-forward", "N", "units gathered ahead (0)", take_number,
     AT(c.prefetch_forward), .most = CASE_MAX_AHEAD, .right = AHEAD_RIGHT},
    {"prefetch-backward", "N", "units gathered ahead (0)", take_number,
     AT(c.prefetch_backward), .most = CASE_MAX_AHEAD, .right = AHEAD_RIGHT},
    {"reduces-in-flight", "N", "reductions not waited for (0)", take_number,
     AT(c.reduces_in_flight), .most = CASE_MAX_AHEAD, .right = AHEAD_RIGHT},
    {"memory", "BYTES",
     "of a rank (a --cluster's): says what fits, as 80GB or 80GiB", take_bytes,
     AT(memory), .right = BYTES_RIGHT},
    {"activations", "BYTES", "that the model needs beside it", take_bytes,
     AT(activations), .right = BYTES_RIGHT},
    {"cluster", "C",
     "simulate a step on a100, h100, h100-96gb, h200, or a file's cluster",
     take_text, AT(cluster)},
    {"tokens", "N", "of a rank and microbatch (--sequence)", take_tokens,
     AT(batch.tokens), .right = TOKENS_RIGHT},
    {"sequence", "N", "tokens of one sequence (2048)", take_tokens,
     AT(batch.sequence), .right = TOKENS_RIGHT},
    {"recompute", "SHARE",
     "of what blocks compute in the forward, again in the backward: 0 to 1 (0)",
     take_share, AT(batch.recompute),
     .right = "a number from 0 to 1 was expected"},
    {"least-ranks", NULL,
     "with --memory or --cluster: the fewest ranks, a power of two, of which "
     "each fits",
     take_flag, AT(least_ranks)},
    {"try-units", NULL,
     "with --strategy and --cluster: which units are fastest, by trying",
     take_flag, AT(try_units)},
    {"page", "FILE",
     "with --strategy: draw memory, and with --cluster time, as HTML",
     take_text, AT(page)},
    {"check", NULL, "of a record: whether it has the bytes that were planned",
     take_flag, AT(check)},
    {"list", NULL, "list the models that are brought along", take_flag,
     AT(list)},
    {"exercises", NULL, "answer the textbook's questions, and no other",
     take_flag, AT(exercises)},
    {"tensor-parallel", "N", "not modelled", take_foreign, 0,
     .right = FOREIGN_RIGHT},
    {"pipeline-parallel", "N", "not modelled", take_foreign, 0,
     .right = FOREIGN_RIGHT},
    {"context-parallel", "N", "not modelled", take_foreign, 0,
     .right = FOREIGN_RIGHT},
    {"float8", NULL, "not modelled", take_foreign, 0, .right = FOREIGN_RIGHT},
    {"json", NULL, "print JSON", take_flag, AT(json)},
    {"help", NULL, "this text", take_flag, AT(help)},
};
enum {
    N_ROWS = sizeof(rows) / sizeof(rows[0]),
    FIRST = 256 /* getopt's numbers of rows begin here */
};

void plan_options_help(void)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        char left[40];

        snprintf(left, sizeof(left), "--%s %s", rows[i].name,
                 rows[i].value ? rows[i].value : "");
        printf("  %-24s %s\n", left, rows[i].help);
    }
}

static int refuse(const char *what, const char *value, const char *right)
{
    fprintf(stderr, "fsdp-cts plan: %s '%.80s': %s\n", what, value, right);
    return EXIT_USAGE;
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
        fprintf(stderr, "fsdp-cts plan: --precision says what --param-dtype "
                        "and --reduce-dtype do: one or the other\n");
        return EXIT_USAGE;
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
    fprintf(stderr,
            "fsdp-cts plan: --param-dtype %s and --reduce-dtype %s: no "
            "precision has both; bf16 goes with bf16 and f32, f16 too\n",
            record_dtype_name(param), record_dtype_name(reduce));
    return EXIT_USAGE;
}

static int check_together(const struct plan_options *o)
{
    const struct run_case *const c = &o->c;

    if (!o->model && !o->list && !o->exercises) {
        fprintf(stderr, "fsdp-cts plan: needs a MODEL; see: fsdp-cts plan "
                        "--help\n");
        return EXIT_USAGE;
    }
    if (o->least_ranks &&
        ((o->memory == 0 && !o->cluster) || o->json || o->check)) {
        fprintf(stderr, "fsdp-cts plan: --least-ranks needs --memory or "
                        "--cluster, and prints no JSON\n");
        return EXIT_USAGE;
    }
    if (o->cluster && o->c.offload != CASE_NOT_OFFLOADED) {
        fprintf(stderr, "fsdp-cts plan: --offload does not go with --cluster: "
                        "what is copied to the host takes time that is not "
                        "modelled\n");
        return EXIT_USAGE;
    }
    if (o->page && (!o->one || o->check || o->least_ranks)) {
        fprintf(stderr, "fsdp-cts plan: --page needs --strategy, and goes "
                        "with neither --check nor --least-ranks\n");
        return EXIT_USAGE;
    }
    if (o->try_units && (!o->one || !o->cluster || o->json)) {
        fprintf(stderr, "fsdp-cts plan: --try-units needs --strategy and "
                        "--cluster, and prints no JSON\n");
        return EXIT_USAGE;
    }
    if (c->replicas > 1 &&
        (c->replicas >= c->ranks || c->ranks % c->replicas != 0)) {
        fprintf(stderr,
                "fsdp-cts plan: --replicas %u: must be below --ranks %u and "
                "divide it\n",
                c->replicas, c->ranks);
        return EXIT_USAGE;
    }
    return 0;
}

int plan_options_parse(int argc, char **argv, struct plan_options *out)
{
    struct option all[N_ROWS + 1] = {{0}};
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
    for (int i = 0; i < N_ROWS; i++) {
        all[i] = (struct option){
            rows[i].name, rows[i].value ? required_argument : no_argument, NULL,
            FIRST + i};
    }
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, "", all, NULL)) != -1) {
        if (code == '?') {
            return refuse("option", argv[optind - 1],
                          "unknown, or its value is missing or too much; see "
                          "--help");
        }
        const struct option_row *const row = &rows[code - FIRST];
        if (!row->take(row, optarg, out)) {
            return refuse(row->name, optarg ? optarg : "", row->right);
        }
    }
    if (out->help) {
        return 0;
    }
    if (optind + 1 < argc) {
        return refuse("model", argv[optind + 1], "one MODEL was expected");
    }
    out->model = optind < argc ? argv[optind] : NULL;
    if (out->batch.tokens == 0) {
        out->batch.tokens = out->batch.sequence;
    }
    code = find_precision(out);
    return code != 0 ? code : check_together(out);
}
