/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_memory_test.c - memory is true: the least limit of data (RLIMIT_DATA)
 * under which the ranks of a real run pass, less that of a model of four
 * elements, is what plan counts; within 1 % or a MiB. The kernel counts private
 * memory that can be written; the world's shared mapping is none. No model
 * computes here: an engine alone takes memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/engine_load.h"
#include "tools/plan/plan_bytes.h"
#include "tools/plan/plan_equal.h"
#include "world/world.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    PATIENCE_MS = 60000,
    STEP = 1 << 16, /* bytes: how near the least limit is found */
    MIB = 1 << 20,
};

struct run {
    const struct fsdp_engine *engine;
    const struct plan_ask *ask;
    struct fsdp_mesh *mesh;
    uint64_t limit; /* of a rank's data, beyond what it begins with */
};

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    (void)context;
    (void)p;
    (void)first;
    memset(out, 0, n * sizeof(float));
    return FSDP_OK;
}

/* What a model asks of an engine at a point; it computes nothing. */
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
            memset(t.data, 0, fsdp_numel(model, p) * sizeof(float));
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

/* The device is the engine's: it asks the system for what it is asked for. */
static int open_env(const struct run *r, struct fsdp_env *env)
{
    FSDP_TRY(r->engine->open(env));
    return env->compute ? FSDP_OK
                        : env->device->stream_open(env->device->self, "compute",
                                                   &env->compute);
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

/* Ends with its process: nothing is closed. */
static int in_rank(void *context, struct world_rank *rank)
{
    const struct run *const r = context;
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
    /* What is freed goes back at once, whatever its size; and what the process
     * has from its parent is not the engine's. */
    limit.rlim_cur = limit.rlim_max = data_of_process() + r->limit;
    if (mallopt(M_MMAP_THRESHOLD, 4096) != 1 ||
        setrlimit(RLIMIT_DATA, &limit) != 0) {
        return FSDP_ERR_INTERNAL;
    }
    FSDP_TRY(open_env(r, &env));
    FSDP_TRY(
        r->engine->shard(&env, r->ask->model, r->ask->units, &options, &s));
    return train(r, s);
}

static bool passes(struct run *r)
{
    static const char *const names[] = {"replicate", "shard"};
    uint32_t extent[2] = {1, r->ask->c.ranks};
    struct fsdp_mesh mesh = {sizeof(mesh), 2, names, extent};
    struct world_result result[WORLD_MAX_RANKS];
    struct fsdp_error error = {0};
    bool good = true;

    r->mesh = &mesh;
    assert_int_equal(
        world_run(WORLD_LOCAL, &mesh, PATIENCE_MS, in_rank, r, result, &error),
        FSDP_OK);
    for (uint32_t k = 0; k < r->ask->c.ranks; k++) {
        good = good && result[k].end == WORLD_RETURNED &&
               result[k].status == FSDP_OK;
    }
    return good;
}

/* The least limit, to STEP bytes. */
static uint64_t least_limit(struct run *r, uint64_t planned)
{
    uint64_t low = 0;
    uint64_t high = planned + 64 * (uint64_t)MIB;

    r->limit = high;
    assert_true(passes(r));
    while (high - low > STEP) {
        r->limit = low + (high - low) / 2;
        if (passes(r)) {
            high = r->limit;
        } else {
            low = r->limit;
        }
    }
    return high;
}

/* Four equal units; *planned: what plan counts. */
static uint64_t measure(const char *engine, uint32_t ranks, uint64_t unit,
                        uint64_t *planned)
{
    struct fsdp_error error = {0};
    struct plan_model m;
    struct plan_bytes b;
    struct plan_ask ask;
    struct run r = {.ask = &ask};
    uint64_t limit;

    assert_int_equal(engine_load(engine, &r.engine, &error), FSDP_OK);
    assert_int_equal(plan_equal_model(4 * unit, 4, &m, &error), FSDP_OK);
    m.model.initial = initial;
    ask = plan_ask_for(&m, ranks, CASE_FULL_SHARD, CASE_F32);
    assert_int_equal(plan_bytes_make(&ask, &b, &error), FSDP_OK);
    *planned = b.peak_sum;
    limit = least_limit(&r, *planned);
    plan_bytes_release(&b);
    plan_model_release(&m);
    return limit;
}

static void memory_is_true(void **state)
{
    static const uint64_t units[] = {1 << 18, 700000, 1 << 20};
    const char *const engine = *state;

    for (uint32_t ranks = 2; ranks <= 4; ranks += 2) {
        uint64_t least;
        const uint64_t fixed = measure(engine, ranks, 1, &least);

        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            uint64_t planned;
            const uint64_t limit =
                measure(engine, ranks, units[i], &planned) - fixed;
            const uint64_t off =
                limit > planned ? limit - planned : planned - limit;

            print_message("%s, K = %u, %llu parameters: %llu bytes under a "
                          "limit, %llu planned\n",
                          engine, ranks, 4 * (unsigned long long)units[i],
                          (unsigned long long)limit,
                          (unsigned long long)planned);
            assert_true(off <= MIB || off <= planned / 100);
        }
    }
}

int main(void)
{
    static char ref[] = "ref";
    static char impl[] = "impl";
    const struct CMUnitTest tests[] = {
        {"memory is true: ref", memory_is_true, NULL, NULL, ref},
        {"memory is true: impl", memory_is_true, NULL, NULL, impl},
    };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("a sanitizer's own memory is beyond any limit\n");
    return 77;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
