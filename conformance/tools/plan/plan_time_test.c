/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_time_test.c - steps in time: orders are those of records, times those
 * that were worked out by hand; more latency never makes a step shorter; and
 * runs that others have published come out as near as docs/plan.md says.
 */
#include "testing/unit_testing.h"
#include "tools/plan/plan_model.h"
#include "tools/plan/plan_testing.h"
#include "tools/plan/plan_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct schedule make(const struct plan_ask *ask)
{
    struct fsdp_error error = {0};
    struct schedule s;

    if (schedule_make(ask, &s, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    return s;
}

/* "A0 F1 R0 .": collectives and units, compute and modules, the optimizer. */
static void order_of(const struct schedule *s, char text[TESTING_TEXT])
{
    size_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct schedule_task *const t = &s->task[i];
        const bool computes = t->stream == SCHEDULE_COMPUTE;

        assert_true(n < TESTING_TEXT - 8);
        text[n++] = i > 0 ? ' ' : '(';
        text[n++] = computes                         ? ".F.B.R.."[t->point]
                    : t->kind == FSDP_ALL_GATHER     ? 'A'
                    : t->kind == FSDP_REDUCE_SCATTER ? 'S'
                                                     : 'L';
        if (!computes || t->point != FSDP_END) {
            text[n++] = (char)('0' + (computes ? t->module : t->unit));
        }
    }
    text[n] = '\0';
}

UNIT_TEST(orders)
{
    static const struct {
        uint32_t forward, backward;
        const char *order;
    } all[] = {
        {0, 0, "(A0 F1 A1 F2 A2 F3 A2 B3 S2 A1 B2 S1 A0 B1 S0 ."},
        {1, 1, "(A0 A1 F1 A2 F2 F3 A2 A1 B3 S2 A0 B2 S1 B1 S0 ."},
        {2, 0, "(A0 A1 A2 F1 F2 F3 A2 B3 S2 A1 B2 S1 A0 B1 S0 ."},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct testing_model t;
        struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);
        struct plan_ask ask;
        struct schedule s;
        char text[TESTING_TEXT];

        testing_model(&t, "-012", "1:8 2:8 3:8",
                      "F1 f1 F2 f2 F3 f3 B3 b3 B2 b2 B1 b1", "F1 f1");
        c.prefetch_forward = all[i].forward;
        c.prefetch_backward = all[i].backward;
        ask = ask_for(&t, &c);
        s = make(&ask);
        order_of(&s, text);
        assert_string_equal(text, all[i].order);
        schedule_release(&s);
    }
}

/* Whether the schedule's collectives are the oracle's, in its order. */
static void compare_orders(const char *id, const struct plan_ask *ask,
                           const struct schedule *s)
{
    struct expect e;
    uint32_t at = 0;
    uint32_t counts[2][FSDP_N_COLLECTIVES] = {{0}};
    const bool strict =
        ask->c.prefetch_forward == 0 && ask->c.prefetch_backward == 0;

    assert_int_equal(
        expect_make_idle(&ask->c, ask->model, ask->units, ask->idle, &e),
        FSDP_OK);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct schedule_task *const t = &s->task[i];

        if (t->stream == SCHEDULE_COMPUTE) {
            continue;
        }
        if (at >= e.step.n || (strict && (t->kind != e.step.c[at].kind ||
                                          t->unit != e.step.c[at].unit ||
                                          t->elements != e.step.c[at].n))) {
            fail_msg("%s: collective %u is another", id, at);
        }
        counts[0][t->kind]++;
        counts[1][e.step.c[at].kind]++;
        at++;
    }
    assert_int_equal(at, e.step.n);
    assert_memory_equal(counts[0], counts[1], sizeof(counts[0]));
    expect_release(&e);
}

static struct cluster open_cluster(const char *name)
{
    struct fsdp_error error = {0};
    struct cluster c;

