/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_stream.c - files of a checkpoint: written once, from front to
 * back, and hashed on the way; read where they are asked for. The system is
 * told early to begin with the writing, so that it goes on behind the hashing.
 */
#include "checkpoint_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FLUSH_BYTES = 8 << 20,
    HASH_BYTES = 1 << 20
};

int checkpoint_stream_open(struct checkpoint_stream *x, int directory,
                           const char *name, char *why)
{
    *x = (struct checkpoint_stream){.fd = -1, .name = name};
    x->sha = EVP_MD_CTX_new();
    if (!x->sha || EVP_DigestInit_ex(x->sha, EVP_sha256(), NULL) != 1) {
        return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
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

int checkpoint_stream_add(struct checkpoint_stream *x, const void *p,
                          uint64_t bytes, char *why)
{
    FSDP_TRY(write_all(x->fd, x->name, p, bytes, why));
    if (EVP_DigestUpdate(x->sha, p, bytes) != 1) {
        return checkpoint_refuse(why, FSDP_ERR_INTERNAL, "SHA-256 failed");
    }
    x->bytes += bytes;
    if (x->bytes - x->flushed >= FLUSH_BYTES) {
        /* A hint: fsync at the end is what counts. */
        (void)sync_file_range(x->fd, (off64_t)x->flushed,
                              (off64_t)(x->bytes - x->flushed),
                              SYNC_FILE_RANGE_WRITE);
        x->flushed = x->bytes;
    }
    return FSDP_OK;
}

int checkpoint_stream_close(struct checkpoint_stream *x, int status,
                            struct checkpoint_file *out, char *why)
{
    memset(out, 0, sizeof *out);
    if (status == FSDP_OK && fsync(x->fd) != 0) {
        status = checkpoint_refuse_system(why, x->name, "cannot flush");
    }
    if (x->fd >= 0 && close(x->fd) != 0 && status == FSDP_OK) {
        status = checkpoint_refuse_system(why, x->name, "cannot close");
    }
    if (status == FSDP_OK &&
        EVP_DigestFinal_ex(x->sha, out->sha256, NULL) != 1) {
        status = checkpoint_refuse(why, FSDP_ERR_INTERNAL, "SHA-256 failed");
    }
    (void)snprintf(out->name, sizeof out->name, "%s", x->name);
    out->bytes = x->bytes;
    EVP_MD_CTX_free(x->sha);
    *x = (struct checkpoint_stream){.fd = -1};
    return status;
}

int checkpoint_open_file(int directory, const char *name, struct stat *about,
                         int *status, char *why)
{
    /* Not to wait for the other end of a FIFO; no matter to a file. */
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

static int hash_open(int fd, struct checkpoint_file *out, char *why)
{
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    unsigned char *buffer = malloc(HASH_BYTES);
    int status = FSDP_OK;

    if (!sha || !buffer || EVP_DigestInit_ex(sha, EVP_sha256(), NULL) != 1) {
        status = checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
    }
    for (uint64_t at = 0; status == FSDP_OK && at < out->bytes;) {
        uint64_t n = out->bytes - at;
        n = n < HASH_BYTES ? n : HASH_BYTES;
        status = checkpoint_pread(fd, out->name, at, buffer, n, why);
        if (status == FSDP_OK && EVP_DigestUpdate(sha, buffer, n) != 1) {
            status =
                checkpoint_refuse(why, FSDP_ERR_INTERNAL, "SHA-256 failed");
        }
        at += n;
    }
    if (status == FSDP_OK && EVP_DigestFinal_ex(sha, out->sha256, NULL) != 1) {
        status = checkpoint_refuse(why, FSDP_ERR_INTERNAL, "SHA-256 failed");
    }
    free(buffer);
    EVP_MD_CTX_free(sha);
    return status;
}

int checkpoint_hash_file(int directory, const char *name,
                         struct checkpoint_file *out, char *why)
{
    struct stat about;
    int status = FSDP_OK;
    int fd = checkpoint_open_file(directory, name, &about, &status, why);

    memset(out, 0, sizeof *out);
    if (fd < 0) {
        return status;
    }
    (void)snprintf(out->name, sizeof out->name, "%s", name);
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
        (void)snprintf(hex + (size_t)2 * i, 3, "%02x", sha[i]);
    }
}

bool checkpoint_plain_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < CHECKPOINT_FILE_NAME_BYTES && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == n;
}
