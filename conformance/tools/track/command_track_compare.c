/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track_compare.c - `track compare` and `track selftest`: what needs
 * no history.
 */
#include "tools/track/command_track.h"
#include "tools/track/pairs.h"
#include "tools/track/simulate.h"
#include "tools/track/strict.h"

#include <stdlib.h>
#include <string.h>

/* All of one machine; A's of one commit, and B's. */
static int check_files(const struct track_options *o, const struct results *r,
                       struct fsdp_error *error)
{
    char first[MACHINE_TEXT_BYTES];
    char text[MACHINE_TEXT_BYTES];

    machine_text(&r[0].machine, first);
    for (int i = 0; i < o->n_rest; i++) {
        machine_text(&r[i].machine, text);
        if (!r[i].has_machine || strcmp(first, text) != 0) {
            return record_fail(error, FSDP_ERR_FORMAT, "track",
                               "%.100s: not of the first file's machine",
                               o->rest[i]);
        }
        if (strcmp(r[i].commit, r[i % 2].commit) != 0) {
            return record_fail(error, FSDP_ERR_FORMAT, "track",
                               "%.80s: of commit %.40s; builds take turns, A B "
                               "A B",
                               o->rest[i], r[i].commit);
        }
    }
    return FSDP_OK;
}

static uint32_t print_pairs(const struct track_options *o,
                            const struct pairs_result *x, uint32_t n)
{
    static const char *const words[] = {"same      ", "REGRESSION",
                                        "improved  "};
    uint32_t worse = 0;

    for (uint32_t i = 0; i < n; i++) {
        worse += x[i].call == PAIRS_WORSE ? 1 : 0;
        if (!o->quiet) {
            printf("%s %s %s: %+.2f %%, worse in %u of %u pairs, chance %.2g\n",
                   words[x[i].call], x[i].of->name, x[i].of->unit,
                   100.0 * (x[i].ratio - 1.0), x[i].slower, x[i].n,
                   x[i].chance);
        }
    }
    return worse;
}

int track_command_compare(const struct track_options *o)
{
    struct fsdp_error error = {0};
    struct results *r = calloc((size_t)o->n_rest, sizeof(*r));
    struct pairs_result *x = NULL;
    uint32_t n = 0;
    uint32_t worse = 0;
    int status = r ? FSDP_OK : FSDP_ERR_NOMEM;

    error.status = status;
    for (int i = 0; i < o->n_rest && status == FSDP_OK; i++) {
        status = results_read(o->rest[i], o->better, &r[i], &error);
    }
    if (status == FSDP_OK) {
        status = check_files(o, r, &error);
    }
    if (status == FSDP_OK) {
        status = pairs_compare(r, (uint32_t)o->n_rest, &pairs_defaults, &x, &n,
                               &error);
    }
    if (status == FSDP_OK) {
        worse = print_pairs(o, x, n);
        printf("%u regressions in %u results of %d pairs\n", worse, n,
               o->n_rest / 2);
    }
    free(x);
    for (int i = 0; r && i < o->n_rest; i++) {
        results_release(&r[i]);
    }
    free(r);
    return status != FSDP_OK ? track_failed(&error)
           : worse > 0       ? EXIT_REGRESSION
                             : 0;
}

static int print_rates(const char *what, const struct simulation *s)
{
    struct simulation_result r;
    double percent = 100.0 / s->series;
    int status = simulate(s, &edivisive_defaults, &r);

    if (status != FSDP_OK) {
        return status;
    }
    printf("%s\n"
           "  with a step of %.3g %%: %u of %u found within %u runs (%.1f %%), "
           "%u called before it,\n    %u begin at the very run; after 3, 4, 5 "
           "runs: %u, %u, %u\n"
           "  without a step:     %u of %u called (%.1f %%)\n",
           what, 100.0 * s->step, r.found, s->series, s->within,
           percent * r.found, r.false_before, r.exactly, r.delay[3], r.delay[4],
           r.delay[5], r.called, s->series, percent * r.called);
    return FSDP_OK;
}

