/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_body_testing.c - every collective against scalar loops; see
 * world_body_testing.h.
 */
#include "world_body_testing.h"

#include <fsdp/arith/bits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the body with a failure that names the line. */
#define CHECK(condition)                              \
    do {                                              \
        if (!(condition))                             \
            return flunk(rank, __LINE__, #condition); \
    } while (0)

/* Behind every buffer; no collective may write there. */
static const float fence = -77.25f;

struct scene {
    struct world_rank *rank;
    uint32_t dim;
    uint32_t extent, me, first, stride;
    uint64_t n;
};

static int flunk(struct world_rank *rank, int line, const char *what)
{
    if (rank->error->status == FSDP_OK) {
        rank->error->status = FSDP_ERR_INTERNAL;
        rank->error->rank = (int32_t)rank->rank;
        snprintf(rank->error->message, sizeof(rank->error->message),
                 "line %d: %s", line, what);
    }
    return FSDP_ERR_INTERNAL;
}

/* Magnitudes differ so much that every order of adding has its own bits. */
static float value(uint32_t rank, uint64_t i)
{
    static const float scale[] = {1e8f, 1, -1e8f, 1.5f, 3e-5f, -7, 4e3f};
    uint64_t h = (i * 31 + (uint64_t)rank * 17 + 5) * 2654435761u;
    return scale[(i + (uint64_t)rank * 3) % 7] * (float)(1 + (h >> 7) % 97);
}

/* The tree as comm.h defines it, by recursion.
 * NOLINTNEXTLINE(misc-no-recursion) */
static float tree(const struct scene *s, uint32_t a, uint32_t b, uint64_t i)
{
    if (b - a == 1) {
        return value(s->first + a * s->stride, i);
    }
    uint32_t mid = a + (b - a + 1) / 2;
    return tree(s, a, mid, i) + tree(s, mid, b, i);
}

/* Element i of the members' inputs, folded by the definition. */
static float folded(const struct scene *s, uint32_t fold, uint32_t owner,
                    uint64_t i)
{
    if (fold == FSDP_FOLD_TREE) {
        return tree(s, 0, s->extent, i);
    }
    uint32_t first = fold == FSDP_FOLD_RING ? owner + 1 : 0;
    float sum = 0;
    for (uint32_t k = 0; k < s->extent; k++) {
        uint32_t member = (first + k) % s->extent;
        float x = value(s->first + member * s->stride, i);
        sum = k == 0 ? x : sum + x;
    }
    return sum;
}

static bool same(float a, float b)
{
    return fsdp_f32_bits(a) == fsdp_f32_bits(b);
}

/* n floats and a fence, all set to the fence. */
static float *buffer(uint64_t n)
{
    float *p = malloc((n + 1) * sizeof(float));
    for (uint64_t i = 0; p && i <= n; i++) {
        p[i] = fence;
    }
    return p;
}

static int call(const struct scene *s, uint32_t kind, uint32_t fold,
                uint32_t root, const void *in, void *out)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = kind,
                                .dim = s->dim,
                                .dtype = FSDP_DTYPE_F32,
                                .fold = fold,
                                .root = root,
                                .unit = 5,
                                .n = kind == FSDP_BARRIER ? 0 : s->n,
                                .in = in,
                                .out = out};
    return s->rank->comm.run(s->rank->comm.self, NULL, &c);
}

static int try_gather(const struct scene *s, bool in_place, float *in,
                      float *out)
{
    struct world_rank *rank = s->rank;
    for (uint64_t i = 0; i < s->n; i++) {
        in[i] = value(rank->rank, i);
    }
    if (in_place) {
        memcpy(out + s->me * s->n, in, s->n * sizeof(float));
        in = out + s->me * s->n;
    }
    FSDP_TRY(call(s, FSDP_ALL_GATHER, 0, 0, in, out));
    for (uint32_t r = 0; r < s->extent; r++) {
        for (uint64_t i = 0; i < s->n; i++) {
            CHECK(same(out[r * s->n + i], value(s->first + r * s->stride, i)));
        }
    }
    CHECK(same(out[s->n * s->extent], fence));
    return FSDP_OK;
}

static int try_reduce_scatter(const struct scene *s, uint32_t fold, float *in,
                              float *out)
{
    struct world_rank *rank = s->rank;
    for (uint64_t i = 0; i < s->n * s->extent; i++) {
        in[i] = value(rank->rank, i);
    }
    FSDP_TRY(call(s, FSDP_REDUCE_SCATTER, fold, 0, in, out));
    for (uint64_t i = 0; i < s->n; i++) {
        CHECK(same(out[i], folded(s, fold, s->me, s->me * s->n + i)));
    }
    CHECK(same(out[s->n], fence));
    return FSDP_OK;
}

static int try_all_reduce(const struct scene *s, uint32_t fold, bool in_place,
                          float *in, float *out)
{
    struct world_rank *rank = s->rank;
    uint64_t block = (s->n + s->extent - 1) / s->extent;
    in = in_place ? out : in;
    for (uint64_t i = 0; i < s->n; i++) {
        in[i] = value(rank->rank, i);
    }
    FSDP_TRY(call(s, FSDP_ALL_REDUCE, fold, 0, in, out));
    for (uint64_t i = 0; i < s->n; i++) {
        CHECK(same(out[i], folded(s, fold, (uint32_t)(i / block), i)));
    }
    CHECK(same(out[s->n], fence));
    return FSDP_OK;
}

