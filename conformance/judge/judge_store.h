/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_store.h - the records of a run in a folder, read when the judge asks
 * for them: FOLDER/<case id>/ and FOLDER/baseline/<key>/.
 */
#ifndef FSDP_CTS_JUDGE_STORE_H
#define FSDP_CTS_JUDGE_STORE_H

#include "record/record.h"

struct judge_store;

/* NOMEM. The folder need not exist: then there are no records. */
int judge_store_open(const char *folder, struct judge_store **out);
void judge_store_close(struct judge_store *store); /* NULL allowed */

/* From now on unsharded runs are those of another folder. INVALID: its path
 * is too long. */
int judge_store_baselines(struct judge_store *store, const char *folder);

/* For struct judge_input; `context` is the store. */
const struct record *judge_store_record(void *context, const char *id,
                                        struct fsdp_error *error);
const struct record *judge_store_baseline(void *context, const char *key,
                                          struct fsdp_error *error);
void judge_store_next(void *context);

#endif
