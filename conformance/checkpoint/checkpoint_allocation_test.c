/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_allocation_test.c - a load for which there is no memory, in either
 * engine: each of rank 0's allocations fails in turn. All ranks are refused,
 * each holds what it held, bit for bit, or has no values still; the next load
 * serves. What is assigned asks for no memory at all. And parts of a
 * checkpoint are not loaded strictly.
 *
 * The test is linked with --wrap of malloc and its family.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/folder_erase.h"
#include "run/fault_testing.h"

enum {
    MOST_SITES = 2000,
    MOST_RANKS = 4,
    RANKS = 2
};

/* What is held before a load. */
enum held {
    HELD_INITIAL,
    HELD_TRAINED, /* the checkpoint was loaded, and half of it assigned */
    HELD_ASSIGNED,
    HELD_SENT, /* by rank 0, which alone had it */
    HELD_NONE, /* no rank has a value */
    HELD_HALF, /* every second parameter was assigned */
    N_HELD
};

/* What is loaded. */
enum loaded {
    LOADED_ALL,
    LOADED_LOCAL,
    LOADED_PARTS, /* leniently, without the states */
    N_LOADED
};

static struct {
    const struct fsdp_engine *real;
    struct fsdp_engine lender; /* it, with a device whose alloc may fail */
    char directory[64];
    enum held held;
    enum loaded loaded;
    uint32_t what; /* fails */
    uint64_t met;
} scene;

static _Thread_local const struct fsdp_env *given;

/* ---- What a rank holds --------------------------------------------------- */

/* Values, states and buffers; or that there are no values, and of what. */
static uint64_t look(struct fsdp_sharded *s)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const int status = scene.real->pieces(s, testing_mix_piece, &hash);

    if (status != FSDP_OK) {
        hash = testing_mix(hash, given->error->message,
                           strlen(given->error->message));
        *given->error = (struct fsdp_error){0};
    }
    for (uint32_t b = 0; b < testing.model->n_buffers; b++) {
        struct fsdp_tensor t = {0};

        (void)scene.real->buffer(s, b, &t);
        hash =
            testing_mix(hash, t.data, t.shape[0] * fsdp_dtype_bytes(t.dtype));
    }
    return testing_mix(hash, &status, sizeof(status));
}

/* ---- Loads that fail ----------------------------------------------------- */

static int says(const char *what, uint64_t nth)
{
    char told[160];

    (void)snprintf(told, sizeof(told), "allocation %llu: %s; %.80s",
                   (unsigned long long)nth, what, given->error->message);
    given->error->status = FSDP_ERR_INTERNAL;
    (void)snprintf(given->error->message, sizeof(given->error->message), "%s",
                   told);
    return FSDP_ERR_INTERNAL;
}

/* Every nth parameter: for which no memory is asked. */
static int assign(struct fsdp_sharded *s, uint32_t nth)
{
    if (given->rank == 0) {
        fault_set(scene.what, 0, 1);
    }
    FSDP_TRY(testing_assign(scene.real, s, nth));
    if (given->rank == 0 && fault_happened()) {
        return says("assigned values ask for memory", 1);
    }
    if (given->rank == 0) {
        fault_set(FAULT_NONE, 0, 0);
    }
    return FSDP_OK;
}

static int load(struct fsdp_sharded *s, const char *directory)
{
    const struct fsdp_load how = {.size = sizeof(how),
                                  .lenient = scene.loaded == LOADED_PARTS,
                                  .directory = directory};

    return scene.real->load_from(s, &how);
}

/* Whether rank 0 has met the fault that it was set. */
static int ask_rank0(bool *out)
{
    bool all[MOST_RANKS];
    const bool mine = given->rank == 0 && fault_happened();

    FSDP_TRY(given->exchange(given->exchange_self, &mine, sizeof(mine), all));
    *out = all[0];
    return FSDP_OK;
}

/* One load for each allocation, until one that meets no fault. */
static int each_fails(struct fsdp_sharded *s)
{
    const uint64_t held = look(s);

    for (uint64_t nth = 1; nth < MOST_SITES; nth++) {
        bool met;
        int status;

        if (given->rank == 0) {
            fault_set(scene.what, 0, nth);
        }
        status = load(s, scene.directory);
        FSDP_TRY(ask_rank0(&met));
        if (given->rank == 0) {
            fault_set(FAULT_NONE, 0, 0);
            scene.met += met;
        }
        if (!met) {
            return status;
        }
        if (status != FSDP_ERR_NOMEM || !given->error->message[0]) {
            return says("this rank was not refused by name", nth);
        }
        *given->error = (struct fsdp_error){0};
        if (look(s) != held) {
            return says("this rank does not hold what it held", nth);
        }
    }
    return says("there is no end of them", MOST_SITES);
}

/* ---- A rank -------------------------------------------------------------- */

