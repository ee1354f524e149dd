/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_test.c - the three reports of one run that is made up: what is in
 * them, and that nothing that a record says can break their form.
 */
#include "judge/judge_testing.h"
#include "judge/report/report.h"
#include "testing/unit_testing.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_BYTES = 65536
};

static const char hostile[] = "<&\"'\x1b[2J\xff]]>";

struct bench {
    struct testing_run run;
    struct judge_result result;
    struct report_meta meta;
    struct fsdp_error error;
    char path[64], text[MAX_BYTES];
};

/* A step of `n` all-gathers, and the numbers that are measured beside it. */
static void give_step(struct record_rank *r, uint32_t n)
{
    r->n_sequences = 2; /* shard and the end communicate nothing */
    r->sequence = calloc(2, sizeof(*r->sequence));
    r->n_steps = 1;
    r->step_sequence = calloc(1, sizeof(*r->step_sequence));
    r->memory.after_step = calloc(1, sizeof(*r->memory.after_step));
    r->memory.allocations = calloc(1, sizeof(*r->memory.allocations));
    r->memory.launches = calloc(1, sizeof(*r->memory.launches));
    r->memory.moment = calloc(1, sizeof(*r->memory.moment));
    if (!r->sequence || !r->step_sequence || !r->memory.after_step ||
        !r->memory.allocations || !r->memory.launches || !r->memory.moment) {
        abort();
    }
    r->step_sequence[0] = 1;
    r->sequence[1].c = calloc(n, sizeof(*r->sequence[1].c));
    if (!r->sequence[1].c) {
        abort();
    }
    r->sequence[1].n = n;
    for (uint32_t i = 0; i < n; i++) {
        r->sequence[1].c[i] =
            (struct record_collective){.kind = FSDP_ALL_GATHER,
                                       .dim = FSDP_DIM_SHARD,
                                       .dtype = FSDP_DTYPE_F32,
                                       .n = 10};
    }
    r->memory.allocations[0] = n + 2;
    r->memory.launches[0] = 9 - n;
    r->memory.n_moments = 1;
    r->memory.moment[0] =
        (struct record_moment){FSDP_PRE_FORWARD, 1, {1, 2, 3, 4, 5, 6, 7}};
}

/* A run in which a requirement fails, one is blocked, one case is missing. */
static int set_up(void **state)
{
    static struct bench b;
    int f;

    memset(&b, 0, sizeof(b));
    testing_run_make(&b.run);
    for (uint32_t i = 0; i < TESTING_CASES; i++) {
        snprintf(b.run.record[i].engine, sizeof(b.run.record[i].engine), "%s",
                 hostile);
    }
    b.run.record[0].rank[1].loss[0] = 0.5f;
    give_step(&b.run.record[0].rank[0], 2);
    give_step(&b.run.record[0].rank[1], 3);
    b.run.missing[1] = true;
    if (judge(&b.run.in, &b.result) != FSDP_OK) {
        return -1;
    }
    b.meta = (struct report_meta){.suite_version = "1.0",
                                  .rerun = "fsdp-cts run --case ",
                                  .started = 86400,
                                  .report = "run.jsonl"};
    strcpy(b.path, "/tmp/report_test.XXXXXX");
    f = mkstemp(b.path);
    if (f < 0) {
        return -1;
    }
    *state = &b;
    return close(f);
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    judge_release(&b->result);
    testing_run_release(&b->run);
    return unlink(b->path);
}

static void slurp(struct bench *b)
{
    FILE *f = fopen(b->path, "rb");
    size_t n;

    assert_non_null(f);
    n = fread(b->text, 1, MAX_BYTES - 1, f);
    b->text[n] = '\0';
    assert_int_equal(fclose(f), 0);
    assert_true(n > 0 && n < MAX_BYTES - 1);
}

/* Writes a report and reads it back into b->text. */
static void write_jsonl(struct bench *b)
{
    assert_int_equal(report_jsonl(&b->result, &b->meta, b->path, &b->error),
                     FSDP_OK);
    slurp(b);
}

static void write_junit(struct bench *b)
{
    assert_int_equal(report_junit(&b->result, &b->meta, b->path, &b->error),
                     FSDP_OK);
    slurp(b);
}

static void print_text(struct bench *b, const struct judge_result *r)
{
    FILE *f = fopen(b->path, "wb");

    assert_non_null(f);
    assert_int_equal(report_text(r, &b->meta, f), FSDP_OK);
    assert_int_equal(fclose(f), 0);
    slurp(b);
}

