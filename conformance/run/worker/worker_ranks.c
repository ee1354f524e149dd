/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_ranks.c - prepares and ends the worlds of a worker; and what each rank
 * does first.
 */
#include "run/worker/worker_ranks.h"

#include "run/process/orphans.h"
#include "run/process/process.h"
#include "run/witness/crossing.h"
#include "run/worker/debug.h"
#include "run/worker/engine_load.h"
#include "run/worker/rank_limits.h"
#include "run/worker/told.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- In a rank ----------------------------------------------------------- */

/* A rank that is a process prints by a descriptor of its own, and has no
 * other's. */
static void take_outputs(const struct worker_options *o, uint32_t rank)
{
    if (o->world != WORLD_LOCAL) {
        return;
    }
    if (rank < o->outputs) {
        (void)fflush(NULL);
        (void)dup2(WORKER_OUTPUTS_FD + (int)rank, STDOUT_FILENO);
        (void)dup2(WORKER_OUTPUTS_FD + (int)rank, STDERR_FILENO);
    }
    for (uint32_t i = 0; i < o->outputs; i++) {
        close(WORKER_OUTPUTS_FD + (int)i);
    }
}

/* Reports a failure of the machine, not of the engine, which has not run. */
static int is_not_isolated(struct world_rank *rank, const char *why)
{
    *rank->error = (struct fsdp_error){.status = FSDP_ERR_IO,
                                       .rank = (int32_t)rank->rank,
                                       .where = RECORD_WRITE_WHERE};
    snprintf(rank->error->message, sizeof(rank->error->message),
             "rank %u could not be isolated: %.150s", rank->rank, why);
    rank->comm.abort(rank->comm.self, FSDP_ERR_IO);
    return FSDP_ERR_IO;
}

/* Constructors of the engine, and of all that it loads, run here. `loading`
 * says what they change. The worker has loaded the engine before, under the
 * same limits: if it cannot be loaded now, that is the engine's doing. */
static int load_engine(const struct rank_body *b, struct drive *d,
                       char loading[PROCESS_STATE_TEXT],
                       struct fsdp_error *error)
{
    struct process_state state;

    process_state_note(&state, true);
    FSDP_TRY(engine_load(b->o->engine, &d->engine, error));
    if (process_state_changed(&state, PROCESS_WHOLE, true, loading) !=
        PROCESS_SAME) {
        d->loading = loading;
    }
    return FSDP_OK;
}

/* The engine has been loaded, so that breakpoints find its names. A rank to
 * which no debugger comes goes on without. */
static void await_debugger(const struct rank_body *b, uint32_t rank)
{
    char file[WORKER_DEBUG_BYTES];

    if (b->o->debug == rank + 1) {
        (void)debug_wait(worker_debug_file(b->o->records, file));
    }
}

/* Has the rank leave where it stood, for told.txt (run/worker/told.h). */
static void say_where(const struct rank_body *b, struct world_rank *rank)
{
    char file[TOLD_PATH_BYTES];

    if (b->o->world == WORLD_LOCAL) {
        told_stack_file(b->folders[0], rank->rank, file);
        world_stack_to(rank, file);
    }
}

int rank_body_run(void *context, struct world_rank *rank)
{
    const struct rank_body *b = context;
    struct fsdp_error error = {0};
    const char *why = NULL;
    char loading[PROCESS_STATE_TEXT];
    struct drive d = *b->d;
    struct crossing crossing = {.pipe = -1};

    take_outputs(b->o, rank->rank);
    say_where(b, rank);
    if (b->notary) {
        if (!limits_enter(b->notary, rank->rank, b->folders, &why)) {
            return is_not_isolated(rank, why);
        }
        d.limited = true;
        d.line = b->notary->line;
        crossing.line = b->notary->line;
        crossing.pipe = b->notary->pipe;
        crossing.most = crossing_room(crossing.pipe);
        d.crossing = b->crosses ? &crossing : NULL;
    }
    if (b->loads && load_engine(b, &d, loading, &error) != FSDP_OK) {
        return drive_unloaded(&d, rank, &error);
    }
    await_debugger(b, rank->rank);
    return b->drive(&d, rank);
}

/* ---- Around the ranks ---------------------------------------------------- */

void worker_ranks_open(struct worker_ranks *w, const struct worker_options *o)
{
    *w = (struct worker_ranks){.o = o};
    w->isolate = o->isolate && o->world == WORLD_LOCAL;
    world_stack_prepare();
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        (void)getrlimit((__rlimit_resource_t)i, &w->limit[i]);
    }
}

void worker_ranks_begin(struct worker_ranks *w, const char *folder,
                        bool crosses)
{
    snprintf(w->tmp, sizeof(w->tmp), "%s/tmp", w->o->records);
    w->record = folder;
    w->crosses = crosses && w->isolate && w->o->words != 0;
    w->folders[0] = w->crosses ? w->tmp : folder;
    w->folders[1] = w->o->words != 0 && !w->crosses ? w->tmp : NULL;
    w->n_refusals = 0;
    w->counted = false;
    w->unknown = NULL;
}

const char *worker_ranks_own(const struct worker_ranks *w)
{
    return w->folders[0];
}

static bool belongs_to_record(const char *name)
{
    const char *end = strchr(name, '.');

    return strncmp(name, "rank-", 5) == 0 && end &&
           (strcmp(end, ".stack") == 0 || strcmp(end, ".trace.partial") == 0);
}

