/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_case.c - one case: what there is to judge it by, and what each
 * requirement says of it.
 */
#include "judge/judge_internal.h"

#include "cases/case_claims.h"
#include "judge/judge_adapter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the whole case this outcome, with the reason. */
static void settle(struct judge_view *v, uint32_t outcome, const char *what,
                   const char *why)
{
    v->summary->outcome = outcome;
    snprintf(v->summary->reason, sizeof(v->summary->reason), "%s%s%s", what,
             why[0] != '\0' ? ": " : "", why);
}

static bool is_adapter(const struct judge_result *r)
{
    return record_world_is_adapter(r->world);
}

static bool meets_in_any_order(const struct judge_result *r)
{
    return is_adapter(r) && judge_claims(r, "fold-any");
}

/* A claim that the case needs and the engine lacks; NULL: it lacks none. */
static const char *unclaimed(const struct judge_result *r,
                             const struct run_case *c)
{
    const char *list[CASE_MAX_CLAIMS];
    uint32_t n = case_claims(c, list);

    for (uint32_t i = 0; i < n; i++) {
        if (!judge_claims(r, list[i]) &&
            !(judge_any_order(list[i]) && meets_in_any_order(r))) {
            return list[i];
        }
    }
    return NULL;
}

/* The same for claims that only an adapter must make; `claim` has the text. */
static const char *unclaimed_by_adapter(const struct judge_result *r,
                                        const struct run_case *c,
                                        char claim[JUDGE_CLAIM_BYTES])
{
    char list[JUDGE_ADAPTER_CLAIMS][JUDGE_CLAIM_BYTES];
    uint32_t n = is_adapter(r) ? judge_adapter_claims(c, list) : 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!judge_claims(r, list[i])) {
            memcpy(claim, list[i], JUDGE_CLAIM_BYTES);
            return claim;
        }
    }
    if (is_adapter(r) && judge_claims(r, "step-drops") && judge_uses_again(c)) {
        return "gradients behind a step";
    }
    return NULL;
}

static bool same_engine(const struct judge_result *out, const struct record *r)
{
    if (strncmp(out->engine, r->engine, sizeof(r->engine)) != 0 ||
        strncmp(out->engine_version, r->engine_version,
                sizeof(r->engine_version)) != 0 ||
        is_adapter(out) != record_world_is_adapter(r->world) ||
        out->n_claims != r->n_claims) {
        return false;
    }
    for (uint32_t i = 0; i < r->n_claims; i++) {
        if (!judge_claims(out, r->claim[i])) {
            return false;
        }
    }
    return true;
}

/* The judge's own lookup, only among the cases that it judges: others in the
 * folder may be of another manifest. A record that cannot be read is
 * missing. */
static const struct record *lookup(void *context, const char *id)
{
    const struct judge *j = context;
    struct fsdp_error error = {0};

    for (uint32_t i = 0; i < j->out->n_cases; i++) {
        if (strcmp(j->out->cases[i].id, id) == 0) {
            return j->in->record(j->in->record_context, id, &error);
        }
    }
    return NULL;
}

/* Whether the run was stopped; the case is then not judged. */
static bool is_stopped(const struct judge *j, struct judge_view *v,
                       const char *what, uint32_t *count)
{
    const char *why =
        j->in->stopped ? j->in->stopped(j->in->stopped_context) : NULL;

    if (why) {
        *count += 1;
        settle(v, JUDGE_INCOMPLETE, what, why);
    }
    return why != NULL;
}

static void describe(struct judge *j, struct judge_view *v)
{
    struct run_case played = v->summary->c;
    struct fsdp_error error = {0};
    int status = j->in->describe(j->in->model_context, &v->summary->c,
                                 &v->model, &error);

    if (status == FSDP_ERR_ABORTED &&
        is_stopped(j, v, "not judged", &j->out->not_judged)) {
        return;
    }
    if (status != FSDP_OK) {
        settle(v, JUDGE_SKIP, "the suite has no such model", error.message);
        return;
    }
    v->described = true;
    for (uint32_t i = 0; is_adapter(j->out) && i < j->out->n_claims; i++) {
        judge_adapter_runs_ahead(j->out->claim[i], &played);
    }
    if (expect_make_idle(&played, v->model.model, v->model.units, v->model.idle,
                         &v->expect) != FSDP_OK) {
        settle(v, JUDGE_SKIP, "the oracle has no rules for this case", "");
        return;
    }
    v->expect.c = &v->summary->c;
    for (uint32_t i = 0; i < v->expect.n_sets; i++) {
        v->expect.set[i]->c = v->expect.c;
    }
    v->expected = true;
    v->expect.lookup = lookup;
    v->expect.lookup_context = j;
}

