/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_test.c - the manifest is the pinned one, its cases are well formed
 * and different, and lists of cases are read strictly. That every pair of
 * values occurs is shown by case_pairs_test.c.
 */
#include "cases/case_precision.h"
#include "cases/case_script.h"
#include "testing/unit_testing.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make(struct case_list *list)
{
    struct fsdp_error error = {0};

    if (manifest_make(list, &error) != FSDP_OK) {
        print_error("%s\n", error.message);
    }
    assert_int_equal(error.status, FSDP_OK);
}

/* The text that manifest_sha256 is the hash of (case.h); the caller frees
 * it. */
static char *pinned_text(const struct case_list *list)
{
    const struct case_script *s;
    char id[CASE_ID_BYTES];
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);

    assert_non_null(f);
    for (uint32_t i = 0; i < list->n; i++) {
        case_id(&list->c[i], id);
        fprintf(f, "%s\n", id);
    }
    for (uint32_t i = 0; (s = case_script_listed(i)); i++) {
        fprintf(f, "%s\n%s", s->name, s->text);
    }
    assert_int_equal(fclose(f), 0);
    return text;
}

UNIT_TEST(the_list_is_the_pinned_one)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char hex[2 * SHA256_DIGEST_LENGTH + 1];
    struct case_list list;
    char *text;

    make(&list);
    text = pinned_text(&list);
    assert_non_null(SHA256((unsigned char *)text, strlen(text), digest));
    for (size_t i = 0; i < sizeof(digest); i++) {
        sprintf(hex + 2 * i, "%02x", digest[i]);
    }
    if (list.n != manifest_count || strcmp(hex, manifest_sha256) != 0) {
        print_error("cases.txt has %u cases, SHA-256 with scripts.txt %s; "
                    "manifest.c pins %u, %s\n",
                    list.n, hex, manifest_count, manifest_sha256);
    }
    assert_int_equal(list.n, manifest_count);
    assert_string_equal(hex, manifest_sha256);
    free(text);
    manifest_release(&list);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void check_list(const struct case_list *list)
{
    char(*id)[CASE_ID_BYTES] = calloc(list->n, sizeof(*id));

    assert_non_null(id);
    for (uint32_t i = 0; i < list->n; i++) {
        const char *const wrong = case_check(&list->c[i]);

        case_id(&list->c[i], id[i]);
        if (wrong) {
            print_error("%s: %s\n", id[i], wrong);
        }
        assert_null(wrong);
        assert_null(strstr(id[i], "unknown"));
        /* None was cut off, or two cases could have one id. */
        assert_true(strlen(id[i]) < CASE_ID_BYTES - 1);
        assert_int_equal(strspn(id[i], "abcdefghijklmnopqrstuvwxyz"
                                       "0123456789.-"),
                         strlen(id[i]));
    }
    qsort(id, list->n, sizeof(*id), by_text);
    for (uint32_t i = 1; i < list->n; i++) {
        assert_string_not_equal(id[i - 1], id[i]);
    }
    free(id);
}

UNIT_TEST(cases_are_well_formed_and_differ)
{
    struct case_list list;

    make(&list);
    assert_in_range(list.n, 300, 1200);
    check_list(&list);
    manifest_release(&list);
}

/* `--level layout` turns each case into one that only shards. */
UNIT_TEST(each_can_be_sharded_alone)
{
    struct case_list list;

    make(&list);
    for (uint32_t i = 0; i < list.n; i++) {
        struct run_case c;
        const char *why;

        case_sharded(&list.c[i], &c);
        why = case_check(&c);
        if (why) {
            char id[CASE_ID_BYTES];

            case_id(&list.c[i], id);
            fail_msg("%s: %s", id, why);
        }
    }
    manifest_release(&list);
}

/* A check of arithmetic needs data whose order matters, an odd world and
 * batches that differ: natural data on three ranks, or on three along one
 * dimension. */
UNIT_TEST(every_strategy_has_natural_data_of_three)
{
    bool found[CASE_N_STRATEGIES] = {false};
    struct case_list list;

    make(&list);
    for (uint32_t i = 0; i < list.n; i++) {
        const struct run_case *const c = &list.c[i];
        const bool three = c->strategy >= CASE_HYBRID_SHARD
                               ? c->ranks == 6 && c->replicas == 2
                               : c->ranks == 3;

        if (three && c->data == WORKLOAD_NATURAL && case_trains(c) &&
            c->optimizer == FSDP_OPTIMIZER_SGD) {
            found[c->strategy] = true;
        }
    }
    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        assert_true(found[s]);
    }
    manifest_release(&list);
}

static bool has(const struct case_list *list, const char *wanted)
{
    char id[CASE_ID_BYTES];

    for (uint32_t i = 0; i < list->n; i++) {
        case_id(&list->c[i], id);
        if (strcmp(id, wanted) == 0) {
            return true;
        }
    }
    return false;
}

