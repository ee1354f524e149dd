/* SPDX-License-Identifier: Apache-2.0 */
/* judge_testing.c - see judge_testing.h. */
#include "judge/judge_testing.h"
#include "testing/unit_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool always(const struct expect *e)
{
    return e->c != NULL;
}

static bool under_ring(const struct expect *e)
{
    return e->c->fold == FSDP_FOLD_RING;
}

static bool all_returned(const struct expect *e, const struct record *r,
                         struct finding *f)
{
    (void)e;
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        if (r->rank[k].end != WORLD_RETURNED) {
            f->rank = (int64_t)k;
            snprintf(f->note, sizeof(f->note), "did not return");
            return false;
        }
    }
    return true;
}

static bool kill_one(const struct expect *e, struct record *r)
{
    (void)e;
    r->rank[1].end = WORLD_SIGNALLED;
    return true;
}

/* Loss `step` of every rank is 1. */
static bool loss_is_one(const struct record *r, uint32_t step,
                        struct finding *f)
{
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        float x = step < r->rank[k].n_losses ? r->rank[k].loss[step] : 0;
        float one = 1;

        if (x != one) {
            f->form = FINDING_BITS;
            f->stage = "reduced";
            f->step = (int64_t)step;
            f->rank = (int64_t)k;
            f->parameter = 1;
            f->element = x == TESTING_BEYOND ? 1024 : 700;
            memcpy(&f->got, &x, sizeof(x));
            memcpy(&f->want, &one, sizeof(one));
            snprintf(f->note, sizeof(f->note),
                     "<loss> & \"bits\" \x1b[31m differ");
            return false;
        }
    }
    return true;
}

static bool first_is_one(const struct expect *e, const struct record *r,
                         struct finding *f)
{
    (void)e;
    return loss_is_one(r, 0, f);
}

static bool last_is_one(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    (void)e;
    return loss_is_one(r, TESTING_STEPS - 1, f);
}

static bool all_finite(const struct expect *e, const struct record *r,
                       struct finding *f)
{
    (void)e;
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        for (uint32_t i = 0; i < r->rank[k].n_losses; i++) {
            if (!(fabsf(r->rank[k].loss[i]) < INFINITY)) {
                snprintf(f->note, sizeof(f->note), "not finite");
                return false;
            }
        }
    }
    return true;
}

static bool spoil_first(const struct expect *e, struct record *r)
{
    (void)e;
    r->rank[1].loss[0] = 2;
    return true;
}

static bool spoil_last(const struct expect *e, struct record *r)
{
    (void)e;
    r->rank[1].loss[TESTING_STEPS - 1] = NAN;
    return true;
}

static bool peak_is_exact(const struct expect *e, const struct record *r,
                          struct finding *f)
{
    f->form = FINDING_BYTES;
    f->stage = "memory";
    f->got = r->rank[0].memory.peak_parameters;
    f->want = e->peak_parameters;
    return f->got == f->want;
}

static bool spoil_peak(const struct expect *e, struct record *r)
{
    (void)e;
    r->rank[0].memory.peak_parameters += 4;
    return true;
}

static const struct requirement survives_requirement = {
    .id = REQUIREMENT_RUN,
    .text = "Every rank returns.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_RUN,
    .applies = always,
    .holds = all_returned,
    .spoil = kill_one};
static const struct requirement loss_requirement = {
    .id = "test.loss",
    .text = "The first loss is one.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "run.survives",
    .applies = always,
    .holds = first_is_one,
    .spoil = spoil_first};
static const struct requirement finite_requirement = {.id = "test.finite",
                                                      .text =
                                                          "Losses are finite.",
                                                      .since = "1.0",
                                                      .must = 1,
                                                      .level = LEVEL_STEP,
                                                      .needs = "test.loss",
                                                      .applies = always,
                                                      .holds = all_finite,
                                                      .spoil = spoil_last};
static const struct requirement ring_requirement = {.id = "test.ring",
                                                    .text =
                                                        "The ring is a ring.",
                                                    .since = "1.0",
                                                    .must = 1,
                                                    .level = LEVEL_STEP,
                                                    .needs = "test.finite",
                                                    .applies = under_ring,
                                                    .holds = first_is_one,
                                                    .spoil = spoil_first};
static const struct requirement last_requirement = {
    .id = "test.last",
    .text = "The last loss is one.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "run.survives test.ring",
    .applies = always,
    .holds = last_is_one,
    .spoil = spoil_last};
static const struct requirement peak_requirement = {.id = "test.peak",
                                                    .text =
                                                        "The peak is exact.",
                                                    .since = "1.0",
                                                    .must = 0,
                                                    .level = LEVEL_MEMORY,
                                                    .needs = "run.survives",
                                                    .claim = "strict-memory",
                                                    .applies = always,
                                                    .holds = peak_is_exact,
                                                    .spoil = spoil_peak};

