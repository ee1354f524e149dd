/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_report.c - shows a report that `run` or `verify` wrote, or what it
 * says of some requirements: in an instant, and without the records.
 */
#include "cli/commands.h"
#include "cli/evaluate.h"
#include "cli/report_file.h"
#include "judge/report/report_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TAKES = TAKES_JUDGE
};

static void help(void)
{
    printf("usage: fsdp-cts report FILE.jsonl [OPTION ...]\n\n"
           "Shows the report that --report of 'fsdp-cts run' or 'verify' "
           "wrote, or what it\nsays of some requirements. Nothing is judged "
           "again: that its totals and its\nverdict are those of its items is "
           "checked, that its items are those of any\nrecords is not; see: "
           "fsdp-cts verify.\n\n");
    arguments_help(TAKES);
    printf("\nexit: 0 conformant, 1 not conformant, 2 incomplete, 64 usage "
           "error, 65 bad data,\n77 skipped (a selection that is not "
           "claimed)\n");
}

char *report_file_text(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "re");
    bool large = false;
    bool failed = false;
    struct stat about;
    char *text = NULL;

    *bytes = 0;
    if (f && fstat(fileno(f), &about) == 0) {
        large = S_ISREG(about.st_mode) && about.st_size > REPORT_MAX_BYTES;
    }
    for (size_t room = 1 << 16; f && !large && !failed && !feof(f); room *= 2) {
        char *grown = realloc(text, room);

        failed = !grown;
        text = grown ? grown : text;
        if (!failed) {
            *bytes += fread(text + *bytes, 1, room - *bytes, f);
            failed = ferror(f) != 0;
        }
        large = *bytes > REPORT_MAX_BYTES;
    }
    if (f) {
        fclose(f);
    }
    if (failed || large) {
        free(text);
        text = NULL;
        errno = large ? EFBIG : errno;
    }
    return text;
}

static int show(const struct arguments *a, struct report_kept *kept)
{
    struct evaluate_result *of = calloc(kept->n, sizeof(*of));
    struct name_list storage;
    const char *all[512];
    const char *const *only = evaluate_only(a, &storage, all);
    int code = 0;

    for (uint32_t i = 0; of && i < kept->n; i++) {
        struct report_part_kept *part = &kept->part[i];

        if (only) {
            report_select(&part->result, only);
        }
        part->meta.report = a->rest[0];
        part->meta.verbose = a->verbose;
        of[i] = (struct evaluate_result){part->result, part->meta, true,
                                         evaluate_code(&part->result, a)};
        code = evaluate_worse(code, of[i].code);
    }
    if (!of || !evaluate_write(a, of, kept->n)) {
        code = evaluate_worse(code, EXIT_INCOMPLETE);
    }
    for (uint32_t i = 0; of && i < kept->n; i++) {
        evaluate_print(a, &of[i], kept->n);
    }
    if (of && kept->n > 1 && !a->quiet) {
        evaluate_print_summary(of, kept->n);
    }
    free(of);
    return code;
}

int command_report(int argc, char **argv)
{
    struct arguments a;
    struct fsdp_error error = {0};
    struct report_kept kept;
    size_t bytes = 0;
    char *text;
    int code;

    if (arguments_parse(argc, argv, TAKES, &a)) {
        return EXIT_USAGE;
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
    text = report_file_text(a.rest[0], &bytes);
    if (!text) {
        const int why = errno;

        fprintf(stderr, "fsdp-cts report: %s: %s\n", a.rest[0],
                why == EFBIG ? "over 256 MiB, which no report has"
                             : strerror(why));
        return EXIT_BAD_DATA;
    }
    if (report_read(text, bytes, a.rest[0], requirement_table(), &kept,
                    &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts report: %s\n", error.message);
        code = EXIT_BAD_DATA;
    } else {
        code = show(&a, &kept);
        report_kept_release(&kept);
    }
    free(text);
    return code;
}
