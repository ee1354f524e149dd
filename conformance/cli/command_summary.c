/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_summary.c - shows a report for the pages of pipelines: Markdown,
 * annotations of GitHub Actions, code quality of GitLab.
 */
#include "cli/commands.h"
#include "cli/verdict/report_load.h"
#include "judge/report/report_pipeline.h"

#include <stdlib.h>
#include <string.h>

enum form {
    FORM_MARKDOWN,
    FORM_ANNOTATIONS,
    FORM_CODE_QUALITY
};

struct summary {
    const char *report;
    const char *path; /* the file at which findings of code quality are shown */
    bool annotations, help;
    enum form form;
};

#define AT(field) .at = offsetof(struct summary, field)

static const struct option_row rows[] = {
    {"annotations", NULL, 0,
     "workflow commands of GitHub Actions, an annotation for each requirement "
     "that failed",
     option_flag, AT(annotations)},
    {"code-quality", "PATH", 0,
     "a code quality report of GitLab; findings are shown at PATH, a file of "
     "yours",
     option_text, AT(path)},
    {"help", NULL, 0, "this text", option_flag, AT(help)},
};
static const struct option_table table = OPTION_TABLE(rows);

static void help(void)
{
    printf(
        "usage: fsdp-cts summary FILE.jsonl [--annotations | --code-quality "
        "PATH]\n\n"
        "Prints what the report of 'fsdp-cts run' or 'verify' says for a "
        "pipeline's page:\nMarkdown, as for a job's summary, or with an option "
        "another form.\n\n"
        "example:\n"
        "  fsdp-cts run --engine ./mine.so --report r.jsonl --junit r.xml\n"
        "  fsdp-cts summary r.jsonl >>\"$GITHUB_STEP_SUMMARY\"\n\n");
    options_help(&table);
    printf("\nexit: 0 printed, whatever the verdict; 64 usage error, 65 bad "
           "data\n");
}

/* 0, or an exit code. */
static int parse(int argc, char **argv, struct summary *s)
{
    int rest;
    const int code = options_read(&table, argc, argv, s, &rest);

    if (code != 0 || s->help) {
        return code;
    }
    if (s->annotations && s->path) {
        return option_refuse("takes one form: --annotations or --code-quality");
    }
    if (argc - rest != 1) {
        return option_refuse("needs one report; see: fsdp-cts summary --help");
    }
    s->report = argv[rest];
    s->form = s->path          ? FORM_CODE_QUALITY
              : s->annotations ? FORM_ANNOTATIONS
                               : FORM_MARKDOWN;
    return 0;
}

static int print(const struct summary *s, const struct report_kept *kept)
{
    bool first = true;
    int status = FSDP_OK;

    fputs(s->form == FORM_CODE_QUALITY ? "[" : "", stdout);
    for (uint32_t i = 0; i < kept->n && status == FSDP_OK; i++) {
        const struct judge_result *r = &kept->part[i].result;
        const struct report_meta *meta = &kept->part[i].meta;

        switch (s->form) {
        case FORM_MARKDOWN:
            status = report_markdown(stdout, r, meta);
            break;
        case FORM_ANNOTATIONS:
            status = report_annotations(stdout, r, meta);
            break;
        case FORM_CODE_QUALITY:
            status = report_code_quality(stdout, r, s->path, &first);
            break;
        }
    }
    fputs(s->form == FORM_CODE_QUALITY ? "\n]\n" : "", stdout);
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts summary: %s\n", fsdp_status_text(status));
        return EXIT_INCOMPLETE;
    }
    return 0;
}

int command_summary(int argc, char **argv)
{
    struct summary s = {.form = FORM_MARKDOWN};
    struct report_kept kept;
    int code = parse(argc, argv, &s);

    if (code == 0 && s.help) {
        help();
        return 0;
    }
    if (code == 0) {
        code = report_load("summary", s.report, &kept);
    }
    if (code == 0) {
        code = print(&s, &kept);
        report_kept_release(&kept);
    }
    return code;
}
