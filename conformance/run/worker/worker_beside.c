/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_beside.c - worlds of a case beside the one that is recorded: in one
 * other ranks save what the case loads, and in others it is played again to
 * weigh its processes.
 */
#include "cases/case_claims.h"
#include "cases/case_private.h"
#include "judge/oracle/expect.h"
#include "run/play/engine_claims.h"
#include "run/worker/worker_private.h"

#include <string.h>

/* Whether the engine claims all that the case needs; if not, it is never asked
 * for it. */
static bool claims_case(const struct worker *w, const struct run_case *c)
{
    const char *list[CASE_MAX_CLAIMS];
    uint32_t n = case_claims(c, list);

    for (uint32_t i = 0; i < n; i++) {
        if (!engine_claims(w->engine, list[i])) {
            return false;
        }
    }
    return true;
}

/* GROW, SHRINK: other ranks than the case's train half of the steps and save.
 * MPI has no others: threads of its first process play them. */
int worker_save_first(struct worker *w, const struct drive *d)
{
    static const char *const names[] = {"replicate", "shard"};
    struct world_result ends[WORLD_MAX_RANKS];
    struct case_model model = {0};
    struct run_case c;
    struct drive saver = *d;
    struct script script = {0};
    bool mpi = w->o->world == WORLD_MPI;
    uint32_t extent[2];
    struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};
    int status;

    if (!case_saver(d->c, &c) || engine_claims(w->engine, "serial") ||
        !claims_case(w, d->c) || w->mpi_rank != 0) {
        return FSDP_OK;
    }
    status = case_model_make(&c, w->text.bytes, w->text.n, &model, &w->error);
    saver.c = &c;
    saver.model = &model;
    saver.script = &script;
    saver.directory = NULL;
    saver.look_at_process = false;
    extent[0] = c.replicas;
    extent[1] = case_shard_degree(&c);
    if (status == FSDP_OK) {
        status = script_make(&c, true, &script, &w->error);
    }
    memset(ends, 0, c.ranks * sizeof(*ends));
    if (status == FSDP_OK) {
        status = worker_ranks_run(
            &w->ranks, mpi ? WORLD_THREADS : w->o->world, &mesh,
            &(struct rank_body){.d = &saver, .drive = drive_rank}, ends,
            &w->error);
        worker_ends_tell_unsaved(c.ranks, ends);
    }
    script_release(&script);
    case_model_release(&model);
    return status;
}

/* Bytes that the engine needs beyond those at rest, on the rank that needs
 * most. */
static uint64_t room_above_rest(const struct drive *d)
{
    const struct case_model *m = d->model;
    struct expect e = {0};
    uint64_t rest = 0;
    uint64_t room = 0;

    if (expect_make_idle(d->c, &m->model->model, &m->units.units,
                         m->model->idle, &e) == FSDP_OK) {
        for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
            rest += e.rest.live[k];
        }
        room = e.peak_storage - rest;
    }
    expect_release(&e);
    return room;
}

/* Plays the case again for the memory of its processes: first without a limit,
 * then with no more room than is needed. */
int worker_weigh(struct worker *w, const struct drive *d)
{
    struct world_result ends[WORLD_MAX_RANKS];
    struct drive again = *d;

    again.directory = NULL;
    again.look_at_process = false;
    again.trace = false;
    again.purpose = DRIVE_TO_WEIGH;
    memset(ends, 0, d->c->ranks * sizeof(*ends));
    FSDP_TRY(worker_run_world(w, &again, ends));
    memcpy(w->weight, w->ranks.weight, sizeof(w->ranks.weight));
    for (uint32_t k = 0; k < d->c->ranks; k++) {
        worker_ends_take(&ends[k], &w->weight[k].status, NULL, 0);
    }
    memset(ends, 0, d->c->ranks * sizeof(*ends));
    again.purpose = DRIVE_TO_BOUND;
    again.room = room_above_rest(d);
    again.room +=
        w->weight[0].own_device != 0 ? PRIVATE_SLACK_OF_DEVICE : PRIVATE_SLACK;
    if (w->weight[0].weighed != 0) {
        FSDP_TRY(worker_run_world(w, &again, ends));
    }
    for (uint32_t k = 0; k < d->c->ranks; k++) {
        w->weight[k].room = again.room;
        worker_ends_take(&ends[k], &w->weight[k].bounded, w->weight[k].why,
                         sizeof(w->weight[k].why));
    }
    return FSDP_OK;
}
