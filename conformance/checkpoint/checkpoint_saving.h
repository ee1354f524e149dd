/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_saving.h - a save that is under way, for the sources that do its
 * parts. Private to checkpoint_*.c.
 */
#ifndef FSDP_CTS_CHECKPOINT_SAVING_H
#define FSDP_CTS_CHECKPOINT_SAVING_H

#include "checkpoint_internal.h"

struct checkpoint_saved_extra {
    char *name; /* of the tensor: "extra.RRRRR.NAME" */
    unsigned char *data;
    uint64_t bytes;
};

struct checkpoint_saved_steps {
    char *name; /* of the tensor: "optim.step.PARAMETER" */
    uint64_t step;
};

struct checkpoint_saving {
    struct checkpoint_place place;
    const struct checkpoint_table *table;
    struct checkpoint_table parts; /* the table, if not all parts are saved; its
                                    * names are the caller's */
    struct checkpoint_source source;
    struct checkpoint_whole *whole;      /* copies of the source's, with their
                                          * data */
    struct checkpoint_manifest manifest; /* without tensors and files */
    struct checkpoint_state state;
    struct checkpoint_full full;
    uint32_t form, rank, world, shard;
    bool alone; /* this is rank 0, which writes everything */
    bool owner; /* of the first replica */
    struct checkpoint_saved_extra *extra;
    uint32_t n_extras;
    struct checkpoint_saved_steps *own; /* of rank 0 */
    uint32_t n_own;
    struct checkpoint_file *file; /* the files that this rank wrote */
    uint32_t n_files;
    int status;
    char why[CHECKPOINT_WHY_BYTES];
};

/* ---- checkpoint_state.c: state-RRRRR.safetensors ---- */

/* Copies the caller's own state. */
int checkpoint_add_extras(struct checkpoint_saving *s,
                          const struct fsdp_save *save);
/* Copies the counts of single parameters. */
int checkpoint_add_own_steps(struct checkpoint_saving *s,
                             const struct checkpoint_request *r);
void checkpoint_drop_own_steps(struct checkpoint_saving *s);
/* Writes the caller's own state; on rank 0 also the steps. */
int checkpoint_write_state(struct checkpoint_saving *s);

/* ---- checkpoint_put.c: slices in the files of the full form ---- */

/* Write all slices of the source, and its whole entries; a failure is left in
 * s->status. */
void checkpoint_put_slices(struct checkpoint_saving *s);
void checkpoint_put_wholes(struct checkpoint_saving *s);
void checkpoint_flush_full(struct checkpoint_saving *s);
/* All slices are in their places: each rank hashes its share of the files. */
int checkpoint_hash_full(struct checkpoint_saving *s);

#endif
