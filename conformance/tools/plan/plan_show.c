/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_show.c - tables for people. All bytes are exact; GB are 10^9.
 */
#include "tools/plan/plan_show.h"

#include "cases/case_precision.h"

#include <inttypes.h>
#include <stdio.h>

const char *plan_size(uint64_t bytes, char text[PLAN_SIZE_BYTES])
{
    static const struct {
        double size;
        const char *name;
    } unit[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};

    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
        if ((double)bytes >= unit[i].size) {
            snprintf(text, PLAN_SIZE_BYTES, "%.4g %s",
                     (double)bytes / unit[i].size, unit[i].name);
            return text;
        }
    }
    snprintf(text, PLAN_SIZE_BYTES, "%" PRIu64 " B", bytes);
    return text;
}

const char *plan_dtypes(const struct run_case *c, char text[PLAN_DTYPES_BYTES])
{
    const struct case_dtypes d = case_dtypes(c);

    if (case_has_units_dtypes(c)) {
        snprintf(text, PLAN_DTYPES_BYTES, "each unit in its own dtypes");
    } else {
        snprintf(text, PLAN_DTYPES_BYTES, "gathered in %s, reduced in %s",
                 record_dtype_name(d.param), record_dtype_name(d.reduce));
    }
    return text;
}

static void show_head(const struct plan_shown *s)
{
    const struct run_case *const c = &s->ask->c;
    char dtypes[PLAN_DTYPES_BYTES];

    printf("%s: %" PRIu64 " parameters in %u units; K = %u, %s, %s, %s\n",
           s->model->name, s->model->elements, s->ask->units->n_units, c->ranks,
           case_layout_name(c->layout), case_optimizer_name(c->optimizer),
           plan_dtypes(c, dtypes));
    if (c->prefetch_forward + c->prefetch_backward + c->reduces_in_flight > 0) {
        printf("running ahead: %u and %u units are gathered early, %u "
               "reductions in flight; peaks are bounds\n",
               c->prefetch_forward, c->prefetch_backward, c->reduces_in_flight);
    }
}

static void show_row(const struct plan_table *t, const struct plan_row *row)
{
    const struct plan_bytes *const b = &row->bytes;
    char mesh[24];

    if (!row->possible) {
        printf("%-19s no mesh of this world\n",
               case_strategy_name(row->c.strategy));
        return;
    }
    snprintf(mesh, sizeof(mesh), "%ux%u", b->replicas, b->shards);
    printf("%-19s %11s %16" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64
           " %5u/%u/%u%s\n",
           case_strategy_name(row->c.strategy), mesh, b->rest_sum,
           b->peak_parameters, b->peak_sum, b->sent_sum,
           b->collectives[FSDP_ALL_GATHER], b->collectives[FSDP_REDUCE_SCATTER],
           b->collectives[FSDP_ALL_REDUCE],
           t->memory == 0 ? ""
           : row->fits    ? "  fits"
                          : "  too large");
}

static bool uses_host(const struct plan_row *row)
{
    return row->possible && row->c.offload != CASE_NOT_OFFLOADED;
}

static void show_host(const struct plan_table *t)
{
    bool begun = false;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct plan_bytes *const b = &t->row[i].bytes;

        if (!uses_host(&t->row[i])) {
            continue;
        }
        if (!begun) {
            printf("\n%-19s %16s %16s %16s %16s\n", "on the host", "at rest",
                   "peak", "to device a step", "to host a step");
        }
        begun = true;
        printf(
            "%-19s %16" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n",
            case_strategy_name(t->row[i].c.strategy), b->host_rest,
            b->host_peak, b->copied.to_device_bytes, b->copied.to_host_bytes);
    }
}