static int try_broadcast(const struct scene *s, uint32_t root, bool in_place,
                         float *in, float *out)
{
    struct world_rank *rank = s->rank;
    in = in_place ? out : in;
    for (uint64_t i = 0; i < s->n; i++) {
        in[i] = value(rank->rank, i);
    }
    const float *from = s->me == root ? in : NULL;
    FSDP_TRY(call(s, FSDP_BROADCAST, 0, root, from, out));
    for (uint64_t i = 0; i < s->n; i++) {
        CHECK(same(out[i], value(s->first + root * s->stride, i)));
    }
    CHECK(same(out[s->n], fence));
    return FSDP_OK;
}

static int try_scene(const struct scene *s)
{
    struct world_rank *rank = s->rank;
    float *big = buffer(s->n * s->extent);
    float *small = buffer(s->n);
    float *other = buffer(s->n);
    int status =
        big && small && other ? FSDP_OK : flunk(rank, __LINE__, "memory");
    for (uint32_t i = 0; status == FSDP_OK && i < 2; i++) {
        status = try_gather(s, i == 1, small, big);
    }
    for (uint32_t f = 0; status == FSDP_OK && f <= FSDP_FOLD_TREE; f++) {
        status = try_reduce_scatter(s, f, big, small);
        if (status == FSDP_OK) {
            status = try_all_reduce(s, f, f == 1, other, small);
        }
    }
    for (uint32_t r = 0; status == FSDP_OK && r < s->extent; r++) {
        status = try_broadcast(s, r, r == 1, other, small);
    }
    if (status == FSDP_OK) {
        status = call(s, FSDP_BARRIER, 0, 0, NULL, NULL);
    }
    free(big);
    free(small);
    free(other);
    return status;
}

int world_body_collectives(void *context, struct world_rank *rank)
{
    /* 70001 takes several turns of every collective, the last one partial. */
    static const uint64_t size[] = {0, 1, 7, 1000, 70001};
    const struct fsdp_mesh *mesh = context;
    uint32_t stride = 1;
    for (uint32_t k = 0; k < sizeof(size) / sizeof(size[0]); k++) {
        struct scene s = {.rank = rank,
                          .dim = FSDP_DIM_WORLD,
                          .extent = rank->world,
                          .me = rank->rank,
                          .stride = 1,
                          .n = size[k]};
        FSDP_TRY(try_scene(&s));
    }
    for (uint32_t d = mesh->n_dims; d-- > 0; stride *= mesh->extent[d]) {
        for (uint32_t k = 0; k < sizeof(size) / sizeof(size[0]); k++) {
            uint32_t me = rank->rank / stride % mesh->extent[d];
            struct scene s = {.rank = rank,
                              .dim = d,
                              .extent = mesh->extent[d],
                              .me = me,
                              .first = rank->rank - me * stride,
                              .stride = stride,
                              .n = size[k]};
            FSDP_TRY(try_scene(&s));
        }
    }
    return FSDP_OK;
}

int world_body_exchange(void *unused, struct world_rank *rank)
{
    static const uint64_t size[] = {0, 1, 128, 4096};
    unsigned char mine[4096];
    unsigned char all[4096 * 8];
    (void)unused;
    for (uint32_t k = 0; k < sizeof(size) / sizeof(size[0]); k++) {
        for (uint64_t i = 0; i < size[k]; i++) {
            mine[i] = (unsigned char)(i * 7 + rank->rank);
        }
        FSDP_TRY(rank->exchange(rank->exchange_self, mine, size[k], all));
        for (uint64_t r = 0; r < rank->world; r++) {
            for (uint64_t i = 0; i < size[k]; i++) {
                unsigned char want = (unsigned char)(i * 7 + r);
                CHECK(all[r * size[k] + i] == want);
            }
        }
    }
    struct fsdp_error *error = rank->error;
    rank->error = NULL;
    int status = rank->exchange(rank->exchange_self, mine, 4097, all);
    rank->error = error;
    CHECK(status == FSDP_ERR_INVALID);
    return FSDP_OK;
}

int world_body_run(struct world_rank *rank, uint32_t kind, uint64_t n,
                   const void *in, void *out)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = kind,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = 3,
                                .n = n,
                                .in = in,
                                .out = out};
    return rank->comm.run(rank->comm.self, NULL, &c);
}

void world_body_dawdle(struct world_rank *rank)
{
    rank->error = NULL;
    /* No exchange is that big: it is refused, without ado, until an abort
     * comes first. */
    while (rank->exchange(rank->exchange_self, NULL, UINT64_MAX, NULL) ==
           FSDP_ERR_INVALID) {
        (void)poll(NULL, 0, 5);
    }
}

const char *world_body_verdict(const struct world_result *result, uint32_t n)
{
    static char text[512];
    for (uint32_t r = 0; r < n; r++) {
        if (result[r].end != WORLD_RETURNED || result[r].status != FSDP_OK) {
            snprintf(text, sizeof(text),
                     "rank %u: end %u, status %d, signal %d, %s", r,
                     result[r].end, result[r].status, result[r].signal,
                     result[r].error.message);
            return text;
        }
    }
    return "";
}
