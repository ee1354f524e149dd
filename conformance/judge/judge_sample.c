/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_sample.c - records of which some ranks alone show whole parameters.
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
