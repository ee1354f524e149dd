/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph_claims_test.c - which claims random graphs need: each claim is
 * needed by some graphs and not by others; and for some parts of graphs the
 * claims are known by hand.
 */
#include "cases/case_claims_testing.h"
#include "cases/case_graph.h"
#include "cases/case_graph_claims.h"
#include "testing/unit_testing.h"

#include <string.h>

static bool wants(const struct run_case *c, const char *claim)
{
    const char *list[CASE_GRAPH_CLAIMS];
    const uint32_t n = case_graph_claims(c, list);

    assert_true(n <= CASE_GRAPH_CLAIMS);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(list[i], claim) == 0) {
            return true;
        }
    }
    return false;
}

/* How many of a thousand seeds need a claim, at least and at most. */
UNIT_TEST(each_is_asked_of_some)
{
    static const struct {
        const char *claim;
        uint32_t least, most;
    } row[] = {
        {"graph-own-units", 300, 500},   {"graph-pairs", 100, 250},
        {"graph-one-way", 30, 150},      {"graph-crossing", 30, 150},
        {"graph-many-uses", 20, 200},    {"graph-scalar", 100, 300},
        {"graph-empty", 200, 600},       {"graph-bare-unit", 100, 400},
        {"graph-own-reshard", 100, 400},
    };
    struct run_case c;

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        uint32_t n = 0;

        for (uint64_t seed = 1; seed <= 1000; seed++) {
            case_graph_draw(seed, &c);
            n += wants(&c, row[i].claim);
        }
        print_message("%s: %u\n", row[i].claim, n);
        assert_in_range(n, row[i].least, row[i].most);
    }
}

/* A case without a graph needs no claim, nor does a graph that is the head
 * alone. */
UNIT_TEST(of_little_nothing_is_asked)
{
    const char *list[CASE_GRAPH_CLAIMS];
    struct run_case c;
    struct graph g;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        case_graph_draw(seed, &c);
        memset(c.size, 0, sizeof(c.size));
        graph_size_text(0, c.size);
        assert_true(case_graph_of(&c, &g));
        assert_int_equal(g.n_modules, 2);
        assert_false(wants(&c, "graph-crossing"));
        assert_false(wants(&c, "graph-one-way"));
        assert_false(wants(&c, "graph-many-uses"));
        assert_false(wants(&c, "graph-own-reshard"));
        assert_int_equal(case_graph_has_root_unit(&c),
                         g.unit_of_module[0] != FSDP_NO_UNIT);
    }
    assert_true(case_of_id("mlp.odd.natural.full-shard.k2.flat.layer.rank.s."
                           "sgd",
                           &c));
    assert_int_equal(case_graph_claims(&c, list), 0);
    assert_false(case_graph_has_root_unit(&c));
}

/* All modules are in one unit, the root's: there are no two windows that could
 * cross. */
UNIT_TEST(one_window_crosses_none)
{
    struct run_case c;
    struct graph g;
    uint64_t bits;
    uint32_t n = 0;

    for (uint64_t seed = 1; seed <= 1000; seed++) {
        case_graph_draw(seed, &c);
        assert_true(graph_size_bits(c.size, &bits));
        graph_size_text(bits & ~((uint64_t)0xff << 47), c.size);
        if (case_graph_of(&c, &g) && g.n_units == 1) {
            n++;
            assert_false(wants(&c, "graph-crossing"));
        }
    }
    assert_true(n > 100);
}

/* A unit that says itself whether it is resharded may stay: of engines that
 * reshard all of them, no such graph is asked. */
UNIT_TEST(units_that_may_stay_need_their_strategy)
{
    struct run_case c;
    uint32_t n = 0;

    for (uint64_t seed = 1; seed <= 1000; seed++) {
        case_graph_draw(seed, &c);
        case_sharded(&c, &c);
        if (c.strategy == CASE_FULL_SHARD) {
            n += wants(&c, "graph-own-reshard");
            assert_int_equal(case_needs(&c, "shard-grad-op"),
                             wants(&c, "graph-own-reshard"));
        }
    }
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_asked_of_some),
        cmocka_unit_test(of_little_nothing_is_asked),
        cmocka_unit_test(one_window_crosses_none),
        cmocka_unit_test(units_that_may_stay_need_their_strategy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