/* A strategy by itself: kinds, and what the shards are like. */
static void show_kinds(const struct plan_row *row)
{
    const struct plan_bytes *const b = &row->bytes;

    printf("\n%-14s %16s %16s %16s\n", "bytes a rank", "at rest", "at the peak",
           "most of it");
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        if (b->peak[k] > 0) {
            printf("%-14s %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n",
                   record_kind_name(k), b->rest.live[k], b->fullest.live[k],
                   b->peak[k]);
        }
    }
    if (b->ahead > 0) {
        printf("%-14s %16s %16" PRIu64 "\n", plan_term_name(PLAN_AHEAD), "",
               b->ahead);
    }
    printf("%-14s %16" PRIu64 " %16" PRIu64 "\n", "all", b->rest_sum,
           b->peak_sum);
    printf("\nranks are alike: shards are padded by %" PRIu64
           " elements in all; the last one has %" PRIu64 " of its own\n",
           b->padding, b->own_last);
    printf("sent a step and rank, by rings (received is as much): all-gathers "
           "%" PRIu64 ", reduce-scatters %" PRIu64 ", all-reduces %" PRIu64
           "\n",
           b->sent[FSDP_ALL_GATHER], b->sent[FSDP_REDUCE_SCATTER],
           b->sent[FSDP_ALL_REDUCE]);
}

static void show_advice(const struct plan_table *t)
{
    char left[PLAN_SIZE_BYTES];
    char term[PLAN_SIZE_BYTES];

    if (t->best < t->n) {
        const struct plan_row *const row = &t->row[t->best];

        printf("\nleast sharding that fits: %s; %s are left; the largest term "
               "is %s, %s\n",
               case_strategy_name(row->c.strategy),
               plan_size(t->memory - plan_need(t, row), left),
               plan_term_name(row->binding),
               plan_size(plan_term(row, row->binding), term));
    }
}

static double tokens_a_step(const struct plan_shown *s)
{
    return (double)s->batch->tokens * s->ask->c.microbatches;
}

static void show_times(const struct plan_shown *s)
{
    printf("\non %s; %" PRIu64 " tokens a rank and microbatch, sequences of "
           "%" PRIu64 ", %g of the blocks' forward recomputed\n"
           "%-19s %10s %10s %10s %10s %9s %7s %7s %6s\n",
           s->cluster->name, s->batch->tokens, s->batch->sequence,
           s->batch->recompute, "strategy", "step, ms", "compute", "contended",
           "exposed", "tokens/s", "TFLOPS", "done", "MFU");
    for (uint32_t i = 0; i < s->table->n; i++) {
        const struct plan_row *const row = &s->table->row[i];
        const struct plan_time *const t = &row->time;

        if (row->possible) {
            printf("%-19s %10.3f %10.3f %10.3f %10.3f %9.0f %7.1f %7.1f "
                   "%5.1f%%\n",
                   case_strategy_name(row->c.strategy), 1e3 * t->seconds,
                   1e3 * t->compute, 1e3 * t->contended, 1e3 * t->exposed,
                   tokens_a_step(s) / t->seconds, 1e-12 * t->flops / t->seconds,
                   1e-12 * t->done / t->seconds,
                   100.0 * t->flops / t->seconds / s->cluster->peak_flops);
        }
    }
    printf("tokens and operations of one rank; TFLOPS and MFU without what is "
           "recomputed, `done` with it\n");
}

/* For one strategy: which units compute waits for. */
static void show_exposed(const struct plan_shown *s)
{
    const struct plan_time *const t = &s->table->row[0].time;

    printf("\ncompute waits for communication of\n");
    for (uint32_t u = 0; u < s->ask->units->n_units; u++) {
        if (t->exposed_by_unit[u] > 0.0) {
            printf("  unit %-5u %10.3f ms\n", u, 1e3 * t->exposed_by_unit[u]);
        }
    }
}

void plan_show_text(const struct plan_shown *s)
{
    const struct plan_table *const t = s->table;

    show_head(s);
    printf("\n%-19s %11s %16s %16s %16s %16s %s\n", "strategy", "mesh",
           "at rest", "peak parameters", "peak", "sent a step",
           "gather/scatter/reduce");
    for (uint32_t i = 0; i < t->n; i++) {
        show_row(t, &t->row[i]);
    }
    show_host(t);
    if (t->n == 1 && t->row[0].possible) {
        show_kinds(&t->row[0]);
    }
    if (t->memory > 0) {
        show_advice(t);
    }
    if (s->cluster) {
        show_times(s);
        if (t->n == 1 && t->row[0].possible) {
            show_exposed(s);
        } else if (plan_fastest(t)) {
            printf("fastest%s: %s\n", t->memory > 0 ? " that fits" : "",
                   case_strategy_name(plan_fastest(t)->c.strategy));
        }
    }
}

