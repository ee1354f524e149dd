/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.h - read and write safetensors files, the form in which tensors
 * travel between engines, recorders and the judge.
 *
 * A file is: the length N of the header (8 bytes, little endian), N bytes of
 * JSON, then the data.  The JSON maps each name to its dtype, shape and place
 * in the data; an optional "__metadata__" maps strings to strings.  The places
 * cover the data exactly: from 0, no hole, no overlap, nothing left over.
 *
 * The reader takes nothing on trust: a file that departs from the format in
 * any way is refused, and the reason says where.  It is stricter than some
 * readers: a tensor has at most 8 dimensions, an entry has no field besides
 * the three, strings hold no U+0000, the header is padded with spaces only,
 * and the non-zero extents of a shape must have a product below 2^64 even
 * where another extent is zero.
 *
 * The writer is canonical: the same tensors and metadata give the same bytes,
 * whatever the order of the arguments.  Tensors go by dtype (in the format's
 * order, widest first) and then by name, metadata by key, and spaces pad the
 * header to a multiple of 8 bytes, so that every tensor is aligned to its
 * element.  The reference implementation writes the same bytes where there is
 * at most one pair of metadata (it does not sort them).
 *
 * Wherever a function takes WHY and WHY_BYTES: on failure it leaves there one
 * line of printable ASCII, ended with a NUL and cut where it does not fit; on
 * success it leaves the buffer alone.  WHY may be NULL if WHY_BYTES is 0.
 *
 * The data is little endian, as is every host this is built for.
 */
#ifndef FSDP_CTS_SAFETENSORS_H
#define FSDP_CTS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SAFETENSORS_MAX_DIMS = 8
};

/*
 * One tensor, dense and in C order.  Nothing here is owned: given to the
 * writer, it points into the caller's memory; had from the reader, it lives
 * until safetensors_close().
 */
struct safetensors_tensor {
    const char *name;  /* UTF-8; any string but "__metadata__" */
    const char *dtype; /* as the format spells it: "F32", "BF16", "I64", ... */
    uint32_t n_dims;   /* 0 for a scalar, which has one element */
    uint64_t shape[SAFETENSORS_MAX_DIMS]; /* extents may be 0 */
    const void *data; /* from the reader never NULL, and see safetensors_open */
    uint64_t bytes;   /* exactly what dtype and shape come to */
};

struct safetensors_meta {
    const char *key;
    const char *value;
};

/* An open file.  It does not change, so threads may read it together. */
struct safetensors_file;

/* The bits of one element of DTYPE (4 to 64), or 0 if there is no such dtype.
 */
unsigned safetensors_dtype_bits(const char *dtype);

/*
 * Writes the N tensors T and the N_META pairs META to PATH.  A reader of PATH
 * sees the old file or all of the new one, never a part: the bytes go to
 * PATH.partial, which is then renamed (and removed if anything fails).  Two
 * writers of one PATH must not run at the same time.  With SYNC the file and
 * its directory are also flushed, so that the new file survives a power cut.
 *
 * FSDP_ERR_INVALID: the arguments do not make a file (a name twice, bytes that
 * do not fit the shape, text that is not UTF-8, ...); nothing was touched.
 * FSDP_ERR_IO: the system refused; PATH is as it was, unless only the last
 * flush of the directory failed.  FSDP_ERR_NOMEM.
 */
int safetensors_write(const char *path, const struct safetensors_tensor *t,
                      size_t n, const struct safetensors_meta *meta,
                      size_t n_meta, bool sync, char *why, size_t why_bytes);

/*
 * Reads the whole of PATH, which must be a regular file, into memory.  It is
 * not mapped: a mapped file that shrinks kills its reader.  The header is
 * checked before any memory is taken for the data.
 *
 * The data begins on a 64-byte boundary in memory, so a tensor of a file in
 * canonical order is aligned to its element.  Other files may hold tensors at
 * odd offsets; use memcpy where a file may come from elsewhere.
 *
 * A file of more than SAFETENSORS_MAX_BYTES is refused before it is read: all
 * of it is held in memory.
 *
 * On success *OUT is to be closed with safetensors_close(); otherwise *OUT is
 * NULL.  FSDP_ERR_IO: the file could not be read, or changed its size
 * meanwhile.  FSDP_ERR_FORMAT: it is not a safetensors file.  FSDP_ERR_NOMEM;
 * where memory gives out inside a string of the header, the JSON parser cannot
 * tell, and the file is refused with FSDP_ERR_FORMAT.
 */
#define SAFETENSORS_MAX_BYTES ((uint64_t)1 << 36)
int safetensors_open(const char *path, struct safetensors_file **out, char *why,
                     size_t why_bytes);

/*
 * The same for a file's BYTES bytes at P.  The data is not copied: P must
 * outlive *OUT, and the tensors are aligned as P has them.
 */
int safetensors_open_memory(const void *p, size_t bytes,
                            struct safetensors_file **out, char *why,
                            size_t why_bytes);

size_t safetensors_count(const struct safetensors_file *file);

/* Tensor I in the order of the data in the file; NULL past the last. */
const struct safetensors_tensor *
safetensors_at(const struct safetensors_file *file, size_t i);

/* The tensor of that name, or NULL.  A binary search. */
const struct safetensors_tensor *
safetensors_find(const struct safetensors_file *file, const char *name);

/* The metadata's value for KEY, or NULL. */
const char *safetensors_meta(const struct safetensors_file *file,
                             const char *key);

/* Pair I of the metadata in the order of the keys; NULL past the last. */
const struct safetensors_meta *
safetensors_meta_at(const struct safetensors_file *file, size_t i);

/* Frees FILE and all that was had from it.  NULL is allowed. */
void safetensors_close(struct safetensors_file *file);

#ifdef __cplusplus
}
#endif

#endif
