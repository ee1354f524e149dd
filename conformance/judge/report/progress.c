/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - one line of progress, for all commands.
 */
#include "judge/report/progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BAR = 24 /* columns */
};
static const double every_terminal = 0.1; /* seconds */
static const double every_pipe = 10.0;

static double now(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool progress_has_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(fileno(f)) != 0 && (!no || no[0] == '\0') &&
           (!term || strcmp(term, "dumb") != 0);
}

void progress_begin(struct progress *p, const char *phase, const char *unit,
                    uint32_t total, bool silent)
{
    *p = (struct progress){.unit = unit, .total = total, .silent = silent};
    snprintf(p->phase, sizeof(p->phase), "%s", phase);
    (void)pthread_mutex_init(&p->lock, NULL);
    p->terminal = isatty(STDERR_FILENO) != 0;
    p->colour = progress_has_colour(stderr);
    p->began = p->shown = now();
}

/* "1:05", or "12 s" */
static const char *span(double seconds, char out[24])
{
    const unsigned long s = (unsigned long)(seconds + 0.5);

    if (s < 60) {
        snprintf(out, 24, "%lu s", s);
    } else if (s < 3600) {
        snprintf(out, 24, "%lu:%02lu min", s / 60, s % 60);
    } else {
        snprintf(out, 24, "%lu:%02lu h", s / 3600, s % 3600 / 60);
    }
    return out;
}

static void put_bar(const struct progress *p)
{
    const uint32_t full = (uint32_t)((uint64_t)BAR * p->done / p->total);

    fprintf(stderr, "[%s", p->colour ? "\033[32m" : "");
    for (uint32_t i = 0; i < BAR; i++) {
        fputc(i < full ? '#' : '.', stderr);
    }
    fprintf(stderr, "%s] ", p->colour ? "\033[0m" : "");
}

/* Writes counts, failures and time; if `rest`, the time that is left, too. */
static void put_line(const struct progress *p, bool rest)
{
    const double passed = now() - p->began;
    char text[24];

    fprintf(stderr, "%s: ", p->phase);
    if (p->terminal && p->total > 0) {
        put_bar(p);
    }
    if (p->total > 0) {
        fprintf(stderr, "%u of %u %s", p->done, p->total, p->unit);
    } else {
        fprintf(stderr, "%u %s", p->done, p->unit);
    }
    if (p->failed > 0) {
        fprintf(stderr, ", %s%u failed%s", p->colour ? "\033[31m" : "",
                p->failed, p->colour ? "\033[0m" : "");
    }
    if (rest) {
        fprintf(stderr, ", %s", span(passed, text));
    }
    if (rest && p->done > 0 && p->done < p->total) {
        fprintf(stderr, ", about %s left",
                span(passed / p->done * (p->total - p->done), text));
    }
    if (rest && p->what[0] != '\0') {
        fprintf(stderr, ": %s", p->what);
    }
}

static void show(struct progress *p)
{
    const double t = now();

    if (!p->silent &&
        t - p->shown >= (p->terminal ? every_terminal : every_pipe)) {
        p->shown = t;
        fputs(p->terminal ? "\r\033[K" : "", stderr);
        put_line(p, true);
        fputs(p->terminal ? "" : "\n", stderr);
        (void)fflush(stderr);
    }
}

static void *tick(void *self)
{
    struct progress *p = self;
    struct timespec next = {0};

    (void)pthread_mutex_lock(&p->lock);
    (void)clock_gettime(CLOCK_MONOTONIC, &next);
    while (!p->over) {
        next.tv_sec++;
        (void)pthread_cond_timedwait(&p->ends, &p->lock, &next);
        if (!p->over) {
            show(p);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

void progress_tick(struct progress *p)
{
    pthread_condattr_t by;

    (void)pthread_condattr_init(&by);
    (void)pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->ends, &by);
    (void)pthread_condattr_destroy(&by);
    p->ticks = pthread_create(&p->thread, NULL, tick, p) == 0;
}

static void end_ticks(struct progress *p)
{
    if (p->ticks) {
        (void)pthread_mutex_lock(&p->lock);
        p->over = true;
        (void)pthread_cond_signal(&p->ends);
        (void)pthread_mutex_unlock(&p->lock);
        (void)pthread_join(p->thread, NULL);
        (void)pthread_cond_destroy(&p->ends);
        p->ticks = false;
    }
}

void progress_add(struct progress *p, uint32_t done, uint32_t failed)
{
    if (p) {
        (void)pthread_mutex_lock(&p->lock);
        p->done += done;
        p->failed += failed;
        show(p);
        (void)pthread_mutex_unlock(&p->lock);
    }
}

void progress_name(struct progress *p, const char *what)
{
    snprintf(p->what, sizeof(p->what), "%s", what);
    progress_add(p, 0, 0);
}

void progress_clear(struct progress *p)
{
    end_ticks(p);
    if (!p->silent && p->terminal) {
        fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
}

void progress_end(struct progress *p)
{
    progress_clear(p);
    if (!p->silent && p->done > 0) {
        put_line(p, p->terminal);
        fputc('\n', stderr);
    }
    (void)pthread_mutex_destroy(&p->lock);
    p->silent = true;
}
