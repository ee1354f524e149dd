/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph_test.c - what seeds draw: well-formed cases, models that the kit
 * accepts, the same each time; every feature of graphs occurs often enough; and
 * the cases that are smaller than a case can be run as well.
 */
#include "cases/case_graph.h"
#include "cases/case_model.h"
#include "models/batch.h"
#include "models/model_build_internal.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 3000
};

static void make(const struct run_case *c, struct case_model *m)
{
    struct fsdp_error error = {0};
    char id[CASE_ID_BYTES];

    case_id(c, id);
    if (case_model_make(c, NULL, 0, m, &error) != FSDP_OK) {
        fail_msg("%s: %s", id, error.message);
    }
}

static void check_units(const struct fsdp_model *model,
                        const struct fsdp_units *units, bool scattered)
{
    uint32_t next = 0;

    for (uint32_t m = 0; m < model->n_modules; m++) {
        const uint32_t u = units->unit_of_module[m];

        /* Units are numbered from 0 by their first module. */
        assert_true(u == FSDP_NO_UNIT || u <= next);
        next += u == next;
    }
    /* Units of no module follow, by their first parameter. */
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint32_t u = fsdp_unit_of(model, units, p);

        assert_true(u == FSDP_NO_UNIT || u <= next || scattered);
        next += !scattered && u == next;
        assert_int_equal(u,
                         fsdp_unit_of(model, units, fsdp_original(model, p)));
    }
    assert_true(next == units->n_units || scattered);
    /* The head's parameter is in a unit, so that something is trained. */
    assert_true(fsdp_unit_of(model, units, model->n_parameters - 1) !=
                FSDP_NO_UNIT);
}

static void check_sequences(const struct fsdp_model *model)
{
    char detail[96];

    assert_int_equal(model->n_sequences, 2);
    for (uint32_t s = 0; s < 2; s++) {
        const struct fsdp_sequence *q = model->sequence[s];

        assert_int_equal(
            model_sequence_check(q, model->n_modules, detail, sizeof(detail)),
            FSDP_OK);
        assert_int_equal(q->module[0], 0);
        assert_int_equal(q->point[0], FSDP_PRE_FORWARD);
    }
}

static void check_case(const struct run_case *c)
{
    struct case_model m;
    struct run_case again;
    char id[CASE_ID_BYTES];

    assert_null(case_check(c));
    case_id(c, id);
    assert_true(strlen(id) < CASE_ID_BYTES - 1);
    assert_true(case_of_id(id, &again));
    assert_memory_equal(&again, c, sizeof(again));
    make(c, &m);
    check_units(&m.model->model, &m.units.units, c->wrap == CASE_WRAP_SCATTER);
    check_sequences(&m.model->model);
    assert_true(c->prefetch_forward <= m.units.units.n_units);
    assert_true(c->prefetch_backward <= m.units.units.n_units);
    assert_true(c->reduces_in_flight <= m.units.units.n_units);
    assert_true(m.model->model.n_parameters <= GRAPH_PARAMETERS);
    case_model_release(&m);
}

UNIT_TEST(cases_are_well_formed)
{
    struct run_case c;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        case_graph_draw(seed, &c);
        check_case(&c);
    }
}

/* A hash of the ids, units, calls and ties of all seeds. */
static uint64_t drawn_by(uint32_t generator)
{
    uint64_t hash = batch_hash_start;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char id[CASE_ID_BYTES];
        struct run_case c;
        struct graph g;

        case_graph_draw_by(generator, seed, &c);
        case_id(&c, id);
        hash = batch_hash(hash, id, strlen(id));
        assert_true(case_graph_of(&c, &g));
        hash = batch_hash(hash, g.unit_of_module,
                          g.n_modules * sizeof(g.unit_of_module[0]));
        hash = batch_hash(hash, g.call, g.n_calls * sizeof(g.call[0]));
        for (uint32_t m = 0; m < g.n_modules; m++) {
            for (uint32_t i = 0; i < g.module[m].n_parameters; i++) {
                const struct graph_parameter *p = &g.module[m].parameter[i];

                hash = batch_hash(hash, &p->tied, sizeof(p->tied));
                hash = generator < 3
                           ? hash
                           : batch_hash(hash, &p->unit, sizeof(p->unit));
            }
        }
    }
    return hash;
}

