/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_pairs_test.c - every pair of values of two axes that can occur together
 * occurs in a case of the manifest, and in a case of each world size that the
 * manifest lacks.
 *
 * A pair counts only in a case that an engine with the fewest capabilities can
 * run: in the flat layout, unless one of the two values is a layout, and in the
 * strict profile, unless one of them is about running ahead. A pair that is
 * missing is named, together with the id of a case that would show it and as
 * many others as possible: cases.txt takes these ids as they are.
 */
#include "cases/case_axes_testing.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In how many cases each pair occurs. */
struct pairs {
    struct case_axes axes;
    uint32_t shown[N_AXES][AXIS_MAX_VALUES][N_AXES][AXIS_MAX_VALUES];
};

/* The pairs that are missing; `text` names each of them and proposes a case. */
struct missing {
    uint32_t n;
    struct case_list proposed;
    char text[4096];
};

static uint32_t *pair_at(struct pairs *p, const uint32_t pick[N_AXES],
                         uint32_t a, uint32_t b)
{
    return a < b ? &p->shown[a][pick[a]][b][pick[b]]
                 : &p->shown[b][pick[b]][a][pick[a]];
}

/* Whether a case with these values shows the pair that it has on two axes. */
static bool shows_pair(const uint32_t pick[N_AXES], uint32_t a, uint32_t b)
{
    const bool flat = pick[AXIS_LAYOUT] == FSDP_LAYOUT_FLAT;
    const bool strict = pick[AXIS_AHEAD] == 0;

    return (flat || a == AXIS_LAYOUT || b == AXIS_LAYOUT) &&
           (strict || a == AXIS_AHEAD || b == AXIS_AHEAD);
}

static void pairs_mark(struct pairs *p, const uint32_t pick[N_AXES])
{
    for (uint32_t a = 0; a < N_AXES; a++) {
        for (uint32_t b = a + 1; b < N_AXES; b++) {
            if (shows_pair(pick, a, b)) {
                (*pair_at(p, pick, a, b))++;
            }
        }
    }
}

static void pairs_count(struct pairs *p, const struct case_list *list)
{
    uint32_t pick[N_AXES];

    memset(p->shown, 0, sizeof(p->shown));
    for (uint32_t i = 0; i < list->n; i++) {
        if (axes_pick(&p->axes, &list->c[i], pick)) {
            pairs_mark(p, pick);
        }
    }
}

/* How many missing pairs the value of axis a makes with what else is picked. */
static uint32_t gain_of(struct pairs *p, const uint32_t pick[N_AXES],
                        uint32_t a)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < N_AXES; b++) {
        if (b != a && pick[b] != AXIS_OPEN && shows_pair(pick, a, b)) {
            n += *pair_at(p, pick, a, b) == 0;
        }
    }
    return n;
}

/* The untried value of axis a with the greatest gain; AXIS_OPEN: all have been
 * tried. */
static uint32_t best_value(struct pairs *p, const uint32_t picked[N_AXES],
                           uint32_t a, const bool *tried)
{
    uint32_t pick[N_AXES];
    uint32_t best = AXIS_OPEN;
    uint32_t most = 0;

    memcpy(pick, picked, sizeof(pick));
    for (uint32_t value = 0; value < p->axes.n[a]; value++) {
        pick[a] = value;
        if (!tried[value] &&
            (best == AXIS_OPEN || gain_of(p, pick, a) > most)) {
            most = gain_of(p, pick, a);
            best = value;
        }
    }
    return best;
}

/* Gives every open axis from a on a value. False, and the axes are open again,
 * if no values fit: then no case has the values that were picked. Recurses once
 * for each axis. NOLINTNEXTLINE(misc-no-recursion) */
static bool complete(struct pairs *p, uint32_t pick[N_AXES], uint32_t a)
{
    bool tried[AXIS_MAX_VALUES] = {false};

    while (a < N_AXES && pick[a] != AXIS_OPEN) {
        a++;
    }
    if (a == N_AXES) {
        return true;
    }
    while ((pick[a] = best_value(p, pick, a, tried)) != AXIS_OPEN) {
        tried[pick[a]] = true;
        if (!axes_excluded(&p->axes, pick) && complete(p, pick, a + 1)) {
            return true;
        }
    }
    return false;
}

/* A whole pick that shows the pair (i, j) of axes a and b; false: none can. */
static bool find_pick(struct pairs *p, uint32_t a, uint32_t i, uint32_t b,
                      uint32_t j, uint32_t pick[N_AXES])
{
    for (uint32_t k = 0; k < N_AXES; k++) {
        pick[k] = AXIS_OPEN;
    }
    pick[AXIS_LAYOUT] = FSDP_LAYOUT_FLAT;
    pick[AXIS_AHEAD] = 0;
    pick[a] = i;
    pick[b] = j;
    return !axes_excluded(&p->axes, pick) && complete(p, pick, 0);
}

static void report_pair(const struct pairs *p, uint32_t a, uint32_t b,
                        const uint32_t pick[N_AXES], struct missing *out)
{
    const size_t n = strlen(out->text);
    char id[CASE_ID_BYTES];
    struct run_case c;

    axes_id(&p->axes, pick, id);
    snprintf(out->text + n, sizeof(out->text) - n,
             "no case has %s %s with %s %s; this one would:\n%s\n",
             axis_name[a], p->axes.word[a][pick[a]], axis_name[b],
             p->axes.word[b][pick[b]], id);
    if (!case_of_id(id, &c)) {
        print_error("proposed, but no case: %s\n", id);
    }
    assert_true(case_of_id(id, &c));
    assert_int_equal(case_list_add(&out->proposed, &c), FSDP_OK);
}

