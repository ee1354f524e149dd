/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_test.c - the broker counts what ranks did; it refuses a turn that
 * belongs to no collective; ranks have nothing of each other's memory; and a
 * rank that dies or stands still is named, and no other waits for it.
 */
#include "broker.h"
#include "world_body_testing.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/unit_testing.h"

enum {
    PATIENT_MS = 20000,
    HASTY_MS = 500,
    MANY = 70001, /* elements that take several turns */
    UNEVEN = 2 * MANY - 3
};

static const char *const dims[] = {"replicate", "shard"};
static const uint32_t two_by_two[] = {2, 2};
static const uint32_t alone[] = {1, 1};

static struct fsdp_mesh mesh_of(const uint32_t *extent)
{
    return (struct fsdp_mesh){.size = sizeof(struct fsdp_mesh),
                              .n_dims = 2,
                              .name = dims,
                              .extent = extent};
}

/* ---- Counts -------------------------------------------------------------- */

static int over(struct world_rank *rank, uint32_t kind, uint32_t dim,
                uint64_t n, const float *in, float *out)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = kind,
                                .dim = dim,
                                .dtype = FSDP_DTYPE_F32,
                                .n = n,
                                .in = in,
                                .out = out};

    return rank->comm.run(rank->comm.self, NULL, &c);
}

/* Two collectives of one kind, the second in several turns; one over other
 * ranks; one that is refused on all; and one exchange. */
static int a_few(void *context, struct world_rank *rank)
{
    static float in[2 * MANY];
    static float out[2 * MANY];
    char all[4];
    const struct fsdp_error none = {0};

    (void)context;
    FSDP_TRY(over(rank, FSDP_ALL_GATHER, 1, 5, in, out));
    FSDP_TRY(over(rank, FSDP_ALL_GATHER, 1, MANY, in, out));
    FSDP_TRY(over(rank, FSDP_ALL_REDUCE, 0, MANY, in, out));
    if (over(rank, FSDP_ALL_GATHER, 1, 1 + rank->rank % 2, in, out) !=
        FSDP_ERR_MISMATCH) {
        return FSDP_ERR_INTERNAL;
    }
    *rank->error = none;
    FSDP_TRY(rank->exchange(rank->exchange_self, "abc", 1, all));
    return rank->rank < 2 ? over(rank, FSDP_BARRIER, 1, 0, NULL, NULL)
                          : FSDP_OK;
}

static void expect_row(const struct record_traffic_row *row, uint32_t kind,
                       uint32_t dim, uint64_t calls, uint64_t n)
{
    assert_int_equal(row->kind, kind);
    assert_int_equal(row->dim, dim);
    assert_int_equal(row->calls, calls);
    assert_int_equal(row->n, n);
}

UNIT_TEST(what_is_carried_is_counted)
{
    struct fsdp_mesh mesh = mesh_of(two_by_two);
    struct record_carried t[4] = {0};
    struct world_result result[4];

    assert_int_equal(
        world_run_carried(&mesh, PATIENT_MS, a_few, NULL, result, t, NULL),
        FSDP_OK);
    assert_string_equal(world_body_verdict(result, 4), "");
    for (uint32_t r = 0; r < 4; r++) {
        struct record_traffic want = {0};

        assert_int_equal(t[r].traffic.n_rows, r < 2 ? 3 : 2);
        expect_row(&t[r].traffic.row[0], FSDP_ALL_GATHER, 1, 2, 5 + MANY);
        expect_row(&t[r].traffic.row[1], FSDP_ALL_REDUCE, 0, 1, MANY);
        assert_int_equal(t[r].traffic.row[0].dtype, FSDP_DTYPE_F32);
        assert_int_equal(t[r].traffic.exchanges, 1);
        assert_int_equal(t[r].traffic.exchanged, 1);
        assert_int_equal(t[r].traffic.mismatches, 1);
        record_traffic_add(&want, FSDP_ALL_GATHER, 1, FSDP_DTYPE_F32, 0, 0, 5);
        record_traffic_add(&want, FSDP_ALL_GATHER, 1, FSDP_DTYPE_F32, 0, 0,
                           MANY);
        record_traffic_add(&want, FSDP_ALL_REDUCE, 0, FSDP_DTYPE_F32, 0, 0,
                           MANY);
        if (r < 2) {
            record_traffic_add(&want, FSDP_BARRIER, 1, FSDP_DTYPE_F32, 0, 0, 0);
        }
        assert_true(want.order == t[r].traffic.order);
    }
}

