/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_scene_testing.h - one golden case, read once, so that tests that change
 * records in great numbers can judge many records of it in one process.
 */
#ifndef FSDP_CTS_JUDGE_SCENE_TESTING_H
#define FSDP_CTS_JUDGE_SCENE_TESTING_H

#include "cases/case_model.h"
#include "judge/judge.h"

struct judge_scene {
    struct run_case c;
    struct case_model model;
    struct record record, baseline;
    struct judge_result like; /* only for the order of its requirements */
};

/* Reads the record of a case, and the unsharded run if it trains, from a folder
 * of golden records. */
int judge_scene_load(const char *records, const char *id,
                     struct judge_scene *out, struct fsdp_error *error);
void judge_scene_release(struct judge_scene *s);

/* Judges r as the record of the scene's case, the only one that was run of
 * n_manifest. *out is to be released. */
int judge_scene_judge(const struct judge_scene *s, const struct record *r,
                      uint32_t n_manifest, struct judge_result *out);

#endif
