/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seals_test.c - records that change after their case, and a machine that
 * cannot look at them: a line says which of the two it was, and neither is
 * judged.
 */
#include "run/process/seals.h"

#include <fsdp/status.h>

#include "testing/unit_testing.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[32], record[64], file[96], said[64];

static void write_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{}", 2), 2);
    close(fd);
}

static int make_record(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/seals-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(record, sizeof(record), "%s/case", folder);
    snprintf(file, sizeof(file), "%s/case.json", record);
    snprintf(said, sizeof(said), "%s/said", folder);
    assert_int_equal(mkdir(record, 0777), 0);
    write_file(file);
    return 0;
}

static int remove_record(void **state)
{
    (void)state;
    unlink(file);
    rmdir(record);
    unlink(said);
    return rmdir(folder);
}

/* When the record is looked at without a free descriptor. */
enum moment {
    NEVER,
    AT_ADD,
    AT_CHECK
};

static void take_descriptors(struct rlimit *before)
{
    const int next = dup(STDIN_FILENO);

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    assert_int_equal(
        setrlimit(RLIMIT_NOFILE,
                  &(struct rlimit){(rlim_t)next, before->rlim_max}),
        0);
}

static void give_descriptors(const struct rlimit *before)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, before), 0);
}

/* Seals, changes a file if asked to, and checks. *added is what seals_add
 * returned, and text what was printed meanwhile. */
static uint32_t seal_and_check(enum moment without, bool change, int *added,
                               char text[512])
{
    struct seals s = {NULL, 0};
    struct rlimit limit;
    int err = dup(STDERR_FILENO);
    int to = open(said, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    uint32_t n;
    ssize_t got;

    assert_true(err >= 0 && to >= 0);
    dup2(to, STDERR_FILENO);
    if (without == AT_ADD) {
        take_descriptors(&limit);
    }
    *added = seals_add(&s, record);
    if (without == AT_ADD) {
        give_descriptors(&limit);
    }
    if (change) {
        chmod(file, 0600);
    }
    if (without == AT_CHECK) {
        take_descriptors(&limit);
    }
    n = seals_check(&s);
    if (without == AT_CHECK) {
        give_descriptors(&limit);
    }
    seals_release(&s);
    dup2(err, STDERR_FILENO);
    close(err);
    got = pread(to, text, 511, 0);
    text[got > 0 ? got : 0] = '\0';
    close(to);
    return n;
}

UNIT_TEST(test_kept)
{
    char text[512];
    int added;

    assert_int_equal(seal_and_check(NEVER, false, &added, text), 0);
    assert_int_equal(added, FSDP_OK);
    assert_string_equal(text, "");
    assert_int_equal(access(file, F_OK), 0);
}

UNIT_TEST(test_changed)
{
    char text[512];
    int added;

    assert_int_equal(seal_and_check(NEVER, true, &added, text), 1);
    assert_non_null(strstr(text, "the record of case was changed"));
    assert_int_not_equal(access(file, F_OK), 0);
}

UNIT_TEST(test_not_sealed)
{
    char text[512];
    int added;

    assert_int_equal(seal_and_check(AT_ADD, false, &added, text), 0);
    assert_int_equal(added, FSDP_ERR_IO);
    assert_non_null(strstr(text, "cannot be sealed: Too many open files"));
    assert_int_not_equal(access(file, F_OK), 0);
}

UNIT_TEST(test_not_looked_at)
{
    char text[512];
    int added;

    assert_int_equal(seal_and_check(AT_CHECK, false, &added, text), 1);
    assert_int_equal(added, FSDP_OK);
    assert_non_null(strstr(text, "after the run: Too many open files"));
    assert_null(strstr(text, "changed"));
    assert_int_not_equal(access(file, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept, make_record, remove_record),
        cmocka_unit_test_setup_teardown(test_changed, make_record,
                                        remove_record),
        cmocka_unit_test_setup_teardown(test_not_sealed, make_record,
                                        remove_record),
        cmocka_unit_test_setup_teardown(test_not_looked_at, make_record,
                                        remove_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
