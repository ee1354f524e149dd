/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_larger_test.c - a model that is larger than what one rank is allowed: it
 * is made, filled, trained, saved and loaded where the kernel limits each
 * rank's data to what plan counts and a slack; with values on all
 * ranks, on none, so that they are assigned in slices, and on rank 0 alone.
 * Somewhat below what plan counts a rank says what there is no room for.
 * ENGINE MIB RANKS SLACK in place of the small models': prints what it does.
 */
#include "checkpoint/folder_erase.h"
#include "run/worker/engine_load.h"
#include "testing/unit_testing.h"
#include "tools/plan/plan_equal.h"
#include "tools/plan/plan_limit_testing.h"

#include <fsdp/arith/bits.h>
#include <stdio.h>
#include <stdlib.h>

enum {
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

/* A model, and how much an engine may take for it. */
struct size {
    const char *engine;
    uint32_t mib, ranks, slack;
    enum way first; /* and those behind it */
};
static struct size size;

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

static int assign_all(const struct limited_run *r, struct fsdp_sharded *s)
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

static int look(const struct limited_run *r, struct fsdp_sharded *s,
                struct held *out)
{
    *out = (struct held){.begun = true, .hash = 0xcbf29ce484222325u};
    return r->engine->pieces(s, hold, out);
}

/* ---- A run --------------------------------------------------------------- */

/* Begins with the values, and a load brings back what a step has changed. */
static int live(const struct limited_run *r, struct fsdp_sharded *s)
{
    const struct fsdp_save save = {.size = sizeof(save),
                                   .form = FSDP_SAVE_SHARDED,
                                   .directory = r->context};
    struct held begun;
    struct held saved;
    struct held changed;
    struct held loaded;

    if (r->with_values == 0) {
        FSDP_TRY(assign_all(r, s));
    }
    FSDP_TRY(look(r, s, &begun));
    FSDP_TRY(limited_train(r, s));
    FSDP_TRY(look(r, s, &saved));
    FSDP_TRY(r->engine->save_begin(s, &save));
    FSDP_TRY(r->engine->save_wait(s));
    FSDP_TRY(limited_train(r, s));
    FSDP_TRY(look(r, s, &changed));
    FSDP_TRY(r->engine->load(s, r->context));
    FSDP_TRY(look(r, s, &loaded));
    return begun.begun && !saved.begun && changed.hash != saved.hash &&
                   loaded.hash == saved.hash
               ? FSDP_OK
               : FSDP_ERR_INTERNAL;
}

/* In a folder of its own. */
static bool passes(struct limited_run *r, enum way way, struct fsdp_error *why)
{
    char directory[] = "/tmp/plan_larger_test.XXXXXX";
    bool good;

    assert_non_null(mkdtemp(directory));
    r->context = directory;
    r->with_values = way == ON_ALL ? r->ask->c.ranks : way == ON_RANK0;
    good = limited_passes(r, why);
    folder_erase(directory);
    return good;
}

static void begin(const char *engine, uint32_t optimizer, struct limited_run *r,
                  struct plan_model *m, struct plan_ask *ask, uint64_t *planned)
{
    struct fsdp_error error = {0};
    struct plan_bytes b;

    assert_int_equal(engine_load(engine, &r->engine, &error), FSDP_OK);
    assert_int_equal(plan_equal_model((uint64_t)size.mib * MIB / sizeof(float),
                                      N_UNITS, m, &error),
                     FSDP_OK);
    m->model.initial = initial;
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
    struct limited_run r = {.patience_ms = 300000, .live = live};
    struct fsdp_error why;
    uint64_t planned;

    size = *this;
    begin(engine, optimizer, &r, &m, &ask, &planned);
    for (enum way way = size.first; way < N_WAYS; way++) {
        r.limit = planned + (uint64_t)size.slack * MIB;
        assert_true(r.limit < (uint64_t)size.mib * MIB);
        if (!passes(&r, way, &why)) {
            fail_msg("values on %s: %s", ways[way], why.message);
        }
        r.limit = planned - below;
        assert_false(passes(&r, way, &why));
        print_message("%s, %u MiB, K = %u, values on %s: passes under %.1f + "
                      "%u MiB; under %.1f: %s\n",
                      engine, size.mib, size.ranks, ways[way],
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
    /* Each of the engine's threads has a stack of 8 MiB, and so has the thread
     * that saves. Shards of gradients are as large as a large page, and none is
     * larger. */
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

    if (limited_cannot()) {
        return 77;
    }
    if (argc != 5) {
        return cmocka_run_group_tests(small, NULL, NULL) != 0;
    }
    given.engine = argv[1];
    given.mib = (uint32_t)strtoul(argv[2], NULL, 10);
    given.ranks = (uint32_t)strtoul(argv[3], NULL, 10);
    given.slack = (uint32_t)strtoul(argv[4], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
