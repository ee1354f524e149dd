/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream_stress_test.c - many short items on several streams that wait for
 * each other at random, while threads wait for them at random: every item is
 * done once, by one thread at a time, in the order of its stream and after the
 * items that it was ordered behind.
 *
 * The counters are plain on purpose: if two threads ever did items of one
 * stream at once, or one looked before it was allowed to, a thread sanitizer
 * would say so.
 */
#include "host_stream.h"

#include <fsdp/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    STREAMS = 4,
    ITEMS = 20000,
    LONG_NS = 20000, /* worth a thread */
};

struct bench {
    struct host_stream *stream[STREAMS];
    uint64_t done[STREAMS];  /* written by the stream's items alone */
    uint64_t given[STREAMS]; /* items, without orders */
    _Atomic uint32_t wrong;
};

/* Item `number` of stream `self`. It was ordered behind item `least` of stream
 * `other`. */
struct task {
    struct bench *bench;
    uint32_t self, other;
    uint64_t number, least;
};

static int do_task(void *argument, int failed)
{
    const struct task *t = argument;
    struct bench *b = t->bench;

    if (failed != FSDP_OK || b->done[t->self] + 1 != t->number ||
        (t->other != t->self && b->done[t->other] < t->least)) {
        atomic_fetch_add(&b->wrong, 1);
    }
    b->done[t->self] = t->number;
    return FSDP_OK;
}

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* The last item of every stream is over when the next one looks: what looks
 * at done[other] is ordered behind all of it, and nothing is given to `other`
 * before that has run. */
static void give(struct bench *b, uint64_t *random)
{
    uint32_t self = next(random) % STREAMS;
    uint32_t other = next(random) % STREAMS;
    bool looks = other != self && next(random) % 2 == 0;
    struct task t = {b, self, looks ? other : self, ++b->given[self],
                     b->given[other]};

    if (looks) {
        assert_int_equal(
            host_stream_order(b->stream[self], b->stream[other], 0), FSDP_OK);
    }
    assert_int_equal(host_stream_push(b->stream[self], do_task, &t, sizeof(t),
                                      next(random) % 2 == 0 ? 0 : LONG_NS),
                     FSDP_OK);
    if (looks) { /* so that it does not look while the other one writes */
        assert_int_equal(
            host_stream_order(b->stream[other], b->stream[self], 0), FSDP_OK);
    }
    if (next(random) % 64 == 0) {
        assert_int_equal(host_stream_wait(b->stream[next(random) % STREAMS], 0),
                         FSDP_OK);
    }
}

UNIT_TEST(orders_hold)
{
    static const uint64_t seeds[] = {1, 2, 3};

    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        struct bench b = {.wrong = 0};
        uint64_t random = seeds[i];

        for (uint32_t s = 0; s < STREAMS; s++) {
            assert_int_equal(host_stream_open("stress", &b.stream[s]), FSDP_OK);
        }
        for (uint32_t n = 0; n < ITEMS; n++) {
            give(&b, &random);
        }
        for (uint32_t s = 0; s < STREAMS; s++) {
            host_stream_close(b.stream[s]);
        }
        for (uint32_t s = 0; s < STREAMS; s++) {
            assert_int_equal(b.done[s], b.given[s]);
        }
        assert_int_equal(atomic_load(&b.wrong), 0);
    }
}

/* A stream whose thread sleeps is opened, used and closed at once. */
UNIT_TEST(short_lives)
{
    for (int i = 0; i < 500; i++) {
        struct bench b = {.wrong = 0};
        uint64_t random = (uint64_t)i;

        for (uint32_t s = 0; s < STREAMS; s++) {
            assert_int_equal(host_stream_open("short", &b.stream[s]), FSDP_OK);
        }
        for (uint32_t n = 0; n < 8; n++) {
            give(&b, &random);
        }
        for (uint32_t s = 0; s < STREAMS; s++) {
            host_stream_close(b.stream[s]);
        }
        assert_int_equal(atomic_load(&b.wrong), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_hold),
        cmocka_unit_test(short_lives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
