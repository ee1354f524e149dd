/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_report.c - the exact figures in a report of `fsdp-cts run --report`
 * (docs/formats.md): JSON Lines, of which only header, figures and footer
 * matter here. A report without its footer was cut off and is none.
 */
#include "judge/judge.h"
#include "judge/report/report.h"
#include "tools/track/figures.h"
#include "tools/track/results.h"

#include <stdlib.h>
#include <string.h>

struct report_reader {
    struct strict s;
    struct results *r;
    char engine[RESULTS_ENGINE_BYTES];
    char last_case[RESULTS_NAME_BYTES];
    bool ended;
};

static int read_header(struct report_reader *x, json_t *o)
{
    static const char *const keys[] = {
        "type",   "report",    "?suite",   "?commit",
        "?dirty", "?compiler", "?engine",  "?engine_version",
        "?world", "claims",    "?records", "?started",
        NULL};
    char commit[RESULTS_COMMIT_BYTES];
    uint64_t version;
    json_t *v[12];

    FSDP_TRY(strict_count(&x->s, "report", json_object_get(o, "report"),
                          UINT32_MAX, &version));
    if (version != REPORT_VERSION) {
        return strict_refuse(&x->s, "report",
                             "version %llu; this reader knows %d",
                             (unsigned long long)version, REPORT_VERSION);
    }
    FSDP_TRY(strict_object(&x->s, "header", o, keys, v));
    if (v[6] == NULL) {
        return strict_refuse(&x->s, "engine", "nothing was recorded");
    }
    FSDP_TRY(strict_text(&x->s, "engine", v[6], x->engine, sizeof(x->engine)));
    if (v[3] == NULL) {
        return FSDP_OK;
    }
    FSDP_TRY(strict_text(&x->s, "commit", v[3], commit, sizeof(commit)));
    return results_set_commit(x->r, commit, x->s.file, x->s.error);
}

/* A figure more, or one fewer, is a report of another program. */
static int check_names(const struct strict *s, const struct figures *f)
{
    for (uint32_t i = 0; i < JUDGE_N_FIGURES; i++) {
        if (figures_find(f, judge_figure_name(i)) == NULL) {
            return strict_refuse(s, "figures", "\"%s\" is missing",
                                 judge_figure_name(i));
        }
    }
    return f->n == JUDGE_N_FIGURES && f->has_bound
               ? FSDP_OK
               : strict_refuse(s, "figures",
                               "%u of them, %d and a bound were "
                               "expected",
                               f->n, JUDGE_N_FIGURES);
}

static int read_figures(struct report_reader *x, json_t *o)
{
    struct exact_result result = {.text = NULL};
    struct figures f;
    int status;

    FSDP_TRY(strict_text(&x->s, "case", json_object_get(o, "case"), result.name,
                         sizeof(result.name)));
    if (strcmp(result.name, x->last_case) != 0) {
        return strict_refuse(&x->s, "case",
                             "figures of another case than the "
                             "line before them");
    }
    x->last_case[0] = '\0'; /* one line of figures a case */
    (void)json_object_del(o, "type");
    (void)json_object_del(o, "case");
    status = figures_read(&x->s, o, &f);
    if (status == FSDP_OK) {
        status = check_names(&x->s, &f);
    }
    figures_release(&f);
    if (status != FSDP_OK) {
        return status;
    }
    memcpy(result.engine, x->engine, sizeof(result.engine));
    result.text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return results_add_exact(x->r, &result, x->s.error);
}

static int read_footer(struct report_reader *x, json_t *o)
{
    const json_t *ended = json_object_get(o, "ended");
    uint64_t date = 0;

    x->ended = true;
    if (ended != NULL) {
        FSDP_TRY(strict_count(&x->s, "ended", ended, UINT64_C(1) << 40, &date));
    }
    if ((int64_t)date > x->r->date) {
        x->r->date = (int64_t)date;
    }
    return FSDP_OK;
}

static int read_line(struct report_reader *x, json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));

    if (type == NULL) {
        return strict_refuse(&x->s, "type", "a string was expected");
    }
    /* Behind a footer there may be the report of another engine. */
    if (strcmp(type, "header") == 0 && (x->s.line == 1 || x->ended)) {
        x->ended = false;
        return read_header(x, o);
    }
    if (x->ended) {
        return strict_refuse(&x->s, "type", "a line behind the footer");
    }
    if (strcmp(type, "case") == 0) {
        return strict_text(&x->s, "case", json_object_get(o, "case"),
                           x->last_case, sizeof(x->last_case));
    }
    if (strcmp(type, "figures") == 0) {
        return read_figures(x, o);
    }
    if (strcmp(type, "footer") == 0) {
        return read_footer(x, o);
    }
    x->last_case[0] = '\0';
    return strcmp(type, "item") == 0
               ? FSDP_OK
               : strict_refuse(&x->s, "type", "\"%.40s\" is unknown", type);
}

int results_read_report(const char *path, const char *text, size_t bytes,
                        struct results *r, struct fsdp_error *error)
{
    struct report_reader x = {.s = {.file = path, .error = error}, .r = r};
    const char *end = text + bytes;
    uint32_t before = r->n_exact;

    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        json_t *o = NULL;
        int status;

        x.s.line++;
        if (line_end == NULL) {
            return strict_refuse(&x.s, "the end", "the last line is cut off");
        }
        status = strict_load(&x.s, text, (size_t)(line_end - text), &o);
        if (status == FSDP_OK) {
            status = read_line(&x, o);
        }
        json_decref(o);
        if (status != FSDP_OK) {
            return status;
        }
        text = line_end + 1;
    }
    if (!x.ended) {
        return strict_refuse(&x.s, "the end", "there is no footer");
    }
    return r->n_exact > before
               ? FSDP_OK
               : strict_refuse(&x.s, "figures", "no case has any");
}
