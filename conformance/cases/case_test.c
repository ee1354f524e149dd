/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_test.c - names, ids, checks, options and baseline keys of cases; and
 * whether they leave gradients unreduced.
 */
#include "cases/case_claims_testing.h"
#include "testing/unit_testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct run_case plain(void)
{
    struct run_case c;

    memset(&c, 0, sizeof(c));
    (void)strcpy(c.workload, "mlp");
    (void)strcpy(c.size, "seed");
    c.seed = 1;
    c.ranks = 4;
    c.replicas = 1;
    c.wrap = CASE_WRAP_LAYER;
    c.microbatches = 1;
    c.sync[0] = 1;
    c.lr = 0.05f;
    c.steps = 4;
    c.recorded_steps = 2;
    return c;
}

static void assert_id(const struct run_case *c, const char *wanted)
{
    char id[CASE_ID_BYTES];

    case_id(c, id);
    assert_string_equal(id, wanted);
}

UNIT_TEST(an_id_names_what_is_special)
{
    struct run_case c = plain();

    assert_id(&c, "mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd");
    c.strategy = CASE_HYBRID_SHARD;
    c.replicas = 2;
    c.scenario = CASE_EVAL;
    c.keep_root = 1;
    c.lr = 1e-5f;
    c.weight_decay = 0.01f;
    c.divide_factor = 1e6f;
    c.steps = 40;
    c.recorded_steps = 0;
    c.seed = UINT64_MAX;
    c.microbatches = 3;
    c.sync[0] = 0;
    c.sync[2] = 1;
    c.prefetch_forward = 2;
    assert_id(&c, "mlp.seed.natural.hybrid-shard.k4r2.flat.layer.rank.nns.sgd."
                  "eval.keep-root.lr1e-05.wd0.01.div1e06.pf2.steps40.rec0."
                  "seed18446744073709551615");
    c = plain();
    c.strategy = CASE_NO_SHARD;
    c.replicas = 4;
    c.fold = FSDP_FOLD_TREE;
    c.grains = CASE_GRAINS;
    assert_id(&c, "mlp.seed.natural.no-shard.k4.flat.layer.tree.s.sgd");
}

/* Not part of any well-formed case, but ids are made of these too. */
UNIT_TEST(an_id_of_nonsense_stays_in_its_buffer)
{
    struct {
        char id[CASE_ID_BYTES];
        char guard[8];
    } at;
    struct run_case c;

    for (int byte = 0; byte < 256; byte++) {
        memset(&c, byte, sizeof(c));
        memset(&at, 0x5a, sizeof(at));
        case_id(&c, at.id);
        assert_memory_equal(at.guard, "ZZZZZZZZ", 8);
        assert_non_null(memchr(at.id, '\0', sizeof(at.id)));
        memset(at.id, 0x5a, sizeof(at.id));
        case_baseline_key(&c, at.id);
        assert_memory_equal(at.guard, "ZZZZZZZZ", 8);
        assert_non_null(memchr(at.id, '\0', sizeof(at.id)));
    }
}

UNIT_TEST(floats_are_short_and_come_back)
{
    static const struct {
        float x;
        const char *text;
    } pinned[] = {
        {0.05f, "0.05"},
        {0.1f, "0.1"},
        {0.25f, "0.25"},
        {1e-3f, "0.001"},
        {1e-8f, "1e-08"},
        {3e38f, "3e38"},
        {0.0f, "0"},
        {-2.5f, "-2.5"},
        {0.3333333433f, "0.33333334"},
        {1e-45f, "1e-45"},
        {16777216.0f, "16777216"},
    };
    char text[CASE_FLOAT_BYTES];
    uint32_t bits = 1;
    float x;

    for (size_t i = 0; i < N_OF(pinned); i++) {
        case_float_text(pinned[i].x, text);
        assert_string_equal(text, pinned[i].text);
    }
    for (int i = 0; i < 100000; i++) {
        bits = bits * 1664525u + 1013904223u;
        memcpy(&x, &bits, sizeof(x));
        if (isfinite(x)) {
            case_float_text(x, text);
            assert_true((float)strtod(text, NULL) == x);
            assert_null(strchr(text, '+'));
        }
    }
}

