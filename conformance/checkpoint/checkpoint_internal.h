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

/* The name of a dtype as safetensors spell it, NULL: no dtype; and the dtype of
 * such a name, NONE: no such name. */
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
    unsigned char *block; /* the block that is being filled */
    size_t used;
    const char *name;
    uint64_t bytes, flushed;       /* written; given to the disk */
    bool directly, never_directly; /* past the system's cache */
};
int checkpoint_stream_open(struct checkpoint_stream *x, int directory,
                           const char *name, char *why);
/* The place where up to *room bytes may be put; and the call that says how many
 * were. */
unsigned char *checkpoint_stream_room(struct checkpoint_stream *x,
                                      size_t *room);
int checkpoint_stream_filled(struct checkpoint_stream *x, size_t bytes,
                             char *why);
int checkpoint_stream_add(struct checkpoint_stream *x, const void *p,
                          uint64_t bytes, char *why);
/* Flushes to the disk and fills in *out with name, size and hash; the file is
 * closed in any case. */
int checkpoint_stream_close(struct checkpoint_stream *x, int status,
                            struct checkpoint_file *out, char *why);

/* Opens a regular file of a directory, which is no link. -1: refused, *status
 * says why. */
int checkpoint_open_file(int directory, const char *name, struct stat *about,
                         int *status, char *why);
int checkpoint_pread(int fd, const char *name, uint64_t at, void *to,
                     uint64_t bytes, char *why);
int checkpoint_pwrite(int fd, const char *name, uint64_t at, const void *p,
                      uint64_t bytes, char *why);
/* Fills in *out with a file's name, size and hash. */
int checkpoint_hash_file(int directory, const char *name,
                         struct checkpoint_file *out, char *why);
void checkpoint_hash(const void *p, size_t bytes,
                     unsigned char sha[CHECKPOINT_SHA_BYTES]);
void checkpoint_hex(const unsigned char sha[CHECKPOINT_SHA_BYTES],
                    char hex[2 * CHECKPOINT_SHA_BYTES + 1]);
/* Whether a name has only letters, digits, dots, hyphens and underscores, and
 * no dot first, so that it cannot lead out of its directory. */
bool checkpoint_plain_name(const char *name);

/* ---- checkpoint_place.c: where one is written ---- */

struct checkpoint_place {
    int parent, directory; /* descriptors, or -1 */
    uint64_t number;
    char partial[32], final[32]; /* names in the parent */
};
/* The first rank makes the place, and the others join it. */
int checkpoint_place_make(struct checkpoint_place *p, const char *directory,
                          char *why);
int checkpoint_place_join(struct checkpoint_place *p, const char *directory,
                          uint64_t number, char *why);
/* Renames the place to the checkpoint. */
int checkpoint_place_publish(struct checkpoint_place *p, char *why);
/* The first removes what was written, and closes; the second only closes. */
void checkpoint_place_remove(struct checkpoint_place *p);
void checkpoint_place_close(struct checkpoint_place *p);

/* The number behind a prefix; 0: none. */
uint64_t checkpoint_place_number(const char *name, const char *prefix);
void checkpoint_place_name(struct checkpoint_place *p, uint64_t number);
/* Opens a directory; returns a descriptor, or -1. */
int checkpoint_open_directory(int parent, const char *name, char *why);
/* Removes a directory's files, then the directory itself. Directories in it,
 * and files that cannot be removed, stay, and so does it then. 0, or -1 and the
 * first errno. */
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

/* checkpoint_table.c: compares names, given their addresses (for qsort); and
 * all names of a table, ascending. The array is the caller's to free; NULL: no
 * memory. */
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
/* Creates all files, with their heads and at their full length. */
int checkpoint_full_create(const struct checkpoint_full *f, int directory,
                           char *why);
/* Writes the Hugging Face index of parameters (0) or states (1), if they have
 * several files. *wrote: whether it did. */
int checkpoint_full_index(const struct checkpoint_full *f,
                          const struct checkpoint_table *table, int directory,
                          uint32_t which, bool *wrote,
                          struct checkpoint_file *out, char *why);

/* ---- checkpoint_shards.c: the files of a rank in the sharded form ---- */

/* {"name":{"saved_offsets":[...]}, ...}: says where each of these tensors
 * begins in the whole one; box NULL: at 0. The caller's to free; NULL: out of
 * memory. */
char *checkpoint_sharding_info(const struct safetensors_tensor *t, uint32_t n,
                               const struct checkpoint_box *const *box);
/* Appends what it wrote to file[*n ...], which has room for `room`. */
int checkpoint_write_shards(int directory, const struct checkpoint_table *table,
                            const struct checkpoint_source *source,
                            uint32_t shard, struct checkpoint_file *file,
                            uint32_t room, uint32_t *n, char *why);

#endif
