/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_allocation_test.c - loads and saves without enough memory, in
 * either engine: each of one rank's allocations fails in turn. All ranks are
 * refused, and each holds what it held, bit for bit, or still has no values;
 * the next call succeeds. The same goes for values that rank 0 sends. An assign
 * asks for no memory at all. And a checkpoint of parts is not loaded strictly.
 *
 * The test is linked with --wrap of malloc and its family.
 */
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/folder_erase.h"
#include "run/play/fault_testing.h"
#include "testing/unit_testing.h"

#include <dirent.h>

enum {
    MOST_SITES = 2000,
    MOST_RANKS = 4,
    RANKS = 2
};

/* What ranks hold before a load. */
enum held {
    HELD_INITIAL,
    HELD_TRAINED, /* the checkpoint was loaded, and half of it assigned */
    HELD_ASSIGNED,
    HELD_SENT, /* by rank 0, which alone had it */
    HELD_NONE, /* no rank has a value */
    HELD_HALF, /* every second parameter was assigned */
    N_HELD
};

/* The checkpoint that is loaded. */
enum loaded {
    LOADED_ALL,
    LOADED_LOCAL,
    LOADED_PARTS, /* leniently, without the states */
    N_LOADED
};

static struct {
    const struct fsdp_engine *real;
    struct fsdp_engine lender; /* the engine, with a device whose alloc may
                                * fail */
    char directory[64];
    enum held held;
    enum loaded loaded;
    uint32_t what;   /* fails */
    uint32_t victim; /* on this rank */
    uint64_t met;
    struct fsdp_save save; /* the save that is tried */
    bool sends;            /* the call that fails sends values of rank 0 */
    uint64_t served;       /* saves that succeeded though the fault was met */
} scene;

static _Thread_local const struct fsdp_env *given;

/* ---- What a rank holds --------------------------------------------------- */

/* A hash of values, states and buffers; without values, a hash of the
 * refusal. */
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

    snprintf(told, sizeof(told), "allocation %llu: %s; %.80s",
             (unsigned long long)nth, what, given->error->message);
    given->error->status = FSDP_ERR_INTERNAL;
    snprintf(given->error->message, sizeof(given->error->message), "%s", told);
    return FSDP_ERR_INTERNAL;
}

static void arm(uint64_t nth)
{
    if (given->rank == scene.victim) {
        fault_set(scene.what, scene.victim, nth);
    }
}

static void disarm(void)
{
    if (given->rank == scene.victim) {
        fault_set(FAULT_NONE, 0, 0);
    }
}

/* Assigns every nth parameter, which must not ask for memory. */
static int assign(struct fsdp_sharded *s, uint32_t nth)
{
    arm(1);
    FSDP_TRY(testing_assign(scene.real, s, nth));
    if (given->rank == scene.victim && fault_happened()) {
        return says("assigned values ask for memory", 1);
    }
    disarm();
    return FSDP_OK;
}

static int load(struct fsdp_sharded *s, const char *directory)
{
    const struct fsdp_load how = {.size = sizeof(how),
                                  .lenient = scene.loaded == LOADED_PARTS,
                                  .directory = directory};

    return scene.real->load_from(s, &how);
}

/* Whether the rank that was set a fault has met it; the fault is over then. */
static int ask_victim(bool *out)
{
    bool all[MOST_RANKS];
    const bool mine = given->rank == scene.victim && fault_happened();

    FSDP_TRY(given->exchange(given->exchange_self, &mine, sizeof(mine), all));
    *out = all[scene.victim];
    disarm();
    if (given->rank == scene.victim) {
        scene.met += mine;
    }
    return FSDP_OK;
}

/* Checks that this rank was refused, with a message, and holds what it held. */
static int check_refused(struct fsdp_sharded *s, int status, uint64_t nth,
                         uint64_t held)
{
    if (status != FSDP_ERR_NOMEM || !given->error->message[0]) {
        return says("this rank was not refused by name", nth);
    }
    *given->error = (struct fsdp_error){0};
    return look(s) == held ? FSDP_OK
                           : says("this rank does not hold what it held", nth);
}

