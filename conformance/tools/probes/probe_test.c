/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_test.c - logs that are not sound are refused, with a sentence; and the
 * closed form of each strategy, counted here by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/probes/probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER(source)                                                  \
    "{\"type\":\"header\",\"probe_log\":1,\"source\":\"" source         \
    "\",\"library\":\"l\",\"program\":\"p\",\"pid\":7,\"parent\":null," \
    "\"rank\":0,\"world\":2,\"started\":1}\n"
#define COMM                                                            \
    "{\"type\":\"communicator\",\"comm\":0,\"parent\":null,\"size\":2," \
    "\"me\":0,\"members\":[[0,1,2]],\"name\":\"\",\"id\":null}\n"
#define CALL(seq)                                                         \
    "{\"type\":\"collective\",\"seq\":" seq ",\"kind\":\"all-gather\","   \
    "\"comm\":0,\"dtype\":\"f32\",\"n\":5,\"total\":10,\"bytes\":20,"     \
    "\"root\":null,\"op\":null,\"in_place\":false,\"mode\":\"blocking\"," \
    "\"call\":\"MPI_Allgather\"}\n"
#define END(n)                                                   \
    "{\"type\":\"end\",\"how\":\"finalized\",\"collectives\":" n \
    ",\"sends\":0,\"send_bytes\":0,\"puts\":0,\"put_bytes\":0}\n"
#define HEAP_END(peak, live)                                                \
    "{\"type\":\"end\",\"how\":\"exited\",\"peak\":" peak ",\"live\":" live \
    ",\"mapped\":0,\"blocks\":1,\"allocations\":1,\"untracked\":0}\n"
#define SOUND HEADER("mpi") COMM CALL("0") CALL("1") END("2")

static void read_well(const char *text, struct probe_log_file *log)
{
    struct fsdp_error error = {0};

    int status = probe_log_parse(text, strlen(text), "log", log, &error);
    if (status != FSDP_OK) {
        fail_msg("refused: %s", error.message);
    }
}

static void refused(const char *text, const char *why)
{
    struct fsdp_error error = {0};
    struct probe_log_file log;

    int status = probe_log_parse(text, strlen(text), "log", &log, &error);
    probe_log_release(&log);
    assert_int_equal(status, FSDP_ERR_FORMAT);
    if (!strstr(error.message, why)) {
        fail_msg("'%s' is not in '%s'", why, error.message);
    }
}

static void a_sound_log(void **state)
{
    struct probe_log_file log;
    (void)state;

    read_well(SOUND, &log);
    assert_true(log.ended);
    assert_int_equal(log.n_calls, 2);
    assert_int_equal(log.comm[0].run[0].n, 2);
    assert_int_equal(log.call[1].bytes, 20);
    probe_log_release(&log);
}

/* Cut anywhere: a log without its end, or none; never one that is whole. */
static void cut_anywhere(void **state)
{
    const char text[] = SOUND;
    (void)state;

    for (size_t n = 0; n + 1 < sizeof(text) - 1; n++) {
        struct fsdp_error error = {0};
        struct probe_log_file log;
        int status = probe_log_parse(text, n, "log", &log, &error);
        if (status == FSDP_OK) {
            assert_false(log.ended);
            assert_true(log.n_calls <= 2);
        } else {
            assert_true(n < strlen(HEADER("mpi")));
            assert_int_equal(status, FSDP_ERR_FORMAT);
        }
        probe_log_release(&log);
    }
}

static void hostile(void **state)
{
    (void)state;
    refused("", "header");
    refused("\n", "line");
    refused("nonsense\n", "line");
    refused("[]\n", "object");
    refused(COMM, "begins with its header");
    refused("{\"type\":\"header\",\"probe_log\":2}\n", "this reader knows 1");
    refused(HEADER("mpi") HEADER("mpi"), "no \"header\"");
    refused(HEADER("tape"), "not in its list");
    refused(HEADER("heap") COMM, "no \"communicator\"");
    refused(HEADER("mpi") CALL("0"), "comm");
    refused(HEADER("mpi") COMM COMM, "numbered");
    refused(HEADER("mpi") COMM CALL("1"), "the next call is 0");
    refused(HEADER("mpi") COMM CALL("0") CALL("0"), "the next call is 1");
    refused(HEADER("mpi") COMM CALL("0") END("2"), "the log has 1");
    refused(SOUND CALL("2"), "nothing follows");
    refused(SOUND "{", "nothing follows");
    refused(HEADER("mpi") COMM "{\"type\":\"failed\",\"seq\":0,\"code\":1}\n",
            "no such call");
    refused(HEADER("mpi") COMM "{\"type\":\"end\",\"how\":\"finalized\"}\n",
            "missing");
    refused(HEADER("nccl") COMM "{\"type\":\"launch\",\"of\":0,\"comm\":0,"
                                "\"kind\":\"barrier\",\"n\":1,\"in_place\":"
                                "null,\"algo\":\"\",\"proto\":\"\"}\n",
            "no such call");
    refused(HEADER("heap") "{\"type\":\"peak\",\"peak\":5}\n"
                           "{\"type\":\"peak\",\"peak\":5}\n",
            "does not grow");
    refused(HEADER("heap") HEAP_END("5", "6"), "less than");
    refused(HEADER("storages") HEAP_END("5", "6"), "less than");
    refused(HEADER("storages") COMM, "no \"communicator\"");
    refused(HEADER("torch") "{\"type\":\"peak\",\"peak\":5}\n", "no \"peak\"");
    refused(HEADER("torch") COMM "{\"type\":\"failed\",\"seq\":0,"
                                 "\"code\":1}\n",
            "no such call");
    refused(HEADER("jax"), "source");
}

