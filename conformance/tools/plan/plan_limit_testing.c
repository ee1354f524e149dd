/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_limit_testing.c - ranks under a limit of data, and a step in them.
 */
#include "plan_limit_testing.h"
#include "testing/unit_testing.h"

#include "world/world.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The call that a model makes to an engine at a point. */
static int ask_at(const struct limited_run *r, struct fsdp_sharded *s,
                  uint32_t point, uint32_t module)
{
    const struct fsdp_model *const model = r->ask->model;
    struct fsdp_tensor t;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (model->parameter_module[p] != module) {
            continue;
        }
        if (point == FSDP_PRE_FORWARD) {
            FSDP_TRY(r->engine->param(s, p, &t));
        } else if (point == FSDP_PRE_BACKWARD) {
            FSDP_TRY(r->engine->grad(s, p, &t));
            for (uint64_t i = 0; i < fsdp_numel(model, p); i++) {
                ((float *)t.data)[i] = 1.0f;
            }
        }
    }
    return FSDP_OK;
}

int limited_train(const struct limited_run *r, struct fsdp_sharded *s)
{
    const struct fsdp_sequence *const q =
        r->ask->model->sequence[FSDP_SEQUENCE_TRAIN];
    const float lr = 1.0f;
    struct fsdp_step step = {.size = sizeof(step), .n_groups = 1, .lr = &lr};

    FSDP_TRY(r->engine->at(s, FSDP_BEGIN, FSDP_SEQUENCE_TRAIN));
    for (uint32_t i = 0; i < q->n; i++) {
        FSDP_TRY(r->engine->at(s, q->point[i], q->module[i]));
        FSDP_TRY(ask_at(r, s, q->point[i], q->module[i]));
    }
    FSDP_TRY(r->engine->at(s, FSDP_END, FSDP_SEQUENCE_TRAIN));
    FSDP_TRY(r->engine->step(s, &step));
    return r->engine->zero_grad(s);
}

/* Bytes that the limit counts, of this process; 0: unknown. */
static uint64_t data_of_process(void)
{
    static const char key[] = "VmData:";
    uint64_t kib = 0;
    char line[256];
    FILE *const f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, sizeof(key) - 1) == 0) {
            kib = strtoull(line + sizeof(key) - 1, NULL, 10);
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return kib * 1024;
}

/* The device is the engine's, which asks the system for what it is asked for.
 * Ends with its process: nothing is closed. */
static int in_rank(void *context, struct world_rank *rank)
{
    const struct limited_run *const r = context;
    struct fsdp_model model = *r->ask->model;
    struct rlimit limit;
    struct fsdp_comm comm = rank->comm;
    struct fsdp_env env = {.size = sizeof(env),
                           .rank = rank->rank,
                           .world = rank->world,
                           .mesh = r->mesh,
                           .comm = &comm,
                           .error = rank->error,
                           .exchange = rank->exchange,
                           .exchange_self = rank->exchange_self};
    struct fsdp_sharded *s = NULL;
    struct fsdp_options options;

    case_options(&r->ask->c, &options);
    if (rank->rank >= r->with_values) {
        model.initial = NULL;
    }
    /* Freed memory goes back at once, whatever its size; and memory that the
     * process has from its parent is not counted as the engine's. */
    limit.rlim_cur = limit.rlim_max = data_of_process() + r->limit;
    if (mallopt(M_MMAP_THRESHOLD, 4096) != 1 ||
        setrlimit(RLIMIT_DATA, &limit) != 0) {
        return FSDP_ERR_INTERNAL;
    }
    FSDP_TRY(r->engine->open(&env));
    if (!env.compute && env.device->stream_open(env.device->self, "compute",
                                                &env.compute) != FSDP_OK) {
        (void)strcpy(env.error->message, "there is no stream for the model");
        return FSDP_ERR_NOMEM;
    }
    FSDP_TRY(r->engine->shard(&env, &model, r->ask->units, &options, &s));
    return r->live(r, s);
}

bool limited_passes(struct limited_run *r, struct fsdp_error *why)
{
    static const char *const names[] = {"replicate", "shard"};
    uint32_t extent[2] = {1, r->ask->c.ranks};
    struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};
    struct world_result result[WORLD_MAX_RANKS];
    struct fsdp_error error = {0};
    bool good = true;

    r->mesh = &mesh;
    assert_int_equal(world_run(WORLD_LOCAL, &mesh, r->patience_ms, in_rank, r,
                               result, &error),
                     FSDP_OK);
    memset(why, 0, sizeof(*why));
    for (uint32_t k = 0; k < r->ask->c.ranks; k++) {
        const bool fine =
            result[k].end == WORLD_RETURNED && result[k].status == FSDP_OK;

        if (!fine && (good || (result[k].status == FSDP_ERR_NOMEM &&
                               why->status != FSDP_ERR_NOMEM))) {
            *why = result[k].error;
            why->status = result[k].status;
        }
        good = good && fine;
    }
    return good;
}

bool limited_cannot(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("a sanitizer's own memory is beyond any limit\n");
    return true;
#else
    return false;
#endif
}
