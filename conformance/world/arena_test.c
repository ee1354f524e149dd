/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena_test.c - the barrier, between threads: no thread leaves a round before
 * all have come, however long they take and however they wait, and a barrier
 * that is shut lets all go.
 */
#include "arena.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "testing/unit_testing.h"

enum {
    MEMBERS = 3,
    ROUNDS = 2000
};

struct scene {
    struct arena_barrier barrier;
    bool spare;
    /* Not atomic: only the barrier orders accesses to it. */
    uint32_t round[MEMBERS];
    uint32_t wrong[MEMBERS];
    _Atomic uint32_t released;
};

struct member {
    struct scene *scene;
    uint32_t me;
};

static void sleep_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* Meets mostly at once; now and then so late that the others have gone to
 * sleep. */
static void *meet_often(void *argument)
{
    struct member *m = argument;
    struct scene *s = m->scene;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        if (i % 37 == m->me) {
            sleep_us((long)(i % 11) * 60);
        }
        s->round[m->me] = i;
        s->wrong[m->me] += !arena_meet(&s->barrier, MEMBERS, s->spare);
        for (uint32_t k = 0; k < MEMBERS; k++) {
            s->wrong[m->me] += s->round[k] != i;
        }
        s->wrong[m->me] += !arena_meet(&s->barrier, MEMBERS, s->spare);
    }
    return NULL;
}

static void *meet_in_vain(void *argument)
{
    struct member *m = argument;
    struct scene *s = m->scene;
    s->wrong[m->me] += arena_meet(&s->barrier, MEMBERS, s->spare);
    atomic_fetch_add(&s->released, 1);
    return NULL;
}

static void start(struct scene *s, uint32_t n, struct member *member,
                  pthread_t *thread, void *(*body)(void *))
{
    for (uint32_t i = 0; i < n; i++) {
        member[i] = (struct member){s, i};
        assert_int_equal(pthread_create(&thread[i], NULL, body, &member[i]), 0);
    }
}

static void finish(const struct scene *s, uint32_t n, const pthread_t *thread)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(s->wrong[i], 0);
    }
}

UNIT_TEST(nobody_leaves_early)
{
    for (uint32_t spare = 0; spare < 2; spare++) {
        struct scene s = {.spare = spare == 1};
        struct member member[MEMBERS];
        pthread_t thread[MEMBERS];
        start(&s, MEMBERS, member, thread, meet_often);
        finish(&s, MEMBERS, thread);
        assert_int_equal(atomic_load(&s.barrier.sleepers), 0);
    }
}

/* Shuts the barrier while members look and when they sleep; a later one is let
 * go, too. */
UNIT_TEST(who_waits_is_let_go)
{
    static const long after_us[] = {0, 20, 150, 2000};

    for (uint32_t i = 0; i < 8; i++) {
        struct scene s = {.spare = i % 2 == 1};
        struct member member[MEMBERS];
        pthread_t thread[MEMBERS];
        start(&s, MEMBERS - 1, member, thread, meet_in_vain);
        sleep_us(after_us[i / 2]);
        assert_int_equal(atomic_load(&s.released), 0);
        arena_shut(&s.barrier);
        finish(&s, MEMBERS - 1, thread);
        assert_false(arena_meet(&s.barrier, MEMBERS, s.spare));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_leaves_early),
        cmocka_unit_test(who_waits_is_let_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
