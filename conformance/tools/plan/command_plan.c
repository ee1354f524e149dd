/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_plan.c - what a model would need of memory and of the wire, for any
 * mesh, without a run.
 */
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "tools/plan/plan_check.h"
#include "tools/plan/plan_exercises.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_page.h"
#include "tools/plan/plan_show.h"
#include "tools/plan/plan_wraps.h"
#include "tools/plan/presets.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: fsdp-cts plan MODEL [OPTION ...]\n\n"
    "MODEL: a file that describes a model (docs/plan.md), one of --list, a "
    "workload as\ngpt or gpt.tiny, or the folder of a record. Prints, for each "
    "strategy, a rank's\nbytes at rest and at the peak, and what it sends in a "
    "step. Nothing is run.\n\nA record without --ranks is planned as its case "
    "says, whatever other options say\nof the case; with --ranks its model and "
    "units alone are taken. --least-ranks\nignores --ranks and --replicas: "
    "worlds are powers of two, without replicas.\n\n"
    "examples:\n"
    "  fsdp-cts plan gpt.small --ranks 8\n"
    "  fsdp-cts plan --list\n"
    "\n";

static const char ending[] =
    "\nexit: 0 planned; 1 a record has something else (--check); 64 usage "
    "error;\n65 bad data, or the model fits in no way (--memory); 74 a page "
    "cannot be "
    "written\n";

static int fail(const struct fsdp_error *error, int status)
{
    fprintf(stderr, "fsdp-cts plan: %s\n",
            error->message[0] != '\0' ? error->message
                                      : fsdp_status_text(status));
    return EXIT_BAD_DATA;
}

static int list(void)
{
    for (const struct preset *p = preset_models; p->name; p++) {
        struct plan_model m;
        struct fsdp_error error = {0};
        const int status =
            plan_model_of_text(p->text, strlen(p->text), p->name, &m, &error);

        if (status == FSDP_OK) {
            printf("%-14s %-16s %15llu parameters in %u units\n", p->name,
                   m.name, (unsigned long long)m.elements,
                   m.units.units.n_units);
        }
        plan_model_release(&m);
        if (status != FSDP_OK) {
            return fail(&error, status);
        }
    }
    return 0;
}

/* The model fits in no way: by how much, and what is the largest part. */
static int fits_nowhere(const struct plan_table *t)
{
    const struct plan_row *const row = plan_smallest(t);
    char over[PLAN_SIZE_BYTES];
    char term[PLAN_SIZE_BYTES];

    fprintf(stderr,
            "fsdp-cts plan: it fits nowhere: %s needs least, and %s more than "
            "there are; its largest term is %s, %s\n",
            case_strategy_name(row->c.strategy),
            plan_size(plan_need(t, row) - t->memory, over),
            plan_term_name(row->binding),
            plan_size(plan_term(row, row->binding), term));
    return EXIT_BAD_DATA;
}

static int show(const struct plan_options *o, const struct plan_shown *s)
{
    int code = 0;

    if (o->json) {
        json_t *const root = plan_show_json(s);

        if (!root || json_dumpf(root, stdout, JSON_INDENT(1)) != 0) {
            fprintf(stderr, "fsdp-cts plan: out of memory, or standard output "
                            "is closed\n");
            code = EXIT_BAD_DATA;
        }
        printf("\n");
        json_decref(root);
    } else {
        plan_show_text(s);
    }
    return code;
}

/* The least power of two of ranks of which the memory is enough; 0: none. */
static int find_least(const struct plan_options *o, struct plan_ask ask,
                      uint32_t strategy, uint32_t *out,
                      struct fsdp_error *error)
{
    int status = FSDP_OK;

    *out = 0;
    ask.c.strategy = strategy;
    ask.c.replicas = 1;
    for (uint32_t k = 1;
         status == FSDP_OK && *out == 0 && k <= EXPECT_MAX_RANKS; k *= 2) {
        struct plan_table t;

        ask.c.ranks = k;
        status = plan_table_make(&ask, true, 0, o->memory, o->activations, &t,
                                 error);
        if (status == FSDP_OK && t.row[0].possible && t.row[0].fits) {
            *out = k;
        }
        plan_table_release(&t);
    }
    return status;
}

static int least_ranks(const struct plan_options *o, const struct plan_ask *ask)
{
    struct fsdp_error error = {0};
    uint32_t found[CASE_N_STRATEGIES] = {0};
    bool any = false;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        const int status = o->one && s != o->c.strategy
                               ? FSDP_OK
                               : find_least(o, *ask, s, &found[s], &error);

        if (status != FSDP_OK) {
            return fail(&error, status);
        }
        any = any || found[s] > 0;
    }
    for (uint32_t i = 0; any && i < CASE_N_STRATEGIES; i++) {
        const uint32_t s = plan_order[i];

        if (found[s] > 0) {
            printf("%-19s fits from %u ranks on\n", case_strategy_name(s),
                   found[s]);
        } else if (!o->one || s == o->c.strategy) {
            printf("%-19s fits in no world\n", case_strategy_name(s));
        }
    }
    if (!any) {
        fprintf(stderr,
                "fsdp-cts plan: it fits in no world of up to %d "
                "ranks\n",
                (int)EXPECT_MAX_RANKS);
    }
    return any ? 0 : EXIT_BAD_DATA;
}

