/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_replace_test.c - a load that fails after the verification, in
 * either engine: each read fails in turn, or a file is written to while it is
 * read. Ranks hold again what they held, and the next load succeeds. Only where
 * that is impossible, too, does an engine say so and refuse to go on.
 *
 * The test is linked with --wrap of the calls that read.
 */
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/folder_erase.h"
#include "testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    MAX_READS = 4000
};

/* ---- The fault ----------------------------------------------------------- */

enum harm {
    HARM_NONE,
    HARM_READ,     /* the nth read fails */
    HARM_READS,    /* it and all later reads fail */
    HARM_WRITTEN,  /* the file is written to before the nth read */
    HARM_NO_PLACE, /* reads as HARM_READ, and no file can be without a name */
    HARM_FULL,     /* the same, but writing to it fails */
};

static struct {
    enum harm harm;
    unsigned nth; /* 0: none yet */
    atomic_uint n;
    bool hit;
    char file[256]; /* the file that is written to */
} fault;

/* The linker makes these names: NOLINTBEGIN(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */
ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
int __real_openat(int fd, const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

static void turn_last_bit(void)
{
    int fd = __real_open(fault.file, O_RDWR | O_CLOEXEC, 0);
    off_t end = lseek(fd, 0, SEEK_END);
    unsigned char byte;

    assert_true(fd >= 0 && end > 0);
    assert_int_equal(__real_pread(fd, &byte, 1, end - 1), 1);
    byte ^= 0x10;
    assert_int_equal(__real_pwrite(fd, &byte, 1, end - 1), 1);
    (void)close(fd);
}

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
    unsigned now = atomic_fetch_add(&fault.n, 1) + 1;
    bool is = now == fault.nth ||
              (fault.harm == HARM_READS && now > fault.nth && fault.nth > 0);

    if (fault.harm == HARM_NONE || !is) {
        return __real_pread(fd, p, n, at);
    }
    fault.hit = true;
    if (fault.harm == HARM_WRITTEN) {
        turn_last_bit();
        return __real_pread(fd, p, n, at);
    }
    errno = EIO;
    return -1;
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
    if (fault.harm == HARM_FULL) {
        errno = ENOSPC;
        return -1;
    }
    return __real_pwrite(fd, p, n, at);
}

static bool has_no_place(int flags)
{
    errno = EROFS;
    return fault.harm == HARM_NO_PLACE && (flags & O_TMPFILE) == O_TMPFILE;
}

int __wrap_openat(int fd, const char *path, int flags, ...)
{
    return has_no_place(flags) ? -1 : __real_openat(fd, path, flags, 0666);
}

int __wrap_open(const char *path, int flags, ...)
{
    return has_no_place(flags) ? -1 : __real_open(path, flags, 0666);
}
/* NOLINTEND(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */

/* ---- A scene ------------------------------------------------------------- */

struct scene {
    char directory[64], other[64];
    struct arrangement to;
    struct shown saved, held; /* the loaded values, and those from before */
    enum harm harm;           /* the harm that rank 0 is about to meet */
    unsigned nth;
    uint32_t refused; /* loads so far */
};
static struct scene scene;

static const struct fsdp_engine *engine(uint32_t i)
{
    return i == 0 ? fsdp_ref_engine() : fsdp_impl_engine();
}

static void set_fault(enum harm harm, unsigned nth)
{
    fault.harm = harm;
    fault.nth = nth;
    fault.hit = false;
    atomic_store(&fault.n, 0);
}

static void arm(void)
{
    set_fault(scene.harm, scene.nth);
}

/* Loads, with the nth read harmed; reads that made the values held before do
 * not count. */
static int load(struct scene *s, enum harm harm, unsigned nth,
                struct shown *shown, struct fsdp_error *why)
{
    s->harm = harm;
    s->nth = nth;
    set_fault(HARM_NONE, 0);
    if (!testing.first) {
        arm();
    }
    return testing_read(&s->to, "odd", FSDP_OPTIMIZER_ADAMW, s->directory,
                        shown, why);
}