static void fill_with_sent(uint32_t rank, float in[2 * MANY])
{
    for (uint64_t i = 0; i < 2ull * MANY; i++) {
        in[i] = (float)(rank + 1) * (float)(i % 1000 + 1);
    }
}

/* Three collectives, each in several turns. */
static int three_with_values(void *context, struct world_rank *rank)
{
    static float in[2 * MANY];
    static float out[2 * MANY];

    (void)context;
    fill_with_sent(rank->rank, in);
    FSDP_TRY(over(rank, FSDP_ALL_GATHER, 1, MANY, in, out));
    FSDP_TRY(over(rank, FSDP_REDUCE_SCATTER, 1, MANY, in, out));
    return over(rank, FSDP_ALL_REDUCE, 1, UNEVEN, in, out);
}

/* The hash of an all-gather in a world of two: the whole for the other rank,
 * nothing for oneself. */
static uint64_t sent_to_gather(const float *in)
{
    const uint64_t whole = record_payload_add(0, in, MANY * sizeof(*in));

    return record_payload_join(record_payload_join(0, whole), 0);
}

/* The hash of a reduction of `all_n` in a world of two: the block of the other
 * rank, which may be shorter if that is the second. */
static uint64_t sent_to_reduce(uint32_t me, uint64_t all_n, const float *in)
{
    const uint64_t each = (all_n + 1) / 2;
    const uint64_t n[2] = {each, all_n - each};
    uint64_t all = 0;

    for (uint32_t i = 0; i < 2; i++) {
        all = record_payload_join(
            all,
            i == me ? 0
                    : record_payload_add(0, in + i * each, n[i] * sizeof(*in)));
    }
    return all;
}

/* The digest of the same three: shards lie behind each other, and +0 adds
 * nothing. */
static uint64_t digest_of(uint32_t k, uint32_t nth, const float *in)
{
    const uint32_t me = k % 2;
    const uint64_t n[] = {MANY, MANY, UNEVEN / 2 + 1};
    const uint64_t to = 1 - me; /* the other one of a reduction */

    return nth == 0
               ? record_digest_add(0, me * n[0], in, MANY, sizeof(*in))
               : record_digest_add(0, to * n[nth], in + to * n[nth],
                                   nth == 2 && to == 1 ? UNEVEN - n[2] : n[nth],
                                   sizeof(*in));
}

/* A hash covers what others get, in however many turns they get it. */
UNIT_TEST(what_is_sent_has_a_hash)
{
    static struct record_carried t[4];
    static float in[2 * MANY];
    struct fsdp_mesh mesh = mesh_of(two_by_two);
    struct world_result result[4];

    assert_int_equal(world_run_carried(&mesh, PATIENT_MS, three_with_values,
                                       NULL, result, t, NULL),
                     FSDP_OK);
    assert_string_equal(world_body_verdict(result, 4), "");
    for (uint32_t r = 0; r < 4; r++) {
        fill_with_sent(r, in);
        assert_int_equal(t[r].n, 3);
        assert_true(t[r].payload[0] == sent_to_gather(in));
        assert_true(t[r].payload[1] == sent_to_reduce(r % 2, 2ull * MANY, in));
        assert_true(t[r].payload[2] == sent_to_reduce(r % 2, UNEVEN, in));
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(t[r].digest[i] == digest_of(r, i, in));
        }
        in[MANY - 1] += 1.0f;
        assert_true(t[r].payload[0] != sent_to_gather(in));
    }
}

/* ---- What is none of a collective's turns -------------------------------- */

static int post(struct broker_area *own, uint32_t group, struct world_turn turn)
{
    const uint32_t seen = atomic_load(&own->answered);

    own->group = group;
    own->turn = turn;
    atomic_fetch_add(&own->posted, 1);
    while (atomic_load(&own->answered) == seen) {
        (void)usleep(1000);
    }
    return own->verdict;
}

