/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares_test.c - shares of spans: those of fixtures/shares/spans.json, which
 * the other side of the comparison (tools/adapters/pytorch_shares.py) reads
 * too, and what JSON cannot say.
 */
#include "testing/unit_testing.h"
#include "tools/bench/shares.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum {
    MOST = 8
};

/* That of exposed collectives is said of spans by another name. */
static uint32_t share_named(const char *name)
{
    for (uint32_t s = 0; s < N_SHARES; s++) {
        if (strcmp(name, s == SHARE_COMMUNICATION ? share_name_communication
                                                  : share_name[s]) == 0) {
            return s;
        }
    }
    return N_SHARES;
}

static double number(const json_t *list, size_t i)
{
    const json_t *x = json_array_get(list, i);

    assert_true(json_is_number(x));
    return json_number_value(x);
}

static double wanted(const json_t *want, const char *name)
{
    const json_t *x = json_object_get(want, name);

    return x ? json_number_value(x) : 0.0;
}

static void check(const json_t *c)
{
    const json_t *step = json_object_get(c, "step");
    const json_t *spans = json_object_get(c, "spans");
    const json_t *want = json_object_get(c, "want");
    struct share_span span[MOST];
    struct shares got;
    size_t n = json_array_size(spans);
    double sum = 0;
    int status;

    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_array_get(spans, i);
        span[i] = (struct share_span){
            number(s, 1), number(s, 2),
            share_named(json_string_value(json_array_get(s, 0)))};
    }
    print_message("%s\n", json_string_value(json_object_get(c, "what")));
    status = shares_find(span, n, number(step, 0), number(step, 1), &got);
    if (json_is_null(want)) {
        assert_int_equal(status, FSDP_ERR_INVALID);
        return;
    }
    assert_int_equal(status, FSDP_OK);
    for (uint32_t s = 0; s < N_SHARES; s++) {
        assert_float_equal(got.of[s], wanted(want, share_name[s]), 0.0);
        sum += got.of[s];
    }
    assert_float_equal(sum, 1.0, 0.0);
    assert_float_equal(got.communication,
                       wanted(want, share_name_communication), 0.0);
}

UNIT_TEST(the_shared_cases)
{
    json_t *all = json_load_file(FIXTURES_DIR "/shares/spans.json", 0, NULL);
    size_t i;
    const json_t *c;

    assert_true(json_array_size(all) >= 17);
    json_array_foreach(all, i, c)
    {
        check(c);
    }
    json_decref(all);
}

UNIT_TEST(times_that_are_none)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct shares out;

    for (int i = 0; i < 3; i++) {
        struct share_span begins = {bad[i], 4.0, SHARE_GEMM};
        struct share_span ends = {1.0, bad[i], SHARE_GEMM};

        assert_int_equal(shares_find(&begins, 1, 0.0, 8.0, &out),
                         FSDP_ERR_INVALID);
        assert_int_equal(shares_find(&ends, 1, 0.0, 8.0, &out),
                         FSDP_ERR_INVALID);
        assert_int_equal(shares_find(NULL, 0, bad[i], 8.0, &out),
                         FSDP_ERR_INVALID);
        assert_int_equal(shares_find(NULL, 0, 0.0, bad[i], &out),
                         FSDP_ERR_INVALID);
    }
}

UNIT_TEST(operators_have_a_class)
{
    uint32_t n[N_SHARES] = {0};

    for (uint32_t kind = 0; kind < FSDP_N_OPS; kind++) {
        uint32_t share = share_of_operator(kind);
        assert_true(share < SHARE_COMMUNICATION);
        n[share]++;
    }
    assert_int_equal(n[SHARE_ATTENTION], 2);
    assert_int_equal(n[SHARE_GEMM], 2);
    assert_int_equal(share_of_operator(FSDP_OP_GEMM_GRAD), SHARE_GEMM);
    assert_int_equal(share_of_operator(FSDP_OP_ATTENTION_BACKWARD),
                     SHARE_ATTENTION);
    assert_int_equal(share_of_operator(FSDP_OP_ADAMW), SHARE_REST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shared_cases),
        cmocka_unit_test(times_that_are_none),
        cmocka_unit_test(operators_have_a_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