/* Finds the pairs that can occur and do not. With `propose` each is reported,
 * unless a case that was proposed for an earlier pair shows it too. */
static void find_missing_of(struct pairs *p, uint32_t a, uint32_t b,
                            bool propose, struct missing *out)
{
    uint32_t pick[N_AXES];

    for (uint32_t i = 0; i < p->axes.n[a]; i++) {
        for (uint32_t j = 0; j < p->axes.n[b]; j++) {
            if (p->shown[a][i][b][j] == 0 && find_pick(p, a, i, b, j, pick)) {
                out->n++;
                if (propose) {
                    report_pair(p, a, b, pick, out);
                    pairs_mark(p, pick);
                }
            }
        }
    }
}

static void find_missing(struct pairs *p, const struct case_list *list,
                         bool propose, struct missing *out)
{
    memset(out, 0, sizeof(*out));
    pairs_count(p, list);
    for (uint32_t a = 0; a < N_AXES; a++) {
        for (uint32_t b = a + 1; b < N_AXES; b++) {
            find_missing_of(p, a, b, propose, out);
        }
    }
}

static void assert_none_missing(struct pairs *p, const struct case_list *list)
{
    struct missing missing;

    find_missing(p, list, true, &missing);
    if (missing.n != 0) {
        print_error("%s", missing.text);
    }
    assert_int_equal(missing.n, 0);
    manifest_release(&missing.proposed);
}

static struct pairs *pairs_new(void)
{
    struct pairs *const p = calloc(1, sizeof(*p));

    assert_non_null(p);
    axes_of_manifest(&p->axes);
    return p;
}

static void make_manifest(struct case_list *list)
{
    struct fsdp_error error = {0};

    assert_int_equal(manifest_make(list, &error), FSDP_OK);
}

UNIT_TEST(every_possible_pair_occurs)
{
    struct pairs *const p = pairs_new();
    struct case_list list;

    make_manifest(&list);
    assert_none_missing(p, &list);
    manifest_release(&list);
    free(p);
}

/* Whether some pair occurs in case c and in no other. */
static bool is_needed(struct pairs *p, const struct run_case *c)
{
    uint32_t pick[N_AXES];

    if (!axes_pick(&p->axes, c, pick)) {
        return false;
    }
    for (uint32_t a = 0; a < N_AXES; a++) {
        for (uint32_t b = a + 1; b < N_AXES; b++) {
            if (shows_pair(pick, a, b) && *pair_at(p, pick, a, b) == 1) {
                return true;
            }
        }
    }
    return false;
}

/* The proof can fail: many cases are the only ones with some pair, and a third
 * of the manifest lacks many pairs. */
UNIT_TEST(cases_are_needed)
{
    struct pairs *const p = pairs_new();
    struct missing missing;
    struct case_list list;
    uint32_t needed = 0;
    uint32_t all;

    make_manifest(&list);
    all = list.n;
    pairs_count(p, &list);
    for (uint32_t i = 0; i < list.n; i++) {
        needed += is_needed(p, &list.c[i]);
    }
    assert_true(needed > 100);
    list.n /= 3;
    find_missing(p, &list, false, &missing);
    assert_true(missing.n > 100);
    list.n = all;
    manifest_release(&list);
    free(p);
}

/* If a case is taken out, the pairs that it alone has are named, and the cases
 * that are proposed complete the list again. */
UNIT_TEST(a_missing_pair_is_named)
{
    struct pairs *const p = pairs_new();
    struct missing missing;
    struct case_list list;
    uint32_t n_world = 0;

    make_manifest(&list);
    for (uint32_t i = 0; i < list.n; i++) {
        const bool away = strcmp(list.c[i].workload, "gpt") == 0 &&
                          strcmp(list.c[i].size, "tiny") == 0 &&
                          list.c[i].ranks == 8 && list.c[i].replicas == 4;

        n_world += away;
        if (!away) {
            list.c[i - n_world] = list.c[i];
        }
    }
    assert_true(n_world > 0);
    list.n -= n_world;
    find_missing(p, &list, true, &missing);
    assert_true(missing.n > 0 && missing.n == missing.proposed.n);
    assert_non_null(strstr(missing.text, "no case has model gpt.tiny.natural "
                                         "with world k8r4; this one would:\n"
                                         "gpt.tiny.natural.hybrid-shard"));
    for (uint32_t i = 0; i < missing.proposed.n; i++) {
        assert_int_equal(case_list_add(&list, &missing.proposed.c[i]), FSDP_OK);
    }
    assert_none_missing(p, &list);
    manifest_release(&missing.proposed);
    manifest_release(&list);
    free(p);
}

/* Every world size that cases.txt lacks, but for large ones. */
UNIT_TEST(other_worlds_have_every_pair)
{
    struct pairs *const p = pairs_new();
    struct fsdp_error error = {0};
    struct case_list manifest;

    make_manifest(&manifest);
    for (uint32_t ranks = 1; ranks <= CASE_USUAL_RANKS; ranks++) {
        struct case_list list = {NULL, 0};
        uint32_t known = 0;

        for (uint32_t i = 0; i < manifest.n; i++) {
            known += manifest.c[i].ranks == ranks;
        }
        if (known <= 1) {
            assert_int_equal(manifest_add_world(ranks, &list, &error), FSDP_OK);
            axes_of_world(ranks, &p->axes);
            assert_none_missing(p, &list);
        }
        manifest_release(&list);
    }
    manifest_release(&manifest);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_possible_pair_occurs),
        cmocka_unit_test(cases_are_needed),
        cmocka_unit_test(a_missing_pair_is_named),
        cmocka_unit_test(other_worlds_have_every_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
