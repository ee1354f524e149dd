/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_hash.c - SHA-256 of bytes and of files, for lists of files.
 */
#include "record/record_internal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

static int hex_of(EVP_MD_CTX *context, char hex[65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (EVP_DigestFinal_ex(context, digest, NULL) != 1) {
        return FSDP_ERR_NOMEM;
    }
    for (size_t i = 0; i < 32; i++) {
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
    return FSDP_OK;
}

int record_hash(const void *p, size_t bytes, char hex[65])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int status = FSDP_ERR_NOMEM;

    if (context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
        EVP_DigestUpdate(context, p, bytes) == 1) {
        status = hex_of(context, hex);
    }
    EVP_MD_CTX_free(context);
    return status;
}

int record_hash_file(int fd, char hex[65], uint64_t *bytes)
{
    unsigned char data[65536];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int status = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1
                     ? FSDP_OK
                     : FSDP_ERR_NOMEM;

    *bytes = 0;
    while (status == FSDP_OK) {
        const ssize_t n = read(fd, data, sizeof(data));

        if (n == 0) {
            status = hex_of(context, hex);
            break;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            status = FSDP_ERR_IO;
        } else if (EVP_DigestUpdate(context, data, (size_t)n) != 1) {
            status = FSDP_ERR_NOMEM;
        } else {
            *bytes += (uint64_t)n;
        }
    }
    EVP_MD_CTX_free(context);
    return status;
}
