/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_traffic.h - collectives of one rank, counted: by whoever carries them
 * and by whoever records them, alike, so that the two can be compared.
 */
#ifndef FSDP_CTS_RECORD_TRAFFIC_H
#define FSDP_CTS_RECORD_TRAFFIC_H

#include <fsdp/comm.h>
#include <stdint.h>
#include <string.h>

enum {
    RECORD_TRAFFIC_ROWS = 32, /* more than any case has; the rest is in `order`
                                 alone */
    RECORD_PAYLOADS = 8192    /* the first ones: as all named cases have */
};

struct record_traffic {
    uint64_t exchanges, exchanged; /* out of band: calls, bytes of a rank */
    uint64_t amid; /* of them between the first reduction and the last one */
    /* Not written: exchanges before the first reduction, and reductions. */
    uint64_t before, reductions;
    uint64_t mismatches; /* calls of either kind in which ranks disagreed: each
                            is told what the others have said */
    uint64_t order;      /* a hash of all collectives, in order */
    uint32_t n_rows;     /* in the order in which they came first */
    struct record_traffic_row {
        uint32_t kind, dim, dtype;
        uint64_t calls, n; /* n: elements, as in comm.h, of all calls */
    } row[RECORD_TRAFFIC_ROWS];
};

/* What a rank has communicated, as somebody else knows it who carries it. Of
 * its first collectives, in order,
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
    uint32_t n; /* of those: RECORD_PAYLOADS at most */
    uint64_t payload[RECORD_PAYLOADS], digest[RECORD_PAYLOADS];
};

/* Of a rank whose record crossed to another process as it happened. */
struct record_account {
    uint32_t known; /* 0: nobody has counted */
    uint32_t own;   /* the engine brings a communicator: what is recorded went
                       by that */
    struct record_traffic recorded, carried;
    uint32_t n_payloads, n_digests; /* of what was carried */
    uint64_t *payload, *digest;
};

/* Most of it is empty: what is not there is not copied. */
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

/* Goes on with the bytes of one that is `hash` so far, and began with 0: of the
 * same bytes it is the same, if all pieces but the last are whole words. */
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

/* The whole of what is for several others: a part each, in their order. */
static inline uint64_t record_payload_join(uint64_t all, uint64_t part)
{
    return record_traffic_mix(all, part + 1);
}

/* What a bit of an element is worth, by its place. */
static inline uint64_t record_digest_weight(uint64_t place)
{
    const uint64_t x = (place + 1) * UINT64_C(0x9e3779b97f4a7c15);

    return (x ^ (x >> 29)) | 1;
}

/* Adds elements [place, place + n) of a message to a digest: the bits of each,
 * times a weight of its place, so that +0 adds nothing. An element has `bytes`
 * bytes, at most 8. */
static inline uint64_t record_digest_add(uint64_t sum, uint64_t place,
                                         const void *values, uint64_t n,
                                         uint32_t bytes)
{
    const unsigned char *const p = (const unsigned char *)values;

    if (bytes == sizeof(uint32_t)) { /* which is most of what there is */
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