static int attempt(struct fsdp_sharded *s)
{
    return scene.sends ? testing_send(scene.real, s) : load(s, scene.directory);
}

/* One load for each allocation, until one that meets no fault. */
static int each_fails(struct fsdp_sharded *s)
{
    const uint64_t held = look(s);

    for (uint64_t nth = 1; nth < MOST_SITES; nth++) {
        bool met;
        int status;

        arm(nth);
        status = attempt(s);
        FSDP_TRY(ask_victim(&met));
        if (!met) {
            return status;
        }
        FSDP_TRY(check_refused(s, status, nth, held));
    }
    return says("there is no end of them", MOST_SITES);
}

/* ---- Saves that fail ----------------------------------------------------- */

static int save_and_wait(struct fsdp_sharded *s)
{
    FSDP_TRY(scene.real->save_begin(s, &scene.save));
    return scene.real->save_wait(s);
}

/* Checks that ranks agree, and that what was saved is what is held. */
static int check_saved(struct fsdp_sharded *s, int status, bool met,
                       uint64_t nth, uint64_t held)
{
    int all[MOST_RANKS];

    FSDP_TRY(
        given->exchange(given->exchange_self, &status, sizeof(status), all));
    for (uint32_t r = 0; r < RANKS; r++) {
        if (all[r] != status) {
            return says("ranks are told different things of a save", nth);
        }
    }
    if (status != FSDP_OK) { /* there is a way without that memory */
        return check_refused(s, status, nth, held);
    }
    if (given->rank == 0) {
        scene.served += met;
    }
    FSDP_TRY(load(s, scene.save.directory));
    return look(s) == held ? FSDP_OK : says("another state was saved", nth);
}

/* One save for each allocation, until one that meets no fault. */
static int each_save_fails(const struct fsdp_engine *engine,
                           struct fsdp_sharded *s)
{
    uint64_t held;

    (void)engine;
    FSDP_TRY(load(s, scene.directory));
    held = look(s);
    for (uint64_t nth = 1; nth < MOST_SITES; nth++) {
        bool met;
        int status;

        arm(nth);
        status = save_and_wait(s);
        FSDP_TRY(ask_victim(&met));
        FSDP_TRY(check_saved(s, status, met, nth, held));
        if (!met) {
            return status;
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

/* A load that is not lenient is refused, and names a tensor that was left
 * out. */
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

/* After a call in which nothing failed every rank has the values that an assign
 * would give. */
static int fill_and_send(const struct fsdp_engine *engine,
                         struct fsdp_sharded *s)
{
    uint64_t sent;

    FSDP_TRY(fill_and_load(engine, s));
    sent = look(s);
    FSDP_TRY(assign(s, 1));
    return look(s) == sent ? FSDP_OK : says("not all values were sent", 0);
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

/* In the end the saved values are there. */
static void plays(const struct fsdp_engine *engine, const char *directory,
                  const struct shown *saved)
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
    testing.before = scene.save.directory ? each_save_fails
                     : scene.sends        ? fill_and_send
                                          : fill_and_load;
    testing.rank0_has = scene.held == HELD_SENT;
    testing.none_has = scene.held == HELD_NONE || scene.held == HELD_HALF;
    if (testing_read(&to, "track", FSDP_OPTIMIZER_ADAMW, directory, &is,
                     &why) != FSDP_OK) {
        fail_msg("%s, held %u, loaded %u, saved %u, rank %u: %s", engine->name,
                 scene.held, scene.loaded, scene.save.form, scene.victim,
                 why.message);
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
        plays(engine, scene.directory, &saved);
        assert_int_equal(scene.met, 0); /* an assign asks for none */
        scene.what = FAULT_MEMORY;
        for (scene.held = 0; scene.held < N_HELD; scene.held++) {
            plays(engine, scene.directory, &saved);
        }
        print_message("%s, %s: %llu allocations failed\n", engine->name,
                      loaded[scene.loaded], (unsigned long long)scene.met);
        assert_true(scene.met > 200);
        shown_release(&saved);
        folder_erase(scene.directory);
    }
}

/* The folder has complete checkpoints, and nothing else. */
static void find_no_partial(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d))) {
        assert_null(strstr(e->d_name, "partial"));
    }
    closedir(d);
}