static void find_record(struct judge *j, struct judge_view *v)
{
    struct fsdp_error error = {0};
    char id[CASE_ID_BYTES];
    const struct record *r =
        j->in->record(j->in->record_context, v->summary->id, &error);

    if (!r && error.status == FSDP_OK &&
        is_stopped(j, v, "not run", &j->out->not_run)) {
        return;
    }
    if (!r) {
        j->out->malformed += error.status != FSDP_OK;
        settle(v, JUDGE_INCOMPLETE,
               error.status != FSDP_OK ? "the record cannot be read"
                                       : "there is no record",
               error.message);
        return;
    }
    case_id(&r->c, id);
    if (strcmp(id, v->summary->id) != 0 || r->n_ranks != v->summary->c.ranks) {
        settle(v, JUDGE_INCOMPLETE, "the record is of another case", id);
    } else if (j->out->engine[0] == '\0') {
        settle(v, JUDGE_INCOMPLETE,
               "it was not to be read whose records these are",
               j->unread.message);
    } else if (!same_engine(j->out, r)) {
        settle(v, JUDGE_INCOMPLETE,
               "the record is of another engine, version, world or claims",
               r->engine);
    } else {
        v->record = r;
        if (strncmp(j->out->isolation, r->isolation, sizeof(r->isolation)) !=
            0) {
            memset(j->out->isolation, 0, sizeof(j->out->isolation));
        }
        judge_note_sample(j->out, r);
        judge_note_followed(j->out, r);
        if (is_adapter(j->out)) {
            judge_adapter_expect(r, &v->expect);
        }
        judge_ends(v);
    }
    if (v->record && judge_killed_from_outside(v->record)) {
        settle(v, JUDGE_INCOMPLETE,
               "killed from outside, as a system does that is short of memory",
               v->ended_note);
        v->record = NULL;
    }
}

/* Without the run that it must equal nothing can be said of a curve. */
static void find_baseline(struct judge *j, struct judge_view *v)
{
    struct fsdp_error error = {0};
    char key[CASE_ID_BYTES];
    const struct record *r = NULL;

    if (!case_trains(&v->summary->c)) {
        return;
    }
    case_baseline_key(&v->summary->c, key);
    r = j->in->baseline(j->in->record_context, key, &error);
    for (uint32_t i = 0; r && i < r->n_ranks; i++) {
        if (!r->rank[i].present || r->rank[i].status != FSDP_OK ||
            r->rank[i].end != WORLD_RETURNED) {
            r = NULL;
        }
    }
    if (error.status != FSDP_OK) {
        j->out->malformed++;
        settle(v, JUDGE_INCOMPLETE, "the unsharded run cannot be read",
               error.message);
        v->record = NULL;
    } else if (!r && is_stopped(j, v, "its unsharded run was not run",
                                &j->out->not_judged)) {
        v->record = NULL;
    } else if (!r || r->n_ranks == 0) {
        settle(v, JUDGE_INCOMPLETE,
               "the unsharded run to compare with is missing or failed", key);
        v->record = NULL;
    } else {
        v->expect.baseline = r;
    }
}

/* Looks for a record before a model is made, which takes longer: in a run that
 * was interrupted early nearly no case has a record. */
static bool was_not_run(struct judge *j, struct judge_view *v)
{
    struct fsdp_error error = {0};

    return j->in->hurried &&
           !j->in->record(j->in->record_context, v->summary->id, &error) &&
           error.status == FSDP_OK &&
           is_stopped(j, v, "not run", &j->out->not_run);
}

static void gather(struct judge *j, struct judge_view *v)
{
    char own[JUDGE_CLAIM_BYTES];
    const char *claim = unclaimed(j->out, &v->summary->c);

    if (!claim) {
        claim = unclaimed_by_adapter(j->out, &v->summary->c, own);
    }
    if (was_not_run(j, v)) {
        return;
    }
    describe(j, v);
    if (claim && j->out->claim) {
        settle(v, JUDGE_NOT_CLAIMED, "the engine does not claim", claim);
    } else if (v->expected) {
        find_record(j, v);
        if (v->record) {
            find_baseline(j, v);
        }
    }
}

