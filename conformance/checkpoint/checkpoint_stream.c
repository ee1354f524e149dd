/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_stream.c - files of a checkpoint: written once, from front to
 * back, and hashed on the way; read where they are asked for.
 */
#include "checkpoint_hasher.h"
#include "checkpoint_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    FLUSH_BYTES = 8 << 20,
    AHEAD_BYTES = 16 << 20,
    SMALL_BYTES = 16384 /* not worth a thread and its blocks */
};

int checkpoint_stream_open(struct checkpoint_stream *x, int directory,
                           const char *name, char *why)
{
    *x = (struct checkpoint_stream){.fd = -1, .name = name};
    x->hasher = checkpoint_hasher_open();
    if (!x->hasher) {
        return checkpoint_no_memory(why);
    }
    x->fd = openat(directory, name,
                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return x->fd < 0 ? checkpoint_refuse_system(why, name, "cannot create")
                     : FSDP_OK;
}

static int write_all(int fd, const char *name, const unsigned char *p,
                     uint64_t bytes, char *why)
{
    while (bytes > 0) {
        ssize_t put = write(fd, p, bytes);

        if (put >= 0) {
            p += put;
            bytes -= (uint64_t)put;
        } else if (errno != EINTR) {
            return checkpoint_refuse_system(why, name, "cannot write");
        }
    }
    return FSDP_OK;
}

/* Switches O_DIRECT on, so that whole blocks go to the disk as they are, or
 * off, so that pieces of any size go through the system's cache. False: this
 * disk does not allow it. */
static bool go_directly(struct checkpoint_stream *x, bool directly)
{
    int flags = fcntl(x->fd, F_GETFL);
    int wanted = directly ? flags | O_DIRECT : flags & ~O_DIRECT;

    if (flags < 0 || (flags != wanted && fcntl(x->fd, F_SETFL, wanted) != 0)) {
        return false;
    }
    x->directly = directly;
    return true;
}

/* Blocks avoid the cache, where every byte would be copied once more, which
 * takes as long as hashing it; and saved data are not read again soon. */
static int write_block(struct checkpoint_stream *x, const unsigned char *p,
                       size_t n, char *why)
{
    bool whole = n == CHECKPOINT_BLOCK && !x->never_directly;

    if (whole != x->directly && !go_directly(x, whole)) {
        x->never_directly = true;
    }
    if (x->directly) {
        ssize_t put = write(x->fd, p, n);
        if (put == (ssize_t)n) {
            return FSDP_OK;
        }
        if (put < 0 && errno != EINVAL && errno != EINTR) {
            return checkpoint_refuse_system(why, x->name, "cannot write");
        }
        /* The disk refused this block: writes the rest in the usual way. */
        p += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
        x->never_directly = true;
        if (!go_directly(x, false)) {
            return checkpoint_refuse_system(why, x->name, "cannot write");
        }
    }
    return write_all(x->fd, x->name, p, n, why);
}

/* Hands a block to the hasher, and writes it to the file. */
static int pass_on(struct checkpoint_stream *x, char *why)
{
    const unsigned char *p = x->block;
    size_t n = x->used;

    x->block = NULL;
    x->used = 0;
    checkpoint_hasher_push(x->hasher, n);
    FSDP_TRY(write_block(x, p, n, why));
    x->bytes += n;
    if (x->never_directly && x->bytes - x->flushed >= FLUSH_BYTES) {
        /* A hint: fsync at the end is what counts. */
        (void)sync_file_range(x->fd, (off64_t)x->flushed,
                              (off64_t)(x->bytes - x->flushed),
                              SYNC_FILE_RANGE_WRITE);
        x->flushed = x->bytes;
    }
    return FSDP_OK;
}

unsigned char *checkpoint_stream_room(struct checkpoint_stream *x, size_t *room)
{
    if (!x->block) {
        x->block = checkpoint_hasher_block(x->hasher);
    }
    *room = CHECKPOINT_BLOCK - x->used;
    return x->block + x->used;
}

int checkpoint_stream_filled(struct checkpoint_stream *x, size_t bytes,
                             char *why)
{
    x->used += bytes;
    return x->used == CHECKPOINT_BLOCK ? pass_on(x, why) : FSDP_OK;
}

int checkpoint_stream_add(struct checkpoint_stream *x, const void *p,
                          uint64_t bytes, char *why)
{
    const unsigned char *from = p;

    while (bytes > 0) {
        size_t n;
        unsigned char *to = checkpoint_stream_room(x, &n);
        n = bytes < n ? bytes : n;
        memcpy(to, from, n);
        from += n;
        bytes -= n;
        FSDP_TRY(checkpoint_stream_filled(x, n, why));
    }
    return FSDP_OK;
}

int checkpoint_stream_close(struct checkpoint_stream *x, int status,
                            struct checkpoint_file *out, char *why)
{
    memset(out, 0, sizeof(*out));
    if (status == FSDP_OK && x->used > 0) {
        status = pass_on(x, why);
    }
    if (status == FSDP_OK && fsync(x->fd) != 0) {
        status = checkpoint_refuse_system(why, x->name, "cannot flush");
    }
    if (x->fd >= 0 && close(x->fd) != 0 && status == FSDP_OK) {
        status = checkpoint_refuse_system(why, x->name, "cannot close");
    }
    if (x->hasher && !checkpoint_hasher_close(x->hasher, out->sha256) &&
        status == FSDP_OK) {
        status = checkpoint_refuse(why, FSDP_ERR_INTERNAL, "SHA-256 failed");
    }
    snprintf(out->name, sizeof(out->name), "%s", x->name);
    out->bytes = x->bytes;
    *x = (struct checkpoint_stream){.fd = -1};
    return status;
}

int checkpoint_open_file(int directory, const char *name, struct stat *about,
                         int *status, char *why)
{
    /* O_NONBLOCK, so as not to wait for the other end of a FIFO; it means
     * nothing for a file. */
    int fd =
        openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0) {
        *status = checkpoint_refuse_system(why, name, "cannot open");
        return -1;
    }
    if (fstat(fd, about) != 0) {
        *status = checkpoint_refuse_system(why, name, "cannot look at");
    } else if (!S_ISREG(about->st_mode)) {
        *status =
            checkpoint_refuse(why, FSDP_ERR_IO, "%s: not a regular file", name);
    } else {
        return fd;
    }
    (void)close(fd);
    return -1;
}

