/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_baseline.c - the reduction of the unsharded run is the reference.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    struct compare_part own = *part;

    own.any_zero = e->profile == EXPECT_OWN;
    return !e->trained[part->unit] ||
           compare_equal(e, &own, RECORD_REDUCED,
                         compare_values(r, RECORD_REDUCED, part),
                         compare_baseline(e, RECORD_REDUCED, part), f);
}

/* A step that starts from other weights has its fault earlier. */
static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    for (uint32_t t = 0; t < compare_recorded_steps(e); t++) {
        if (t > 0 && !compare_starts_alike(e, r, t)) {
            return true;
        }
        if (!compare_parts(e, r, t, t + 1, check, f)) {
            return false;
        }
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_REDUCED, 0);
}

REQUIREMENT(reduce_baseline) = {
    .id = "reduce.baseline",
    .text = "From the baseline's weights the reduced gradient equals "
            "the baseline's, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "grad.local reduce.fold accumulate.no-sync "
             "accumulate.synced accumulate.interleaved",
    .profile = PROFILE_BITS,
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
