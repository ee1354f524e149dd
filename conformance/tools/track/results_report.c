/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_report.c - the exact figures in a report of `fsdp-cts run --report`
 * (docs/formats.md): JSON Lines, of which only header, figures and footer
 * matter here. A report without its footer was cut off and is none.
 */
#include "judge/judge.h"
#include "judge/report/figures.h"
#include "judge/report/report.h"
#include "tools/track/results.h"
#include "tools/track/strict.h"

#include <stdio.h>
#include <string.h>

struct report_reader {
    struct record_json j;
    uint64_t line;
    struct results *r;
    char engine[RESULTS_ENGINE_BYTES];
    char last_case[RESULTS_NAME_BYTES];
    bool ended;
};

struct header {
    char engine[RESULTS_ENGINE_BYTES], commit[RESULTS_COMMIT_BYTES];
};
static const struct record_row header_rows[] = {
    {"report", &record_version, .most = REPORT_VERSION},
    {"type", &record_ignored, .optional = true},
    {"suite", &record_ignored, .optional = true},
    {"commit", &record_string, RECORD_AT(struct header, commit),
     .optional = true},
    {"dirty", &record_ignored, .optional = true},
    {"compiler", &record_ignored, .optional = true},
    {"engine", &record_string, RECORD_AT(struct header, engine),
     .optional = true},
    {"engine_version", &record_ignored, .optional = true},
    {"world", &record_ignored, .optional = true},
    {"isolation", &record_ignored, .optional = true},
    {"requirements", &record_ignored, .optional = true},
    {"claims", &record_ignored, .offset = 0},
    {"records", &record_ignored, .optional = true},
    {"started", &record_ignored, .optional = true},
};
static const struct record_table header_table = {RECORD_ROWS(header_rows),
                                                 .prefix = ""};

static bool read_header(struct report_reader *x, json_t *o)
{
    struct header h = {.engine = ""};

    if (!record_read_root(&x->j, o, &header_table, &h)) {
        return false;
    }
    if (h.engine[0] == '\0') {
        return record_refuse(&x->j, record_field("engine"),
                             "nothing was recorded");
    }
    memcpy(x->engine, h.engine, sizeof(x->engine));
    if (h.commit[0] != '\0') {
        x->j.status = results_set_commit(x->r, h.commit, x->j.file, x->j.error);
    }
    return x->j.status == FSDP_OK;
}

static bool read_case(struct report_reader *x, const json_t *o, char *out)
{
    static const struct record_row row = {.key = "case",
                                          .room = RESULTS_NAME_BYTES};

    return record_string.read(&x->j, record_field(row.key),
                              json_object_get(o, row.key), &row, out);
}

static bool read_figures(struct report_reader *x, json_t *o)
{
    struct exact_result result = {.text = NULL};
    struct figures f;
    bool good;

    if (!read_case(x, o, result.name)) {
        return false;
    }
    if (strcmp(result.name, x->last_case) != 0) {
        return record_refuse(&x->j, record_field("case"),
                             "figures of another case than the line before "
                             "them");
    }
    x->last_case[0] = '\0'; /* one line of figures a case */
    (void)json_object_del(o, "type");
    (void)json_object_del(o, "case");
    /* A figure more, or one fewer, is a report of another program. */
    good =
        figures_read(&x->j, o, &f) == FSDP_OK && figures_are_judged(&x->j, &f);
    figures_release(&f);
    if (!good) {
        return false;
    }
    memcpy(result.engine, x->engine, sizeof(result.engine));
    result.text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
    x->j.status = results_add_exact(x->r, &result, x->j.error);
    return x->j.status == FSDP_OK;
}

static bool read_footer(struct report_reader *x, const json_t *o)
{
    static const struct record_row row = {.key = "ended",
                                          .most = UINT64_C(1) << 40};
    json_t *ended = json_object_get(o, row.key);
    uint64_t date = 0;

    x->ended = true;
    if (ended &&
        !record_u64.read(&x->j, record_field(row.key), ended, &row, &date)) {
        return false;
    }
    if ((int64_t)date > x->r->date) {
        x->r->date = (int64_t)date;
    }
    return true;
}

static bool read_line(struct report_reader *x, json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));
    const struct record_field at = record_field("type");

    if (!type) {
        return record_refuse(&x->j, at, "a string was expected");
    }
    /* Behind a footer there may be the report of another engine. */
    if (strcmp(type, "header") == 0 && (x->line == 1 || x->ended)) {
        x->ended = false;
        return read_header(x, o);
    }
    if (x->ended) {
        return record_refuse(&x->j, at, "a line behind the footer");
    }
    if (strcmp(type, "case") == 0) {
        return read_case(x, o, x->last_case);
    }
    if (strcmp(type, "figures") == 0) {
        return read_figures(x, o);
    }
    if (strcmp(type, "footer") == 0) {
        return read_footer(x, o);
    }
    x->last_case[0] = '\0';
    return strcmp(type, "item") == 0 ||
           record_refuse(&x->j, at, "\"%.40s\" is unknown", type);
}

/* The line that begins at *text, which moves behind it. */
static bool next_line(struct report_reader *x, const char **text,
                      const char *end)
{
    const char *stop = memchr(*text, '\n', (size_t)(end - *text));
    json_t *o = NULL;
    bool good;

    if (!stop) {
        return record_refuse(&x->j, record_field("the end"),
                             "the last line is cut off");
    }
    o = strict_load(&x->j, *text, (size_t)(stop - *text));
    good = o && read_line(x, o);
    json_decref(o);
    *text = stop + 1;
    return good;
}

int results_read_report(const char *path, const char *text, size_t bytes,
                        struct results *r, struct fsdp_error *error)
{
    char place[160];
    struct report_reader x = {.j = {.file = place, .error = error}, .r = r};
    const size_t length = strlen(path);
    const char *end = text + bytes;
    uint32_t before = r->n_exact;
    bool good = true;

    while (good && text < end) {
        x.line++;
        snprintf(place, sizeof(place), "%s:%llu",
                 length > 70 ? path + length - 70 : path,
                 (unsigned long long)x.line);
        good = next_line(&x, &text, end);
    }
    if (good && !x.ended) {
        (void)record_refuse(&x.j, record_field("the end"),
                            "there is no footer");
    } else if (good && r->n_exact == before) {
        (void)record_refuse(&x.j, record_field("figures"), "no case has any");
    }
    return x.j.status;
}
