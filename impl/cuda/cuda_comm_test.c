/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_comm_test.c - every collective between three ranks, threads of this
 * process with a GPU each, against a loop of this file; lengths around those
 * of chunks. And what happens when one of them fails.
 */
#include "cuda_testing.h"

#include <fsdp/arith/cast.h>
#include <fsdp/comm.h>
#include <pthread.h>

enum {
    RANKS = 3,
    MOST = 200, /* elements a rank */
};

struct rank {
    uint32_t number;
    struct fsdp_error error;
    struct fsdp_env env;
    float *in, *out; /* on the GPU: MOST * RANKS */
    int status;
};

/* What ranks share. */
static struct {
    pthread_barrier_t barrier;
    unsigned char all[RANKS][4096];
} table;

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    const struct rank *r = self;

    memcpy(table.all[r->number], mine, bytes);
    pthread_barrier_wait(&table.barrier);
    for (uint32_t i = 0; i < RANKS; i++) {
        memcpy((unsigned char *)all + i * bytes, table.all[i], bytes);
    }
    pthread_barrier_wait(&table.barrier);
    return FSDP_OK;
}

/* Rank r's element i of what it gives. */
static float value(uint32_t r, uint64_t i)
{
    return (float)((i * 7919 + r * 104729) % 1000) * 0.001f /
           (float)(1 + (i + r) % 7);
}

/* comm.h in one loop; `owner` under RING. */
static float folded(uint32_t fold, uint32_t owner, uint64_t i)
{
    float x[RANKS];

    for (uint32_t r = 0; r < RANKS; r++) {
        x[r] = value(fold == FSDP_FOLD_RING ? (owner + 1 + r) % RANKS : r, i);
    }
    return (x[0] + x[1]) + x[2]; /* of three, the tree is the same */
}

static float wanted(const struct fsdp_collective *c, uint32_t me, uint64_t i)
{
    uint64_t block = (c->n + RANKS - 1) / RANKS;

    switch (c->kind) {
    case FSDP_ALL_GATHER:
        return value((uint32_t)(i / c->n), i % c->n);
    case FSDP_REDUCE_SCATTER:
        return folded(c->fold, me, me * c->n + i);
    case FSDP_ALL_REDUCE:
        return folded(c->fold, (uint32_t)(i / block), i);
    default:
        return value(c->root, i);
    }
}

static uint64_t out_numel(const struct fsdp_collective *c)
{
    return c->kind == FSDP_ALL_GATHER ? c->n * RANKS : c->n;
}

/* A failure of one rank must not leave the others waiting in a barrier: they
 * note it and go on. */
static void note(struct rank *r, bool good)
{
    if (!good && r->status == FSDP_OK) {
        r->status = FSDP_ERR_INTERNAL;
    }
}

static void try_collective(struct rank *r, struct fsdp_collective c,
                           struct fsdp_stream *stream, bool in_place)
{
    const struct fsdp_device *d = r->env.device;
    const struct fsdp_comm *comm = r->env.comm;
    float host[MOST * RANKS + 1];
    uint64_t n = out_numel(&c);

    for (uint64_t i = 0; i < MOST * RANKS; i++) {
        host[i] = value(r->number, i);
    }
    c.size = sizeof(c);
    c.in = r->in;
    c.out = r->out;
    if (in_place) {
        c.in = c.kind == FSDP_ALL_GATHER ? r->out + r->number * c.n : r->out;
    }
    note(r, d->copy(d->self, stream, (float *)c.in, host, MOST * 4) == 0);
    if (!in_place) {
        note(r, d->copy(d->self, stream, r->in, host, MOST * RANKS * 4) == 0);
    }
    note(r, comm->run(comm->self, stream, &c) == FSDP_OK);
    note(r, d->copy(d->self, stream, host, r->out, (n + 1) * 4) == 0);
    note(r, d->sync(d->self, stream) == FSDP_OK);
    for (uint64_t i = 0; i < n && c.kind != FSDP_BARRIER; i++) {
        float want = wanted(&c, r->number, i);

        if (memcmp(&host[i], &want, sizeof(want)) != 0) {
            printf("rank %u kind %u fold %u n %llu: element %llu is %a, "
                   "not %a\n",
                   r->number, c.kind, c.fold, (unsigned long long)c.n,
                   (unsigned long long)i, (double)host[i], (double)want);
            note(r, false);
            return;
        }
    }
}

