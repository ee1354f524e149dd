/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_comm_stress_test.c - ranks that wait for each other in every collective
 * never wait in a circle, and meet in the order of the calls: whatever streams
 * each rank gives them to, whatever its streams wait for besides, and whether a
 * stream's thread or a waiting one does the work.
 *
 * Ranks are threads with a device each. They share one meeting: no rank leaves
 * it before all have come, and all must have come for the same collective.
 */
#include "host_comm.h"
#include "host_device.h"

#include <fsdp/status.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    RANKS = 3,
    STREAMS = 3,
    COLLECTIVES = 1000,
    MUCH = 1 << 20, /* elements: worth a thread */
};

struct meeting {
    pthread_barrier_t come, go;
    uint32_t unit[RANKS];
    _Atomic uint32_t wrong;
};

struct rank {
    struct meeting *meeting;
    uint32_t rank;
    uint64_t random;
    struct fsdp_comm real, comm;
    struct fsdp_device device;
    struct fsdp_stream *stream[STREAMS];
    uint32_t n; /* collectives that have ended; plain: one at a time */
    int status;
};

static int meet(void *self, struct fsdp_stream *stream,
                const struct fsdp_collective *c)
{
    struct rank *r = self;
    struct meeting *m = r->meeting;

    if (stream || c->unit != r->n) {
        atomic_fetch_add(&m->wrong, 1);
    }
    r->n++;
    m->unit[r->rank] = c->unit;
    pthread_barrier_wait(&m->come);
    for (uint32_t i = 0; i < RANKS; i++) {
        if (m->unit[i] != c->unit) {
            atomic_fetch_add(&m->wrong, 1);
        }
    }
    pthread_barrier_wait(&m->go);
    return FSDP_OK;
}

static void no_abort(void *self, int32_t status)
{
    (void)self;
    (void)status;
}

static uint32_t next(struct rank *r)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->random >> 33);
}

static struct fsdp_stream *any(struct rank *r)
{
    return r->stream[next(r) % STREAMS];
}

/* Gives a collective, lets its stream wait for something else, and does what
 * the caller may do meanwhile. */
static int give(struct rank *r, uint32_t unit)
{
    const struct fsdp_device *d = &r->device;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_BARRIER,
                                .dim = FSDP_DIM_WORLD,
                                .unit = unit,
                                .n = next(r) % 4 == 0 ? MUCH : 0};
    bool at_once = next(r) % 50 == 0;

    if (next(r) % 2 == 0) {
        FSDP_TRY(d->wait(d->self, any(r), any(r), 0, "test"));
    }
    FSDP_TRY(r->comm.run(r->comm.self, at_once ? NULL : any(r), &c));
    if (next(r) % 2 == 0) {
        FSDP_TRY(d->wait(d->self, any(r), any(r), 0, "test"));
    }
    if (next(r) % 40 == 0) {
        FSDP_TRY(d->wait(d->self, NULL, any(r), 0, "test"));
    }
    return next(r) % 200 == 0 ? host_comm_drain(&r->comm) : FSDP_OK;
}

static int life(struct rank *r)
{
    FSDP_TRY(host_device_open(SIMD_PORTABLE, &r->device));
    FSDP_TRY(host_comm_open(&r->real, &r->comm));
    for (uint32_t i = 0; i < STREAMS; i++) {
        FSDP_TRY(r->device.stream_open(r->device.self, "rank", &r->stream[i]));
    }
    for (uint32_t i = 0; i < COLLECTIVES; i++) {
        FSDP_TRY(give(r, i));
    }
    return r->device.sync(r->device.self, NULL);
}

static void *be_rank(void *self)
{
    struct rank *r = self;

    r->status = life(r);
    host_device_close(&r->device);
    host_comm_close(&r->comm);
    return NULL;
}

static void run_ranks(uint64_t seed)
{
    struct meeting m = {.wrong = 0};
    struct rank rank[RANKS];
    pthread_t thread[RANKS];

    assert_int_equal(pthread_barrier_init(&m.come, NULL, RANKS), 0);
    assert_int_equal(pthread_barrier_init(&m.go, NULL, RANKS), 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *r = &rank[i];
        memset(r, 0, sizeof(*r));
        r->meeting = &m;
        r->rank = i;
        r->random = seed * RANKS + i;
        r->real = (struct fsdp_comm){
            .size = sizeof(r->real), .self = r, .run = meet, .abort = no_abort};
        assert_int_equal(pthread_create(&thread[i], NULL, be_rank, r), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(rank[i].status, FSDP_OK);
        assert_int_equal(rank[i].n, COLLECTIVES);
    }
    assert_int_equal(atomic_load(&m.wrong), 0);
    pthread_barrier_destroy(&m.come);
    pthread_barrier_destroy(&m.go);
}

UNIT_TEST(nobody_waits_in_a_circle)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_ranks(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_in_a_circle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
