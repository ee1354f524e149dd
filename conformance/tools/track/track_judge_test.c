/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_judge_test.c - what is a regression and what is none, in histories of
 * a few runs; and histories that cannot be read.
 */
#include "testing/unit_testing.h"
#include "tools/track/track_testing.h"
#include <fcntl.h>
#include <sqlite3.h>

static void add(struct track_bench *b, uint32_t commit, uint64_t gathers,
                uint64_t peak, double speed)
{
    const struct track_made m = {gathers, peak, speed, NULL, commit};

    assert_int_equal(track_add(b, &m, NULL), commit);
}

static void look(struct track_bench *b, uint32_t changes, uint32_t worse)
{
    assert_int_equal(track_look(b), FSDP_OK);
    assert_int_equal(b->v.n_change, changes);
    assert_int_equal(b->v.n_worse, worse);
}

static void one_more_gather(void **state)
{
    struct track_bench *b = *state;
    const struct track_change *c;

    add(b, 1, 80, 1000, 0);
    look(b, 0, 0);
    assert_int_equal(b->v.began, 1);
    add(b, 2, 80, 1000, 0);
    look(b, 0, 0);
    assert_int_equal(b->v.judged, 1);
    add(b, 3, 84, 1000, 0);
    look(b, 1, 1);
    c = &b->v.change[0];
    assert_string_equal(c->figure, "collectives.all-gather");
    assert_string_equal(b->v.series[c->series].name, "a.case");
    assert_int_equal(c->exact_before, 80);
    assert_int_equal(c->exact_after, 84);
    assert_int_equal(c->steps, 4);
    assert_int_equal(c->good, 2);
    assert_int_equal(c->bad, 3);
    /* A regression does not go away by lasting. */
    add(b, 4, 84, 1000, 0);
    look(b, 1, 1);
    assert_int_equal(b->v.change[0].bad, 3);
    add(b, 5, 80, 1000, 0);
    look(b, 0, 0);
}

static void one_byte_more(void **state)
{
    struct track_bench *b = *state;

    add(b, 1, 80, (UINT64_C(1) << 53) - 1, 0);
    add(b, 2, 80, UINT64_C(1) << 53, 0);
    look(b, 1, 1);
    assert_string_equal(b->v.change[0].figure, "peak.engine");
    assert_int_equal(b->v.change[0].exact_after - b->v.change[0].exact_before,
                     1);
}

/* Less is reported, and becomes the level when it is accepted. */
static void less_is_better(void **state)
{
    struct track_bench *b = *state;

    add(b, 1, 80, 1000, 0);
    add(b, 2, 80, 900, 0);
    look(b, 1, 0);
    add(b, 3, 80, 1000, 0);
    look(b, 0, 0); /* it was not accepted */
    add(b, 4, 80, 900, 0);
    assert_int_equal(track_accept_all(b, 4, "peak.*"), FSDP_OK);
    look(b, 0, 0);
    add(b, 5, 80, 1000, 0);
    look(b, 1, 1);
    assert_int_equal(b->v.change[0].exact_before, 900);
    assert_int_equal(b->v.change[0].good, 4);
}

/* An accepted change is the level; another figure's is not. */
static void accepting(void **state)
{
    struct track_bench *b = *state;

    add(b, 1, 80, 1000, 0);
    add(b, 2, 88, 1100, 0);
    look(b, 2, 2);
    assert_int_equal(track_accept_all(b, 2, "collectives.*"), FSDP_OK);
    look(b, 1, 1);
    assert_string_equal(b->v.change[0].figure, "peak.engine");
    assert_int_equal(track_accept_all(b, 2, "peak.engine"), FSDP_OK);
    look(b, 0, 0);
    add(b, 3, 89, 1100, 0);
    look(b, 1, 1);
    assert_int_equal(b->v.change[0].exact_before, 88);
}

