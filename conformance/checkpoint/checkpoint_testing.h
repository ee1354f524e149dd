/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_testing.h - what the tests of checkpoints share: a scene, which is
 * a folder with a checkpoint that some engine's ranks saved after two steps of
 * training, and loading it with other ranks of any engine.
 *
 * Ranks are threads.
 */
#ifndef FSDP_CTS_CHECKPOINT_TESTING_H
#define FSDP_CTS_CHECKPOINT_TESTING_H

#include "run/play/checkpoint_files.h"
#include "run/play/drive.h"
#include "testing/unit_testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Engines are linked, not included, as they are everywhere here. */
const struct fsdp_engine *fsdp_ref_engine(void);
const struct fsdp_engine *fsdp_impl_engine(void);

enum {
    TESTING_TIMEOUT_MS = 60000,
    TESTING_STATES = 3 /* values, two states */
};

/* Every element of every parameter, as the owners showed it. */
struct shown {
    uint64_t total;
    float *x[TESTING_STATES];
};

/* How ranks are arranged; 0 replicas: FULL_SHARD. */
struct arrangement {
    const struct fsdp_engine *engine;
    uint32_t ranks, replicas, wrap;
    bool whole; /* NO_SHARD */
    bool rows;  /* parameters sharded one by one, not flat */
};

struct testing {
    const struct fsdp_model *model;
    const struct fsdp_engine *real;
    uint32_t form, rank0_only, what;
    uint64_t file_bytes;
    struct shown *into;
    /* A checkpoint that is loaded before, after which rank 0 calls `armed`.
     * NULL: none. */
    const char *first;
    void (*armed)(void);
    /* Called once a model has been sharded; NULL: nothing is. */
    int (*before)(const struct fsdp_engine *engine,
                  struct fsdp_sharded *sharded);
    bool rank0_has; /* only rank 0 has initial values */
    bool none_has;  /* no rank has them */
    /* Called after a load that was refused; its status is the answer. */
    int (*then)(const struct fsdp_engine *engine, struct fsdp_env *env,
                struct fsdp_sharded *sharded, const char *directory);
    pthread_mutex_t lock;
};
static struct testing testing = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void shown_make(struct shown *s, const struct fsdp_model *model)
{
    s->total = 0;
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        s->total += fsdp_numel(model, p);
    }
    for (uint32_t k = 0; k < TESTING_STATES; k++) {
        s->x[k] = calloc(s->total + 1, sizeof(float));
        assert_non_null(s->x[k]);
        memset(s->x[k], 0xff, s->total * sizeof(float));
    }
}

static inline void shown_release(struct shown *s)
{
    for (uint32_t k = 0; k < TESTING_STATES; k++) {
        free(s->x[k]);
        s->x[k] = NULL;
    }
}

static inline bool shown_equal(const struct shown *a, const struct shown *b)
{
    for (uint32_t k = 0; k < TESTING_STATES; k++) {
        if (a->total != b->total ||
            memcmp(a->x[k], b->x[k], a->total * sizeof(float)) != 0) {
            return false;
        }
    }
    return true;
}

static inline void show_piece(void *context, const struct fsdp_piece *piece)
{
    const void *from[] = {piece->value, piece->state[0], piece->state[1]};
    uint64_t at = piece->first;

    (void)context;
    for (uint32_t p = 0; p < piece->parameter; p++) {
        at += fsdp_numel(testing.model, p);
    }
    pthread_mutex_lock(&testing.lock);
    for (uint32_t k = 0; k < TESTING_STATES; k++) {
        if (from[k]) {
            memcpy(testing.into->x[k] + at, from[k], piece->n * sizeof(float));
        }
    }
    pthread_mutex_unlock(&testing.lock);
}

/* A hash of values and states. */
static inline uint64_t testing_mix(uint64_t hash, const void *bytes, uint64_t n)
{
    const unsigned char *b = bytes;

    for (uint64_t i = 0; b && i < n; i++) {
        hash = (hash ^ b[i]) * 0x100000001b3u;
    }
    return hash;
}

