/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track_check.c - `track check`, `track accept` and `track
 * bisect-hint`: what changed, which changes are wanted, and where they came
 * from.
 */
#include "tools/track/command_track.h"
#include "tools/track/track_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    SHOWN = 3 /* of one figure and run, without --verbose */
};

const char *track_run_text(const struct track_verdict *v, int64_t run,
                           char out[TRACK_RUN_BYTES])
{
    const struct history_run *r = track_run(v, run);
    time_t t = r ? (time_t)r->date : 0;
    char date[16] = "";
    struct tm tm;

    if (gmtime_r(&t, &tm)) {
        (void)strftime(date, sizeof(date), "%Y-%m-%d", &tm);
    }
    snprintf(out, TRACK_RUN_BYTES, "%.12s (run %" PRId64 ", %s)",
             r ? r->commit : "?", run, date);
    return out;
}

static void exact_text(const struct track_change *c, char *out, size_t room)
{
    bool more = c->exact_after > c->exact_before;
    uint64_t by = more ? c->exact_after - c->exact_before
                       : c->exact_before - c->exact_after;
    const char *unit = figure_unit(c->figure);
    int n = snprintf(out, room, "%" PRIu64 " -> %" PRIu64 "%s%s (%s%" PRIu64,
                     c->exact_before, c->exact_after,
                     unit[0] != '\0' ? " " : "", unit, more ? "+" : "-", by);

    /* A peak is not made of steps. */
    if (strncmp(c->figure, "peak.", 5) != 0 && c->steps > 1 &&
        by % c->steps == 0) {
        n += snprintf(out + n, room - (size_t)n,
                      ": %" PRIu64 " in each of %" PRIu64 " steps",
                      by / c->steps, c->steps);
    }
    if (c->exact_before > 0) {
        n += snprintf(out + n, room - (size_t)n, ", %+.2f %%",
                      100.0 * (c->after / c->before - 1.0));
    }
    snprintf(out + n, room - (size_t)n, ")");
}

const char *track_change_text(const struct track_verdict *v,
                              const struct track_change *c,
                              char out[TRACK_CHANGE_BYTES])
{
    const struct history_series *s = &v->series[c->series];
    char values[200];

    if (c->exact) {
        exact_text(c, values, sizeof(values));
    } else {
        const double percent = 100.0 * (c->after - c->before) / fabs(c->before);

        if (c->large) {
            snprintf(values, sizeof(values),
                     "%.5g -> %.5g (%+.2f %%, too large for a test)", c->before,
                     c->after, percent);
        } else {
            snprintf(values, sizeof(values),
                     "%.5g -> %.5g (%+.2f %%, chance %.2g)", c->before,
                     c->after, percent, c->chance);
        }
    }
    snprintf(out, TRACK_CHANGE_BYTES, "%s%s%s %s: %s", s->name,
             s->engine[0] != '\0' ? " " : "", s->engine, c->figure, values);
    return out;
}

static void print_change(const struct track_verdict *v,
                         const struct track_change *c)
{
    char text[TRACK_CHANGE_BYTES];
    char good[TRACK_RUN_BYTES];
    char bad[TRACK_RUN_BYTES];

    printf("%s %s\n", c->worse ? "REGRESSION" : "improved  ",
           track_change_text(v, c, text));
    if (c->good != 0 && c->bad != 0) {
        printf("           last %s %s, first %s %s\n",
               c->worse ? "good" : "before it",
               track_run_text(v, c->good, good), c->worse ? "bad" : "with it",
               track_run_text(v, c->bad, bad));
    }
}

static void print_changes(const struct track_verdict *v,
                          const struct track_options *o)
{
    for (uint32_t i = 0; i < v->n_change;) {
        uint32_t end = track_same_cause(v, i);

        for (uint32_t k = i; k < end && (o->verbose || k - i < SHOWN); k++) {
            print_change(v, &v->change[k]);
        }
        if (!o->verbose && end - i > SHOWN) {
            printf("           and %u cases more, of the same figure and run; "
                   "--verbose names them\n",
                   end - i - SHOWN);
        }
        i = end;
    }
}

