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
    N_ABOUT = 11,
    MAX_CLAIMS = 256
};

static const char *const about_key[N_ABOUT] = {
    "name",    "column",  "release", "url",  "hardware", "software",
    "adapter", "command", "seed",    "made", "notes"};

static bool about_software(struct record_json *j, const json_t *v,
                           struct submission_about *out)
{
    if (!record_json_array(j, record_field("software"), v, 1,
                           SUBMISSION_MAX_SOFTWARE)) {
        return false;
    }
    out->n_software = (uint32_t)json_array_size(v);
    for (uint32_t i = 0; i < out->n_software; i++) {
        if (!record_json_text(j, record_element("software", i),
                              json_array_get(v, i), out->software[i],
                              sizeof(out->software[i]))) {
            return false;
        }
    }
    return true;
}

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

static bool about_fields(struct record_json *j, json_t *const *v,
                         struct submission_about *out)
{
    /* The texts among the fields; most of them must not be empty. */
    const struct {
        int at;
        char *to;
        size_t room;
        bool may_be_empty;
    } text[] = {{0, out->name, sizeof(out->name), false},
                {1, out->column, sizeof(out->column), false},
                {2, out->release, sizeof(out->release), false},
                {3, out->url, sizeof(out->url), true},
                {4, out->hardware, sizeof(out->hardware), false},
                {6, out->adapter, sizeof(out->adapter), true},
                {7, out->command, sizeof(out->command), false},
                {9, out->made, sizeof(out->made), false},
                {10, out->notes, sizeof(out->notes), true}};

    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        const struct record_field at = record_field(about_key[text[i].at]);

        if (!record_json_text(j, at, v[text[i].at], text[i].to, text[i].room)) {
            return false;
        }
        if (text[i].to[0] == '\0' && !text[i].may_be_empty) {
            return record_refuse(j, at, "must not be empty");
        }
    }
    if (!is_day(out->made)) {
        return record_refuse(j, record_field("made"),
                             "a day as 2026-11-20 was expected");
    }
    return about_software(j, v[5], out) &&
           record_json_u32(j, record_field("seed"), v[8], UINT32_MAX,
                           &out->seed);
}

int submission_about_parse(const char *text, size_t bytes, const char *file,
                           struct submission_about *out,
                           struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error};
    const char *key[N_ABOUT + 1] = {"version"};
    json_t *v[N_ABOUT + 1];
    json_t *root = record_json_load(&j, text, bytes);

    memset(out, 0, sizeof(*out));
    memcpy(key + 1, about_key, sizeof(about_key));
    if (root != NULL && record_json_version(&j, root, SUBMISSION_VERSION) &&
        record_json_object(&j, record_field("the file"), root, key, N_ABOUT + 1,
                           v)) {
        (void)about_fields(&j, v + 1, out);
    }
    json_decref(root);
    return j.status;
}

static bool parse_claims(struct record_json *j, const json_t *v,
                         struct submission *out)
{
    if (!record_json_array(j, record_field("claims"), v, 1, MAX_CLAIMS)) {
        return false;
    }
    out->n_claims = (uint32_t)json_array_size(v);
    out->claim = record_json_room(j, out->n_claims, sizeof(*out->claim));
    for (uint32_t i = 0; i < out->n_claims && out->claim != NULL; i++) {
        if (!record_json_text(j, record_element("claims", i),
                              json_array_get(v, i), out->claim[i],
                              sizeof(out->claim[i]))) {
            return false;
        }
    }
    return out->claim != NULL;
}

/* "whole", or a list of ids in ascending order, so that none is there twice. */
static bool parse_cases(struct record_json *j, const json_t *v,
                        struct submission *out)
{
    const char *const text = json_string_value(v);

    out->whole = text != NULL && strcmp(text, "whole") == 0;
    if (out->whole) {
        return true;
    }
    if (!record_json_array(j, record_field("cases"), v, 1,
                           SUBMISSION_MAX_CASES)) {
        return false;
    }
    out->n_cases = (uint32_t)json_array_size(v);
    out->id = record_json_room(j, out->n_cases, sizeof(*out->id));
    for (uint32_t i = 0; i < out->n_cases && out->id != NULL; i++) {
        const struct record_field at = record_element("cases", i);

        if (!record_json_text(j, at, json_array_get(v, i), out->id[i],
                              sizeof(out->id[i]))) {
            return false;
        }
        if (i > 0 && strcmp(out->id[i - 1], out->id[i]) >= 0) {
            return record_refuse(j, at, "ids must be in ascending order");
        }
    }
    return out->id != NULL;
}