/* Golden: a seed that a user has noted goes on drawing the same case. */
UNIT_TEST(generators_draw_what_they_drew)
{
    static const uint64_t golden[] = {0x78b508f8cab05703, 0x3190f741dd5c644f,
                                      0x95c84469a518a159};

    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t got = drawn_by(i + 1);

        print_message("generator %u: %llx\n", i + 1, (unsigned long long)got);
        assert_true(got == golden[i]);
    }
}

UNIT_TEST(a_seed_draws_the_same_again)
{
    struct run_case a;
    struct run_case b;
    struct graph g[2];
    uint32_t differ = 0;

    for (uint64_t seed = 0; seed < 200; seed++) {
        memset(&g, 0xff, sizeof(g));
        case_graph_draw(seed, &a);
        case_graph_draw(seed, &b);
        assert_memory_equal(&a, &b, sizeof(a));
        assert_true(case_graph_of(&a, &g[0]));
        assert_true(case_graph_of(&b, &g[1]));
        assert_memory_equal(&g[0], &g[1], sizeof(g[0]));
        case_graph_draw(seed + 1, &b);
        assert_true(case_graph_of(&b, &g[1]));
        /* Both were filled before: NOLINTNEXTLINE(bugprone-*,cert-*) */
        differ += memcmp(&g[0], &g[1], sizeof(g[0])) != 0;
    }
    assert_int_equal(differ, 200);
}

/* How many of a hundred graphs have a feature, at least. */
UNIT_TEST(every_feature_occurs)
{
    uint32_t n[GRAPH_N_FEATURES] = {0};
    struct run_case c;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        case_graph_draw(seed, &c);
        for (uint32_t f = 0; f < GRAPH_N_FEATURES; f++) {
            n[f] += case_graph_has(&c, 1u << f);
        }
    }
    for (uint32_t f = 0; f < GRAPH_N_FEATURES; f++) {
        print_message("%-24s %5.1f %%\n", graph_feature_name[f],
                      100.0 * n[f] / SEEDS);
        assert_true(n[f] > SEEDS / 20);
        assert_true(n[f] < SEEDS / 20 * 19);
    }
}

#define COUNT(of, value) (of)[(value) < 16 ? (value) : 15]++

UNIT_TEST(every_option_occurs)
{
    uint32_t strategy[16] = {0};
    uint32_t ranks[16] = {0};
    uint32_t fold[16] = {0};
    uint32_t optimizer[16] = {0};
    uint32_t scenario[16] = {0};
    uint32_t sync[16] = {0};
    uint32_t forward[16] = {0};
    uint32_t backward[16] = {0};
    uint32_t flight[16] = {0};
    uint32_t keep[16] = {0};
    uint32_t steps[16] = {0};
    const struct {
        const uint32_t *of;
        uint32_t from, to;
    } wanted[] = {{strategy, 0, 4},  {ranks, 1, 4},    {fold, 0, 2},
                  {optimizer, 0, 2}, {scenario, 0, 3}, {scenario, 6, 7},
                  {sync, 1, 3},      {forward, 0, 2},  {backward, 0, 2},
                  {flight, 0, 2},    {keep, 0, 1},     {steps, 2, 3}};
    struct run_case c;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        case_graph_draw(seed, &c);
        COUNT(strategy, c.strategy);
        COUNT(ranks, c.ranks);
        COUNT(fold, c.fold);
        COUNT(optimizer, c.optimizer);
        COUNT(scenario, c.scenario);
        COUNT(sync, c.microbatches);
        COUNT(forward, c.prefetch_forward);
        COUNT(backward, c.prefetch_backward);
        COUNT(flight, c.reduces_in_flight);
        COUNT(keep, c.keep_root);
        COUNT(steps, c.steps);
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        for (uint32_t k = wanted[i].from; k <= wanted[i].to; k++) {
            if (wanted[i].of[k] <= SEEDS / 50) {
                print_error("row %zu, value %u: %u\n", i, k, wanted[i].of[k]);
            }
            assert_true(wanted[i].of[k] > SEEDS / 50);
        }
    }
}

static uint32_t weight_of(const struct run_case *c)
{
    struct graph g;

    assert_true(case_graph_of(c, &g));
    return 1000 * (g.n_modules + g.n_calls + g.n_units) + 100 * c->ranks +
           10 * c->steps + c->microbatches;
}

