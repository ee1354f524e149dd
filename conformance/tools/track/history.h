/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - all runs that were added, in one SQLite file. A run is what was
 * added at once: of one commit, on one machine, at one time. Its measurements
 * belong to series: one for each machine, engine, case and unit, so that a new
 * machine begins new ones. Exact figures are stored only when they change.
 */
#ifndef FSDP_CTS_HISTORY_H
#define FSDP_CTS_HISTORY_H

#include "judge/report/figures.h"
#include "tools/track/results.h"

enum {
    HISTORY_VERSION = 1,
    HISTORY_REASON_BYTES = 400
};

struct history;

enum history_mode {
    HISTORY_READ = 0,  /* it must be there */
    HISTORY_WRITE = 1, /* it must be there */
    HISTORY_MAKE = 2,  /* it is made if it is not there */
};

/*
 * IO: the file cannot be read or written, or is locked for too long. FORMAT:
 * not a database, of another program, or of another version. A write that was
 * cut off at any moment, by a signal, a crash or a full disk, has changed
 * nothing.
 */
int history_open(const char *path, enum history_mode mode, struct history **out,
                 struct fsdp_error *error);
void history_close(struct history *h); /* NULL is allowed */

/* ---- Runs ---- */

struct history_run {
    int64_t id; /* ascending in the order they were added */
    char commit[RESULTS_COMMIT_BYTES];
    int64_t date;
    int64_t machine;
    char machine_hash[MACHINE_HASH_BYTES], machine_text[MACHINE_TEXT_BYTES];
};

/* All runs, oldest first; *out is malloc'ed, the caller's. */
int history_runs(struct history *h, struct history_run **out, uint32_t *n,
                 struct fsdp_error *error);

/* Adds a run. *id is its number. If the same results of the same commit and
 * machine were added before, nothing changes: *again is set, and *id is the
 * first run's. */
int history_add(struct history *h, const struct results *r, int64_t *id,
                bool *again, struct fsdp_error *error);

/* ---- Series ---- */

struct history_series {
    int64_t id, machine;
    bool exact, higher; /* higher: is better */
    char engine[RESULTS_ENGINE_BYTES], name[RESULTS_NAME_BYTES];
    char unit[RESULTS_UNIT_BYTES]; /* "" for exact figures */
};

/* By machine, engine, name, unit. */
int history_series(struct history *h, struct history_series **out, uint32_t *n,
                   struct fsdp_error *error);

/* Whether a run has a value of the series. */
int history_has(struct history *h, const struct history_series *s, int64_t run,
                bool *has, struct fsdp_error *error);

struct history_exact {
    int64_t run, bundle; /* equal bundles have equal figures */
};
int history_exact(struct history *h, int64_t series, struct history_exact **out,
                  uint32_t *n, struct fsdp_error *error);
int history_bundle(struct history *h, int64_t bundle, struct figures *out,
                   struct fsdp_error *error);

struct history_timed {
    int64_t run;
    double median, p10, p90;
    uint32_t n_samples;
};
int history_timed(struct history *h, int64_t series, struct history_timed **out,
                  uint32_t *n, struct fsdp_error *error);

/* ---- Accepted changes ---- */

/* Patterns are those of the shell: * and ?. */
struct history_accepted {
    int64_t run, date;
    char engine[RESULTS_ENGINE_BYTES], name[RESULTS_NAME_BYTES];
    char figure[FIGURE_NAME_BYTES]; /* of an exact figure, or a unit */
    char reason[HISTORY_REASON_BYTES];
};
int history_accept(struct history *h, const struct history_accepted *a,
                   struct fsdp_error *error);
int history_accepted(struct history *h, struct history_accepted **out,
                     uint32_t *n, struct fsdp_error *error);

#endif
