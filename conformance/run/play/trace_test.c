/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_test.c - traces of two ranks, by the reference and by the streaming
 * engine: they are JSON, have an event for each collective of the record, and
 * on no stream does an event begin before the one before it has ended.
 */
#include "run/play/playing_testing.h"
#include "run/witness/trace.h"
#include "testing/unit_testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RANKS = 2,
    MAX_BYTES = 1 << 22,
    MAX_TRACKS = 8,
    NO_STREAMS = 1000 /* tracks from here on are no streams */
};

static void run(struct playing *p, const struct fsdp_engine *engine, bool trace)
{
    playing_open(p,
                 "mlp.seed.natural.full-shard.k2.flat.layer.rank.ns.adamw.pf1."
                 "pb1.rif1.steps3.rec1",
                 NULL, engine);
    p->drive.trace = trace;
    playing_play(p);
}

/* The events of a rank are a list without its brackets. */
static json_t *load(const char *directory, uint32_t rank)
{
    char *text = calloc(1, MAX_BYTES);
    char path[96];
    json_t *root;
    size_t n;
    FILE *f;

    assert_non_null(text);
    snprintf(path, sizeof(path), "%s/rank-%u.trace.partial", directory, rank);
    f = fopen(path, "rbe");
    assert_non_null(f);
    text[0] = '[';
    n = 1 + fread(text + 1, 1, MAX_BYTES - 3, f);
    assert_true(n < MAX_BYTES - 3);
    text[n] = ']';
    fclose(f);
    assert_int_equal(unlink(path), 0);
    root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    free(text);
    return root;
}

static bool is_text(const json_t *object, const char *key, const char *want)
{
    const char *got = json_string_value(json_object_get(object, key));

    return got && strcmp(got, want) == 0;
}

static double number(const json_t *object, const char *key)
{
    const json_t *x = json_object_get(object, key);

    assert_true(json_is_number(x));
    return json_number_value(x);
}

/* Checks that events follow each other on each track; times are rounded to a
 * nanosecond. */
static void assert_in_order(const json_t *root)
{
    double end[MAX_TRACKS] = {0};
    size_t i;
    const json_t *e;

    json_array_foreach(root, i, e)
    {
        if (is_text(e, "ph", "X") && number(e, "tid") < NO_STREAMS) {
            size_t track = (size_t)number(e, "tid");
            assert_true(track < MAX_TRACKS);
            assert_true(number(e, "ts") >= end[track] - 0.01);
            assert_true(number(e, "dur") >= 0.0);
            end[track] = number(e, "ts") + number(e, "dur");
        }
    }
}

static uint64_t count_events(const json_t *root, const char *name)
{
    uint64_t n = 0;
    size_t i;
    const json_t *e;

    json_array_foreach(root, i, e)
    {
        n += is_text(e, "cat", "collective") && is_text(e, "name", name);
    }
    return n;
}

static uint64_t count_recorded(const struct record_rank *r, uint32_t kind)
{
    uint64_t n = 0;

    for (uint32_t s = 0; s < r->n_steps; s++) {
        const struct record_sequence *q = &r->sequence[r->step_sequence[s]];
        for (uint32_t i = 0; i < q->n; i++) {
            n += q->c[i].kind == kind;
        }
    }
    return n;
}

static bool has_track(const json_t *root, const char *name)
{
    size_t i;
    const json_t *e;

    json_array_foreach(root, i, e)
    {
        if (is_text(e, "name", "thread_name") &&
            is_text(json_object_get(e, "args"), "name", name)) {
            return true;
        }
    }
    return false;
}

/* Checks that the k-th collective of a kind has the values of the record. */
static void assert_arguments(const json_t *root)
{
    size_t i;
    const json_t *e;

    json_array_foreach(root, i, e)
    {
        const json_t *args = json_object_get(e, "args");
        if (is_text(e, "cat", "collective")) {
            assert_true(number(args, "unit") < 4.0);
            assert_true(number(args, "bytes") > 0.0);
            assert_true(number(args, "step") < 3.0);
            assert_true(json_is_string(json_object_get(args, "point")));
            assert_true(json_is_string(json_object_get(args, "waits")));
        }
    }
}

/* The greatest value of a counter. */
static double counter(const json_t *root, const char *what)
{
    double most = -1.0;
    char name[64];
    size_t i;
    const json_t *e;

    snprintf(name, sizeof(name), "memory %s", what);
    json_array_foreach(root, i, e)
    {
        if (is_text(e, "ph", "C") && is_text(e, "name", name)) {
            double x = number(json_object_get(e, "args"), "bytes");
            most = x > most ? x : most;
        }
    }
    return most;
}

/* Checks that counters reach the peaks of the record, and do not exceed the
 * bound. */
static void assert_counters(const json_t *root, const struct record_memory *m)
{
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        const double most = counter(root, record_kind_name(k));

        assert_true(most < 0.0 ? m->peak[k] == 0
                               : (uint64_t)most == m->peak[k]);
    }
    assert_int_equal((uint64_t)counter(root, "engine"), m->peak_engine);
    assert_true(counter(root, "bound") >= (double)m->peak_engine);
}

