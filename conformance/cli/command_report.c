/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_report.c - shows a report that `run` or `verify` wrote, or the part
 * of it about some requirements: at once, and without the records.
 */
#include "cli/commands.h"
#include "cli/line/exit_codes.h"
#include "cli/verdict/evaluate.h"
#include "cli/verdict/report_load.h"
#include "cli/verdict/report_page.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TAKES = TAKES_JUDGE | TAKES_HTML | TAKES_PAGE | TAKES_TEXT
};

static void help(void)
{
    printf("usage: fsdp-cts report FILE.jsonl [OPTION ...]\n\n"
           "Shows the report that --report of 'fsdp-cts run' or 'verify' "
           "wrote, or what it\nsays of some requirements. Nothing is judged "
           "again: that its totals and its\nverdict are those of its items is "
           "checked, that its items are those of any\nrecords is not; see: "
           "fsdp-cts verify.\n\n"
           "examples:\n"
           "  fsdp-cts report run.jsonl --requirement reduce.scale\n"
           "  fsdp-cts report run.jsonl --records records --html run.html\n"
           "\n");
    arguments_help(TAKES);
    exit_codes_print(stdout);
}

static int show(const struct arguments *a, struct report_kept *kept)
{
    struct evaluate_result *of = calloc(kept->n, sizeof(*of));
    const char *all[512];
    const char *const *only = evaluate_only(a, all);
    int code = 0;
    int page;

    for (uint32_t i = 0; of && i < kept->n; i++) {
        struct report_part_kept *part = &kept->part[i];

        if (only) {
            report_select(&part->result, only);
        }
        part->meta.report = a->rest[0];
        part->meta.verbose = a->verbose;
        part->meta.brief = a->requirements.n > 0;
        of[i] = (struct evaluate_result){part->result, part->meta, true,
                                         evaluate_code(&part->result, a)};
        code = evaluate_worse(code, of[i].code);
    }
    if (!of || !evaluate_write(a, of, kept->n)) {
        code = evaluate_worse(code, EXIT_OUTPUT);
    }
    page =
        of && (a->html || a->pictures) ? report_page_write(a, of, kept->n) : 0;
    code = page == EXIT_OUTPUT ? evaluate_worse(code, page)
           : page              ? page
                               : code;
    for (uint32_t i = 0; of && !page && i < kept->n; i++) {
        evaluate_print(a, &of[i], kept->n);
    }
    if (of && !page && kept->n > 1 && !a->quiet) {
        evaluate_print_summary(of, kept->n);
    }
    free(of);
    return code;
}

int command_report(int argc, char **argv)
{
    struct arguments a;
    struct report_kept kept;
    int code;

    const int wrong = arguments_parse(argc, argv, TAKES, &a);
    if (wrong) {
        return wrong;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.n_rest != 1) {
        fprintf(stderr, "fsdp-cts report: needs one report; see: fsdp-cts "
                        "report --help\n");
        return EXIT_USAGE;
    }
    if ((a.records || a.against) && !a.html && !a.pictures) {
        fprintf(stderr, "fsdp-cts report: --records and --against are about "
                        "--html and --pictures; see: fsdp-cts report "
                        "--help\n");
        return EXIT_USAGE;
    }
    code = report_load("report", a.rest[0], &kept);
    if (code == 0) {
        code = show(&a, &kept);
        report_kept_release(&kept);
    }
    return code;
}
