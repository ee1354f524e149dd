/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h - what an engine is told about values that leave it or come to it:
 * to and from a checkpoint, to a caller who looks at whole parameters, from
 * rank 0's memory. The calls are in engine.h.
 */
#ifndef FSDP_VALUES_H
#define FSDP_VALUES_H

#include <stdint.h>

enum fsdp_save_form {
    FSDP_SAVE_FULL = 0,
    FSDP_SAVE_SHARDED = 1,
    FSDP_SAVE_LOCAL = 2,
};

/* Which parts of a run a checkpoint has: bits, added up. */
enum fsdp_save_part {
    FSDP_SAVE_PARAMETERS = 1,
    FSDP_SAVE_STATES = 2,  /* of the optimizer */
    FSDP_SAVE_BUFFERS = 4, /* those that are persisted */
    FSDP_SAVE_EXTRA = 8,   /* the caller's own */
};

struct fsdp_save {
    uint32_t size;
    uint32_t form;
    const char *directory; /* UTF-8; made if missing */
    uint32_t rank0_only;   /* full: one rank writes, the others send */
    uint32_t n_extra;      /* the caller's own state, opaque */
    const char *const *extra_name;
    const void *const *extra_data;
    const uint64_t *extra_bytes;
    uint64_t file_bytes; /* full: a file is not larger, unless one tensor is;
                            0: 5 * 10^9 */
    uint32_t what;  /* bits of enum fsdp_save_part; 0: all of it. The count of
                     * steps is in any checkpoint. A checkpoint without some of
                     * the tensors is loaded leniently alone (load_from).
                     * Another bit is INVALID */
    uint32_t dtype; /* full: of parameters' values in the files: BF16 or F16,
                     * each rounded once, to nearest even; NONE, F32: as they
                     * are. States and buffers have their own. Rounded values
                     * are loaded leniently alone, widened. Another dtype, or
                     * form with one, is INVALID */
};

/* How a checkpoint is loaded (`load_from`). */
struct fsdp_load {
    uint32_t size;
    uint32_t lenient; /* 1: tensors may be missing, and others be there; 0: as
                         `load` */
    const char *directory;
};

/* What `summon` shows, and where. */
struct fsdp_summon {
    uint32_t size;
    uint32_t one_unit;   /* 1: `unit` alone; 0: all of them */
    uint32_t unit;       /* of the units' numbers */
    uint32_t rank0_only; /* 1: on rank 0 alone; 0: on every rank */
};

/* Values that rank 0 has in host memory (`send_values`). */
struct fsdp_values {
    uint32_t size;
    uint32_t lenient; /* 1: parameters may lack them; every rank the same */
    /* On rank 0, [n_parameters]: each a whole parameter, in C order, in its
     * stored dtype; NULL: rank 0 lacks its values. A tied parameter has those
     * of its original: nothing is read for its other names, nor for a parameter
     * that is ignored. On other ranks NULL. */
    const void *const *value;
};

#endif
