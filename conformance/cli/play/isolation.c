/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolation.c - decides whether a run isolates its ranks: because it was asked
 * for, or by itself.
 */
#include "cli/play/isolation.h"

#include "cli/choose/selection.h"
#include "run/worker/rank_limits.h"

#include <stdio.h>
#include <string.h>

void isolation_settle(struct arguments *a, const struct case_list *cases)
{
    const bool by_itself = !a->no_isolate && !a->dry_run && !a->n_scripts &&
                           selection_is_whole(a, cases);
    const char *lacks = "";
    const char *why;

    if (!a->isolate && !by_itself) {
        return;
    }
    if (a->adapter) {
        why = "an adapter is its user's";
    } else if (a->world != WORLD_LOCAL) {
        why = "ranks are no processes of their own";
    } else if (a->wrap) {
        why = "they are wrapped";
    } else {
        lacks = "this machine lacks ";
        why = limits_lacking();
    }
    if (why && a->isolate) {
        fprintf(stderr, "fsdp-cts: ranks are not isolated: %s%s\n", lacks, why);
    } else if (why) {
        snprintf(a->not_isolated, sizeof(a->not_isolated), "%s%s", lacks, why);
    }
    a->isolate = !why;
}

void isolation_tell(const struct arguments *a)
{
    if (a->not_isolated[0]) {
        fprintf(stderr, "fsdp-cts: ranks are not isolated: %s\n",
                a->not_isolated);
    }
}

void isolation_tell_engine(const struct supervise_job *job,
                           const struct supervise_engine *said)
{
    char padded[sizeof(said->claims) + 2];

    snprintf(padded, sizeof(padded), " %s ", said->claims);
    if (job->isolate && strstr(padded, " devices ")) {
        fprintf(stderr, "fsdp-cts: ranks are not isolated: %s claims devices\n",
                job->engine);
    }
}
