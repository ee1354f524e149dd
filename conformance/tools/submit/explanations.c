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

static bool check_why(struct record_json *j, void *base)
{
    return ((const struct explanation *)base)->why[0] != '\0' ||
           record_refuse(j, j->at, "says no why");
}

#define AT(member) RECORD_AT(struct explanation, member)
static const struct record_row one_rows[] = {
    {"requirement", &record_string, AT(requirement)},
    {"cases", &record_string, AT(cases)},
    {"whose", &record_name, AT(whose), .name = explanation_whose_name},
    {"why", &record_string, AT(why)},
};
#undef AT
static const struct record_table one_table = {
    RECORD_ROWS(one_rows), .size = sizeof(struct explanation),
    .check = check_why};

static const struct record_row rows[] = {
    {"version", &record_version, .most = VERSION},
    {"explanations", &record_list, RECORD_LIST(struct explanations, of, n),
     .most = MAX_EXPLANATIONS, .table = &one_table},
};
const struct record_table explanations_table = {RECORD_ROWS(rows),
                                                .prefix = ""};

int explanations_parse(const char *text, size_t bytes, const char *file,
                       struct explanations *out, struct fsdp_error *error)
{
    int status;

    memset(out, 0, sizeof(*out));
    status =
        record_parse(text, bytes, file, &explanations_table, NULL, out, error);
    if (status != FSDP_OK) {
        explanations_release(out);
    }
    return status;
}

bool explanations_wanted(uint32_t outcome)
{
    return outcome == JUDGE_FAIL || outcome == JUDGE_ERROR ||
           outcome == JUDGE_TIMEOUT || outcome == JUDGE_INCOMPLETE;
}

/* Finds the explanation of a failure, and counts the failure there; returns how
 * many explain it. */
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
