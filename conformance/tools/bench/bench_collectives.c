/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_collectives.c - collectives between local processes, each beside a
 * memcpy of as many bytes by every rank. Sizes are those of the whole: what an
 * all-gather leaves, what a reduction takes. A collective in 16 bits has as
 * many elements as the one in float32 that it is compared with, and the same
 * number of bytes is counted for both: the ratio says how much shorter it
 * takes.
 */
#include "tools/bench/bench.h"
#include "world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    F32 = FSDP_DTYPE_F32,
    BF16 = FSDP_DTYPE_BF16,
    F16 = FSDP_DTYPE_F16,
    LEAST = 4096,
    MOST = 64 << 20,
    SHAPES = 13,
    COPY = SHAPES, /* memcpy */
    SIZES = 8,     /* 4 KB, 16 KB .. 64 MB */
    FEW = 3,
    PATIENCE_MS = 120000,
};

static const struct {
    const char *name;
    uint32_t kind, fold, dtype, sum_dtype;
    uint32_t base; /* of shapes[], or COPY: what it is measured beside */
} shapes[SHAPES] = {
    {"all-gather", FSDP_ALL_GATHER, 0, F32, 0, COPY},
    {"reduce-scatter.rank", FSDP_REDUCE_SCATTER, FSDP_FOLD_RANK, F32, 0, COPY},
    {"reduce-scatter.ring", FSDP_REDUCE_SCATTER, FSDP_FOLD_RING, F32, 0, COPY},
    {"reduce-scatter.tree", FSDP_REDUCE_SCATTER, FSDP_FOLD_TREE, F32, 0, COPY},
    {"all-reduce.rank", FSDP_ALL_REDUCE, FSDP_FOLD_RANK, F32, 0, COPY},
    {"all-reduce.ring", FSDP_ALL_REDUCE, FSDP_FOLD_RING, F32, 0, COPY},
    {"all-reduce.tree", FSDP_ALL_REDUCE, FSDP_FOLD_TREE, F32, 0, COPY},
    {"all-gather.bf16", FSDP_ALL_GATHER, 0, BF16, 0, 0},
    {"reduce-scatter.rank.bf16", FSDP_REDUCE_SCATTER, FSDP_FOLD_RANK, BF16, 0,
     1},
    {"reduce-scatter.rank.bf16-sum-f32", FSDP_REDUCE_SCATTER, FSDP_FOLD_RANK,
     BF16, F32, 1},
    {"reduce-scatter.ring.bf16", FSDP_REDUCE_SCATTER, FSDP_FOLD_RING, BF16, 0,
     2},
    {"reduce-scatter.tree.bf16", FSDP_REDUCE_SCATTER, FSDP_FOLD_TREE, BF16, 0,
     3},
    {"reduce-scatter.rank.f16", FSDP_REDUCE_SCATTER, FSDP_FOLD_RANK, F16, 0, 1},
};

/* The results of rank 0, in shared memory: GB/s. */
struct bench {
    const struct bench_plan *plan;
    uint32_t ranks;
    struct world_rank *rank;
    float *in, *out;
    double *rate; /* [SHAPES][SIZES][2][samples] */
};

static void name_of(uint32_t shape, uint64_t bytes, uint32_t ranks,
                    char name[BENCH_NAME_BYTES])
{
    snprintf(name, BENCH_NAME_BYTES, "collective.%s.%lluk.k%u",
             shapes[shape].name, (unsigned long long)bytes >> 10, ranks);
}

static int collective(struct bench *b, uint32_t shape, uint64_t bytes)
{
    struct world_rank *rank = b->rank;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = shapes[shape].kind,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = shapes[shape].dtype,
                                .fold = shapes[shape].fold,
                                .unit = FSDP_NO_UNIT,
                                .n = bytes / sizeof(float),
                                .in = b->in,
                                .out = b->out,
                                .sum_dtype = shapes[shape].sum_dtype};

    if (c.kind != FSDP_ALL_REDUCE) {
        c.n /= rank->world;
    }
    return rank->comm.run(rank->comm.self, NULL, &c);
}

/* GB/s of the slowest rank, of a shape or COPY. */
static int measure(struct bench *b, uint32_t shape, uint64_t bytes,
                   uint32_t repeat, double *rate)
{
    struct world_rank *rank = b->rank;
    double all[WORLD_MAX_RANKS];
    double begin;
    double mine = 0;

    FSDP_TRY(rank->exchange(rank->exchange_self, &mine, sizeof(mine), all));
    begin = bench_now();
    for (uint32_t i = 0; i < repeat; i++) {
        if (shape == COPY) {
            memcpy(b->out, b->in, bytes);
            __asm__ volatile("" ::: "memory");
        } else {
            FSDP_TRY(collective(b, shape, bytes));
        }
    }
    mine = (bench_now() - begin) / repeat;
    FSDP_TRY(rank->exchange(rank->exchange_self, &mine, sizeof(mine), all));
    for (uint32_t r = 0; r < rank->world; r++) {
        mine = all[r] > mine ? all[r] : mine;
    }
    *rate = (double)bytes / mine * 1e-9;
    return FSDP_OK;
}