static void print_gone(const struct track_verdict *v,
                       const struct track_options *o)
{
    uint32_t most = o->verbose ? v->n_gone : SHOWN;

    for (uint32_t i = 0; i < v->n_gone && i < most; i++) {
        const struct history_series *s = &v->series[v->gone[i].series];
        char run[TRACK_RUN_BYTES];

        printf("gone       %s %s %s: last measured at %s\n", s->name, s->engine,
               s->exact ? "figures" : s->unit,
               track_run_text(v, v->gone[i].last, run));
    }
    if (v->n_gone > most) {
        printf("gone       and %u more\n", v->n_gone - most);
    }
}

/* Says which changes a young history cannot show yet. */
static void print_young(const struct track_verdict *v)
{
    const struct edivisive_options *o = &edivisive_defaults;

    if (v->n_young == 0) {
        return;
    }
    printf("young      %u timed series with at most %u run%s of their level: "
           "called are changes of",
           v->n_young, v->young_runs, v->young_runs == 1 ? "" : "s");
    for (uint32_t i = 0; i < o->n_large; i++) {
        printf("%s %.3g %% from run %u on", i > 0 ? "," : "",
               100.0 * o->large[i].least,
               o->large[i].before + o->large[i].after);
    }
    printf("; of %.3g %% nothing can be called before run %u\n",
           100.0 * o->least, edivisive_earliest(o));
}

/* Opens the history and judges it. */
static int decide(const struct track_options *o, enum history_mode mode,
                  struct history **h, struct track_verdict *v)
{
    struct fsdp_error error = {0};
    int status = history_open(o->history, mode, h, &error);

    if (status == FSDP_OK) {
        status = track_judge(*h, o->run, &edivisive_defaults, v, &error);
    }
    return status == FSDP_OK ? 0 : track_failed(&error);
}

static void print_check(const struct track_verdict *v,
                        const struct track_options *o)
{
    char run[TRACK_RUN_BYTES];

    if (!o->quiet) {
        /* A history that was judged has a newest run. */
        const struct history_run *newest = &v->run[v->newest];

        printf("checking   %s on %s\n", track_run_text(v, newest->id, run),
               newest->machine_text);
        print_changes(v, o);
        print_gone(v, o);
        print_young(v);
    }
    printf("%u regressions, %u improvements, %u gone; %u series compared, "
           "%u new\n",
           v->n_worse, v->n_change - v->n_worse, v->n_gone, v->judged,
           v->began);
}

int track_command_check(const struct track_options *o)
{
    struct track_verdict v = {.n_runs = 0};
    struct fsdp_error error = {0};
    struct history *h = NULL;
    int code = decide(o, HISTORY_READ, &h, &v);

    if (code == 0 && o->json) {
        error.status = track_summary_json(&v, stdout);
    } else if (code == 0 && o->markdown) {
        track_summary_markdown(&v, stdout);
    } else if (code == 0) {
        print_check(&v, o);
    }
    if (error.status != FSDP_OK) {
        code = track_failed(&error);
    } else if (code == 0) {
        code = v.n_worse > 0 ? EXIT_REGRESSION : 0;
    }
    track_verdict_release(&v);
    history_close(h);
    return code;
}

/* ---- accept ---- */

static int check_accept(const struct track_options *o)
{
    const struct {
        const char *name, *value;
        size_t room;
    } all[] = {
        {"--engine", o->engine, RESULTS_ENGINE_BYTES},
        {"--case", o->name, RESULTS_NAME_BYTES},
        {"--figure", o->figure, FIGURE_NAME_BYTES},
        {"--reason", o->reason, HISTORY_REASON_BYTES},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!all[i].value || all[i].value[0] == '\0' ||
            strlen(all[i].value) >= all[i].room) {
            fprintf(stderr,
                    "fsdp-cts track: accept needs %s, of 1 to %zu bytes\n",
                    all[i].name, all[i].room - 1);
            return EXIT_USAGE;
        }
    }
    return 0;
}

