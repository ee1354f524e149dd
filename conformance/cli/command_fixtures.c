/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_fixtures.c - writes the golden data, or proves that those of a folder
 * are what the reference engine makes.
 */
#include "cli/commands.h"
#include "cli/fixtures.h"
#include "cli/verdict/records_folder.h"
#include "run/supervise.h"

#include "cli/line/arguments.h"
#include <stdio.h>

enum {
    TAKES = TAKES_FIXTURES
};

static void help(void)
{
    printf("usage: fsdp-cts fixtures --write DIR | --check DIR\n\n"
           "Writes the golden data, or makes them again and compares.\n\n"
           "example:\n"
           "  fsdp-cts fixtures --check fixtures/golden\n"
           "\n");
    arguments_help(TAKES);
    printf("\nexit: 0, 2 could not be made, 64 usage error, 65 they differ\n");
}

static int write_all(const char *folder, const struct arguments *a,
                     struct fsdp_error *error)
{
    struct case_list cases;
    struct text text;
    int status = text_load(NULL, &text, error);

    if (status == FSDP_OK) {
        status = manifest_golden(&cases, error);
    }
    if (status == FSDP_OK) {
        status =
            fixtures_write(folder, &cases, &text, a->jobs, a->quiet, error);
    }
    if (status == FSDP_OK) {
        status = fixtures_manifest_write(folder, cases.n, error);
        if (!a->quiet && status == FSDP_OK) {
            printf("%u cases\n", cases.n);
        }
        manifest_release(&cases);
    }
    text_release(&text);
    return status;
}

static int check_all(const char *folder, const struct arguments *a,
                     struct fsdp_error *error)
{
    struct folder made = {.temporary = false};
    int status = fixtures_manifest_check(folder, error);

    if (status == FSDP_OK) {
        status = folder_open(NULL, &made, error);
    }
    if (status == FSDP_OK) {
        char golden[sizeof(made.path) + 16];

        snprintf(golden, sizeof(golden), "%s/golden", made.path);
        status = write_all(golden, a, error);
        if (status == FSDP_OK) {
            status = fixtures_manifest_same(folder, golden, error);
        }
    }
    folder_close(&made);
    return status;
}

int command_fixtures(int argc, char **argv)
{
    struct arguments a;
    struct fsdp_error error = {0};
    int status;

    const int wrong = arguments_parse(argc, argv, TAKES, &a);
    if (wrong) {
        return wrong;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.n_rest || (!a.write) == (!a.check)) {
        fprintf(stderr, "fsdp-cts fixtures: --write DIR or --check DIR; see: "
                        "fsdp-cts fixtures --help\n");
        return EXIT_USAGE;
    }
    supervise_catch_signals();
    status = a.write ? write_all(a.write, &a, &error)
                     : check_all(a.check, &a, &error);
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n",
                error.message[0] != '\0' ? error.message
                                         : fsdp_status_text(status));
        return status == FSDP_ERR_FORMAT ? EXIT_BAD_DATA : EXIT_INCOMPLETE;
    }
    return 0;
}
