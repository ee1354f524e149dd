/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_larger_test.c - a model that is larger than what one rank is allowed: it
 * is made, filled, trained, saved and loaded where the kernel limits each
 * rank's data (RLIMIT_DATA) to what plan counts and a slack; with values on all
 * ranks, on none, so that they are assigned in slices, and on rank 0 alone.
 * Somewhat below what plan counts a rank says what there is no room for.
 * ENGINE MIB RANKS SLACK in place of the small models': prints what it does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/folder_erase.h"
#include "run/engine_load.h"
#include "tools/plan/plan_bytes.h"
#include "tools/plan/plan_equal.h"
#include "world/world.h"

#include <fsdp/arith/bits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    PATIENCE_MS = 300000,
    MIB = 1 << 20,
    N_UNITS = 32,
    SLICE = 1 << 14 /* elements that are assigned at once */
};

enum way {
    ON_ALL,
    DEFERRED,
    ON_RANK0,
    N_WAYS
};
static const char *const ways[N_WAYS] = {"all ranks", "none", "rank 0 alone"};

/* A model, and what an engine may have of it. */
struct size {
    const char *engine;
    uint32_t mib, ranks, slack;
    enum way first; /* and those behind it */
};
static struct size size;

struct run {
    const struct fsdp_engine *engine;
    const struct plan_ask *ask;
    struct fsdp_mesh *mesh;
    enum way way;
    uint64_t limit; /* of a rank's data, beyond what it begins with */
    char directory[64];
};

static float value_of(uint32_t p, uint64_t i)
{
    return (float)((i + p) % 1021);
}

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    float *const to = out;

    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        to[i] = value_of(p, first + i);
    }
    return FSDP_OK;
}

static int assign_all(const struct run *r, struct fsdp_sharded *s)
{
    const struct fsdp_model *const model = r->ask->model;
    float slice[SLICE];

    for (uint32_t p = model->n_parameters; p-- > 0;) {
        const uint64_t numel = fsdp_numel(model, p);

        for (uint64_t at = 0; at < numel; at += SLICE) {
            const uint64_t n = numel - at < SLICE ? numel - at : SLICE;

            FSDP_TRY(initial(NULL, p, at, n, slice));
            FSDP_TRY(r->engine->assign(s, p, at, n, slice));
        }
    }
    return FSDP_OK;
}

/* ---- What a rank holds --------------------------------------------------- */

struct held {
    bool begun;    /* each value is the initial one */
    uint64_t hash; /* of all values */
};

static void hold(void *context, const struct fsdp_piece *piece)
{
    struct held *h = context;
    const float *x = piece->value;

    for (uint64_t i = 0; i < piece->n; i++) {
        h->begun =
            h->begun && x[i] == value_of(piece->parameter, piece->first + i);
        h->hash = (h->hash ^ fsdp_f32_bits(x[i])) * 0x100000001b3u;
    }
}

static int look(const struct run *r, struct fsdp_sharded *s, struct held *out)
{
    *out = (struct held){.begun = true, .hash = 0xcbf29ce484222325u};
    return r->engine->pieces(s, hold, out);
}

/* ---- A run --------------------------------------------------------------- */

/* What a model asks of an engine at a point; each gradient is 1. */
static int ask_at(const struct run *r, struct fsdp_sharded *s, uint32_t point,
                  uint32_t module)
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

static int train(const struct run *r, struct fsdp_sharded *s)
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

/* Begins with the values, and a load brings back what a step has changed. */
static int live(const struct run *r, struct fsdp_sharded *s)
{
    const struct fsdp_save save = {.size = sizeof(save),
                                   .form = FSDP_SAVE_SHARDED,
                                   .directory = r->directory};
    struct held begun;
    struct held saved;
    struct held changed;
    struct held loaded;

    if (r->way == DEFERRED) {
        FSDP_TRY(assign_all(r, s));
    }
    FSDP_TRY(look(r, s, &begun));
    FSDP_TRY(train(r, s));
    FSDP_TRY(look(r, s, &saved));
    FSDP_TRY(r->engine->save_begin(s, &save));
    FSDP_TRY(r->engine->save_wait(s));
    FSDP_TRY(train(r, s));
    FSDP_TRY(look(r, s, &changed));
    FSDP_TRY(r->engine->load(s, r->directory));
    FSDP_TRY(look(r, s, &loaded));
    return begun.begun && !saved.begun && changed.hash != saved.hash &&
                   loaded.hash == saved.hash
               ? FSDP_OK
               : FSDP_ERR_INTERNAL;
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
    const struct run *const r = context;
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
    model.initial = r->way == ON_ALL || (r->way == ON_RANK0 && rank->rank == 0)
                        ? initial
                        : NULL;
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
    return live(r, s);
}