static uint64_t count_slices(const json_t *root, double low, const char *name)
{
    uint64_t n = 0;
    size_t i;
    const json_t *e;

    json_array_foreach(root, i, e)
    {
        n += is_text(e, "ph", "X") && number(e, "tid") >= low &&
             is_text(e, "name", name);
    }
    return n;
}

/* Whether an event of the arrow's track begins where the arrow does. */
static bool is_event(const json_t *root, const json_t *arrow)
{
    size_t i;
    const json_t *e;

    json_array_foreach(root, i, e)
    {
        if (is_text(e, "ph", "X") && number(e, "tid") < NO_STREAMS &&
            json_equal(json_object_get(e, "tid"),
                       json_object_get(arrow, "tid")) &&
            json_equal(json_object_get(e, "ts"),
                       json_object_get(arrow, "ts"))) {
            return number(e, "dur") > 0.0;
        }
    }
    return false;
}

/* Checks that each arrow begins and ends at an event, on two tracks; returns
 * how many there are. */
static uint64_t assert_arrows(const json_t *root)
{
    const json_t *from = NULL;
    uint64_t n = 0;
    size_t i;
    const json_t *e;

    json_array_foreach(root, i, e)
    {
        if (is_text(e, "ph", "s")) {
            from = e;
        } else if (is_text(e, "ph", "f")) {
            assert_non_null(from);
            assert_true(json_equal(json_object_get(from, "id"),
                                   json_object_get(e, "id")));
            assert_true(number(from, "tid") < number(e, "tid") ||
                        number(from, "tid") > number(e, "tid"));
            assert_true(number(from, "ts") <= number(e, "ts"));
            assert_true(is_event(root, from) && is_event(root, e));
            from = NULL;
            n++;
        }
    }
    assert_null(from);
    return n;
}

static void check(const struct fsdp_engine *engine, const char *track,
                  bool streams)
{
    struct playing p;
    struct record r;

    run(&p, engine, true);
    playing_read(&p, &r);
    for (uint32_t k = 0; k < RANKS; k++) {
        json_t *root = load(p.folder, k);
        assert_int_equal(count_recorded(&r.rank[k], FSDP_ALL_GATHER), 48);
        assert_int_equal(count_recorded(&r.rank[k], FSDP_REDUCE_SCATTER), 12);
        assert_int_equal(count_events(root, "all-gather"), 48);
        assert_int_equal(count_events(root, "reduce-scatter"), 12);
        assert_int_equal(count_events(root, "all-reduce"), 0);
        assert_true(has_track(root, "compute"));
        assert_true(has_track(root, track));
        assert_in_order(root);
        assert_arguments(root);
        assert_counters(root, &r.rank[k].memory);
        assert_true((assert_arrows(root) > 20) == streams);
        assert_true(has_track(root, "steps"));
        assert_int_equal(count_slices(root, NO_STREAMS, "step 2"), 1);
        assert_int_equal(count_slices(root, NO_STREAMS, "backward"), 6);
        assert_int_equal(count_slices(root, NO_STREAMS, "layers.3"), 12);
        /* There is a window for each all-gather. */
        assert_true(has_track(root, "expected window of unit 3"));
        assert_int_equal(count_slices(root, NO_STREAMS, "whole"), 48);
        json_decref(root);
    }
    record_release(&r);
    playing_close(&p);
}

UNIT_TEST(the_reference)
{
    check(fsdp_ref_engine(), "host", false);
}

UNIT_TEST(the_streaming_engine)
{
    check(fsdp_impl_engine(), "reduce-scatter", true);
}

/* On a device that takes no times they are those of the calls. */
static struct fsdp_device blind;

static int open_blind(struct fsdp_env *env)
{
    FSDP_TRY(fsdp_ref_engine()->open(env));
    blind = *env->device;
    blind.size = offsetof(struct fsdp_device, stamp);
    blind.stamp = NULL;
    return FSDP_OK;
}

UNIT_TEST(a_device_without_a_clock)
{
    struct trace_event *e;
    struct fsdp_env env = {.size = sizeof(env)};
    struct race *race = race_open(NULL);
    struct trace *t;

    assert_int_equal(open_blind(&env), FSDP_OK);
    t = trace_open(&blind, race);
    assert_non_null(t);
    e = trace_begin(t, NULL, RACE_COPY, FSDP_NO_UNIT, 8);
    trace_end(t, NULL, e);
    assert_true(e->begin > 0);
    assert_true(e->end >= e->begin);
    trace_close(t);
    race_close(race);
    fsdp_ref_engine()->close(&env);
}

UNIT_TEST(nobody_asked)
{
    struct playing p;

    run(&p, fsdp_impl_engine(), false);
    playing_close(&p); /* nothing else was there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference),
        cmocka_unit_test(the_streaming_engine),
        cmocka_unit_test(a_device_without_a_clock),
        cmocka_unit_test(nobody_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
