/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_kill_test.c - a rank is killed while a model without values is
 * filled, while a checkpoint is loaded, and while values are assigned, in
 * either engine: at some call that reads or keeps, at some copy to the device,
 * or at some time. Then each other rank holds all that it held before or all
 * that it was given; or it says that it holds nothing to go on with. The
 * checkpoint is as it was.
 *
 * usage: checkpoint_kill_test [KILLS]
 *
 * The test is linked with --wrap of the calls that read and write.
 */
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/folder_erase.h"
#include "testing/unit_testing.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    KILLS = 30, /* of each engine */
    RANKS = 3,
    TIMED = 6, /* one in so many at some time, the others at some call */
    N_STAGES = 5
};

/* What a rank holds at the end of each stage. */
static const char *const stages[N_STAGES] = {"made", "filled", "loaded",
                                             "assigned", "loaded again"};

/* Shared memory, through which ranks report to each other and to the test. */
struct told {
    uint64_t known[RANKS][N_STAGES]; /* hashes */
    uint64_t n_sites[RANKS], n_us;
    _Atomic uint32_t held[N_STAGES], refused, half;
    char why[256]; /* why a rank says that its values are torn */
};

static struct {
    struct told *told;
    const struct fsdp_engine *real;
    char directory[64];
    bool plain;             /* nobody is killed */
    uint32_t victim, timed; /* microseconds; 0: at a site */
    uint64_t nth;           /* site */
} scene;

/* Of this process, which plays a rank. */
static const struct fsdp_env *given;
static struct fsdp_device counted;
static const struct fsdp_device *device;
static _Atomic uint64_t n_sites;

static void at_site(void)
{
    if (given && ++n_sites == scene.nth && !scene.plain && !scene.timed &&
        given->rank == scene.victim) {
        (void)raise(SIGKILL);
    }
}

/* The linker makes these names: NOLINTBEGIN(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */
ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
    at_site();
    return __real_pread(fd, p, n, at);
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
    at_site();
    return __real_pwrite(fd, p, n, at);
}
/* NOLINTEND(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */

static int counted_copy(void *self, struct fsdp_stream *stream, void *to,
                        const void *from, uint64_t bytes)
{
    at_site();
    return device->copy(self, stream, to, from, bytes);
}

/* ---- What a rank holds --------------------------------------------------- */

/* A hash of what the rank holds; 0: it is refused. */
static uint64_t look(struct fsdp_sharded *s)
{
    uint64_t hash = 0xcbf29ce484222325u;

    *given->error = (struct fsdp_error){0};
    return scene.real->pieces(s, testing_mix_piece, &hash) == FSDP_OK ? hash
                                                                      : 0;
}

/* Judges what a surviving rank was left with. */
static void judge(struct fsdp_sharded *s, uint32_t stage)
{
    struct told *t = scene.told;
    const uint64_t *known = t->known[given->rank];
    const uint64_t now = look(s);
    const char *message = given->error->message;

    if (now == 0 &&
        (strstr(message, "load again") || strstr(message, "value"))) {
        t->refused++;
        return;
    }
    for (uint32_t i = stage > 0 ? stage - 1 : 0; now != 0 && i <= stage; i++) {
        if (now == known[i]) {
            t->held[i]++;
            return;
        }
    }
    t->half++;
    snprintf(t->why, sizeof(t->why), "rank %u, %s: %s", given->rank,
             stages[stage], now ? "some of both" : message);
}

/* ---- A rank -------------------------------------------------------------- */

/* All ranks begin a pass, or hear that one of them cannot. */
static int begin_and_cancel(struct fsdp_sharded *s)
{
    FSDP_TRY(scene.real->at(s, FSDP_BEGIN, FSDP_SEQUENCE_TRAIN));
    return scene.real->at(s, FSDP_CANCEL, FSDP_SEQUENCE_TRAIN);
}

static int stage(struct fsdp_sharded *s, uint32_t i)
{
    switch (i) {
    case 0:
        return FSDP_OK;
    case 1:
    case 3:
        FSDP_TRY(testing_assign(scene.real, s, 1));
        return begin_and_cancel(s);
    default:
        return scene.real->load(s, scene.directory);
    }
}

static void die_in_time(void)
{
    const struct itimerval when = {
        .it_value = {scene.timed / 1000000, scene.timed % 1000000}};

    if (scene.timed && given->rank == scene.victim) {
        (void)signal(SIGALRM, SIG_DFL);
        (void)setitimer(ITIMER_REAL, &when, NULL);
    }
}