static void try_all(struct rank *r, struct fsdp_stream *stream, uint32_t dim)
{
    static const uint64_t lengths[] = {0, 1, 2, 3, 5, 64, 65, 100};

    for (int i = 0; i < 8; i++) {
        struct fsdp_collective c = {
            .dim = dim, .dtype = FSDP_DTYPE_F32, .n = lengths[i]};

        c.kind = FSDP_ALL_GATHER;
        try_collective(r, c, stream, false);
        try_collective(r, c, stream, true);
        c.kind = FSDP_BROADCAST;
        for (c.root = 0; c.root < RANKS; c.root++) {
            try_collective(r, c, stream, false);
            try_collective(r, c, stream, true);
        }
        c.root = 0;
        for (c.fold = 0; c.fold <= FSDP_FOLD_TREE; c.fold++) {
            c.kind = FSDP_REDUCE_SCATTER;
            try_collective(r, c, stream, false);
            c.kind = FSDP_ALL_REDUCE;
            try_collective(r, c, stream, false);
            try_collective(r, c, stream, true);
        }
    }
    try_collective(r,
                   (struct fsdp_collective){.kind = FSDP_BARRIER, .dim = dim},
                   stream, false);
}

/* The same in 16 bits, each addition rounded to `sum_dtype`. */
static float folded_half(const struct fsdp_collective *c, uint32_t owner,
                         uint64_t i)
{
    uint32_t sum_dtype = fsdp_sum_dtype(c);
    float x[RANKS];

    for (uint32_t r = 0; r < RANKS; r++) {
        uint32_t from = c->fold == FSDP_FOLD_RING ? (owner + 1 + r) % RANKS : r;

        x[r] = fsdp_round(c->dtype, value(from, i));
    }
    return fsdp_round(
        c->dtype,
        fsdp_round(sum_dtype, fsdp_round(sum_dtype, x[0] + x[1]) + x[2]));
}

static void try_half(struct rank *r, struct fsdp_collective c)
{
    const struct fsdp_device *d = r->env.device;
    const struct fsdp_comm *comm = r->env.comm;
    uint16_t host[MOST * RANKS];
    uint64_t block = (c.n + RANKS - 1) / RANKS;

    for (uint64_t i = 0; i < MOST * RANKS; i++) {
        fsdp_store(c.dtype, host, i, value(r->number, i));
    }
    c.size = sizeof(c);
    c.dim = FSDP_DIM_SHARD;
    c.in = r->in;
    c.out = r->out;
    note(r, d->copy(d->self, NULL, r->in, host, sizeof(host)) == FSDP_OK);
    note(r, comm->run(comm->self, NULL, &c) == FSDP_OK);
    note(r, d->copy(d->self, NULL, host, r->out, c.n * sizeof(*host)) == 0);
    note(r, d->sync(d->self, NULL) == FSDP_OK);
    for (uint64_t i = 0; i < c.n; i++) {
        bool scattered = c.kind == FSDP_REDUCE_SCATTER;
        float want = scattered ? folded_half(&c, r->number, r->number * c.n + i)
                               : folded_half(&c, (uint32_t)(i / block), i);

        note(r, fsdp_load(c.dtype, host, i) == want);
    }
}

static void try_halves(struct rank *r)
{
    static const uint64_t lengths[] = {1, 5, 64, 100};

    for (uint32_t k = 0; k < 96; k++) {
        try_half(
            r,
            (struct fsdp_collective){
                .kind = k % 2 == 0 ? FSDP_REDUCE_SCATTER : FSDP_ALL_REDUCE,
                .dtype = k / 2 % 2 == 0 ? FSDP_DTYPE_BF16 : FSDP_DTYPE_F16,
                .sum_dtype = k / 4 % 2 == 0 ? FSDP_DTYPE_NONE : FSDP_DTYPE_F32,
                .n = lengths[k / 8 % 4],
                .fold = k / 32});
    }
}

/* Every rank asks for the same wrong things. */
static void try_refused(struct rank *r)
{
    const struct fsdp_comm *comm = r->env.comm;
    const struct fsdp_collective good = {.size = sizeof(good),
                                         .kind = FSDP_ALL_REDUCE,
                                         .dim = FSDP_DIM_SHARD,
                                         .dtype = FSDP_DTYPE_F32,
                                         .n = 4,
                                         .in = r->in,
                                         .out = r->out};
    struct fsdp_collective c[11] = {good, good, good, good, good, good,
                                    good, good, good, good, good};
    int want[11] = {-1, -1, -1, -2, -1, -1, -1, -1, -1, -1, -1};

    c[0].kind = FSDP_N_COLLECTIVES;
    c[1].dim = 2;
    c[2].dtype = FSDP_DTYPE_NONE;
    c[3].dtype = FSDP_DTYPE_I32;
    c[4].fold = FSDP_FOLD_TREE + 1;
    c[5].in = NULL;
    c[6].kind = FSDP_BARRIER;
    c[7].in = (unsigned char *)r->in + 2;
    c[8].out = (unsigned char *)r->out + 1;
    c[9].sum_dtype = FSDP_DTYPE_BF16;
    c[10].size = FSDP_COLLECTIVE_LEAST - 1;
    for (int i = 0; i < 11; i++) {
        r->error = (struct fsdp_error){0};
        note(r, comm->run(comm->self, NULL, &c[i]) == want[i]);
        note(r, r->error.message[0] != '\0');
    }
    note(r, comm->run(comm->self, NULL, NULL) == FSDP_ERR_INVALID);
}

