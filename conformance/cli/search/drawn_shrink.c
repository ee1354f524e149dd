/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn_shrink.c - makes a drawn script that fails smaller. Candidates are run
 * and judged a few at a time; the first that fails as the whole one did takes
 * its place.
 */
#include "cli/search/drawn.h"
#include "run/supervise.h"
#include "script/script_shrink.h"

#include <stdlib.h>

enum {
    AT_ONCE = 12 /* candidates a round */
};

uint32_t drawn_verb_of(const struct run_case *c, const struct judge_item *item)
{
    const int64_t step = item->detail ? item->detail->finding.step : -1;
    struct fsdp_error error = {0};
    struct script s = {0};
    uint32_t verb = SCRIPT_N_VERBS;

    if (step >= 0 && script_make(c, false, &s, &error) == FSDP_OK) {
        struct script_walk w = script_begin(&s);
        const struct script_action *a = script_next(&w);

        for (int64_t i = 0; i < step && a; i++) {
            a = script_next(&w);
        }
        verb = a ? a->verb : SCRIPT_N_VERBS;
    }
    script_release(&s);
    return verb;
}

bool drawn_case(const struct script *drawn, const struct script_mask *mask,
                struct run_case *out)
{
    struct fsdp_error error = {0};
    const struct case_script *given;
    struct script s = {0};
    char *text = NULL;
    bool fine = script_masked(drawn, mask, &s, NULL, &error) == FSDP_OK &&
                s.n_actions > 0;

    if (fine) {
        text = script_text(&s);
        fine = text && script_give(text, &given, &error) == FSDP_OK;
    }
    if (fine) {
        *out = s.c;
        case_play_script(out, given);
    }
    free(text);
    script_release(&s);
    return fine;
}

static bool fails_alike(const struct drawn_engine *e,
                        const struct judge_result *r, uint32_t c)
{
    uint32_t q;

    return evaluate_failure_of(r, c, &q) &&
           r->requirement[q] == e->requirement &&
           drawn_verb_of(&r->cases[c].c, judge_item_at(r, c, q)) == e->verb;
}

/* Which of the candidates fails as the whole one does; n: none. */
static uint32_t first_failing(const struct drawn *d,
                              const struct drawn_engine *e,
                              const struct case_list *cases)
{
    const struct trial t = {d->a, e->name, d->text};
    struct judge_result r = {0};
    uint32_t found = cases->n;

    if (trial_judge(&t, cases, &r) == FSDP_OK) {
        for (uint32_t c = cases->n; c-- > 0;) {
            found = fails_alike(e, &r, c) ? c : found;
        }
    }
    judge_release(&r);
    return found;
}

struct round {
    struct script_mask mask[AT_ONCE];
    struct run_case c[AT_ONCE];
    uint32_t next[AT_ONCE]; /* where the search goes on behind each */
    uint32_t n;
};

static void collect(const struct script *drawn, const struct script_mask *from,
                    uint32_t *at, struct round *out)
{
    out->n = 0;
    while (out->n < AT_ONCE &&
           script_smaller(drawn, from, at, &out->mask[out->n])) {
        struct run_case *c = &out->c[out->n];

        *c = (struct run_case){.steps = 0};
        if (drawn_case(drawn, &out->mask[out->n], c)) {
            out->next[out->n++] = *at;
        }
    }
}

static void search(const struct drawn *d, struct drawn_engine *e,
                   const struct script *drawn, struct round *round)
{
    const double end = trial_now() + d->shrink;
    uint32_t at = 0;
    bool better = false;

    while (trial_now() < end && !supervise_interrupted()) {
        struct case_list list = {round->c, 0};
        uint32_t i;

        collect(drawn, &e->mask, &at, round);
        list.n = round->n;
        if (list.n == 0) { /* all were tried */
            if (!better) {
                break;
            }
            better = false;
            at = 0;
            continue;
        }
        i = first_failing(d, e, &list);
        if (i < list.n) {
            e->mask = round->mask[i];
            better = true;
            at = round->next[i];
        }
    }
}

void drawn_shrink(const struct drawn *d, struct drawn_engine *e)
{
    struct fsdp_error error = {0};
    struct round *round = calloc(1, sizeof(*round));
    struct script drawn = {0};

    if (round && script_draw(e->seed, &drawn, &error) == FSDP_OK) {
        search(d, e, &drawn, round);
    }
    script_release(&drawn);
    free(round);
}
