/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_spill.h - the values of a large record lie in a mapped file without a
 * name, so that the memory that a judge takes does not depend on a case's
 * number of ranks. Pages that were read are given back, and come from the file
 * again when they are read again. Writes stay within one mapping: to copy a
 * record is to map the file a second time.
 */
#ifndef FSDP_CTS_RECORD_SPILL_H
#define FSDP_CTS_RECORD_SPILL_H

#include "record/record.h"

enum {
    /* Records whose tensors have more bytes than this are spilled. */
    RECORD_SPILL_FROM = 8 << 20,
    /* So many bytes are read before their pages are given back. */
    RECORD_SPILL_WINDOW = 8 << 20
};

/* A file for at most `bytes` bytes of values, in $TMPDIR or /tmp. NULL: no file
 * could be made; then values stay in malloc'ed memory. */
struct record_spill *record_spill_open(uint64_t bytes);
/* NULL is allowed. No pointer into the file may be used afterwards. */
void record_spill_close(struct record_spill *spill);

/* Moves the values of a tensor into the file, and lets the tensor point to
 * where they will be mapped. If spill is NULL or full, the tensor keeps its
 * values. */
void record_spill_put(struct record_spill *spill, struct record_tensor *t);
/* Called behind the last record_spill_put and before any value is read: sorts
 * the values into the order in which they are compared, and maps them. IO. */
int record_spill_map(const struct record *of);

/* For a copy of a record. _again maps the same file once more; NULL: it cannot.
 * _same turns a pointer into the one mapping into the pointer to the same place
 * of the other. */
struct record_spill *record_spill_again(const struct record_spill *spill);
float *record_spill_same(const struct record_spill *from,
                         const struct record_spill *to, float *data);
/* Whether these values lie in the mapping, and so must not be freed. */
bool record_spill_has(const struct record_spill *spill, const float *data);

/* For a copy that was written to: its tensors that differ from the original's
 * get memory of their own, so that pages can be given back from then on.
 * NOMEM. */
int record_spill_settle(const struct record *original, struct record *copy);

/* Called before a tensor is read: gives back the pages read before, once they
 * are many. spill may be NULL. */
void record_spill_look(struct record_spill *spill,
                       const struct record_tensor *t);
/* Gives back all pages. NULL is allowed. */
void record_spill_drop(struct record_spill *spill);

#endif
