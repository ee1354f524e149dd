/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_initial_values.c - what is trained starts as the model says, for
 * every world and wrap.
 */
#include "judge/compare/compare.h"

#include <stdlib.h>

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const struct fsdp_model *m = e->model;
    float *want = calloc(part->n, sizeof(*want));
    bool well;

    if (want == NULL || m->initial(m->context, part->parameter, part->first,
                                   part->n, want) != FSDP_OK) {
        free(want);
        return finding_text(f, finding_at("initial", 0, -1, part->rank),
                            "the judge cannot make the initial values");
    }
    well = compare_equal(e, part, RECORD_INITIAL,
                         compare_values(r, RECORD_INITIAL, part), want, f);
    free(want);
    return well;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_INITIAL, 0);
}

REQUIREMENT(layout_initial_values) = {
    .id = "layout.initial-values",
    .text = "After sharding each rank holds the initial values of the "
            "elements it owns, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "layout.chunk-rule layout.replicas-equal",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