static int open_playing(struct fsdp_env *env)
{
    fault_play(env->rank);
    return scene.lender.open(env);
}

static void close_playing(struct fsdp_env *env)
{
    scene.lender.close(env);
    fault_play_nobody();
}

/* Buffers rest in another dtype than they are stored in. */
static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    struct fsdp_options o = *options;

    o.buffer_dtype = FSDP_DTYPE_BF16;
    given = env;
    return scene.real->shard(env, model, units, &o, out);
}

/* Who is not lenient is told a tensor that was left out. */
static int refuses_parts(struct fsdp_sharded *s)
{
    const uint64_t held = look(s);
    const int status = scene.real->load(s, scene.directory);

    if (status != FSDP_ERR_INVALID ||
        !strstr(given->error->message, "no optim.state.")) {
        return says("a strict load was not refused by name", 0);
    }
    *given->error = (struct fsdp_error){0};
    return look(s) == held
               ? FSDP_OK
               : says("a strict load that was refused has changed it", 0);
}

static int fill_and_load(const struct fsdp_engine *engine,
                         struct fsdp_sharded *s)
{
    (void)engine;
    if (scene.held == HELD_TRAINED) {
        FSDP_TRY(load(s, scene.directory));
    }
    if (scene.held == HELD_ASSIGNED) {
        FSDP_TRY(assign(s, 1));
    }
    if (scene.held == HELD_TRAINED || scene.held == HELD_HALF) {
        FSDP_TRY(assign(s, 2));
    }
    if (scene.loaded == LOADED_PARTS) {
        FSDP_TRY(refuses_parts(s));
    }
    return each_fails(s);
}

static void save(const struct fsdp_engine *engine, struct shown *saved)
{
    const struct arrangement from = {
        .engine = engine, .ranks = RANKS, .wrap = CASE_WRAP_LAYER};

    (void)strcpy(scene.directory, "/tmp/checkpoint_allocation_test.XXXXXX");
    assert_non_null(mkdtemp(scene.directory));
    testing.form =
        scene.loaded == LOADED_LOCAL ? FSDP_SAVE_LOCAL : FSDP_SAVE_SHARDED;
    testing.what = scene.loaded == LOADED_PARTS
                       ? FSDP_SAVE_PARAMETERS | FSDP_SAVE_BUFFERS
                       : 0;
    testing_write(&from, "track", scene.directory, saved);
}

/* What is saved is there in the end. */
static void plays(const struct fsdp_engine *engine, const struct shown *saved)
{
    struct fsdp_engine loads = *engine;
    const struct arrangement to = {
        .engine = &loads, .ranks = RANKS, .wrap = CASE_WRAP_LAYER};
    struct fsdp_error why;
    struct shown is;

    scene.real = engine;
    scene.lender = *engine;
    fault_engine(&scene.lender);
    loads.open = open_playing;
    loads.close = close_playing;
    loads.shard = shard;
    loads.load = load;
    testing.before = fill_and_load;
    testing.rank0_has = scene.held == HELD_SENT;
    testing.none_has = scene.held == HELD_NONE || scene.held == HELD_HALF;
    if (testing_read(&to, "track", FSDP_OPTIMIZER_ADAMW, scene.directory, &is,
                     &why) != FSDP_OK) {
        fail_msg("%s, held %u, loaded %u: %s", engine->name, scene.held,
                 scene.loaded, why.message);
    }
    assert_memory_equal(is.x[0], saved->x[0], saved->total * sizeof(float));
    testing.before = NULL;
    testing.rank0_has = testing.none_has = false;
    shown_release(&is);
}

static void each_allocation(const struct fsdp_engine *engine)
{
    static const char *const loaded[] = {"all", "its local form",
                                         "parameters and buffers"};

    assert_true(fault_is_wrapped());
    for (scene.loaded = 0; scene.loaded < N_LOADED; scene.loaded++) {
        struct shown saved;

        save(engine, &saved);
        scene.met = 0;
        scene.what = FAULT_DEVICE;
        scene.held = HELD_TRAINED;
        plays(engine, &saved);
        assert_int_equal(scene.met, 0); /* it asks for none */
        scene.what = FAULT_MEMORY;
        for (scene.held = 0; scene.held < N_HELD; scene.held++) {
            plays(engine, &saved);
        }
        print_message("%s, %s: %llu allocations failed\n", engine->name,
                      loaded[scene.loaded], (unsigned long long)scene.met);
        assert_true(scene.met > 200);
        shown_release(&saved);
        folder_erase(scene.directory);
    }
}

static void ref(void **state)
{
    (void)state;
    each_allocation(fsdp_ref_engine());
}

static void impl(void **state)
{
    (void)state;
    each_allocation(fsdp_impl_engine());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ref),
        cmocka_unit_test(impl),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
