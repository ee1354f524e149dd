/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_summary.c - a report for the pages that pipelines show: Markdown,
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
    const char *path; /* that findings of code quality are shown at */
    enum form form;
};

static void help(void)
{
    printf(
        "usage: fsdp-cts summary FILE.jsonl [--annotations | --code-quality "
        "PATH]\n\n"
        "Prints what the report of 'fsdp-cts run' or 'verify' says for a "
        "pipeline's page:\nMarkdown, as for a job's summary, or\n\n"
        "  --annotations        workflow commands of GitHub Actions, an "
        "annotation for\n                       each requirement that failed\n"
        "  --code-quality PATH  a code quality report of GitLab; findings are "
        "shown at\n                       PATH, a file of yours\n\n"
        "example:\n"
        "  fsdp-cts run --engine ./mine.so --report r.jsonl --junit r.xml\n"
        "  fsdp-cts summary r.jsonl >>\"$GITHUB_STEP_SUMMARY\"\n\n"
        "exit: 0 printed, whatever the verdict; 64 usage error, 65 bad data\n");
}

/* Takes one argument, and the next one where that is its value; *i moves
 * there. Why it cannot, or NULL. */
static const char *take(int argc, char **argv, int *i, struct summary *s)
{
    const bool quality = strcmp(argv[*i], "--code-quality") == 0;

    if (!quality && strcmp(argv[*i], "--annotations") != 0) {
        if (argv[*i][0] == '-') {
            return "unknown option";
        }
        if (s->report) {
            return "takes one report, and not also";
        }
        s->report = argv[*i];
        return NULL;
    }
    if (s->form != FORM_MARKDOWN) {
        return "takes one form, and not also";
    }
    s->form = quality ? FORM_CODE_QUALITY : FORM_ANNOTATIONS;
    if (quality) {
        if (*i + 1 == argc) {
            return "needs a path behind";
        }
        s->path = argv[++*i];
    }
    return NULL;
}

/* 0, or an exit code. */
static int parse(int argc, char **argv, struct summary *s)
{
    for (int i = 1; i < argc; i++) {
        const char *wrong = take(argc, argv, &i, s);

        if (wrong) {
            fprintf(stderr, "fsdp-cts summary: %s '%s'\n", wrong, argv[i]);
            return EXIT_USAGE;
        }
    }
    if (!s->report) {
        fprintf(stderr, "fsdp-cts summary: needs a report; see: fsdp-cts "
                        "summary --help\n");
        return EXIT_USAGE;
    }
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
    struct summary s = {NULL, NULL, FORM_MARKDOWN};
    struct report_kept kept;
    int code;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        help();
        return 0;
    }
    code = parse(argc, argv, &s);
    if (code != 0) {
        return code;
    }
    code = report_load("summary", s.report, &kept);
    if (code == 0) {
        code = print(&s, &kept);
        report_kept_release(&kept);
    }
    return code;
}
