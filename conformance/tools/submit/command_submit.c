/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_submit.c - makes a bundle of a run: what was run, the results, and
 * everything that another person needs to find the same.
 */
#include "cli/commands.h"
#include "cli/fixtures.h"
#include "cli/line/version.h"
#include "cli/verdict/records_folder.h"
#include "record/record_internal.h"
#include "run/supervise.h"
#include "tools/submit/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAKES = TAKES_SUBMIT | TAKES_TEXT | TAKES_JSON
};

static void help(void)
{
    printf("usage: fsdp-cts submit RECORDS --about FILE.json --bundle DIR "
           "[OPTION ...]\n\n"
           "Judges records that 'fsdp-cts run --records' wrote, and puts them, "
           "the report,\nversions, claims and how to run it again into a "
           "folder, with a manifest of sizes\nand SHA-256. 'fsdp-cts verify "
           "DIR' checks it anywhere.\n\n"
           "example:\n"
           "  fsdp-cts submit records --about about.json --bundle mine\n"
           "\n");
    arguments_help(TAKES);
    printf("\nexit: 0 the bundle is there, 2 records are missing, 64 usage "
           "error, 65 bad data\n");
}

static int by_id(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* A list of what has records: the folders that are called as cases are. */
static int found_cases(const char *records, struct submission *s,
                       struct fsdp_error *error)
{
    DIR *d = opendir(records);
    const struct dirent *entry;
    struct run_case c;

    if (!d) {
        return record_fail(error, FSDP_ERR_IO, "submit", "%.150s: %s", records,
                           strerror(errno));
    }
    while ((entry = readdir(d))) {
        char(*more)[CASE_ID_BYTES];

        if (!case_of_id(entry->d_name, &c)) {
            continue;
        }
        more = realloc(s->id, (s->n_cases + (size_t)1) * sizeof(*more));
        if (!more) {
            (void)closedir(d);
            return FSDP_ERR_NOMEM;
        }
        s->id = more;
        memset(s->id[s->n_cases], 0, sizeof(*s->id));
        memcpy(s->id[s->n_cases++], entry->d_name, strlen(entry->d_name));
    }
    (void)closedir(d);
    if (s->n_cases > 0) {
        qsort(s->id, s->n_cases, sizeof(*s->id), by_id);
    }
    return s->n_cases > 0 ? FSDP_OK
                          : record_fail(error, FSDP_ERR_FORMAT, "submit",
                                        "%.150s: no records", records);
}

static int set_claims(struct submission *s, const struct judge_result *r)
{
    s->claim = calloc(r->n_claims + (size_t)1, sizeof(*s->claim));
    if (!s->claim) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < r->n_claims; i++) {
        memcpy(s->claim[i], r->claim[i], sizeof(*s->claim));
    }
    s->n_claims = r->n_claims;
    snprintf(s->engine, sizeof(s->engine), "%s", r->engine);
    snprintf(s->engine_version, sizeof(s->engine_version), "%s",
             r->engine_version);
    return FSDP_OK;
}

static void set_versions(struct submission *s)
{
    snprintf(s->specification, sizeof(s->specification), "%s",
             FIXTURES_SPECIFICATION);
    snprintf(s->content, sizeof(s->content), "%s", FIXTURES_CONTENT);
    s->interpretation = FIXTURES_INTERPRETATION;
    snprintf(s->cases_sha256, sizeof(s->cases_sha256), "%s", manifest_sha256);
    snprintf(s->suite, sizeof(s->suite), "%s", version_text());
    snprintf(s->commit, sizeof(s->commit), "%s", version_commit());
}

static int check_complete(const struct judge_result *r,
                          struct fsdp_error *error)
{
    if (r->malformed > 0) {
        return record_fail(error, FSDP_ERR_FORMAT, "submit",
                           "%u records cannot be read", r->malformed);
    }
    for (uint32_t i = 0; i < r->n_cases; i++) {
        if (r->cases[i].outcome == JUDGE_INCOMPLETE) {
            return record_fail(error, FSDP_ERR_MISMATCH, "submit",
                               "%u of %u cases that are claimed have a record, "
                               "not %.90s; see --partial",
                               r->executed, r->expected, r->cases[i].id);
        }
    }
    return FSDP_OK;
}

