/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_testing.h - what the tests of records share: a folder for each test,
 * a record with one of everything, and files that are spoilt.
 */
#ifndef FSDP_CTS_RECORD_TESTING_H
#define FSDP_CTS_RECORD_TESTING_H

#include "record/record_internal.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline int make_folder(void **state)
{
    char *const folder = strdup("/tmp/record_test.XXXXXX");

    *state = folder;
    return folder && mkdtemp(folder) ? 0 : -1;
}

/* Removes the folder; fails if a test left more in it than a record: a
 * .partial, say. */
static inline int drop_folder(void **state)
{
    int status = record_clear(*state, NULL);

    if (status == 0) {
        status = rmdir(*state);
    }
    free(*state);
    return status;
}

#define TEST(NAME) \
    cmocka_unit_test_setup_teardown(NAME, make_folder, drop_folder)

static inline void *copy_of(const void *p, size_t bytes)
{
    void *const copy = malloc(bytes + (bytes == 0));

    assert_non_null(copy);
    memcpy(copy, p, bytes);
    return copy;
}

/* A copy of a whole array. */
#define COPY(array) copy_of(array, sizeof(array))

static inline float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline void make_sequences(struct record_rank *r)
{
    static const struct record_collective usual[] = {
        {FSDP_ALL_GATHER, FSDP_DIM_SHARD, FSDP_DTYPE_F32, 0, 0, 0, 64},
        {FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD, FSDP_DTYPE_BF16, FSDP_FOLD_TREE,
         0, FSDP_NO_UNIT, UINT64_C(1) << 53},
    };
    /* Fields out of range, as only a faulty engine gives them. */
    static const struct record_collective odd[] = {
        {17, 18, 19, 20, 21, 22, UINT64_MAX},
        {UINT32_MAX, FSDP_DIM_WORLD, UINT32_MAX, UINT32_MAX, UINT32_MAX,
         FSDP_NO_UNIT - 1, 0},
    };

    r->n_sequences = 3;
    r->sequence = calloc(3, sizeof(*r->sequence));
    assert_non_null(r->sequence);
    r->sequence[1] = (struct record_sequence){2, COPY(usual)};
    r->sequence[2] = (struct record_sequence){2, COPY(odd)};
}

static inline void make_tensors(struct record_rank *r)
{
    const float special[] = {float_of(0x7fc12345), float_of(0xff800000),
                             float_of(0x80000000), float_of(0x00000001),
                             float_of(0x7fa00001)};
    const float narrow[] = {float_of(0x3f810000), float_of(0x80010000)};
    const struct record_tensor t[] = {
        {RECORD_INITIAL, 0, 0, 0, 0, 5, COPY(special), FSDP_DTYPE_F32},
        {RECORD_LOCAL_GRADIENT, 1, 1, 10, 0, 2, COPY(narrow), FSDP_DTYPE_BF16},
        {RECORD_REDUCED, 1, 0, 2, 3, 1, copy_of(special, 4), FSDP_DTYPE_F32},
        {RECORD_REDUCED, 1, 0, 2, 5, 0, copy_of(special, 0), FSDP_DTYPE_F32},
        {RECORD_FINAL, 3, 0, 11, 1, 3, copy_of(special, 12), FSDP_DTYPE_F32},
    };

    r->n_tensors = 5;
    r->tensor = COPY(t);
}

