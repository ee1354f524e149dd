/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submission.c - reads submission.json and about.json, and writes the former.
 */
#include "tools/submit/submission.h"

#include "cases/case_graph.h"
#include "record/record_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_CLAIMS = 256
};

static bool is_day(const char *s)
{
    static const char form[] = "dddd-dd-dd";

    for (size_t i = 0; i < sizeof(form); i++) {
        if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i]) {
            return false;
        }
    }
    return true;
}

static bool check_day(struct record_json *j, void *base)
{
    return is_day(((const struct submission_about *)base)->made) ||
           record_refuse(j, record_field("made"),
                         "a day as 2026-11-20 was expected");
}

/* Most of the texts must not be empty. */
#define AT(member) RECORD_AT(struct submission_about, member)
static const struct record_row about_rows[] = {
    {"version", &record_version, .most = SUBMISSION_VERSION},
    {"name", &record_string, AT(name), .least = 1},
    {"column", &record_string, AT(column), .least = 1},
    {"release", &record_string, AT(release), .least = 1},
    {"url", &record_string, AT(url)},
    {"hardware", &record_string, AT(hardware), .least = 1},
    {"software", &record_short_list,
     RECORD_LIST(struct submission_about, software, n_software),
     RECORD_STRINGS(struct submission_about, software), .least = 1,
     .most = SUBMISSION_MAX_SOFTWARE},
    {"adapter", &record_string, AT(adapter)},
    {"command", &record_string, AT(command), .least = 1},
    {"seed", &record_u32, AT(seed)},
    {"made", &record_string, AT(made), .least = 1},
    {"notes", &record_string, AT(notes)},
};
#undef AT
const struct record_table submission_about_table = {
    RECORD_ROWS(about_rows), .prefix = "", .check = check_day};

/* The same within submission.json, which has a version of its own. */
static const struct record_table about_table = {
    .row = about_rows + 1,
    .n = sizeof(about_rows) / sizeof(about_rows[0]) - 1,
    .prefix = "",
    .line = "\n  ",
    .check = check_day};

int submission_about_parse(const char *text, size_t bytes, const char *file,
                           struct submission_about *out,
                           struct fsdp_error *error)
{
    memset(out, 0, sizeof(*out));
    return record_parse(text, bytes, file, &submission_about_table, NULL, out,
                        error);
}

/* "whole", or a list of ids in ascending order, so that none is there twice. */
static bool read_cases(struct record_json *j, struct record_field at, json_t *v,
                       const struct record_row *row, void *base)
{
    struct submission *const out = base;
    const char *const text = json_string_value(v);

    out->whole = text && strcmp(text, "whole") == 0;
    if (out->whole) {
        return true;
    }
    if (!record_list.read(j, at, v, row, base)) {
        return false;
    }
    for (uint32_t i = 1; i < out->n_cases; i++) {
        if (strcmp(out->id[i - 1], out->id[i]) >= 0) {
            return record_refuse(j, record_element(row->key, i),
                                 "ids must be in ascending order");
        }
    }
    return true;
}

static void write_cases(struct record_text *t, const struct record_row *row,
                        const void *base)
{
    if (((const struct submission *)base)->whole) {
        record_text_add(t, "\"whole\"");
    } else {
        record_list.write(t, row, base);
    }
}

static const struct record_type whole_or_cases = {read_cases, write_cases};

#define AT(member) RECORD_AT(struct submission, member)
static const struct record_row rows[] = {
    {"version", &record_version, .most = SUBMISSION_VERSION},
    {"specification", &record_string, AT(specification)},
    {"interpretation", &record_u32, AT(interpretation)},
    {"content", &record_string, AT(content)},
    {"cases_sha256", &record_sha256, AT(cases_sha256)},
    {"suite", &record_string, AT(suite)},
    {"commit", &record_string, AT(commit)},
    {"engine", &record_string, AT(engine)},
    {"engine_version", &record_string, AT(engine_version)},
    {"claims", &record_list, RECORD_LIST(struct submission, claim, n_claims),
     RECORD_STRINGS(struct submission, claim), .least = 1, .most = MAX_CLAIMS},
    {"records", &record_bool, AT(has_records)},
    {"cases", &whole_or_cases, RECORD_LIST(struct submission, id, n_cases),
     RECORD_STRINGS(struct submission, id), .least = 1,
     .most = SUBMISSION_MAX_CASES, .line = "\n  ", .hangs = true},
    {"about", &record_object, AT(about), .table = &about_table},
};
#undef AT
const struct record_table submission_table = {RECORD_ROWS(rows), .prefix = "",
                                              .line = "\n "};

int submission_parse(const char *text, size_t bytes, const char *file,
                     struct submission *out, struct fsdp_error *error)
{
    int status;

    memset(out, 0, sizeof(*out));
    status =
        record_parse(text, bytes, file, &submission_table, NULL, out, error);
    if (status != FSDP_OK) {
        submission_release(out);
    }
    return status;
}

void submission_release(struct submission *s)
{
    free(s->id);
    free(s->claim);
    s->id = NULL;
    s->claim = NULL;
    s->n_cases = 0;
    s->n_claims = 0;
}

int submission_write(const struct submission *s, const char *folder,
                     struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];

    FSDP_TRY(record_path(path, folder, "submission.json", error));
    return record_save(&submission_table, s, path, error);
}

int submission_cases(const struct submission *s, struct case_list *out,
                     struct fsdp_error *error)
{
    int status = FSDP_OK;

    memset(out, 0, sizeof(*out));
    if (s->whole) {
        FSDP_TRY(manifest_make(out, error));
        for (uint32_t i = 0; i < out->n; i++) {
            if (s->about.seed != 0 && !case_is_graph(&out->c[i])) {
                out->c[i].seed = s->about.seed; /* a graph's is its model's */
            }
        }
        return FSDP_OK;
    }
    for (uint32_t i = 0; i < s->n_cases && status == FSDP_OK; i++) {
        struct run_case c;

        status = case_of_id(s->id[i], &c)
                     ? case_list_add(out, &c)
                     : record_fail(error, FSDP_ERR_FORMAT, "submission",
                                   "submission.json: cases: there is no case "
                                   "'%.100s'",
                                   s->id[i]);
    }
    if (status != FSDP_OK) {
        manifest_release(out);
    }
    return status;
}
