/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_hasher.c - a ring of blocks between the thread that writes and the
 * thread that hashes.
 */
#include "checkpoint_hasher.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    BLOCKS = 4
};

struct checkpoint_hasher {
    EVP_MD_CTX *sha;
    unsigned char *block; /* [BLOCKS] */
    size_t bytes[BLOCKS];
    uint64_t pushed, hashed; /* blocks so far; guarded once there is a thread */
    bool ends, failed, threaded;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct checkpoint_hasher *checkpoint_hasher_open(void)
{
    struct checkpoint_hasher *h = calloc(1, sizeof(*h));

    if (!h) {
        return NULL;
    }
    h->sha = EVP_MD_CTX_new();
    /* Blocks begin on pages, so that a disk may take them as they are
     * (O_DIRECT). */
    h->block = aligned_alloc(4096, (size_t)BLOCKS * CHECKPOINT_BLOCK);
    if (!h->sha || !h->block ||
        EVP_DigestInit_ex(h->sha, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(h->sha);
        free(h->block);
        free(h);
        return NULL;
    }
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_cond_init(&h->changed, NULL);
    return h;
}

static void hash(struct checkpoint_hasher *h, uint64_t i)
{
    const unsigned char *p = h->block + i % BLOCKS * CHECKPOINT_BLOCK;

    if (EVP_DigestUpdate(h->sha, p, h->bytes[i % BLOCKS]) != 1) {
        h->failed = true;
    }
}

static void *work(void *context)
{
    struct checkpoint_hasher *h = context;

    (void)pthread_mutex_lock(&h->lock);
    for (;;) {
        while (h->hashed == h->pushed && !h->ends) {
            (void)pthread_cond_wait(&h->changed, &h->lock);
        }
        if (h->hashed == h->pushed) {
            break;
        }
        (void)pthread_mutex_unlock(&h->lock);
        hash(h, h->hashed); /* no other thread changes `hashed` */
        (void)pthread_mutex_lock(&h->lock);
        h->hashed++;
        (void)pthread_cond_signal(&h->changed);
    }
    (void)pthread_mutex_unlock(&h->lock);
    return NULL;
}

unsigned char *checkpoint_hasher_block(struct checkpoint_hasher *h)
{
    uint64_t i;

    (void)pthread_mutex_lock(&h->lock);
    while (h->threaded && h->pushed - h->hashed >= BLOCKS - 1) {
        (void)pthread_cond_wait(&h->changed, &h->lock);
    }
    i = h->pushed;
    (void)pthread_mutex_unlock(&h->lock);
    return h->block + i % BLOCKS * CHECKPOINT_BLOCK;
}

void checkpoint_hasher_push(struct checkpoint_hasher *h, size_t bytes)
{
    (void)pthread_mutex_lock(&h->lock);
    h->bytes[h->pushed++ % BLOCKS] = bytes;
    if (!h->threaded && h->pushed == 2) {
        h->threaded = pthread_create(&h->thread, NULL, work, h) == 0;
    }
    if (h->threaded) {
        (void)pthread_cond_signal(&h->changed);
    }
    (void)pthread_mutex_unlock(&h->lock);
    /* If no thread could be started, hashes here, all but a first block. */
    while (!h->threaded && h->pushed > 1 && h->hashed < h->pushed) {
        hash(h, h->hashed++);
    }
}

bool checkpoint_hasher_close(struct checkpoint_hasher *h,
                             unsigned char sha[CHECKPOINT_SHA_BYTES])
{
    bool good;

    (void)pthread_mutex_lock(&h->lock);
    h->ends = true;
    (void)pthread_cond_signal(&h->changed);
    (void)pthread_mutex_unlock(&h->lock);
    if (h->threaded) {
        (void)pthread_join(h->thread, NULL);
    }
    while (h->hashed < h->pushed) {
        hash(h, h->hashed++);
    }
    good = !h->failed && EVP_DigestFinal_ex(h->sha, sha, NULL) == 1;
    EVP_MD_CTX_free(h->sha);
    (void)pthread_mutex_destroy(&h->lock);
    (void)pthread_cond_destroy(&h->changed);
    free(h->block);
    free(h);
    return good;
}