/* The earliest failure in this case that requirement q waits for. */
static uint32_t blocker(const struct judge_result *out,
                        const struct judge_item *items, const uint32_t *cause,
                        uint32_t q)
{
    const struct requirement_needs *needs = &out->needs;
    uint32_t found = JUDGE_NONE;

    for (uint32_t k = needs->first[q]; k < needs->first[q + 1]; k++) {
        uint32_t need = needs->index[k];

        if (!judge_is_failure(&items[need])) {
            need = cause[need];
        }
        if (need != JUDGE_NONE &&
            (found == JUDGE_NONE ||
             judge_step_of(&items[need]) < judge_step_of(&items[found]))) {
            found = need;
        }
    }
    return found;
}

/* Adds the element's place in its unit, if the requirement did not say it. An
 * element that the parameter lacks, which an engine may name, has no place. */
static void complete_place(const struct expect *e, struct finding *f)
{
    uint32_t u;

    if (f->parameter < 0 || f->parameter >= (int64_t)e->model->n_parameters) {
        return;
    }
    u = e->unit_of_parameter[f->parameter];
    f->unit = f->unit >= 0 ? f->unit : (int64_t)u;
    if (f->element < 0 || f->flat >= 0 || e->unit[u].chunk == 0 ||
        (uint64_t)f->element >= fsdp_numel(e->model, (uint32_t)f->parameter)) {
        return;
    }
    f->flat =
        (int64_t)expect_place(e, (uint32_t)f->parameter, (uint64_t)f->element);
    f->shard = f->flat / (int64_t)e->unit[u].chunk;
    f->local = f->flat % (int64_t)e->unit[u].chunk;
}

static void name_places(const struct judge_view *v, struct judge_detail *d)
{
    const struct fsdp_model *model = v->expect.model;
    const char *unit = NULL;

    complete_place(&v->expect, &d->finding);
    if (d->finding.unit >= 0 && d->finding.unit < v->expect.units->n_units) {
        unit = expect_unit_name(&v->expect, (uint32_t)d->finding.unit);
    }
    if (unit) {
        snprintf(d->unit, sizeof(d->unit), "%s", unit);
    }
    if (d->finding.parameter >= 0 &&
        d->finding.parameter < (int64_t)model->n_parameters) {
        snprintf(d->parameter, sizeof(d->parameter), "%s",
                 model->parameter_name[d->finding.parameter]);
    }
}

struct finding judge_nowhere(void)
{
    struct finding f = {.step = -1, .microbatch = -1, .unit = -1};

    f.rank = f.parameter = f.element = f.flat = f.shard = f.local = -1;
    return f;
}

int judge_keep(const struct judge_view *v, const struct finding *f,
               struct judge_item *item)
{
    item->detail = calloc(1, sizeof(*item->detail));
    if (!item->detail) {
        return FSDP_ERR_NOMEM;
    }
    item->detail->finding = *f;
    item->detail->finding.note[sizeof(f->note) - 1] = '\0';
    name_places(v, item->detail);
    return FSDP_OK;
}

/* Asks the requirement itself. */
static int hear(const struct judge *j, const struct judge_view *v,
                const struct requirement *q, struct judge_item *item)
{
    struct finding f = judge_nowhere();

    if ((q->looked_at && !q->looked_at(v->record)) ||
        judge_is_unasked(j->out, q, v->record) ||
        (is_adapter(j->out) && judge_rounds_otherwise(q, v->record))) {
        item->outcome = JUDGE_NOT_APPLICABLE;
        return FSDP_OK;
    }
    if (requirement_holds(q, &v->expect, v->record, &f)) {
        item->outcome = JUDGE_PASS;
        return f.ratio > 0.0 ? judge_keep(v, &f, item) : FSDP_OK;
    }
    if (f.form == FINDING_ENDED && j->completes < j->out->n_requirements) {
        item->outcome = JUDGE_BLOCKED;
        item->blocked_by = j->completes;
        return FSDP_OK;
    }
    f.form = f.form == FINDING_ENDED ? (uint32_t)FINDING_TEXT : f.form;
    item->outcome = f.form == FINDING_MISSING ? JUDGE_INCOMPLETE : JUDGE_FAIL;
    return judge_keep(v, &f, item);
}