UNIT_TEST(names_come_back_as_values)
{
    static const struct {
        const char *(*name)(uint32_t);
        uint32_t n;
    } list[] = {
        {case_strategy_name, CASE_N_STRATEGIES},
        {case_wrap_name, CASE_N_WRAPS},
        {case_scenario_name, CASE_N_SCENARIOS},
        {case_fold_name, 3},
        {case_optimizer_name, 3},
        {case_layout_name, 2},
        {case_data_name, 4},
    };
    uint32_t value;

    for (size_t i = 0; i < N_OF(list); i++) {
        for (uint32_t v = 0; v < list[i].n; v++) {
            assert_non_null(list[i].name(v));
            value = UINT32_MAX;
            assert_true(case_value(list[i].name, list[i].name(v), &value));
            assert_int_equal(value, v);
        }
        assert_null(list[i].name(list[i].n));
        assert_null(list[i].name(UINT32_MAX));
        assert_false(case_value(list[i].name, "", &value));
        assert_false(case_value(list[i].name, "nobody", &value));
    }
    assert_string_equal(case_strategy_name(CASE_HYBRID_SHARD_ZERO2),
                        "hybrid-shard-zero2");
    assert_string_equal(case_scenario_name(CASE_AGAIN), "again");
    assert_string_equal(case_wrap_name(CASE_WRAP_HEAD), "head");
}

/* A fault: the field at `offset` is set to a value that no case has. */
struct fault {
    size_t offset;
    uint32_t value;
};

#define FAULT(field, value)                       \
    {                                             \
        offsetof(struct run_case, field), (value) \
    }

enum {
    BITS_NAN = 0x7fc00000,
    BITS_INF = 0x7f800000,
    BITS_MINUS_ZERO = (int)0x80000000,
    BITS_MINUS_ONE = (int)0xbf800000,
};

UNIT_TEST(faults_of_cases_are_found)
{
    static const struct fault fault[] = {
        FAULT(workload, 0),
        FAULT(workload, 0x2f2e2e2f), /* "/../" */
        FAULT(size, 0x00000041),     /* "A" */
        FAULT(data, 3),
        FAULT(scenario, CASE_N_SCENARIOS),
        FAULT(strategy, CASE_N_STRATEGIES),
        FAULT(ranks, 0),
        FAULT(ranks, CASE_MAX_RANKS + 1),
        FAULT(replicas, 0),
        FAULT(replicas, 2),
        FAULT(layout, 2),
        FAULT(wrap, CASE_N_WRAPS),
        FAULT(fold, FSDP_FOLD_TREE), /* without grains */
        FAULT(fold, 3),
        FAULT(grains, 8), /* without a tree */
        FAULT(keep_root, 2),
        FAULT(microbatches, 0),
        FAULT(microbatches, 2), /* the second is not reduced */
        FAULT(microbatches, 5),
        FAULT(sync[0], 0),
        FAULT(sync[0], 2),
        FAULT(sync[1], 1),
        FAULT(optimizer, 3),
        FAULT(lr, 0),
        FAULT(lr, BITS_NAN),
        FAULT(lr, BITS_INF),
        FAULT(lr, (uint32_t)BITS_MINUS_ONE),
        FAULT(weight_decay, BITS_NAN),
        FAULT(weight_decay, (uint32_t)BITS_MINUS_ZERO),
        FAULT(weight_decay, (uint32_t)BITS_MINUS_ONE),
        FAULT(divide_factor, BITS_INF),
        FAULT(divide_factor, (uint32_t)BITS_MINUS_ONE),
        FAULT(prefetch_forward, 65),
        FAULT(prefetch_backward, 65),
        FAULT(reduces_in_flight, 65),
        FAULT(steps, 0),
        FAULT(steps, 1), /* fewer than are recorded */
        FAULT(steps, 100001),
        FAULT(recorded_steps, 5),
    };
    struct run_case c = plain();

    assert_null(case_check(&c));
    for (size_t i = 0; i < N_OF(fault); i++) {
        c = plain();
        memcpy((char *)&c + fault[i].offset, &fault[i].value, 4);
        if (!case_check(&c)) {
            print_error("fault %zu was not found\n", i);
        }
        assert_non_null(case_check(&c));
    }
    c = plain();
    memset(c.size, 'a', sizeof(c.size)); /* no end */
    assert_non_null(case_check(&c));
}

