/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_traffic.h - counts of one rank's collectives. The carrier and the
 * recorder count them alike, so that the two can be compared.
 */
#ifndef FSDP_CTS_RECORD_TRAFFIC_H
#define FSDP_CTS_RECORD_TRAFFIC_H

#include <fsdp/comm.h>
#include <stdint.h>
#include <string.h>

enum {
    /* more than any case needs; what has no row left is counted in `order`
     * alone */
    RECORD_TRAFFIC_ROWS = 32,
    /* of the first collectives: enough for all named cases */
    RECORD_PAYLOADS = 8192
};

struct record_traffic {
    /* out-of-band exchanges: calls, and this rank's bytes */
    uint64_t exchanges, exchanged;
    uint64_t amid; /* how many of these came between the first and the last
                      reduction */
    /* Not written: how many exchanges came before the first reduction, and how
     * many reductions there were. */
    uint64_t before, reductions;
    uint64_t mismatches; /* collectives and exchanges in which the ranks' calls
                            disagreed: each rank is told what the others said */
    uint64_t order;      /* a hash of all collectives, in order */
    uint32_t n_rows;     /* in the order in which each kind of row came first */
    struct record_traffic_row {
        uint32_t kind, dim, dtype;
        /* of all these calls; n counts elements, as comm.h does */
        uint64_t calls, n;
    } row[RECORD_TRAFFIC_ROWS];
};

/* What a rank has communicated, as the carrier of its messages knows it. For
 * each of its first collectives, in order,
 *
 *     payload  a hash of the bytes that others get from it
 *              (record_payload_add); of an all-reduce those that it is reduced
 *              from;
 *     digest   a sum of what each element that others get is worth at its place
 *              (record_digest_add). Shards' sums add up to the unit's, and what
 *              is +0 adds nothing, so that who knows values and places can tell
 *              it without the message. */
struct record_carried {
    struct record_traffic traffic;
    uint32_t n; /* how many payloads: RECORD_PAYLOADS at most */
    uint64_t payload[RECORD_PAYLOADS], digest[RECORD_PAYLOADS];
};

/* What was recorded and what was carried, of a rank whose record another
 * process wrote down while the rank ran. */
struct record_account {
    uint32_t known; /* 0: nothing was counted */
    uint32_t own;   /* the engine brings its own communicator, through which the
                       recorded collectives went */
    struct record_traffic recorded, carried;
    /* lengths of the lists of what was carried */
    uint32_t n_payloads, n_digests;
    uint64_t *payload, *digest;
};

/* Copies the part of the arrays that is filled: most of the struct is empty. */
static inline void record_carried_copy(struct record_carried *to,
                                       const struct record_carried *from)
{
    to->traffic = from->traffic;
    to->n = from->n < RECORD_PAYLOADS ? from->n : RECORD_PAYLOADS;
    memcpy(to->payload, from->payload, to->n * sizeof(to->payload[0]));
    memcpy(to->digest, from->digest, to->n * sizeof(to->digest[0]));
}

static inline uint64_t record_traffic_mix(uint64_t order, uint64_t x)
{
    order = (order ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return order ^ (order >> 29);
}

/* Adds bytes to a hash, which begins as 0. The same bytes give the same hash in
 * whatever pieces they come, if all pieces but the last are whole words. */
static inline uint64_t record_payload_add(uint64_t hash, const void *bytes,
                                          uint64_t n)
{
    const unsigned char *const p = (const unsigned char *)bytes;

    for (uint64_t i = 0; i < n; i += sizeof(uint64_t)) {
        const uint64_t rest = n - i;
        uint64_t word = 0;

        memcpy(&word, p + i, rest < sizeof(word) ? rest : sizeof(word));
        hash = record_traffic_mix(hash, word + 1);
    }
    return hash;
}

/* The hash of a message with a part for each of several ranks: joins the hashes
 * of the parts, in their order. */
static inline uint64_t record_payload_join(uint64_t all, uint64_t part)
{
    return record_traffic_mix(all, part + 1);
}

/* The weight that an element's bits have in a digest at this place. */
static inline uint64_t record_digest_weight(uint64_t place)
{
    const uint64_t x = (place + 1) * UINT64_C(0x9e3779b97f4a7c15);

    return (x ^ (x >> 29)) | 1;
}

/* Adds elements [place, place + n) of a message to a digest: the bits of each
 * element times the weight of its place, so that +0 adds nothing. An element
 * has `bytes` bytes, 8 at most. */
static inline uint64_t record_digest_add(uint64_t sum, uint64_t place,
                                         const void *values, uint64_t n,
                                         uint32_t bytes)
{
    const unsigned char *const p = (const unsigned char *)values;

    if (bytes == sizeof(uint32_t)) { /* the most frequent case */
        for (uint64_t i = 0; i < n; i++) {
            uint32_t x;

            memcpy(&x, p + i * sizeof(x), sizeof(x));
            sum += x * record_digest_weight(place + i);
        }
        return sum;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t x = 0;

        memcpy(&x, p + i * bytes, bytes <= sizeof(x) ? bytes : sizeof(x));
        sum += x * record_digest_weight(place + i);
    }
    return sum;
}

static inline void record_traffic_add(struct record_traffic *t, uint32_t kind,
                                      uint32_t dim, uint32_t dtype,
                                      uint32_t fold, uint32_t root, uint64_t n)
{
    const uint64_t told[] = {kind, dim, dtype, fold, root, n};
    uint32_t i = 0;

    if (kind == FSDP_REDUCE_SCATTER || kind == FSDP_ALL_REDUCE) {
        t->before = t->reductions++ == 0 ? t->exchanges : t->before;
        t->amid = t->exchanges - t->before;
    }
    for (uint32_t k = 0; k < sizeof(told) / sizeof(told[0]); k++) {
        t->order = record_traffic_mix(t->order, told[k] + 1);
    }
    while (i < t->n_rows && (t->row[i].kind != kind || t->row[i].dim != dim ||
                             t->row[i].dtype != dtype)) {
        i++;
    }
    if (i == RECORD_TRAFFIC_ROWS) {
        return;
    }
    if (i == t->n_rows) {
        t->row[t->n_rows++] =
            (struct record_traffic_row){.kind = kind, dim, dtype, 0, 0};
    }
    t->row[i].calls++;
    t->row[i].n += n;
}

static inline void record_traffic_exchange(struct record_traffic *t,
                                           uint64_t bytes)
{
    t->exchanges++;
    t->exchanged += bytes;
}

#endif
