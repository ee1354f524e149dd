/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_report.c - reads from a report its cases, and how to run them again. It
 * has a command for that, which is read as a shell would read it, and then as
 * any other command line.
 */
#include "cli/play/from_report.h"
#include "cli/verdict/report_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_WORDS = 24
};

/* Removes the quotes of a word in place. Returns the end of the text, or what
 * is behind the word. */
static char *unquote(char *at)
{
    char *to = at;
    bool quoted = false;

    for (; *at && (quoted || *at != ' '); at++) {
        if (*at == '\'') {
            quoted = !quoted;
        } else if (*at == '\\' && !quoted && at[1]) {
            *to++ = *++at;
        } else {
            *to++ = *at;
        }
    }
    if (*at) {
        at++;
    }
    *to = '\0';
    return at;
}

/* Reads "fsdp-cts run --engine E --case " as options; the id is not there. */
static int parse_rerun(char *text, unsigned takes, struct arguments *out)
{
    char *words[MAX_WORDS + 1] = {NULL};
    int n = 0;

    while (*text && n < MAX_WORDS) {
        words[n++] = text;
        text = unquote(text);
    }
    if (n < 3 || strcmp(words[n - 1], "--case") != 0) {
        return EXIT_USAGE;
    }
    return arguments_parse(n - 2, words + 1, takes, out);
}

static int refuse_report(const char *path, const char *why)
{
    fprintf(stderr, "fsdp-cts run: %s: %s\n", path, why);
    return EXIT_USAGE;
}

/* Takes the options that decide what a case shows, but for programs. */
static void take_options(struct arguments *a, const struct arguments *said)
{
    a->text = a->text ? a->text : said->text;
    a->seed = a->seed ? a->seed : said->seed;
    a->world = a->world == WORLD_LOCAL ? said->world : a->world;
    a->isolate = a->isolate || (said->isolate && !a->no_isolate);
    if (a->timeout_ms == ARGUMENTS_TIMEOUT_MS) {
        a->timeout_ms = said->timeout_ms;
    }
}

/* Whether the command line also names the engine that was run. */
static bool is_given(const struct arguments *a, const struct arguments *said)
{
    bool same =
        a->adapter && said->adapter && strcmp(a->adapter, said->adapter) == 0;

    for (uint32_t i = 0; i < a->engines.n && said->engines.n == 1; i++) {
        char *left = realpath(a->engines.name[i], NULL);
        char *right = realpath(said->engines.name[0], NULL);

        same = same || strcmp(a->engines.name[i], said->engines.name[0]) == 0 ||
               (left && right && strcmp(left, right) == 0);
        free(left);
        free(right);
    }
    return same;
}

/* Refuses to start a program that a report names, since a report may come from
 * anywhere. */
static int refuse_program(const struct arguments *said, const char *path)
{
    char why[RERUN_BYTES + 128];

    snprintf(why, sizeof(why),
             "it is of a program of its own, which is not started because a "
             "file says so; give --%s '%s'",
             said->adapter ? "adapter" : "engine",
             said->adapter ? said->adapter : said->engines.name[0]);
    return refuse_report(path, why);
}

static int refuse_wrapper(const struct arguments *said, const char *path)
{
    char why[RERUN_BYTES + 128];

    snprintf(why, sizeof(why),
             "it is of ranks under a program, which is not started because a "
             "file says so; give --wrap '%s'",
             said->wrap);
    return refuse_report(path, why);
}

static int take_engine(struct arguments *a, const struct arguments *said,
                       const char *path)
{
    if (said->script) {
        return refuse_report(path,
                             "it is of a script; what runs it again stands "
                             "below each failure");
    }
    if (said->engines.n + (said->adapter ? 1 : 0) != 1) {
        return refuse_report(path, "it does not say which engine was run; see: "
                                   "--engine");
    }
    if (said->adapter || strpbrk(said->engines.name[0], "/.")) {
        return refuse_program(said, path);
    }
    a->mutant = a->mutant ? a->mutant : said->mutant;
    take_options(a, said);
    for (uint32_t i = 0; i < said->engines.n; i++) {
        if (!name_list_has(&a->engines, said->engines.name[i])) {
            a->engines.name[a->engines.n++] = said->engines.name[i];
        }
    }
    return 0;
}

