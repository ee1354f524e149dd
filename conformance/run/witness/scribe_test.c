/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scribe_test.c - what a rank's recorder sees arrives whole and in order, also
 * if it is far more than a pipe holds; a rank cannot change later what it has
 * told; and words without a meaning make no record.
 */
#include "run/process/whole_io.h"
#include "run/witness/rank_line.h"
#include "run/witness/scribe.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LARGE = 100000, /* elements: several pipes */
    MANY = 200
};

/* Runs `tell` in a process of its own, and the scribe here. Returns whether
 * each word had a meaning. */
static bool hear(void (*tell)(struct crossing *c), struct scribe *s)
{
    struct rank_line_said said;
    bool good = true;
    int line[2];
    int ends[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, line), 0);
    assert_int_equal(pipe(ends), 0);
    assert_true(scribe_begin(s));
    pid = fork();
    if (pid == 0) {
        struct crossing c = {
            .pipe = ends[1], .line = line[1], .most = crossing_room(ends[1])};

        close(line[0]);
        close(ends[0]);
        tell(&c);
        _exit(0);
    }
    assert_true(pid > 0);
    close(line[1]);
    close(ends[1]);
    while (good && rank_line_hear(line[0], &said)) {
        if (said.word == RANK_LINE_WRITE) {
            break;
        }
        assert_int_equal(said.word, RANK_LINE_DRAIN);
        assert_true(scribe_drain(s, ends[0], said.n));
        good = !s->lost && rank_line_answer(line[0], said.word);
    }
    close(line[0]);
    close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return good;
}

static const struct record_collective gather = {.unit = 3, .n = 7};
static const struct record_collective reduce = {.kind = 1, .unit = 4, .n = 9};

/* Tells a sequence of two collectives, the same again, and another one. */
static void tell_collectives(struct crossing *c)
{
    struct record_rank r = {.n_steps = 0};
    struct fsdp_error error;

    for (int i = 0; i < 2; i++) {
        crossing_collective(c, &gather);
        crossing_collective(c, &reduce);
        crossing_mark(c);
    }
    crossing_exchange(c, 16);
    crossing_collective(c, &reduce);
    crossing_exchange(c, 3);
    crossing_mismatch(c);
    crossing_mark(c);
    (void)crossing_end(c, &r, &error);
}

/* Checks the counts of all that was told, whether it is recorded or not. */
static void expect_told(const struct scribe_told *told)
{
    assert_int_equal(told->own, 0);
    assert_int_equal(told->of.n_rows, 2);
    assert_int_equal(told->of.row[0].kind, gather.kind);
    assert_int_equal(told->of.row[0].calls, 2);
    assert_int_equal(told->of.row[0].n, 14);
    assert_int_equal(told->of.row[1].kind, reduce.kind);
    assert_int_equal(told->of.row[1].calls, 3);
    assert_int_equal(told->of.row[1].n, 27);
    assert_int_equal(told->of.exchanges, 2);
    assert_int_equal(told->of.exchanged, 19);
    assert_int_equal(told->of.amid, 1);
    assert_int_equal(told->of.mismatches, 1);
}

UNIT_TEST(test_collectives)
{
    struct scribe s;

    assert_true(hear(tell_collectives, &s));
    assert_true(s.ended && !s.lost);
    assert_int_equal(s.r.n_sequences, 3); /* and the empty one */
    assert_int_equal(s.r.sequence[0].n, 0);
    assert_int_equal(s.r.sequence[1].n, 2);
    assert_memory_equal(&s.r.sequence[1].c[1], &reduce, sizeof(reduce));
    assert_int_equal(s.r.sequence[2].n, 1);
    expect_told(&s.told);
    scribe_release(&s);
}

static void tell_own(struct crossing *c)
{
    struct record_rank r = {.n_steps = 0};
    struct fsdp_error error;

    crossing_own(c);
    (void)crossing_end(c, &r, &error);
}

UNIT_TEST(test_own_communicator)
{
    struct scribe s;

    assert_true(hear(tell_own, &s));
    assert_true(s.ended && !s.lost);
    assert_int_equal(s.told.own, 1);
    scribe_release(&s);
}

static float value(uint64_t i)
{
    return (float)i * 0.5f;
}

/* A large tensor; a small one, and the same once more, which adds up. */
static void tell_tensors(struct crossing *c)
{
    static float data[LARGE];
    struct record_tensor t = {.stage = RECORD_REDUCED, .n = LARGE};
    struct record_rank r = {.n_tensors = 2};
    struct fsdp_error error;

    t.data = data;
    for (uint64_t i = 0; i < LARGE; i++) {
        data[i] = value(i);
    }
    crossing_tensor(c, &t);
    t.step = 1;
    t.n = 3;
    crossing_tensor(c, &t);
    crossing_tensor(c, &t);
    (void)crossing_end(c, &r, &error);
}

