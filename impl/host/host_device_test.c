/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_device_test.c - struct fsdp_device on the host: memory, operators with
 * and without streams, failures, and random programs on three streams against
 * the same programs one call after the other.
 */
#include "host_device.h"
#include "host_testing.h"

#include <fsdp/op.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

static struct fsdp_device device;

static int open_device(void **state)
{
    (void)state;
    return host_device_open(SIMD_PORTABLE, &device);
}

static int close_device(void **state)
{
    (void)state;
    host_device_close(&device);
    return 0;
}

static struct fsdp_stream *open_stream(void)
{
    struct fsdp_stream *s = NULL;

    assert_int_equal(device.stream_open(device.self, "test", &s), FSDP_OK);
    assert_non_null(s);
    return s;
}

static struct fsdp_op fill_of(float value, float *x, uint64_t n)
{
    return (struct fsdp_op){.size = sizeof(struct fsdp_op),
                            .kind = FSDP_OP_FILL,
                            .unit = FSDP_NO_UNIT,
                            .dim = {n},
                            .f = {value},
                            .n_out = 1,
                            .out = {{x, n * sizeof(*x)}}};
}

static int fill(struct fsdp_stream *s, float value, float *x, uint64_t n)
{
    struct fsdp_op op = fill_of(value, x, n);
    int status = device.run(device.self, s, &op);

    memset(&op, 0xa5, sizeof(op)); /* it was read during the call */
    return status;
}

static int add(struct fsdp_stream *s, const float *a, const float *b, float *y,
               uint64_t n)
{
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_ADD,
                         .unit = FSDP_NO_UNIT,
                         .dim = {n},
                         .n_in = 2,
                         .in = {{a, n * sizeof(*a)}, {b, n * sizeof(*b)}},
                         .n_out = 1,
                         .out = {{y, n * sizeof(*y)}}};

    return device.run(device.self, s, &op);
}

static int wait_for(struct fsdp_stream *later, struct fsdp_stream *earlier,
                    uint64_t ticket)
{
    return device.wait(device.self, later, earlier, ticket, "test");
}

/* EMBEDDING of one row whose id is read from memory. */
static int embed(struct fsdp_stream *s, const int32_t *id, const float *table,
                 float *y)
{
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_EMBEDDING,
                         .unit = FSDP_NO_UNIT,
                         .dim = {1, 1, 1, 1},
                         .n_in = 3,
                         .in = {{id, 4}, {table, 4}, {table, 4}},
                         .n_out = 1,
                         .out = {{y, 4}}};

    return device.run(device.self, s, &op);
}

static void push_gate(struct fsdp_stream *s, struct gate *gate)
{
    assert_int_equal(host_stream_push(host_device_queue(s), pass_gate, &gate,
                                      sizeof(struct gate *), 0),
                     FSDP_OK);
}

UNIT_TEST(test_memory)
{
    void *p[3];

    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(device.alloc(device.self, i * 65, &p[i]), FSDP_OK);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        memset(p[i], 1, i * 65);
    }
    device.live(device.self, NULL, FSDP_STAGING, FSDP_NO_UNIT, p[1], 65);
    device.dead(device.self, NULL, p[1]);
    device.dead(device.self, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        device.free(device.self, p[i]);
    }
    device.free(device.self, NULL);
    assert_int_equal(device.alloc(device.self, UINT64_MAX, &p[0]),
                     FSDP_ERR_NOMEM);
    assert_null(p[0]);
    assert_int_equal(device.alloc(device.self, PTRDIFF_MAX - 63, &p[0]),
                     FSDP_ERR_NOMEM);
    assert_null(p[0]);
}

