/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_record.c - the place of a case's record, in the worker's folder while it
 * is played and in the folder of records afterwards; and how the ranks ended.
 */
#include "run/worker/case_record.h"

#include "checkpoint/folder_erase.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The record ---------------------------------------------------------- */

void case_folder(const char *records, const struct run_case *c, bool baseline,
                 char path[CASE_FOLDER_BYTES])
{
    char name[CASE_ID_BYTES];

    if (baseline) {
        case_baseline_key(c, name);
    } else {
        case_id(c, name);
    }
    snprintf(path, CASE_FOLDER_BYTES, "%s/%s%s", records,
             baseline ? "baseline/" : "", name);
}

int case_record_write(const char *folder, const struct run_case *c,
                      const struct case_player *player,
                      const struct world_result *ends, struct fsdp_error *error)
{
    struct record r;
    uint32_t n = 0;
    int status = record_init(&r, c, c->ranks);

    while (player->claims[n]) {
        n++;
    }
    r.claim = calloc(n + 1u, sizeof(*r.claim));
    if (status == FSDP_OK && !r.claim) {
        status = FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; status == FSDP_OK && i < n; i++) {
        snprintf(r.claim[i], sizeof(r.claim[i]), "%s", player->claims[i]);
        r.n_claims = i + 1;
    }
    for (uint32_t k = 0; status == FSDP_OK && k < c->ranks; k++) {
        struct record_rank *to = &r.rank[k];
        to->end = ends[k].end;
        to->signal = (uint32_t)ends[k].signal;
        to->exit_status = ends[k].status;
        to->n_collectives = ends[k].n_collectives;
        to->in_collective = ends[k].in_collective;
        to->last_kind = ends[k].last_kind;
        to->last_unit = ends[k].last_unit;
        to->unsampled = !record_is_drawn(c, player->sample, k);
        if (player->weight) {
            to->weight = player->weight[k];
        }
        if (player->account) {
            status = record_account_copy(&player->account[k], &to->account);
        }
    }
    if (status == FSDP_OK) {
        snprintf(r.engine, sizeof(r.engine), "%s", player->engine);
        snprintf(r.engine_version, sizeof(r.engine_version), "%s",
                 player->version);
        snprintf(r.world, sizeof(r.world), "%s", player->world);
        snprintf(r.isolation, sizeof(r.isolation), "%s",
                 player->isolation ? player->isolation : "");
        for (uint32_t i = 0; i < player->n_refusals; i++) {
            r.refusal[r.n_refusals++] = player->refusal[i];
        }
        status = record_write_case(folder, &r, error);
    }
    record_release(&r);
    return status;
}

static struct world_result end_of(const struct case_process_end *how)
{
    const int s = how->wait_status;

    return (struct world_result){.end = how->timed_out   ? WORLD_TIMED_OUT
                                        : WIFSIGNALED(s) ? WORLD_SIGNALLED
                                                         : WORLD_EXITED,
                                 .signal = WIFSIGNALED(s) ? WTERMSIG(s) : 0,
                                 .status = WIFEXITED(s) ? WEXITSTATUS(s) : 0};
}

int case_record_account(const char *folder, const struct run_case *c,
                        const struct case_player *player,
                        const struct case_process_end *how,
                        struct fsdp_error *error)
{
    struct world_result ends[WORLD_MAX_RANKS] = {0};
    /* A launcher exits as a shell does whose child a signal has ended. */
    bool named = !how->timed_out && how->signal != 0 && how->rank < c->ranks &&
                 WIFEXITED(how->wait_status) &&
                 WEXITSTATUS(how->wait_status) == 128 + how->signal;

    for (uint32_t r = 0; r < c->ranks && r < WORLD_MAX_RANKS; r++) {
        ends[r] = end_of(how);
        if (named) { /* the launcher has ended the others, as a world does */
            ends[r] = (struct world_result){.end = WORLD_RETURNED,
                                            .status = FSDP_ERR_ABORTED};
        }
    }
    if (named) {
        ends[how->rank] = (struct world_result){.end = WORLD_SIGNALLED,
                                                .signal = how->signal};
    }
    return case_record_write(folder, c, player, ends, error);
}

/* ---- A worker's folder --------------------------------------------------- */

int worker_folder_fail(struct fsdp_error *error, const char *what,
                       const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof(error->message), "%s %.150s: %s", what,
             path, strerror(errno));
    return FSDP_ERR_IO;
}