/* One field of a sound line at a time: replaced, twice, or one too many. */
static void each_field(void **state)
{
    static const char *const change[][3] = {
        {"\"n\":5", "\"n\":-5", "n"},
        {"\"n\":5", "\"n\":5.0", "n"},
        {"\"n\":5", "\"n\":6", "bytes"},
        {"\"n\":5", "\"n\":4611686018427387904", "n"},
        {"\"bytes\":20", "\"bytes\":21", "bytes"},
        {"\"bytes\":20", "\"bytes\":null", "bytes"},
        {"\"total\":10", "\"total\":4", "total"},
        {"\"dtype\":\"f32\"", "\"dtype\":\"f33\"", "dtype"},
        {"\"dtype\":\"f32\"", "\"dtype\":1", "dtype"},
        {"\"in_place\":false", "\"in_place\":0", "in_place"},
        {"\"mode\":\"blocking\"", "\"mode\":\"lazy\"", "mode"},
        {"\"root\":null", "\"root\":\"0\"", "root"},
        {"\"root\":null", "\"root\":null,\"root\":null", "duplicate"},
        {"\"root\":null", "\"root\":null,\"branch\":null", "unknown field"},
        {"\"call\":\"MPI_Allgather\"", "\"call\":\"a\\u0007\"", "call"},
        {"\"members\":[[0,1,2]]", "\"members\":[[0,1,3]]", "members"},
        {"\"members\":[[0,1,2]]", "\"members\":[[0,1,1]]", "members"},
        {"\"members\":[[0,1,2]]", "\"members\":[[0,0,2]]", "members"},
        {"\"members\":[[0,1,2]]", "\"members\":[]", "members"},
        {"\"me\":0", "\"me\":2", "me"},
        {"\"parent\":null,\"size\"", "\"parent\":0,\"size\"", "comm"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
        const char sound[] = SOUND;
        char text[2 * sizeof(sound)];
        const char *at = strstr(sound, change[i][0]);
        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - sound), sound,
                 change[i][1], at + strlen(change[i][0]));
        refused(text, change[i][2]);
    }
}

/* Logs that probes wrote, of programs in testing/. */
static void kept_logs(void **state)
{
    const char *path = FIXTURES_DIR "/probes";
    struct fsdp_error error = {0};
    struct probe_logs logs;
    (void)state;

    int status = probe_logs_read(&path, 1, &logs, &error);
    if (status != FSDP_OK) {
        fail_msg("refused: %s", error.message);
    }
    assert_int_equal(logs.n, 8);
    for (uint32_t i = 0; i < logs.n; i++) {
        assert_true(logs.log[i].ended);
    }
    assert_int_equal(logs.log[0].source, PROBE_MPI);
    assert_int_equal(logs.log[0].n_calls, 8);
    assert_true(logs.log[1].call[7].failed);
    assert_int_equal(logs.log[1].end.sends, 1);
    assert_int_equal(logs.log[2].source, PROBE_NCCL);
    assert_int_equal(logs.log[2].n_calls, 16);
    assert_int_equal(logs.log[2].call[15].launches, 1);
    assert_int_equal(logs.log[3].n_marks, 3);
    assert_int_equal(logs.log[3].mark[2].peak_since, 3145736);
    assert_int_equal(logs.log[5].source, PROBE_TORCH);
    assert_int_equal(logs.log[5].rank, 1);
    assert_int_equal(logs.log[5].n_calls, 27);
    assert_int_equal(logs.log[5].n_marks, 6);
    assert_int_equal(logs.log[7].source, PROBE_STORAGES);
    assert_int_equal(logs.log[7].n_marks, 6);
    probe_logs_release(&logs);
}

