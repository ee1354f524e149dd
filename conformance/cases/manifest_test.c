/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_test.c - the manifest is the pinned one, its cases are well formed
 * and different, and every pair of values that can occur does.
 *
 * Coverage is counted here anew, from the fields of finished cases: all picks
 * are enumerated to learn which pairs can occur, then the list is searched
 * for each of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cases/manifest_axes.h"
#include "models/workload.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_VALUES = 64
};

/* What a case has on an axis, as a word made of its fields. */
static void word_of(const struct run_case *c, uint32_t axis, char word[48])
{
    const uint32_t number[N_AXES] = {
        [AXIS_WRAP] = c->wrap,           [AXIS_SCENARIO] = c->scenario,
        [AXIS_STRATEGY] = c->strategy,   [AXIS_FOLD] = c->fold,
        [AXIS_OPTIMIZER] = c->optimizer, [AXIS_KEEP_ROOT] = c->keep_root,
        [AXIS_LAYOUT] = c->layout};
    char sync[CASE_MAX_MICROBATCHES + 1];

    switch (axis) {
    case AXIS_MODEL:
        (void)snprintf(word, 48, "%s.%s.%u", c->workload, c->size, c->data);
        return;
    case AXIS_WORLD:
        (void)snprintf(word, 48, "%u.%u", c->ranks,
                       c->strategy >= CASE_HYBRID_SHARD ? c->replicas : 0);
        return;
    case AXIS_AHEAD:
        (void)snprintf(word, 48, "%u.%u.%u", c->prefetch_forward,
                       c->prefetch_backward, c->reduces_in_flight);
        return;
    case AXIS_SYNC:
        case_sync_text(c, sync);
        (void)snprintf(word, 48, "%s", sync);
        return;
    default:
        (void)snprintf(word, 48, "%u", number[axis]);
    }
}

/* The words of an axis as they turn up, and which pairs of them occur. */
struct coverage {
    char word[N_AXES][MAX_VALUES][48];
    uint32_t n[N_AXES];
    uint32_t seen[N_AXES][MAX_VALUES][N_AXES][MAX_VALUES]; /* how often */
};

static uint32_t value_of(struct coverage *v, const struct run_case *c,
                         uint32_t axis)
{
    char word[48];
    uint32_t i = 0;

    word_of(c, axis, word);
    while (i < v->n[axis] && strcmp(v->word[axis][i], word) != 0) {
        i++;
    }
    if (i == v->n[axis]) {
        assert_true(i < MAX_VALUES);
        memcpy(v->word[axis][i], word, sizeof word);
        v->n[axis]++;
    }
    return i;
}

static void count_pairs(struct coverage *v, const struct run_case *c)
{
    uint32_t value[N_AXES];

    for (uint32_t a = 0; a < N_AXES; a++) {
        value[a] = value_of(v, c, a);
    }
    for (uint32_t a = 0; a < N_AXES; a++) {
        for (uint32_t b = a + 1; b < N_AXES; b++) {
            v->seen[a][value[a]][b][value[b]]++;
        }
    }
}

/* Counts the pairs of every pick that nothing excludes. */
static uint64_t count_possible(const struct manifest_axes *axes,
                               struct coverage *v)
{
    uint32_t pick[N_AXES] = {0};
    uint64_t n = 0;
    uint32_t a = 0;
    struct run_case c;

    while (a < N_AXES) {
        if (manifest_excluded(axes, pick) == NULL) {
            n++;
            manifest_case(axes, pick, &c);
            count_pairs(v, &c);
        }
        for (a = 0; a < N_AXES && ++pick[a] == axes->n[a]; a++) {
            pick[a] = 0;
        }
    }
    return n;
}

/* Pairs that are possible and occur in no training case of the list but
 * number `without`. */
static uint32_t count_missing(const struct coverage *possible,
                              const struct case_list *list, uint32_t without)
{
    struct coverage *const v = malloc(sizeof(*v));
    uint32_t missing = 0;

    assert_non_null(v);
    *v = *possible; /* the same values have the same numbers */
    memset(v->seen, 0, sizeof(v->seen));
    for (uint32_t i = 0; i < list->n; i++) {
        if (i != without && case_trains(&list->c[i])) {
            count_pairs(v, &list->c[i]);
        }
    }
    for (uint32_t a = 0; a < N_AXES; a++) {
        for (uint32_t b = a + 1; b < N_AXES; b++) {
            for (uint32_t i = 0; i < possible->n[a]; i++) {
                for (uint32_t j = 0; j < possible->n[b]; j++) {
                    missing += possible->seen[a][i][b][j] != 0 &&
                               v->seen[a][i][b][j] == 0;
                }
            }
        }
    }
    free(v);
    return missing;
}

