/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_opened.h - an opened checkpoint, for the sources that make, check
 * and read it. Private to checkpoint_*.c; the fuzz entry makes one of its own,
 * to read headers that are in no file.
 */
#ifndef FSDP_CTS_CHECKPOINT_OPENED_H
#define FSDP_CTS_CHECKPOINT_OPENED_H

#include "checkpoint_internal.h"

/* Elements [first, first + n) of an entry lie in a file from byte `at` on. */
struct checkpoint_run {
    uint32_t entry, file;
    uint64_t first, n, at;
};

/* The caller's own state of a rank lies in a file from byte `at` on. */
struct checkpoint_own {
    char *name;
    uint32_t rank, file;
    uint64_t at, bytes;
};

/* Differs between two files, and for one file before and after it is written
 * to. */
struct checkpoint_identity {
    uint64_t device, inode, bytes;
    struct timespec changed;
};

struct checkpoint {
    int directory;
    char path[CHECKPOINT_PATH_BYTES], reason[CHECKPOINT_PATH_BYTES];
    struct checkpoint_manifest manifest;  /* its table by name */
    struct checkpoint_identity *identity; /* of each file; NULL: not known */
    struct checkpoint_run *run;           /* by entry, then first */
    uint32_t n_runs;
    struct checkpoint_own *own; /* by rank, then name */
    uint32_t n_owns;
    struct checkpoint_state state;
    bool has_state[3];
    struct checkpoint_own_steps *steps; /* names are its own */
    uint32_t n_steps;
    int fd; /* of `file`, or -1 */
    uint32_t file;
    /* For a lenient load: names of tensors, a line each; NULL: none. */
    char *missing, *unexpected;
};

/* Fills in c->missing, which the table has and the checkpoint lacks, and
 * c->unexpected, the other way round. */
int checkpoint_find_names(struct checkpoint *c,
                          const struct checkpoint_table *table, char *why);

/* Sorts a table by name, so that entries are found by name. */
void checkpoint_sort_entries(struct checkpoint_table *table);
/* The entry of that name of a table in the order of names, or -1. */
int checkpoint_entry_of(const struct checkpoint_table *table, const char *name);

/* Takes over what file `file` has, by its header: `bytes` bytes of text, which
 * `data` follows from its byte `at` on. fd: the file, for the step and the
 * products, which are read at once. */
int checkpoint_take_header(struct checkpoint *c, uint32_t file, int fd,
                           const char *text, uint64_t bytes, uint64_t data,
                           char *why);
/* Called after the last header: checks that nothing is missing, and nothing is
 * there twice. */
int checkpoint_take_all(struct checkpoint *c, char *why);
/* Frees all that was taken, and the manifest. */
void checkpoint_forget(struct checkpoint *c);

#endif