static void is_plain_text(const char *s)
{
    for (; *s != '\0'; s++) {
        assert_true(*s == '\n' || (*s >= ' ' && *s <= '~'));
    }
}

static const char *string_at(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static void json_lines(void **state)
{
    struct bench *b = *state;
    uint32_t n[5] = {0};
    json_t *failed = NULL;
    json_t *footer = NULL;

    write_jsonl(b);
    is_plain_text(b->text);
    for (char *line = strtok(b->text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *type = string_at(o, "type");

        assert_non_null(o);
        assert_null(footer);
        n[0] += strcmp(type, "header") == 0 ? 1 : 0;
        n[1] += strcmp(type, "case") == 0 ? 1 : 0;
        n[2] += strcmp(type, "item") == 0 ? 1 : 0;
        n[3] += strcmp(type, "footer") == 0 ? 1 : 0;
        n[4] += strcmp(type, "figures") == 0 ? 1 : 0;
        if (strcmp(string_at(o, "outcome"), "fail") == 0) {
            failed = json_incref(o);
        }
        if (n[3] > 0) {
            footer = json_incref(o);
        }
        json_decref(o);
    }
    assert_int_equal(n[0], 1);
    assert_int_equal(n[1], 2);
    assert_int_equal(n[2], 10); /* 12, of which 2 do not apply */
    assert_int_equal(n[3], 1);
    assert_int_equal(n[4], 1); /* of the case whose ranks ran to the end */
    assert_string_equal(string_at(failed, "requirement"), "test.loss");
    assert_int_equal(
        strncmp(string_at(failed, "rerun"), "fsdp-cts run --case mlp.seed", 28),
        0);
    json_decref(failed);
    assert_string_equal(string_at(footer, "verdict"), "NON-CONFORMANT");
    json_decref(footer);
}

static void a_failure_in_json(void **state)
{
    struct bench *b = *state;
    const char *at = NULL;

    write_jsonl(b);
    at = strstr(b->text, "\"finding\"");
    assert_non_null(at);
    assert_non_null(strstr(at,
                           "\"stage\":\"reduced\",\"step\":0,\"unit\":1,"
                           "\"unit_name\":\"m2\",\"rank\":1,\"parameter\":1,"
                           "\"tensor\":\"p1\",\"element\":700,\"flat\":700,"
                           "\"shard\":1,\"local\":188,\"got\":\"0x3f000000\","
                           "\"got_decimal\":\"0.5\",\"want\":\"0x3f800000\","
                           "\"want_decimal\":\"1\""));
    assert_non_null(strstr(b->text, "\"blocked_by\":\"test.loss\""));
    assert_non_null(strstr(b->text, "\"engine\":\"<&\\\"'?[2J?]]>\""));
    assert_non_null(strstr(b->text, "\"reason\":\"there is no record\""));
    assert_non_null(strstr(b->text, "\"fail\":1,\"error\":0"));
    assert_non_null(strstr(
        b->text, "\"manifest\":{\"cases\":2,\"selected\":2,\"not_claimed\":0,"
                 "\"expected\":2,\"executed\":1,\"sha256\":\"00ff\"}"));
}

/* Each figure is that of the rank with most; the timeline is rank 0's. */
static void exact_figures(void **state)
{
    struct bench *b = *state;
    const char *at;

    write_jsonl(b);
    at = strstr(b->text, "{\"type\":\"figures\",\"case\":\"mlp.");
    assert_non_null(at);
    assert_non_null(
        strstr(at, "\"steps\":1,\"figures\":{\"peak.param-shard\""));
    assert_non_null(strstr(
        at, "\"collectives.all-gather\":3,\"collectives.reduce-scatter\":0,"
            "\"collectives.all-reduce\":0,\"collectives.broadcast\":0,"
            "\"collectives.barrier\":0,\"wire-bytes\":120,"
            "\"allocations\":5,\"launches\":7}"));
    assert_non_null(strstr(at, "\"timeline\":{\"step\":0,\"units\":["));
    assert_non_null(strstr(at, "\"moments\":[[\"pre-forward\",0,"
                               "[1,2,3,4,5,6,7]]]}}"));
}

static uint32_t times(const char *text, const char *what)
{
    uint32_t n = 0;

    for (; (text = strstr(text, what)); text++) {
        n++;
    }
    return n;
}

static void junit(void **state)
{
    struct bench *b = *state;

    write_junit(b);
    is_plain_text(b->text);
    assert_int_equal(times(b->text, "<testcase "), 10);
    assert_int_equal(times(b->text, "<failure "), 1);
    assert_int_equal(times(b->text, "</failure>"), 1);
    assert_int_equal(times(b->text, "<error "), 5); /* all of case 1 */
    assert_int_equal(times(b->text, "<skipped "), 2);
    assert_int_equal(times(b->text, "<testsuite "), 5);
    assert_int_equal(times(b->text, "</testsuite>"), 5);
    assert_non_null(strstr(b->text, "<testsuites name=\"&lt;&amp;&quot;&#39;"
                                    "?[2J?]]&gt;\" tests=\"10\" "
                                    "failures=\"1\" errors=\"5\" "
                                    "skipped=\"2\">"));
    /* The note of the requirement has mark-up and an escape in it. */
    assert_non_null(strstr(b->text, "&lt;loss&gt; &amp; &quot;bits&quot; "
                                    "?[31m differ; got 0x3f000000 (0.5), "
                                    "want 0x3f800000 (1)\""));
    assert_non_null(strstr(b->text, "message=\"blocked by test.loss\"/>"));
    assert_non_null(strstr(b->text, "rerun: fsdp-cts run --case mlp.seed"));
    assert_non_null(strstr(b->text, "timestamp=\"1970-01-02T00:00:00\""));
}

/* What ranks printed, where they stood and for how long, is told of a case in
 * which something failed, at its first failure. */
static void what_ranks_told(void **state)
{
    struct bench *b = *state;

    b->result.cases[0].told = strdup("rank 1 printed: <\033>\n  #0 reduce\n");
    b->result.cases[0].seconds = 1.5;
    assert_non_null(b->result.cases[0].told);
    print_text(b, &b->result);
    is_plain_text(b->text);
    assert_int_equal(times(b->text, "  told   rank 1 printed: <?>\n"
                                    "           #0 reduce\n"),
                     1);
    write_junit(b);
    assert_int_equal(times(b->text, "<system-out>rank 1 printed: &lt;?&gt;\n"
                                    "  #0 reduce\n</system-out>\n"),
                     1);
    write_jsonl(b);
    assert_int_equal(times(b->text, "\"milliseconds\":1500"), 1);
    assert_int_equal(times(b->text, "reduce\\n"), 0);
}

/* Cases whose last collectives are only counted. */
static void what_is_followed(void **state)
{
    struct bench *b = *state;

    b->result.followed.cases = 2;
    b->result.followed.known = 8192;
    b->result.followed.of = 9600;
    print_text(b, &b->result);
    assert_int_equal(times(b->text, "what collectives carry was asked of the "
                                    "first 8192 of 9600, in 2 cases that have "
                                    "more\n"),
                     1);
    write_jsonl(b);
    assert_int_equal(times(b->text, "\"followed\":8192,\"followed_of\":9600,"
                                    "\"followed_in\":2,"),
                     1);
}

static void for_people(void **state)
{
    struct bench *b = *state;

    print_text(b, &b->result);
    is_plain_text(b->text);
    assert_ptr_equal(b->text,
                     strstr(b->text, "look at this first:\nfail test.loss "
                                     "(MUST): The first loss is one."));
    assert_int_equal(times(b->text, "fail test.loss"), 1);
    assert_non_null(strstr(b->text, "  where  reduced, step 0, unit 1 (m2), "
                                    "rank 1, p1, element 700, flat 700, "
                                    "shard 1, local 188\n"));
    assert_non_null(strstr(b->text, "  got    0x3f000000 (0.5)\n"));
    assert_non_null(strstr(b->text, "  want   0x3f800000 (1)\n"));
    assert_non_null(strstr(b->text, "  rerun  fsdp-cts run --case mlp.seed"));
    assert_non_null(strstr(b->text, "right up to level: none\n"));
    assert_non_null(strstr(b->text, "NON-CONFORMANT: <&\"'?[2J?]]>, 1 of 2 "
                                    "cases judged, 0 not claimed; 2 pass, 1 "
                                    "fail, 2 blocked"));
    assert_int_equal(times(b->text, "more"), 0);
    assert_int_equal(times(b->text, "test.ring"), 0); /* not applicable */
    assert_non_null(strstr(b->text, "and 1 that nothing was asked of"));
}

/* Requirements of which nothing was asked are counted, and listed if all is
 * wanted. */
static void for_people_who_want_all(void **state)
{
    struct bench *b = *state;
    struct judge_case *c = &b->result.cases[1];

    c->outcome = JUDGE_NOT_CLAIMED;
    snprintf(c->reason, sizeof(c->reason),
             "the engine does not claim: prefetch");
    print_text(b, &b->result);
    assert_non_null(strstr(
        b->text, "not claimed, cases that need prefetch 1 (--verbose lists"));
    assert_null(strstr(b->text, " not-claimed"));
    assert_null(strstr(b->text, "claims that are none"));
    snprintf(b->result.claim[0], sizeof(b->result.claim[0]), "full-shrad");
    b->meta.verbose = true;
    print_text(b, &b->result);
    assert_non_null(strstr(b->text, "not tested: 'full-shrad'\n"));
    assert_null(strstr(b->text, "cases that need"));
    assert_non_null(strstr(b->text, " not-claimed "));
    assert_int_equal(times(b->text, "test.ring"), 1);
    assert_null(strstr(b->text, "that nothing was asked of"));
}

/* 30 times the same case, where two requirements fail; `letter`: in another
 * way in each case, else with another number. */
static void report_many(struct bench *b, bool letter)
{
    struct judge_result many = b->result;
    struct judge_detail detail[30];

    many.n_cases = 30;
    many.cases = calloc(30, sizeof(*many.cases));
    many.item = calloc((size_t)30 * TESTING_N, sizeof(*many.item));
    assert_non_null(many.cases);
    assert_non_null(many.item);
    for (uint32_t c = 0; c < 30; c++) {
        struct judge_item *item = &many.item[(size_t)c * TESTING_N];

        memcpy(item, b->result.item, TESTING_N * sizeof(*item));
        detail[c] = *item[TESTING_LOSS].detail;
        snprintf(detail[c].finding.note, sizeof(detail[c].finding.note),
                 letter ? "rank %u is %c" : "rank %u is wrong", c,
                 'A' + (int)c);
        item[TESTING_LOSS].detail = &detail[c];
        item[TESTING_PEAK] = item[TESTING_LOSS];
        snprintf(many.cases[c].id, sizeof(many.cases[c].id), "case.%u", c);
    }
    print_text(b, &many);
    free(many.cases);
    free(many.item);
}

static void no_more_than_twenty_in_full(void **state)
{
    struct bench *b = *state;

    report_many(b, true);
    assert_int_equal(times(b->text, "\nfail "), 20);
    assert_int_equal(times(b->text, "fail test.peak (SHOULD)"), 10);
    assert_int_equal(times(b->text, " more case"), 0);
    assert_non_null(
        strstr(b->text, "and 40 different failures more: run.jsonl\n"));
    b->meta.verbose = true;
    report_many(b, true);
    assert_int_equal(times(b->text, "\nfail "), 60);
    assert_null(strstr(b->text, "different failures more"));
}

static void the_same_failure_once(void **state)
{
    struct bench *b = *state;

    report_many(b, false);
    assert_int_equal(times(b->text, "\nfail "), 2);
    assert_int_equal(times(b->text, "fail test.peak (SHOULD)"), 1);
    assert_int_equal(
        times(b->text, "\n  and 29 more cases: case.1, case.2, case.3, ...\n"),
        2);
    assert_int_equal(times(b->text, "different failures"), 0);
}

static void a_path_that_cannot_be_written(void **state)
{
    struct bench *b = *state;

    assert_int_equal(
        report_jsonl(&b->result, &b->meta, "/nowhere/at/all.jsonl", &b->error),
        FSDP_ERR_IO);
    assert_non_null(strstr(b->error.message, "/nowhere/at/all.jsonl.partial"));
    memset(&b->error, 0, sizeof(b->error));
    assert_int_equal(
        report_junit(&b->result, &b->meta, "/dev/null/x", &b->error),
        FSDP_ERR_IO);
    assert_int_equal(b->error.status, FSDP_ERR_IO);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json_lines),
        TEST(a_failure_in_json),
        TEST(exact_figures),
        TEST(junit),
        TEST(what_ranks_told),
        TEST(what_is_followed),
        TEST(for_people),
        TEST(for_people_who_want_all),
        TEST(no_more_than_twenty_in_full),
        TEST(the_same_failure_once),
        TEST(a_path_that_cannot_be_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