static void say_made(const struct arguments *a, const struct judge_result *r)
{
    char hash[65] = "";
    size_t bytes = 0;
    char *text;

    if (bundle_read(a->bundle, BUNDLE_MANIFEST, BUNDLE_MAX_JSON_BYTES, &text,
                    &bytes, NULL) == FSDP_OK) {
        (void)record_hash(text, bytes, hash);
        free(text);
    }
    if (a->json) {
        json_t *o = json_pack("{s:s, s:s, s:i, s:s}", "bundle", hash, "engine",
                              r->engine, "cases", (int)r->executed, "verdict",
                              judge_verdict_name(r->verdict));

        (void)json_dumpf(o, stdout, 0);
        printf("\n");
        json_decref(o);
        return;
    }
    printf("bundle %s\n%s, %u cases: %s\n", hash, r->engine, r->executed,
           judge_verdict_name(r->verdict));
}

static int submit(const struct arguments *a, const char *records,
                  struct submission *s, struct fsdp_error *error)
{
    struct case_list cases = {NULL, 0};
    struct evaluate_result judged = {.judged = false};
    struct text text;
    int status = text_load(a->text, &text, error);

    s->whole = !a->partial;
    s->has_records = !a->without_records;
    set_versions(s);
    if (status == FSDP_OK && a->partial) {
        status = found_cases(records, s, error);
    }
    if (status == FSDP_OK) {
        status = submission_cases(s, &cases, error);
    }
    if (status == FSDP_OK) {
        status = bundle_judge(records, &cases, NULL, a, &text, &judged, error);
    }
    if (status == FSDP_OK) {
        status = check_complete(&judged.r, error);
    }
    if (status == FSDP_OK) {
        status = set_claims(s, &judged.r);
    }
    if (status == FSDP_OK) {
        status = bundle_make(a, records, &judged, s, error);
    }
    if (status == FSDP_OK) {
        say_made(a, &judged.r);
    }
    judge_release(&judged.r);
    manifest_release(&cases);
    text_release(&text);
    return status;
}

static int read_about(const struct arguments *a, struct submission *s,
                      struct fsdp_error *error)
{
    size_t bytes = 0;
    char *text;
    int status;

    FSDP_TRY(bundle_read_given(a->about, &text, &bytes, error));
    status = submission_about_parse(text, bytes, a->about, &s->about, error);
    free(text);
    return status;
}

static int run(const struct arguments *a)
{
    struct fsdp_error error = {0};
    struct submission s = {.whole = false};
    struct engine_folders found;
    int status = read_about(a, &s, &error);

    if (status == FSDP_OK) {
        status = engine_folders_find(a->rest[0], &found);
    }
    if (status == FSDP_OK && found.n != 1) {
        status = record_fail(&error, FSDP_ERR_FORMAT, "submit",
                             "%.150s: the records of several engines; give "
                             "the folder of one",
                             a->rest[0]);
    }
    if (status == FSDP_OK) {
        status = submit(a, found.of[0].records, &s, &error);
    }
    submission_release(&s);
    if (status == FSDP_OK) {
        return 0;
    }
    fprintf(stderr, "fsdp-cts submit: %s\n",
            error.message[0] ? error.message : fsdp_status_text(status));
    return status == FSDP_ERR_FORMAT || status == FSDP_ERR_IO ? EXIT_BAD_DATA
                                                              : EXIT_INCOMPLETE;
}

int command_submit(int argc, char **argv)
{
    struct arguments a;

    const int wrong = arguments_parse(argc, argv, TAKES, &a);
    if (wrong) {
        return wrong;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.n_rest != 1 || !a.about || !a.bundle) {
        fprintf(stderr,
                "fsdp-cts submit: needs a folder of records, --about and "
                "--bundle; see: fsdp-cts submit --help\n");
        return EXIT_USAGE;
    }
    supervise_catch_signals();
    return run(&a);
}