UNIT_TEST(test_tensors)
{
    struct scribe s;

    assert_true(hear(tell_tensors, &s));
    assert_true(s.ended && !s.lost);
    assert_int_equal(s.r.n_tensors, 2);
    assert_int_equal(s.r.tensor[0].n, LARGE);
    for (uint64_t i = 0; i < LARGE; i++) {
        assert_true(s.r.tensor[0].data[i] == value(i));
    }
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(s.r.tensor[1].data[i] == 2.0f * value(i));
    }
    scribe_release(&s);
}

/* Tells as many messages as fill a pipe, each of more than half a page. */
static void tell_many(struct crossing *c)
{
    static float data[520];
    struct record_tensor t = {.stage = RECORD_REDUCED, .n = 520};
    struct record_rank r = {.n_tensors = MANY};
    struct fsdp_error error;

    t.data = data;
    for (uint32_t i = 0; i < MANY; i++) {
        t.parameter = i;
        crossing_tensor(c, &t);
    }
    (void)crossing_end(c, &r, &error);
}

UNIT_TEST(test_many)
{
    struct scribe s;

    assert_true(hear(tell_many, &s));
    assert_true(s.ended && !s.lost);
    assert_int_equal(s.r.n_tensors, MANY);
    scribe_release(&s);
}

/* Lets lists grow; changes elements after they were sent, which must have no
 * effect; and cuts the lists, as for a life that gives way. */
static void tell_lists(struct crossing *c)
{
    float loss[4] = {1, 2, 3, 4};
    float other[4] = {5, 6, 7, 8};
    struct record_rank r = {.loss = loss,
                            .n_losses = 2,
                            .other_loss = other,
                            .n_other_losses = 3,
                            .status = -7};
    struct fsdp_error error;

    crossing_lists(c, &r);
    loss[0] = 100; /* forged: too late */
    r.n_losses = 4;
    r.n_other_losses = 1;
    crossing_lists(c, &r);
    other[1] = 60;
    r.n_other_losses = 2;
    memset(r.error.message, 'x', sizeof(r.error.message)); /* has no end */
    (void)crossing_end(c, &r, &error);
}

UNIT_TEST(test_lists)
{
    struct scribe s;

    assert_true(hear(tell_lists, &s));
    assert_true(s.ended && !s.lost);
    assert_int_equal(s.r.status, -7);
    assert_int_equal(s.r.n_losses, 4);
    assert_true(s.r.loss[0] == 1 && s.r.loss[3] == 4);
    assert_int_equal(s.r.n_other_losses, 2);
    assert_true(s.r.other_loss[0] == 5 && s.r.other_loss[1] == 60);
    assert_int_equal(strlen(s.r.error.message), sizeof(s.r.error.message) - 1);
    scribe_release(&s);
}

UNIT_TEST(test_written)
{
    char folder[] = "/tmp/scribe-test-XXXXXX";
    char file[64];
    struct fsdp_error error;
    struct scribe s;

    assert_non_null(mkdtemp(folder));
    assert_true(hear(tell_collectives, &s));
    assert_true(scribe_write(&s, folder, 5, &error));
    assert_int_equal(error.status, FSDP_OK);
    snprintf(file, sizeof(file), "%s/rank-5.json", folder);
    assert_int_equal(access(file, R_OK), 0);
    assert_int_equal(unlink(file), 0);
    snprintf(file, sizeof(file), "%s/rank-5.safetensors", folder);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_true(scribe_write(&s, "/nowhere/at/all", 5, &error));
    assert_int_not_equal(error.status, FSDP_OK);
    scribe_release(&s);
}

/* ---- Without a meaning --------------------------------------------------- */

static void say(struct crossing *c, struct crossing_head head)
{
    static const char nothing[4096];

    (void)whole_write(c->pipe, &head, sizeof(head));
    (void)whole_write(c->pipe, nothing, sizeof(nothing));
    (void)rank_line_ask(c->line, RANK_LINE_DRAIN,
                        sizeof(head) + sizeof(nothing));
}

static void tell_unknown(struct crossing *c)
{
    say(c, (struct crossing_head){77, 0, 0});
}

static void tell_huge(struct crossing *c)
{
    say(c, (struct crossing_head){CROSSING_TENSOR, 0, UINT64_MAX / 2});
}

static void tell_no_list(struct crossing *c)
{
    say(c, (struct crossing_head){CROSSING_GROWN, CROSSING_LISTS, 1});
}

/* Nothing comes behind the end. */
static void tell_twice(struct crossing *c)
{
    static const struct record_rank r;
    const struct crossing_head end = {CROSSING_END, 0, 1};

    for (int i = 0; i < 2; i++) {
        (void)whole_write(c->pipe, &end, sizeof(end));
        (void)whole_write(c->pipe, &r, sizeof(r));
    }
    (void)rank_line_ask(c->line, RANK_LINE_DRAIN,
                        2 * (uint32_t)(sizeof(end) + sizeof(r)));
}

UNIT_TEST(test_senseless)
{
    static void (*const all[])(struct crossing * c) = {
        tell_unknown, tell_huge, tell_no_list, tell_twice};
    struct fsdp_error error;
    struct scribe s;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        (void)hear(all[i], &s);
        assert_true(s.lost);
        assert_false(scribe_write(&s, "/tmp", 0, &error));
        scribe_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_own_communicator),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_senseless),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
