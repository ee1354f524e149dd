/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_durability_test.c - whatever happens to a save, the checkpoint
 * before it is there: killed at any moment, each call of the system failing in
 * turn, a full disk.
 *
 * The test is linked with --wrap of the calls that write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint.h"
#include "checkpoint_faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILLS = 240, /* the last ones at some time, the others at some call */
    TIMED = 40,
    ELEMENTS = 3000,
    MANY_ELEMENTS = 400000, /* of which whole blocks go to the disk directly */
    MAX_SITES = 2000
};

/* ---- A model of one rank ---------------------------------------------------
 */

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

struct rank {
    struct checkpoint_table table;
    struct checkpoint_slice slice[3];
    uint64_t elements;
    float value; /* of every element */
};

static int give(void *context, uint32_t i, uint64_t at, uint64_t n, float *to)
{
    const struct rank *r = context;

    (void)i;
    (void)at;
    for (uint64_t k = 0; k < n; k++) {
        to[k] = r->value;
    }
    return FSDP_OK;
}

static void make_rank(struct rank *r, uint64_t elements)
{
    static const char *const name[] = {"a", "b", "optim.state.a.exp_avg"};
    const uint64_t shape[] = {elements / 10, 10};

    memset(r, 0, sizeof(*r));
    r->elements = elements;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(
            checkpoint_table_add(&r->table, name[i], 2, shape, i == 2, NULL),
            FSDP_OK);
        r->slice[i] = (struct checkpoint_slice){i, 0, elements};
    }
}

static int save(struct rank *r, const char *directory, uint32_t form,
                float value, struct fsdp_error *error)
{
    const struct fsdp_env env = {
        .size = sizeof(env), .world = 1, .error = error, .exchange = exchange};
    const struct fsdp_save how = {
        .size = sizeof(how), .form = form, .directory = directory};
    const struct checkpoint_request request = {
        .env = &env,
        .save = &how,
        .world = 1,
        .shards = 1,
        .replicas = 1,
        .layout = "flat",
        .optimizer = "adamw",
        .table = &r->table,
        .source = {r->slice, 3, give, r},
        .state = {(uint64_t)value, {value, value}}};
    struct checkpoint_saving *s;

    r->value = value;
    memset(error, 0, sizeof(*error));
    FSDP_TRY(checkpoint_begin(&request, &s));
    checkpoint_write(s);
    return checkpoint_finish(&env, s);
}

/* The value that all elements of the newest checkpoint have; -1: none. */
static float load(const struct rank *r, const char *directory)
{
    static float data[MANY_ELEMENTS];
    char why[CHECKPOINT_WHY_BYTES] = "";
    struct checkpoint *c;
    float value;

    if (checkpoint_open(directory, &c, why) != FSDP_OK) {
        return -1.0f;
    }
    if (checkpoint_verify(c, 0, 1, why) != FSDP_OK ||
        checkpoint_expect(c, &r->table, why) != FSDP_OK) {
        fail_msg("%s", why);
    }
    value = (float)checkpoint_state_of(c).step;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(checkpoint_read(c, r->table.entry[i].name, 0,
                                         r->elements, data, why),
                         FSDP_OK);
        for (uint32_t k = 0; k < r->elements; k++) {
            assert_true(data[k] == value);
        }
    }
    checkpoint_close(c);
    return value;
}

static int erase(const char *path, const struct stat *s, int type,
                 struct FTW *ftw)
{
    (void)s;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

static uint32_t count_partial(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *e;
    uint32_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        n += strncmp(e->d_name, ".partial", 8) == 0;
    }
    closedir(d);
    return n;
}

/* ---- Tests -----------------------------------------------------------------
 */

/* Saves 1, 2, 3, ... and tells of each that is done. */
static void save_for_ever(struct rank *r, const char *directory, float from,
                          int tell)
{
    struct fsdp_error error;

    for (uint32_t i = 0;; i++) {
        float value = from + (float)i;
        uint32_t form =
            (uint32_t)value % 2 ? FSDP_SAVE_SHARDED : FSDP_SAVE_FULL;
        if (save(r, directory, form, value, &error) != FSDP_OK ||
            __real_write(tell, &value, sizeof(value)) != sizeof(value)) {
            _exit(1);
        }
    }
}

