/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.h - a submission in a folder, checked: every file is the manifest's,
 * the versions are this program's, all cases that its claims call for are
 * there and no others, the records are judged again, and the report says what
 * is found now. Nothing in it is believed but its records.
 */
#ifndef FSDP_CTS_BUNDLE_H
#define FSDP_CTS_BUNDLE_H

#include "cli/commands.h"
#include "cli/verdict/evaluate.h"
#include "tools/submit/bundle_files.h"
#include "tools/submit/explanations.h"
#include "tools/submit/submission.h"

/* bundle_is, which says whether a folder is a bundle rather than a folder of
 * records, is declared in cli/commands.h, as `verify` calls it. */

struct bundle {
    struct submission s;
    struct bundle_files files;
    char sha256[65]; /* of manifest.json, and thereby of the whole bundle */
    struct case_list cases;
    struct evaluate_result judged; /* if there are records */
    bool has_explanations;
    struct explanations explanations;
};

/* Checks and judges; returns the exit code, after a line on stderr if it is 65.
 * Other output is left to the caller. The caller releases *b. */
int bundle_verify(const char *folder, const struct arguments *a,
                  const struct text *text, struct bundle *out);
void bundle_release(struct bundle *b); /* any state */

/* Judges records against unsharded runs that are made here, for claims
 * (NULL-ended; NULL: as recorded); or says why it could not. */
int bundle_judge(const char *records, const struct case_list *cases,
                 const char *const *claims, const struct arguments *a,
                 const struct text *text, struct evaluate_result *out,
                 struct fsdp_error *error);

/* Writes records, report, explanations, submission.json and the manifest into
 * a->bundle, which is made. FORMAT: the explanations do not fit. */
int bundle_make(const struct arguments *a, const char *records,
                const struct evaluate_result *judged,
                const struct submission *s, struct fsdp_error *error);
/* Reads the whole of a file that the user named. */
int bundle_read_given(const char *path, char **out, size_t *bytes,
                      struct fsdp_error *error);

/* A stranger's text, made fit for a terminal: characters that are not printable
 * ASCII become '?'. */
const char *bundle_plain(char *s);

/* "FSDP2 1.2: CONFORMANT, ..." or a JSON object, for verify. */
void bundle_print(const struct bundle *b, const struct arguments *a, int code);

#endif
