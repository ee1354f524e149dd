/* SPDX-License-Identifier: Apache-2.0 */
/* explanations.c - see explanations.h. */
#include "tools/submit/explanations.h"

#include "record/record_internal.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    MAX_EXPLANATIONS = 4096
};

const char *explanation_whose_name(uint32_t whose)
{
    static const char *const name[] = {"theirs", "theirs-by-design", "ours",
                                       "open"};

    return whose < EXPLANATION_N ? name[whose] : NULL;
}

const char *explanation_whose_text(uint32_t whose)
{
    return whose == EXPLANATION_BY_DESIGN ? "theirs, by design"
                                          : explanation_whose_name(whose);
}

void explanations_release(struct explanations *x)
{
    free(x->of);
    x->of = NULL;
    x->n = 0;
}

static bool parse_one(struct record_json *j, json_t *v, size_t i,
                      struct explanation *out)
{
    static const char *const key[] = {"requirement", "cases", "whose", "why"};
    const struct record_field at = record_element("explanations", i);
    json_t *value[4];

    return record_json_object(j, at, v, key, 4, value) &&
           record_json_text(j, at, value[0], out->requirement,
                            sizeof(out->requirement)) &&
           record_json_text(j, at, value[1], out->cases, sizeof(out->cases)) &&
           record_json_name(j, at, value[2], explanation_whose_name, false,
                            &out->whose) &&
           record_json_text(j, at, value[3], out->why, sizeof(out->why)) &&
           (out->why[0] != '\0' || record_refuse(j, at, "says no why"));
}

static bool parse(struct record_json *j, json_t *root, struct explanations *out)
{
    static const char *const key[] = {"version", "explanations"};
    json_t *v[2];

    if (!record_json_version(j, root, VERSION) ||
        !record_json_object(j, record_field("the file"), root, key, 2, v) ||
        !record_json_array(j, record_field("explanations"), v[1], 0,
                           MAX_EXPLANATIONS)) {
        return false;
    }
    out->of = record_json_room(j, json_array_size(v[1]), sizeof(*out->of));
    if (out->of == NULL) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(v[1]); i++) {
        if (!parse_one(j, json_array_get(v[1], i), i, &out->of[i])) {
            return false;
        }
        out->n++;
    }
    return true;
}

int explanations_parse(const char *text, size_t bytes, const char *file,
                       struct explanations *out, struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error};
    json_t *root = record_json_load(&j, text, bytes);

    memset(out, 0, sizeof(*out));
    if (root != NULL) {
        (void)parse(&j, root, out);
        json_decref(root);
    }
    if (j.status != FSDP_OK) {
        explanations_release(out);
    }
    return j.status;
}

bool explanations_wanted(uint32_t outcome)
{
    return outcome == JUDGE_FAIL || outcome == JUDGE_ERROR ||
           outcome == JUDGE_TIMEOUT || outcome == JUDGE_INCOMPLETE;
}

/* What explains it, counted; how many do. */
static uint32_t explain(struct explanations *x, const char *requirement,
                        const char *id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n; i++) {
        if (strcmp(x->of[i].requirement, requirement) == 0 &&
            fnmatch(x->of[i].cases, id, 0) == 0) {
            x->of[i].n++;
            n++;
        }
    }
    return n;
}

int explanations_match(struct explanations *x, const struct judge_result *r,
                       struct fsdp_error *error)
{
    for (uint32_t i = 0; i < x->n; i++) {
        x->of[i].n = 0;
    }
    for (uint32_t c = 0; c < r->n_cases; c++) {
        for (uint32_t q = 0; q < r->n_requirements; q++) {
            uint32_t n;

            if (!r->reported[q] ||
                !explanations_wanted(judge_item_at(r, c, q)->outcome)) {
                continue;
            }
            n = explain(x, r->requirement[q]->id, r->cases[c].id);
            if (n != 1) {
                return record_fail(error, FSDP_ERR_FORMAT, "explanations",
                                   "%.40s of %.110s: %s", r->requirement[q]->id,
                                   r->cases[c].id,
                                   n == 0 ? "nothing explains it"
                                          : "explained twice");
            }
        }
    }
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->of[i].n == 0) {
            return record_fail(error, FSDP_ERR_FORMAT, "explanations",
                               "%.40s of %.110s is explained and does not fail",
                               x->of[i].requirement, x->of[i].cases);
        }
    }
    return FSDP_OK;
}