/* Whether the engine claims what the requirement is about, and its records can
 * show it. */
static bool is_shown(const struct judge_result *r, const struct requirement *q)
{
    const char *evidence = is_adapter(r) ? judge_adapter_evidence(q) : NULL;

    return (!q->claim || judge_claims(r, q->claim)) &&
           (!evidence || judge_claims(r, evidence));
}

/* Asks a requirement although a failure in a later step blocks it: if it fails
 * before that step, that failure did not cause it. */
static int hear_of_earlier(const struct judge *j, const struct judge_view *v,
                           const struct requirement *q, uint32_t cause,
                           int64_t from, struct judge_item *item)
{
    if (from > 0) {
        FSDP_TRY(hear(j, v, q, item));
        if (item->outcome == JUDGE_FAIL && judge_step_of(item) >= 0 &&
            judge_step_of(item) < from) {
            return FSDP_OK;
        }
    }
    judge_block(item, cause);
    return FSDP_OK;
}

/* `from` is the step in which `cause` failed. */
static int judge_item(const struct judge *j, const struct judge_view *v,
                      uint32_t q, uint32_t cause, int64_t from,
                      struct judge_item *item)
{
    const struct requirement *requirement = j->out->requirement[q];
    bool runs = q == j->run || j->run == j->out->n_requirements;

    item->blocked_by = JUDGE_NONE;
    if (v->record && v->ended != JUDGE_PASS && runs) {
        struct finding f = judge_nowhere();

        f.stage = "run";
        memcpy(f.note, v->ended_note, sizeof(f.note));
        item->outcome = v->ended;
        return judge_keep(v, &f, item);
    }
    if (v->expected && (!requirement_speaks_of(requirement, &v->expect) ||
                        !requirement_applies(requirement, &v->expect))) {
        item->outcome = JUDGE_NOT_APPLICABLE;
    } else if (!v->record) {
        item->outcome = v->summary->outcome;
    } else if (!is_shown(j->out, requirement)) {
        item->outcome = JUDGE_NOT_CLAIMED;
    } else if (cause != JUDGE_NONE) {
        return hear_of_earlier(j, v, requirement, cause, from, item);
    } else {
        return hear(j, v, requirement, item);
    }
    return FSDP_OK;
}

static int judge_items(struct judge *j, const struct judge_view *v,
                       struct judge_item *items)
{
    uint32_t n = j->out->n_requirements;
    uint32_t *cause = calloc((size_t)n + 1, sizeof(*cause));
    int status = cause ? FSDP_OK : FSDP_ERR_NOMEM;
    double began = judge_seconds(j);

    for (uint32_t i = 0; i < n && status == FSDP_OK; i++) {
        uint32_t q = j->out->order[i];
        double ended;

        if (!j->asked[q]) {
            items[q].outcome = JUDGE_SKIP;
            items[q].blocked_by = cause[q] = JUDGE_NONE;
            continue;
        }
        cause[q] = blocker(j->out, items, cause, q);
        status = judge_item(
            j, v, q, cause[q],
            cause[q] != JUDGE_NONE ? judge_step_of(&items[cause[q]]) : -1,
            &items[q]);
        ended = judge_seconds(j);
        j->out->seconds[q] += ended - began;
        began = ended;
        if (status == FSDP_OK && items[q].outcome == JUDGE_BLOCKED) {
            cause[q] = items[q].blocked_by;
        }
    }
    free(cause);
    return status;
}

int judge_one_case(struct judge *j, uint32_t index)
{
    struct judge_item *items =
        &j->out->item[(uint64_t)index * j->out->n_requirements];
    struct judge_view v = {.summary = &j->out->cases[index]};
    int status;

    gather(j, &v);
    status = judge_items(j, &v, items);
    judge_settle_causes(j->out, index);
    if (status == FSDP_OK && v.record) {
        v.summary->outcome = v.ended;
        judge_summarise(&v);
        status = judge_measure(&v);
        if (status == FSDP_OK) {
            status = judge_prove(j, &v, items);
        }
    }
    if (v.expected) {
        expect_release(&v.expect);
    }
    if (v.described) {
        j->in->undescribe(j->in->model_context, &v.model);
    }
    return status;
}