UNIT_TEST(meshes_fit_strategies)
{
    struct run_case c = plain();

    c.strategy = CASE_NO_SHARD;
    assert_non_null(case_check(&c));
    c.replicas = 4;
    assert_null(case_check(&c));
    assert_int_equal(case_shard_degree(&c), 1);
    c.strategy = CASE_HYBRID_SHARD_ZERO2;
    assert_non_null(case_check(&c));
    c.replicas = 1;
    assert_non_null(case_check(&c));
    c.replicas = 3;
    assert_non_null(case_check(&c));
    c.replicas = 2;
    assert_null(case_check(&c));
    assert_int_equal(case_shard_degree(&c), 2);
    c.fold = FSDP_FOLD_TREE;
    c.grains = CASE_GRAINS;
    assert_null(case_check(&c));
    c.ranks = 6;
    assert_non_null(case_check(&c));
    c.ranks = 16;
    assert_non_null(case_check(&c));
    c.grains = CASE_MANY_GRAINS;
    assert_null(case_check(&c));
    c.ranks = 8;
    assert_non_null(case_check(&c));
    c = plain();
    c.scenario = CASE_DISAGREE;
    assert_null(case_check(&c));
    c.ranks = 1;
    assert_non_null(case_check(&c));
}

UNIT_TEST(options_follow_the_strategy)
{
    static const uint32_t reshards[CASE_N_STRATEGIES] = {1, 0, 0, 1, 0};
    struct fsdp_options options;
    struct run_case c = plain();

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        c.strategy = s;
        memset(&options, 0xff, sizeof(options));
        case_options(&c, &options);
        assert_int_equal(options.size, sizeof(options));
        assert_int_equal(options.reshard_after_forward, reshards[s]);
        assert_int_equal(options.param_dtype, FSDP_DTYPE_NONE);
        assert_int_equal(options.n_groups, 0);
        assert_null(options.group_of_parameter);
    }
    c.layout = FSDP_LAYOUT_PER_PARAMETER;
    c.fold = FSDP_FOLD_RING;
    c.keep_root = 1;
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    c.divide_factor = 8.0f;
    c.prefetch_forward = 1;
    c.prefetch_backward = 2;
    c.reduces_in_flight = 3;
    case_options(&c, &options);
    assert_int_equal(options.layout, FSDP_LAYOUT_PER_PARAMETER);
    assert_int_equal(options.fold, FSDP_FOLD_RING);
    assert_int_equal(options.keep_root, 1);
    assert_int_equal(options.optimizer, FSDP_OPTIMIZER_ADAMW);
    assert_true(options.divide_factor == 8.0f);
    assert_true(options.momentum == 0.9f && options.beta1 == 0.9f);
    assert_true(options.beta2 == 0.999f && options.eps == 1e-8f);
    assert_int_equal(options.prefetch_forward, 1);
    assert_int_equal(options.prefetch_backward, 2);
    assert_int_equal(options.reduces_in_flight, 3);
}

static bool same_key(const struct run_case *a, const struct run_case *b)
{
    char key[2][CASE_ID_BYTES];

    case_baseline_key(a, key[0]);
    case_baseline_key(b, key[1]);
    return strcmp(key[0], key[1]) == 0;
}

