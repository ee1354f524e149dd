/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_clip.c - the judge's own gradient norm, over the shards of all ranks
 * of a replica, and the factor that follows from one.
 */
#include "judge/replay/replay_clip.h"

#include "judge/replay/exact_norm.h"

#include <stdlib.h>

static bool add_parts(const struct expect *e, const struct record *r,
                      struct compare_part *part,
                      const struct expect_part *owned, uint32_t n,
                      struct exact_norm *norm, struct finding *f)
{
    for (uint32_t i = 0; i < n; i++) {
        const float *g;

        part->parameter = owned[i].parameter;
        part->unit = e->unit_of_parameter[owned[i].parameter];
        part->first = owned[i].first;
        part->n = owned[i].n;
        if (part->n == 0 || !e->stepped[part->parameter]) {
            continue;
        }
        g = compare_values(r, RECORD_REDUCED, part);
        if (!g) {
            return compare_missing(part, RECORD_REDUCED, f);
        }
        for (uint64_t j = 0; j < part->n; j++) {
            exact_norm_add(norm, g[j]);
        }
    }
    return true;
}

bool replay_norm(const struct expect *e, const struct record *r, float p,
                 uint32_t step, float *out, struct finding *f)
{
    struct exact_norm norm;
    bool well = true;

    exact_norm_begin(&norm, p);
    for (uint32_t s = 0; well && s < e->shards; s++) {
        struct compare_part part = {.rank = s, .step = step};
        struct expect_part *owned = NULL;
        uint32_t n = 0;

        well = expect_parts(e, s, &owned, &n) == FSDP_OK
                   ? add_parts(e, r, &part, owned, n, &norm, f)
                   : finding_text(f, finding_at("layout", -1, -1, s),
                                  "the judge has no memory for its parts");
        free(owned);
    }
    *out = exact_norm_end(&norm);
    return well;
}

struct record_answer *replay_said_norm(const struct record *r, uint32_t k,
                                       uint32_t n, uint32_t step)
{
    char name[CASE_NORM_BYTES];

    case_norm_name(n, step, name);
    return compare_find_answer(compare_rank(r, k), name);
}

bool replay_clip_factor(const struct expect *e, uint32_t step, float norm,
                        float *out)
{
    struct fsdp_clip clip;

    case_clip(e->c, step, &clip);
    *out = clip.max_norm / (norm + 1e-6f);
    return norm > clip.max_norm;
}
