/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_place_test.c - nothing lies on anything else, and storage is what
 * lives at once or, further ahead, what the suite allows for it.
 */
#include "impl_place.h"
#include "testing/unit_testing.h"

#include <stdlib.h>

enum {
    MAX_LIVES = 64,
    ROUNDS = 400
};

static uint32_t state = 1;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

/* Very unequal: most are small, some are a hundred times as large. */
static uint64_t random_size(void)
{
    uint64_t grains = 1 + random_below(random_below(4) == 0 ? 500 : 8);

    return grains * IMPL_GRAIN;
}

/* Unit i is gathered when unit i - depth begins; under a root from `root`. */
static uint32_t chain(struct impl_life *life, uint32_t n, uint32_t depth,
                      bool root)
{
    uint32_t k = 0;

    if (root) {
        life[k++] = (struct impl_life){.size = random_size(), .end = 2 * n + 2};
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t begin = i > depth ? i - depth : 0;
        life[k++] = (struct impl_life){
            .size = random_size(), .begin = 1 + 2 * begin, .end = 2 + 2 * i};
    }
    return k;
}

static void assert_apart(const struct impl_life *life, uint32_t n,
                         uint64_t room)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_true(life[i].offset + life[i].size <= room);
        assert_int_equal(life[i].offset % IMPL_GRAIN, 0);
        for (uint32_t j = 0; j < i; j++) {
            bool in_time =
                life[i].begin < life[j].end && life[j].begin < life[i].end;
            bool in_place = life[i].offset < life[j].offset + life[j].size &&
                            life[j].offset < life[i].offset + life[i].size;
            assert_false(in_time && in_place);
        }
    }
}

static int larger_first(const void *a, const void *b)
{
    const struct impl_life *x = a;
    const struct impl_life *y = b;

    return (x->size < y->size) - (x->size > y->size);
}

/* The strict peak and the `depth` largest: what the oracle allows. */
static uint64_t bound(const struct impl_life *life, uint32_t n, uint32_t depth,
                      bool root)
{
    struct impl_life sorted[MAX_LIVES];
    uint64_t sum = root ? life[0].size : 0;
    uint64_t largest = 0;

    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = life[i];
        if (!root || i > 0) {
            largest = life[i].size > largest ? life[i].size : largest;
        }
    }
    qsort(sorted, n, sizeof(*sorted), larger_first);
    sum += largest;
    for (uint32_t i = 0; i < depth && i < n; i++) {
        sum += sorted[i].size;
    }
    return sum;
}

UNIT_TEST(without_prefetch_storage_is_what_lives)
{
    struct impl_life life[MAX_LIVES];
    uint64_t room;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t n = chain(life, 1 + random_below(40), 0, round % 2 == 1);
        assert_int_equal(impl_place(life, n, IMPL_QUICKLY, &room), 0);
        assert_apart(life, n, room);
        assert_int_equal(room, impl_place_load(life, n));
    }
}

UNIT_TEST(one_ahead_storage_is_what_lives)
{
    struct impl_life life[MAX_LIVES];
    uint64_t room;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t n = chain(life, 2 + random_below(40), 1, false);
        assert_int_equal(impl_place(life, n, IMPL_QUICKLY, &room), 0);
        assert_apart(life, n, room);
        assert_int_equal(room, impl_place_load(life, n));
    }
}

UNIT_TEST(further_ahead_storage_is_within_the_bound)
{
    struct impl_life life[MAX_LIVES];
    uint64_t room;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t depth = 1 + random_below(6);
        bool root = random_below(2) == 1;
        uint32_t n = chain(life, depth + 2 + random_below(30), depth, root);
        assert_int_equal(impl_place(life, n, IMPL_QUICKLY, &room), 0);
        assert_apart(life, n, room);
        assert_true(room <= bound(life, n, depth, root));
    }
}

/* All units are kept after forward, and go in reverse in backward. */
UNIT_TEST(kept_units_need_their_sum)
{
    struct impl_life life[MAX_LIVES];
    uint64_t room;
    uint64_t sum = 0;
    uint32_t n = 30;

    for (uint32_t i = 0; i < n; i++) {
        life[i] = (struct impl_life){
            .size = random_size(), .begin = i, .end = 2 * n - i};
        sum += life[i].size;
    }
    assert_int_equal(impl_place(life, n, IMPL_QUICKLY, &room), 0);
    assert_apart(life, n, room);
    assert_int_equal(room, sum);
}

UNIT_TEST(who_comes_after_whom)
{
    struct impl_life life[] = {{.size = 64, .begin = 0, .end = 2},
                               {.size = 16, .begin = 1, .end = 3},
                               {.size = 64, .begin = 2, .end = 4},
                               {.size = 0, .begin = 2, .end = 4},
                               {.size = 80, .begin = 4, .end = 5}};
    uint64_t room;

    assert_int_equal(impl_place(life, 5, IMPL_QUICKLY, &room), 0);
    assert_int_equal(room, 80);
    assert_int_equal(life[0].after, IMPL_NO_LIFE);
    assert_int_equal(life[1].after, IMPL_NO_LIFE);
    assert_int_equal(life[2].after, 0);
    assert_int_equal(life[4].after, 2);
}

UNIT_TEST(nothing_needs_nothing)
{
    struct impl_life empty = {.size = 0, .begin = 0, .end = 1};
    uint64_t room = 1;

    assert_int_equal(impl_place(NULL, 0, IMPL_QUICKLY, &room), 0);
    assert_int_equal(room, 0);
    room = 1;
    assert_int_equal(impl_place(&empty, 1, IMPL_QUICKLY, &room), 0);
    assert_int_equal(room, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_prefetch_storage_is_what_lives),
        cmocka_unit_test(one_ahead_storage_is_what_lives),
        cmocka_unit_test(further_ahead_storage_is_within_the_bound),
        cmocka_unit_test(kept_units_need_their_sum),
        cmocka_unit_test(who_comes_after_whom),
        cmocka_unit_test(nothing_needs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
