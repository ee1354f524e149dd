/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_count_test.c - the wrapper of a device counts its calls, and takes
 * times around them: only if times are wanted, and in the same stream.
 */
#include "testing/unit_testing.h"
#include "tools/bench/bench_count.h"
#include "tools/bench/shares.h"

#include <fsdp/op.h>

/* A device whose clock is how often it was called. */
struct clock {
    uint64_t now;
    int status;                  /* of what is run */
    struct fsdp_stream *stamped; /* the last one */
    int allocations;
};

static int clock_copy(void *self, struct fsdp_stream *stream, void *to,
                      const void *from, uint64_t bytes)
{
    struct clock *c = self;

    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    c->now += 10;
    return c->status;
}

static int clock_run(void *self, struct fsdp_stream *stream,
                     const struct fsdp_op *op)
{
    struct clock *c = self;

    (void)stream;
    (void)op;
    c->now += 20;
    return c->status;
}

static int clock_stamp(void *self, struct fsdp_stream *stream, uint64_t *ns)
{
    struct clock *c = self;

    c->stamped = stream;
    *ns = c->now++;
    return FSDP_OK;
}

static int clock_collective(void *self, struct fsdp_stream *stream,
                            const struct fsdp_collective *collective)
{
    struct clock *c = self;

    (void)stream;
    (void)collective;
    c->now += 40;
    return c->status;
}

static struct clock ticks;
static struct fsdp_device device;
static struct fsdp_comm comm;
static struct bench_count count;
static struct fsdp_env env;

static int set_up(void **state)
{
    (void)state;
    ticks = (struct clock){.now = 100};
    device = (struct fsdp_device){.size = sizeof(device),
                                  .self = &ticks,
                                  .copy = clock_copy,
                                  .run = clock_run,
                                  .stamp = clock_stamp};
    comm = (struct fsdp_comm){
        .size = sizeof(comm), .self = &ticks, .run = clock_collective};
    env = (struct fsdp_env){
        .size = sizeof(env), .device = &device, .comm = &comm};
    bench_count_open(&count, &env);
    return 0;
}

static int run(uint32_t kind, struct fsdp_stream *stream)
{
    const struct fsdp_op op = {.size = sizeof(op), .kind = kind};

    return env.device->run(env.device->self, stream, &op);
}

static int copy(void)
{
    return env.device->copy(env.device->self, NULL, NULL, NULL, 0);
}

static int gather(void)
{
    const struct fsdp_collective c = {.size = sizeof(c)};

    return env.comm->run(env.comm->self, NULL, &c);
}

UNIT_TEST(nobody_wants_times)
{
    assert_int_equal(run(FSDP_OP_GEMM, NULL), FSDP_OK);
    assert_int_equal(copy(), FSDP_OK);
    assert_int_equal(gather(), FSDP_OK);
    assert_int_equal(count.calls, 3);
    assert_int_equal(ticks.now, 170); /* no time was taken */
}

UNIT_TEST(times_lie_around_what_runs)
{
    static const uint32_t share[] = {SHARE_GEMM, SHARE_ATTENTION, SHARE_REST,
                                     SHARE_REST, SHARE_COMMUNICATION};
    static const uint64_t took[] = {20, 20, 20, 10, 40};
    struct fsdp_stream *stream = (struct fsdp_stream *)(void *)&count;
    struct bench_span span[5];

    count.span = span;
    count.room = 5;
    assert_int_equal(run(FSDP_OP_GEMM_GRAD, stream), FSDP_OK);
    assert_ptr_equal(ticks.stamped, stream);
    assert_int_equal(run(FSDP_OP_ATTENTION, stream), FSDP_OK);
    assert_int_equal(run(FSDP_OP_GELU, stream), FSDP_OK);
    assert_int_equal(copy(), FSDP_OK);
    assert_null(ticks.stamped);
    assert_int_equal(gather(), FSDP_OK);
    assert_int_equal(count.calls, 5);
    assert_int_equal(count.n_spans, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(span[i].share, share[i]);
        assert_int_equal(span[i].end - span[i].begin, took[i] + 1);
        assert_true(i == 0 || span[i].begin > span[i - 1].end);
    }
}

UNIT_TEST(more_than_there_is_room_for)
{
    struct bench_span span[1];

    count.span = span;
    count.room = 1;
    assert_int_equal(gather(), FSDP_OK);
    assert_int_equal(run(FSDP_OP_GEMM, NULL), FSDP_ERR_NOMEM);
    assert_int_equal(copy(), FSDP_ERR_NOMEM);
    assert_int_equal(count.n_spans, 1);
}

UNIT_TEST(what_fails_is_handed_on)
{
    struct bench_span span[3];

    count.span = span;
    count.room = 3;
    ticks.status = FSDP_ERR_DEVICE;
    assert_int_equal(run(FSDP_OP_GEMM, NULL), FSDP_ERR_DEVICE);
    assert_int_equal(copy(), FSDP_ERR_DEVICE);
    assert_int_equal(gather(), FSDP_ERR_DEVICE);
}

static int clock_alloc(void *self, uint64_t bytes, void **out)
{
    struct clock *c = self;

    (void)bytes;
    *out = &c->now + ++c->allocations;
    return c->status;
}

static void clock_free(void *self, void *p)
{
    (void)self;
    (void)p;
}

static void count_more(void *self)
{
    ++*(int *)self;
}

/* `more` is called whenever there is more memory than ever, to ask the driver
 * then. */
UNIT_TEST(memory_is_counted_at_its_peak)
{
    const struct fsdp_device *d = env.device;
    void *p[3];
    int grew = 0;

    device.alloc = clock_alloc;
    device.free = clock_free;
    count.more = count_more;
    count.more_self = &grew;
    assert_int_equal(d->alloc(d->self, 3 << 20, &p[0]), FSDP_OK);
    assert_int_equal(d->alloc(d->self, 100, &p[1]), FSDP_OK);
    assert_int_equal(grew, 2);
    d->free(d->self, p[0]);
    assert_int_equal(d->alloc(d->self, 2 << 20, &p[2]), FSDP_OK);
    assert_int_equal(grew, 2);
    assert_int_equal(count.bytes, (2 << 20) + 100);
    assert_int_equal(count.peak, (3 << 20) + 100);
    assert_int_equal(count.rounded, (2 << 20) + 100);
    assert_int_equal(count.rounded_peak, (4 << 20) + 100);
    ticks.status = FSDP_ERR_NOMEM;
    assert_int_equal(d->alloc(d->self, 1 << 30, &p[0]), FSDP_ERR_NOMEM);
    assert_int_equal(count.peak, (3 << 20) + 100);
}

UNIT_TEST(a_device_may_have_no_clock)
{
    assert_true(bench_count_times(&device));
    device.stamp = NULL;
    assert_false(bench_count_times(&device));
    device.stamp = clock_stamp;
    device.size = offsetof(struct fsdp_device, stamp);
    assert_false(bench_count_times(&device));
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_wants_times),          TEST(times_lie_around_what_runs),
        TEST(more_than_there_is_room_for), TEST(what_fails_is_handed_on),
        TEST(a_device_may_have_no_clock),  TEST(memory_is_counted_at_its_peak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
