/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track_add.c - `track add` and `track runs`: what goes into a history
 * and what is in it.
 */
#include "tools/track/command_track.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Options say what the files do not; where both do, they must agree. */
static int complete(const struct track_options *o, struct results *r,
                    struct fsdp_error *error)
{
    if (o->commit) {
        int status = results_set_commit(r, o->commit, "--commit", error);

        if (status != FSDP_OK) {
            return status;
        }
    }
    if (r->commit[0] == '\0') {
        error->status = FSDP_ERR_INVALID;
        snprintf(error->message, sizeof(error->message),
                 "the results do not say of which commit: --commit SHA");
        return error->status;
    }
    if (o->date && !results_date(o->date, &r->date)) {
        error->status = FSDP_ERR_INVALID;
        snprintf(error->message, sizeof(error->message),
                 "--date '%.60s': 2026-11-21T10:00:00Z, for example, was "
                 "expected",
                 o->date);
        return error->status;
    }
    if (r->date == 0) {
        r->date = (int64_t)time(NULL);
    }
    if (!r->has_machine && o->machine) {
        snprintf(r->machine.cpu, sizeof(r->machine.cpu), "%s", o->machine);
    } else if (!r->has_machine) {
        machine_here(&r->machine);
    }
    return FSDP_OK;
}

int track_command_add(const struct track_options *o)
{
    struct fsdp_error error = {0};
    struct results r = {.n_exact = 0};
    struct history *h = NULL;
    int64_t run = 0;
    bool again = false;
    int status = FSDP_OK;

    for (int i = 0; i < o->n_rest && status == FSDP_OK; i++) {
        status = results_read(o->rest[i], o->better, &r, &error);
    }
    if (status == FSDP_OK) {
        status = complete(o, &r, &error);
    }
    if (status == FSDP_OK) {
        status = history_open(o->history, HISTORY_MAKE, &h, &error);
    }
    if (status == FSDP_OK) {
        status = history_add(h, &r, &run, &again, &error);
    }
    if (status == FSDP_OK && !o->quiet) {
        printf("run %" PRId64 " of %s%s: %u cases with exact figures, %u "
               "timed results\n",
               run, r.commit, again ? " was there already" : "", r.n_exact,
               r.n_timed);
    }
    history_close(h);
    results_release(&r);
    return status == FSDP_OK ? 0 : track_failed(&error);
}

int track_command_runs(const struct track_options *o)
{
    struct fsdp_error error = {0};
    struct history *h = NULL;
    struct history_run *run = NULL;
    uint32_t n = 0;
    int status = history_open(o->history, HISTORY_READ, &h, &error);

    if (status == FSDP_OK) {
        status = history_runs(h, &run, &n, &error);
    }
    for (uint32_t i = 0; i < n; i++) {
        time_t t = (time_t)run[i].date;
        char date[32] = "";
        struct tm tm;

        if (gmtime_r(&t, &tm)) {
            (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
        }
        printf("%6" PRId64 "  %-12.12s  %s  %s  %s\n", run[i].id, run[i].commit,
               date, run[i].machine_hash, run[i].machine_text);
    }
    free(run);
    history_close(h);
    return status == FSDP_OK ? 0 : track_failed(&error);
}
