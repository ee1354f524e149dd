/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_adapter.c - what is asked of a record that an adapter wrote. The engine
 * had neither the suite's operators nor its recorder. So the bits of the
 * suite's arithmetic are asked for only if the adapter claims them, and what
 * else only the recorder sees only if the adapter claims to measure it.
 */
#include "judge/judge_adapter.h"

#include "cases/case_graph_claims.h"
#include "cases/case_script.h"
#include "script/script.h"

#include <stdio.h>
#include <string.h>

static uint32_t at_least(uint32_t n, uint32_t least)
{
    return n < least ? least : n;
}

void judge_adapter_expect(const struct record *r, struct expect *e)
{
    e->profile = record_claims(r, "f32-fma") ? EXPECT_F32_FMA : EXPECT_OWN;
    e->any_fold =
        record_claims(r, "fold-any") && !record_claims(r, "fold-rank");
    e->late_states = record_claims(r, "late-states");
    for (uint32_t i = 0; i < e->n_sets; i++) {
        e->set[i]->late_states = e->late_states;
    }
}

void judge_adapter_runs_ahead(const char *claim, struct run_case *c)
{
    static const char begin[] = "ahead-";
    uint32_t depth = 0;

    if (strncmp(claim, begin, sizeof(begin) - 1) == 0 &&
        claim[sizeof(begin) - 1] >= '1' && claim[sizeof(begin) - 1] <= '9' &&
        claim[sizeof(begin)] == '\0') {
        depth = (uint32_t)(claim[sizeof(begin) - 1] - '0');
    }
    c->prefetch_forward = at_least(c->prefetch_forward, depth);
    c->prefetch_backward = at_least(c->prefetch_backward, depth);
    c->reduces_in_flight = at_least(c->reduces_in_flight, depth);
}

const char *judge_adapter_evidence(const struct requirement *q)
{
    /* A row is for one id; if it ends in a dot, for all ids of that area. */
    static const struct {
        const char *id, *claim;
    } row[] = {
        {"memory.checkpoint-bound", "answers"},
        {"memory.", "live-bytes"},
        {"summon.peak", "live-bytes"},
        {"rank0.peak", "live-bytes"},
        {"send.peak", "live-bytes"},
        {"send.input-stays", "answers"},
        {"deferred.peak", "live-bytes"},
        {"run.leaves-nothing", "live-bytes"},
        {"control.reshard", "live-bytes"},
        {"comm.padding-zero", "wire"},
        {"comm.packing-order", "wire"},
        {"frozen.zeros", "wire"},
        {"assign.padding-zero", "wire"},
        {"frozen.no-gradient", "answers"},
        {"frozen.no-state", "live-bytes"},
        {"frozen.reshards", "timeline"},
        {"tied.one-value", "answers"},
        {"tied.saved-once", "answers"},
        {"buffer.saved-dtype", "answers"},
        {"buffer.not-persisted", "answers"},
        {"stream.", "streams"},
        {"prefetch.", "streams"},
        {"mixed.dtypes-at-points", "dtypes"},
        {"run.process-kept", "process-state"},
        {"run.no-forbidden-call", "isolated"},
        {"checkpoint.extra", "answers"},
        {"checkpoint.parts-extra", "answers"},
        {"checkpoint.canonical", "answers"},
        {"error.", "answers"},
        {"summon.elsewhere", "answers"},
        {"comm.no-private-channel", "process"},
        {"comm.nothing-exchanged", "answers"},
        {"script.answers", "answers"},
        {"thaw.states-rest", "live-bytes"},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const size_t n = strlen(row[i].id);
        const size_t compared = row[i].id[n - 1] == '.' ? n : n + 1;

        if (strncmp(q->id, row[i].id, compared) == 0) {
            return row[i].claim;
        }
    }
    return NULL;
}