/* All turns but the first differ from it in one thing. */
static const struct world_turn turns[] = {
    {.header = {.kind = FSDP_ALL_GATHER, .dtype = FSDP_DTYPE_F32, .n = 4},
     .bytes = 16},
    {.header = {.kind = FSDP_ALL_GATHER, .dtype = FSDP_DTYPE_F32, .n = 4},
     .bytes = 32},
    {.header = {.kind = FSDP_ALL_GATHER, .dtype = FSDP_DTYPE_F32, .n = 4},
     .bytes = UINT64_MAX},
    {.header = {.kind = FSDP_ALL_GATHER, .dtype = FSDP_DTYPE_F32, .n = 3},
     .bytes = 16},
    {.header = {.kind = FSDP_ALL_GATHER, .dtype = 99, .n = 4}, .bytes = 16},
    {.header = {.kind = FSDP_ALL_GATHER,
                .dtype = FSDP_DTYPE_F32,
                .n = UINT64_MAX},
     .bytes = 16},
    {.header = {.kind = FSDP_BARRIER, .n = 16}, .bytes = 16},
    {.header = {.kind = FSDP_N_COLLECTIVES + 1, .n = 16}, .bytes = 16},
    {.header = {.kind = FSDP_N_COLLECTIVES, .n = WORLD_EXCHANGE_BYTES + 1},
     .bytes = WORLD_EXCHANGE_BYTES + 1},
    {.header =
         {.kind = FSDP_ALL_GATHER, .dtype = FSDP_DTYPE_F32, .n = 4, .turn = 1},
     .bytes = 16},
    {.header = {.kind = FSDP_ALL_GATHER, .dtype = FSDP_DTYPE_F32, .n = 4},
     .pattern = WORLD_EACH,
     .bytes = 16},
    {.header =
         {.kind = FSDP_BROADCAST, .dtype = FSDP_DTYPE_F32, .n = 4, .root = 1},
     .pattern = WORLD_ROOT,
     .bytes = 16},
};

static int forges(void *context, struct world_rank *rank)
{
    union {
        const void *given;
        struct broker_area *own;
    } u = {.given = rank->shared};
    struct world_turn half = turns[0];
    float in[4] = {0};
    float out[4];

    (void)context;
    if (post(u.own, 1, turns[0]) != FSDP_OK ||
        post(u.own, 7, turns[0]) != FSDP_ERR_INVALID) {
        return FSDP_ERR_INTERNAL;
    }
    for (uint32_t i = 1; i < sizeof(turns) / sizeof(turns[0]); i++) {
        if (post(u.own, 1, turns[i]) != FSDP_ERR_INVALID) {
            return -100 - (int)i;
        }
    }
    /* Posts the first turn of two, and then one of another collective. */
    half.header.n = MANY;
    half.bytes = WORLD_PLACE_BYTES;
    if (post(u.own, 1, half) != FSDP_OK ||
        post(u.own, 1, turns[0]) != FSDP_ERR_INVALID) {
        return FSDP_ERR_INTERNAL;
    }
    return over(rank, FSDP_ALL_GATHER, 1, 4, in, out);
}

UNIT_TEST(what_is_no_turn_is_refused)
{
    struct fsdp_mesh mesh = mesh_of(alone);
    struct record_carried t[1] = {0};
    struct world_result result[1];

    assert_int_equal(
        world_run_carried(&mesh, PATIENT_MS, forges, NULL, result, t, NULL),
        FSDP_OK);
    assert_string_equal(world_body_verdict(result, 1), "");
    assert_int_equal(t[0].traffic.n_rows, 1);
    expect_row(&t[0].traffic.row[0], FSDP_ALL_GATHER, 1, 3, 4 + MANY + 4);
}

/* ---- Ranks and broker as threads ----------------------------------------- */

struct threads {
    struct broker broker;
    struct world_job job;
    struct rank_thread {
        struct threads *all;
        uint32_t rank;
    } rank[4];
};

static void *serve(void *argument)
{
    struct threads *t = argument;

    broker_serve(&t->broker);
    return NULL;
}

static void *be_rank(void *argument)
{
    const struct rank_thread *self = argument;
    const struct broker *b = &self->all->broker;
    struct broker_area *own = broker_area(b->arena, self->rank);

    broker_rank_run(own, b->bell[self->rank], b->arena->spare, &self->all->job,
                    self->rank);
    broker_rank_end(own, b->bell[self->rank]);
    return NULL;
}

UNIT_TEST(it_serves_threads)
{
    struct fsdp_mesh mesh = mesh_of(two_by_two);
    struct threads t = {.job = {.mesh = &mesh,
                                .n_ranks = 4,
                                .timeout_ms = PATIENT_MS,
                                .body = world_body_collectives,
                                .context = &mesh}};
    pthread_t broker;
    pthread_t rank[4];

    assert_true(broker_open(&t.broker, &t.job));
    assert_int_equal(pthread_create(&broker, NULL, serve, &t), 0);
    for (uint32_t r = 0; r < 4; r++) {
        t.rank[r] = (struct rank_thread){&t, r};
        assert_int_equal(pthread_create(&rank[r], NULL, be_rank, &t.rank[r]),
                         0);
    }
    for (uint32_t r = 0; r < 4; r++) {
        struct world_result result = {0};

        assert_int_equal(pthread_join(rank[r], NULL), 0);
        arena_read_result(t.broker.arena, r, &result);
        assert_string_equal(world_body_verdict(&result, 1), "");
    }
    for (uint32_t n = 0; n < 4; n = atomic_load(&t.broker.arena->n_ended)) {
        arena_wait_ended(t.broker.arena, n, 10);
    }
    (void)broker_end(&t.broker); /* there is no process */
    assert_int_equal(pthread_join(broker, NULL), 0);
    broker_close(&t.broker);
}

