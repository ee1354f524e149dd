/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales_test.c - weighs another process: what it holds, held for a moment, or
 * has in files is seen; what is shared or in a file it maps is not counted.
 */
#include "run/witness/rank_line.h"
#include "run/witness/scales.h"
#include "testing/unit_testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HELD = 32 << 20,
    FILED = 300 * 1024,
    MAPPED = 128 * 1024, /* whole pages */
    /* Noise: before Linux 6.17 each processor keeps some pages of each of three
     * counts to itself, and resident pages of files may be taken back between
     * two weights. */
    ROUGHLY = 8 << 20
};

static char *map(int how)
{
    char *p =
        mmap(NULL, HELD, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : memset(p, 1, HELD);
}

/* ---- What the other process does between two weights -------------------- */

static void hold(void)
{
    (void)map(MAP_PRIVATE);
}

static void hold_shared(void)
{
    (void)map(MAP_SHARED);
}

static void hold_for_a_moment(void)
{
    (void)munmap(map(MAP_PRIVATE), HELD);
}

static char folder[] = "/tmp/scales-test-XXXXXX";

static void write_file(bool stays)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "%s/below/file", folder);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    (void)!ftruncate(fd, FILED);
    if (!stays) {
        (void)unlink(path);
    }
}

static void keep_file(void)
{
    write_file(true);
}

static void keep_unlinked(void)
{
    write_file(false);
}

/* Maps a file that has no name and no descriptor. */
static void map_unlinked(void)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "%s/mapped", folder);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    (void)!ftruncate(fd, MAPPED);
    (void)mmap(NULL, MAPPED, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)unlink(path);
    close(fd);
}

/* Makes an empty file, and a link to nothing. */
static void name_files(void)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/name", folder);
    close(open(path, O_CREAT | O_RDWR, 0600));
    snprintf(path, sizeof(path), "%s/link", folder);
    (void)!symlink("nowhere", path);
}

static void forget_names(void)
{
    static const char *const all[] = {"name", "link"};
    char path[64];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, all[i]);
        (void)unlink(path);
    }
}

static bool weigh(struct scales *s, uint32_t rank, pid_t pid, uint32_t point)
{
    return scales_weigh(s, rank, pid, &(struct rank_line_said){.word = point});
}

/* ---- Weighed before and behind it ---------------------------------------- */

static struct record_weight weigh_around(void (*what)(void))
{
    const char *const folders[] = {folder, NULL};
    struct record_weight weight = {0};
    struct scales scales;
    int go[2];
    int done[2];
    char c;
    pid_t pid;

    scales_begin(&scales, folders, &weight);
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    pid = fork();
    if (pid == 0) {
        (void)!read(go[0], &c, 1);
        what();
        (void)!write(done[1], "x", 1);
        for (;;) {
            pause();
        }
    }
    assert_true(pid > 0);
    assert_true(weigh(&scales, 0, pid, RANK_LINE_BEFORE));
    assert_int_equal(write(go[1], "x", 1), 1);
    assert_int_equal(read(done[0], &c, 1), 1);
    assert_true(weigh(&scales, 0, pid, RANK_LINE_STEP));
    assert_true(weigh(&scales, 0, pid, RANK_LINE_STEP));
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(done[i]);
    }
    if (weight.weighed == 0) {
        print_message("skipped: this kernel does not say what is held\n");
        skip();
    }
    assert_int_equal(weight.steps, 2);
    assert_true(weight.half > 0 && weight.last > 0);
    return weight;
}

UNIT_TEST(test_held)
{
    struct record_weight w = weigh_around(hold);

    assert_in_range(w.rest, HELD, HELD + ROUGHLY);
    assert_in_range(w.peak, HELD - ROUGHLY, HELD + ROUGHLY);
    assert_int_equal(w.files, 0);
}

UNIT_TEST(test_shared)
{
    struct record_weight w = weigh_around(hold_shared);

    assert_in_range(w.rest, 0, ROUGHLY);
    assert_in_range(w.peak, 0, ROUGHLY);
}

UNIT_TEST(test_moment)
{
    struct record_weight w = weigh_around(hold_for_a_moment);

    assert_in_range(w.rest, 0, ROUGHLY);
    assert_in_range(w.peak, HELD - ROUGHLY, HELD + ROUGHLY);
}

UNIT_TEST(test_file)
{
    assert_int_equal(weigh_around(keep_file).files, FILED + strlen("file"));
    /* Files that were there before any rank are not counted. */
    assert_int_equal(weigh_around(hold_shared).files, 0);
}

UNIT_TEST(test_unlinked)
{
    assert_int_equal(weigh_around(keep_unlinked).files, FILED);
}

/* A file that was open before the rank was first weighed does not count for its
 * engine. */
UNIT_TEST(test_inherited)
{
    keep_unlinked(); /* here, and so in the other process */
    assert_int_equal(weigh_around(hold_shared).files, 0);
}

UNIT_TEST(test_mapped)
{
    assert_int_equal(weigh_around(map_unlinked).files, MAPPED);
}

UNIT_TEST(test_names)
{
    assert_int_equal(weigh_around(name_files).files,
                     strlen("name") + strlen("link") + strlen("nowhere"));
    forget_names();
}

/* A peak is forgotten once, and not where it is of interest. */
UNIT_TEST(test_forgets_once)
{
    struct record_weight weight = {0};
    struct scales scales;

    scales_begin(&scales, NULL, &weight);
    assert_true(weigh(&scales, 0, getpid(), RANK_LINE_FORGET));
    assert_true(scales.of[0].forgot);
    scales_begin(&scales, NULL, &weight);
    assert_true(weigh(&scales, 0, getpid(), RANK_LINE_BEFORE));
    if (weight.weighed == 0) {
        skip();
    }
    hold_for_a_moment();
    assert_true(weigh(&scales, 0, getpid(), RANK_LINE_FORGET));
    assert_false(scales.of[0].forgot);
    assert_true(weigh(&scales, 0, getpid(), RANK_LINE_STEP));
    assert_in_range(weight.peak, HELD - ROUGHLY, HELD + ROUGHLY);
}

/* A process that does not exist, or a rank number that is too large. */
UNIT_TEST(test_nobody)
{
    struct record_weight weight = {0};
    struct scales scales;

    scales_begin(&scales, NULL, &weight);
    assert_true(weigh(&scales, 0, 0x3fffffff, RANK_LINE_BEFORE));
    assert_int_equal(weight.weighed, 0);
    assert_true(weigh(&scales, 0, 0x3fffffff, RANK_LINE_STEP));
    assert_int_equal(weight.steps, 0);
    assert_false(weigh(&scales, SCALES_RANKS, getpid(), RANK_LINE_BEFORE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held),         cmocka_unit_test(test_shared),
        cmocka_unit_test(test_moment),       cmocka_unit_test(test_unlinked),
        cmocka_unit_test(test_file),         cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_mapped),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_forgets_once), cmocka_unit_test(test_inherited),
    };
    char path[64];
    int failed;

    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(path, sizeof(path), "%s/below", folder);
    (void)mkdir(path, 0777);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(path, sizeof(path), "%s/below/file", folder);
    (void)unlink(path);
    snprintf(path, sizeof(path), "%s/below", folder);
    (void)rmdir(path);
    return rmdir(folder) != 0 || failed != 0;
}