/* *fits: units were found with which the memory is enough. */
static int try_units(const struct plan_options *o, const struct plan_ask *ask,
                     const struct plan_model *m, const struct cluster *on,
                     bool *fits)
{
    struct plan_wraps w;
    struct fsdp_error error = {0};
    const int status = plan_wraps_make(ask, m, &o->batch, on, o->memory,
                                       o->activations, &w, &error);

    if (status == FSDP_OK) {
        plan_wraps_show(&w, o->memory);
        *fits = w.best < w.n;
    }
    plan_wraps_release(&w);
    return status == FSDP_OK ? 0 : fail(&error, status);
}

static int write_page(const struct plan_options *o, const struct plan_shown *s)
{
    const struct plan_row *const row = &s->table->row[0];
    struct plan_ask ask = *s->ask;
    struct fsdp_error error = {0};

    if (!row->possible) {
        fprintf(stderr, "fsdp-cts plan: there is no page of a mesh that this "
                        "world does not have\n");
        return EXIT_USAGE;
    }
    ask.c = row->c;
    if (plan_page_write(
            &(struct plan_page){s->model, &ask, row,
                                s->cluster ? s->cluster->name : NULL, o->memory,
                                o->activations},
            o->page, &error) != FSDP_OK) {
        (void)fail(&error, FSDP_ERR_IO);
        return EXIT_OUTPUT;
    }
    return 0;
}

static int check(const struct plan_options *o, const struct plan_table *t,
                 const struct plan_ask *ask)
{
    struct fsdp_error error = {0};
    struct record r;
    uint32_t differences = 0;
    int status = record_read(o->model, &r, &error);

    if (status == FSDP_OK && case_is_script(&r.c)) {
        status = FSDP_ERR_FORMAT;
        snprintf(error.message, sizeof(error.message),
                 "%.120s: plays a script of its own; a step of training "
                 "is what a plan is compared with",
                 o->model);
    }
    if (status == FSDP_OK) {
        status = plan_check(ask, &t->row[0].bytes, &r, &differences);
    }
    record_release(&r);
    return status != FSDP_OK ? fail(&error, status) : differences > 0 ? 1 : 0;
}

/* With a model that was opened, and the units that are asked for. A cluster's
 * memory stands for --memory, where there is none. */
static int plan(struct plan_options *o, const struct plan_model *m,
                const struct fsdp_units *units)
{
    const struct plan_ask ask = {
        .c = o->c, .model = &m->model, .units = units, .idle = m->idle};
    struct cluster on = {.host_ranks = 0};
    struct plan_table table = {.n = 0};
    struct fsdp_error error = {0};
    int status = o->cluster ? cluster_open(o->cluster, &on, &error) : FSDP_OK;
    bool fits = true;
    int code = 0;

    if (o->memory == 0) {
        o->memory = on.memory;
    }
    if (status == FSDP_OK && o->least_ranks) {
        return least_ranks(o, &ask);
    }
    if (status == FSDP_OK) {
        status = plan_table_make(&ask, o->one, on.host_ranks, o->memory,
                                 o->activations, &table, &error);
    }
    if (status == FSDP_OK && o->cluster) {
        status = plan_table_time(&ask, m, &o->batch, &on, &table, &error);
    }
    if (status != FSDP_OK) {
        code = fail(&error, status);
    } else if (o->check) {
        code = check(o, &table, &ask);
    } else {
        const struct plan_shown shown = {m, &ask, &table,
                                         o->cluster ? &on : NULL, &o->batch};

        code = o->page ? write_page(o, &shown) : 0;
        code = code == 0 ? show(o, &shown) : code;
        fits = table.best < table.n || !plan_smallest(&table);
    }
    if (code == 0 && o->try_units) {
        bool others = false;

        code = try_units(o, &ask, m, &on, &others);
        fits = fits || others;
    }
    if (code == 0 && !fits) {
        code = fits_nowhere(&table);
    }
    plan_table_release(&table);
    return code;
}

static int plan_opened(struct plan_options *o, const struct plan_model *m)
{
    struct wrap_units units = {.unit_of_module = NULL};
    struct fsdp_error error = {0};
    int status = FSDP_OK;
    int code;

    if (o->units != UINT32_MAX && o->units > m->units.units.n_units) {
        fprintf(stderr,
                "fsdp-cts plan: --units %u: %.60s has %u of them; whole is "
                "all as one\n",
                o->units, m->name, m->units.units.n_units);
        return EXIT_USAGE;
    }
    if (o->units != 1) {
        status = plan_units(m, o->units, &units);
    }
    if (status != FSDP_OK) {
        code = fail(&error, status);
    } else {
        code = plan(o, m, o->units != 1 ? &units.units : &m->units.units);
    }
    wrap_release(&units);
    return code;
}

int command_plan(int argc, char **argv)
{
    struct plan_options o;
    struct plan_model m;
    struct run_case c = {.ranks = 0};
    struct fsdp_error error = {0};
    bool is_record = false;
    int code = plan_options_parse(argc, argv, &o);

    if (code != 0) {
        return code;
    }
    if (o.help) {
        fputs(usage, stdout);
        plan_options_help();
        fputs(ending, stdout);
        return 0;
    }
    if (o.list) {
        return list();
    }
    if (o.exercises) {
        code = plan_exercises(&error);
        return code == FSDP_OK ? 0 : fail(&error, code);
    }
    code = plan_model_open(o.model, &c, &is_record, &m, &error);
    if (code != FSDP_OK) {
        code = fail(&error, code);
    } else if (o.check && (!is_record || o.ranks_given || o.units != 1)) {
        fprintf(stderr, "fsdp-cts plan: --check is about a record as it is\n");
        code = EXIT_USAGE;
    } else {
        if (is_record && !o.ranks_given) {
            o.c = c;
            o.one = true;
        }
        code = plan_opened(&o, &m);
    }
    plan_model_release(&m);
    return code;
}
