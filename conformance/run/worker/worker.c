/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - runs the cases of a batch, one world each.
 */
#include "run/worker/worker.h"
#include "checkpoint/folder_erase.h"
#include "run/play/engine_claims.h"
#include "run/process/orphans.h"
#include "run/worker/engine_ask.h"
#include "run/worker/engine_load.h"
#include "run/worker/same_build.h"
#include "run/worker/worker_private.h"
#include "run/worker/worker_words.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The unsharded run plays all ranks in a world of one. */
int worker_run_world(struct worker *w, const struct drive *d,
                     struct world_result *ends)
{
    static const char *const names[] = {"replicate", "shard"};
    bool serial = engine_claims(w->engine, "serial");
    uint32_t extent[2] = {d->c->replicas, case_shard_degree(d->c)};
    struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};

    if (serial) {
        extent[0] = extent[1] = 1;
    }
    FSDP_TRY(worker_ranks_run(
        &w->ranks, w->o->world, &mesh,
        &(struct rank_body){.d = d,
                            .drive = serial ? drive_serial : drive_rank},
        ends, &w->error));
    for (uint32_t r = 1; serial && r < d->c->ranks; r++) {
        ends[r] = ends[0];
    }
    return FSDP_OK;
}

/* Whether all ranks' records were written; if not, w->error says why. */
static bool is_written(struct worker *w, uint32_t n,
                       const struct world_result *ends)
{
    for (uint32_t k = 0; k < n; k++) {
        if (drive_is_unwritten(&ends[k])) {
            w->error = ends[k].error;
            return false;
        }
    }
    return true;
}

/* Whether there is anything to weigh: the run came to its end. */
static bool is_to_be_weighed(const struct worker *w, const struct run_case *c,
                             const struct world_result *ends)
{
    bool well = w->ranks.isolate && case_is_weighed(c) &&
                c->ranks <= NOTARY_RANKS && !engine_claims(w->engine, "serial");

    for (uint32_t k = 0; well && k < c->ranks; k++) {
        well = ends[k].end == WORLD_RETURNED && ends[k].status == FSDP_OK;
    }
    return well;
}

/* A case without a record is not judged, whatever the engine did: the rest of
 * the record is removed, and a line says why. Whether the machine can write
 * again shows with the next worker, which plays the next case or cannot begin.
 * Ranks of MPI end together. */
static int lose_record(struct worker *w, const char *folder, int status)
{
    if (w->o->words == 0) {
        return status;
    }
    folder_erase(folder);
    w->ranks.harmed = true;
    worker_words_reason(w->words, "no record:", status, &w->error);
    return FSDP_OK;
}

/* Finishes the record; that of a rank, or the case's own, may be missing. */
static int finish_record(struct worker *w, const struct run_case *c,
                         const char *folder, const struct world_result *ends)
{
    const struct case_player player = {w->engine->name,
                                       w->engine->version,
                                       w->engine->claims,
                                       world_names[w->o->world],
                                       w->ranks.isolate ? "limits" : "",
                                       w->ranks.n_refusals,
                                       w->ranks.refusal,
                                       w->weight,
                                       w->ranks.counted ? w->ranks.account
                                                        : NULL,
                                       w->o->sample};
    int status = FSDP_OK;

    if (!is_written(w, c->ranks, ends)) {
        return lose_record(w, folder, w->error.status);
    }
    if (w->ranks.unknown) {
        snprintf(w->error.message, sizeof(w->error.message), "%s",
                 w->ranks.unknown);
        return lose_record(w, folder, FSDP_ERR_INTERNAL);
    }
    if (w->mpi_rank == 0) {
        status = case_record_write(folder, c, &player, ends, &w->error);
    }
    return status == FSDP_OK ? FSDP_OK : lose_record(w, folder, status);
}

/* How the worker drives any case; what belongs to this one is added later. */
static struct drive drive_of(const struct worker *w, const struct run_case *c)
{
    return (struct drive){.c = c,
                          .engine = w->engine,
                          .device_engine = w->device_engine,
                          .mutant = w->mutant,
                          .mutate = mutant_apply,
                          .mutate_below = mutant_apply_below,
                          .look_at_process =
                              w->o->world == WORLD_LOCAL && !w->o->wrapped,
                          .own_process = w->o->world != WORLD_THREADS,
                          .loading = w->loading,
                          .sample = w->o->sample,
                          .trace = w->o->trace};
}

