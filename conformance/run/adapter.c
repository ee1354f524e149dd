/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter.c - hands cases to an adapter, and accounts for those of which it
 * left no record.
 */
#include "run/adapter.h"

#include "cases/case_claims.h"
#include "judge/judge_adapter.h"
#include "record/record_internal.h"
#include "run/adapter_case.h"
#include "run/adapter_claims.h"
#include "run/adapter_process.h"
#include "run/worker/case_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    /* Cases that may take an adapter down before the rest is given up. */
    MAX_STARTS = 8
};

struct adapter {
    const struct adapter_job *job;
    struct adapter_claims claims;
    struct run_case *c; /* the claimed cases, which job->claimed owns */
    uint32_t n, next;   /* c[next..n) are to be run */
    char folder[RECORD_PATH_BYTES], output[RECORD_PATH_BYTES + 16];
    char records[RECORD_PATH_BYTES]; /* absolute */
};

static bool has_record(const struct adapter *a, uint32_t i)
{
    char folder[CASE_FOLDER_BYTES];
    char file[CASE_FOLDER_BYTES + 16];

    case_folder(a->records, &a->c[i], false, folder);
    snprintf(file, sizeof(file), "%s/case.json", folder);
    return access(file, R_OK) == 0;
}

static uint64_t count_records(void *context)
{
    const struct adapter *a = context;
    uint64_t n = 0;

    for (uint32_t i = a->next; i < a->n; i++) {
        n += has_record(a, i);
    }
    return n;
}

static int open_folder(struct adapter *a, struct fsdp_error *error)
{
    const struct case_list *cases = a->job->cases;
    char folder[CASE_FOLDER_BYTES];

    if (!realpath(a->job->records, a->records)) {
        return record_fail(error, FSDP_ERR_IO, "adapter", "%.150s is no folder",
                           a->job->records);
    }
    FSDP_TRY(record_path(a->folder, a->records, "job", error));
    FSDP_TRY(record_make_directory(a->folder, error));
    snprintf(a->output, sizeof(a->output), "%s/output.txt", a->folder);
    /* Removes what an earlier run left, which would pass for this one's. */
    for (uint32_t i = 0; i < cases->n; i++) {
        case_folder(a->records, &cases->c[i], false, folder);
        if (access(folder, F_OK) == 0) {
            FSDP_TRY(record_clear(folder, error));
        }
    }
    return FSDP_OK;
}

static const char *ended(const struct adapter_process *p)
{
    return p->timed_out                  ? "was stopped, as it was silent,"
           : WIFSIGNALED(p->wait_status) ? "was killed"
           : WEXITSTATUS(p->wait_status) ? "failed"
                                         : "ended well";
}

static int ask_claims(struct adapter *a, struct fsdp_error *error)
{
    struct adapter_process p = {.command = a->job->command,
                                .verb = "claims",
                                .job = a->folder,
                                .output = a->output,
                                .timeout_ms = a->job->timeout_ms};
    char path[RECORD_PATH_BYTES];
    int status;

    FSDP_TRY(record_path(path, a->folder, "claims.json", error));
    (void)unlink(path);
    FSDP_TRY(adapter_process_run(&p, error));
    if (access(path, F_OK) != 0) {
        adapter_process_show(&p);
        (void)record_fail(error, FSDP_ERR_INVALID, "adapter",
                          "'%.80s claims JOB' %s and wrote no JOB/claims.json",
                          a->job->command, ended(&p));
        return FSDP_ERR_INVALID;
    }
    status = adapter_claims_read(path, &a->claims, error);
    if (status != FSDP_OK) {
        adapter_process_show(&p);
        return FSDP_ERR_INVALID;
    }
    for (uint32_t i = 0; a->claims.list[i]; i++) {
        if (!claim_is_known(a->claims.list[i])) {
            fprintf(stderr,
                    "fsdp-cts: the adapter claims '%s', which is no claim\n",
                    a->claims.list[i]);
        }
    }
    return FSDP_OK;
}

/* Selects the cases that are claimed, and writes the folder of each. */
static int prepare(struct adapter *a, struct fsdp_error *error)
{
    const struct case_list *cases = a->job->cases;
    char id[CASE_ID_BYTES];
    char folder[RECORD_PATH_BYTES];

    a->c = calloc(cases->n + 1u, sizeof(*a->c));
    if (!a->c) {
        return FSDP_ERR_NOMEM;
    }
    a->job->claimed->c = a->c;
    for (uint32_t i = 0; i < cases->n; i++) {
        if (!adapter_claims_case(&a->claims, &cases->c[i])) {
            continue;
        }
        case_id(&cases->c[i], id);
        FSDP_TRY(record_path(folder, a->folder, id, error));
        FSDP_TRY(adapter_case_write(folder, &cases->c[i], a->job->text, error));
        a->c[a->n++] = cases->c[i];
        a->job->claimed->n = a->n;
    }
    return FSDP_OK;
}