    if (cluster_open(name, &c, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    return c;
}

/* Zero durations; then latencies that grow. */
static void check_times(const struct plan_ask *ask, const struct plan_model *m,
                        const struct schedule *s)
{
    const struct plan_batch batch = {.tokens = 8, .sequence = 8};
    struct cluster on = open_cluster("a100");
    struct plan_time t;
    double *zero = calloc((size_t)s->n + 1, sizeof(*zero));
    double before = 0.0;

    assert_non_null(zero);
    assert_int_equal(plan_simulate(s, ask->units->n_units, zero, 0.5, &t),
                     FSDP_OK);
    assert_true(t.seconds == 0.0 && t.exposed == 0.0);
    plan_time_release(&t);
    free(zero);
    on.flops = 1e9; /* so that some communication hides */
    for (double latency = 0.0; latency < 1e-3; latency += 2.5e-4) {
        on.latency = on.host_step = on.network_step = latency;
        assert_int_equal(plan_time_make(ask, m, &batch, &on, &t, NULL),
                         FSDP_OK);
        assert_true(t.seconds >= before && t.exposed >= 0.0);
        assert_true(t.seconds >= t.compute);
        before = t.seconds;
        plan_time_release(&t);
    }
}

UNIT_TEST(every_case_of_the_manifest)
{
    struct case_list list;
    struct fsdp_error error = {0};
    uint32_t n = 0;

    assert_int_equal(manifest_make(&list, &error), FSDP_OK);
    for (uint32_t i = 0; i < list.n; i++) {
        char id[CASE_ID_BYTES];
        struct plan_model m;
        struct plan_ask ask = {.c = list.c[i]};
        struct schedule s;

        if (list.c[i].scenario != CASE_TRAIN) {
            continue;
        }
        case_id(&list.c[i], id);
        assert_int_equal(plan_model_of_case(&list.c[i], &m, &error), FSDP_OK);
        ask.model = &m.model;
        ask.units = &m.units.units;
        ask.idle = m.idle;
        s = make(&ask);
        compare_orders(id, &ask, &s);
        check_times(&ask, &m, &s);
        schedule_release(&s);
        plan_model_release(&m);
        n++;
    }
    assert_true(n > 100);
    manifest_release(&list);
}

/* Exercise 16.5.3: with prefetch compute waits for the first gather, and for
 * what each later one takes longer than the compute that hides it; without,
 * for all of them. Whatever the backward does is left out: it takes none. */
UNIT_TEST(exercise_16_5_3)
{
    static const double gather[3] = {5.0, 7.0, 2.0};
    static const double compute[3] = {4.0, 3.0, 9.0};

    for (uint32_t ahead = 0; ahead < 2; ahead++) {
        struct testing_model t;
        struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);
        struct plan_ask ask;
        struct schedule s;
        struct plan_time time;
        double duration[64] = {0.0};
        uint32_t seen = 0;

        testing_model(&t, "-012", "1:8 2:8 3:8",
                      "F1 f1 F2 f2 F3 f3 B3 b3 B2 b2 B1 b1", "F1 f1");
        c.prefetch_forward = ahead;
        ask = ask_for(&t, &c);
        s = make(&ask);
        for (uint32_t i = 0; i < s.n; i++) {
            const struct schedule_task *const k = &s.task[i];

            if (k->stream == SCHEDULE_COMPUTE && k->point == FSDP_PRE_FORWARD) {
                duration[i] = compute[k->unit];
            } else if (k->stream == SCHEDULE_SHARD && seen < 3) {
                duration[i] = gather[k->unit];
                seen++;
            }
        }
        assert_int_equal(plan_simulate(&s, 3, duration, 0.0, &time), FSDP_OK);
        assert_true(time.compute == 16.0);
        assert_true(time.exposed == (ahead ? 5.0 + 3.0 + 0.0 : 14.0));
        assert_true(time.exposed_by_unit[1] == (ahead ? 3.0 : 7.0));
        assert_true(time.seconds == time.compute + time.exposed);
        plan_time_release(&time);
        /* Half of what communication takes is taken from compute. */
        assert_int_equal(plan_simulate(&s, 3, duration, 0.5, &time), FSDP_OK);
        assert_true(time.contended == 7.0);
        assert_true(ahead || time.seconds == 16.0 + 14.0 + 7.0);
        plan_time_release(&time);
        schedule_release(&s);
    }
}

/* A reduction that may not be in flight is waited for; one that may be hides
 * behind the compute of the next unit. */
UNIT_TEST(reductions_in_flight)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_NO_SHARD, 2, 2);

    testing_model(&t, "-01", "1:8 2:8", "F1 f1 F2 f2 B2 b2 B1 b1", "F1 f1");
    for (uint32_t n = 0; n < 2; n++) {
        struct plan_ask ask;
        struct schedule s;
        struct plan_time time;
        double duration[16] = {0.0};

        c.reduces_in_flight = n;
        ask = ask_for(&t, &c);
        s = make(&ask);
        for (uint32_t i = 0; i + 1 < s.n; i++) {
            duration[i] = 2.0; /* all but the optimizer */
        }
        assert_int_equal(plan_simulate(&s, 2, duration, 0.0, &time), FSDP_OK);
        assert_true(time.seconds == (n == 0 ? 12.0 : 10.0));
        plan_time_release(&time);
        schedule_release(&s);
    }
}

