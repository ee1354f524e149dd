/* SPDX-License-Identifier: Apache-2.0 */
/* sample_ranks.c - see sample_ranks.h. */
#include "cli/choose/sample_ranks.h"

#include "record/record.h"

#include <stdio.h>

static void tell_shown(const struct run_case *c, uint32_t n)
{
    enum {
        MOST = 16 /* in a line */
    };
    uint32_t shown = 0;

    fprintf(stderr,
            "fsdp-cts: of %u ranks these show whole parameters:", c->ranks);
    for (uint32_t k = 0; k < c->ranks && shown < MOST; k++) {
        if (record_is_drawn(c, n, k)) {
            fprintf(stderr, " %u", k);
            shown++;
        }
    }
    fprintf(stderr, "%s\n", n > MOST ? " ..." : "");
}

void sample_ranks_tell(const struct arguments *a, const struct case_list *cases)
{
    bool told[WORLD_MAX_RANKS + 1] = {false};

    for (uint32_t i = 0; i < cases->n; i++) {
        const struct run_case *c = &cases->c[i];

        if (a->sample_ranks < c->ranks && c->ranks <= WORLD_MAX_RANKS &&
            !told[c->ranks]) {
            tell_shown(c, a->sample_ranks);
            told[c->ranks] = true;
        }
    }
}