/* A machine that is new begins anew, and the old one goes on. */
static void machines(void **state)
{
    struct track_bench *b = *state;
    const struct track_made other = {99, 9999, 10.0, "Machine B", 2};
    const struct track_made back = {81, 1000, 100.0, NULL, 3};

    add(b, 1, 80, 1000, 100.0);
    assert_int_equal(track_add(b, &other, NULL), 2);
    look(b, 0, 0);
    assert_int_equal(b->v.began, 2);
    assert_int_equal(b->v.n_gone, 0);
    assert_int_equal(track_add(b, &back, NULL), 3);
    look(b, 1, 1);
    assert_int_equal(b->v.change[0].good, 1);
}

/* While a history is young, a large change is called at once, and what was a
 * stumble of one run is none any more in the next, in neither direction. */
static void young(void **state)
{
    struct track_bench *b = *state;

    add(b, 1, 0, 0, 1000.0);
    look(b, 0, 0);
    assert_int_equal(b->v.n_young, 1);
    assert_int_equal(b->v.young_runs, 1);
    add(b, 2, 0, 0, 500.0);
    look(b, 1, 1);
    assert_true(b->v.change[0].large);
    assert_int_equal(b->v.change[0].good, 1);
    assert_int_equal(b->v.change[0].bad, 2);
    add(b, 3, 0, 0, 1001.0);
    look(b, 0, 0);
    for (uint32_t run = 4; run <= 20; run++) {
        add(b, run, 0, 0, 1000.0 + run % 5);
    }
    look(b, 0, 0);
    assert_int_equal(b->v.n_young, 0);
}

/* Never one number against another: a tenth of the speed in one run is no
 * change; a level of it is. */
static void speed(void **state)
{
    struct track_bench *b = *state;
    uint32_t run = 1;

    for (; run <= 20; run++) {
        add(b, run, 0, 0, 1000.0 + run % 5);
    }
    add(b, run++, 0, 0, 100.0);
    look(b, 0, 0);
    for (; run <= 32; run++) {
        add(b, run, 0, 0, 1000.0 + run % 5);
    }
    for (uint32_t i = 0; i < 5; i++) {
        add(b, run++, 0, 0, 900.0 + i);
    }
    look(b, 1, 1);
    assert_string_equal(b->v.change[0].figure, "tokens/s");
    assert_int_equal(b->v.change[0].good, 32);
    assert_int_equal(b->v.change[0].bad, 33);
    assert_int_equal(track_accept_all(b, run - 1, "tokens/s"), FSDP_OK);
    look(b, 0, 0);
    for (uint32_t i = 0; i < 20; i++) {
        add(b, run++, 0, 0, 900.0 + i % 5);
    }
    look(b, 0, 0);
    for (uint32_t i = 0; i < 5; i++) {
        add(b, run++, 0, 0, 1000.0 + i);
    }
    look(b, 1, 0); /* back up: better than what was accepted */
}

/* A change that was undone needs no acceptance. */
static void undone(void **state)
{
    struct track_bench *b = *state;
    uint32_t run = 1;

    for (; run <= 20; run++) {
        add(b, run, 0, 0, 1000.0 + run % 5);
    }
    for (; run <= 35; run++) {
        add(b, run, 0, 0, 900.0 + run % 5);
    }
    look(b, 1, 1);
    for (; run <= 42; run++) {
        add(b, run, 0, 0, 1000.0 + run % 5);
    }
    look(b, 1, 0);
}

static void gone(void **state)
{
    struct track_bench *b = *state;

    add(b, 1, 80, 1000, 100.0);
    add(b, 2, 0, 0, 100.0);
    look(b, 0, 0);
    assert_int_equal(b->v.n_gone, 1);
    assert_true(b->v.series[b->v.gone[0].series].exact);
    assert_int_equal(b->v.gone[0].last, 1);
}

static void twice_the_same(void **state)
{
    struct track_bench *b = *state;
    const struct track_made m = {80, 1000, 100.0, NULL, 1};
    bool again = true;

    assert_int_equal(track_add(b, &m, &again), 1);
    assert_false(again);
    assert_int_equal(track_add(b, &m, &again), 1);
    assert_true(again);
    assert_int_equal(track_look(b), FSDP_OK);
    assert_int_equal(b->v.n_runs, 1);
}

