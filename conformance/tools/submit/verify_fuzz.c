/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_fuzz.c - the entry of a fuzzer (libFuzzer's, or any with that
 * interface) to all that `verify` reads but the records' own JSON, which
 * record_fuzz.c has too: claims, submissions, manifests, explanations,
 * reports, records of both files. The first byte says which. A parser may
 * refuse, and says why, or takes it, and then it is well formed.
 */
#include "checkpoint/fuzzing.h"
#include "checkpoint/safetensors.h"
#include "cli/fixtures.h"
#include "judge/report/report_read.h"
#include "record/record_internal.h"
#include "run/adapter_claims.h"
#include "tools/submit/bundle_files.h"
#include "tools/submit/bundle_report.h"
#include "tools/submit/explanations.h"
#include "tools/submit/submission.h"

#include <string.h>

/* A refusal says why. */
static bool taken(int status, const struct fsdp_error *error)
{
    require(status == FSDP_OK || error->message[0] != '\0');
    return status == FSDP_OK;
}

static void fuzz_claims(const char *text, size_t bytes)
{
    static struct adapter_claims claims;
    struct fsdp_error error = {0};

    if (taken(adapter_claims_parse(text, bytes, "claims.json", &claims, &error),
              &error)) {
        require(claims.list[0] != NULL);
    }
}

static void fuzz_about(const char *text, size_t bytes)
{
    static struct submission_about about;
    struct fsdp_error error = {0};

    if (taken(submission_about_parse(text, bytes, "about.json", &about, &error),
              &error)) {
        require(about.name[0] != '\0' && about.n_software > 0);
    }
}

static void fuzz_submission(const char *text, size_t bytes)
{
    static struct submission s;
    struct fsdp_error error = {0};
    struct case_list cases;

    if (!taken(submission_parse(text, bytes, "submission.json", &s, &error),
               &error)) {
        return;
    }
    if (!s.whole && submission_cases(&s, &cases, &error) == FSDP_OK) {
        for (uint32_t i = 0; i < cases.n; i++) {
            require(!case_check(&cases.c[i]));
        }
        manifest_release(&cases);
    }
    submission_release(&s);
}

static void fuzz_manifest(const char *text, size_t bytes)
{
    struct fsdp_error error = {0};
    struct bundle_files f;

    if (taken(bundle_manifest_parse(text, bytes, "manifest.json", &f, &error),
              &error)) {
        for (uint32_t i = 0; i < f.n; i++) {
            require(!strstr(f.file[i].path, "/..") &&
                    f.file[i].path[0] != '/' && f.file[i].path[0] != '.' &&
                    bundle_files_find(&f, f.file[i].path) == &f.file[i]);
        }
        bundle_files_release(&f);
    }
}

static void fuzz_golden(const char *text, size_t bytes)
{
    struct fsdp_error error = {0};
    uint32_t n;

    (void)taken(fixtures_manifest_parse(text, bytes, &n, &error), &error);
}

static void fuzz_explanations(const char *text, size_t bytes)
{
    struct fsdp_error error = {0};
    struct explanations x;

    if (taken(explanations_parse(text, bytes, "explanations.json", &x, &error),
              &error)) {
        for (uint32_t i = 0; i < x.n; i++) {
            require(x.of[i].why[0] != '\0' && x.of[i].whose < EXPLANATION_N);
        }
        explanations_release(&x);
    }
}

/* Whatever a report says can be printed. */
static void show(const struct report_kept *r)
{
    FILE *out = fopen("/dev/null", "we");

    require(out != NULL);
    for (uint32_t i = 0; i < r->n; i++) {
        require(report_text(&r->part[i].result, &r->part[i].meta, out) ==
                FSDP_OK);
    }
    (void)fclose(out);
}

static void fuzz_report(const char *text, size_t bytes)
{
    struct fsdp_error error = {0};
    struct report_kept r;

    if (taken(report_read(text, bytes, "report.jsonl", requirement_table(), &r,
                          &error),
              &error)) {
        require(bundle_report_same(text, bytes, text, bytes, &error) ==
                FSDP_OK);
        show(&r);
        report_kept_release(&r);
    }
}

static void fuzz_case(const char *text, size_t bytes)
{
    static struct record r;
    struct fsdp_error error = {0};

    if (taken(record_parse_case(text, bytes, "case.json", &r, &error),
              &error)) {
        require(!case_check(&r.c) && r.n_ranks == r.c.ranks);
    }
    record_release(&r);
}

static void a_case(uint32_t scenario, struct run_case *c)
{
    memset(c, 0, sizeof(*c));
    c->scenario = scenario;
    c->ranks = 2;
    c->microbatches = 2;
    c->steps = 4;
    c->recorded_steps = 2;
}

static void fuzz_rank(uint32_t scenario, const char *text, size_t bytes)
{
    struct fsdp_error error = {0};
    struct record_rank r;
    struct run_case c;
    uint32_t n_tensors;

    a_case(scenario, &c);
    memset(&r, 0, sizeof(r));
    if (taken(record_parse_rank(text, bytes, "rank-0.json", &c, 0, &r,
                                &n_tensors, &error),
              &error)) {
        require(r.n_steps <= c.steps && r.shard_sequence < r.n_sequences &&
                r.end_sequence < r.n_sequences);
        for (uint32_t i = 0; i < r.n_steps; i++) {
            require(r.step_sequence[i] < r.n_sequences);
        }
    }
    record_rank_release(&r);
}

static void fuzz_tensors(const char *p, size_t bytes)
{
    struct fsdp_error error = {0};
    struct safetensors_file *file;
    struct record_rank r;
    struct run_case c;
    char why[200];

    if (safetensors_open_memory(p, bytes, &file, why, sizeof(why)) != FSDP_OK) {
        return;
    }
    a_case(CASE_TRAIN, &c);
    memset(&r, 0, sizeof(r));
    if (taken(record_take_tensors("rank-0.safetensors", file, &c,
                                  (uint32_t)safetensors_count(file), &r,
                                  &error),
              &error)) {
        for (uint32_t i = 0; i < r.n_tensors; i++) {
            require(r.tensor[i].step <= c.steps &&
                    r.tensor[i].stage < RECORD_N_STAGES);
        }
    }
    record_rank_release(&r);
    safetensors_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const parser[])(const char *, size_t) = {
        fuzz_claims,   fuzz_about,        fuzz_submission,
        fuzz_manifest, fuzz_explanations, fuzz_report,
        fuzz_golden,   fuzz_case,         fuzz_tensors};
    enum {
        N_PARSERS = sizeof(parser) / sizeof(parser[0])
    };
    const char *const text = (const char *)data + 1;

    if (bytes == 0) {
        return 0;
    }
    if (data[0] < N_PARSERS) {
        parser[data[0]](text, bytes - 1);
    } else {
        fuzz_rank((uint32_t)(data[0] - N_PARSERS) % (CASE_SHRINK + 1u), text,
                  bytes - 1);
    }
    return 0;
}
