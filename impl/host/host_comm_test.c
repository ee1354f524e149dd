/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_comm_test.c - collectives on streams over a communicator that only
 * notes what it is given; and host_open and host_close of an env.
 */
#include "host_comm.h"
#include "host_device.h"
#include "host_env.h"
#include "host_testing.h"

#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    MOST = 3000
};

/* Plain memory but for `aborted`: collectives are one at a time. */
struct fake {
    uint32_t unit[MOST];
    uint32_t n;
    int status; /* of the collective whose unit is fails_at */
    uint32_t fails_at;
    bool blocks; /* until aborted */
    _Atomic int32_t aborted;
    uint32_t exchanged_at;
};

static int fake_run(void *self, struct fsdp_stream *stream,
                    const struct fsdp_collective *c)
{
    struct fake *f = self;

    assert_null(stream);
    while (f->blocks && !f->aborted) {
        sleep_ms(1);
    }
    f->unit[f->n++] = c->unit;
    if (f->aborted) {
        return FSDP_ERR_ABORTED;
    }
    return c->unit == f->fails_at ? f->status : FSDP_OK;
}

static void fake_abort(void *self, int32_t status)
{
    ((struct fake *)self)->aborted = status;
}

static int fake_exchange(void *self, const void *mine, uint64_t bytes,
                         void *all)
{
    struct fake *f = self;

    memcpy(all, mine, bytes);
    f->exchanged_at = f->n;
    return FSDP_OK;
}

struct fixture {
    struct fake fake;
    struct fsdp_comm real;
    struct fsdp_comm comm;
    struct fsdp_device device;
    struct fsdp_stream *s[3];
};

static int open_fixture(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));

    if (!x || host_device_open(SIMD_PORTABLE, &x->device) != FSDP_OK) {
        return -1;
    }
    x->fake.fails_at = UINT32_MAX;
    x->real = (struct fsdp_comm){.size = sizeof(x->real),
                                 .self = &x->fake,
                                 .run = fake_run,
                                 .abort = fake_abort};
    for (int i = 0; i < 3; i++) {
        if (x->device.stream_open(x->device.self, "comm", &x->s[i]) != 0) {
            return -1;
        }
    }
    *state = x;
    return host_comm_open(&x->real, &x->comm);
}

static int close_fixture(void **state)
{
    struct fixture *x = *state;

    host_device_close(&x->device);
    host_comm_close(&x->comm);
    host_comm_close(&x->comm);
    free(x);
    return 0;
}

static int barrier(struct fixture *x, struct fsdp_stream *stream, uint32_t unit)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_BARRIER,
                                .dim = FSDP_DIM_WORLD,
                                .unit = unit};
    int status = x->comm.run(x->comm.self, stream, &c);

    memset(&c, 0xa5, sizeof(c)); /* it was read during the call */
    return status;
}

static void push_gate(struct fsdp_stream *s, struct gate *gate)
{
    assert_int_equal(host_stream_push(host_device_queue(s), pass_gate, &gate,
                                      sizeof(struct gate *), 0),
                     FSDP_OK);
}

static int sync_all(struct fixture *x)
{
    return x->device.sync(x->device.self, NULL);
}

/* The stream of the first collective is held up; no later one overtakes it. */
static void test_order_of_calls(void **state)
{
    struct fixture *x = *state;
    struct gate gate = {0};

    push_gate(x->s[0], &gate);
    assert_int_equal(barrier(x, x->s[0], 0), FSDP_OK);
    assert_int_equal(barrier(x, x->s[1], 1), FSDP_OK);
    assert_int_equal(barrier(x, x->s[2], 2), FSDP_OK);
    assert_int_equal(barrier(x, x->s[1], 3), FSDP_OK);
    sleep_ms(20);
    assert_int_equal(x->fake.n, 0); /* the gate is closed */
    gate.open = 1;
    assert_int_equal(barrier(x, NULL, 4), FSDP_OK);
    assert_int_equal(x->fake.n, 5); /* has finished on return */
    for (uint32_t i = 5; i < MOST; i++) {
        struct fsdp_stream *s = x->s[i * 7919u % 3];
        assert_int_equal(barrier(x, s, i), FSDP_OK);
    }
    assert_int_equal(host_comm_drain(&x->comm), FSDP_OK);
    assert_int_equal(x->fake.n, MOST);
    for (uint32_t i = 0; i < MOST; i++) {
        assert_int_equal(x->fake.unit[i], i);
    }
    assert_int_equal(sync_all(x), FSDP_OK);
}

/* A stream may be closed when it has had a collective. */
static void test_closed_stream(void **state)
{
    struct fixture *x = *state;

    assert_int_equal(barrier(x, x->s[0], 0), FSDP_OK);
    x->device.stream_close(x->device.self, x->s[0]);
    assert_int_equal(barrier(x, x->s[1], 1), FSDP_OK);
    assert_int_equal(sync_all(x), FSDP_OK);
    assert_int_equal(x->fake.n, 2);
}

static void test_failure(void **state)
{
    struct fixture *x = *state;

    x->fake.fails_at = 1;
    x->fake.status = FSDP_ERR_COMM;
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(barrier(x, x->s[i % 2], i), FSDP_OK);
    }
    assert_int_equal(host_comm_drain(&x->comm), FSDP_ERR_COMM);
    assert_int_equal(barrier(x, NULL, 4), FSDP_ERR_COMM);
    assert_int_equal(x->fake.n, 2); /* none was begun after that */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(x->device.sync(x->device.self, x->s[i]),
                         FSDP_ERR_COMM);
    }
    assert_int_equal(x->device.sync(x->device.self, x->s[2]), FSDP_OK);
}

