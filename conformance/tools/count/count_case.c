/* SPDX-License-Identifier: Apache-2.0 */
/* count_case.c - plays all ranks of a case by themselves, and judges them. */
#include "tools/count/count_case.h"

#include "judge/judge_adapter.h"
#include "judge/requirement.h"
#include "models/text.h"
#include "mutants/mutant.h"
#include "record/record.h"
#include "requirements/families.h"
#include "run/play/engine_claims.h"
#include "tools/count/count_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranks have sent and computed nothing: requirements about values are not
 * asked, nor those about processes. */
static bool needs_no_values(const char *id)
{
    static const char *const not [] = {
        "comm.padding-zero", "comm.packing-order", "comm.no-private-channel",
        "memory.process-growth"};

    for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++) {
        if (strcmp(id, not [i]) == 0) {
            return false;
        }
    }
    return strncmp(id, "comm.", 5) == 0 || strncmp(id, "memory.", 7) == 0 ||
           strcmp(id, "run.shows-every-step") == 0;
}

static const struct record *no_other(void *context, const char *id)
{
    (void)context;
    (void)id;
    return NULL;
}

static void note_finding(struct count_result *out, const char *id,
                         const struct finding *f)
{
    out->failed++;
    if (out->first[0] != '\0') {
        return;
    }
    if (f->note[0] != '\0') {
        snprintf(out->first, sizeof(out->first), "%s: rank %lld: %s", id,
                 (long long)f->rank, f->note);
    } else {
        snprintf(out->first, sizeof(out->first),
                 "%s: rank %lld, step %lld, %s: %llu, expected %llu", id,
                 (long long)f->rank, (long long)f->step,
                 f->stage ? f->stage : "all", (unsigned long long)f->got,
                 (unsigned long long)f->want);
    }
}

/* A check that does not see the damage that it is there for says nothing of
 * the record. */
static int prove(const struct requirement *q, const struct expect *e,
                 const struct record *r, struct count_result *out)
{
    struct finding f = {0};
    struct record copy;

    FSDP_TRY(record_copy(r, &copy));
    out->unproved +=
        requirement_spoil(q, e, &copy) && requirement_holds(q, e, &copy, &f);
    record_release(&copy);
    return FSDP_OK;
}

static int judge_all(const struct fsdp_engine *engine, const struct expect *e,
                     const struct record *r, struct count_result *out)
{
    const struct requirement *const *table = requirement_table();

    for (; *table; table++) {
        const struct requirement *const q = *table;
        struct finding f = {.step = -1, .rank = -1};

        if (!needs_no_values(q->id) || !requirement_speaks_of(q, e) ||
            !requirement_applies(q, e) ||
            (q->claim && !engine_claims(engine, q->claim)) ||
            (q->looked_at && !q->looked_at(r))) {
            continue;
        }
        if (requirement_holds(q, e, r, &f)) {
            out->asked++;
            FSDP_TRY(prove(q, e, r, out));
        } else if (f.form != FINDING_MISSING) {
            out->asked++;
            note_finding(out, q->id, &f);
        }
    }
    return FSDP_OK;
}

static void add_sequence(const struct record_rank *rank, uint32_t index,
                         struct count_result *out)
{
    const struct record_sequence *const s =
        index < rank->n_sequences ? &rank->sequence[index] : NULL;

    for (uint32_t i = 0; s && i < s->n; i++) {
        out->collectives++;
        out->bytes += s->c[i].n * fsdp_dtype_bytes(s->c[i].dtype);
    }
}

static void add_rank(const struct record_rank *rank, struct count_result *out)
{
    add_sequence(rank, rank->shard_sequence, out);
    for (uint32_t t = 0; t < rank->n_steps; t++) {
        add_sequence(rank, rank->step_sequence[t], out);
    }
    add_sequence(rank, rank->end_sequence, out);
}

/* All ranks, one after the other; the first that fails is the last. */
static void play_all(const struct drive *d, struct record *r,
                     struct count_result *out)
{
    for (uint32_t k = 0; k < d->c->ranks; k++) {
        struct fsdp_error error = {0};
        const int status = count_rank(d, k, &r->rank[k], &error);

        r->rank[k].exit_status = status;
        if (status != FSDP_OK) {
            out->failed++;
            snprintf(out->first, sizeof(out->first), "rank %u: %s: %s", k,
                     error.where[0] != '\0' ? error.where : "nowhere",
                     error.message[0] != '\0' ? error.message
                                              : fsdp_status_text(status));
            return;
        }
        add_rank(&r->rank[k], out);
    }
}

static int with_model(struct drive *d, struct count_result *out)
{
    const struct case_model *const m = d->model;
    struct expect e = {0};
    struct record r = {.n_ranks = 0};
    int status = expect_make_idle(d->c, &m->model->model, &m->units.units,
                                  m->model->idle, &e);

    e.profile = EXPECT_F32_FMA;
    e.lookup = no_other;
    if (status == FSDP_OK) {
        status = record_init(&r, d->c, d->c->ranks);
    }
    if (status == FSDP_OK) {
        play_all(d, &r, out);
        status = out->failed > 0 ? FSDP_OK : judge_all(d->engine, &e, &r, out);
    }
    record_release(&r);
    expect_release(&e);
    return status;
}

/* Which model there is and what is played does not depend on how many ranks
 * play it; and models and scripts know no more than a run can have. */
static struct run_case playable(const struct run_case *c)
{
    struct run_case played = *c;

    if (played.ranks > CASE_MAX_RANKS) {
        played.ranks = CASE_MAX_RANKS;
        played.replicas = c->replicas == c->ranks ? played.ranks
                          : c->replicas > 1       ? 2
                                                  : 1;
    }
    return played;
}

int count_case(const struct run_case *c, const struct fsdp_engine *engine,
               const struct fsdp_engine *device_engine,
               const struct mutant *mutant, struct count_result *out,
               struct fsdp_error *error)
{
    const struct run_case played = playable(c);
    struct case_model model = {0};
    struct script script = {0};
    struct text text = {0};
    struct drive d = {.c = c,
                      .model = &model,
                      .script = &script,
                      .engine = engine,
                      .device_engine = device_engine,
                      .mutant = mutant,
                      .mutate = mutant_apply};
    int status = text_load(NULL, &text, error);

    memset(out, 0, sizeof(*out));
    if (status == FSDP_OK) {
        status = case_model_make(&played, text.bytes, text.n, &model, error);
    }
    if (status == FSDP_OK) {
        status = script_make(&played, false, &script, error);
    }
    if (status == FSDP_OK) {
        status = with_model(&d, out);
    }
    script_release(&script);
    case_model_release(&model);
    text_release(&text);
    return status;
}
