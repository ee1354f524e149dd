/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_read.c - the files of logs. A rank has one log of a source: a folder
 * that has two of them is of two runs, and nothing is judged from it.
 */
#include "record/record_internal.h"
#include "tools/probes/probe.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char where[] = "probe";

static const struct record_source log_files = {.where = where,
                                               .most = RECORD_MAX_JSON_BYTES};

static int fail_with_errno(struct fsdp_error *error, const char *path)
{
    return record_fail(error, FSDP_ERR_IO, where, "%.160s: %s", path,
                       strerror(errno));
}

static int read_log(const char *path, struct probe_logs *out,
                    struct fsdp_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    int status;

    if (out->n == PROBE_MAX_LOGS) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "%.120s: more than %d logs", path, PROBE_MAX_LOGS);
    }
    status = record_read_file(path, &log_files, &text, &bytes, error);
    if (status == FSDP_OK) {
        struct probe_log_file *grown =
            realloc(out->log, (out->n + 1) * sizeof(*grown));
        if (!grown) {
            status = record_fail(error, FSDP_ERR_NOMEM, where,
                                 "%.160s: out of memory", path);
        } else {
            out->log = grown;
            status =
                probe_log_parse(text, bytes, path, &grown[out->n++], error);
        }
    }
    free(text);
    return status;
}

static int is_log(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);

    return n > 6 && strcmp(entry->d_name + n - 6, ".jsonl") == 0;
}

static int read_folder(const char *folder, struct probe_logs *out,
                       struct fsdp_error *error)
{
    struct dirent **entry = NULL;
    int status = FSDP_OK;
    int n = scandir(folder, &entry, is_log, alphasort);

    if (n < 0) {
        return fail_with_errno(error, folder);
    }
    if (n == 0) {
        status = record_fail(error, FSDP_ERR_FORMAT, where,
                             "%.160s: no logs: *.jsonl were expected", folder);
    }
    for (int i = 0; i < n; i++) {
        char path[1024];
        if (status == FSDP_OK &&
            snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name) >=
                (int)sizeof(path)) {
            status = record_fail(error, FSDP_ERR_FORMAT, where,
                                 "%.160s: a path too long", folder);
        }
        if (status == FSDP_OK) {
            status = read_log(path, out, error);
        }
        free(entry[i]);
    }
    free(entry);
    return status;
}

static int order(const void *a, const void *b)
{
    const struct probe_log_file *x = a;
    const struct probe_log_file *y = b;

    if (x->source != y->source) {
        return x->source < y->source ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    if (x->pid != y->pid) {
        return x->pid < y->pid ? -1 : 1;
    }
    return strcmp(x->path, y->path);
}

/* Logs of memory may be more than ranks: children, and programs that a rank
 * starts, have logs, too. */
static int check_runs(const struct probe_logs *logs, struct fsdp_error *error)
{
    for (uint32_t i = 1; i < logs->n; i++) {
        const struct probe_log_file *a = &logs->log[i - 1];
        const struct probe_log_file *b = &logs->log[i];
        if (a->source == b->source && !probe_source_is_memory(a->source) &&
            a->rank != PROBE_UNKNOWN && a->rank == b->rank) {
            const size_t n = strlen(a->path);
            const size_t m = strlen(b->path);
            return record_fail(error, FSDP_ERR_FORMAT, where,
                               "%s and %s are both of %s rank %" PRIu64
                               ": logs of two runs?",
                               n > 60 ? a->path + n - 60 : a->path,
                               m > 60 ? b->path + m - 60 : b->path,
                               probe_source_name(a->source), a->rank);
        }
    }
    return FSDP_OK;
}

int probe_logs_read(const char *const *path, uint32_t n, struct probe_logs *out,
                    struct fsdp_error *error)
{
    struct stat st;

    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < n; i++) {
        if (stat(path[i], &st) != 0) {
            return fail_with_errno(error, path[i]);
        }
        FSDP_TRY(S_ISDIR(st.st_mode) ? read_folder(path[i], out, error)
                                     : read_log(path[i], out, error));
    }
    if (out->n > 0) {
        qsort(out->log, out->n, sizeof(*out->log), order);
    }
    return check_runs(out, error);
}

void probe_logs_release(struct probe_logs *logs)
{
    for (uint32_t i = 0; i < logs->n; i++) {
        probe_log_release(&logs->log[i]);
    }
    free(logs->log);
    memset(logs, 0, sizeof(*logs));
}

void probe_log_label(const struct probe_log_file *log,
                     char label[PROBE_LABEL_BYTES])
{
    const char *source = probe_source_name(log->source);

    if (log->rank != PROBE_UNKNOWN) {
        snprintf(label, PROBE_LABEL_BYTES, "%s rank %" PRIu64, source,
                 log->rank);
    } else {
        snprintf(label, PROBE_LABEL_BYTES, "%s pid %" PRIu64, source, log->pid);
    }
}
