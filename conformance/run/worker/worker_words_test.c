/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_words_test.c - a worker waits until it is heard, also if a rank has
 * left it no descriptors and signals come; and it does not wait if there is no
 * supervisor.
 */
#include "run/worker/worker.h"
#include "run/worker/worker_words.h"
#include "testing/unit_testing.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WAITS_US = 300000,
    MOST_US = WAITS_US / 3, /* processor time while it waits */
    PATIENCE_S = 60
};

static void nothing(int number)
{
    (void)number;
}

static void no_descriptors(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_NOFILE, &none);
}

static void signals(void)
{
    const struct sigaction handled = {.sa_handler = nothing};
    const struct itimerval often = {{0, 1000}, {0, 1000}};

    (void)sigaction(SIGALRM, &handled, NULL);
    (void)setitimer(ITIMER_REAL, &often, NULL);
}

/* The child's exit code says how waiting ended. */
static pid_t wait_in_child(int theirs, int ours, void (*before)(void))
{
    const pid_t child = fork();

    if (child == 0) {
        int words;

        (void)alarm(PATIENCE_S);
        close(ours);
        dup2(theirs, WORKER_WORDS_FD);
        if (theirs != WORKER_WORDS_FD) {
            close(theirs);
        }
        if (worker_words_open(WORKER_WORDS_FD, &words) != FSDP_OK) {
            _exit(100);
        }
        before();
        _exit(worker_words_wait(WORKER_WORDS_FD));
    }
    close(theirs);
    return child;
}

/* How waiting ended after only this was said. */
static int heard(const char *said, size_t n, void (*before)(void))
{
    int two[2];
    int status = 0;
    struct rusage used;
    pid_t child;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two),
                     0);
    child = wait_in_child(two[1], two[0], before);
    assert_true(child > 0);
    usleep(WAITS_US);
    assert_int_equal(write(two[0], said, n), (ssize_t)n);
    close(two[0]);
    assert_int_equal(wait4(child, &status, 0, &used), child);
    assert_true(WIFEXITED(status));
    assert_in_range(used.ru_utime.tv_sec + used.ru_stime.tv_sec, 0, 0);
    assert_in_range(used.ru_utime.tv_usec + used.ru_stime.tv_usec, 0, MOST_US);
    return (int8_t)WEXITSTATUS(status);
}

static const char words[] = {WORKER_SUSPENDED, WORKER_GO_ON, WORKER_HEARD};

UNIT_TEST(test_heard)
{
    assert_int_equal(heard(words, 3, no_descriptors), FSDP_OK);
    assert_int_equal(heard(words, 3, signals), FSDP_OK);
}

UNIT_TEST(test_nobody)
{
    assert_int_equal(heard(words, 2, no_descriptors), FSDP_ERR_ABORTED);
    assert_int_equal(heard(words, 0, no_descriptors), FSDP_ERR_ABORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heard),
        cmocka_unit_test(test_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