/* A call without a stream reports its failure to the caller, which may go
 * on. */
static void test_failure_without_stream(void **state)
{
    struct fixture *x = *state;

    x->fake.fails_at = 1;
    x->fake.status = FSDP_ERR_UNSUPPORTED;
    assert_int_equal(barrier(x, NULL, 1), FSDP_ERR_UNSUPPORTED);
    assert_int_equal(barrier(x, NULL, 2), FSDP_OK);
    assert_int_equal(barrier(x, x->s[0], 3), FSDP_OK);
    assert_int_equal(sync_all(x), FSDP_OK);
    assert_int_equal(x->comm.run(x->comm.self, NULL, NULL), FSDP_ERR_INVALID);
}

/* A stream that has failed does not hold up the others' collectives. */
static void test_failed_stream(void **state)
{
    struct fixture *x = *state;
    int status = FSDP_ERR_DEVICE;

    assert_int_equal(host_stream_push(host_device_queue(x->s[0]), fail_with,
                                      &status, sizeof(status), 0),
                     FSDP_OK);
    assert_int_equal(barrier(x, x->s[0], 0), FSDP_OK);
    assert_int_equal(barrier(x, x->s[1], 1), FSDP_OK);
    assert_int_equal(x->device.sync(x->device.self, x->s[1]), FSDP_ERR_DEVICE);
    assert_int_equal(x->fake.n, 0);
}

static void test_abort(void **state)
{
    struct fixture *x = *state;

    x->fake.blocks = true;
    assert_int_equal(barrier(x, x->s[0], 0), FSDP_OK);
    assert_int_equal(barrier(x, x->s[1], 1), FSDP_OK);
    x->comm.abort(x->comm.self, FSDP_ERR_INVALID);
    x->comm.abort(x->comm.self, FSDP_ERR_INVALID);
    assert_int_equal(sync_all(x), FSDP_ERR_ABORTED);
    assert_int_equal(barrier(x, NULL, 2), FSDP_ERR_ABORTED);
    assert_int_equal(x->fake.aborted, FSDP_ERR_INVALID);
}

static void test_refused(void **state)
{
    struct fixture *x = *state;
    struct fsdp_comm out;

    x->real.takes_streams = 1;
    assert_int_equal(host_comm_open(&x->real, &out), FSDP_ERR_UNSUPPORTED);
    x->real.takes_streams = 0;
    x->real.place = FSDP_PLACE_CUDA;
    assert_int_equal(host_comm_open(&x->real, &out), FSDP_ERR_UNSUPPORTED);
    host_comm_close(&out);
}

/* ---- The env ----------------------------------------------------------- */

static struct fsdp_env env_of(struct fixture *x, struct fsdp_error *error)
{
    return (struct fsdp_env){.size = sizeof(struct fsdp_env),
                             .rank = 2,
                             .world = 3,
                             .comm = &x->real,
                             .error = error,
                             .exchange = fake_exchange,
                             .exchange_self = &x->fake};
}

static void test_env(void **state)
{
    struct fixture *x = *state;
    struct fsdp_error error = {0};
    struct fsdp_env env = env_of(x, &error);
    struct fsdp_env before = env;
    struct fsdp_collective c = {.size = sizeof(c), .kind = FSDP_BARRIER};
    struct fsdp_stream *s = NULL;
    uint64_t mine = 42;
    uint64_t all = 0;
    struct gate gate = {0};

    unsetenv("FSDP_SIMD");
    assert_int_equal(host_open(&env), FSDP_OK);
    assert_int_equal(env.comm->takes_streams, 1);
    assert_int_equal(env.comm->place, env.device->place);
    assert_int_equal(env.device->stream_open(env.device->self, NULL, &s), 0);
    push_gate(s, &gate);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(env.comm->run(env.comm->self, s, &c), FSDP_OK);
    }
    gate.open = 1;
    assert_int_equal(env.exchange(env.exchange_self, &mine, 8, &all), FSDP_OK);
    assert_int_equal(all, 42);
    assert_int_equal(x->fake.exchanged_at, 5); /* not in between */
    host_close(&env);
    assert_memory_equal(&env, &before, sizeof(env));
    host_close(&env);
    assert_int_equal(error.status, FSDP_OK);
}

static void test_env_refused(void **state)
{
    struct fixture *x = *state;
    struct fsdp_error error = {0};
    struct fsdp_env env = env_of(x, &error);
    struct fsdp_env before = env;

    setenv("FSDP_SIMD", "mmx", 1);
    assert_int_equal(host_open(&env), FSDP_ERR_INVALID);
    assert_memory_equal(&env, &before, sizeof(env));
    host_close(&env);
    assert_int_equal(error.status, FSDP_ERR_INVALID);
    assert_int_equal(error.rank, 2);
    assert_non_null(strstr(error.message, "mmx"));
    setenv("FSDP_SIMD", "portable", 1);
    assert_int_equal(host_open(&env), FSDP_OK);
    host_close(&env);

    memset(&error, 0, sizeof(error));
    x->real.takes_streams = 1;
    assert_int_equal(host_open(&env), FSDP_ERR_UNSUPPORTED);
    assert_memory_equal(&env, &before, sizeof(env));
    assert_int_equal(error.status, FSDP_ERR_UNSUPPORTED);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_order_of_calls), TEST(test_closed_stream),
        TEST(test_failure),        TEST(test_failure_without_stream),
        TEST(test_failed_stream),  TEST(test_abort),
        TEST(test_refused),        TEST(test_env),
        TEST(test_env_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