/* What was told of is there, or what came after it. */
static void killed(void **state)
{
    char directory[] = "/tmp/checkpoint_durability_test.XXXXXX";
    struct rank r;
    float told = 0.0f;
    uint64_t random = 0x9e3779b97f4a7c15u;
    uint32_t half = 0;

    (void)state;
    assert_non_null(mkdtemp(directory));
    make_rank(&r, ELEMENTS);
    for (uint32_t i = 0; i < KILLS; i++) {
        int ends[2];
        float now;
        float value;
        pid_t child;

        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (child == 0) {
            /* Between two calls that write nothing changes on the disk. */
            fault.kill_at = i < KILLS - TIMED ? 1 + (random >> 33) % 100 : 0;
            save_for_ever(&r, directory, told + 1.0f, ends[1]);
        }
        (void)close(ends[1]);
        if (i >= KILLS - TIMED) {
            (void)usleep((useconds_t)(random >> 33) % 30000);
            assert_int_equal(kill(child, SIGKILL), 0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        while (read(ends[0], &value, sizeof(value)) == sizeof(value)) {
            told = value;
        }
        (void)close(ends[0]);
        half += count_partial(directory);
        now = load(&r, directory);
        if (!(told == 0.0f && now == -1.0f) && now != told &&
            now != told + 1.0f) {
            fail_msg("kill %u: %g was saved, %g is there", i, (double)told,
                     (double)now);
        }
        told = now > 0.0f ? now : told;
    }
    print_message("%d kills, %u in the middle of a save; %g saves\n", KILLS,
                  half, (double)told);
    assert_true(half > 10 && told > 10.0f);
    checkpoint_table_release(&r.table);
    (void)nftw(directory, erase, 16, FTW_DEPTH | FTW_PHYS);
}

static void fail_each(uint32_t form, uint64_t elements, int error, bool partly)
{
    char directory[] = "/tmp/checkpoint_durability_test.XXXXXX";
    struct fsdp_error why;
    struct rank r;
    uint64_t sites = 0;
    float good = 1.0f;

    assert_non_null(mkdtemp(directory));
    make_rank(&r, elements);
    assert_int_equal(save(&r, directory, form, good, &why), FSDP_OK);
    for (uint64_t nth = 1; nth < MAX_SITES; nth++) {
        int status;

        fault.nth = nth;
        fault.n = 0;
        fault.error = error;
        fault.partly = partly;
        fault.hit = false;
        status = save(&r, directory, form, good + 1.0f, &why);
        fault.nth = 0;
        if (!fault.hit) {
            assert_int_equal(status, FSDP_OK);
            break;
        }
        sites++;
        if (status == FSDP_OK) { /* a close after all was done, a short write */
            good += 1.0f;
        } else {
            assert_true(why.message[0] != '\0');
        }
        /* Only the flush behind the rename leaves it open which one it is. */
        if (load(&r, directory) == good + 1.0f && status != FSDP_OK) {
            good += 1.0f;
        }
        assert_true(load(&r, directory) == good);
        assert_true(count_partial(directory) <= 1);
    }
    print_message("%llu calls failed with %s\n", (unsigned long long)sites,
                  strerror(error));
    assert_true(sites > 15 && sites < MAX_SITES - 1);
    checkpoint_table_release(&r.table);
    (void)nftw(directory, erase, 16, FTW_DEPTH | FTW_PHYS);
}

static void each_call_fails(void **state)
{
    (void)state;
    fail_each(FSDP_SAVE_SHARDED, ELEMENTS, EIO, false);
    fail_each(FSDP_SAVE_FULL, ELEMENTS, EIO, false);
    fail_each(FSDP_SAVE_SHARDED, ELEMENTS, ENOSPC, true);
    fail_each(FSDP_SAVE_SHARDED, ELEMENTS, EINTR, false);
    fail_each(FSDP_SAVE_SHARDED, MANY_ELEMENTS, EIO, false);
    fail_each(FSDP_SAVE_SHARDED, MANY_ELEMENTS, ENOSPC, true);
    fail_each(FSDP_SAVE_SHARDED, MANY_ELEMENTS, EINVAL, false);
}

/* A disk of its own, which grows full. */
static void full_disk(void **state)
{
    char directory[] = "/tmp/checkpoint_durability_test.XXXXXX";
    struct fsdp_error why;
    struct rank r;
    float good = 0.0f;
    int status;

    (void)state;
    assert_non_null(mkdtemp(directory));
    if (mount("none", directory, "tmpfs", 0, "size=256k") != 0) {
        (void)rmdir(directory);
        print_message("no tmpfs is to be had here: not shown\n");
        skip();
    }
    make_rank(&r, ELEMENTS);
    while (
        (status = save(&r, directory,
                       (uint32_t)good % 2 ? FSDP_SAVE_FULL : FSDP_SAVE_SHARDED,
                       good + 1.0f, &why)) == FSDP_OK) {
        good += 1.0f;
    }
    assert_int_equal(status, FSDP_ERR_IO);
    assert_non_null(strstr(why.message, strerror(ENOSPC)));
    assert_true(good >= 1.0f);
    assert_true(load(&r, directory) == good);
    assert_int_equal(count_partial(directory), 0);
    assert_int_equal(umount(directory), 0);
    checkpoint_table_release(&r.table);
    assert_int_equal(rmdir(directory), 0);
}

/* The newest whole one, and the reason says what was passed over. */
static void incomplete_is_passed_over(void **state)
{
    char directory[] = "/tmp/checkpoint_durability_test.XXXXXX";
    char path[128];
    char why[CHECKPOINT_WHY_BYTES];
    struct fsdp_error error;
    struct checkpoint *c;
    struct rank r;

    (void)state;
    assert_non_null(mkdtemp(directory));
    make_rank(&r, ELEMENTS);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(
            save(&r, directory, FSDP_SAVE_SHARDED, (float)i, &error), FSDP_OK);
    }
    (void)snprintf(path, sizeof(path), "%s/checkpoint-000003/manifest.json",
                   directory);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof(path),
                   "%s/checkpoint-000002/state-00001.safetensors", directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(checkpoint_open(directory, &c, why), FSDP_OK);
    assert_int_equal(checkpoint_state_of(c).step, 1);
    assert_non_null(strstr(checkpoint_reason(c), "checkpoint-000003"));
    assert_non_null(strstr(checkpoint_reason(c), "state-00001"));
    assert_non_null(
        strstr(checkpoint_reason(c), "checkpoint-000001 is the newest"));
    checkpoint_close(c);
    checkpoint_table_release(&r.table);
    (void)nftw(directory, erase, 16, FTW_DEPTH | FTW_PHYS);
}

static void refused_places(void **state)
{
    char file[] = "/tmp/checkpoint_durability_test.XXXXXX";
    char below[80];
    struct fsdp_error why;
    struct rank r;
    int fd = mkstemp(file);

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    make_rank(&r, ELEMENTS);
    (void)snprintf(below, sizeof(below), "%s/below", file);
    assert_int_equal(save(&r, file, FSDP_SAVE_SHARDED, 1.0f, &why),
                     FSDP_ERR_IO);
    assert_non_null(strstr(why.message, "directory"));
    assert_int_equal(save(&r, below, FSDP_SAVE_SHARDED, 1.0f, &why),
                     FSDP_ERR_IO);
    assert_int_equal(save(&r, "", FSDP_SAVE_SHARDED, 1.0f, &why),
                     FSDP_ERR_INVALID);
    assert_int_equal(save(&r, file, 99, 1.0f, &why), FSDP_ERR_INVALID);
    checkpoint_table_release(&r.table);
    assert_int_equal(unlink(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed),
        cmocka_unit_test(each_call_fails),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(incomplete_is_passed_over),
        cmocka_unit_test(refused_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