/* Without a stream a call waits for nothing and has finished. */
UNIT_TEST(test_null_stream)
{
    struct fsdp_stream *s = open_stream();
    struct gate gate = {0};
    float x[4] = {0};
    float y[4] = {0};
    uint64_t ticket = 0;

    push_gate(s, &gate);
    assert_int_equal(fill(NULL, 3.0f, x, 4), FSDP_OK);
    assert_true(x[3] == 3.0f);
    assert_int_equal(device.copy(device.self, NULL, y, x, sizeof(x)), FSDP_OK);
    assert_true(y[0] == 3.0f);
    assert_int_equal(device.copy(device.self, NULL, NULL, NULL, 0), FSDP_OK);
    assert_int_equal(device.copy(device.self, NULL, NULL, x, 4),
                     FSDP_ERR_INVALID);
    assert_int_equal(device.mark(device.self, NULL, &ticket), FSDP_OK);
    assert_int_not_equal(ticket, 0);
    assert_int_equal(wait_for(NULL, NULL, ticket), FSDP_OK);
    assert_int_equal(wait_for(s, NULL, 0), FSDP_OK);
    gate.open = 1;
    device.stream_close(device.self, s);
    device.stream_close(device.self, NULL);
    assert_int_equal(device.sync(device.self, NULL), FSDP_OK);
}

UNIT_TEST(test_stream)
{
    struct fsdp_stream *s = open_stream();
    struct gate gate = {0};
    float x[100] = {0};
    float y[100] = {0};
    uint64_t early = 0;

    assert_int_equal(fill(s, 1.0f, x, 100), FSDP_OK);
    assert_int_equal(device.mark(device.self, s, &early), FSDP_OK);
    push_gate(s, &gate);
    assert_int_equal(add(s, x, x, x, 100), FSDP_OK);
    assert_int_equal(device.copy(device.self, s, y, x, sizeof(x)), FSDP_OK);
    assert_int_equal(wait_for(NULL, s, early), FSDP_OK);
    assert_true(x[99] == 1.0f);
    gate.open = 1;
    assert_int_equal(device.sync(device.self, s), FSDP_OK);
    assert_true(x[99] == 2.0f);
    assert_true(y[99] == 2.0f);
    device.stream_close(device.self, s);
}

/* A mistake that is visible in the operator is returned by the call, and is no
 * failure of the stream. */
/* Times are taken when the stream has come that far, not when it is asked. */
UNIT_TEST(test_stamp)
{
    struct fsdp_stream *s;
    struct gate gate = {0};
    uint64_t now = 0;
    uint64_t times[3] = {0, 0, 0};

    s = open_stream();
    assert_int_equal(device.stamp(device.self, s, &times[0]), FSDP_OK);
    assert_int_equal(device.sync(device.self, s), FSDP_OK);
    assert_true(times[0] > 0);
    push_gate(s, &gate);
    assert_int_equal(device.stamp(device.self, s, &times[1]), FSDP_OK);
    assert_int_equal(device.stamp(device.self, NULL, &now), FSDP_OK);
    gate.open = 1;
    assert_int_equal(device.stamp(device.self, s, &times[2]), FSDP_OK);
    assert_int_equal(device.sync(device.self, s), FSDP_OK);
    assert_true(times[0] <= now && now <= times[1] && times[1] <= times[2]);
    device.stream_close(device.self, s);
}

UNIT_TEST(test_wrong_operator)
{
    struct fsdp_stream *s = open_stream();
    float x[4] = {0};
    struct fsdp_op op = fill_of(1.0f, x, 4);

    op.out[0].bytes = 12;
    assert_int_equal(device.run(device.self, s, &op), FSDP_ERR_INVALID);
    op.out[0].bytes = 16;
    op.kind = FSDP_OP_NORM_SUM;
    assert_int_equal(device.run(device.self, s, &op), FSDP_ERR_UNSUPPORTED);
    assert_int_equal(device.run(device.self, NULL, &op), FSDP_ERR_UNSUPPORTED);
    op.kind = FSDP_N_OPS;
    assert_int_equal(device.run(device.self, s, &op), FSDP_ERR_UNSUPPORTED);
    op.kind = FSDP_OP_FILL;
    op.size = 8;
    assert_int_equal(device.run(device.self, s, &op), FSDP_ERR_INVALID);
    assert_int_equal(device.run(device.self, s, NULL), FSDP_ERR_INVALID);
    assert_int_equal(fill(s, 5.0f, x, 4), FSDP_OK);
    assert_int_equal(device.sync(device.self, s), FSDP_OK);
    assert_true(x[0] == 5.0f);
    device.stream_close(device.self, s);
}

