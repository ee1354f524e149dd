/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times.c - notes where the time of a run went.
 */
#include "cli/play/times.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double of_processes(int who)
{
    struct rusage u;

    return getrusage(who, &u) != 0
               ? 0
               : (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                     1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

struct times_span times_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (struct times_span){(double)t.tv_sec + 1e-9 * (double)t.tv_nsec,
                               of_processes(RUSAGE_SELF) +
                                   of_processes(RUSAGE_CHILDREN)};
}

static void add_row(struct times *t, const char *what, const char *engine,
                    struct times_span took)
{
    const uint32_t most = sizeof(t->row) / sizeof(t->row[0]);

    if (t->n < most) {
        struct times_row *row = &t->row[t->n++];

        snprintf(row->what, sizeof(row->what), "%s %.60s", what, engine);
        row->took = took;
    }
}

void times_note(struct times *t, const char *what, const char *engine,
                struct times_span since)
{
    const struct times_span now = times_now();

    add_row(t, what, engine,
            (struct times_span){now.wall - since.wall,
                                now.processor - since.processor});
}

void times_note_launch(struct times *t, const char *engine, double seconds)
{
    add_row(t, "  of it launch", engine, (struct times_span){seconds, -1});
}

static void put_row(const char *what, double wall, double processor)
{
    printf("%-28s", what);
    for (int i = 0; i < 2; i++) {
        const double seconds = i == 0 ? wall : processor;

        if (seconds < 0) {
            printf(" %10s", "-");
        } else {
            printf(" %10.3f", seconds);
        }
    }
    printf("\n");
}

static size_t family_length(const struct judge_result *r, uint32_t q)
{
    return strcspn(r->requirement[q]->id, ".");
}

static bool same_family(const struct judge_result *r, uint32_t a, uint32_t b)
{
    const size_t n = family_length(r, a);

    return n == family_length(r, b) &&
           memcmp(r->requirement[a]->id, r->requirement[b]->id, n) == 0;
}

/* Requirements are sorted by id, so that families are together. */
static void put_families(const struct judge_result *r)
{
    double known = 0;

    for (uint32_t q = 0, next; q < r->n_requirements; q = next) {
        double seconds = 0;
        char what[80];

        for (next = q; next < r->n_requirements && same_family(r, q, next);
             next++) {
            seconds += r->seconds[next];
        }
        snprintf(what, sizeof(what), "  %.*s", (int)family_length(r, q),
                 r->requirement[q]->id);
        put_row(what, -1, seconds);
        known += seconds;
    }
    put_row("  records and oracle", -1, r->seconds_in_all - known);
}

void times_print(const struct times *t, const struct evaluate_result *results,
                 uint32_t n)
{
    const struct times_span now = times_now();
    struct times_span left = {now.wall - t->began.wall,
                              now.processor - t->began.processor};

    printf("\n%-28s %10s %10s\n", "time, in seconds", "clock", "processors");
    for (uint32_t i = 0; i < t->n; i++) {
        const struct times_row *row = &t->row[i];

        put_row(row->what, row->took.wall, row->took.processor);
        if (row->took.processor >= 0) { /* a negative number: this is a part of
                                           another row */
            left.wall -= row->took.wall;
            left.processor -= row->took.processor;
        }
    }
    put_row("the rest", left.wall, left.processor);
    put_row("all", now.wall - t->began.wall,
            now.processor - t->began.processor);
    for (uint32_t i = 0; i < n; i++) {
        if (results[i].judged) {
            printf("\nthe judge, %s\n", results[i].r.engine);
            put_families(&results[i].r);
            put_row("  all", -1, results[i].r.seconds_in_all);
        }
    }
}