UNIT_TEST(what_does_not_matter_unsharded_shares_a_key)
{
    const struct run_case c = plain();
    struct run_case d = c;
    char key[CASE_ID_BYTES];

    case_baseline_key(&c, key);
    assert_string_equal(key, "mlp.seed.natural.seed1.k4r1.rank.g0.s.sgd.lr0.05."
                             "wd0.div0.steps4.rec2");
    d.strategy = CASE_SHARD_GRAD_OP;
    d.wrap = CASE_WRAP_HEAD;
    d.layout = FSDP_LAYOUT_PER_PARAMETER;
    d.keep_root = 1;
    d.scenario = CASE_CANCEL;
    d.prefetch_forward = 1;
    d.prefetch_backward = 1;
    d.reduces_in_flight = 1;
    assert_true(same_key(&c, &d));
    d.scenario = CASE_EVAL; /* an evaluation has losses of its own */
    assert_false(same_key(&c, &d));
}

UNIT_TEST(what_matters_unsharded_has_a_key_of_its_own)
{
    static const struct fault change[] = {
        FAULT(workload, 0x00747067),
        FAULT(size, 0x0064646f),
        FAULT(data, 2),
        FAULT(seed, 2),
        FAULT(ranks, 8),
        FAULT(replicas, 2),
        FAULT(fold, FSDP_FOLD_RING),
        FAULT(grains, 16),
        FAULT(sync[0], 0),
        FAULT(microbatches, 2),
        FAULT(optimizer, FSDP_OPTIMIZER_ADAMW),
        FAULT(lr, 0x3f000000),
        FAULT(weight_decay, 0x3f000000),
        FAULT(divide_factor, 0x3f000000),
        FAULT(steps, 5),
        FAULT(recorded_steps, 1),
    };
    const struct run_case c = plain();
    struct run_case ring = c;
    struct run_case d;

    for (size_t i = 0; i < N_OF(change); i++) {
        d = c;
        memcpy((char *)&d + change[i].offset, &change[i].value, 4);
        if (same_key(&c, &d)) {
            print_error("change %zu left the key as it was\n", i);
        }
        assert_false(same_key(&c, &d));
    }
    /* Under the ring fold the sum depends on an element's owner, which follows
     * from the wrap. */
    ring.fold = FSDP_FOLD_RING;
    d = ring;
    d.wrap = CASE_WRAP_WHOLE;
    assert_false(same_key(&ring, &d));
    d = ring;
    d.layout = FSDP_LAYOUT_PER_PARAMETER;
    assert_false(same_key(&ring, &d));
}

/* Only microbatches that the case has are looked at, and the claim depends on
 * them alone. */
UNIT_TEST(a_microbatch_may_stay_unreduced)
{
    struct run_case c = plain();

    c.microbatches = 2;
    c.sync[1] = 1;
    c.sync[2] = 0;
    assert_false(case_leaves_unreduced(&c));
    assert_false(case_needs(&c, "no-sync"));
    c.sync[0] = 0;
    assert_true(case_leaves_unreduced(&c));
    assert_true(case_needs(&c, "no-sync"));
    c.microbatches = UINT32_MAX; /* a case that case_check would refuse */
    for (uint32_t b = 0; b < CASE_MAX_MICROBATCHES; b++) {
        c.sync[b] = 1;
    }
    assert_false(case_leaves_unreduced(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_names_what_is_special),
        cmocka_unit_test(an_id_of_nonsense_stays_in_its_buffer),
        cmocka_unit_test(floats_are_short_and_come_back),
        cmocka_unit_test(names_come_back_as_values),
        cmocka_unit_test(faults_of_cases_are_found),
        cmocka_unit_test(meshes_fit_strategies),
        cmocka_unit_test(options_follow_the_strategy),
        cmocka_unit_test(what_does_not_matter_unsharded_shares_a_key),
        cmocka_unit_test(what_matters_unsharded_has_a_key_of_its_own),
        cmocka_unit_test(a_microbatch_may_stay_unreduced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