static json_t *number(uint64_t x)
{
    return json_integer((json_int_t)x); /* all are below 2^63 */
}

static json_t *kinds_json(const uint64_t live[FSDP_N_KINDS])
{
    json_t *o = json_object();

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        (void)json_object_set_new(o, record_kind_name(k), number(live[k]));
    }
    return o;
}

static json_t *row_json(const struct plan_table *t, const struct plan_row *row)
{
    const struct plan_bytes *const b = &row->bytes;
    json_t *const wire = json_object();
    json_t *o;

    if (!row->possible) {
        json_decref(wire);
        return json_pack("{s:s, s:b}", "strategy",
                         case_strategy_name(row->c.strategy), "possible", 0);
    }
    for (uint32_t k = FSDP_ALL_GATHER; k <= FSDP_ALL_REDUCE; k++) {
        (void)json_object_set_new(wire, record_collective_name(k),
                                  json_pack("{s:i, s:o}", "calls",
                                            (int)b->collectives[k], "sent",
                                            number(b->sent[k])));
    }
    o = json_pack(
        "{s:s, s:b, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "strategy", case_strategy_name(row->c.strategy), "possible", 1,
        "replicas", (int)b->replicas, "shards", (int)b->shards, "rest",
        kinds_json(b->rest.live), "fullest", kinds_json(b->fullest.live),
        "peak", kinds_json(b->peak), "running_ahead", number(b->ahead),
        "peak_parameters", number(b->peak_parameters), "peak_all",
        number(b->peak_sum), "wire", wire, "binding",
        json_string(plan_term_name(row->binding)));
    if (o && uses_host(row)) {
        (void)json_object_set_new(
            o, "host",
            json_pack("{s:o, s:o, s:o, s:o}", "rest", number(b->host_rest),
                      "peak", number(b->host_peak), "to_device",
                      number(b->copied.to_device_bytes), "to_host",
                      number(b->copied.to_host_bytes)));
    }
    if (o && t->memory > 0) {
        (void)json_object_set_new(o, "fits", json_boolean(row->fits));
    }
    if (o && row->time.span) {
        const struct plan_time *const time = &row->time;

        if (json_object_set_new(
                o, "time",
                json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "seconds",
                          time->seconds, "compute", time->compute, "contended",
                          time->contended, "exposed", time->exposed, "flops",
                          time->flops, "done", time->done)) != 0) {
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

json_t *plan_show_json(const struct plan_shown *s)
{
    const struct plan_table *const t = s->table;
    const struct case_dtypes d = case_dtypes(&s->ask->c);
    json_t *const rows = json_array();
    json_t *const o = json_pack(
        "{s:i, s:s, s:o, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:O}", "version", 1,
        "model", s->model->name, "parameters", number(s->model->elements),
        "units", (int)s->ask->units->n_units, "ranks", (int)s->ask->c.ranks,
        "layout", case_layout_name(s->ask->c.layout), "optimizer",
        case_optimizer_name(s->ask->c.optimizer), "precision",
        case_precision_name(s->ask->c.precision), "param_dtype",
        record_dtype_name(d.param), "reduce_dtype", record_dtype_name(d.reduce),
        "strategies", rows);

    for (uint32_t i = 0; i < t->n; i++) {
        if (json_array_append_new(rows, row_json(t, &t->row[i])) != 0) {
            json_decref(rows);
            json_decref(o);
            return NULL;
        }
    }
    if (t->memory > 0) {
        (void)json_object_set_new(o, "memory", number(t->memory));
        (void)json_object_set_new(
            o, "least_sharding",
            t->best < t->n
                ? json_string(case_strategy_name(t->row[t->best].c.strategy))
                : json_null());
    }
    json_decref(rows);
    return o;
}
