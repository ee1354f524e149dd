/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_results.c - several bundles side by side, each checked and judged
 * again; docs/results.md is made of its output. A failure that is not explained
 * is an error: no page passes over it.
 */
#include "cli/commands.h"
#include "judge/report/report_file.h"
#include "run/supervise.h"
#include "tools/submit/bundle.h"
#include "tools/submit/results_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAKES = TAKES_TEXT | TAKES_JSON | TAKES_HTML | TAKES_RELEASES
};

static void help(void)
{
    printf("usage: fsdp-cts results BUNDLE ... [OPTION ...]\n\n"
           "Checks and judges bundles of 'fsdp-cts submit' and prints, as a "
           "part of a Markdown\npage: their verdicts, what fails in them and "
           "why, and what came of each\nrequirement. A bundle needs records, "
           "and explanations of all that fails.\nWith --releases: a table of "
           "releases and implementations, with what fails, and\n"
           "what changed from one to the next; there nothing needs an "
           "explanation.\n\n"
           "example:\n"
           "  fsdp-cts results bundles/* --html results.html\n"
           "\n");
    arguments_help(TAKES);
    printf("\nexit: 0 printed, 2 interrupted, 64 usage error, 65 bad data\n");
}

/* One bundle on its way into the tables; the exit code. */
static int take(const char *folder, const struct arguments *a,
                const struct text *text, struct bundle *b,
                struct results_entry *out)
{
    struct fsdp_error error = {0};
    int code = bundle_verify(folder, a, text, b);

    if (code == EXIT_BAD_DATA || supervise_interrupted()) {
        return code == EXIT_BAD_DATA ? code : EXIT_INCOMPLETE;
    }
    if (!b->s.has_records || !b->judged.judged) {
        fprintf(stderr, "fsdp-cts results: %.200s: no records\n", folder);
        return EXIT_BAD_DATA;
    }
    if (!b->has_explanations && !a->releases &&
        explanations_match(&b->explanations, &b->judged.r, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts results: %.200s: %s\n", folder,
                bundle_plain(error.message));
        return EXIT_BAD_DATA;
    }
    *out = (struct results_entry){&b->s, &b->judged.r, &b->explanations};
    return 0;
}

static int write_page(const char *path, const struct results_entry *entry,
                      uint32_t n)
{
    struct fsdp_error error = {0};
    struct report_file file;
    int status = report_file_open(&file, path, &error);

    if (status == FSDP_OK) {
        status = report_file_close(&file, results_page(entry, n, file.f));
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts results: %s\n", error.message);
    }
    return status;
}

static int print_page(const struct arguments *a,
                      const struct results_entry *entry, uint32_t n)
{
    struct fsdp_error error = {0};
    const int status = a->releases ? results_releases(entry, n, stdout, &error)
                       : a->html   ? write_page(a->html, entry, n)
                       : a->json   ? results_json(entry, n, stdout)
                                   : results_markdown(entry, n, stdout);

    if (status == FSDP_ERR_FORMAT) {
        fprintf(stderr, "fsdp-cts results: %s\n", bundle_plain(error.message));
        return EXIT_BAD_DATA;
    }
    return status == FSDP_OK ? 0 : EXIT_INCOMPLETE;
}

static int print_all(const struct arguments *a, const struct text *text)
{
    const uint32_t n = (uint32_t)a->n_rest;
    struct results_entry *entry = calloc(n, sizeof(*entry));
    struct bundle *b = calloc(n, sizeof(*b));
    int code = entry && b ? 0 : EXIT_INCOMPLETE;

    for (uint32_t i = 0; i < n && code == 0; i++) {
        code = take(a->rest[i], a, text, &b[i], &entry[i]);
    }
    if (code == 0) {
        code = print_page(a, entry, n);
    }
    for (uint32_t i = 0; i < n && b; i++) {
        bundle_release(&b[i]);
    }
    free(entry);
    free(b);
    return code;
}

int command_results(int argc, char **argv)
{
    struct arguments a;
    struct fsdp_error error = {0};
    struct text text;
    int code;

    const int wrong = arguments_parse(argc, argv, TAKES, &a);
    if (wrong) {
        return wrong;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.n_rest == 0) {
        fprintf(stderr, "fsdp-cts results: needs bundles; see: fsdp-cts "
                        "results --help\n");
        return EXIT_USAGE;
    }
    if (a.releases && (a.json || a.html)) {
        fprintf(stderr, "fsdp-cts results: --releases is without --json and "
                        "--html\n");
        return EXIT_USAGE;
    }
    a.quiet = true;
    if (text_load(a.text, &text, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_USAGE;
    }
    supervise_catch_signals();
    code = print_all(&a, &text);
    text_release(&text);
    return code;
}
