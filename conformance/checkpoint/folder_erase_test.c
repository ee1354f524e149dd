/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_erase_test.c - what is removed with a folder, and what is not.
 */
#include "folder_erase.h"
#include "testing/unit_testing.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NOBODY = 65534
};

static char base[32];
static char path[64];

static const char *at(const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", base, name);
    return path;
}

static void make_file(const char *name)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static bool is_there(const char *name)
{
    struct stat s;

    return lstat(at(name), &s) == 0;
}

static int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/folder_erase.XXXXXX");
    return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **state)
{
    (void)state;
    folder_erase(base);
    return access(base, F_OK) == 0;
}

/* Also for users other than root: a folder that may not be looked into. */
UNIT_TEST(test_all_of_it)
{
    assert_int_equal(mkdir(at("a"), 0777), 0);
    assert_int_equal(mkdir(at("a/b"), 0777), 0);
    make_file("a/b/file");
    make_file("a/.hidden");
    assert_int_equal(chmod(at("a/b"), 0), 0);
    assert_int_equal(chmod(at("a"), 0500), 0);
    folder_erase(at("a"));
    assert_false(is_there("a"));
}

/* Two such folders, one in the other. Root may look into all folders, so a
 * child process of root tries it as another user, in a folder of its own. */
static void erase_closed(const char *top)
{
    static const char *const in[] = {"", "/a", "/a/b", "/a/b/c"};
    char name[96];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%s%s", top, in[i]);
        if (mkdir(name, 0777) != 0) {
            _exit(1);
        }
    }
    for (int i = 3; i > 0; i--) {
        snprintf(name, sizeof(name), "%s%s", top, in[i]);
        if (chmod(name, 0) != 0) {
            _exit(2);
        }
    }
    folder_erase(top);
    _exit(access(top, F_OK) == 0 ? 3 : 0);
}

UNIT_TEST(test_closed_in_closed)
{
    int status = 0;
    pid_t child;

    assert_int_equal(chmod(base, 0755), 0);
    assert_int_equal(mkdir(at("theirs"), 0777), 0);
    assert_int_equal(chmod(at("theirs"), 0777), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && setuid(NOBODY) != 0) {
            _exit(4);
        }
        erase_closed(at("theirs/top"));
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_TEST(test_links)
{
    assert_int_equal(mkdir(at("kept"), 0777), 0);
    make_file("kept/file");
    assert_int_equal(mkdir(at("a"), 0777), 0);
    assert_int_equal(symlink("../kept", at("a/link")), 0);
    folder_erase(at("a"));
    assert_false(is_there("a"));
    assert_int_equal(symlink("kept", at("link")), 0);
    folder_erase(at("link"));
    assert_false(is_there("link"));
    assert_true(is_there("kept/file"));
}

UNIT_TEST(test_no_folder)
{
    make_file("file");
    folder_erase(at("file"));
    assert_false(is_there("file"));
    folder_erase(at("nothing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_of_it),
                                       cmocka_unit_test(test_closed_in_closed),
                                       cmocka_unit_test(test_links),
                                       cmocka_unit_test(test_no_folder)};

    return cmocka_run_group_tests(tests, make_base, remove_base) != 0;
}
