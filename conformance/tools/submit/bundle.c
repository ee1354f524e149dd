/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.c - see bundle.h. */
#include "tools/submit/bundle.h"

#include "cli/fixtures.h"
#include "cli/verdict/records_folder.h"
#include "judge/report/report_read.h"
#include "record/record_internal.h"
#include "tools/submit/bundle_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char where[] = "bundle";

bool bundle_is(const char *folder)
{
    char path[RECORD_PATH_BYTES];
    struct stat s;

    return record_path(path, folder, BUNDLE_SUBMISSION, NULL) == FSDP_OK &&
           lstat(path, &s) == 0;
}

void bundle_release(struct bundle *b)
{
    judge_release(&b->judged.r);
    manifest_release(&b->cases);
    explanations_release(&b->explanations);
    bundle_files_release(&b->files);
    submission_release(&b->s);
}

/* Reads a file that the manifest lists, whole. */
static int read_listed(const char *folder, const char *name,
                       const struct bundle *b, char **text, size_t *bytes,
                       struct fsdp_error *error)
{
    *text = NULL;
    if (!bundle_files_find(&b->files, name)) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "%s: every bundle has one", name);
    }
    return bundle_read(folder, name,
                       strcmp(name, BUNDLE_REPORT) == 0
                           ? (size_t)REPORT_MAX_BYTES
                           : BUNDLE_MAX_JSON_BYTES,
                       text, bytes, error);
}

/* Another version of what is required, or of how it is read, or other cases:
 * another release of the suite has to judge it. */
static int check_versions(const struct submission *s, struct fsdp_error *error)
{
    if (s->interpretation == FIXTURES_INTERPRETATION &&
        strcmp(s->specification, FIXTURES_SPECIFICATION) == 0 &&
        strcmp(s->content, FIXTURES_CONTENT) == 0 &&
        strcmp(s->cases_sha256, manifest_sha256) == 0) {
        return FSDP_OK;
    }
    return record_fail(
        error, FSDP_ERR_FORMAT, where,
        "submission.json: versions %s, %u, %s, cases %.8s; this program has "
        "%s, %d, %s, cases %.8s: take suite %.20s, commit %.12s",
        s->specification, s->interpretation, s->content, s->cases_sha256,
        FIXTURES_SPECIFICATION, FIXTURES_INTERPRETATION, FIXTURES_CONTENT,
        manifest_sha256, s->suite, s->commit);
}

static const struct judge_case *case_of(const struct bundle *b, const char *id,
                                        size_t n)
{
    const struct judge_result *r = &b->judged.r;

    for (uint32_t i = 0; i < r->n_cases; i++) {
        if (strlen(r->cases[i].id) == n && memcmp(r->cases[i].id, id, n) == 0) {
            return &r->cases[i];
        }
    }
    return NULL;
}

/* No record of a case that is not asked for. */
static int check_none_extra(const struct bundle *b, struct fsdp_error *error)
{
    static const char prefix[] = BUNDLE_RECORDS "/";

    for (uint32_t i = 0; i < b->files.n; i++) {
        const char *path = b->files.file[i].path;
        const struct judge_case *c;

        if (strncmp(path, prefix, sizeof(prefix) - 1) != 0) {
            continue;
        }
        path += sizeof(prefix) - 1;
        c = case_of(b, path, strcspn(path, "/"));
        if (!c || c->outcome == JUDGE_NOT_CLAIMED) {
            return record_fail(error, FSDP_ERR_FORMAT, where,
                               "records/%.130s: its cases and claims do not "
                               "call for this one",
                               path);
        }
    }
    return FSDP_OK;
}

int bundle_judge(const char *records, const struct case_list *cases,
                 const char *const *claims, const struct arguments *a,
                 const struct text *text, struct evaluate_result *out,
                 struct fsdp_error *error)
{
    struct folder own = {.temporary = false};
    const struct evaluate_input e = {.records = records,
                                     .baselines = own.path,
                                     .cases = cases,
                                     .text = text,
                                     .claims = claims};
    struct case_list run = {NULL, 0};
    char path[RECORD_PATH_BYTES];
    struct stat s;
    int status = folder_open(NULL, &own, error);

