/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_internal.h - the parts of the reader and writer of safetensors
 * behind the public header.  Private to safetensors*.c; the fuzz entry looks at
 * the writer's plan, to go around without a file.
 */
#ifndef FSDP_CTS_SAFETENSORS_INTERNAL_H
#define FSDP_CTS_SAFETENSORS_INTERNAL_H

#include "safetensors.h"

#include <jansson.h>

#define SAFETENSORS_METADATA     "__metadata__"
#define SAFETENSORS_LENGTH_BYTES 8
#define SAFETENSORS_HEADER_MIN   2
#define SAFETENSORS_HEADER_MAX   100000000

/* Where the reason of a refusal goes, and which file it is about. */
struct safetensors_report {
    const char *path;
    char *why;
    size_t why_bytes;
};

/* Writes "PATH: " and the message to the report, and returns STATUS. */
__attribute__((format(printf, 3, 4))) int
safetensors_refuse(const struct safetensors_report *report, int status,
                   const char *format, ...);

/*
 * The place of DTYPE in the format's list, which is in the order of growing
 * alignment, or -1 if it is not there.
 */
int safetensors_dtype_rank(const char *dtype);

/* The list's own spelling for a rank, which lives for ever. */
const char *safetensors_dtype_name(int rank);

/*
 * The bytes of a tensor of the dtype of that RANK.  Returns NULL, or what is
 * wrong with the shape.
 */
const char *safetensors_size(int rank, uint32_t n_dims, const uint64_t *shape,
                             uint64_t *bytes);

struct safetensors_file {
    json_t *root; /* owns the names and the metadata's strings */
    void *data;   /* NULL if the data is the caller's */
    struct safetensors_tensor *tensors;
    const struct safetensors_tensor **by_name;
    size_t n;
    struct safetensors_meta *meta; /* by key */
    size_t n_meta;
};

/*
 * Reads the BYTES bytes of header TEXT (at least one) of a file with that many
 * bytes of data into FILE, which was all zeroes.  The tensors' data is left to
 * be set: they lie one after the other from the data's first byte, in the order
 * of the array.  After a failure too FILE is for safetensors_close().
 */
int safetensors_read_header(const struct safetensors_report *report,
                            const char *text, size_t bytes, uint64_t data_bytes,
                            struct safetensors_file *file);

/* A tensor to be written, with its dtype's rank at hand for sorting. */
struct safetensors_slot {
    const struct safetensors_tensor *tensor;
    int rank;
};

/* All of a file but the data: the head's bytes and the order of the data. */
struct safetensors_plan {
    struct safetensors_slot *slots; /* in the order of the data */
    size_t n;
    char *head; /* the length, the JSON and its padding */
    size_t head_bytes;
    uint64_t data_bytes;
};

/* Frees with safetensors_plan_free(), which is also due after a failure. */
int safetensors_plan_make(struct safetensors_plan *plan,
                          const struct safetensors_tensor *t, size_t n,
                          const struct safetensors_meta *meta, size_t n_meta,
                          const struct safetensors_report *report);
void safetensors_plan_free(struct safetensors_plan *plan);

#endif
