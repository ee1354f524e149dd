/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_device_test.c - memory, copies, streams and tickets of the CUDA device.
 */
#include "cuda_testing.h"

enum {
    N = 300000 /* floats: more than the slots of pinned memory hold */
};

static float *take(uint64_t n)
{
    void *p = NULL;

    assert_int_equal(cuda_env.device->alloc(cuda_env.device->self, n * 4, &p),
                     FSDP_OK);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    return p;
}

static void give(float *p)
{
    cuda_env.device->free(cuda_env.device->self, p);
}

static int copy(struct fsdp_stream *s, void *to, const void *from, uint64_t n)
{
    return cuda_env.device->copy(cuda_env.device->self, s, to, from, n * 4);
}

static int run_fill(struct fsdp_stream *s, float *x, uint64_t n, float value)
{
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_FILL,
                         .dim = {n},
                         .f = {value},
                         .n_out = 1,
                         .out = {{x, n * 4}}};

    return cuda_env.device->run(cuda_env.device->self, s, &op);
}

static int run_scale(struct fsdp_stream *s, float *x, uint64_t n, float by)
{
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_SCALE,
                         .dim = {n},
                         .f = {by},
                         .n_in = 1,
                         .in = {{x, n * 4}},
                         .n_out = 1,
                         .out = {{x, n * 4}}};

    return cuda_env.device->run(cuda_env.device->self, s, &op);
}

static struct fsdp_stream *open_stream(void)
{
    struct fsdp_stream *s = NULL;

    assert_int_equal(
        cuda_env.device->stream_open(cuda_env.device->self, "test", &s), 0);
    assert_non_null(s);
    return s;
}

UNIT_TEST(test_place)
{
    assert_int_equal(cuda_env.device->place, FSDP_PLACE_CUDA);
    assert_string_equal(cuda_env.device->profile, "f32-fma");
    assert_int_equal(cuda_env.comm->place, FSDP_PLACE_CUDA);
    assert_int_equal(cuda_env.comm->takes_streams, 1);
}

/* There and back in every way, with and without a stream. */
UNIT_TEST(test_copies)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_stream *s = open_stream();
    float *host = malloc(N * 4);
    float *back = malloc(N * 4);
    float *a = take(N);
    float *b = take(N);

    assert_non_null(host);
    assert_non_null(back);
    for (int i = 0; i < N; i++) {
        host[i] = (float)i;
    }
    for (int with = 0; with < 2; with++) {
        struct fsdp_stream *on = with ? s : NULL;

        memset(back, 0, N * 4);
        assert_int_equal(copy(on, a, host, N), FSDP_OK);
        assert_int_equal(copy(on, b, a, N), FSDP_OK);
        assert_int_equal(run_fill(on, a, N, 0.0f), FSDP_OK);
        assert_int_equal(copy(on, back, b, N), FSDP_OK);
        assert_int_equal(d->sync(d->self, on), FSDP_OK);
        assert_memory_equal(back, host, N * 4);
    }
    memset(back, 0, N * 4);
    assert_int_equal(copy(s, back, host, N), FSDP_OK);
    assert_int_equal(d->sync(d->self, NULL), FSDP_OK);
    assert_memory_equal(back, host, N * 4);
    assert_int_equal(copy(NULL, NULL, NULL, 0), FSDP_OK);
    assert_int_equal(copy(NULL, NULL, host, 1), FSDP_ERR_INVALID);
    d->stream_close(d->self, s);
    give(a);
    give(b);
    give(NULL);
    give(take(0));
    free(host);
    free(back);
}

static float *take_pinned(void)
{
    void *p = NULL;

    assert_int_equal(cuda_env.host->alloc(cuda_env.host->self, N * 4, &p),
                     FSDP_OK);
    assert_non_null(p);
    return p;
}

/* Copies of pinned memory are the stream's, in order with what it is given
 * before and after; the CPU's operators have finished on return. */