static int take_engines(struct arguments *a, unsigned takes, const char *path,
                        const struct report_kept *kept, struct from_report *out)
{
    const bool given = a->engines.n > 0 || a->adapter;

    out->words = calloc((size_t)kept->n + 1, sizeof(*out->words));
    for (uint32_t i = 0; i < kept->n && i < ARGUMENTS_MAX && out->words; i++) {
        struct arguments said = {.adapter = NULL};

        snprintf(out->words[i], RERUN_BYTES, "%.*s", RERUN_BYTES - 1,
                 kept->part[i].rerun);
        if (parse_rerun(out->words[i], takes, &said)) {
            if (given) {
                continue;
            }
            return said.help
                       ? 0
                       : refuse_report(path, "its engine is not found; name it "
                                             "with --engine");
        }
        if (said.wrap && !a->wrap) {
            return refuse_wrapper(&said, path);
        }
        if (given) {
            if (is_given(a, &said)) {
                take_options(a, &said);
            }
        } else if (take_engine(a, &said, path)) {
            return EXIT_USAGE;
        }
    }
    return out->words ? 0 : EXIT_INCOMPLETE;
}

static bool fails(const struct judge_result *r, uint32_t c)
{
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (r->reported[q] && judge_is_failure(judge_item_at(r, c, q))) {
            return true;
        }
    }
    /* A case that a stopped run did not reach has not failed. */
    return r->cases[c].outcome == JUDGE_INCOMPLETE && !r->stopped[0];
}

static int take_cases(const struct judge_result *r, bool failed,
                      struct case_list *out)
{
    for (uint32_t c = 0; c < r->n_cases; c++) {
        struct run_case one;

        if ((!failed || fails(r, c)) && case_of_id(r->cases[c].id, &one)) {
            FSDP_TRY(case_list_add(out, &one));
        }
    }
    return FSDP_OK;
}

/* Says that no case failed, or only a script that was drawn beside them. */
static int refuse_nothing(const char *path, const struct from_report *f,
                          bool failed)
{
    char why[JUDGE_SCRIPT_ID_BYTES + 128];

    if (!failed || f->script[0] == '\0') {
        return refuse_report(path, failed ? "no case failed" : "has no cases");
    }
    snprintf(why, sizeof(why),
             "no case failed, but a drawn script did; to run it again: "
             "--engine ENGINE --script %s",
             f->script);
    return refuse_report(path, why);
}

/* Takes the failed script of the first engine that has one. Characters that no
 * id has are not printed. */
static void take_script(const struct judge_drawn *d, struct from_report *out)
{
    static const char of_ids[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:";

    if (d->failed > 0 && out->script[0] == '\0' &&
        d->first[strspn(d->first, of_ids)] == '\0') {
        snprintf(out->script, sizeof(out->script), "%s", d->first);
    }
}

static int load_report(struct arguments *a, unsigned takes, const char *path,
                       struct from_report *out)
{
    const bool failed = a->failed || a->last_failed;
    struct report_kept kept;
    int code = report_load("run", path, &kept);

    if (code) {
        return code;
    }
    for (uint32_t i = 0; i < kept.n && code == 0; i++) {
        take_script(&kept.part[i].result.drawn, out);
        code = take_cases(&kept.part[i].result, failed, &out->cases) == FSDP_OK
                   ? 0
                   : EXIT_INCOMPLETE;
    }
    if (code == 0 && (out->cases.n > 0 || a->last_failed)) {
        code = take_engines(a, takes, path, &kept, out);
    }
    report_kept_release(&kept);
    return code;
}

int from_report(struct arguments *a, unsigned takes, struct from_report *out)
{
    const char *path = a->last_failed ? a->report : a->from;
    int code;

    *out = (struct from_report){.words = NULL};
    if (a->failed && !a->from) {
        return refuse_report("--failed", "of which report? see: --from");
    }
    if (a->last_failed && !a->report) {
        return refuse_report("--last-failed",
                             "it is of the run that wrote --report");
    }
    if (!path || (a->last_failed && access(path, F_OK) != 0)) {
        return 0;
    }
    code = load_report(a, takes, path, out);
    if (code == 0 && out->cases.n > 0) {
        a->among = &out->cases;
    } else if (code == 0 && !a->last_failed) {
        code = refuse_nothing(path, out, a->failed);
    }
    return code;
}

void from_report_release(struct from_report *f)
{
    manifest_release(&f->cases);
    free(f->words);
    f->words = NULL;
}