static inline void testing_mix_piece(void *context,
                                     const struct fsdp_piece *piece)
{
    uint64_t *hash = context;

    *hash = testing_mix(*hash, &piece->first, sizeof(piece->first));
    *hash = testing_mix(*hash, piece->value, piece->n * sizeof(float));
    for (uint32_t k = 0; k < 2; k++) {
        *hash = testing_mix(*hash, piece->state[k], piece->n * sizeof(float));
    }
}

/* Assigns every nth parameter, in slices of 7 elements. */
static inline int testing_assign(const struct fsdp_engine *e,
                                 struct fsdp_sharded *s, uint32_t nth)
{
    static const float value[7] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f};

    for (uint32_t p = 0; p < testing.model->n_parameters; p += nth) {
        const uint64_t numel = fsdp_numel(testing.model, p);

        for (uint64_t at = 0; at < numel; at += 7) {
            FSDP_TRY(
                e->assign(s, p, at, numel - at < 7 ? numel - at : 7, value));
        }
    }
    return FSDP_OK;
}

/* The rank of this thread, if it loads. */
static _Thread_local uint32_t testing_rank;

/* Rank 0 sends values of all parameters, at most 64 of up to 4096 elements. */
static inline int testing_send(const struct fsdp_engine *e,
                               struct fsdp_sharded *s)
{
    float own[4096];
    const void *value[64];
    const struct fsdp_values from = {.size = sizeof(from),
                                     .value = testing_rank == 0 ? value : NULL};

    for (uint32_t i = 0; i < 4096; i++) {
        own[i] = 1.0f + (float)(i % 7);
    }
    for (uint32_t p = 0; p < testing.model->n_parameters; p++) {
        if (p == 64 || fsdp_numel(testing.model, p) > 4096) {
            return FSDP_ERR_INTERNAL;
        }
        value[p] = own;
    }
    return e->send_values(s, &from);
}

/* Saves in the form that the test wants, and shows what is saved. */
static inline int testing_save(struct fsdp_sharded *sharded,
                               const struct fsdp_save *save)
{
    struct fsdp_save s = *save;

    s.size = sizeof(s); /* whatever was known to who made it */
    s.form = testing.form;
    s.rank0_only = testing.rank0_only;
    s.what = testing.what;
    s.dtype = 0;
    s.file_bytes = testing.file_bytes;
    if (testing.into) {
        FSDP_TRY(testing.real->pieces(sharded, show_piece, NULL));
    }
    return testing.real->save_begin(sharded, &s);
}

static inline struct run_case testing_case(const struct arrangement *a,
                                           const char *size)
{
    struct run_case c = {.seed = 1,
                         .scenario = CASE_TRAIN,
                         .strategy = a->whole      ? CASE_NO_SHARD
                                     : a->replicas ? CASE_HYBRID_SHARD
                                                   : CASE_FULL_SHARD,
                         .ranks = a->ranks,
                         .replicas = a->whole      ? a->ranks
                                     : a->replicas ? a->replicas
                                                   : 1,
                         .wrap = a->wrap,
                         .layout = a->rows ? FSDP_LAYOUT_PER_PARAMETER
                                           : FSDP_LAYOUT_FLAT,
                         .microbatches = 1,
                         .sync = {1},
                         .optimizer = FSDP_OPTIMIZER_ADAMW,
                         .lr = 0.01f,
                         .steps = 4};

    snprintf(c.workload, sizeof(c.workload), "mlp");
    snprintf(c.size, sizeof(c.size), "%s", size);
    if (case_check(&c)) {
        fail_msg("%s", case_check(&c));
    }
    return c;
}

static inline int testing_world(const struct run_case *c,
                                int (*body)(void *, struct world_rank *),
                                void *context, struct fsdp_error *why)
{
    uint32_t extent[] = {c->replicas, case_shard_degree(c)};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[CASE_MAX_RANKS] = {0};
    struct fsdp_error error = {0};

    assert_int_equal(world_run(WORLD_THREADS, &mesh, TESTING_TIMEOUT_MS, body,
                               context, ends, &error),
                     FSDP_OK);
    for (uint32_t r = 0; r < c->ranks; r++) {
        if (ends[r].status != FSDP_OK) {
            *why = ends[r].error;
            return ends[r].status;
        }
    }
    return FSDP_OK;
}

/* Trains two steps and saves into `directory`; *out is made here, and shows
 * what was saved. */