UNIT_TEST(test_host)
{
    const struct fsdp_device *d = cuda_env.device;
    const struct fsdp_device *h = cuda_env.host;
    struct fsdp_stream *s = open_stream();
    struct fsdp_stream *none = s;
    float *from = take_pinned();
    float *to = take_pinned();
    float *x = take(N);
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_FILL,
                         .dim = {N},
                         .f = {2.0f},
                         .n_out = 1,
                         .out = {{from, N * 4}}};

    assert_int_equal(h->place, FSDP_PLACE_HOST);
    assert_string_equal(h->profile, "f32-fma");
    assert_int_equal(h->run(h->self, NULL, &op), FSDP_OK);
    assert_true(from[N - 1] == 2.0f);
    assert_int_equal(copy(s, x, from, N), FSDP_OK);
    assert_int_equal(run_scale(s, x, N, 3.0f), FSDP_OK);
    assert_int_equal(copy(s, from, x, N), FSDP_OK);
    assert_int_equal(run_scale(s, x, N, 3.0f), FSDP_OK);
    assert_int_equal(copy(s, x, from, N), FSDP_OK);
    assert_int_equal(copy(s, to, x, N), FSDP_OK);
    assert_int_equal(d->sync(d->self, s), FSDP_OK);
    for (int i = 0; i < N; i++) {
        assert_true(from[i] == 6.0f && to[i] == 6.0f);
    }
    assert_int_equal(h->run(h->self, s, &op), FSDP_ERR_INVALID);
    assert_int_equal(h->stream_open(h->self, "none", &none),
                     FSDP_ERR_UNSUPPORTED);
    assert_null(none);
    d->stream_close(d->self, s);
    give(x);
    h->free(h->self, from);
    h->free(h->self, to);
    h->free(h->self, NULL);
}

/* Two streams take turns; without the waits the emulation would do nothing
 * of the other one's work. */
UNIT_TEST(test_order)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_stream *s[2] = {open_stream(), open_stream()};
    float *x = take(100);
    float got[100];
    uint64_t ticket;

    assert_int_equal(run_fill(s[0], x, 100, 1.0f), FSDP_OK);
    for (int i = 0; i < 20; i++) {
        struct fsdp_stream *mine = s[(i + 1) % 2];
        struct fsdp_stream *other = s[i % 2];

        assert_int_equal(d->mark(d->self, other, &ticket), FSDP_OK);
        assert_int_equal(
            d->wait(d->self, mine, other, i % 3 ? ticket : 0, "test"), FSDP_OK);
        assert_int_equal(run_scale(mine, x, 100, i % 2 ? 3.0f : -0.5f), 0);
    }
    assert_int_equal(copy(s[0], got, x, 100), FSDP_OK);
    assert_int_equal(d->wait(d->self, NULL, s[0], 0, "test"), FSDP_OK);
    for (int i = 0; i < 100; i++) {
        assert_true(got[i] == 57.6650390625f);
    }
    d->stream_close(d->self, s[0]);
    d->stream_close(d->self, s[1]);
    give(x);
}

/* More tickets than a stream has events. */
UNIT_TEST(test_tickets)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_stream *s = open_stream();
    struct fsdp_stream *other = open_stream();
    float *x = take(4);
    uint64_t last = 0;
    uint64_t first = 0;
    float got;

    for (int i = 0; i < 1000; i++) {
        uint64_t ticket = 0;

        assert_int_equal(run_fill(s, x, 4, (float)i), FSDP_OK);
        assert_int_equal(d->mark(d->self, s, &ticket), FSDP_OK);
        assert_true(ticket > last);
        first = i == 0 ? ticket : first;
        last = ticket;
    }
    assert_int_equal(d->wait(d->self, other, s, first, "test"), FSDP_OK);
    assert_int_equal(d->wait(d->self, NULL, s, last, "test"), FSDP_OK);
    assert_int_equal(copy(NULL, &got, x, 1), FSDP_OK);
    assert_true(got == 999.0f);
    assert_int_equal(d->wait(d->self, NULL, s, last + 1, "test"),
                     FSDP_ERR_INVALID);
    assert_int_equal(d->mark(d->self, s, NULL), FSDP_ERR_INVALID);
    assert_int_equal(d->mark(d->self, NULL, &last), FSDP_OK);
    assert_true(last != 0);
    assert_int_equal(d->wait(d->self, s, NULL, 0, "test"), FSDP_OK);
    d->stream_close(d->self, s);
    d->stream_close(d->self, other);
    d->stream_close(d->self, NULL);
    give(x);
}