UNIT_TEST(the_core_is_there)
{
    static const char *const core[] = {
        "mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.steps40",
        "mlp.seed.natural.full-shard.k4.flat.whole.rank.s.sgd.steps40",
        "mlp.seed.natural.full-shard.k4.flat.pair.rank.s.sgd.steps40",
        "mlp.seed.replicated.full-shard.k1.flat.layer.rank.s.sgd.steps40",
        "mlp.seed.replicated.full-shard.k3.flat.layer.rank.s.sgd.steps40",
        "mlp.seed.natural.hybrid-shard.k6r2.flat.layer.rank.s.sgd.steps40",
        "mlp.seed.natural.full-shard.k8.flat.layer.tree.s.adamw",
        "gpt.tiny.natural.full-shard.k1.flat.layer.tree.s.momentum",
        "gpt.small.natural.full-shard.k2.flat.block.rank.s.adamw.steps20.rec1",
        "linear.large.exact.full-shard.k2.flat.layer.rank.s.sgd.steps2.rec0",
        "mlp.seed.natural.no-shard.k3.flat.layer.rank.s.sgd.disagree",
        "mlp.seed.natural.full-shard.k1.flat.layer.rank.s.sgd.options",
        "mlp.empty.natural.full-shard.k7.flat.layer.rank.s.sgd",
    };
    struct case_list list;

    make(&list);
    for (size_t i = 0; i < sizeof(core) / sizeof(core[0]); i++) {
        if (!has(&list, core[i])) {
            print_error("missing: %s\n", core[i]);
        }
        assert_true(has(&list, core[i]));
    }
    assert_false(has(&list, "mlp.seed.natural"));
    manifest_release(&list);
}

/* Whether the case's optimizer computes exactly: SGD does, and momentum where
 * the script sets it to 0.5. */
static bool has_exact_optimizer(const struct run_case *c)
{
    const struct case_script *s = case_script_of(c);

    return c->optimizer == FSDP_OPTIMIZER_SGD ||
           (c->optimizer == FSDP_OPTIMIZER_MOMENTUM && s &&
            strstr(s->text, "\nmomentum 0.5\n"));
}

/* Cases with exact data have only factors that are powers of two, without which
 * the data would not be exact. */
static void check_exact(const struct case_list *list, uint32_t at_least)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        const struct run_case *const c = &list->c[i];
        const uint32_t factor =
            c->divide_factor == 0.0f ? c->ranks : (uint32_t)c->divide_factor;
        float lr = c->lr;

        if (c->data != WORKLOAD_EXACT) {
            continue;
        }
        n++;
        while (lr < 1.0f) {
            lr *= 2.0f;
        }
        assert_true(lr == 1.0f);
        assert_int_equal(factor & (factor - 1), 0);
        assert_true(factor >= c->ranks);
        assert_true(c->weight_decay == 0.0f);
        assert_true(has_exact_optimizer(c));
        assert_true(strcmp(c->workload, "linear") == 0 || c->steps == 1);
    }
    assert_true(n > at_least);
}

/* Cases with data exact16 have a power of two of ranks, or three: a third of a
 * gradient is exact where gradients were rounded to bf16 first. */
static void check_exact16(const struct case_list *list, uint32_t at_least)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        const struct run_case *const c = &list->c[i];
        const bool power = (c->ranks & (c->ranks - 1)) == 0;

        if (c->data == WORKLOAD_EXACT16) {
            n++;
            assert_true(power || (c->ranks == 3 && c->precision != CASE_UNITS &&
                                  case_uses_dtype(c, FSDP_DTYPE_BF16)));
            assert_true(c->lr == 0.125f && c->divide_factor == 0.0f);
            assert_true(has_exact_optimizer(c));
            assert_true(case_is_script(c) || c->steps <= 4);
            assert_true(c->precision != CASE_F32);
        }
    }
    assert_true(n >= at_least);
}

UNIT_TEST(exact_data_stay_exact)
{
    struct case_list list;

    make(&list);
    check_exact(&list, 20);
    check_exact16(&list, 20);
    manifest_release(&list);
}

/* A prime has no mesh; 16 and 64 are powers of two, by which exact data need
 * no other factor; 36 is divided by seven numbers of replicas. */
UNIT_TEST(other_worlds_have_cases_too)
{
    static const uint32_t ranks[] = {5, 16, 36, 64};
    static const uint32_t n_meshes[] = {0, 3, 7, 5};
    static const uint32_t n_trees[] = {0, 7, 0, 9}; /* their K divides 64 */
    struct fsdp_error error = {0};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        struct case_list list = {NULL, 0};
        uint32_t n = 0;

        assert_int_equal(manifest_add_world(ranks[i], &list, &error), FSDP_OK);
        check_list(&list);
        check_exact(&list, 20);
        assert_int_equal(list.n, 166 + 41 * n_meshes[i] + n_trees[i]);
        for (uint32_t k = 0; k < list.n; k++) {
            assert_int_equal(list.c[k].ranks, ranks[i]);
        }
        n = list.n; /* a world that is there is not added again */
        assert_int_equal(manifest_add_world(ranks[i], &list, &error), FSDP_OK);
        assert_int_equal(list.n, n);
        manifest_release(&list);
    }
}

