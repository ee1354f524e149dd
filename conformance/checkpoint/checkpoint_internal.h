/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_internal.h - what the parts of checkpoint.h share among
 * themselves: files that are hashed while they are written, places, the plan
 * of the full form.
 */
#ifndef FSDP_CTS_CHECKPOINT_INTERNAL_H
#define FSDP_CTS_CHECKPOINT_INTERNAL_H

#include "checkpoint.h"
#include "safetensors_internal.h"

#include <sys/stat.h>

#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_PREFIX   "checkpoint-"
#define CHECKPOINT_PARTIAL  ".partial-"
#define CHECKPOINT_DCP_INFO "DCP_SHARDING_INFO"
#define CHECKPOINT_OWN_STEP "optim.step."

enum {
    CHECKPOINT_BUFFER = 1 << 16, /* elements that are moved at a time */
};

/* As safetensors spell it; NULL: no dtype. And back; NONE: none of them. */
const char *checkpoint_dtype_name(uint32_t dtype);
uint32_t checkpoint_dtype_of_name(const char *name);

/* errno, in words, behind "FILE: WHAT: ". */
int checkpoint_refuse_system(char *why, const char *file, const char *what);
static inline int checkpoint_no_memory(char *why)
{
    return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
}

/* ---- checkpoint_stream.c: a new file, hashed while it is written ---- */

struct checkpoint_stream {
    int fd;
    struct checkpoint_hasher *hasher;
    unsigned char *block; /* that is being filled */
    size_t used;
    const char *name;
    uint64_t bytes, flushed;       /* written; given to the disk */
    bool directly, never_directly; /* past the system's cache */
};
int checkpoint_stream_open(struct checkpoint_stream *x, int directory,
                           const char *name, char *why);
/* Where up to *room bytes may be put, and that so many have been. */
unsigned char *checkpoint_stream_room(struct checkpoint_stream *x,
                                      size_t *room);
int checkpoint_stream_filled(struct checkpoint_stream *x, size_t bytes,
                             char *why);
int checkpoint_stream_add(struct checkpoint_stream *x, const void *p,
                          uint64_t bytes, char *why);
/* Flushes to the disk and says what the file is; closed in any case. */
int checkpoint_stream_close(struct checkpoint_stream *x, int status,
                            struct checkpoint_file *out, char *why);

/* A regular file of a directory, no link. -1: refused, *status says how. */
int checkpoint_open_file(int directory, const char *name, struct stat *about,
                         int *status, char *why);
int checkpoint_pread(int fd, const char *name, uint64_t at, void *to,
                     uint64_t bytes, char *why);
int checkpoint_pwrite(int fd, const char *name, uint64_t at, const void *p,
                      uint64_t bytes, char *why);
/* What a file is, and its hash. */
int checkpoint_hash_file(int directory, const char *name,
                         struct checkpoint_file *out, char *why);
void checkpoint_hash(const void *p, size_t bytes,
                     unsigned char sha[CHECKPOINT_SHA_BYTES]);
void checkpoint_hex(const unsigned char sha[CHECKPOINT_SHA_BYTES],
                    char hex[2 * CHECKPOINT_SHA_BYTES + 1]);
/* Letters, digits, dots, hyphens, underscores, no dot first: cannot leave its
 * directory. */
bool checkpoint_plain_name(const char *name);

/* ---- checkpoint_place.c: where one is written ---- */

struct checkpoint_place {
    int parent, directory; /* descriptors, or -1 */
    uint64_t number;
    char partial[32], final[32]; /* names in the parent */
};
/* The first makes the place, the others join it. */
int checkpoint_place_make(struct checkpoint_place *p, const char *directory,
                          char *why);
int checkpoint_place_join(struct checkpoint_place *p, const char *directory,
                          uint64_t number, char *why);
/* The place becomes the checkpoint. */
int checkpoint_place_publish(struct checkpoint_place *p, char *why);
/* Removes what was written; and closes only. */
void checkpoint_place_remove(struct checkpoint_place *p);
void checkpoint_place_close(struct checkpoint_place *p);

/* The number behind a prefix; 0: none. */
uint64_t checkpoint_place_number(const char *name, const char *prefix);
void checkpoint_place_name(struct checkpoint_place *p, uint64_t number);
/* A descriptor, or -1. */
int checkpoint_open_directory(int parent, const char *name, char *why);
/* Its files, then itself; what is a directory in it stays, and keeps it, and so
 * does what cannot be removed. 0, or -1 and the first errno. */
int checkpoint_remove_directory(int parent, const char *name);

/* ---- checkpoint_choose.c: which one is read ---- */

/* The newest complete checkpoint: its manifest, its descriptor (the caller's),
 * its path and the reason. */
int checkpoint_choose(const char *directory, int *fd,
                      struct checkpoint_manifest *m,
                      char path[CHECKPOINT_PATH_BYTES],
                      char reason[CHECKPOINT_PATH_BYTES], char *why);
/* The highest number that a checkpoint there has, complete or not; 0: none. */
uint64_t checkpoint_newest(const char *directory);

/* checkpoint_table.c: the order of names, whose addresses these are; and those
 * of a table, ascending. The array is the caller's to free; NULL: no memory. */
int checkpoint_compare_names(const void *a, const void *b);
const char **checkpoint_sorted_names(const struct checkpoint_table *table,
                                     uint32_t *n);

/* ---- checkpoint_full.c: the files of the full form ---- */

struct checkpoint_full_file {
    char name[CHECKPOINT_FILE_NAME_BYTES];
    struct safetensors_plan plan;
    struct safetensors_tensor *tensor;
    uint32_t n;
};
struct checkpoint_full {
    struct checkpoint_full_file *file;
    uint32_t n;
    uint32_t *file_of; /* [entries] */
    uint64_t *at;      /* [entries]: first byte in that file */
    uint64_t total[2]; /* bytes of parameters, of states */
};
int checkpoint_full_plan(const struct checkpoint_table *table, uint64_t most,
                         struct checkpoint_full *out, char *why);
void checkpoint_full_release(struct checkpoint_full *f);
/* All files, with their heads and at their full length. */
int checkpoint_full_create(const struct checkpoint_full *f, int directory,
                           char *why);
/* The Hugging Face index of parameters (0) or states (1), if there are several
 * files. *wrote: whether there was one to write. */
int checkpoint_full_index(const struct checkpoint_full *f,
                          const struct checkpoint_table *table, int directory,
                          uint32_t which, bool *wrote,
                          struct checkpoint_file *out, char *why);

/* ---- checkpoint_shards.c: the files of a rank in the sharded form ---- */

/* {"name":{"saved_offsets":[...]}, ...}: where these tensors begin in whole
 * ones, box NULL: at 0. The caller's to free; NULL: out of memory. */
char *checkpoint_sharding_info(const struct safetensors_tensor *t, uint32_t n,
                               const struct checkpoint_box *const *box);
/* Appends what it wrote to file[*n ...], which has room for `room`. */
int checkpoint_write_shards(int directory, const struct checkpoint_table *table,
                            const struct checkpoint_source *source,
                            uint32_t shard, struct checkpoint_file *file,
                            uint32_t room, uint32_t *n, char *why);

#endif