UNIT_TEST(rings_on_links)
{
    struct cluster c = {.host_ranks = 8,
                        .host_bandwidth = 100.0,
                        .network_bandwidth = 50.0,
                        .latency = 1.0,
                        .host_step = 2.0,
                        .network_step = 3.0};
    struct cluster_group g = cluster_shard_group(&c, 4);

    assert_true(g.hosts == 1 && g.sharing == 2);
    assert_true(cluster_seconds(&c, g, 400.0) == 1.0 + 3 * 2.0 + 3.0);
    g = cluster_shard_group(&c, 16);
    assert_true(g.hosts == 2 && g.sharing == 1);
    /* 15 steps, one of them between hosts; half of 800 over its 50. */
    assert_true(cluster_seconds(&c, g, 800.0) == 1.0 + 14 * 2.0 + 3.0 + 8.0);
    /* Two replicas of a host each: eight groups share its network. */
    g = cluster_replica_group(&c, 2, 8);
    assert_true(g.hosts == 2 && g.sharing == 8);
    assert_true(cluster_seconds(&c, g, 100.0) == 1.0 + 3.0 + 8.0);
    g = cluster_replica_group(&c, 4, 2);
    assert_true(g.hosts == 1);
    g = cluster_shard_group(&c, 1);
    assert_true(cluster_seconds(&c, g, 400.0) == 0.0);
}

UNIT_TEST(clusters_are_read_strictly)
{
    static const char *const good =
        "{\"version\":1,\"name\":\"c\",\"source\":\"\",\"host_ranks\":8,"
        "\"memory\":1,\"peak_flops\":1,\"flops\":1,\"contention\":0,"
        "\"memory_bandwidth\":1,\"host_bandwidth\":%s,"
        "\"network_bandwidth\":1,\"latency\":%s,\"host_step\":0,"
        "\"network_step\":0}";
    static const struct {
        const char *host, *latency;
        int status;
    } all[] = {{"1", "0", FSDP_OK},
               {"0", "0", FSDP_ERR_FORMAT},
               {"-1", "0", FSDP_ERR_FORMAT},
               {"1", "-1", FSDP_ERR_FORMAT},
               {"1e300", "0", FSDP_ERR_FORMAT},
               {"\"1\"", "0", FSDP_ERR_FORMAT}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        char text[512];
        struct cluster c;
        struct fsdp_error error = {0};
        const char *const host = strstr(good, "%s");
        const char *const latency = strstr(host + 2, "%s");

        snprintf(text, sizeof(text), "%.*s%s%.*s%s%s", (int)(host - good), good,
                 all[i].host, (int)(latency - host - 2), host + 2,
                 all[i].latency, latency + 2);
        assert_int_equal(cluster_parse(text, strlen(text), "c", &c, &error),
                         all[i].status);
    }
}

/* Published measurements (docs/plan.md has the sources): a model on A100, with
 * all the running ahead that engines do; and how far off, in percent, the plan
 * may be. */
struct published {
    const char *model;
    uint32_t ranks;
    uint64_t tokens, sequence;
    double recompute;
    uint32_t precision;
    bool backward; /* prefetches */
};