    for (uint32_t i = 0; i < cases->n && status == FSDP_OK; i++) {
        char id[CASE_ID_BYTES];

        case_id(&cases->c[i], id);
        status = record_path(path, records, id, error);
        if (status == FSDP_OK && stat(path, &s) == 0) {
            struct run_case *more =
                realloc(run.c, (run.n + (size_t)1) * sizeof(*more));

            status = more ? FSDP_OK : FSDP_ERR_NOMEM;
            run.c = more ? more : run.c;
            if (more) {
                run.c[run.n++] = cases->c[i];
            }
        }
    }
    if (status == FSDP_OK) {
        struct supervise_job job = arguments_job(a);

        job.records = own.path;
        job.title = a->quiet ? NULL : "baseline";
        status = supervise_baselines(&job, &run, error);
    }
    if (status == FSDP_OK) {
        evaluate_engine(&e, a, NULL, (int64_t)time(NULL), out);
        status = out->judged ? FSDP_OK : FSDP_ERR_ABORTED;
    }
    manifest_release(&run);
    folder_close(&own);
    return status;
}

static int judge_records(const char *folder, const struct arguments *a,
                         const struct text *text, struct bundle *b,
                         struct fsdp_error *error)
{
    char records[RECORD_PATH_BYTES];
    const char **claims = calloc(b->s.n_claims + (size_t)1, sizeof(*claims));
    int status = claims ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t i = 0; claims && i < b->s.n_claims; i++) {
        claims[i] = b->s.claim[i];
    }
    if (status == FSDP_OK) {
        status = record_path(records, folder, BUNDLE_RECORDS, error);
    }
    if (status == FSDP_OK) {
        status = bundle_judge(records, &b->cases, claims, a, text, &b->judged,
                              error);
    }
    free(claims);
    return status;
}

/* The engine that was judged is the one that the bundle names, every record can
 * be read, and there is none too many. */
static int check_judged(const struct bundle *b, struct fsdp_error *error)
{
    const struct judge_result *r = &b->judged.r;

    if (r->malformed > 0) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "%u records cannot be read", r->malformed);
    }
    if (strcmp(r->engine, b->s.engine) != 0 ||
        strcmp(r->engine_version, b->s.engine_version) != 0) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "the records are of %.60s %.30s, submission.json "
                           "says %.60s %.30s",
                           r->engine, r->engine_version, b->s.engine,
                           b->s.engine_version);
    }
    return check_none_extra(b, error);
}

/* The report of what was found now, to compare with. */
static int report_again(const struct bundle *b, char **text, size_t *bytes,
                        struct fsdp_error *error)
{
    struct folder own = {.temporary = false};
    char path[RECORD_PATH_BYTES];
    int status = folder_open(NULL, &own, error);

    *text = NULL;
    if (status == FSDP_OK) {
        status = record_path(path, own.path, BUNDLE_REPORT, error);
    }
    if (status == FSDP_OK) {
        status = report_jsonl(&b->judged.r, &b->judged.meta, path, error);
    }
    if (status == FSDP_OK) {
        status =
            bundle_read(own.path, BUNDLE_REPORT, SIZE_MAX, text, bytes, error);
    }
    folder_close(&own);
    return status;
}

/* Whether the report is on the bundle's cases, in their order. */
static int check_reported(const struct report_kept *report,
                          const struct bundle *b, struct fsdp_error *error)
{
    const struct judge_result *r = &report->part[0].result;

    if (report->n != 1 || r->n_cases != b->cases.n) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "report.jsonl: %u cases of %u engines, "
                           "submission.json says %u of one",
                           r->n_cases, report->n, b->cases.n);
    }
    for (uint32_t i = 0; i < r->n_cases; i++) {
        char id[CASE_ID_BYTES];

        case_id(&b->cases.c[i], id);
        if (strcmp(r->cases[i].id, id) != 0) {
            return record_fail(error, FSDP_ERR_FORMAT, where,
                               "report.jsonl: case %.90s, where %.90s was "
                               "expected",
                               r->cases[i].id, id);
        }
    }
    return FSDP_OK;
}