/* A large world has each strategy in both layouts; a prime number of ranks has
 * no hybrid strategy. */
UNIT_TEST(large_worlds_have_a_dozen)
{
    static const uint32_t ranks[] = {67, 128, 300, 512};
    static const uint32_t n[] = {8, 12, 12, 12};
    struct fsdp_error error = {0};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        struct case_list list = {NULL, 0};
        uint32_t shown[CASE_N_STRATEGIES][2][2] = {{{0}}};

        assert_int_equal(manifest_add_world(ranks[i], &list, &error), FSDP_OK);
        check_list(&list);
        assert_int_equal(list.n, n[i]);
        for (uint32_t k = 0; k < list.n; k++) {
            const struct run_case *c = &list.c[k];

            assert_int_equal(c->ranks, ranks[i]);
            assert_in_range(c->steps, 2, 4);
            shown[c->strategy][c->layout == FSDP_LAYOUT_FLAT]
                 [c->fold == FSDP_FOLD_RING]++;
        }
        for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
            const bool hybrid =
                s == CASE_HYBRID_SHARD || s == CASE_HYBRID_SHARD_ZERO2;

            for (uint32_t flat = 0; flat < 2; flat++) {
                assert_int_equal(shown[s][flat][0] + shown[s][flat][1] > 0,
                                 n[i] == 12 || !hybrid);
            }
            assert_int_equal(shown[s][0][0] + shown[s][1][0] > 0,
                             n[i] == 12 || !hybrid);
            assert_int_equal(shown[s][0][1] + shown[s][1][1] > 0,
                             n[i] == 12 || !hybrid);
        }
        manifest_release(&list);
    }
}

UNIT_TEST(golden_cases_are_well_formed)
{
    struct fsdp_error error = {0};
    struct case_list list;

    assert_int_equal(manifest_golden(&list, &error), FSDP_OK);
    assert_int_equal(list.n, 38);
    check_list(&list);
    manifest_release(&list);
}

#define GOOD_ID "mlp.odd.natural.full-shard.k3.flat.layer.rank.s.sgd"

UNIT_TEST(lists_are_read_strictly)
{
    static const struct {
        const char *text;
        uint32_t line;
        const char *why;
    } bad[] = {
        {GOOD_ID "\n" GOOD_ID "\n", 2, "is there twice"},
        {"# a comment\n\n" GOOD_ID "x\n", 3, "is no case"},
        {GOOD_ID " \n", 1, "is no case"},
        {GOOD_ID "\r\n", 1, "is no case"},
        {" " GOOD_ID "\n", 1, "is no case"},
        {GOOD_ID " # behind an id\n", 1, "is no case"},
        {"mlp.odd.natural.full-shard.kK.flat.layer.rank.s.sgd\n", 1,
         "is no case"},
        {GOOD_ID ".steps4\n", 1, "is no case"}, /* ids leave a default out */
    };
    struct fsdp_error error;
    struct case_list list;
    char line[16];

    memset(&error, 0, sizeof(error));
    assert_int_equal(case_list_read("t",
                                    "# two\n" GOOD_ID "\n\n" GOOD_ID ".steps5",
                                    &list, &error),
                     FSDP_OK);
    assert_int_equal(list.n, 2);
    manifest_release(&list);
    assert_int_equal(case_list_read("t", "", &list, &error), FSDP_OK);
    assert_int_equal(list.n, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&error, 0, sizeof(error));
        assert_int_equal(case_list_read("t", bad[i].text, &list, &error),
                         FSDP_ERR_INTERNAL);
        assert_null(list.c);
        assert_int_equal(error.status, FSDP_ERR_INTERNAL);
        snprintf(line, sizeof(line), "t:%u: ", bad[i].line);
        assert_memory_equal(error.message, line, strlen(line));
        assert_non_null(strstr(error.message, bad[i].why));
    }
}

/* A line that is longer than any id is refused, and its beginning is not taken
 * for an id. */
UNIT_TEST(a_long_line_is_no_id)
{
    char text[2 * CASE_ID_BYTES];
    struct fsdp_error error = {0};
    struct case_list list;

    memset(text, '0', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    memcpy(text, GOOD_ID ".seed", strlen(GOOD_ID ".seed"));
    assert_int_equal(case_list_read("t", text, &list, &error),
                     FSDP_ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_the_pinned_one),
        cmocka_unit_test(cases_are_well_formed_and_differ),
        cmocka_unit_test(each_can_be_sharded_alone),
        cmocka_unit_test(every_strategy_has_natural_data_of_three),
        cmocka_unit_test(the_core_is_there),
        cmocka_unit_test(exact_data_stay_exact),
        cmocka_unit_test(other_worlds_have_cases_too),
        cmocka_unit_test(large_worlds_have_a_dozen),
        cmocka_unit_test(golden_cases_are_well_formed),
        cmocka_unit_test(lists_are_read_strictly),
        cmocka_unit_test(a_long_line_is_no_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