int worker_folder_make(const char *records, uint32_t index,
                       char path[CASE_FOLDER_BYTES], struct fsdp_error *error)
{
    static const char *const below[] = {"", "/tmp", "/baseline"};
    char *whole = realpath(records, NULL);
    char one[CASE_FOLDER_BYTES + 16];

    if (!whole || strlen(whole) + 64 > CASE_FOLDER_BYTES) {
        free(whole);
        return worker_folder_fail(error, "cannot use", records);
    }
    snprintf(path, CASE_FOLDER_BYTES, "%s/" WORKER_FOLDER "%u", whole, index);
    free(whole);
    folder_erase(path);
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        snprintf(one, sizeof(one), "%s%s", path, below[i]);
        if (mkdir(one, 0777) != 0) {
            return worker_folder_fail(error, "cannot make", one);
        }
    }
    return FSDP_OK;
}

/* Removes all but regular files. A link, say, could lead a process that reads
 * or completes the record to that of another case. */
static void clean(const char *folder)
{
    char path[CASE_FOLDER_BYTES + 256];
    struct stat s = {0};
    const struct dirent *e;
    DIR *d;

    if (lstat(folder, &s) != 0) {
        return;
    }
    if (!S_ISDIR(s.st_mode)) {
        (void)unlink(folder);
        return;
    }
    (void)chmod(folder, 0777 & (s.st_mode | S_IRWXU));
    d = opendir(folder);
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_type != DT_REG && strcmp(e->d_name, ".") != 0 &&
            strcmp(e->d_name, "..") != 0 && lstat(path, &s) == 0 &&
            !S_ISREG(s.st_mode)) {
            folder_erase(path);
        }
    }
    if (d) {
        closedir(d);
    }
}

void worker_folder_renew(const char *worker, const char *record)
{
    char tmp[CASE_FOLDER_BYTES + 8];

    snprintf(tmp, sizeof(tmp), "%s/tmp", worker);
    (void)chmod(worker, 0755);
    folder_erase(record);
    folder_erase(tmp);
    (void)mkdir(tmp, 0777);
}

void worker_folder_clean(const char *worker, const struct run_case *c,
                         bool baseline, char path[CASE_FOLDER_BYTES])
{
    (void)chmod(worker, 0755);
    case_folder(worker, c, baseline, path);
    clean(path);
}

int worker_folder_settle(const char *worker, const char *records,
                         const struct run_case *c, bool baseline,
                         char to[CASE_FOLDER_BYTES], struct fsdp_error *error)
{
    char from[CASE_FOLDER_BYTES];

    worker_folder_clean(worker, c, baseline, from);
    case_folder(records, c, baseline, to);
    folder_erase(to);
    return rename(from, to) == 0 || errno == ENOENT
               ? FSDP_OK
               : worker_folder_fail(error, "cannot keep", to);
}

/* ---- Ranks of worlds without a record ------------------------------------ */

void worker_ends_tell_unsaved(uint32_t n, const struct world_result *ends)
{
    for (uint32_t k = 0; k < n; k++) {
        if (ends[k].end == WORLD_RETURNED && ends[k].status != FSDP_OK &&
            ends[k].status != FSDP_ERR_ABORTED) {
            fprintf(
                stderr, "fsdp-cts: rank %u of the world that saves: %s: %s\n",
                k, ends[k].error.where[0] ? ends[k].error.where : "nowhere",
                ends[k].error.message[0] ? ends[k].error.message
                                         : fsdp_status_text(ends[k].status));
            return;
        }
    }
}

void worker_ends_take(const struct world_result *end, int32_t *status,
                      char *why, size_t room)
{
    *status = end->end == WORLD_RETURNED ? end->status : FSDP_ERR_INTERNAL;
    if (why && *status != FSDP_OK) {
        snprintf(why, room, "%s%s%s",
                 end->end == WORLD_SIGNALLED ? "a signal"
                 : end->error.where[0]       ? end->error.where
                                             : "",
                 end->error.message[0] ? ": " : "", end->error.message);
        for (char *p = why; *p; p++) {
            *p = (char)(*p >= ' ' && *p < 127 ? *p : '?');
        }
    }
}

bool worker_ends_died(const struct world_result *ends, uint32_t ranks)
{
    uint32_t k = 0;

    while (k < ranks && ends[k].end == WORLD_RETURNED) {
        k++;
    }
    return k < ranks;
}
