/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_scene_testing.c - a case of its own for the judge: its model, its
 * unsharded run, and one record after the other.
 */
#include "tools/submit/judge_scene_testing.h"

#include <stdio.h>
#include <string.h>

struct shown {
    const struct judge_scene *s;
    const struct record *r;
};

int judge_scene_load(const char *records, const char *id,
                     struct judge_scene *out, struct fsdp_error *error)
{
    char key[CASE_ID_BYTES];
    char path[512];

    memset(out, 0, sizeof(*out));
    if (!case_of_id(id, &out->c)) {
        return FSDP_ERR_INVALID;
    }
    out->like.requirement = requirement_table();
    out->like.n_requirements = requirement_count(requirement_table());
    FSDP_TRY(judge_place(&out->like));
    FSDP_TRY(case_model_make(&out->c, "", 0, &out->model, error));
    snprintf(path, sizeof(path), "%s/%s", records, id);
    FSDP_TRY(record_read(path, &out->record, error));
    if (!case_trains(&out->c)) { /* then there is no unsharded run */
        return FSDP_OK;
    }
    case_baseline_key(&out->c, key);
    snprintf(path, sizeof(path), "%s/baseline/%s", records, key);
    return record_read(path, &out->baseline, error);
}

void judge_scene_release(struct judge_scene *s)
{
    judge_release(&s->like);
    record_release(&s->baseline);
    record_release(&s->record);
    case_model_release(&s->model);
}

static int describe(void *context, const struct run_case *c,
                    struct judge_model *out, struct fsdp_error *error)
{
    const struct judge_scene *s = ((const struct shown *)context)->s;

    (void)c;
    (void)error;
    *out = (struct judge_model){&s->model.model->model, &s->model.units.units,
                                s->model.model->idle, NULL};
    return FSDP_OK;
}

static void undescribe(void *context, struct judge_model *model)
{
    (void)context;
    (void)model;
}

/* Nothing but this case was run. */
static const struct record *find(void *context, const char *id,
                                 struct fsdp_error *error)
{
    const struct shown *x = context;

    (void)error;
    return strcmp(x->r->id, id) == 0 ? x->r : NULL;
}

static const struct record *find_baseline(void *context, const char *key,
                                          struct fsdp_error *error)
{
    (void)key;
    (void)error;
    return &((const struct shown *)context)->s->baseline;
}

int judge_scene_judge(const struct judge_scene *s, const struct record *r,
                      uint32_t n_manifest, struct judge_result *out)
{
    struct shown x = {s, r};
    const struct judge_input in = {.requirements = requirement_table(),
                                   .cases = &s->c,
                                   .n_cases = 1,
                                   .n_manifest = n_manifest,
                                   .manifest_sha256 = "0",
                                   .describe = describe,
                                   .undescribe = undescribe,
                                   .model_context = &x,
                                   .record = find,
                                   .baseline = find_baseline,
                                   .record_context = &x,
                                   .like = &s->like};

    return judge(&in, out);
}