/* ---- The closed form ---- */

static struct probe_expect model(void)
{
    return (struct probe_expect){.n_units = 2,
                                 .unit = {10, 7},
                                 .replicas = 1,
                                 .dtype = PROBE_BF16,
                                 .reduce_dtype = PROBE_F32,
                                 .reshard = true,
                                 .shards = true,
                                 .sync = "s",
                                 .steps = 3};
}

/* kind, dtype, ranks, n, calls; a row a count. */
static void expect_rows(const struct probe_expect *e, uint64_t world,
                        const uint64_t (*row)[5], uint32_t n)
{
    struct probe_counts got;

    assert_int_equal(probe_expect_counts(e, world, &got), FSDP_OK);
    assert_int_equal(got.n, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct probe_count *c = &got.count[i];
        assert_int_equal(c->kind, row[i][0]);
        assert_int_equal(c->dtype, row[i][1]);
        assert_int_equal(c->ranks, row[i][2]);
        assert_int_equal(c->n, row[i][3]);
        assert_int_equal(c->calls, row[i][4]);
        assert_int_equal(c->bytes, row[i][3] * row[i][4] *
                                       probe_dtype_bytes((uint32_t)row[i][1]));
    }
    probe_counts_release(&got);
}

static void strategies(void **state)
{
    static const uint64_t full[][5] = {
        {PROBE_ALL_GATHER, PROBE_BF16, 4, 2, 6},
        {PROBE_ALL_GATHER, PROBE_BF16, 4, 3, 6},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 4, 2, 3},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 4, 3, 3}};
    static const uint64_t kept[][5] = {
        {PROBE_ALL_GATHER, PROBE_BF16, 4, 2, 6},
        {PROBE_ALL_GATHER, PROBE_BF16, 4, 3, 3},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 4, 2, 3},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 4, 3, 3}};
    static const uint64_t hybrid[][5] = {
        {PROBE_ALL_GATHER, PROBE_BF16, 2, 4, 6},
        {PROBE_ALL_GATHER, PROBE_BF16, 2, 5, 6},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 2, 4, 3},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 2, 5, 3},
        {PROBE_ALL_REDUCE, PROBE_F32, 2, 4, 3},
        {PROBE_ALL_REDUCE, PROBE_F32, 2, 5, 3}};
    static const uint64_t none[][5] = {{PROBE_ALL_REDUCE, PROBE_F32, 4, 7, 3},
                                       {PROBE_ALL_REDUCE, PROBE_F32, 4, 10, 3}};
    /* Two microbatches, the second reduced; not resharded. */
    static const uint64_t batches[][5] = {
        {PROBE_ALL_GATHER, PROBE_BF16, 4, 2, 6},
        {PROBE_ALL_GATHER, PROBE_BF16, 4, 3, 6},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 4, 2, 3},
        {PROBE_REDUCE_SCATTER, PROBE_F32, 4, 3, 3}};
    struct probe_expect e = model();
    struct probe_counts none_of_it;
    (void)state;

    expect_rows(&e, 4, full, 4);
    e.keep_root = true;
    expect_rows(&e, 4, kept, 4);
    e = model();
    e.replicas = 2;
    expect_rows(&e, 4, hybrid, 6);
    e = model();
    e.shards = false;
    expect_rows(&e, 4, none, 2);
    e = model();
    e.reshard = false;
    e.sync = "ns";
    expect_rows(&e, 4, batches, 4);
    expect_rows(&e, 1, NULL, 0);
    e.replicas = 3;
    assert_int_equal(probe_expect_counts(&e, 4, &none_of_it), FSDP_ERR_INVALID);
    probe_counts_release(&none_of_it);
}

static struct probe_verdict verdict;

/* The sound log, of a unit of 10 and without a reduction, is rank 0's. */
static void judge(const char *text, bool two_ranks)
{
    struct probe_log_file log[2];
    struct probe_logs logs = {.n = two_ranks ? 2 : 1, .log = log};
    struct probe_expect e = model();

    read_well(text, &log[0]);
    read_well(text, &log[1]);
    log[1].rank = 1;
    e.n_units = 1;
    e.dtype = PROBE_F32;
    e.steps = 1;
    assert_int_equal(probe_judge(&logs, &e, PROBE_UNKNOWN, &verdict), FSDP_OK);
    probe_log_release(&log[0]);
    probe_log_release(&log[1]);
}