/* ---- Short histories ---- */

enum {
    SHORT_RUNS = 28,
    SHORT_SERIES = 1000
};

/* One row of the table: a drop to so much, at each of these runs. */
static int print_drop(const struct simulation *s, double to, const uint32_t *at,
                      uint32_t n)
{
    printf("%6.0f %%", 100.0 * to);
    for (uint32_t i = 0; i < n; i++) {
        struct simulation_call call;
        struct simulation own = *s;
        char cell[48];

        own.step = 1.0 - to;
        FSDP_TRY(simulate_step_at(&own, &edivisive_defaults, at[i], &call));
        if (call.found == 0) {
            snprintf(cell, sizeof(cell), "never");
        } else {
            snprintf(cell, sizeof(cell), "%u to %u (%.4g %%)", call.half,
                     call.latest, 100.0 * call.found / s->series);
        }
        printf("  %-20s", cell);
    }
    printf("\n");
    return FSDP_OK;
}

static int print_false_calls(const struct simulation *s, double drift)
{
    struct simulation own = *s;
    struct simulation_call call;

    own.drift = drift;
    FSDP_TRY(simulate_step_at(&own, &edivisive_defaults, 0, &call));
    printf("  runs scatter by %.3g %%: %u of %u called\n", 100.0 * drift,
           call.found, s->series);
    return FSDP_OK;
}

static int selftest_short(void)
{
    static const uint32_t at[] = {2, 4, 8, 15};
    static const double to[] = {0.10, 0.50, 0.70, 0.80, 0.90, 0.95};
    static const double drift[] = {0.005, 0.01, 0.02, 0.05};
    struct simulation s = simulation_defaults;
    int status = FSDP_OK;

    s.runs = SHORT_RUNS;
    s.series = SHORT_SERIES;
    printf("histories of %u runs, %u of each sort; a drop to so much from one "
           "run on: half of\nthose that are called are by the first run named, "
           "all by the second\n%8s",
           s.runs, s.series, "drop to");
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        printf("  at run %-13u", at[i]);
    }
    printf("\n");
    for (size_t i = 0; i < sizeof(to) / sizeof(to[0]) && status == FSDP_OK;
         i++) {
        status = print_drop(&s, to[i], at, sizeof(at) / sizeof(at[0]));
    }
    printf("without a change\n");
    for (size_t i = 0;
         i < sizeof(drift) / sizeof(drift[0]) && status == FSDP_OK; i++) {
        status = print_false_calls(&s, drift[i]);
    }
    return status;
}

int track_command_selftest(const struct track_options *o)
{
    struct simulation s = simulation_defaults;
    struct simulation_result r;
    struct fsdp_error error = {0};
    char what[160];
    int status;

    if (o->brief) {
        error.status = selftest_short();
        return error.status == FSDP_OK ? 0 : track_failed(&error);
    }
    snprintf(what, sizeof(what),
             "histories of %u runs, %u samples a run, noise %.3g %% a "
             "sample, %.3g %% a run, seed %llu",
             s.runs, s.samples, 100.0 * s.noise, 100.0 * s.drift,
             (unsigned long long)s.seed);
    status = print_rates(what, &s);
    if (status == FSDP_OK) {
        status = simulate(&s, &edivisive_defaults, &r);
    }
    if (status == FSDP_OK && !o->quiet) {
        s.persistence = 0.9;
        status = print_rates("the same, where a run keeps 90 % of the drift "
                             "before it (not promised)",
                             &s);
    }
    if (status == FSDP_OK && !o->quiet) {
        s.persistence = 1.0;
        status = print_rates("the same, where drifts add up to a random walk "
                             "(not promised)",
                             &s);
    }
    if (status != FSDP_OK) {
        error.status = status;
        return track_failed(&error);
    }
    return r.found * 100 >= 95 * s.series && r.called * 100 <= 2 * s.series
               ? 0
               : EXIT_REGRESSION;
}
