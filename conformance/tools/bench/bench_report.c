/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_report.c - results, as rows of a table and as JSON.
 *
 * Higher is better but for time ("us") and memory ("MiB").
 */
#include "tools/bench/bench_report.h"
#include "judge/report/progress.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x;
    double y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

double bench_quantile(const double *sample, uint32_t n, double p)
{
    double *sorted = malloc(((size_t)n + 1) * sizeof(*sorted));
    double at = p * (n - 1);
    uint32_t i = (uint32_t)at;
    double value = NAN;

    if (sorted) {
        memcpy(sorted, sample, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), ascending);
        value = sorted[i];
        if (i + 1 < n) {
            value += (at - i) * (sorted[i + 1] - sorted[i]);
        }
    }
    free(sorted);
    return value;
}

bool bench_wants(const struct bench_report *report, const char *name)
{
    return (!report->filter || strstr(name, report->filter)) &&
           (!report->without || !strstr(name, report->without));
}

void bench_progress(const struct bench_report *report, const char *what)
{
    static struct progress progress; /* of the one bench of a process */

    if (!progress.unit) {
        progress_begin(&progress, "bench", "measured", 0, false);
    }
    progress.done = report->n;
    progress_name(&progress, what);
}

static void print_row(const struct bench_report *report,
                      const struct bench_result *r)
{
    if (report->terminal) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
    printf("%-52s %10.3f %-8s", r->name, bench_quantile(r->sample, r->n, 0.5),
           r->unit);
    if (!isnan(r->ratio)) {
        printf("  %7.3f of %s", r->ratio, r->ratio_to);
    }
    printf("\n");
    fflush(stdout);
}

static double median_ratio(const double *a, const double *b, uint32_t n)
{
    double *ratio = malloc(n * sizeof(*ratio));
    double median = NAN;

    for (uint32_t i = 0; ratio && i < n; i++) {
        ratio[i] = a[i] / b[i];
    }
    if (ratio) {
        median = bench_quantile(ratio, n, 0.5);
    }
    free(ratio);
    return median;
}

static void add(struct bench_report *report, struct bench_result r,
                const double *sample, const double *base)
{
    struct bench_result *grown =
        realloc(report->result, (report->n + 1) * sizeof(*grown));

    if (!grown) {
        report->out_of_memory = true;
        return;
    }
    report->result = grown;
    r.sample = malloc(r.n * sizeof(*r.sample));
    if (!r.sample) {
        report->out_of_memory = true;
        return;
    }
    memcpy(r.sample, sample, r.n * sizeof(*sample));
    if (base) {
        r.ratio = median_ratio(sample, base, r.n);
    }
    grown[report->n++] = r;
    print_row(report, &r);
}

void bench_add(struct bench_report *report, const char *name, const char *unit,
               const double *sample, uint32_t n, const double *base,
               const char *ratio_to)
{
    struct bench_result r = {.unit = unit,
                             .higher = strcmp(unit, "us") != 0 &&
                                       strcmp(unit, "MiB") != 0 &&
                                       strcmp(unit, "calls") != 0,
                             .n = n,
                             .ratio = NAN,
                             .ratio_to = ratio_to};

    snprintf(r.name, sizeof(r.name), "%s", name);
    add(report, r, sample, base);
}

void bench_add_so(struct bench_report *report, const char *name,
                  const char *unit, bool higher, const double *sample,
                  uint32_t n)
{
    struct bench_result r = {
        .unit = unit, .higher = higher, .n = n, .ratio = NAN};

    snprintf(r.name, sizeof(r.name), "%s", name);
    add(report, r, sample, NULL);
}

/* ---- JSON -------------------------------------------------------------- */

/* The first "model name" of the system; the machine's architecture is better
 * than nothing. */
static void read_cpu(char *out, size_t room)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(out, room, "unknown");
    while (f && fgets(line, sizeof(line), f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && value) {
            snprintf(out, room, "%s", value + 1 + strspn(value + 1, " \t"));
            out[strcspn(out, "\n")] = '\0';
            break;
        }
    }
    if (f) {
        fclose(f);
    }
}

static json_t *hardware(const struct bench_report *report)
{
    char cpu[200];

    read_cpu(cpu, sizeof(cpu));
    return json_pack("{s:s, s:I, s:I, s:s?}", "cpu", cpu, "cores",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) *
                         (json_int_t)sysconf(_SC_PAGESIZE),
                     "gpu", report->gpu[0] ? report->gpu : NULL);
}

static json_t *row(const struct bench_result *r)
{
    json_t *samples = json_array();

    for (uint32_t i = 0; i < r->n; i++) {
        if (json_array_append_new(samples, json_real(r->sample[i]))) {
            json_decref(samples);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:o}", "name", r->name,
                     "unit", r->unit, "better", r->higher ? "higher" : "lower",
                     "median", bench_quantile(r->sample, r->n, 0.5), "p10",
                     bench_quantile(r->sample, r->n, 0.1), "p90",
                     bench_quantile(r->sample, r->n, 0.9), "samples", samples);
}

static json_t *document(const struct bench_report *report, const char *commit)
{
    json_t *rows = json_array();
    struct tm utc;
    time_t now = time(NULL);
    char date[32] = "";

    if (gmtime_r(&now, &utc)) {
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    for (uint32_t i = 0; i < report->n; i++) {
        if (json_array_append_new(rows, row(&report->result[i]))) {
            json_decref(rows);
            return NULL;
        }
    }
    return json_pack("{s:s, s:i, s:s, s:s, s:o, s:o}", "format", "fsdp-bench",
                     "version", 1, "commit", commit, "date", date, "hardware",
                     hardware(report), "results", rows);
}

int bench_write(const struct bench_report *report, const char *path,
                const char *commit, struct fsdp_error *error)
{
    json_t *all =
        path && !report->out_of_memory ? document(report, commit) : NULL;
    int status = FSDP_OK;

    if (report->out_of_memory || (path && !all)) {
        snprintf(error->message, sizeof(error->message), "out of memory");
        status = FSDP_ERR_NOMEM;
    } else if (path &&
               json_dump_file(all, path,
                              JSON_INDENT(1) | JSON_REAL_PRECISION(7)) != 0) {
        snprintf(error->message, sizeof(error->message), "%.160s: %s", path,
                 strerror(errno));
        status = FSDP_ERR_IO;
    }
    json_decref(all);
    return status;
}

void bench_release(struct bench_report *report)
{
    for (uint32_t i = 0; i < report->n; i++) {
        free(report->result[i].sample);
    }
    free(report->result);
    report->result = NULL;
    report->n = 0;
}