static void make(struct case_list *list)
{
    assert_int_equal(manifest_make(NULL, 0, list), FSDP_OK);
}

static void the_list_is_the_pinned_one(void **state)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char hex[2 * SHA256_DIGEST_LENGTH + 1];
    char id[CASE_ID_BYTES];
    struct case_list list;
    size_t length = 0;
    char *text;

    (void)state;
    make(&list);
    text = calloc(list.n, CASE_ID_BYTES + 1);
    assert_non_null(text);
    for (uint32_t i = 0; i < list.n; i++) {
        case_id(&list.c[i], id);
        length += (size_t)sprintf(text + length, "%s\n", id);
    }
    assert_non_null(SHA256((unsigned char *)text, length, digest));
    for (size_t i = 0; i < sizeof(digest); i++) {
        (void)sprintf(hex + 2 * i, "%02x", digest[i]);
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
        if (wrong != NULL) {
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

static void cases_are_well_formed_and_differ(void **state)
{
    struct case_list list;

    (void)state;
    make(&list);
    assert_in_range(list.n, 300, 560);
    check_list(&list);
    manifest_release(&list);
}

static void every_possible_pair_occurs(void **state)
{
    struct coverage *const possible = calloc(1, sizeof(*possible));
    struct manifest_axes axes;
    struct case_list list;
    uint32_t needed = 0;

    (void)state;
    assert_non_null(possible);
    make(&list);
    assert_int_equal(manifest_axes_make(NULL, 0, &axes), FSDP_OK);
    assert_true(count_possible(&axes, possible) > 100000);
    for (uint32_t a = 0; a < N_AXES; a++) {
        assert_int_equal(possible->n[a], axes.n[a]);
    }
    assert_int_equal(count_missing(possible, &list, UINT32_MAX), 0);
    /* The count can fail: most of the cases are there for some pair. */
    for (uint32_t i = 0; i < list.n; i++) {
        needed += count_missing(possible, &list, i) != 0;
    }
    assert_true(needed > 100);
    list.n /= 2;
    assert_true(count_missing(possible, &list, UINT32_MAX) > 100);
    list.n *= 2;
    manifest_release(&list);
    free(possible);
}

/* A check of arithmetic needs data whose order matters, an odd world and
 * batches that differ: these are natural data of three ranks, or of three
 * in a dimension. */
static void every_strategy_has_natural_data_of_three(void **state)
{
    bool found[CASE_N_STRATEGIES] = {false};
    struct case_list list;

    (void)state;
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

static void the_core_is_there(void **state)
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

    (void)state;
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

/* Exact data are exact only where every factor is a power of two. */
static void exact_data_stay_exact(void **state)
{
    struct case_list list;
    uint32_t n = 0;

    (void)state;
    make(&list);
    for (uint32_t i = 0; i < list.n; i++) {
        const struct run_case *const c = &list.c[i];
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
        assert_int_equal(c->optimizer, FSDP_OPTIMIZER_SGD);
        assert_true(strcmp(c->workload, "linear") == 0 || c->steps == 1);
    }
    assert_true(n > 20);
    manifest_release(&list);
}

static void other_worlds_get_a_list_too(void **state)
{
    static const uint32_t ranks[][2] = {{5, 5}, {1, 1}, {6, 2}};
    static const uint32_t bad[] = {0, 65};
    struct coverage *const possible = calloc(1, sizeof(*possible));
    struct manifest_axes axes;
    struct case_list list;

    (void)state;
    assert_non_null(possible);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(manifest_make(ranks[i], 2, &list), FSDP_OK);
        check_list(&list);
        for (uint32_t k = 0; k < list.n; k++) {
            assert_true(list.c[k].ranks == ranks[i][0] ||
                        list.c[k].ranks == ranks[i][1]);
        }
        assert_int_equal(manifest_axes_make(ranks[i], 2, &axes), FSDP_OK);
        memset(possible, 0, sizeof(*possible));
        (void)count_possible(&axes, possible);
        assert_int_equal(count_missing(possible, &list, UINT32_MAX), 0);
        manifest_release(&list);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(manifest_make(&bad[i], 1, &list), FSDP_ERR_INVALID);
        assert_null(list.c);
        assert_int_equal(list.n, 0);
    }
    free(possible);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_the_pinned_one),
        cmocka_unit_test(cases_are_well_formed_and_differ),
        cmocka_unit_test(every_possible_pair_occurs),
        cmocka_unit_test(every_strategy_has_natural_data_of_three),
        cmocka_unit_test(the_core_is_there),
        cmocka_unit_test(exact_data_stay_exact),
        cmocka_unit_test(other_worlds_get_a_list_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