/* ---- Memory -------------------------------------------------------------- */

static int end_of(const struct broker *b, const volatile unsigned char *at)
{
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        broker_keep_own(b, 1);
        _exit(*at != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

UNIT_TEST(ranks_have_their_own_area_alone)
{
    struct fsdp_mesh mesh = mesh_of(two_by_two);
    const struct world_job job = {.mesh = &mesh, .n_ranks = 4};
    struct broker b;
    const unsigned char *end;

    assert_true(broker_open(&b, &job));
    end = (const unsigned char *)b.arena + b.arena->bytes - 1;
    for (uint32_t r = 0; r < 4; r++) {
        const int status = end_of(&b, broker_area(b.arena, r)->in);

        assert_int_equal(WIFEXITED(status), r == 1);
        assert_true(r == 1 || WIFSIGNALED(status));
    }
    assert_true(WIFSIGNALED(end_of(&b, (const unsigned char *)b.arena)));
    assert_true(WIFSIGNALED(end_of(&b, (const unsigned char *)b.carried)));
    assert_true(WIFSIGNALED(end_of(&b, end)));
    broker_close(&b);
}

/* ---- A broker that dies, or hangs ---------------------------------------- */

/* The broker is the first child of the ranks' parent. */
static pid_t find_broker(void)
{
    char path[64];
    int pid = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getppid(),
             getppid());
    f = fopen(path, "r");
    if (f && fscanf(f, "%d", &pid) != 1) { /* NOLINT(cert-err34-c) */
        pid = 0;
    }
    if (f) {
        (void)fclose(f);
    }
    return pid;
}

static int hurts_broker(void *context, struct world_rank *rank)
{
    const int *number = context;
    const pid_t pid = find_broker();

    FSDP_TRY(world_body_run(rank, FSDP_BARRIER, 0, NULL, NULL));
    if (rank->rank == 1 && pid > 0) {
        (void)kill(pid, *number);
    }
    for (int i = 0; i < 1000000; i++) {
        FSDP_TRY(world_body_run(rank, FSDP_BARRIER, 0, NULL, NULL));
    }
    return FSDP_OK;
}

UNIT_TEST(one_that_is_lost_is_named)
{
    static int signals[] = {SIGKILL, SIGSEGV, SIGSTOP};
    struct fsdp_mesh mesh = mesh_of(two_by_two);

    for (uint32_t i = 0; i < 3; i++) {
        const int64_t begin = arena_now_ms();
        struct fsdp_error error = {0};
        struct record_carried t[4] = {0};
        struct world_result result[4];

        assert_int_equal(world_run_carried(&mesh, HASTY_MS, hurts_broker,
                                           &signals[i], result, t, &error),
                         FSDP_ERR_COMM);
        assert_non_null(strstr(error.message, "carries what ranks send"));
        assert_true(arena_now_ms() - begin < PATIENT_MS);
        assert_int_equal(t[0].traffic.n_rows, 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
}

UNIT_TEST(more_ranks_than_it_carries_are_refused)
{
    const uint32_t extent[] = {1, BROKER_RANKS + 1};
    struct fsdp_mesh mesh = mesh_of(extent);
    struct world_result result[BROKER_RANKS + 1];
    struct fsdp_error error = {0};

    assert_int_equal(
        world_run_carried(&mesh, HASTY_MS, a_few, NULL, result, NULL, &error),
        FSDP_ERR_NOMEM);
    assert_non_null(strstr(error.message, "129 ranks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_carried_is_counted),
        cmocka_unit_test(what_is_sent_has_a_hash),
        cmocka_unit_test(what_is_no_turn_is_refused),
        cmocka_unit_test(it_serves_threads),
        cmocka_unit_test(ranks_have_their_own_area_alone),
        cmocka_unit_test(one_that_is_lost_is_named),
        cmocka_unit_test(more_ranks_than_it_carries_are_refused),
    };
    /* Crashes are on purpose here and need no core. */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
