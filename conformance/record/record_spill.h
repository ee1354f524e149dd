/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_spill.h - the values of a large record lie in a file without a name
 * and are mapped, so that how much memory a judge takes does not depend on how
 * many ranks a case has. Pages that were looked at are given back, and come
 * again from the file when they are looked at again. What is written into them
 * stays with the mapping: a copy of a record is a second mapping of the file.
 */
#ifndef FSDP_CTS_RECORD_SPILL_H
#define FSDP_CTS_RECORD_SPILL_H

#include "record/record.h"

enum {
    /* Records with more bytes of tensors than this are spilled. */
    RECORD_SPILL_FROM = 8 << 20,
    /* As many bytes of one are looked at before they are given back. */
    RECORD_SPILL_WINDOW = 8 << 20
};

/* A file for at most so many bytes of values, in $TMPDIR or /tmp. NULL: there
 * can be none, and values lie where all others do. */
struct record_spill *record_spill_open(uint64_t bytes);
/* NULL allowed. No pointer into it may be used afterwards. */
void record_spill_close(struct record_spill *spill);

/* Puts the values of a tensor into the file, frees them, and lets the tensor
 * point to where they will be mapped. One for which there is no room, or
 * spill NULL, keeps them. */
void record_spill_put(struct record_spill *spill, struct record_tensor *t);
/* Behind the last one, and before any is looked at: puts the values into the
 * order in which they are compared, and maps them. IO. */
int record_spill_map(const struct record *of);

/* For a copy: the same values, mapped once more; NULL: it cannot be. A tensor
 * that points into the one points to the same place of the other. */
struct record_spill *record_spill_again(const struct record_spill *spill);
float *record_spill_same(const struct record_spill *from,
                         const struct record_spill *to, float *data);
/* Whether these values lie in it, and are not to be freed. */
bool record_spill_has(const struct record_spill *spill, const float *data);

/* Of a copy that was written to: what differs from the original gets memory of
 * its own. From then on pages are given back. NOMEM. */
int record_spill_settle(const struct record *original, struct record *copy);

/* Somebody is about to look at it; first gives back what was looked at before,
 * where that is much. NULL allowed. */
void record_spill_look(struct record_spill *spill,
                       const struct record_tensor *t);
/* Gives back all of it. NULL allowed. */
void record_spill_drop(struct record_spill *spill);

#endif