static void each_allocation_of_a_save(const struct fsdp_engine *engine)
{
    static const struct fsdp_save forms[] = {
        {.form = FSDP_SAVE_FULL, .rank0_only = 1},
        {.form = FSDP_SAVE_FULL},
        {.form = FSDP_SAVE_SHARDED},
        {.form = FSDP_SAVE_LOCAL}};
    char directory[] = "/tmp/checkpoint_allocation_test.XXXXXX";
    struct shown saved;
    uint64_t met[2] = {0, 0};

    scene.loaded = LOADED_ALL;
    save(engine, &saved);
    scene.held = HELD_TRAINED;
    assert_non_null(mkdtemp(directory));
    for (uint32_t i = 0; i < 4; i++) {
        scene.save = forms[i];
        scene.save.size = sizeof(scene.save);
        scene.save.directory = directory;
        for (scene.victim = 0; scene.victim < RANKS; scene.victim++) {
            for (uint32_t k = 0; k < 2; k++) {
                scene.what = k ? FAULT_DEVICE : FAULT_MEMORY;
                scene.met = 0;
                plays(engine, directory, &saved);
                met[k] += scene.met;
            }
        }
    }
    find_no_partial(directory);
    print_message("%s, saves: %llu allocations failed, %llu of the device; "
                  "%llu times it was saved nevertheless\n",
                  engine->name, (unsigned long long)met[0],
                  (unsigned long long)met[1], (unsigned long long)scene.served);
    assert_true(met[0] > 200 && met[1] > 0);
    scene.victim = 0;
    scene.save.directory = NULL;
    scene.served = 0;
    shown_release(&saved);
    folder_erase(directory);
    folder_erase(scene.directory);
}

static void sends(void **state)
{
    const struct fsdp_engine *engine = *state;
    struct shown saved;

    scene.loaded = LOADED_ALL;
    scene.sends = true;
    save(engine, &saved);
    scene.met = 0;
    for (scene.held = 0; scene.held < N_HELD; scene.held++) {
        for (scene.victim = 0; scene.victim < RANKS; scene.victim++) {
            scene.what = FAULT_MEMORY;
            plays(engine, scene.directory, &saved);
            scene.what = FAULT_DEVICE;
            plays(engine, scene.directory, &saved);
        }
    }
    print_message("%s, values sent: %llu allocations failed\n", engine->name,
                  (unsigned long long)scene.met);
    assert_true(scene.met >= 2ull * N_HELD);
    scene.victim = 0;
    scene.sends = false;
    shown_release(&saved);
    folder_erase(scene.directory);
}

static void loads(void **state)
{
    each_allocation(*state);
}

static void saves(void **state)
{
    each_allocation_of_a_save(*state);
}

int main(void)
{
    void *const ref = (void *)fsdp_ref_engine();
    void *const impl = (void *)fsdp_impl_engine();
    const struct CMUnitTest tests[] = {
        {"loads of ref", loads, NULL, NULL, ref},
        {"loads of impl", loads, NULL, NULL, impl},
        {"saves of ref", saves, NULL, NULL, ref},
        {"saves of impl", saves, NULL, NULL, impl},
        {"values sent by ref", sends, NULL, NULL, ref},
        {"values sent by impl", sends, NULL, NULL, impl},
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