static int write_list(const struct adapter *a, struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    struct record_text t = {0};

    FSDP_TRY(record_path(path, a->folder, "cases.json", error));
    record_text_add(&t, "{\n \"version\": 1,\n \"records\": ");
    record_text_string(&t, a->records, sizeof(a->records));
    record_text_add(&t, ",\n \"cases\": [");
    for (uint32_t i = a->next; i < a->n; i++) {
        char id[CASE_ID_BYTES];

        case_id(&a->c[i], id);
        record_text_add(&t, "%s\n  \"%s\"", i == a->next ? "" : ",", id);
    }
    record_text_add(&t, "]\n}\n");
    return record_text_save(&t, path, error);
}

/* Writes for a case without a record which adapter it was given to, and how the
 * process ended. */
static int account(const struct adapter *a, const struct run_case *c,
                   const struct adapter_process *p, struct fsdp_error *error)
{
    const struct case_player player = {.engine = a->claims.engine,
                                       .version = a->claims.version,
                                       .claims = a->claims.list,
                                       .world = RECORD_ADAPTER_WORLD};
    char folder[CASE_FOLDER_BYTES];

    case_folder(a->records, c, false, folder);
    return case_record_account(
        folder, c, &player,
        &(struct case_process_end){p->wait_status, p->timed_out, 0, 0}, error);
}

/* Starts the adapter once. *done: there is no reason to start it again. */
static int start(struct adapter *a, bool *done, struct fsdp_error *error)
{
    struct adapter_process p = {.command = a->job->command,
                                .verb = "run",
                                .job = a->folder,
                                .output = a->output,
                                .timeout_ms = a->job->timeout_ms,
                                .progress = count_records,
                                .context = a};
    bool bad;

    FSDP_TRY(write_list(a, error));
    FSDP_TRY(adapter_process_run(&p, error));
    while (a->next < a->n && has_record(a, a->next)) {
        a->next++;
    }
    bad = p.timed_out || !WIFEXITED(p.wait_status) ||
          WEXITSTATUS(p.wait_status) != 0;
    if (bad || a->next < a->n) {
        adapter_process_show(&p);
    }
    if (bad && a->next < a->n) { /* it ended in this case, which has no
                                    record */
        FSDP_TRY(account(a, &a->c[a->next], &p, error));
        a->next++;
    }
    *done = !bad || a->next == a->n; /* it ended well: what is missing stays
                                        missing */
    return FSDP_OK;
}

static void take_claims(struct adapter_claims *to,
                        const struct adapter_claims *from)
{
    *to = *from;
    for (uint32_t i = 0; i < to->n; i++) {
        to->list[i] = to->claim[i]; /* its own */
    }
}

/* Makes the adapter's folder, and asks for its claims. */
static int begin_adapter(struct adapter *a, const struct adapter_job *job,
                         struct fsdp_error *error)
{
    a->job = job;
    FSDP_TRY(open_folder(a, error));
    if (!job->claims) {
        return ask_claims(a, error);
    }
    take_claims(&a->claims, job->claims);
    return FSDP_OK;
}

int adapter_ask(const struct adapter_job *job, struct adapter_claims *out,
                struct fsdp_error *error)
{
    struct adapter *a = calloc(1, sizeof(*a));
    const int status = a ? begin_adapter(a, job, error) : FSDP_ERR_NOMEM;

    if (status == FSDP_OK) {
        take_claims(out, &a->claims);
    }
    free(a);
    return status;
}

int adapter_run(const struct adapter_job *job, struct fsdp_error *error)
{
    struct adapter *a = calloc(1, sizeof(*a));
    bool done = false;
    int status = a ? begin_adapter(a, job, error) : FSDP_ERR_NOMEM;

    if (status == FSDP_OK) {
        status = prepare(a, error);
        done = a->n == 0;
    }
    /* If nothing is claimed, no record names the adapter, so one case does. */
    if (status == FSDP_OK && done && job->cases->n > 0) {
        status =
            account(a, &job->cases->c[0],
                    &(const struct adapter_process){.wait_status = 0}, error);
    }
    for (int i = 0; i < MAX_STARTS && status == FSDP_OK && !done; i++) {
        if (!job->quiet) {
            fprintf(stderr, "%s: %u of %u cases to run\n", a->claims.engine,
                    a->n - a->next, job->cases->n);
        }
        status = start(a, &done, error);
    }
    free(a);
    return status;
}