/* The memory of a run of three steps. */
static inline void make_memory(struct record_memory *m)
{
    const uint64_t allocations[] = {3, 0, UINT64_C(1) << 53};
    const uint64_t launches[] = {1, UINT64_MAX, 0};
    const struct record_moment moment[] = {
        {FSDP_PRE_FORWARD, 3, {1, 2, 3, 4, 5, 6, UINT64_MAX}},
        {RECORD_POINT_ZERO_GRAD, 0, {7}}};

    for (uint64_t k = 0; k < FSDP_N_KINDS; k++) {
        m->peak[k] = k * 1000 + 7;
        m->after_shard.live[k] = k;
    }
    m->peak[FSDP_OPTIM] = (UINT64_C(1) << 53) + 1;
    m->peak[FSDP_ACTIVATION] = UINT64_MAX;
    m->peak_parameters = 1010;
    m->peak_engine = (UINT64_C(1) << 53) + 20;
    m->peak_storage = UINT64_MAX;
    m->peak_live_over_storage = 4;
    m->bad_ranges = 5;
    m->dirty_padding = 17;
    m->dirty_frozen = 19;
    m->misplaced = 18;
    m->left_live = 6;
    m->left_storage = 7;
    m->process_growth = 8;
    m->new_channels = UINT32_MAX;
    m->after_step = calloc(3, sizeof(*m->after_step));
    assert_non_null(m->after_step);
    m->after_step[2].live[FSDP_OPTIM] = (UINT64_C(1) << 53) + 1;
    m->allocations = COPY(allocations);
    m->launches = COPY(launches);
    m->n_moments = 2;
    m->moment = COPY(moment);
}

/* A rank that ended well, with three steps of two microbatches. */
static inline void make_good_rank(struct record_rank *r)
{
    const float loss[] = {1.5f,
                          float_of(0x7fc12345),
                          float_of(0xffc00000),
                          float_of(0x7f800000),
                          float_of(0x80000000),
                          float_of(0x00000001)};
    const float other[] = {float_of(0xff800000), 3.40282347e38f, 0.1f};
    const uint32_t step_sequence[] = {1, 2, 1};
    const struct record_answer answer[] = {
        {"param-at-rest", -1}, {"0123456789012345678901234567890", INT32_MIN}};
    const struct record_flight flight[] = {
        {FSDP_ALL_GATHER, 0, 1, 0, 2, 1},
        {77, FSDP_NO_UNIT, 7, 7, RECORD_NO_POSITION, 1},
        {FSDP_BARRIER, 1, 8, 9, 8, 0}};
    const struct record_pass pass[] = {
        {0, 0, 1, FSDP_DTYPE_F32, 2, FSDP_DTYPE_NONE, 0, 0, UINT64_MAX, 7},
        {1, UINT32_MAX, 0, FSDP_DTYPE_NONE, 0, FSDP_DTYPE_F16, 3, 1, 0, 1}};
    const struct record_edge edge[] = {{RECORD_INPUT, 1, FSDP_DTYPE_BF16},
                                       {RECORD_OUTPUT, 1, FSDP_DTYPE_F32},
                                       {RECORD_OUTPUT, 0, FSDP_DTYPE_NONE}};

    r->present = true;
    r->n_collectives = 8;
    r->n_losses = 6;
    r->loss = COPY(loss);
    r->n_other_losses = 3;
    r->other_loss = COPY(other);
    make_sequences(r);
    r->n_steps = 3;
    r->step_sequence = COPY(step_sequence);
    r->end_sequence = 2;
    make_memory(&r->memory);
    r->races = (struct record_races){
        .count = 3,
        .unfollowed = 2,
        .n = 2,
        .race = {{"all-gather->compute",
                  FSDP_PARAM_FULL,
                  3,
                  {"all-gather", "gathering", "pre-forward", 1, 2},
                  {"gemm", "compute", "pre-forward", 1, 4}},
                 {"dead->reuse",
                  FSDP_N_KINDS,
                  FSDP_NO_UNIT,
                  {"dead", "host", "zero-grad", 0, UINT32_MAX},
                  {"live", "01234567890123456789012", "", UINT32_MAX, 0}}}};
    r->flights = (struct record_flights){3, COPY(flight)};
    r->n_answers = 2;
    r->answer = COPY(answer);
    r->n_edges = 3;
    r->edge = COPY(edge);
    r->n_passes = 2;
    r->pass = COPY(pass);
    make_tensors(r);
    r->seconds = 0.1;
}

