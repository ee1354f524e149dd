/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_build_internal.h - what the files of the builder share: its lists, and
 * the single chain of all its memory, so that there is one way to give it back.
 */
#ifndef FSDP_CTS_MODEL_BUILD_INTERNAL_H
#define FSDP_CTS_MODEL_BUILD_INTERNAL_H

#include "model_build.h"

#include <stddef.h>

/* One allocation; what the caller uses follows it. */
struct build_chunk {
    struct build_chunk *next;
    _Alignas(16) unsigned char data[];
};

struct build_node {
    struct build_node *next;
    const char *name;
    const char *class_name; /* of a module */
    int32_t owner;          /* a module's parent, a tensor's module */
    int32_t alias;
    uint32_t dtype, flags, n_dims;
    uint64_t shape[FSDP_MAX_DIMS];
};

struct build_list {
    struct build_node *first;
    struct build_node **last;
    uint32_t n;
};

struct model_build {
    struct build_chunk *chunks;
    struct build_list modules, parameters, buffers;
    const struct fsdp_sequence **sequence;
    uint32_t n_sequences;
    bool finished;
    int status;
    char message[192];
};

/* Keeps the first failure and its sentence; returns that failure. */
int model_build_fail(struct model_build *b, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory that lives as long as the builder; NULL if there is none. */
void *model_build_alloc(struct model_build *b, size_t n, size_t bytes);
const char *model_build_string(struct model_build *b, const char *text);

/* Whether something called `name` can still be added. */
int model_build_open(struct model_build *b, const char *name);

/*
 * Checks a call sequence: INVALID unless every POST closes the last PRE that is
 * still open, which is of the same module and direction, and nothing stays
 * open. `detail` says what is wrong.
 */
int model_sequence_check(const struct fsdp_sequence *sequence,
                         uint32_t n_modules, char *detail, size_t bytes);

#endif