/* More memory than any GPU has. */
UNIT_TEST(test_no_memory)
{
    void *p = &p;

    assert_int_equal(
        cuda_env.device->alloc(cuda_env.device->self, (uint64_t)1 << 60, &p),
        FSDP_ERR_NOMEM);
    assert_null(p);
    assert_int_equal(cuda_error.status, FSDP_ERR_NOMEM);
    assert_non_null(strstr(cuda_error.message, "1152921504606846976 bytes"));
    cuda_error = (struct fsdp_error){0};
    give(take(16)); /* and the device goes on */
}

/* Times of two streams: in order on each, in the order of waits between
 * them, by the host's clock, and told by the end of the wait. */
UNIT_TEST(test_stamps)
{
    enum {
        MANY = 40
    };
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_stream *s = open_stream();
    struct fsdp_stream *other = open_stream();
    float *x = take(N);
    uint64_t ns[MANY + 1] = {0};
    uint64_t begin = 0;
    uint64_t first = 0;
    uint64_t end = 0;

    assert_int_equal(d->stamp(d->self, NULL, &begin), FSDP_OK);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(d->stamp(d->self, s, &ns[i]), FSDP_OK);
        assert_int_equal(run_fill(s, x, N, (float)i), FSDP_OK);
        if (i == MANY / 2) {
            assert_int_equal(d->mark(d->self, s, &first), FSDP_OK);
        }
    }
    assert_int_equal(d->wait(d->self, other, s, 0, "test"), FSDP_OK);
    assert_int_equal(d->stamp(d->self, other, &ns[MANY]), FSDP_OK);
    assert_int_equal(d->wait(d->self, NULL, s, first, "test"), FSDP_OK);
    for (int i = 0; i <= MANY / 2; i++) {
        assert_true(ns[i] > 0);
    }
    assert_int_equal(d->sync(d->self, NULL), FSDP_OK);
    assert_int_equal(d->stamp(d->self, NULL, &end), FSDP_OK);
    /* The host does not know to the nanosecond when the base was. */
    assert_true(ns[0] + 1000000 >= begin);
    assert_true(ns[MANY] <= end + 1000000);
    for (int i = 0; i < MANY; i++) {
        assert_true(ns[i] <= ns[i + 1] + (i + 1 == MANY ? 1000 : 0));
    }
    assert_true(ns[MANY - 1] > ns[0]);
    assert_int_equal(d->stamp(d->self, s, NULL), FSDP_ERR_INVALID);
    /* A stream that is closed has been waited for. */
    ns[0] = 0;
    assert_int_equal(d->stamp(d->self, s, &ns[0]), FSDP_OK);
    d->stream_close(d->self, s);
    assert_true(ns[0] >= ns[MANY - 1]);
    d->stream_close(d->self, other);
    give(x);
}

/* A slot of pinned memory that a copy from the host used does not ask for the
 * copy's stream once that is closed, nor for a stream that took its place. */
UNIT_TEST(test_copies_of_closed_streams)
{
    enum {
        COPIES = 7 /* more than there are slots */
    };
    const struct fsdp_device *d = cuda_env.device;
    float *x = take(COPIES);

    for (int life = 0; life < 3; life++) {
        struct fsdp_stream *s = open_stream();
        float host[COPIES] = {0};

        for (int i = 0; i < COPIES - life; i++) {
            float value = (float)(10 * life + i);

            assert_int_equal(copy(s, x + i, &value, 1), FSDP_OK);
        }
        assert_int_equal(copy(s, host, x, COPIES), FSDP_OK);
        for (int i = 0; i < COPIES - life; i++) {
            assert_true(host[i] == (float)(10 * life + i));
        }
        d->stream_close(d->self, s);
    }
    give(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_tickets),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_copies_of_closed_streams),
    };
    int skip = skip_without_gpu();

    return skip != 0
               ? skip
               : cmocka_run_group_tests(tests, open_device, close_device) != 0;
}
