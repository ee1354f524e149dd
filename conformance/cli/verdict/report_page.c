/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_page.c - makes the page of a report, from a part and a folder of
 * records for each engine.
 */
#include "cli/verdict/report_page.h"
#include "cli/verdict/evaluate_told.h"
#include "cli/verdict/records_folder.h"
#include "cli/verdict/report_load.h"
#include "judge/report/report_html.h"
#include "mutants/mutant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The parts that a page is made of. */
struct sheet {
    uint32_t n;
    struct report_part *part;
    struct judge_input *source;
    struct evaluate_input *input; /* [n], where their records come from */
    struct judge_store **store;
    struct text text;
    struct report_kept earlier;
    const struct judge_result **against; /* [n], in `earlier` */
    struct report_mutant *mutant;
    uint32_t n_mutants;
};

static int complain(const char *what, const char *of, int code)
{
    fprintf(stderr, "fsdp-cts report: %s%s%s\n", of, of[0] ? ": " : "", what);
    return code;
}

/* The folder of an engine: the only folder; the one of its name; or, if folders
 * have the names of files, the one at the same place. NULL: there is none. */
static const char *folder_of(const struct engine_folders *found,
                             const struct judge_result *r, uint32_t i,
                             uint32_t n)
{
    for (uint32_t k = 0; k < found->n; k++) {
        if (found->n == 1 || strcmp(found->of[k].name, r->engine) == 0) {
            return found->of[k].records;
        }
    }
    return found->n == n ? found->of[i].records : NULL;
}

static int open_records(const struct arguments *a, struct sheet *s)
{
    struct engine_folders *found = calloc(1, sizeof(*found));
    struct fsdp_error error = {0};
    int code = 0;

    if (!found) {
        return complain("out of memory", "", EXIT_INCOMPLETE);
    }
    if (engine_folders_find(a->records, found) != FSDP_OK) {
        code = complain("no folder of records", a->records, EXIT_BAD_DATA);
    } else if (text_load(a->text, &s->text, &error) != FSDP_OK) {
        code = complain(error.message, "", EXIT_BAD_DATA);
    }
    for (uint32_t i = 0; i < s->n && !code; i++) {
        struct evaluate_input *e = &s->input[i];

        e->text = &s->text;
        e->records = folder_of(found, s->part[i].result, i, s->n);
        e->baselines = found->n > 1 ? a->records : e->records;
        if (!e->records) {
            code = complain("no records of this engine",
                            s->part[i].result->engine, EXIT_BAD_DATA);
        } else if (evaluate_open_store(e, &s->store[i]) != FSDP_OK) {
            code = complain("out of memory", "", EXIT_INCOMPLETE);
        } else {
            s->source[i] = evaluate_source(e, s->store[i]);
            evaluate_told(e, s->part[i].result);
        }
    }
    free(found);
    return code;
}

/* Finds each engine's part of the earlier report, by its name. */
static int read_earlier(const struct arguments *a, struct sheet *s)
{
    int code = report_load("report", a->against, &s->earlier);

    for (uint32_t i = 0; i < s->n && !code; i++) {
        const char *engine = s->part[i].result->engine;

        for (uint32_t k = 0; k < s->earlier.n && !s->against[i]; k++) {
            if (strcmp(s->earlier.part[k].result.engine, engine) == 0) {
                s->against[i] = &s->earlier.part[k].result;
            }
        }
        if (!s->against[i]) {
            code = complain("the earlier report is not of this engine", engine,
                            EXIT_BAD_DATA);
        }
    }
    return code;
}

static int list_mutants(struct sheet *s)
{
    uint32_t n = 0;

    while (mutants[n]) {
        n++;
    }
    s->mutant = calloc(n + 1u, sizeof(*s->mutant));
    for (; s->mutant && s->n_mutants < n; s->n_mutants++) {
        const struct mutant *m = mutants[s->n_mutants];

        s->mutant[s->n_mutants] =
            (struct report_mutant){m->name, m->text, m->kills};
    }
    return s->mutant ? 0 : complain("out of memory", "", EXIT_INCOMPLETE);
}

static void release(struct sheet *s)
{
    free(s->mutant);
    report_kept_release(&s->earlier);
    free(s->against);
    for (uint32_t i = 0; s->store && i < s->n; i++) {
        judge_store_close(s->store[i]);
    }
    text_release(&s->text);
    free(s->store);
    free(s->source);
    free(s->input);
    free(s->part);
}

static int code_of(int status)
{
    return status == FSDP_ERR_IO ? EXIT_OUTPUT : EXIT_INCOMPLETE;
}

static int draw_pictures(const struct report_page *page, const char *folder)
{
    struct fsdp_error error = {0};
    int status;

    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return complain(strerror(errno), folder, EXIT_OUTPUT);
    }
    status = report_svg(page, folder, &error);
    return status == FSDP_OK
               ? 0
               : complain(error.message[0] ? error.message
                                           : "a picture could not be drawn",
                          "", code_of(status));
}

int report_page_write(const struct arguments *a,
                      const struct evaluate_result *of, uint32_t n)
{
    struct sheet s = {.n = n,
                      .part = calloc(n, sizeof(*s.part)),
                      .source = calloc(n, sizeof(*s.source)),
                      .input = calloc(n, sizeof(*s.input)),
                      .store = calloc(n, sizeof(struct judge_store *)),
                      .against = calloc(n, sizeof(const void *))};
    struct fsdp_error error = {0};
    struct report_page page;
    int code = 0;

    if (!s.part || !s.source || !s.input || !s.store || !s.against) {
        code = complain("out of memory", "", EXIT_INCOMPLETE);
    }
    for (uint32_t i = 0; i < n && !code; i++) {
        s.part[i] = (struct report_part){&of[i].r, &of[i].meta};
    }
    if (!code && a->against) {
        code = read_earlier(a, &s);
    }
    if (!code && a->records) {
        code = open_records(a, &s);
    }
    if (!code) {
        code = list_mutants(&s);
    }
    page = (struct report_page){s.part,
                                n,
                                a->records ? s.source : NULL,
                                a->against ? s.against : NULL,
                                s.mutant,
                                s.n_mutants};
    if (!code && a->html) {
        const int status = report_html(&page, a->html, &error);

        code = status == FSDP_OK ? 0
                                 : complain(error.message, "", code_of(status));
    }
    if (!code && a->pictures) {
        code = draw_pictures(&page, a->pictures);
    }
    release(&s);
    return code;
}
