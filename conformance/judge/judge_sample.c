/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_sample.c - records that do not show all: of which some ranks alone show
 * whole parameters, or whose last collectives are counted alone.
 */
#include "judge/judge_internal.h"

#include <stdio.h>
#include <string.h>

void judge_note_sample(struct judge_result *out, const struct record *r)
{
    const uint32_t n = record_n_sampled(r);

    if (n < r->n_ranks && r->n_ranks > out->sampled.of) {
        out->sampled.ranks = n;
        out->sampled.of = r->n_ranks;
    }
}

/* Collectives of a rank that were carried. */
static uint64_t carried(const struct record_account *a)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < a->carried.n_rows && i < RECORD_TRAFFIC_ROWS;
         i++) {
        n += a->carried.row[i].calls < UINT32_MAX ? a->carried.row[i].calls
                                                  : UINT32_MAX;
    }
    return n < UINT32_MAX ? n : UINT32_MAX;
}

void judge_note_followed(struct judge_result *out, const struct record *r)
{
    bool more = false;

    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const struct record_account *const a = &r->rank[k].account;
        const uint64_t n = carried(a);

        if (a->payloads.n > 0 && n > a->payloads.n) {
            more = true;
            if (n > out->followed.of) {
                out->followed.known = a->payloads.n;
                out->followed.of = (uint32_t)n;
            }
        }
    }
    out->followed.cases += more;
}

bool judge_is_unasked(struct judge_result *out, const struct requirement *q,
                      const struct record *r)
{
    char *const names = out->sampled.unasked;
    const size_t n = strlen(names);

    if (!q->across || record_n_sampled(r) == r->n_ranks) {
        return false;
    }
    if (!strstr(names, q->id)) {
        (void)snprintf(names + n, sizeof(out->sampled.unasked) - n, "%s%s",
                       n > 0 ? " " : "", q->id);
    }
    return true;
}