int track_command_accept(const struct track_options *o)
{
    struct track_verdict v = {.n_runs = 0};
    struct history_accepted a = {.date = (int64_t)time(NULL)};
    struct fsdp_error error = {0};
    struct history *h = NULL;
    uint32_t n = 0;
    int code = check_accept(o);

    if (code == 0) {
        code = decide(o, HISTORY_WRITE, &h, &v);
    }
    if (code == 0) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as above */
        a.run = v.run[v.newest].id;
        snprintf(a.engine, sizeof(a.engine), "%s", o->engine);
        snprintf(a.name, sizeof(a.name), "%s", o->name);
        snprintf(a.figure, sizeof(a.figure), "%s", o->figure);
        snprintf(a.reason, sizeof(a.reason), "%s", o->reason);
        for (uint32_t i = 0; i < v.n_change; i++) {
            n += track_accepts(&a, &v.series[v.change[i].series],
                               v.change[i].figure)
                     ? 1
                     : 0;
        }
        if (n == 0) {
            fprintf(stderr,
                    "fsdp-cts track: run %" PRId64 " has no change of "
                    "that engine, case and figure\n",
                    a.run);
            code = EXIT_USAGE;
        } else if (history_accept(h, &a, &error) != FSDP_OK) {
            code = track_failed(&error);
        } else {
            printf("%u changes of run %" PRId64 " are accepted: %s\n", n, a.run,
                   a.reason);
        }
    }
    track_verdict_release(&v);
    history_close(h);
    return code;
}

/* ---- bisect-hint ---- */

/* Prints what git says about good..bad; false: it does not know. */
static bool ask_git(const char *repository, const char *range)
{
    const char *argv[] = {"git",
                          "-C",
                          repository,
                          "log",
                          "--no-decorate",
                          "--format=           %h %s",
                          range,
                          "--",
                          NULL};
    posix_spawn_file_actions_t files;
    pid_t pid = -1;
    int status = -1;
    int code;

    (void)fflush(stdout);
    if (posix_spawn_file_actions_init(&files) != 0) {
        return false;
    }
    (void)posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    code =
        posix_spawnp(&pid, "git", &files, NULL, (char *const *)argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    if (code != 0) {
        return false;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void hint(const struct track_verdict *v, const struct track_options *o,
                 const struct track_change *c)
{
    const struct history_run *good = track_run(v, c->good);
    const struct history_run *bad = track_run(v, c->bad);
    char text[TRACK_RUN_BYTES];
    char range[2 * RESULTS_COMMIT_BYTES + 4];

    printf("last good  %s\n", track_run_text(v, c->good, text));
    printf("first bad  %s\n", track_run_text(v, c->bad, text));
    if (!good || !bad) {
        return;
    }
    if (strcmp(good->commit, bad->commit) == 0) {
        printf("           of the same commit: it is not the program that "
               "changed\n");
        return;
    }
    snprintf(range, sizeof(range), "%s..%s", good->commit, bad->commit);
    if (!ask_git(o->repository ? o->repository : ".", range)) {
        printf("           git log %s\n", range);
    }
}

int track_command_bisect(const struct track_options *o)
{
    struct track_verdict v = {.n_runs = 0};
    struct history *h = NULL;
    int code = decide(o, HISTORY_READ, &h, &v);

    for (uint32_t i = 0; code == 0 && i < v.n_change; i++) {
        const struct track_change *c = &v.change[i];
        char text[TRACK_CHANGE_BYTES];
        uint32_t more = 0;
        bool first = c->worse;

        /* Once for all that came at the same time. */
        for (uint32_t k = 0; k < v.n_change; k++) {
            bool same = v.change[k].worse && v.change[k].good == c->good &&
                        v.change[k].bad == c->bad;

            first = first && !(same && k < i);
            more += same && k > i ? 1 : 0;
        }
        if (first) {
            printf("REGRESSION %s\n", track_change_text(&v, c, text));
            if (more > 0) {
                printf("           and %u more at the same time\n", more);
            }
            hint(&v, o, c);
        }
    }
    if (code == 0 && v.n_worse == 0) {
        printf("no regression\n");
    }
    track_verdict_release(&v);
    history_close(h);
    return code;
}
