/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_testing.h - histories that tests make: in a folder of their own, of
 * results that are written down here.
 */
#ifndef FSDP_CTS_TRACK_TESTING_H
#define FSDP_CTS_TRACK_TESTING_H

#include "tools/track/track_judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct track_bench {
    char folder[64], db[96], file[96];
    struct history *h;
    struct fsdp_error error;
    struct track_verdict v;
};

static inline int track_set_up(void **state)
{
    struct track_bench *b = calloc(1, sizeof(*b));

    if (!b) {
        return -1;
    }
    strcpy(b->folder, "/tmp/track_test.XXXXXX");
    *state = b;
    if (!mkdtemp(b->folder)) {
        return -1;
    }
    snprintf(b->db, sizeof(b->db), "%s/history.db", b->folder);
    snprintf(b->file, sizeof(b->file), "%s/results", b->folder);
    return history_open(b->db, HISTORY_MAKE, &b->h, &b->error);
}

static inline int track_tear_down(void **state)
{
    struct track_bench *b = *state;

    history_close(b->h);
    track_verdict_release(&b->v);
    (void)unlink(b->db);
    (void)unlink(b->file);
    (void)rmdir(b->folder);
    free(b);
    return 0;
}

/* A run of one case with two exact figures, and one timed result; 0: leave it
 * out. Commits are c0000001, c0000002, ... */
struct track_made {
    uint64_t gathers, peak;
    double speed;
    const char *machine;
    uint32_t commit;
};

static inline void track_make(struct results *r, const struct track_made *m)
{
    struct fsdp_error error = {0};
    char text[200];

    memset(r, 0, sizeof(*r));
    snprintf(r->commit, sizeof(r->commit), "c%07" PRIu32, m->commit);
    r->date = 86400 * (int64_t)m->commit;
    snprintf(r->machine.cpu, sizeof(r->machine.cpu), "%s",
             m->machine ? m->machine : "Machine A");
    if (m->gathers > 0) {
        struct exact_result x = {.engine = "mine", .name = "a.case"};

        snprintf(text, sizeof(text),
                 "{\"steps\":4,\"figures\":{\"collectives.all-gather\":"
                 "%" PRIu64 ",\"peak.engine\":%" PRIu64 "}}",
                 m->gathers, m->peak);
        x.text = strdup(text);
        (void)results_add_exact(r, &x, &error);
    }
    if (m->speed > 0.0) {
        struct timed_result x = {.engine = "mine",
                                 .name = "step.a.mine",
                                 .unit = "tokens/s",
                                 .higher = true,
                                 .median = m->speed,
                                 .p10 = 0.98 * m->speed,
                                 .p90 = 1.02 * m->speed,
                                 .n_samples = 1};

        x.sample = malloc(sizeof(*x.sample));
        if (x.sample) {
            *x.sample = m->speed;
        }
        (void)results_add_timed(r, &x, &error);
    }
}

/* Returns the run's number. */
static inline int64_t track_add(struct track_bench *b,
                                const struct track_made *m, bool *again)
{
    struct results r;
    int64_t run = 0;
    bool was = false;

    track_make(&r, m);
    if (history_add(b->h, &r, &run, &was, &b->error) != FSDP_OK) {
        run = -1;
    }
    results_release(&r);
    if (again) {
        *again = was;
    }
    return run;
}

/* Judges the newest run afresh. */
static inline int track_look(struct track_bench *b)
{
    track_verdict_release(&b->v);
    return track_judge(b->h, 0, &edivisive_defaults, &b->v, &b->error);
}

static inline int track_accept_all(struct track_bench *b, int64_t run,
                                   const char *figure)
{
    struct history_accepted a = {.run = run, .date = 1};

    strcpy(a.engine, "*");
    strcpy(a.name, "*");
    snprintf(a.figure, sizeof(a.figure), "%s", figure);
    strcpy(a.reason, "wanted");
    return history_accept(b->h, &a, &b->error);
}

#endif