/* A file of the checkpoint that is loaded. */
static void find_file(const struct scene *s)
{
    char pattern[128];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/*/shard-00002-model-00001*",
             s->directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_true(strlen(found.gl_pathv[0]) < sizeof(fault.file));
    snprintf(fault.file, sizeof(fault.file), "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* What ranks hold before a load. */
enum held {
    HELD_INITIAL,
    HELD_TRAINED, /* another checkpoint was loaded */
    HELD_ASSIGNED,
    HELD_SENT, /* by rank 0, which alone had it */
    HELD_DICT, /* the same, into a model that was there */
    N_HELD
};

static int assign(const struct fsdp_engine *e, struct fsdp_sharded *sharded)
{
    return testing_assign(e, sharded, 1);
}

/* Saved by 3 ranks, to be loaded by 2 of engine i. */
static struct scene *make_scene(uint32_t i, enum held held)
{
    struct scene *s = &scene;
    struct arrangement from = {
        .engine = engine(1 - i), .ranks = 3, .wrap = CASE_WRAP_PAIR};
    struct fsdp_error why;

    memset(s, 0, sizeof(*s));
    set_fault(HARM_NONE, 0);
    testing.form = FSDP_SAVE_SHARDED;
    testing.then = NULL;
    testing.first = NULL;
    testing.before = NULL;
    testing.rank0_has = false;
    testing.armed = arm;
    (void)strcpy(s->directory, "/tmp/checkpoint_replace_test.XXXXXX");
    (void)strcpy(s->other, "/tmp/checkpoint_replace_test.XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    assert_non_null(mkdtemp(s->other));
    testing_write(&from, "odd", s->directory, &s->saved);
    find_file(s);
    s->to = (struct arrangement){
        .engine = engine(i), .ranks = 2, .wrap = CASE_WRAP_LAYER};
    testing.before = held == HELD_ASSIGNED ? assign
                     : held == HELD_DICT   ? testing_send
                                           : NULL;
    testing.rank0_has = held == HELD_SENT;
    if (held == HELD_TRAINED) {
        testing_write(&s->to, "odd", s->other, &s->held);
        testing.first = s->other;
    } else {
        assert_int_equal(testing_read(&s->to, "odd", FSDP_OPTIMIZER_ADAMW,
                                      "/nowhere/at/all", &s->held, &why),
                         FSDP_ERR_IO);
    }
    assert_false(shown_equal(&s->saved, &s->held));
    return s;
}

static void end_scene(struct scene *s)
{
    set_fault(HARM_NONE, 0);
    testing.then = NULL;
    testing.first = NULL;
    testing.before = NULL;
    testing.rank0_has = false;
    shown_release(&s->saved);
    shown_release(&s->held);
    folder_erase(s->directory);
    folder_erase(s->other);
}

/* With the nth read harmed, ranks hold all of the checkpoint, or what they
 * held. False: there were fewer reads. */
static bool all_or_nothing(struct scene *s, enum harm harm, unsigned nth)
{
    struct fsdp_error why;
    struct shown shown;
    bool hit;
    int status;

    status = load(s, harm, nth, &shown, &why);
    hit = fault.hit;
    set_fault(HARM_NONE, 0);
    if (hit && harm == HARM_WRITTEN) {
        turn_last_bit();
    }
    if (!shown_equal(&shown, status == FSDP_OK ? &s->saved : &s->held)) {
        fail_msg("%s, read %u: status %d, some of both: %s", s->to.engine->name,
                 nth, status, why.message);
    }
    if (status != FSDP_OK) {
        assert_true(status == FSDP_ERR_IO || status == FSDP_ERR_FORMAT);
        assert_true(strstr(why.message, "safetensors") ||
                    strstr(why.message, "manifest.json"));
        s->refused++;
    } else {
        assert_true(!hit || harm == HARM_WRITTEN);
    }
    shown_release(&shown);
    return hit;
}

/* ---- Tests --------------------------------------------------------------- */

static void each_read(enum harm harm)
{
    for (uint32_t i = 0; i < 2 * N_HELD; i++) {
        struct scene *s = make_scene(i / N_HELD, i % N_HELD);
        unsigned nth = 1;

        while (nth < MAX_READS && all_or_nothing(s, harm, nth)) {
            nth++;
        }
        print_message("%s: %u reads, %u loads refused\n", s->to.engine->name,
                      nth - 1, s->refused);
        assert_true(nth < MAX_READS && s->refused > 40);
        end_scene(s);
    }
}

UNIT_TEST(each_read_fails)
{
    each_read(HARM_READ);
}

UNIT_TEST(written_to_while_read)
{
    each_read(HARM_WRITTEN);
}

static bool says_load_again(const struct fsdp_env *env, int status)
{
    bool says =
        status == FSDP_ERR_INVALID && strstr(env->error->message, "load again");

    memset(env->error, 0, sizeof(*env->error));
    return says;
}

/* A torn model refuses everything but another load, says so, and that load
 * succeeds. A model that is not torn goes on. */
static int is_torn_and_loads(const struct fsdp_engine *e, struct fsdp_env *env,
                             struct fsdp_sharded *sharded,
                             const char *directory)
{
    const struct fsdp_save save = {.size = sizeof(save),
                                   .form = FSDP_SAVE_SHARDED,
                                   .directory = directory};
    int status = e->pieces(sharded, show_piece, NULL);

    if (status == FSDP_OK) {
        return FSDP_ERR_IO;
    }
    fault.harm = HARM_NONE;
    memset(env->error, 0, sizeof(*env->error));
    status = e->pieces(sharded, show_piece, NULL);
    if (!says_load_again(env, status) ||
        !says_load_again(env, e->at(sharded, FSDP_BEGIN, 0)) ||
        !says_load_again(env, e->save_begin(sharded, &save))) {
        return FSDP_ERR_INTERNAL;
    }
    return e->load(sharded, directory);
}

/* Neither the new values nor the old ones can be read. */
static void torn_at_worst(enum harm harm)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct scene *s = make_scene(i, HELD_TRAINED);
        int status = FSDP_ERR_IO;

        testing.then = is_torn_and_loads;
        for (unsigned nth = 1; status == FSDP_ERR_IO; nth += 3) {
            struct fsdp_error why;
            struct shown shown;
            status = load(s, harm, nth, &shown, &why);
            if (!fault.hit) {
                fail_msg("%s was never torn", s->to.engine->name);
            }
            if (!shown_equal(&shown,
                             status == FSDP_OK ? &s->saved : &s->held)) {
                fail_msg("%s, read %u: %d, %s", s->to.engine->name, nth, status,
                         why.message);
            }
            shown_release(&shown);
        }
        assert_int_equal(status, FSDP_OK);
        end_scene(s);
    }
}

UNIT_TEST(torn)
{
    torn_at_worst(HARM_READS);
    torn_at_worst(HARM_NO_PLACE);
    torn_at_worst(HARM_FULL);
}

/* A full disk does not keep a sound checkpoint from being loaded. */
UNIT_TEST(no_place)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct scene *s = make_scene(i, HELD_TRAINED);

        for (enum harm harm = HARM_NO_PLACE; harm <= HARM_FULL; harm++) {
            struct fsdp_error why;
            struct shown shown;
            assert_int_equal(load(s, harm, 0, &shown, &why), FSDP_OK);
            assert_true(shown_equal(&shown, &s->saved));
            shown_release(&shown);
        }
        end_scene(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_read_fails),
        cmocka_unit_test(written_to_while_read),
        cmocka_unit_test(torn),
        cmocka_unit_test(no_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