int checkpoint_pread(int fd, const char *name, uint64_t at, void *to,
                     uint64_t bytes, char *why)
{
    unsigned char *p = to;

    while (bytes > 0) {
        ssize_t got = pread(fd, p, bytes, (off_t)at);

        if (got > 0) {
            p += got;
            at += (uint64_t)got;
            bytes -= (uint64_t)got;
        } else if (got == 0) {
            return checkpoint_refuse(
                why, FSDP_ERR_FORMAT,
                "%s: ends at byte %llu, %llu more were expected", name,
                (unsigned long long)at, (unsigned long long)bytes);
        } else if (errno != EINTR) {
            return checkpoint_refuse_system(why, name, "cannot read");
        }
    }
    return FSDP_OK;
}

int checkpoint_pwrite(int fd, const char *name, uint64_t at, const void *p,
                      uint64_t bytes, char *why)
{
    const unsigned char *b = p;

    while (bytes > 0) {
        ssize_t put = pwrite(fd, b, bytes, (off_t)at);

        if (put >= 0) {
            b += put;
            at += (uint64_t)put;
            bytes -= (uint64_t)put;
        } else if (errno != EINTR) {
            return checkpoint_refuse_system(why, name, "cannot write");
        }
    }
    return FSDP_OK;
}

/* Hashes a file; while one block is hashed, the next ones are read from the
 * disk. */
static int hash_open(int fd, struct checkpoint_file *out, char *why)
{
    struct checkpoint_hasher *h;
    int status = FSDP_OK;
    uint64_t n;

    if (out->bytes <= SMALL_BYTES) {
        unsigned char small[SMALL_BYTES];
        FSDP_TRY(checkpoint_pread(fd, out->name, 0, small, out->bytes, why));
        checkpoint_hash(small, out->bytes, out->sha256);
        return FSDP_OK;
    }
    h = checkpoint_hasher_open();
    if (!h) {
        return checkpoint_no_memory(why);
    }
    for (uint64_t at = 0; status == FSDP_OK && at < out->bytes; at += n) {
        if (at % AHEAD_BYTES == 0) {
            (void)posix_fadvise(fd, (off_t)at, (off_t)2 * AHEAD_BYTES,
                                POSIX_FADV_WILLNEED);
        }
        n = out->bytes - at;
        n = n < CHECKPOINT_BLOCK ? n : CHECKPOINT_BLOCK;
        status = checkpoint_pread(fd, out->name, at, checkpoint_hasher_block(h),
                                  n, why);
        if (status == FSDP_OK) {
            checkpoint_hasher_push(h, n);
        }
    }
    if (!checkpoint_hasher_close(h, out->sha256) && status == FSDP_OK) {
        status = checkpoint_refuse(why, FSDP_ERR_INTERNAL, "SHA-256 failed");
    }
    return status;
}

int checkpoint_hash_file(int directory, const char *name,
                         struct checkpoint_file *out, char *why)
{
    struct stat about;
    int status = FSDP_OK;
    int fd = checkpoint_open_file(directory, name, &about, &status, why);

    memset(out, 0, sizeof(*out));
    if (fd < 0) {
        return status;
    }
    snprintf(out->name, sizeof(out->name), "%s", name);
    out->bytes = (uint64_t)about.st_size;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    status = hash_open(fd, out, why);
    (void)close(fd);
    return status;
}

void checkpoint_hash(const void *p, size_t bytes,
                     unsigned char sha[CHECKPOINT_SHA_BYTES])
{
    memset(sha, 0, CHECKPOINT_SHA_BYTES);
    (void)EVP_Digest(p, bytes, sha, NULL, EVP_sha256(), NULL);
}

void checkpoint_hex(const unsigned char sha[CHECKPOINT_SHA_BYTES],
                    char hex[2 * CHECKPOINT_SHA_BYTES + 1])
{
    for (uint32_t i = 0; i < CHECKPOINT_SHA_BYTES; i++) {
        snprintf(hex + (size_t)2 * i, 3, "%02x", sha[i]);
    }
}

bool checkpoint_plain_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < CHECKPOINT_FILE_NAME_BYTES && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == n;
}