static int compare(struct bench *b, uint32_t shape, uint32_t size)
{
    uint32_t n = b->plan->report.samples;
    uint64_t bytes = (uint64_t)LEAST << (2 * size);
    uint32_t repeat = (uint32_t)(((uint64_t)16 << 20) / bytes);
    double *to = b->rate + ((size_t)shape * SIZES + size) * 2 * n;
    double ignored;

    repeat = repeat < FEW ? FEW : repeat > 200 ? 200 : repeat;
    FSDP_TRY(measure(b, shape, bytes, FEW, &ignored));
    for (uint32_t i = 0; i < n; i++) {
        double own = 0;
        double copy = 0;
        FSDP_TRY(measure(b, shape, bytes, repeat, &own));
        FSDP_TRY(measure(b, shapes[shape].base, bytes, repeat, &copy));
        if (b->rank->rank == 0) {
            to[i] = own;
            to[n + i] = copy;
        }
    }
    return FSDP_OK;
}

static bool wanted(const struct bench *b, uint32_t shape, uint32_t size)
{
    char name[BENCH_NAME_BYTES];

    name_of(shape, (uint64_t)LEAST << (2 * size), b->ranks, name);
    return bench_wants(&b->plan->report, name);
}

static int body(void *context, struct world_rank *rank)
{
    struct bench b = *(struct bench *)context;
    int status = FSDP_OK;

    b.rank = rank;
    b.in = malloc(MOST);
    b.out = malloc(MOST);
    if (!b.in || !b.out) {
        status = FSDP_ERR_NOMEM;
    }
    for (size_t i = 0; status == FSDP_OK && i < MOST / sizeof(float); i++) {
        b.in[i] = (float)(i % 97);
        b.out[i] = 0.0f;
    }
    for (uint32_t s = 0; s < SHAPES; s++) {
        for (uint32_t k = 0; k < SIZES && status == FSDP_OK; k++) {
            if (wanted(&b, s, k)) {
                status = compare(&b, s, k);
            }
        }
    }
    free(b.in);
    free(b.out);
    return status;
}

static void note(struct bench_plan *plan, const struct bench *b)
{
    uint32_t n = plan->report.samples;
    char name[BENCH_NAME_BYTES];

    for (uint32_t s = 0; s < SHAPES; s++) {
        for (uint32_t k = 0; k < SIZES; k++) {
            const double *rate = b->rate + ((size_t)s * SIZES + k) * 2 * n;
            name_of(s, (uint64_t)LEAST << (2 * k), b->ranks, name);
            if (wanted(b, s, k)) {
                bench_add(&plan->report, name, "GB/s", rate, n, rate + n,
                          shapes[s].base == COPY ? "memcpy" : "float32");
            }
        }
    }
}

static int measure_world(struct bench_plan *plan, uint32_t ranks)
{
    static const char *const names[] = {"world"};
    struct fsdp_mesh mesh = {sizeof(mesh), 1, names, &ranks};
    struct world_result result[WORLD_MAX_RANKS];
    struct bench b = {.plan = plan, .ranks = ranks};
    size_t bytes = sizeof(double) * SHAPES * SIZES * 2 * plan->report.samples;
    char what[64];
    int status;

    snprintf(what, sizeof(what), "collectives between %u processes", ranks);
    bench_progress(&plan->report, what);
    b.rate = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b.rate == MAP_FAILED) {
        return FSDP_ERR_NOMEM;
    }
    status = world_run(WORLD_LOCAL, &mesh, PATIENCE_MS, body, &b, result,
                       &plan->error);
    for (uint32_t r = 0; r < ranks && status == FSDP_OK; r++) {
        if (result[r].end != WORLD_RETURNED) {
            status = FSDP_ERR_INTERNAL;
        } else if (result[r].status != FSDP_OK) {
            status = result[r].status;
            plan->error = result[r].error;
        }
    }
    if (status == FSDP_OK) {
        note(plan, &b);
    }
    munmap(b.rate, bytes);
    return status;
}

int bench_collectives(struct bench_plan *plan)
{
    for (uint32_t k = 0; k < plan->n_ranks; k++) {
        if (plan->ranks[k] > 1) {
            FSDP_TRY(measure_world(plan, plan->ranks[k]));
        }
    }
    return FSDP_OK;
}