void worker_ranks_collect(const struct worker_ranks *w)
{
    DIR *d = w->crosses ? opendir(w->tmp) : NULL;
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        char from[CASE_FOLDER_BYTES + 272];
        char to[CASE_FOLDER_BYTES + 272];

        snprintf(from, sizeof(from), "%s/%s", w->tmp, e->d_name);
        snprintf(to, sizeof(to), "%s/%s", w->record, e->d_name);
        if (belongs_to_record(e->d_name)) {
            (void)rename(from, to);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* Restores the worker's limits: any process of the same user can change them,
 * and not every user can change them back. */
static void restore_limits(struct worker_ranks *w)
{
    struct rlimit now = {0, 0};

    for (int i = 0; i < RLIM_NLIMITS; i++) {
        const struct rlimit *before = &w->limit[i];

        (void)getrlimit((__rlimit_resource_t)i, &now);
        if (now.rlim_cur != before->rlim_cur ||
            now.rlim_max != before->rlim_max) {
            w->harmed =
                setrlimit((__rlimit_resource_t)i, before) != 0 || w->harmed;
        }
    }
}

/* Ends what ranks left behind, which have ended themselves if they are
 * processes. If the worker is the first process of its namespace that is all
 * the rest. Isolated ranks have started nothing. */
static void end_leftovers(struct worker_ranks *w)
{
    if (w->o->world == WORLD_MPI || w->isolate) {
        return;
    }
    if (getpid() == 1) {
        (void)kill(-1, SIGKILL);
    }
    orphans_end();
    restore_limits(w);
}

/* Accounts for what the recorders have told the notary, beside what the broker
 * carried; its hashes stay where they are until ranks are recorded again. */
static void account(struct worker_ranks *w, const struct notary_notes *notes,
                    uint32_t ranks)
{
    w->counted = true;
    for (uint32_t k = 0; k < ranks; k++) {
        struct record_account *const a = &w->account[k];
        a->known = 1;
        a->own = notes->told[k].own;
        a->recorded = notes->told[k].of;
        a->carried = w->carried[k].traffic;
        a->payload = w->carried[k].payload;
        a->digest = w->carried[k].digest;
        a->n_payloads = a->n_digests = w->carried[k].n;
    }
}

/* The arrays have room for many more ranks than most worlds have. */
static uint32_t ranks_of(const struct rank_body *b)
{
    const uint32_t ranks = b->d->c->ranks;

    return ranks < NOTARY_RANKS ? ranks : NOTARY_RANKS;
}

/* Notes the first refusals of a case, in any of its worlds. */
static void note_refusals(struct worker_ranks *w, const struct rank_body *b)
{
    struct notary_notes notes;
    const char *why;

    if (!notary_report(&w->notary, &notes, &why)) {
        w->unknown = why;
    }
    memcpy(w->weight, notes.weight, sizeof(w->weight));
    for (uint32_t i = 0; i < notes.n && w->n_refusals < RECORD_REFUSALS; i++) {
        w->refusal[w->n_refusals++] = notes.refusal[i];
    }
    if (b->crosses) {
        account(w, &notes, ranks_of(b));
    }
}

/* As world_run; isolated ranks share no memory. If the broker is lost, what
 * ranks leave is no record. */
static int run_ranks(struct worker_ranks *w, uint32_t kind,
                     const struct fsdp_mesh *mesh, struct rank_body *b,
                     struct world_result *ends, struct fsdp_error *error)
{
    int status;

    if (!w->isolate) {
        return world_run(kind, mesh, w->o->timeout_ms, rank_body_run, b, ends,
                         error);
    }
    status = world_run_carried(mesh, w->o->timeout_ms, rank_body_run, b, ends,
                               b->crosses ? w->carried : NULL, error);
    if (status == FSDP_ERR_COMM) {
        w->unknown = "the process that carries what ranks send did not come to "
                     "its end";
        status = FSDP_OK;
    }
    return status;
}

/* Starts one notary for all worlds: that takes longer than a small case. */
static bool have_notary(struct worker_ranks *w)
{
    const struct notary_task task = {w->folders, w->record};

    return notary_go_on(&w->notary, &task) || notary_start(&w->notary, &task);
}

/* Makes room for the counts of the broker while ranks are recorded. */
static bool have_room(struct worker_ranks *w, const struct rank_body *b)
{
    free(w->carried);
    w->carried = calloc(ranks_of(b), sizeof(*w->carried));
    return w->carried != NULL;
}

int worker_ranks_run(struct worker_ranks *w, uint32_t kind,
                     const struct fsdp_mesh *mesh, struct rank_body *b,
                     struct world_result *ends, struct fsdp_error *error)
{
    int status;

    b->o = w->o;
    b->folders = w->folders;
    if (w->isolate && !have_notary(w)) {
        snprintf(error->message, sizeof(error->message),
                 "no process could be started beside the ranks");
        return FSDP_ERR_NOMEM;
    }
    b->notary = w->isolate ? &w->notary : NULL;
    b->crosses =
        w->crosses && b->d->directory && b->d->purpose == DRIVE_TO_RECORD;
    if (b->crosses && !have_room(w, b)) {
        snprintf(error->message, sizeof(error->message),
                 "no memory for what ranks are seen to send");
        return FSDP_ERR_NOMEM;
    }
    b->loads = w->isolate && engine_is_path(w->o->engine);
    status = run_ranks(w, kind, mesh, b, ends, error);
    if (w->isolate) {
        note_refusals(w, b);
    }
    end_leftovers(w);
    return status;
}