/* An id is data: it is made behind a gate, on the stream. */
UNIT_TEST(test_failure)
{
    static const int32_t good = 0;
    static const int32_t bad = 1;
    /* sync returns the failure, whether the stream that fails comes first or
     * last. */
    struct fsdp_stream *older = open_stream();
    struct fsdp_stream *s = open_stream();
    struct fsdp_stream *other = open_stream();
    struct gate gate = {0};
    float table[1] = {2.0f};
    float y[1] = {0};
    int32_t id = bad;

    push_gate(s, &gate);
    assert_int_equal(device.copy(device.self, s, &id, &good, 4), FSDP_OK);
    assert_int_equal(embed(s, &id, table, y), FSDP_OK);
    gate.open = 1;
    assert_int_equal(device.sync(device.self, s), FSDP_OK);
    assert_true(y[0] == 4.0f);

    assert_int_equal(device.copy(device.self, s, &id, &bad, 4), FSDP_OK);
    assert_int_equal(embed(s, &id, table, y), FSDP_OK);
    assert_int_equal(fill(s, 9.0f, y, 1), FSDP_OK);
    assert_int_equal(device.copy(device.self, s, y, table, 4), FSDP_OK);
    assert_int_equal(wait_for(NULL, s, 0), FSDP_ERR_INVALID);
    assert_int_equal(device.sync(device.self, s), FSDP_ERR_INVALID);
    assert_int_equal(device.sync(device.self, other), FSDP_OK);
    assert_int_equal(device.sync(device.self, NULL), FSDP_ERR_INVALID);
    assert_true(y[0] == 4.0f);
    assert_int_equal(wait_for(other, s, 0), FSDP_OK);
    assert_int_equal(fill(other, 9.0f, y, 1), FSDP_OK);
    assert_int_equal(device.sync(device.self, other), FSDP_ERR_INVALID);
    assert_true(y[0] == 4.0f);
    device.stream_close(device.self, s);
    device.stream_close(device.self, other);
    device.stream_close(device.self, older);
    assert_int_equal(device.sync(device.self, NULL), FSDP_OK);
}

/* Streams that are still open are closed with the device. */
UNIT_TEST(test_many_streams)
{
    enum {
        N = 40
    };
    struct fsdp_stream *s[N];
    float x[N][16];

    for (int i = 0; i < N; i++) {
        s[i] = open_stream();
        assert_int_equal(fill(s[i], 0.0f, x[i], 16), FSDP_OK);
        if (i > 0) {
            assert_int_equal(wait_for(s[i], s[i - 1], 0), FSDP_OK);
            assert_int_equal(fill(s[i], 1.0f, x[i], 16), FSDP_OK);
            assert_int_equal(add(s[i], x[i], x[i - 1], x[i], 16), FSDP_OK);
        }
    }
    assert_int_equal(device.sync(device.self, NULL), FSDP_OK);
    for (int i = 0; i < N; i++) {
        assert_true(x[i][15] == (float)i);
    }
    for (int i = 0; i < N; i += 2) {
        device.stream_close(device.self, s[i]);
    }
}

/* ---- Random programs --------------------------------------------------- */

enum {
    STREAMS = 3,
    BUFFERS = 6,
    LENGTH = 33,
    CALLS = 10000,
};

struct buffer {
    float x[LENGTH];
};

/* The last user of a buffer, and up to which ticket it used it: the next user
 * must wait for that. Readers count as users. */
