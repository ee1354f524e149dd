/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_guard_test.c - a change that a call makes in the process is found in
 * that call; or, if not everything was compared after it, at the end of the
 * rank, with words that say since when it may be there.
 */
#include "run/witness/call_guard.h"

#include "testing/unit_testing.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALLS = 7 /* calls of zero_grad; after the first all is compared */
};

static uint32_t spoilt_at; /* this call of zero_grad, from 0, spoils */
static uint32_t calls;
static void (*spoil)(void);

static void ignore_hangup(void)
{
    (void)signal(SIGHUP, SIG_IGN);
}

static void lower_limit(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_STACK, &limit), 0);
    limit.rlim_cur = limit.rlim_cur == 4 << 20 ? 5 << 20 : 4 << 20;
    assert_int_equal(setrlimit(RLIMIT_STACK, &limit), 0);
}

static void set_variable(void)
{
    assert_int_equal(setenv("CALL_GUARD_TEST", "a value of some bytes", 1), 0);
}

/* Changes the last byte of the variable alone. */
static void change_variable(void)
{
    assert_int_equal(setenv("CALL_GUARD_TEST", "a value of some byteS", 1), 0);
}

static void block_signal(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int zero_grad(struct fsdp_sharded *s)
{
    (void)s;
    if (calls++ == spoilt_at) {
        spoil();
    }
    return FSDP_OK;
}

static void destroy(struct fsdp_sharded *s)
{
    (void)s;
}

/* A rank's calls; `how` is done in call `at`. */
static void run(struct record_rank *out, void (*how)(void), uint32_t at)
{
    struct fsdp_engine e = {.zero_grad = zero_grad, .destroy = destroy};

    spoil = how;
    spoilt_at = at;
    calls = 0;
    memset(out, 0, sizeof(*out));
    call_guard_begin(out, "", true);
    call_guard_wrap(&e);
    for (uint32_t step = 0; step < CALLS; step++) {
        call_guard_step(step);
        assert_int_equal(e.zero_grad(NULL), FSDP_OK);
    }
    e.destroy(NULL);
    call_guard_begin(NULL, "", true);
}

static void check(const struct record_rank *out, const char *call,
                  uint32_t step, const char *what)
{
    assert_int_equal(out->n_changes, 1);
    assert_string_equal(out->change[0].call, call);
    assert_int_equal(out->change[0].step, step);
    assert_non_null(strstr(out->change[0].what, what));
}

UNIT_TEST(test_first_call)
{
    static struct record_rank out;

    run(&out, ignore_hangup, 0);
    check(&out, "zero_grad", 0, "handler of signal 1: another one");
    assert_null(strstr(out.change[0].what, "looked at last"));
    (void)signal(SIGHUP, SIG_DFL);
}

UNIT_TEST(test_later_call)
{
    static struct record_rank out;

    run(&out, ignore_hangup, 3);
    check(&out, "destroy", CALLS - 1,
          "looked at last after zero_grad of step 0");
    (void)signal(SIGHUP, SIG_DFL);
    run(&out, lower_limit, 3);
    check(&out, "destroy", CALLS - 1,
          "looked at last after zero_grad of step 0");
}

UNIT_TEST(test_what_is_always_asked)
{
    static struct record_rank out;
    sigset_t before;

    run(&out, set_variable, 3);
    check(&out, "zero_grad", 3, "environment");
    run(&out, change_variable, 3);
    check(&out, "zero_grad", 3, "environment");
    (void)unsetenv("CALL_GUARD_TEST");
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    run(&out, block_signal, 3);
    check(&out, "zero_grad", 3, "signal mask: 0x");
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

UNIT_TEST(test_nothing)
{
    static struct record_rank out;

    run(&out, ignore_hangup, CALLS);
    assert_int_equal(out.n_changes, 0);
}

static int unguarded(struct fsdp_sharded *s)
{
    (void)s;
    return FSDP_OK;
}

/* All that follows `shard` in the engine is a function. */
UNIT_TEST(test_every_function)
{
    enum {
        FIRST = offsetof(struct fsdp_engine, shard) / sizeof(void *),
        ALL = sizeof(struct fsdp_engine) / sizeof(void *)
    };
    int (*const one)(struct fsdp_sharded *) = unguarded;
    union {
        struct fsdp_engine engine;
        int (*function[ALL])(struct fsdp_sharded *);
    } u = {.engine = {0}};

    for (size_t i = FIRST; i < ALL; i++) {
        u.function[i] = one;
    }
    call_guard_wrap(&u.engine);
    for (size_t i = FIRST; i < ALL; i++) {
        if (u.function[i] == one) {
            fail_msg("function %zu is called without a guard", i - FIRST);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_call),
        cmocka_unit_test(test_later_call),
        cmocka_unit_test(test_what_is_always_asked),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_every_function),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