/* Whether all ranks do; *why: of the first that lacks memory, or else of the
 * first that fails. */
static bool passes(struct run *r, struct fsdp_error *why)
{
    static const char *const names[] = {"replicate", "shard"};
    uint32_t extent[2] = {1, r->ask->c.ranks};
    struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};
    struct world_result result[WORLD_MAX_RANKS];
    struct fsdp_error error = {0};
    bool good = true;

    r->mesh = &mesh;
    (void)strcpy(r->directory, "/tmp/plan_larger_test.XXXXXX");
    assert_non_null(mkdtemp(r->directory));
    assert_int_equal(
        world_run(WORLD_LOCAL, &mesh, PATIENCE_MS, in_rank, r, result, &error),
        FSDP_OK);
    folder_erase(r->directory);
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

static void begin(const char *engine, uint32_t optimizer, struct run *r,
                  struct plan_model *m, struct plan_ask *ask, uint64_t *planned)
{
    struct fsdp_error error = {0};
    struct plan_bytes b;

    assert_int_equal(engine_load(engine, &r->engine, &error), FSDP_OK);
    assert_int_equal(plan_equal_model((uint64_t)size.mib * MIB / sizeof(float),
                                      N_UNITS, m, &error),
                     FSDP_OK);
    *ask = plan_ask_for(m, size.ranks, CASE_FULL_SHARD, CASE_F32);
    ask->c.optimizer = optimizer;
    assert_int_equal(plan_bytes_make(ask, &b, &error), FSDP_OK);
    *planned = b.peak_sum;
    plan_bytes_release(&b);
    r->ask = ask;
}

static void plays(const struct size *this, uint32_t optimizer)
{
    const char *engine = this->engine;
    const uint64_t units = 2 * (uint64_t)this->mib * MIB / N_UNITS;
    const uint64_t below = units < 16 * MIB ? units : 16 * MIB;
    struct plan_model m;
    struct plan_ask ask;
    struct run r = {0};
    struct fsdp_error why;
    uint64_t planned;

    size = *this;
    begin(engine, optimizer, &r, &m, &ask, &planned);
    for (r.way = size.first; r.way < N_WAYS; r.way++) {
        r.limit = planned + (uint64_t)size.slack * MIB;
        assert_true(r.limit < (uint64_t)size.mib * MIB);
        if (!passes(&r, &why)) {
            fail_msg("values on %s: %s", ways[r.way], why.message);
        }
        r.limit = planned - below;
        assert_false(passes(&r, &why));
        print_message("%s, %u MiB, K = %u, values on %s: passes under %.1f + "
                      "%u MiB; under %.1f: %s\n",
                      engine, size.mib, size.ranks, ways[r.way],
                      (double)planned / MIB, size.slack, (double)r.limit / MIB,
                      why.message);
        assert_int_equal(why.status, FSDP_ERR_NOMEM);
        assert_true(why.message[0]);
    }
    plan_model_release(&m);
}

static void sgd(void **state)
{
    plays(*state, FSDP_OPTIMIZER_SGD);
}

static void adamw(void **state)
{
    plays(*state, FSDP_OPTIMIZER_ADAMW);
}

int main(int argc, char **argv)
{
    static struct size ref = {"ref", 32, 4, 12, ON_ALL};
    /* Each of its threads has a stack of 8 MiB, and so has who saves. Shards of
     * gradients are as large as a large page, which none exceeds. */
    static struct size impl = {"impl", 256, 4, 64, ON_RANK0};
    static struct size given;
    const struct CMUnitTest small[] = {
        {"larger than a rank, SGD: ref", sgd, NULL, NULL, &ref},
        {"larger than a rank, SGD: impl", sgd, NULL, NULL, &impl},
    };
    /* On few ranks what AdamW needs is no less than the model. */
    const struct CMUnitTest tests[] = {
        {"larger than a rank, SGD", sgd, NULL, NULL, &given},
        {"larger than a rank, AdamW", adamw, NULL, NULL, &given},
    };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("a sanitizer's own memory is beyond any limit\n");
    return 77;
#endif
    if (argc != 5) {
        return cmocka_run_group_tests(small, NULL, NULL) != 0;
    }
    given.engine = argv[1];
    given.mib = (uint32_t)strtoul(argv[2], NULL, 10);
    given.ranks = (uint32_t)strtoul(argv[3], NULL, 10);
    given.slack = (uint32_t)strtoul(argv[4], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