static uint64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int play(const struct fsdp_engine *engine, struct fsdp_sharded *s)
{
    struct told *t = scene.told;
    const uint64_t begun = now_us();

    (void)engine;
    n_sites = 0;
    die_in_time();
    for (uint32_t i = 0; i < N_STAGES; i++) {
        const int status = stage(s, i);

        if (status != FSDP_OK && !scene.plain) {
            judge(s, i);
            return status;
        }
        FSDP_TRY(status);
        if (scene.plain) {
            t->known[given->rank][i] = look(s);
        }
    }
    t->n_sites[given->rank] = n_sites;
    t->n_us = now_us() - begun;
    return FSDP_OK;
}

static int open_counting(struct fsdp_env *env)
{
    FSDP_TRY(scene.real->open(env));
    device = env->device;
    counted = *device;
    counted.copy = counted_copy;
    env->device = &counted;
    given = env;
    return FSDP_OK;
}

static void close_counting(struct fsdp_env *env)
{
    env->device = device;
    given = NULL;
    scene.real->close(env);
}

/* ---- A world ------------------------------------------------------------- */

/* Plays the ranks; returns whether the victim died. */
static bool run(const struct loader *l)
{
    uint32_t extent[] = {1, RANKS};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, NULL, extent};
    struct world_result ends[CASE_MAX_RANKS] = {0};
    struct fsdp_error error = {0};

    assert_int_equal(world_run(WORLD_LOCAL, &mesh, TESTING_TIMEOUT_MS,
                               load_rank, (void *)l, ends, &error),
                     FSDP_OK);
    for (uint32_t r = 0; scene.plain && r < RANKS; r++) {
        if (ends[r].end != WORLD_RETURNED || ends[r].status != FSDP_OK) {
            fail_msg("rank %u: %s", r, ends[r].error.message);
        }
    }
    return ends[scene.victim].end == WORLD_SIGNALLED;
}

static uint32_t count_files(const char *directory)
{
    DIR *d = opendir(directory);
    uint32_t n = 0;

    assert_non_null(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

static uint32_t kills = KILLS;

static void say_how_they_ended(const struct told *t, uint32_t died)
{
    print_message("%s: %u of %u killed among %llu sites; the others were left "
                  "as filled %u, loaded %u, assigned %u, loaded again %u, "
                  "refused by name %u\n",
                  scene.real->name, died, kills,
                  (unsigned long long)t->n_sites[0], t->held[1], t->held[2],
                  t->held[3], t->held[4], t->refused);
}

static void killed(void **state)
{
    const struct arrangement from = {
        .engine = *state, .ranks = RANKS, .wrap = CASE_WRAP_LAYER};
    struct fsdp_engine counts = *from.engine;
    struct run_case c = testing_case(&from, "odd");
    struct case_model model;
    const struct loader l = {&c, &model, &counts, scene.directory,
                             FSDP_OPTIMIZER_ADAMW};
    uint64_t random = 0x9e3779b97f4a7c15u;
    uint32_t died = 0;
    struct fsdp_error why = {0};
    struct shown saved;
    struct told *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(t != MAP_FAILED);
    (void)strcpy(scene.directory, "/tmp/checkpoint_kill_test.XXXXXX");
    assert_non_null(mkdtemp(scene.directory));
    scene.told = t;
    scene.real = from.engine;
    testing.form = FSDP_SAVE_SHARDED;
    testing_write(&from, "odd", scene.directory, &saved);
    counts.open = open_counting;
    counts.close = close_counting;
    assert_int_equal(case_model_make(&c, NULL, 0, &model, &why), FSDP_OK);
    testing.model = &model.model->model;
    testing.into = &saved; /* each process has a copy of its own */
    testing.before = play;
    testing.none_has = true;
    scene.plain = true;
    (void)run(&l);
    scene.plain = false;
    for (uint32_t i = 0; i < kills; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        scene.victim = i % RANKS;
        scene.nth = 1 + (random >> 33) % t->n_sites[scene.victim];
        scene.timed =
            i % TIMED == 0 ? (uint32_t)(1 + (random >> 33) % t->n_us) : 0;
        died += run(&l);
        if (t->half > 0) {
            fail_msg("%s, kill %u: %s", scene.real->name, i, t->why);
        }
    }
    assert_int_equal(count_files(scene.directory), 3); /* ".", "..", and the
                                                        * checkpoint */
    scene.plain = true;
    (void)run(&l);
    say_how_they_ended(t, died);
    assert_true(died > kills * 3 / 4);
    assert_true(t->held[1] + t->held[2] + t->held[3] + t->held[4] > 0);
    testing.before = NULL;
    testing.none_has = false;
    testing.into = NULL;
    case_model_release(&model);
    shown_release(&saved);
    folder_erase(scene.directory);
    assert_int_equal(munmap(t, sizeof(*t)), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        {"killed, ref", killed, NULL, NULL, (void *)fsdp_ref_engine()},
        {"killed, impl", killed, NULL, NULL, (void *)fsdp_impl_engine()},
    };

    kills = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : KILLS;
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
