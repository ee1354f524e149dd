/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_survives.c - a crash, an exit or a hang is the first thing to know.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return e->c != NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks && k < r->n_ranks; k++) {
        const struct record_rank *rank = &r->rank[k];
        struct finding at = finding_at("run", -1, -1, k);

        switch (rank->end) {
        case WORLD_RETURNED:
            break;
        case WORLD_SIGNALLED:
            return finding_count(f, at, rank->signal, 0, "killed by a signal");
        case WORLD_EXITED:
            return finding_text(f, at, "left with exit() in the middle");
        case WORLD_TIMED_OUT:
            at.unit = rank->last_unit;
            return finding_count(
                f, at, rank->n_collectives, 0,
                rank->in_collective != 0
                    ? "no progress; hangs inside this collective"
                    : "no progress after this many collectives");
        default:
            return finding_text(f, at, "ended in a way that is not defined");
        }
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    if (r->n_ranks == 0) {
        return false;
    }
    r->rank[r->n_ranks - 1].end = WORLD_SIGNALLED;
    r->rank[r->n_ranks - 1].signal = 11;
    return true;
}

REQUIREMENT(run_survives) = {
    .id = "run.survives",
    .text = "Every rank returns from the run: none is killed, exits or "
            "makes no progress.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_RUN,
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