#define REDUCED(seq)                                                         \
    "{\"type\":\"collective\",\"seq\":" seq ",\"kind\":\"reduce-scatter\","  \
    "\"comm\":0,\"dtype\":\"f32\",\"n\":5,\"total\":10,\"bytes\":20,"        \
    "\"root\":null,\"op\":\"sum\",\"in_place\":false,\"mode\":\"blocking\"," \
    "\"call\":\"MPI_Reduce_scatter\"}\n"
#define STEP HEADER("mpi") COMM CALL("0") CALL("1") REDUCED("2")

static void verdicts(void **state)
{
    (void)state;
    judge(STEP END("3"), true);
    assert_false(verdict.differs || verdict.incomplete);
    judge(STEP END("3"), false);
    assert_true(verdict.incomplete && !verdict.differs);
    judge(STEP, true);
    assert_true(verdict.incomplete && !verdict.differs);
    judge(SOUND, true);
    assert_true(verdict.differs);
    judge(STEP CALL("3") END("4"), true);
    assert_true(verdict.differs);
    judge(STEP "{\"type\":\"failed\",\"seq\":0,\"code\":1}\n" END("3"), true);
    assert_true(verdict.differs);
    judge(HEADER("mpi") COMM CALL("0") CALL("1") REDUCED(
              "2") "{\"type\":\"end\",\"how\":\"finalized\",\"collectives\":3,"
                   "\"sends\":1,\"send_bytes\":9,\"puts\":0,\"put_bytes\":0}\n",
          true);
    assert_true(verdict.differs);
    judge(HEADER("heap") HEAP_END("5", "5"), true);
    assert_true(verdict.incomplete);
}

/* ---- Steps ---- */

#define MARK(at, name) \
    "{\"type\":\"mark\",\"at\":" at ",\"name\":\"" name "\"}\n"
/* A setup, two steps of a gather each, a gather between and one behind them. */
#define STEPS                                                              \
    HEADER("torch")                                                        \
    COMM CALL("0") MARK("1", "step 0") CALL("1") MARK("2", "after step 0") \
        CALL("2") MARK("3", "step 1") MARK("3", "after step 1") CALL("3")  \
            MARK("4", "after step 1") CALL("4")

static void steps_of(const char *text, const uint64_t (*right)[2], uint32_t n)
{
    struct probe_log_file log;
    uint64_t mark = 0;
    uint64_t from;
    uint64_t to;

    read_well(text, &log);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(probe_step(&log, &mark, &from, &to));
        assert_int_equal(from, right[i][0]);
        assert_int_equal(to, right[i][1]);
    }
    assert_false(probe_step(&log, &mark, &from, &to));
    probe_log_release(&log);
}

static void steps(void **state)
{
    static const uint64_t closed[][2] = {{1, 2}, {3, 4}};
    static const uint64_t open[][2] = {{1, 3}, {3, 5}};
    (void)state;

    steps_of(STEPS END("5"), closed, 2);
    steps_of(HEADER("mpi") COMM CALL("0") MARK("1", "step 0") CALL("1")
                 MARK("2", "loaded") CALL("2") MARK("3", "step 1") CALL("3")
                     CALL("4") END("5"),
             open, 2);
    steps_of(SOUND, NULL, 0);
}

/* Judged are the calls in them, and how many there are. */
static void verdicts_in_steps(void **state)
{
    struct probe_expect e = model();
    struct probe_log_file log;
    struct probe_logs logs = {.n = 1, .log = &log};
    (void)state;

    e.n_units = 0;
    e.steps = 2;
    e.in_steps = true;
    e.n_also = 1;
    e.also[0] = (struct probe_count){
        .kind = PROBE_ALL_GATHER, .dtype = PROBE_F32, .n = 5, .calls = 2};
    for (int i = 0; i < 5; i++) {
        read_well(i == 4 ? STEPS : STEPS END("5"), &log);
        log.world = i == 3 ? 3 : 2;
        e.steps = i == 1 ? 3 : 2;
        e.also[0].calls = i == 2 ? 5 : 2;
        assert_int_equal(probe_judge(&logs, &e, PROBE_UNKNOWN, &verdict),
                         FSDP_OK);
        assert_int_equal(verdict.differs, i > 0 && i < 4);
        assert_true(verdict.incomplete); /* rank 1 has no log */
        probe_log_release(&log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_log),       cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(hostile),           cmocka_unit_test(each_field),
        cmocka_unit_test(kept_logs),         cmocka_unit_test(strategies),
        cmocka_unit_test(verdicts),          cmocka_unit_test(steps),
        cmocka_unit_test(verdicts_in_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
