/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_memory_test.c - memory is true: the least limit of data (RLIMIT_DATA)
 * under which the ranks of a real run pass, less that of a model of four
 * elements, is what plan counts; within 1 % or a MiB.
 */
#include "run/worker/engine_load.h"
#include "testing/unit_testing.h"
#include "tools/plan/plan_equal.h"
#include "tools/plan/plan_limit_testing.h"

#include <string.h>

enum {
    STEP = 1 << 16, /* bytes: how near the least limit is found */
    MIB = 1 << 20,
};

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    (void)context;
    (void)p;
    (void)first;
    memset(out, 0, n * sizeof(float));
    return FSDP_OK;
}

/* The least limit, to STEP bytes. */
static uint64_t least_limit(struct limited_run *r, uint64_t planned)
{
    struct fsdp_error why;
    uint64_t low = 0;
    uint64_t high = planned + 64 * (uint64_t)MIB;

    r->limit = high;
    assert_true(limited_passes(r, &why));
    while (high - low > STEP) {
        r->limit = low + (high - low) / 2;
        if (limited_passes(r, &why)) {
            high = r->limit;
        } else {
            low = r->limit;
        }
    }
    return high;
}

/* Four equal units; *planned: what plan counts. */
static uint64_t measure(const char *engine, uint32_t ranks, uint64_t unit,
                        uint64_t *planned)
{
    struct fsdp_error error = {0};
    struct plan_model m;
    struct plan_bytes b;
    struct plan_ask ask;
    struct limited_run r = {.ask = &ask,
                            .with_values = ranks,
                            .patience_ms = 60000,
                            .live = limited_train};
    uint64_t limit;

    assert_int_equal(engine_load(engine, &r.engine, &error), FSDP_OK);
    assert_int_equal(plan_equal_model(4 * unit, 4, &m, &error), FSDP_OK);
    m.model.initial = initial;
    ask = plan_ask_for(&m, ranks, CASE_FULL_SHARD, CASE_F32);
    assert_int_equal(plan_bytes_make(&ask, &b, &error), FSDP_OK);
    *planned = b.peak_sum;
    limit = least_limit(&r, *planned);
    plan_bytes_release(&b);
    plan_model_release(&m);
    return limit;
}

static void memory_is_true(void **state)
{
    static const uint64_t units[] = {1 << 18, 700000, 1 << 20};
    const char *const engine = *state;

    for (uint32_t ranks = 2; ranks <= 4; ranks += 2) {
        uint64_t least;
        const uint64_t fixed = measure(engine, ranks, 1, &least);

        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            uint64_t planned;
            const uint64_t limit =
                measure(engine, ranks, units[i], &planned) - fixed;
            const uint64_t off =
                limit > planned ? limit - planned : planned - limit;

            print_message("%s, K = %u, %llu parameters: %llu bytes under a "
                          "limit, %llu planned\n",
                          engine, ranks, 4 * (unsigned long long)units[i],
                          (unsigned long long)limit,
                          (unsigned long long)planned);
            assert_true(off <= MIB || off <= planned / 100);
        }
    }
}

int main(void)
{
    static char ref[] = "ref";
    static char impl[] = "impl";
    const struct CMUnitTest tests[] = {
        {"memory is true: ref", memory_is_true, NULL, NULL, ref},
        {"memory is true: impl", memory_is_true, NULL, NULL, impl},
    };

    if (limited_cannot()) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
