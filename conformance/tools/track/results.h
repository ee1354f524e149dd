/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results.h - the content of one file of results, whatever its format: exact
 * figures of cases, and timed results; of which engine, commit and machine.
 */
#ifndef FSDP_CTS_RESULTS_H
#define FSDP_CTS_RESULTS_H

#include "tools/track/machine.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    RESULTS_NAME_BYTES = 256,
    RESULTS_ENGINE_BYTES = 64,
    RESULTS_UNIT_BYTES = 32,
    RESULTS_COMMIT_BYTES = 65,
    RESULTS_SAMPLES_MOST = 4096,
    RESULTS_MOST = 1 << 17 /* of each sort */
};

/* The exact figures of a case, as JSON: results_figures says what it has. */
struct exact_result {
    char engine[RESULTS_ENGINE_BYTES], name[RESULTS_NAME_BYTES];
    char *text;
};

struct timed_result {
    char engine[RESULTS_ENGINE_BYTES], name[RESULTS_NAME_BYTES];
    char unit[RESULTS_UNIT_BYTES];
    bool higher; /* higher is better */
    double median, p10, p90;
    uint32_t n_samples;
    double *sample;
};

struct results {
    char commit[RESULTS_COMMIT_BYTES]; /* "": the files do not say */
    int64_t date;                      /* seconds since 1970; 0: likewise */
    bool has_machine;
    struct machine machine;
    struct exact_result *exact;
    struct timed_result *timed;
    uint32_t n_exact, n_timed;
};

/*
 * Reads a file into what was read before: a report of `fsdp-cts run --report`,
 * a file of `fsdp-cts bench`, or github-action-benchmark's custom format.
 * `better` is for the last, which does not say: 'l'ower, 'h'igher, or 0.
 * IO, NOMEM. FORMAT: none of these, or not to the letter; files that disagree
 * about commit or machine; the same thing twice.
 */
int results_read(const char *path, char better, struct results *r,
                 struct fsdp_error *error);
void results_release(struct results *r); /* any state */

/* The parts of results_read: results_report.c, results_bench.c. */
int results_read_report(const char *path, const char *text, size_t bytes,
                        struct results *r, struct fsdp_error *error);
int results_read_bench(const char *path, json_t *root, struct results *r,
                       struct fsdp_error *error);
int results_read_custom(const char *path, json_t *root, char better,
                        struct results *r, struct fsdp_error *error);

/* Appends a result, which then belongs to *r, also if this fails. FORMAT: it is
 * there already. */
int results_add_exact(struct results *r, const struct exact_result *x,
                      struct fsdp_error *error);
int results_add_timed(struct results *r, const struct timed_result *x,
                      struct fsdp_error *error);
/* FORMAT: not the name of a commit (4 to 64 hexadecimal digits), or another one
 * than an earlier file's. */
int results_set_commit(struct results *r, const char *commit, const char *file,
                       struct fsdp_error *error);
/* RFC 3339, "2026-11-21T10:00:00Z", with a fraction or an offset if it has
 * one. false: it is none. */
bool results_date(const char *text, int64_t *out);

#endif