static int make_folder(struct worker *w, const char *folder)
{
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) {
        return FSDP_OK;
    }
    snprintf(w->error.message, sizeof(w->error.message), "%.180s: %s", folder,
             strerror(errno));
    return lose_record(w, folder, FSDP_ERR_IO);
}

static int run_case(struct worker *w, const struct run_case *c)
{
    struct world_result ends[WORLD_MAX_RANKS];
    char folder[CASE_FOLDER_BYTES];
    char checkpoints[CASE_FOLDER_BYTES + 16];
    struct case_model model = {0};
    struct script script = {0};
    struct drive d = drive_of(w, c);
    int status;

    d.model = &model;
    d.script = &script;
    d.directory = folder;
    d.checkpoints = checkpoints;
    /* Only the case's ranks: to clear the whole array takes too long. */
    memset(ends, 0, c->ranks * sizeof(*ends));
    case_folder(w->o->records, c, engine_claims(w->engine, "serial"), folder);
    if (w->o->words != 0) {
        worker_folder_renew(w->o->records, folder);
    }
    worker_ranks_begin(&w->ranks, folder, !engine_claims(w->engine, "serial"));
    d.own = worker_ranks_own(&w->ranks);
    status = make_folder(w, folder);
    if (status != FSDP_OK) {
        return status;
    }
    snprintf(checkpoints, sizeof(checkpoints), "%s/checkpoints", d.own);
    if (w->mpi_rank == 0 && case_resumes(c)) {
        drive_clear_checkpoints(checkpoints);
    }
    status = case_model_make(c, w->text.bytes, w->text.n, &model, &w->error);
    if (status == FSDP_OK) {
        status = script_make(c, false, &script, &w->error);
    }
    if (status == FSDP_OK && case_resumes(c)) {
        status = worker_save_first(w, &d);
    }
    if (status == FSDP_OK) {
        status = worker_run_world(w, &d, ends);
    }
    memset(w->weight, 0, c->ranks * sizeof(*w->weight));
    w->died = worker_ends_died(ends, c->ranks);
    if (status == FSDP_OK && is_to_be_weighed(w, c, ends)) {
        status = worker_weigh(w, &d);
    }
    if (w->mpi_rank == 0 && case_resumes(c)) {
        drive_clear_checkpoints(checkpoints);
    }
    worker_ranks_collect(&w->ranks);
    if (w->o->words != 0) {
        worker_folder_clean(w->o->records, c,
                            engine_claims(w->engine, "serial"), folder);
    }
    if (status == FSDP_OK) {
        status = finish_record(w, c, folder, ends);
    }
    script_release(&script);
    case_model_release(&model);
    return status;
}

/* Constructors of the engine, and of all that it loads, run here. If ranks are
 * isolated each loads it for itself, and this process has none of it. */
static int load_engine(struct worker *w)
{
    const bool alone = w->o->world != WORLD_THREADS;
    struct process_state state;

    if (w->ranks.isolate && engine_is_path(w->o->engine)) {
        FSDP_TRY(engine_ask(w->o->engine, &w->engine, &w->error));
        w->ranks.isolate = !engine_claims(w->engine, "devices");
    }
    if (w->engine && w->ranks.isolate) {
        return FSDP_OK;
    }
    process_state_note(&state, alone);
    FSDP_TRY(engine_load(w->o->engine, &w->engine, &w->error));
    if (process_state_changed(&state, PROCESS_WHOLE, alone, w->loading) ==
        PROCESS_SAME) {
        w->loading[0] = '\0';
    }
    return FSDP_OK;
}