/* A rank that failed after the first step: two losses of six. */
static inline void make_failed_rank(struct record_rank *r)
{
    const float loss[] = {1.0f, 2.0f};
    const uint32_t step_sequence[] = {0};

    r->present = true;
    r->status = FSDP_ERR_COMM;
    r->error = (struct fsdp_error){FSDP_ERR_COMM, 1, 5, "all-gather",
                                   "unit 3: \"gone\""};
    r->end = WORLD_SIGNALLED;
    r->signal = 11;
    r->n_collectives = 17;
    r->in_collective = 1;
    r->last_kind = FSDP_REDUCE_SCATTER;
    r->last_unit = 3;
    r->n_losses = 2;
    r->loss = COPY(loss);
    r->n_sequences = 1;
    r->sequence = calloc(1, sizeof(*r->sequence));
    r->n_steps = 1;
    r->step_sequence = COPY(step_sequence);
    r->memory.after_step = calloc(1, sizeof(*r->memory.after_step));
    r->memory.allocations = calloc(1, sizeof(*r->memory.allocations));
    r->memory.launches = calloc(1, sizeof(*r->memory.launches));
    r->memory.n_moments = 1;
    r->memory.moment = calloc(1, sizeof(*r->memory.moment));
}

static inline void make_record(struct record *out)
{
    static const char claim[3][32] = {"flat", "hybrid-shard",
                                      "0123456789012345678901234567890"};
    struct run_case c;

    memset(&c, 0, sizeof(c));
    (void)strcpy(c.workload, "mlp");
    (void)strcpy(c.size, "seed");
    c.scenario = CASE_EVAL;
    c.seed = UINT64_MAX;
    c.ranks = 2;
    c.replicas = 1;
    c.wrap = CASE_WRAP_LAYER;
    c.microbatches = 2;
    c.sync[1] = 1;
    c.lr = 0.05f;
    c.weight_decay = 1e-30f;
    c.divide_factor = 0.7f;
    c.steps = 3;
    c.recorded_steps = 2;
    assert_int_equal(record_init(out, &c, 2), FSDP_OK);
    (void)strcpy(out->engine, "mine \"\xc3\xa4\"");
    (void)strcpy(out->engine_version, "0.1");
    (void)strcpy(out->world, "local");
    out->n_claims = 3;
    out->claim = COPY(claim);
    make_good_rank(&out->rank[0]);
    out->rank[0].last_unit = FSDP_NO_UNIT;
    make_failed_rank(&out->rank[1]);
}

static inline void write_record(const char *folder, const struct record *r)
{
    struct fsdp_error error = {0};

    for (uint32_t i = 0; i < r->n_ranks; i++) {
        (void)record_write_rank(folder, i, &r->rank[i], &error);
    }
    (void)record_write_case(folder, r, &error);
    assert_string_equal(error.message, "");
}

#define ASSERT_SAME(n, a, b)                               \
    if ((n) != 0) {                                        \
        assert_memory_equal((a), (b), (n) * sizeof(*(a))); \
    }