static bool is_hash(const char *s)
{
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static bool parse(struct record_json *j, json_t *root, struct submission *out)
{
    static const char *const key[] = {
        "version",        "specification", "interpretation", "content",
        "cases_sha256",   "suite",         "commit",         "engine",
        "engine_version", "claims",        "records",        "cases",
        "about"};
    json_t *v[sizeof(key) / sizeof(key[0])];
    json_t *a[N_ABOUT];
    uint32_t flag = 0;

    if (!record_json_version(j, root, SUBMISSION_VERSION) ||
        !record_json_object(j, record_field("the file"), root, key,
                            sizeof(key) / sizeof(key[0]), v) ||
        !record_json_text(j, record_field(key[1]), v[1], out->specification,
                          sizeof(out->specification)) ||
        !record_json_u32(j, record_field(key[2]), v[2], UINT32_MAX,
                         &out->interpretation) ||
        !record_json_text(j, record_field(key[3]), v[3], out->content,
                          sizeof(out->content)) ||
        !record_json_text(j, record_field(key[4]), v[4], out->cases_sha256,
                          sizeof(out->cases_sha256)) ||
        !record_json_text(j, record_field(key[5]), v[5], out->suite,
                          sizeof(out->suite)) ||
        !record_json_text(j, record_field(key[6]), v[6], out->commit,
                          sizeof(out->commit)) ||
        !record_json_text(j, record_field(key[7]), v[7], out->engine,
                          sizeof(out->engine)) ||
        !record_json_text(j, record_field(key[8]), v[8], out->engine_version,
                          sizeof(out->engine_version)) ||
        !parse_claims(j, v[9], out) ||
        !record_json_flag(j, record_field(key[10]), v[10], &flag) ||
        !parse_cases(j, v[11], out) ||
        !record_json_object(j, record_field("about"), v[12], about_key, N_ABOUT,
                            a) ||
        !about_fields(j, a, &out->about)) {
        return false;
    }
    out->has_records = flag != 0;
    return is_hash(out->cases_sha256) ||
           record_refuse(j, record_field(key[4]),
                         "64 digits of 0-9a-f were expected");
}

int submission_parse(const char *text, size_t bytes, const char *file,
                     struct submission *out, struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error};
    json_t *root = record_json_load(&j, text, bytes);

    memset(out, 0, sizeof(*out));
    if (root != NULL) {
        (void)parse(&j, root, out);
        json_decref(root);
    }
    if (j.status != FSDP_OK) {
        submission_release(out);
    }
    return j.status;
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

static void add_text(struct record_text *t, const char *indent, const char *key,
                     const char *value)
{
    record_text_add(t, "%s\"%s\": ", indent, key);
    record_text_string(t, value, strlen(value));
}

/* A list of texts that lie `stride` bytes apart. */
static void add_list(struct record_text *t, const char *first, size_t stride,
                     uint32_t n, const char *between)
{
    record_text_add(t, "[");
    for (uint32_t i = 0; i < n; i++) {
        const char *const one = first + i * stride;

        record_text_add(t, "%s", i > 0 ? between : "");
        record_text_string(t, one, strlen(one));
    }
    record_text_add(t, "]");
}

static void add_about(struct record_text *t, const struct submission_about *a)
{
    record_text_add(t, " \"about\": {\n");
    add_text(t, "  ", "name", a->name);
    add_text(t, ",\n  ", "column", a->column);
    add_text(t, ",\n  ", "release", a->release);
    add_text(t, ",\n  ", "url", a->url);
    add_text(t, ",\n  ", "hardware", a->hardware);
    record_text_add(t, ",\n  \"software\": ");
    add_list(t, a->software[0], sizeof(a->software[0]), a->n_software, ", ");
    add_text(t, ",\n  ", "adapter", a->adapter);
    add_text(t, ",\n  ", "command", a->command);
    record_text_add(t, ",\n  \"seed\": %u", a->seed);
    add_text(t, ",\n  ", "made", a->made);
    add_text(t, ",\n  ", "notes", a->notes);
    record_text_add(t, "}");
}

int submission_write(const struct submission *s, const char *folder,
                     struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    struct record_text t = {0};

    FSDP_TRY(record_path(path, folder, "submission.json", error));
    record_text_add(&t, "{\n \"version\": %d", SUBMISSION_VERSION);
    add_text(&t, ",\n ", "specification", s->specification);
    record_text_add(&t, ",\n \"interpretation\": %u", s->interpretation);
    add_text(&t, ",\n ", "content", s->content);
    add_text(&t, ",\n ", "cases_sha256", s->cases_sha256);
    add_text(&t, ",\n ", "suite", s->suite);
    add_text(&t, ",\n ", "commit", s->commit);
    add_text(&t, ",\n ", "engine", s->engine);
    add_text(&t, ",\n ", "engine_version", s->engine_version);
    record_text_add(&t, ",\n \"claims\": ");
    add_list(&t, s->n_claims > 0 ? s->claim[0] : "", sizeof(*s->claim),
             s->n_claims, ", ");
    record_text_add(&t, ",\n \"records\": %s,\n \"cases\": ",
                    s->has_records ? "true" : "false");
    if (s->whole) {
        record_text_add(&t, "\"whole\"");
    } else {
        add_list(&t, s->n_cases > 0 ? s->id[0] : "", sizeof(*s->id), s->n_cases,
                 ",\n  ");
    }
    record_text_add(&t, ",\n");
    add_about(&t, &s->about);
    record_text_add(&t, "\n}\n");
    return record_text_save(&t, path, error);
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