struct use {
    uint32_t stream;
    uint64_t ticket;
};

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

static void use(struct fsdp_stream *const s[], uint32_t stream, uint64_t *seed,
                const struct use *last)
{
    /* A ticket, or 0 for all so far: both are right. Nothing is awaited on the
     * same stream. */
    if (last->ticket != 0 && last->stream != stream) {
        uint64_t ticket = draw(seed, 4) != 0 ? last->ticket : 0;
        assert_int_equal(wait_for(s[stream], s[last->stream], ticket), FSDP_OK);
    }
}

static void one_call(struct fsdp_stream *s, uint32_t kind, float value,
                     const struct buffer *a, const struct buffer *b,
                     struct buffer *y)
{
    int status;

    if (kind == 0) {
        status = fill(s, value, y->x, LENGTH);
    } else if (kind == 1) {
        status =
            a == y ? FSDP_OK : device.copy(device.self, s, y, a, sizeof(*y));
    } else {
        status = add(s, a->x, b->x, y->x, LENGTH);
    }
    assert_int_equal(status, FSDP_OK);
}

UNIT_TEST(test_random_programs)
{
    struct buffer *streamed = calloc(BUFFERS, sizeof(*streamed));
    struct buffer *serial = calloc(BUFFERS, sizeof(*serial));
    struct use last[BUFFERS] = {{0}};
    struct fsdp_stream *s[STREAMS];
    uint64_t seed = 1;

    assert_true(streamed && serial);
    for (uint32_t i = 0; i < STREAMS; i++) {
        s[i] = open_stream();
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        uint32_t stream = draw(&seed, STREAMS);
        uint32_t kind = draw(&seed, 3);
        uint32_t at[3] = {draw(&seed, BUFFERS), draw(&seed, BUFFERS),
                          draw(&seed, BUFFERS)};
        float value = (float)draw(&seed, 1000);
        struct use now = {stream, 0};

        for (uint32_t k = 0; k < 3; k++) {
            use(s, stream, &seed, &last[at[k]]);
        }
        one_call(s[stream], kind, value, &streamed[at[0]], &streamed[at[1]],
                 &streamed[at[2]]);
        one_call(NULL, kind, value, &serial[at[0]], &serial[at[1]],
                 &serial[at[2]]);
        assert_int_equal(device.mark(device.self, s[stream], &now.ticket),
                         FSDP_OK);
        for (uint32_t k = 0; k < 3; k++) {
            last[at[k]] = now;
        }
        if (draw(&seed, 200) == 0) {
            assert_int_equal(wait_for(NULL, s[stream], now.ticket), FSDP_OK);
            assert_memory_equal(&streamed[at[2]], &serial[at[2]],
                                sizeof(*serial));
        }
    }
    assert_int_equal(device.sync(device.self, NULL), FSDP_OK);
    assert_memory_equal(streamed, serial, BUFFERS * sizeof(*serial));
    for (uint32_t i = 0; i < STREAMS; i++) {
        device.stream_close(device.self, s[i]);
    }
    free(streamed);
    free(serial);
}

UNIT_TEST(test_open)
{
    struct fsdp_device d;

    assert_int_equal(host_device_open(SIMD_N_LEVELS, &d), FSDP_ERR_UNSUPPORTED);
    host_device_close(&d);
    host_device_close(NULL);
    assert_int_equal(host_device_open(SIMD_PORTABLE, &d), FSDP_OK);
    assert_int_equal(d.size, sizeof(d));
    assert_string_equal(d.profile, "f32-fma");
    assert_int_equal(d.place, FSDP_PLACE_HOST);
    host_device_close(&d);
    host_device_close(&d);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_device, close_device)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        TEST(test_memory),
        TEST(test_stamp),
        TEST(test_null_stream),
        TEST(test_stream),
        TEST(test_wrong_operator),
        TEST(test_failure),
        TEST(test_many_streams),
        TEST(test_random_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