static inline void assert_same_ranks(const struct record_rank *a,
                                     const struct record_rank *b)
{
    /* All that is no pointer: pointers are cleared in these copies. */
    struct record_rank x = *a;
    struct record_rank y = *b;

    ASSERT_SAME(a->n_losses, a->loss, b->loss)
    ASSERT_SAME(a->n_other_losses, a->other_loss, b->other_loss)
    ASSERT_SAME(a->n_steps, a->step_sequence, b->step_sequence)
    ASSERT_SAME(a->n_steps, a->memory.after_step, b->memory.after_step)
    ASSERT_SAME(a->n_steps, a->memory.allocations, b->memory.allocations)
    ASSERT_SAME(a->n_steps, a->memory.launches, b->memory.launches)
    ASSERT_SAME(a->memory.n_moments, a->memory.moment, b->memory.moment)
    ASSERT_SAME(a->n_answers, a->answer, b->answer)
    ASSERT_SAME(a->n_edges, a->edge, b->edge)
    assert_int_equal(a->n_passes, b->n_passes);
    ASSERT_SAME(a->n_passes, a->pass, b->pass)
    assert_int_equal(a->flights.n, b->flights.n);
    ASSERT_SAME(a->flights.n, a->flights.flight, b->flights.flight)
    assert_int_equal(a->n_sequences, b->n_sequences);
    for (uint32_t i = 0; i < a->n_sequences; i++) {
        assert_int_equal(a->sequence[i].n, b->sequence[i].n);
        ASSERT_SAME(a->sequence[i].n, a->sequence[i].c, b->sequence[i].c)
    }
    assert_int_equal(a->n_tensors, b->n_tensors);
    for (uint32_t i = 0; i < a->n_tensors; i++) {
        assert_int_equal(record_tensor_order(&a->tensor[i], &b->tensor[i]), 0);
        assert_int_equal(a->tensor[i].n, b->tensor[i].n);
        ASSERT_SAME(a->tensor[i].n, a->tensor[i].data, b->tensor[i].data)
    }
    x.loss = y.loss = x.other_loss = y.other_loss = NULL;
    x.sequence = y.sequence = NULL;
    x.step_sequence = y.step_sequence = NULL;
    x.memory.after_step = y.memory.after_step = NULL;
    x.memory.allocations = y.memory.allocations = NULL;
    x.memory.launches = y.memory.launches = NULL;
    x.memory.moment = y.memory.moment = NULL;
    x.answer = y.answer = NULL;
    x.edge = y.edge = NULL;
    x.pass = y.pass = NULL;
    x.flights.flight = y.flights.flight = NULL;
    x.tensor = y.tensor = NULL;
    x.spill = y.spill = NULL;
    assert_memory_equal(&x, &y, sizeof(x));
}

static inline void assert_same_records(const struct record *a,
                                       const struct record *b)
{
    assert_memory_equal(&a->c, &b->c, sizeof(a->c));
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->engine, b->engine);
    assert_string_equal(a->engine_version, b->engine_version);
    assert_string_equal(a->world, b->world);
    assert_int_equal(a->n_claims, b->n_claims);
    ASSERT_SAME(a->n_claims, a->claim, b->claim)
    assert_int_equal(a->n_ranks, b->n_ranks);
    for (uint32_t i = 0; i < a->n_ranks; i++) {
        assert_same_ranks(&a->rank[i], &b->rank[i]);
    }
}

struct bytes {
    char *p;
    size_t n;
};

static inline struct bytes load(const char *folder, const char *name)
{
    struct bytes b = {calloc(1, 65536), 0};
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "rb");
    assert_non_null(f);
    assert_non_null(b.p);
    b.n = fread(b.p, 1, 65535, f);
    assert_true(b.n < 65535);
    assert_int_equal(fclose(f), 0);
    return b;
}

static inline void store(const char *folder, const char *name, const void *p,
                         size_t n)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void discard(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

/* Replaces the first `was` in a file, which must be there, by `now`. */
static inline void replace(const char *folder, const char *name,
                           const char *was, const char *now)
{
    struct bytes b = load(folder, name);
    const char *const at = strstr(b.p, was);
    const size_t more = strlen(now);
    char *text;
    size_t before;
    size_t after;

    if (!at) {
        free(b.p);
        fail_msg("%s has no %s", name, was);
        return; /* never reached: for analyzers, who do not know fail_msg */
    }
    text = malloc(b.n + more);
    assert_non_null(text);
    before = (size_t)(at - b.p);
    after = b.n - before - strlen(was);
    memcpy(text, b.p, before);
    /* Bytes of a file. NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
    memcpy(text + before, now, more);
    memcpy(text + before + more, at + strlen(was), after);
    store(folder, name, text, before + more + after);
    free(text);
    free(b.p);
}

#endif