static double seconds_of(const struct published *p, double *done)
{
    const struct plan_batch batch = {p->tokens, p->sequence, p->recompute};
    const struct cluster on = open_cluster("a100");
    struct plan_model m;
    struct run_case c;
    struct fsdp_error error = {0};
    struct plan_ask ask = {.c = {.ranks = p->ranks,
                                 .replicas = 1,
                                 .optimizer = FSDP_OPTIMIZER_ADAMW,
                                 .microbatches = 1,
                                 .sync = {1},
                                 .prefetch_forward = 1,
                                 .prefetch_backward = p->backward,
                                 .reduces_in_flight = 2,
                                 .precision = p->precision}};
    struct plan_time t;
    double seconds;
    bool is_record;

    assert_int_equal(plan_model_open(p->model, &c, &is_record, &m, &error),
                     FSDP_OK);
    ask.model = &m.model;
    ask.units = &m.units.units;
    assert_int_equal(plan_time_make(&ask, &m, &batch, &on, &t, &error),
                     FSDP_OK);
    seconds = t.seconds;
    *done = t.done;
    plan_time_release(&t);
    plan_model_release(&m);
    return seconds;
}

static void check_percent(const char *what, double got, double want,
                          double percent)
{
    if (!(fabs(got / want - 1.0) <= percent / 100.0)) {
        fail_msg("%s: %g, published %g", what, got, want);
    }
}

static double tflops(uint32_t ranks, uint64_t tokens, bool backward)
{
    double done;
    const double seconds =
        seconds_of(&(struct published){"gpt-175b", ranks, tokens, 2048, 1.0,
                                       CASE_BF16_REDUCE, backward},
                   &done);

    return 1e-12 * done / seconds;
}

static double t5(uint32_t ranks, uint64_t tokens)
{
    double done;

    return seconds_of(&(struct published){"t5-11b", ranks, tokens, 512, 1.0,
                                          FSDP_DTYPE_BF16, true},
                      &done);
}

UNIT_TEST(the_fsdp_paper)
{
    /* Fitted. */
    check_percent("GPT-175B, batch 1", tflops(128, 2048, true), 173, 2);
    check_percent("GPT-175B, batch 2", tflops(128, 4096, true), 186, 2);
    /* Predicted. */
    check_percent("backward prefetch",
                  tflops(128, 2048, true) / tflops(128, 2048, false), 1.18, 5);
    check_percent("backward prefetch, 512",
                  tflops(512, 2048, true) / tflops(512, 2048, false), 1.18, 5);
    check_percent("128 to 512", tflops(512, 2048, true),
                  tflops(128, 2048, true), 3);
    check_percent("T5-11B, batch 8", t5(8, 4096) / t5(512, 4096), 0.93, 5);
    check_percent("T5-11B, batch 16", t5(8, 8192) / t5(512, 8192), 0.93, 5);
}

/* All activations are kept, or none; the last four rows are in between, and for
 * these nothing is promised. */
UNIT_TEST(torchtitan)
{
    static const struct {
        struct published p;
        double tokens_a_second;
    } all[] = {
        {{"llama3-70b", 64, 8192, 8192, 1.0, CASE_BF16, true}, 331},
        {{"llama2-70b", 64, 8192, 4096, 1.0, CASE_BF16, true}, 353},
        {{"llama2-13b", 64, 8192, 4096, 0.0, CASE_BF16, true}, 2162},
        {{"llama2-13b", 64, 8192, 4096, 0.5, CASE_BF16, true}, 1914},
        {{"llama3-8b", 64, 8192, 8192, 0.5, CASE_BF16, true}, 2904},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        double done;
        const double seconds = seconds_of(&all[i].p, &done);

        check_percent(all[i].p.model, (double)all[i].p.tokens / seconds,
                      all[i].tokens_a_second, 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders),
        cmocka_unit_test(every_case_of_the_manifest),
        cmocka_unit_test(exercise_16_5_3),
        cmocka_unit_test(reductions_in_flight),
        cmocka_unit_test(rings_on_links),
        cmocka_unit_test(clusters_are_read_strictly),
        cmocka_unit_test(the_fsdp_paper),
        cmocka_unit_test(torchtitan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