UNIT_TEST(what_is_smaller_can_be_run)
{
    uint32_t lighter = 0;
    uint32_t n = 0;

    for (uint64_t seed = 0; seed < 40; seed++) {
        struct run_case c;
        struct run_case smaller;
        uint32_t at = 0;

        case_graph_draw(seed, &c);
        while (case_graph_smaller(&c, &at, &smaller)) {
            check_case(&smaller);
            assert_true(weight_of(&smaller) <= weight_of(&c));
            lighter += weight_of(&smaller) < weight_of(&c);
            n++;
        }
    }
    assert_true(n > 40 * 10);
    assert_true(lighter > n / 2);
}

/* A search that always takes the smaller case ends at the head alone. */
UNIT_TEST(the_smallest_has_nothing_smaller)
{
    struct run_case c;
    struct run_case smaller;
    struct graph g;
    uint32_t rounds = 0;

    case_graph_draw(17, &c);
    for (uint32_t at = 0; case_graph_smaller(&c, &at, &smaller); at = 0) {
        c = smaller;
        assert_true(++rounds < 200);
    }
    assert_true(case_graph_of(&c, &g));
    assert_int_equal(g.n_modules, 2);
    assert_int_equal(g.n_calls, 2);
    assert_true(g.n_units <= 2);
    assert_int_equal(c.steps, 1);
    assert_int_equal(c.ranks, 1);
    assert_int_equal(c.scenario, CASE_TRAIN);
}

UNIT_TEST(sizes_have_one_name)
{
    static const char *const bad[] = {"",
                                      "Random",
                                      "x",
                                      "x0123456789abc",
                                      "x0123456789abcde0",
                                      "x0123456789abcg",
                                      "xffffffffffffff",
                                      "tffffffffffffff",
                                      "uffffffffffffff",
                                      "bffffffffffffff",
                                      "tied",
                                      "y00000000000000"};
    uint64_t bits;
    char size[16];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(graph_size_bits(bad[i], &bits));
    }
    for (uint32_t i = 0; i < GRAPH_BITS; i++) {
        graph_size_text((uint64_t)1 << i, size);
        assert_true(graph_size_bits(size, &bits));
        assert_true(bits == (uint64_t)1 << i);
    }
    assert_true(graph_size_bits("random", &bits));
    graph_size_text(bits, size);
    assert_string_equal(size, "random");
    assert_true(graph_size_bits("ties", &bits));
    assert_true((bits >> GRAPH_TIES & 1) != 0);
    graph_size_text(bits, size);
    assert_string_equal(size, "ties");
    graph_size_text(bits & ~(uint64_t)1, size);
    assert_string_equal(size, "tfffffffffffffe");
    assert_true(graph_size_bits(size, &bits));
    assert_true(graph_size_bits("both", &bits));
    graph_size_text(bits & ~(uint64_t)1, size);
    assert_string_equal(size, "bfffffffffffffe");
    assert_true(graph_size_bits(size, &bits));
    graph_size_text(bits & ~((uint64_t)1 << GRAPH_TIES), size);
    assert_string_equal(size, "ufffffffffffffe");
}

/* Each feature occurs in the manifest's own random cases, and in such a one
 * that every engine claims to run, as it does not run ahead. */
UNIT_TEST(the_manifest_has_every_feature)
{
    struct fsdp_error error = {0};
    struct case_list list;
    uint32_t all = 0;
    uint32_t n = 0;

    assert_int_equal(manifest_make(&list, &error), FSDP_OK);
    for (uint32_t i = 0; i < list.n; i++) {
        const struct run_case *c = &list.c[i];
        struct graph g;

        if (case_graph_of(c, &g)) {
            const bool ahead = c->prefetch_forward + c->prefetch_backward +
                                   c->reduces_in_flight >
                               0;

            all |= c->layout == FSDP_LAYOUT_FLAT && !ahead ? graph_features(&g)
                                                           : 0;
            n++;
        }
    }
    assert_int_equal(n, 36);
    assert_int_equal(all, (1u << GRAPH_N_FEATURES) - 1);
    manifest_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_are_well_formed),
        cmocka_unit_test(generators_draw_what_they_drew),
        cmocka_unit_test(a_seed_draws_the_same_again),
        cmocka_unit_test(every_feature_occurs),
        cmocka_unit_test(every_option_occurs),
        cmocka_unit_test(what_is_smaller_can_be_run),
        cmocka_unit_test(the_smallest_has_nothing_smaller),
        cmocka_unit_test(sizes_have_one_name),
        cmocka_unit_test(the_manifest_has_every_feature),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