/* Another direction under an old name would turn a loss into a gain. */
static void another_direction(void **state)
{
    struct track_bench *b = *state;
    const struct track_made m = {0, 0, 100.0, NULL, 2};
    struct results r;
    int64_t run;
    bool again;

    add(b, 1, 0, 0, 100.0);
    track_make(&r, &m);
    r.timed[0].higher = false;
    assert_int_equal(history_add(b->h, &r, &run, &again, &b->error),
                     FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "another direction"));
    results_release(&r);
    memset(&b->error, 0, sizeof(b->error));
    look(b, 0, 0);
    assert_int_equal(b->v.n_runs, 1); /* nothing of the run was stored */
}

static void an_empty_history(void **state)
{
    struct track_bench *b = *state;

    assert_int_equal(track_look(b), FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "no runs"));
}

static void refuse(struct track_bench *b, enum history_mode mode, int status,
                   const char *why)
{
    struct history *h = NULL;
    struct fsdp_error error = {0};

    assert_int_equal(history_open(b->db, mode, &h, &error), status);
    assert_null(h);
    if (!strstr(error.message, why)) {
        fail_msg("'%s' has no '%s'", error.message, why);
    }
}

static void overwrite(const char *path, const void *bytes, size_t n)
{
    int f = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);

    assert_true(f >= 0);
    assert_int_equal(write(f, bytes, n), n);
    assert_int_equal(close(f), 0);
}

static void query(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void what_is_no_history(void **state)
{
    struct track_bench *b = *state;
    char noise[5000];

    history_close(b->h);
    b->h = NULL;
    query(b->db, "PRAGMA user_version = 7");
    refuse(b, HISTORY_MAKE, FSDP_ERR_FORMAT, "version 7; this program knows 1");
    refuse(b, HISTORY_READ, FSDP_ERR_FORMAT, "version 7; this program knows 1");
    query(b->db, "PRAGMA application_id = 7");
    refuse(b, HISTORY_MAKE, FSDP_ERR_FORMAT, "of another program");
    for (size_t i = 0; i < sizeof(noise); i++) {
        noise[i] = (char)(i * 37 + 11);
    }
    overwrite(b->db, noise, sizeof(noise));
    refuse(b, HISTORY_MAKE, FSDP_ERR_FORMAT, "is no database");
    refuse(b, HISTORY_READ, FSDP_ERR_FORMAT, "is no database");
    overwrite(b->db, noise, 0);
    refuse(b, HISTORY_READ, FSDP_ERR_FORMAT, "is empty");
    assert_int_equal(unlink(b->db), 0);
    refuse(b, HISTORY_READ, FSDP_ERR_IO, "No such file");
    refuse(b, HISTORY_WRITE, FSDP_ERR_IO, "No such file");
}

/* A file that another program has changed is checked as input from outside. */
static void a_damaged_history(void **state)
{
    struct track_bench *b = *state;

    add(b, 1, 80, 1000, 100.0);
    query(b->db, "UPDATE bundle SET text = '{\"steps\":-1,\"figures\":{}}'");
    assert_int_equal(track_look(b), FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "steps"));
    memset(&b->error, 0, sizeof(b->error));
    query(b->db, "DELETE FROM bundle");
    assert_int_equal(track_look(b), FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "figures are missing"));
    memset(&b->error, 0, sizeof(b->error));
    query(b->db, "DELETE FROM exact; UPDATE timed SET median = 9e999");
    assert_int_equal(track_look(b), FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "no number"));
    memset(&b->error, 0, sizeof(b->error));
    query(b->db, "DROP TABLE timed");
    assert_int_equal(track_look(b), FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "damaged"));
}

#define TEST(f) \
    cmocka_unit_test_setup_teardown(f, track_set_up, track_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_more_gather),
        TEST(one_byte_more),
        TEST(less_is_better),
        TEST(accepting),
        TEST(machines),
        TEST(young),
        TEST(speed),
        TEST(undone),
        TEST(gone),
        TEST(twice_the_same),
        TEST(another_direction),
        TEST(an_empty_history),
        TEST(what_is_no_history),
        TEST(a_damaged_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
