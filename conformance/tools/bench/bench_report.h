/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_report.h - the results: samples with a name and a unit, shown while
 * they come in and written as JSON (docs/performance.md) at the end.
 */
#ifndef FSDP_CTS_BENCH_REPORT_H
#define FSDP_CTS_BENCH_REPORT_H

#include <fsdp/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_NAME_BYTES = 96,
};

struct bench_result {
    char name[BENCH_NAME_BYTES]; /* a slug that never changes */
    const char *unit;            /* static */
    bool higher;                 /* higher is better */
    double *sample;
    uint32_t n;
    double ratio;         /* to a baseline; NAN: there is none */
    const char *ratio_to; /* the name of the baseline; static */
};

struct bench_report {
    struct bench_result *result;
    uint32_t n;
    bool out_of_memory;
    const char *filter;         /* only results whose name has this part; NULL:
                                 * all */
    const char *without;        /* not results whose name has this part; NULL:
                                 * all */
    bool terminal;              /* progress is shown on a terminal */
    uint32_t samples;           /* of each result */
    char gpu[BENCH_NAME_BYTES]; /* "": none was used */
};

/* Seconds, since some fixed moment. */
double bench_now(void);

/* The p-th part (0 to 1) of the samples lies below; n >= 1. Interpolates. */
double bench_quantile(const double *sample, uint32_t n, double p);

/* Whether results of this name are wanted. */
bool bench_wants(const struct bench_report *report, const char *name);

/* Shows on a terminal what is being measured. */
void bench_progress(const struct bench_report *report, const char *what);

/* Takes a copy of the samples and prints a row. With `base` there is a ratio:
 * the median of sample[i] / base[i], which were measured in turns. */
void bench_add(struct bench_report *report, const char *name, const char *unit,
               const double *sample, uint32_t n, const double *base,
               const char *ratio_to);

/* The same with a unit that does not say whether higher is better. */
void bench_add_so(struct bench_report *report, const char *name,
                  const char *unit, bool higher, const double *sample,
                  uint32_t n);

/* IO, NOMEM. path NULL: nothing is written. */
int bench_write(const struct bench_report *report, const char *path,
                const char *commit, struct fsdp_error *error);
void bench_release(struct bench_report *report);

#endif
