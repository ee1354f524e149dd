/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_test.c - what counts as a way out of the process, and what does not.
 */
#include "run/process/orphans.h"
#include "run/process/process.h"

#include "testing/unit_testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE = 4096
};

static uint32_t channels(void)
{
    struct process_view view;

    process_look(&view, PROCESS_ALL_WAYS);
    return view.channels;
}

UNIT_TEST(test_sockets)
{
    uint32_t before = channels();
    int two[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, two), 0);
    assert_int_equal(channels(), before + 2);
    close(two[0]);
    close(two[1]);
    assert_int_equal(channels(), before);
}

static char *map(int fd, size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

/* A file counts once, however many pieces it is mapped in. */
UNIT_TEST(test_files)
{
    uint32_t before = channels();
    int fd = memfd_create("process-test", MFD_CLOEXEC);
    struct process_view view;
    uint32_t shared;
    char *p;

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
    assert_int_equal(channels(), before + 1);
    p = map(fd, 3 * PAGE);
    assert_int_equal(channels(), before + 2);
    assert_int_equal(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(channels(), before + 2);
    process_look(&view, PROCESS_DESCRIPTORS);
    shared = channels() - view.channels;
    assert_true(shared >= 1);
    process_look(&view, PROCESS_NO_WAYS);
    assert_int_equal(view.channels, 0);
    assert_true(view.resident_bytes > 0);
    munmap(p, 3 * PAGE);
    process_look(&view, PROCESS_DESCRIPTORS);
    assert_int_equal(channels() - view.channels, shared - 1);
    close(fd);
    assert_int_equal(channels(), before);
}

/* Pinned memory does not count: the ranks were forked before. */
UNIT_TEST(test_pinned)
{
    uint32_t before = channels();
    char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(channels(), before);
    munmap(p, PAGE);
}

UNIT_TEST(test_lines)
{
    struct process_file f;

    assert_true(process_shared_mapping(
        "7f00-7f01 rw-s 00001000 00:1a 42  /dev/shm/nccl-abc\n", &f));
    assert_int_equal(f.major, 0);
    assert_int_equal(f.minor, 0x1a);
    assert_int_equal(f.inode, 42);
    assert_true(process_shared_mapping(
        "7f00-7f01 ---s 00000000 00:01 7 /memfd:x (deleted)\n", &f));
    assert_false(process_shared_mapping(
        "7f00-7f01 rw-p 00000000 00:01 7 /memfd:x (deleted)\n", &f));
    assert_false(process_shared_mapping(
        "7f00-7f01 rw-s 00000000 00:06 470 /dev/nvidia0\n", &f));
    assert_false(process_shared_mapping(
        "7f00-7f01 rw-s 00000000 00:05 9 /dev/zero (deleted)\n", &f));
    assert_false(process_shared_mapping("", &f));
    assert_true(process_is_driver("/dev/nvidia-uvm"));
    assert_false(process_is_driver("socket:[1]"));
    assert_false(process_is_driver("/dev/zero"));
}

static void *map_private(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

/* Memory that was touched and given back before does not count. */
UNIT_TEST(test_peak)
{
    enum {
        BYTES = 64 << 20
    };
    struct process_view before;
    struct process_view after;
    char *p = map_private(BYTES);

    memset(p, 1, BYTES);
    munmap(p, BYTES);
    process_look(&before, PROCESS_ALL_WAYS);
    assert_true(before.peak_bytes >= BYTES);
    if (access("/proc/self/clear_refs", W_OK) != 0) {
        skip();
    }
    process_forget_peak();
    process_look(&after, PROCESS_ALL_WAYS);
    assert_true(after.peak_bytes < after.resident_bytes + BYTES / 2);
}

/* A child's memory counts when it has been waited for; and a grandchild that
 * was left behind becomes a child. */
UNIT_TEST(test_children)
{
    enum {
        BYTES = 64 << 20
    };
    struct process_view view;
    int ready[2];
    char c;
    pid_t pid;

    orphans_adopt();
    assert_false(orphans_are_there());
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            memset(map_private(BYTES), 1, BYTES);
            (void)!write(ready[1], "x", 1);
            for (;;) {
                pause();
            }
        }
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    assert_true(orphans_are_there());
    orphans_end();
    assert_false(orphans_are_there());
    process_look(&view, PROCESS_ALL_WAYS);
    assert_true(view.child_bytes >= BYTES);
}

/* Memory that is shared since before a fork becomes a process's when it is
 * first touched: what is touched before a measurement is no growth. */
UNIT_TEST(test_touched)
{
    const size_t bytes = 8 << 20;
    const size_t more = 1 << 20; /* the kernel does not count exactly */
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct process_view before;
    struct process_view after;

    assert_ptr_not_equal(p, MAP_FAILED);
    process_look(&before, PROCESS_ALL_WAYS);
    process_touch(p, bytes);
    process_look(&after, PROCESS_ALL_WAYS);
    assert_in_range(after.resident_bytes, before.resident_bytes + bytes - more,
                    before.resident_bytes + bytes + more);
    memset(p, 1, bytes);
    process_look(&before, PROCESS_ALL_WAYS);
    assert_in_range(before.resident_bytes, after.resident_bytes - more,
                    after.resident_bytes + more);
    munmap(p, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sockets),  cmocka_unit_test(test_touched),
        cmocka_unit_test(test_files),    cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_lines),    cmocka_unit_test(test_peak),
        cmocka_unit_test(test_children),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
