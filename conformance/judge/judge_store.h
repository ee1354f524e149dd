/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_store.h - the records of a run in a folder, read when the judge asks
 * for them. Records are in FOLDER/<case id>/, unsharded runs in
 * BASELINES/baseline/<key>/. BASELINES is FOLDER if one engine was run, and its
 * parent if several were.
 */
#ifndef FSDP_CTS_JUDGE_STORE_H
#define FSDP_CTS_JUDGE_STORE_H

#include "record/record.h"

struct judge_store;

/* NOMEM. The folder need not exist: then there are no records. baselines NULL:
 * the same folder. */
int judge_store_open(const char *folder, const char *baselines,
                     struct judge_store **out);
/* Adds another part of the same run, which is searched after those added before
 * it. NOMEM. */
int judge_store_add(struct judge_store *store, const char *folder,
                    const char *baselines);
void judge_store_close(struct judge_store *store); /* NULL is allowed */

/* Functions for struct judge_input; their `context` is the store. */
const struct record *judge_store_record(void *context, const char *id,
                                        struct fsdp_error *error);
const struct record *judge_store_baseline(void *context, const char *key,
                                          struct fsdp_error *error);
void judge_store_next(void *context);

#endif