static inline void testing_write(const struct arrangement *a, const char *size,
                                 const char *directory, struct shown *out)
{
    struct run_case c = testing_case(a, size);
    struct fsdp_engine engine = *a->engine;
    struct case_model model;
    struct script script;
    struct fsdp_error why = {0};
    struct drive d = {.c = &c,
                      .model = &model,
                      .script = &script,
                      .engine = &engine,
                      .device_engine = fsdp_ref_engine(),
                      .checkpoints = directory};

    assert_int_equal(case_model_make(&c, NULL, 0, &model, &why), FSDP_OK);
    assert_int_equal(script_make(&c, true, &script, &why), FSDP_OK);
    shown_make(out, &model.model->model);
    testing.model = &model.model->model;
    testing.real = a->engine;
    testing.into = out;
    engine.save_begin = testing_save;
    if (testing_world(&c, drive_rank, &d, &why) != FSDP_OK) {
        fail_msg("saving: %s", why.message);
    }
    testing.into = NULL;
    script_release(&script);
    case_model_release(&model);
}

struct loader {
    const struct run_case *c;
    const struct case_model *model;
    const struct fsdp_engine *engine;
    const char *directory;
    uint32_t optimizer;
};

static inline int load_with(const struct loader *l, struct fsdp_env *env)
{
    struct fsdp_sharded *sharded = NULL;
    struct fsdp_model model = l->model->model->model;
    struct fsdp_options o;
    int status;
    int shown;

    testing_rank = env->rank;
    case_options(l->c, &o);
    o.optimizer = l->optimizer;
    if (testing.none_has || (testing.rank0_has && env->rank > 0)) {
        model.initial = NULL;
    }
    status =
        l->engine->shard(env, &model, &l->model->units.units, &o, &sharded);
    if (status == FSDP_OK && testing.before) {
        status = testing.before(l->engine, sharded);
    }
    if (status == FSDP_OK && testing.first) {
        status = l->engine->load(sharded, testing.first);
        if (env->rank == 0) {
            testing.armed();
        }
    }
    if (status == FSDP_OK) {
        status = l->engine->load(sharded, l->directory);
        if (status != FSDP_OK && testing.then) {
            status = testing.then(l->engine, env, sharded, l->directory);
        }
        /* Also after a refusal: what is in memory then? */
        shown = l->engine->pieces(sharded, show_piece, NULL);
        status = status == FSDP_OK ? shown : status;
    }
    l->engine->destroy(sharded);
    return status;
}

static inline int load_rank(void *context, struct world_rank *rank)
{
    const struct loader *l = context;
    uint32_t extent[] = {l->c->replicas, case_shard_degree(l->c)};
    static const char *const names[] = {"replicate", "shard"};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};
    struct fsdp_stream *compute = NULL;
    struct fsdp_env env = {.size = sizeof(env),
                           .rank = rank->rank,
                           .world = l->c->ranks,
                           .mesh = &mesh,
                           .comm = &rank->comm,
                           .error = rank->error,
                           .exchange = rank->exchange,
                           .exchange_self = rank->exchange_self};
    int status = l->engine->open(&env);

    if (status == FSDP_OK && !env.compute) {
        status = env.device->stream_open(env.device->self, "compute", &compute);
        env.compute = compute;
    }
    if (status == FSDP_OK) {
        status = load_with(l, &env);
    }
    if (compute) {
        env.device->stream_close(env.device->self, compute);
    }
    l->engine->close(&env);
    return status;
}

/* What load answered; *out, made here, is what the ranks hold then. */
static inline int testing_read(const struct arrangement *a, const char *size,
                               uint32_t optimizer, const char *directory,
                               struct shown *out, struct fsdp_error *why)
{
    struct run_case c = testing_case(a, size);
    struct case_model model;
    struct loader l = {&c, &model, a->engine, directory, optimizer};
    int status;

    memset(why, 0, sizeof(*why));
    assert_int_equal(case_model_make(&c, NULL, 0, &model, why), FSDP_OK);
    shown_make(out, &model.model->model);
    testing.model = &model.model->model;
    testing.into = out;
    status = testing_world(&c, load_rank, &l, why);
    case_model_release(&model);
    return status;
}

#endif
