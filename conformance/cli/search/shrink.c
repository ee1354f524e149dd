/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink.c - a greedy search: of all cases that are one piece smaller, a few at
 * a time are run and judged, and the first whose first failure is at the same
 * level takes the place of the case. (Which requirement of a level fails may
 * depend on the number of microbatches alone.) It ends if nothing smaller
 * fails, or when the time is over.
 */
#include "cli/search/shrink.h"

#include "cases/case_graph.h"
#include "cli/play/trial.h"
#include "judge/report/report.h"
#include "run/supervise.h"

#include <stdio.h>

enum {
    AT_ONCE = 12 /* candidates a round */
};

static int judge_these(const struct shrink *s, const struct case_list *cases,
                       struct judge_result *out)
{
    const struct trial t = {s->a, s->engine, s->text};

    return trial_judge(&t, cases, out);
}

/* Which of the candidates fails as the case does; n: none. */
static uint32_t first_failing(const struct shrink *s,
                              const struct case_list *cases)
{
    struct judge_result r = {0};
    uint32_t found = cases->n;

    if (judge_these(s, cases, &r) == FSDP_OK) {
        for (uint32_t c = cases->n; c-- > 0;) {
            uint32_t q;

            if (evaluate_failure_of(&r, c, &q) &&
                r.requirement[q]->level == s->failure.requirement->level) {
                found = c;
            }
        }
    }
    judge_release(&r);
    return found;
}

/* Candidates from *at on; `next[i]` is where the search goes on behind i. */
static uint32_t collect(const struct run_case *c, uint32_t *at,
                        struct run_case candidate[AT_ONCE],
                        uint32_t next[AT_ONCE])
{
    uint32_t n = 0;

    while (n < AT_ONCE && case_graph_smaller(c, at, &candidate[n])) {
        next[n++] = *at;
    }
    return n;
}

static struct run_case search(const struct shrink *s, uint32_t *n_run)
{
    struct run_case best = s->failure.c;
    struct run_case candidate[AT_ONCE];
    uint32_t next[AT_ONCE] = {0};
    const double end = trial_now() + s->seconds;
    uint32_t at = 0;
    bool better = false;

    while (trial_now() < end && !supervise_interrupted()) {
        struct case_list list = {candidate,
                                 collect(&best, &at, candidate, next)};
        uint32_t i;

        if (list.n == 0) { /* all were tried */
            if (!better) {
                break;
            }
            better = false;
            at = 0;
            continue;
        }
        i = first_failing(s, &list);
        *n_run += list.n;
        if (i < list.n) {
            best = candidate[i];
            better = true;
            /* Without this piece the others have moved up: look at the same
             * place. */
            at = next[i] - 1;
        }
    }
    return best;
}

/* Runs the case once more, to say what is wrong with it. */
static void show_failure(const struct shrink *s, struct run_case *c)
{
    const struct case_list list = {c, 1};
    const struct report_meta meta = {.rerun = s->rerun};
    struct judge_result r = {0};
    uint32_t q;

    if (judge_these(s, &list, &r) == FSDP_OK &&
        evaluate_failure_of(&r, 0, &q)) {
        report_failure(&r, 0, q, &meta, stdout);
    }
    judge_release(&r);
}

void shrink_and_show(const struct shrink *s)
{
    uint32_t n_run = 0;
    struct run_case best;
    char id[CASE_ID_BYTES];

    case_id(&s->failure.c, id);
    fprintf(stderr, "making %s smaller\n", id);
    best = search(s, &n_run);
    printf("\nThe smallest case found that fails like %s (%u others were "
           "run%s):\n\n",
           id, n_run, supervise_interrupted() ? "; interrupted" : "");
    graph_show(&best);
    printf("\n");
    show_failure(s, &best);
}