bool judge_rounds_otherwise(const struct requirement *q, const struct record *r)
{
    static const char *const compares[] = {
        "grad.local",       "grad.bound",    "reduce.baseline",
        "step.state",       "step.weights",  "step.final-weights",
        "step.final-bound", "num.curve",     "num.curve-bound",
        "num.local-loss",   "num.loss-falls"};

    if (r->c.precision == CASE_F32 || (!record_claims(r, "casts-inputs") &&
                                       !record_claims(r, "casts-outputs"))) {
        return false;
    }
    for (size_t i = 0; i < sizeof(compares) / sizeof(compares[0]); i++) {
        if (strcmp(q->id, compares[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The root has parameters under these wraps, and does not keep them. */
static bool reshards_root(const struct run_case *c)
{
    bool reshards =
        c->strategy == CASE_FULL_SHARD || c->strategy == CASE_HYBRID_SHARD;

    return reshards && c->keep_root == 0 &&
           (c->wrap == CASE_WRAP_WHOLE || c->wrap == CASE_WRAP_HEAD ||
            c->wrap == CASE_WRAP_SIZE || c->wrap == CASE_WRAP_BLOCK ||
            c->wrap == CASE_WRAP_APART || c->wrap == CASE_WRAP_IGNORE ||
            case_graph_has_root_unit(c));
}

/* Whether the script that the case plays has these words in its text. */
static bool script_says(const struct run_case *c, const char *words)
{
    const struct case_script *s = case_script_of(c);

    return s && strstr(s->text, words);
}

/* Whether the script looks at the whole model. */
static bool summons(const struct run_case *c)
{
    return c->scenario == CASE_SUMMON || script_says(c, "\nsummon") ||
           script_says(c, "\nunshard\n");
}

bool judge_uses_again(const struct run_case *c)
{
    struct fsdp_error error = {0};
    struct script s = {0};
    bool uses = script_make(c, false, &s, &error) != FSDP_OK;

    for (uint32_t i = 0; i < s.n_actions && !uses; i++) {
        uses = script_step_is_used_again(&s, i);
    }
    script_release(&s);
    return uses;
}

bool judge_any_order(const char *claim)
{
    return strcmp(claim, "fold-rank") == 0 || strcmp(claim, "fold-ring") == 0;
}

uint32_t
judge_adapter_claims(const struct run_case *c,
                     char list[JUDGE_ADAPTER_CLAIMS][JUDGE_CLAIM_BYTES])
{
    const char *wrap = case_wrap_name(c->wrap);
    const char *of_graph[CASE_GRAPH_CLAIMS];
    const uint32_t n_of_graph = case_graph_claims(c, of_graph);
    uint32_t n = 0;

    snprintf(list[n++], JUDGE_CLAIM_BYTES, "workload-%.16s", c->workload);
    snprintf(list[n++], JUDGE_CLAIM_BYTES, "wrap-%.16s",
             wrap ? wrap : "unknown");
    for (uint32_t i = 0; i < n_of_graph; i++) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "%s", of_graph[i]);
    }
    if (reshards_root(c)) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "reshard-root");
    }
    if (c->divide_factor != 0.0f) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "divide-factor");
    }
    if (c->precision != CASE_F32) {
        const char *precision = case_precision_name(c->precision);

        snprintf(list[n++], JUDGE_CLAIM_BYTES, "precision-%.16s",
                 precision ? precision : "unknown");
    }
    if (c->scenario == CASE_AGAIN || script_says(c, "\nagain") ||
        script_says(c, "\nanew")) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "again");
    }
    if (case_is_script(c)) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "scripts");
    }
    if (c->precision != CASE_F32 && summons(c)) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "unshard-f32");
    }
    if (script_says(c, " at ") || script_says(c, " left-open ")) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "in-pass");
    }
    if (c->scenario == CASE_MISUSE || c->scenario == CASE_CLIP ||
        !case_trains(c) || script_says(c, "! ") || script_says(c, "\nclip ")) {
        snprintf(list[n++], JUDGE_CLAIM_BYTES, "answers");
    }
    return n;
}