static int open_rank(struct rank *r)
{
    static const uint32_t extent[] = {1, RANKS};
    static const char *const name[] = {"replicate", "shard"};
    static const struct fsdp_mesh mesh = {sizeof(mesh), 2, name, extent};
    static const struct fsdp_comm real = {.size = sizeof(real),
                                          .abort = abort_alone};
    void *p = NULL;

    r->env = (struct fsdp_env){.size = sizeof(r->env),
                               .rank = r->number,
                               .world = RANKS,
                               .mesh = &mesh,
                               .comm = &real,
                               .error = &r->error,
                               .exchange = exchange,
                               .exchange_self = r};
    FSDP_TRY(cuda_open(&r->env));
    for (int i = 0; i < 2; i++) {
        FSDP_TRY(
            r->env.device->alloc(r->env.device->self, MOST * RANKS * 4, &p));
        *(i == 0 ? &r->in : &r->out) = p;
    }
    return FSDP_OK;
}

static void close_rank(struct rank *r)
{
    if (r->env.engine) {
        r->env.device->free(r->env.device->self, r->in);
        r->env.device->free(r->env.device->self, r->out);
        cuda_close(&r->env);
    }
}

static void *be_rank(void *self)
{
    struct rank *r = self;
    struct fsdp_stream *stream = NULL;

    r->status = open_rank(r);
    if (r->status == FSDP_OK) {
        try_all(r, NULL, FSDP_DIM_SHARD);
        note(r, r->env.device->stream_open(r->env.device->self, "test",
                                           &stream) == FSDP_OK);
        try_all(r, stream, FSDP_DIM_WORLD);
        try_halves(r);
        try_refused(r);
        r->env.device->stream_close(r->env.device->self, stream);
    }
    close_rank(r);
    return NULL;
}

/* Rank 1 does not come, but calls abort. The others wait, and are told of
 * it. */
static void *be_rank_of_which_one_fails(void *self)
{
    struct rank *r = self;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_ALL_REDUCE,
                                .dim = FSDP_DIM_SHARD,
                                .dtype = FSDP_DTYPE_F32,
                                .n = 10};

    r->status = open_rank(r);
    if (r->status == FSDP_OK && r->number == 1) {
        r->env.comm->abort(r->env.comm->self, FSDP_ERR_INVALID);
        r->status = FSDP_ERR_ABORTED;
    } else if (r->status == FSDP_OK) {
        c.in = r->in;
        c.out = r->out;
        r->status = r->env.comm->run(r->env.comm->self, NULL, &c);
        note(r,
             r->env.comm->run(r->env.comm->self, NULL, &c) == FSDP_ERR_ABORTED);
        note(r, r->env.device->sync(r->env.device->self, NULL) ==
                    FSDP_ERR_ABORTED);
    }
    /* No rank closes what another one may still wait for. */
    pthread_barrier_wait(&table.barrier);
    close_rank(r);
    return NULL;
}

static void play(void *(*be)(void *), int want)
{
    static struct rank rank[RANKS];
    pthread_t thread[RANKS];

    memset(rank, 0, sizeof(rank));
    assert_int_equal(pthread_barrier_init(&table.barrier, NULL, RANKS), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        rank[r].number = r;
        assert_int_equal(pthread_create(&thread[r], NULL, be, &rank[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        pthread_join(thread[r], NULL);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        if (rank[r].status != want) {
            fail_msg("rank %u: status %d: %s", r, rank[r].status,
                     rank[r].error.message);
        }
    }
    pthread_barrier_destroy(&table.barrier);
}

/* 64 floats a rank fit into staging. */
UNIT_TEST(test_collectives)
{
    setenv("FSDP_CUDA_STAGING", "768", 1);
    play(be_rank, FSDP_OK);
    setenv("FSDP_CUDA_RING", "own", 1);
    play(be_rank, FSDP_OK);
    unsetenv("FSDP_CUDA_RING");
}

UNIT_TEST(test_abort)
{
    play(be_rank_of_which_one_fails, FSDP_ERR_ABORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_abort),
    };
    int skip = skip_without_gpus(RANKS);

    return skip != 0 ? skip : cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