static int check_report(const char *folder, const struct bundle *b,
                        struct fsdp_error *error)
{
    struct report_kept alone = {.n = 0};
    char *text[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    int status =
        read_listed(folder, BUNDLE_REPORT, b, &text[0], &bytes[0], error);

    if (status == FSDP_OK) {
        status = report_read(text[0], bytes[0], BUNDLE_REPORT,
                             requirement_table(), &alone, error);
    }
    if (status == FSDP_OK && b->s.has_records) {
        status = report_again(b, &text[1], &bytes[1], error);
    }
    if (status == FSDP_OK && b->s.has_records) {
        status =
            bundle_report_same(text[0], bytes[0], text[1], bytes[1], error);
    }
    if (status == FSDP_OK) {
        status = check_reported(&alone, b, error);
    }
    report_kept_release(&alone);
    free(text[0]);
    free(text[1]);
    return status;
}

static int check_explanations(const char *folder, struct bundle *b,
                              struct fsdp_error *error)
{
    size_t bytes = 0;
    char *text;
    int status;

    b->has_explanations =
        bundle_files_find(&b->files, BUNDLE_EXPLANATIONS) != NULL;
    if (!b->has_explanations) {
        return FSDP_OK;
    }
    FSDP_TRY(read_listed(folder, BUNDLE_EXPLANATIONS, b, &text, &bytes, error));
    status = explanations_parse(text, bytes, BUNDLE_EXPLANATIONS,
                                &b->explanations, error);
    free(text);
    return status != FSDP_OK || !b->s.has_records
               ? status
               : explanations_match(&b->explanations, &b->judged.r, error);
}

static int load(const char *folder, struct bundle *b, struct fsdp_error *error)
{
    size_t bytes = 0;
    char *text;
    bool has = false;
    int status;

    FSDP_TRY(bundle_files_check(folder, &b->files, error));
    FSDP_TRY(bundle_read(folder, BUNDLE_MANIFEST, BUNDLE_MAX_JSON_BYTES, &text,
                         &bytes, error));
    status = record_hash(text, bytes, b->sha256);
    free(text);
    FSDP_TRY(status);
    FSDP_TRY(read_listed(folder, BUNDLE_SUBMISSION, b, &text, &bytes, error));
    status = submission_parse(text, bytes, BUNDLE_SUBMISSION, &b->s, error);
    free(text);
    FSDP_TRY(status);
    FSDP_TRY(check_versions(&b->s, error));
    for (uint32_t i = 0; i < b->files.n; i++) {
        has = has || strchr(b->files.file[i].path, '/');
    }
    if (has != b->s.has_records) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "submission.json says that there are %s, and there "
                           "are %s",
                           b->s.has_records ? "records" : "no records",
                           has ? "some" : "none");
    }
    return submission_cases(&b->s, &b->cases, error);
}

const char *bundle_plain(char *s)
{
    for (char *p = s; *p != '\0'; p++) {
        *p = *p >= ' ' && *p <= '~' ? *p : '?';
    }
    return s;
}

int bundle_verify(const char *folder, const struct arguments *a,
                  const struct text *text, struct bundle *out)
{
    struct fsdp_error error = {0};
    int status;

    memset(out, 0, sizeof(*out));
    status = load(folder, out, &error);
    if (status == FSDP_OK && out->s.has_records) {
        status = judge_records(folder, a, text, out, &error);
        if (status == FSDP_OK) {
            status = check_judged(out, &error);
        }
    }
    if (status == FSDP_OK) {
        status = check_report(folder, out, &error);
    }
    if (status == FSDP_OK) {
        status = check_explanations(folder, out, &error);
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %.200s: %s\n", folder,
                error.message[0] ? bundle_plain(error.message)
                                 : fsdp_status_text(status));
        return status == FSDP_ERR_FORMAT || status == FSDP_ERR_IO
                   ? EXIT_BAD_DATA
                   : EXIT_INCOMPLETE;
    }
    return out->s.has_records ? out->judged.code : EXIT_INCOMPLETE;
}