const struct requirement *const testing_requirements[TESTING_N + 1] = {
    &survives_requirement,
    &loss_requirement,
    &finite_requirement,
    &ring_requirement,
    &last_requirement,
    &peak_requirement,
    NULL};

static int describe(void *context, const struct run_case *c,
                    struct judge_model *out, struct fsdp_error *error)
{
    struct testing_run *run = context;

    (void)c;
    if (run->no_model) {
        snprintf(error->message, sizeof(error->message), "no such size");
        return FSDP_ERR_INVALID;
    }
    out->model = &run->model.model;
    out->units = &run->model.units;
    return FSDP_OK;
}

static void undescribe(void *context, struct judge_model *model)
{
    (void)context;
    (void)model;
}

static const struct record *find(void *context, const char *id,
                                 struct fsdp_error *error)
{
    struct testing_run *run = context;

    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        char own[CASE_ID_BYTES];

        case_id(&run->c[i], own);
        if (strcmp(own, id) != 0 || run->missing[i]) {
            continue;
        }
        if (run->malformed[i]) {
            error->status = FSDP_ERR_FORMAT;
            snprintf(error->message, sizeof(error->message),
                     "rank-1.json: no losses");
            return NULL;
        }
        return &run->record[i];
    }
    return NULL;
}

static const struct record *find_baseline(void *context, const char *key,
                                          struct fsdp_error *error)
{
    const struct testing_run *run = context;

    (void)key;
    (void)error;
    return run->no_baseline ? NULL : &run->baseline;
}

static void next(void *context)
{
    struct testing_run *run = context;

    run->n_next++;
}

/* Each array is malloc'ed by itself, as if the record had been read. */
static void fill(struct record *r, const struct run_case *c)
{
    static const char claims[][32] = {"flat",          "full-shard",
                                      "sgd",           "fold-rank",
                                      "shard-grad-op", "strict-memory"};
    const uint32_t n = sizeof(claims) / sizeof(claims[0]);

    if (record_init(r, c, c->ranks) != FSDP_OK) {
        abort();
    }
    free(r->claim);
    r->claim = calloc(n, sizeof(*r->claim));
    r->n_claims = n;
    if (!r->claim) {
        abort();
    }
    memcpy(r->claim, claims, sizeof(claims));
    snprintf(r->engine, sizeof(r->engine), "made-up");
    for (uint32_t k = 0; k < c->ranks; k++) {
        struct record_rank *rank = &r->rank[k];

        rank->present = true;
        rank->end = WORLD_RETURNED;
        rank->last_unit = FSDP_NO_UNIT;
        rank->n_losses = TESTING_STEPS;
        rank->loss = calloc(TESTING_STEPS, sizeof(*rank->loss));
        if (!rank->loss) {
            abort();
        }
        for (uint32_t i = 0; i < TESTING_STEPS; i++) {
            rank->loss[i] = 1;
        }
    }
}

void testing_run_make(struct testing_run *run)
{
    memset(run, 0, sizeof(*run));
    testing_mlp(&run->model);
    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        struct expect e;
        uint32_t strategy = i == 0 ? CASE_FULL_SHARD : CASE_SHARD_GRAD_OP;

        run->c[i] = testing_case(strategy, 2, 1);
        run->c[i].steps = TESTING_STEPS;
        fill(&run->record[i], &run->c[i]);
        if (expect_make(&run->c[i], &run->model.model, &run->model.units, &e) !=
            FSDP_OK) {
            abort();
        }
        run->record[i].rank[0].memory.peak_parameters = e.peak_parameters;
        expect_release(&e);
    }
    fill(&run->baseline, &run->c[0]);
    run->in = (struct judge_input){
        .requirements = testing_requirements,
        .cases = run->c,
        .n_cases = TESTING_CASES,
        .n_manifest = TESTING_CASES,
        .manifest_sha256 = "00ff",
        .describe = describe,
        .undescribe = undescribe,
        .model_context = run,
        .record = find,
        .baseline = find_baseline,
        .next = next,
        .record_context = run,
    };
}

void testing_run_release(struct testing_run *run)
{
    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        record_release(&run->record[i]);
    }
    record_release(&run->baseline);
}

int testing_set_up(void **state)
{
    static struct testing_run run;

    testing_run_make(&run);
    *state = &run;
    return 0;
}

int testing_tear_down(void **state)
{
    testing_run_release(*state);
    return 0;
}

struct judge_result testing_judged(const struct testing_run *run)
{
    struct judge_result r;

    assert_int_equal(judge(&run->in, &r), FSDP_OK);
    return r;
}

void testing_check_item(const struct judge_result *r, uint32_t c, uint32_t q,
                        uint32_t outcome, uint32_t blocked_by)
{
    assert_string_equal(judge_outcome_name(judge_item_at(r, c, q)->outcome),
                        judge_outcome_name(outcome));
    assert_int_equal(judge_item_at(r, c, q)->blocked_by, blocked_by);
}