static int open_worker(struct worker *w)
{
    w->mutant = w->o->mutant ? mutant_named(w->o->mutant) : NULL;
    if (w->o->mutant && !w->mutant) {
        snprintf(w->error.message, sizeof(w->error.message),
                 "unknown mutant '%.80s'; see: fsdp-cts list mutants",
                 w->o->mutant);
        return FSDP_ERR_INVALID;
    }
    FSDP_TRY(load_engine(w));
    if (w->mutant && w->mutant->drops) {
        mutant_claims(w->mutant, w->engine->claims, w->claims, MOST_CLAIMS);
        w->mutated = *w->engine;
        w->mutated.claims = w->claims;
        w->engine = &w->mutated;
    }
    FSDP_TRY(engine_load("ref", &w->device_engine, &w->error));
    FSDP_TRY(text_load(w->o->text, &w->text, &w->error));
    if (w->o->world == WORLD_MPI) {
        FSDP_TRY(world_mpi_open(&w->mpi_rank, &w->mpi_world, &w->error));
        FSDP_TRY(
            same_build(w->o->engine, w->mpi_world, &w->different, &w->error));
    }
    return FSDP_OK;
}

static void say(const struct worker *w, const char *what, size_t i)
{
    char line[64];

    if (w->mpi_rank == 0) {
        snprintf(line, sizeof(line), "%s %zu\n", what, i);
        worker_words_send(w->words, line);
    }
}

/* Finds an engine that cannot train before the first case, and not in each. */
static int check_engine(struct worker *w, const struct run_case *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c[i].scenario != CASE_SHARD) {
            return engine_trains(w->o->engine, w->engine, &w->error);
        }
    }
    return FSDP_OK;
}

static int run_batch(struct worker *w, const struct run_case *c, size_t n)
{
    int status;

    FSDP_TRY(check_engine(w, c, n));
    if (w->mpi_rank == 0) {
        worker_words_introduce(w->words, w->engine);
    }
    for (size_t i = 0; i < n; i++) {
        if (w->o->world == WORLD_MPI && c[i].ranks != w->mpi_world) {
            snprintf(w->error.message, sizeof(w->error.message),
                     "the case has %u ranks, but MPI started %u", c[i].ranks,
                     w->mpi_world);
            return FSDP_ERR_INVALID;
        }
        say(w, "begin", i);
        w->died = false;
        status = run_case(w, &c[i]);
        if (w->o->world == WORLD_MPI && status == FSDP_ERR_ABORTED) {
            say(w, "again", i);
            return FSDP_OK;
        }
        FSDP_TRY(status);
        say(w, w->died ? "died" : "end", i);
        FSDP_TRY(worker_words_wait(w->o->words));
        if (w->ranks.harmed) {
            return FSDP_OK; /* another worker goes on */
        }
    }
    return FSDP_OK;
}

static void refuse(const struct worker *w, int status)
{
    char what[24];

    snprintf(what, sizeof(what), "refuse %d", status);
    worker_words_reason(w->words, what, status, &w->error);
}

static void leave_aborted(int number)
{
    (void)number;
    _exit(WORKER_ABORTED);
}

/* This process ends what descendants leave behind; and ranks, some of which are
 * hostile, can neither look into it nor trace it. The first process of a
 * namespace does not die of signals that have no handler. */
static void stand_alone(void)
{
    orphans_adopt();
    (void)prctl(PR_SET_DUMPABLE, 0);
    if (getpid() == 1) {
        (void)signal(SIGABRT, leave_aborted);
    }
}

int worker_run(const struct worker_options *o)
{
    static struct worker w; /* large */
    struct run_case *batch = NULL;
    size_t n = 0;
    int status;

    w.o = o;
    if (worker_words_open(o->words, &w.words) != FSDP_OK) {
        return 1; /* there is no way to say why */
    }
    if (o->world != WORLD_MPI) {
        stand_alone();
    }
    worker_ranks_open(&w.ranks, o);
    status = open_worker(&w);
    if (status == FSDP_OK) {
        status = worker_read_batch(o->batch, &batch, &n, &w.error);
        status = status ? status : worker_read_scripts(o->batch, &w.error);
    }
    if (status == FSDP_OK) {
        status = run_batch(&w, batch, n);
    }
    if (status != FSDP_OK && !w.ranks.harmed) {
        refuse(&w, status);
    }
    free(batch);
    text_release(&w.text);
    if (o->world == WORLD_MPI) {
        world_mpi_close();
    }
    /* If all ranks refuse, mpirun need not print anything. */
    return status == FSDP_OK || w.different ? 0 : 1;
}
