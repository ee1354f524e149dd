/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submission.h - a submission: the records of a run, what was judged of them,
 * and all that somebody else needs to judge them again or to run it again.
 *
 *     BUNDLE/
 *       manifest.json        every other file with its size and SHA-256
 *       submission.json      who, with what, which versions, which cases
 *       report.jsonl         what the suite said
 *       explanations.json    of what fails: whose it is, and why (optional)
 *       records/<case id>/   what was run (left out: nothing can be proven)
 *
 * The unsharded runs are not in it: whoever verifies it makes them himself.
 * docs/submissions.md is normative. A bundle comes from a stranger: parsers
 * take bytes, check every number before it is used, and say what is wrong.
 */
#ifndef FSDP_CTS_SUBMISSION_H
#define FSDP_CTS_SUBMISSION_H

#include "cases/case.h"
#include "record/record_fields.h"
#include <fsdp/status.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    SUBMISSION_VERSION = 1,
    SUBMISSION_TEXT_BYTES = 1024,
    SUBMISSION_MAX_SOFTWARE = 16,
    SUBMISSION_MAX_CASES = 1 << 16
};

/* about.json: facts that only the submitter knows. All of them are shown, and
 * none is believed. */
struct submission_about {
    char name[SUBMISSION_TEXT_BYTES];    /* heading in tables; Markdown */
    char column[32];                     /* a short heading */
    char release[SUBMISSION_TEXT_BYTES]; /* "PyTorch 2.15.0" */
    char url[SUBMISSION_TEXT_BYTES];
    char hardware[SUBMISSION_TEXT_BYTES];
    char software[SUBMISSION_MAX_SOFTWARE][96];
    uint32_t n_software;
    char adapter[SUBMISSION_TEXT_BYTES]; /* "": a shared library */
    char command[SUBMISSION_TEXT_BYTES];
    uint32_t seed; /* of the cases; 0: that of the manifest */
    char made[16]; /* "2026-11-20" */
    char notes[SUBMISSION_TEXT_BYTES];
};

/* submission.json. */
struct submission {
    struct submission_about about;
    /* Three versions: of the requirements, of the format, of the cases. */
    char specification[16], content[16];
    uint32_t interpretation;
    char cases_sha256[65]; /* of the suite's list of cases */
    char suite[32], commit[48];
    char engine[64], engine_version[32];
    bool has_records;
    bool whole; /* all cases of the suite; false: those below */
    uint32_t n_cases;
    char (*id)[CASE_ID_BYTES]; /* [n_cases], strictly ascending */
    uint32_t n_claims;
    char (*claim)[32];
};

/* FORMAT: the sentence names file and field. NOMEM. */
extern const struct record_table submission_table, submission_about_table;
int submission_about_parse(const char *text, size_t bytes, const char *file,
                           struct submission_about *out,
                           struct fsdp_error *error);
int submission_parse(const char *text, size_t bytes, const char *file,
                     struct submission *out, struct fsdp_error *error);
void submission_release(struct submission *s); /* any state */

/* Writes submission.json into a folder. */
int submission_write(const struct submission *s, const char *folder,
                     struct fsdp_error *error);

/* The list of cases that the submission is about; released by manifest_release.
 * FORMAT: an unknown case. */
int submission_cases(const struct submission *s, struct case_list *out,
                     struct fsdp_error *error);

#endif
