/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_verify.c - judges records that were kept by `run --records DIR`.
 */
#include "cli/commands.h"
#include "cli/evaluate.h"
#include "cli/fixtures.h"
#include "cli/miniature.h"
#include "cli/selection.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum {
    TAKES =
        TAKES_SELECTION | TAKES_JUDGE | TAKES_TEXT | TAKES_GOLDEN | TAKES_SEED
};

static void help(void)
{
    printf("usage: fsdp-cts verify RECORDS [OPTION ...]\n\n"
           "Judges the records in a folder that 'fsdp-cts run --records' "
           "wrote.\n\n");
    arguments_help(TAKES);
    printf(
        "\nexit: 0 conformant, 1 not conformant, 2 incomplete, 64 usage "
        "error, 65 bad data,\n77 skipped (a selection that is not claimed)\n");
}

static int verify(const struct arguments *a, const char *records)
{
    struct case_list cases;
    struct text text;
    struct fsdp_error error = {0};
    struct name_list storage;
    const char *all[512];
    char golden[4096];
    struct evaluation e = {.records = records,
                           .cases = &cases,
                           .text = &text,
                           .only = evaluate_only(a, &storage, all)};
    int code;

    if (text_load(a->text, &text, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_USAGE;
    }
    if (a->fixtures) {
        if (fixtures_manifest_check(a->fixtures, &error) != FSDP_OK) {
            fprintf(stderr, "fsdp-cts verify: %s\n", error.message);
            text_release(&text);
            return EXIT_BAD_DATA;
        }
        snprintf(golden, sizeof golden, "%s/records", a->fixtures);
        e.baselines = golden;
    }
    code = selection_make(a, &cases);
    if (code == 0) {
        code = evaluate_and_report(&e, a, "fsdp-cts run --case ",
                                   (int64_t)time(NULL));
        if (!a->quiet) {
            miniature_print(&e);
        }
    }
    manifest_release(&cases);
    text_release(&text);
    return code;
}

int command_verify(int argc, char **argv)
{
    struct arguments a;
    struct stat s;

    if (arguments_parse(argc, argv, TAKES, &a)) {
        return EXIT_USAGE;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.n_rest != 1) {
        fprintf(stderr, "fsdp-cts verify: needs one folder of records; see: "
                        "fsdp-cts verify --help\n");
        return EXIT_USAGE;
    }
    if (stat(a.rest[0], &s) != 0 || !S_ISDIR(s.st_mode)) {
        fprintf(stderr, "fsdp-cts verify: %s is no folder\n", a.rest[0]);
        return EXIT_BAD_DATA;
    }
    return verify(&a, a.rest[0]);
}
