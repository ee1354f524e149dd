/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_test.c - files of results: good ones, and for each rule one that
 * breaks it. Then every prefix and many small changes of a good one: none may
 * do harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "judge/judge.h"
#include "tools/track/strict.h"
#include "tools/track/track_testing.h"

static const char bench[] =
    "{\"format\":\"fsdp-bench\",\"version\":1,\"commit\":\"0123abcd\","
    "\"date\":\"2026-11-21T10:00:00Z\",\"hardware\":{\"cpu\":\"X\",\"cores\":2,"
    "\"memory_bytes\":17179869184,\"gpu\":null},\"results\":[{\"name\":"
    "\"step.gpt.k2.impl.memory\",\"unit\":\"tokens/s\",\"better\":\"higher\","
    "\"median\":3,\"p10\":2,\"p90\":4,\"samples\":[2,3,4]}]}";

static const char custom[] =
    "[{\"name\":\"a\",\"unit\":\"s\",\"value\":1.5,\"range\":\"0.1\"},"
    "{\"name\":\"b\",\"unit\":\"s\",\"value\":2}]";

/* A report of one case: its figures are made by name. */
static void make_report(char *out, size_t room)
{
    int n = snprintf(out, room,
                     "{\"type\":\"header\",\"report\":2,\"suite\":\"0.1.0\","
                     "\"dirty\":false,"
                     "\"compiler\":\"12\",\"engine\":\"ref\","
                     "\"engine_version\":\"1\",\"world\":\"local\","
                     "\"isolation\":\"limits\",\"claims\":[],"
                     "\"requirements\":[\"num.curve\"],"
                     "\"records\":\"r\",\"started\":1}\n"
                     "{\"type\":\"case\",\"case\":\"a.b\"}\n"
                     "{\"type\":\"figures\",\"case\":\"a.b\",\"steps\":4,"
                     "\"figures\":{");

    for (uint32_t i = 0; i < JUDGE_N_FIGURES; i++) {
        n += snprintf(out + n, room - (size_t)n, "%s\"%s\":%u",
                      i > 0 ? "," : "", judge_figure_name(i), i);
    }
    snprintf(
        out + n, room - (size_t)n,
        "},\"bound\":9,\"timeline\":{\"step\":1,\"units\":[\"u\"],\"moments\":"
        "[[\"begin\",null,[1,2,3,4,5,6,7]],[\"step\",0,[0,0,0,0,0,0,0]]]}}\n"
        "{\"type\":\"item\",\"case\":\"a.b\"}\n"
        "{\"type\":\"footer\",\"ended\":77}\n");
}

static int read_text(struct track_bench *b, const char *text, size_t bytes,
                     char better, struct results *r)
{
    FILE *f = fopen(b->file, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    memset(&b->error, 0, sizeof(b->error));
    return results_read(b->file, better, r, &b->error);
}

static void good_files(void **state)
{
    struct track_bench *b = *state;
    struct results r = {.n_exact = 0};
    char report[4000];
    char text[MACHINE_TEXT_BYTES];

    make_report(report, sizeof(report));
    assert_int_equal(read_text(b, bench, strlen(bench), 0, &r), FSDP_OK);
    assert_int_equal(read_text(b, report, strlen(report), 0, &r), FSDP_OK);
    assert_string_equal(r.commit, "0123abcd");
    assert_int_equal(r.date, 1795255200);
    machine_text(&r.machine, text);
    assert_string_equal(text, "X, 2 cores, 16 GiB");
    assert_int_equal(r.n_timed, 1);
    assert_string_equal(r.timed[0].engine, "impl");
    assert_true(r.timed[0].higher);
    assert_string_equal(r.timed[0].name, "step.gpt.k2.impl.memory");
    assert_int_equal(r.timed[0].n_samples, 3);
    assert_int_equal(r.n_exact, 1);
    assert_string_equal(r.exact[0].engine, "ref");
    assert_string_equal(r.exact[0].name, "a.b");
    assert_non_null(strstr(r.exact[0].text, "\"launches\":18},\"bound\":9"));
    /* The same once more is the same thing twice. */
    assert_int_equal(read_text(b, report, strlen(report), 0, &r),
                     FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "a second time"));
    results_release(&r);
    assert_int_equal(read_text(b, custom, strlen(custom), 'l', &r), FSDP_OK);
    assert_int_equal(r.n_timed, 2);
    assert_false(r.timed[0].higher);
    assert_true(r.timed[0].median == 1.5);
    results_release(&r);
}

struct fault {
    const char *from, *to, *why;
};

/* text with the first `from` replaced; NULL: it has none. */
static char *replaced(const char *text, const struct fault *x)
{
    const char *at = strstr(text, x->from);
    char *out = NULL;

    if (!at || asprintf(&out, "%.*s%s%s", (int)(at - text), text, x->to,
                        at + strlen(x->from)) < 0) {
        return NULL;
    }
    return out;
}

static void refuse(struct track_bench *b, const char *text,
                   const struct fault *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct results r = {.n_exact = 0};
        char *bad = replaced(text, &x[i]);

        assert_non_null(bad);
        assert_int_equal(read_text(b, bad, strlen(bad), 0, &r),
                         FSDP_ERR_FORMAT);
        if (!strstr(b->error.message, x[i].why)) {
            fail_msg("%zu: '%s' has no '%s'", i, b->error.message, x[i].why);
        }
        results_release(&r);
        free(bad);
    }
}

static void bad_bench_files(void **state)
{
    static const struct fault faults[] = {
        {"fsdp-bench", "other", "no report, no bench"},
        {"\"version\":1", "\"version\":2", "this reader knows 1"},
        {"\"version\":1,", "", "version"},
        {"0123abcd", "master", "4 to 64 digits"},
        {"0123abcd", "012", "4 to 64 digits"},
        {"21T10", "41T10", "date"},
        {"00Z", "00", "date"},
        {"\"cores\":2", "\"cores\":-2", "hardware.cores"},
        {"\"cores\":2", "\"cores\":2,\"more\":1", "unknown field \"more\""},
        {"\"gpu\":null", "\"gpu\":1", "hardware.gpu"},
        {"\"X\"", "\"X\\u0007\"", "control character"},
        {"\"X\"", "\"X\\u0000\"", "no JSON"},
        {"\"higher\"", "\"up\"", "better"},
        {"\"median\":3", "\"median\":5", "median <= p90"},
        {"\"median\":3", "\"median\":\"3\"", "a number was expected"},
        {"[2,3,4]", "[]", "samples"},
        {"[2,3,4]", "[2,null]", "samples"},
        {"\"unit\":\"tokens/s\"", "\"unit\":\"\"", "a text was expected"},
        {"\"unit\":\"tokens/s\",", "", "\"unit\" is missing"},
        {"\"name\":", "\"name\":\"x\",\"name\":", "no JSON"},
        {"]}]}", "]}", "no JSON"},
        {"[{\"name\"", "[7,{\"name\"", "an object was expected"},
    };

    refuse(*state, bench, faults, sizeof(faults) / sizeof(faults[0]));
}

static void bad_reports(void **state)
{
    static const struct fault faults[] = {
        {"\"report\":2", "\"report\":1", "this reader knows 2"},
        {"\"report\":2", "\"report\":\"2\"", "report"},
        {",\"engine\":\"ref\"", "", "nothing was recorded"},
        {"\"claims\":[]", "\"claims\":[],\"x\":1", "unknown field \"x\""},
        {"\"case\":\"a.b\",\"steps\"", "\"case\":\"a.c\",\"steps\"",
         "another case"},
        {"\"peak.engine\":", "\"peak.engines\":", "\"peak.engine\" is missing"},
        {"\"launches\":18", "\"launches\":18,\"more\":1", "20 of them"},
        {"\"launches\":18", "\"launches\":-18", "launches"},
        {"\"launches\":18", "\"launches\":1.5", "launches"},
        {"\"launches\":18", "\"launches\":\"18\"", "launches"},
        {"\"launches\":18", "\"launches\":18,\"<b>\":1", "is no name"},
        {"\"bound\":9,", "", "a bound"},
        {"\"begin\"", "\"start\"", "moments[0]: \"start\" is not"},
        {"\"step\",0,", "\"step\",1,", "unit"},
        {"[1,2,3,4,5,6,7]", "[1,2,3,4,5,6]", "6 elements"},
        {"\"steps\":4", "\"steps\":4,\"extra\":0", "unknown field \"extra\""},
        {"\"type\":\"item\"", "\"type\":\"thing\"", "\"thing\" is unknown"},
        {"{\"type\":\"footer\",\"ended\":77}\n", "", "there is no footer"},
        {"\"ended\":77}\n", "\"ended\":77}", "cut off"},
        {"\"ended\":77}\n", "\"ended\":77}\n{\"type\":\"item\"}\n",
         "behind the footer"},
        {"{\"type\":\"figures\"", "{\"type\":\"item\"", "no case has any"},
    };
    char report[4000];

    make_report(report, sizeof(report));
    refuse(*state, report, faults, sizeof(faults) / sizeof(faults[0]));
}

static void bad_custom_files(void **state)
{
    static const struct fault faults[] = {
        {"[{\"name\":\"a\"", "[{\"name\":\"a\"", "which is better"},
        {"\"range\":\"0.1\"", "\"extra\":\"fsdp-track {}\"", "extra"},
        {"\"range\":\"0.1\"", "\"extra\":\"fsdp-track {\"", "no JSON"},
        {"\"range\":\"0.1\"",
         "\"extra\":\"fsdp-track {\\\"kind\\\":\\\"x\\\",\\\"engine\\\":"
         "\\\"e\\\",\\\"case\\\":\\\"c\\\"}\"",
         "of no kind"},
        {"\"range\":\"0.1\"", "\"rage\":\"0.1\"", "unknown field \"rage\""},
    };

    refuse(*state, custom, faults, sizeof(faults) / sizeof(faults[0]));
}

/* Files of one run that do not belong together. */
static void files_that_disagree(void **state)
{
    static const struct fault other[] = {
        {"0123abcd", "0123abce", "where another file is of"},
        {"\"cores\":2", "\"cores\":4", "another machine"},
    };
    struct track_bench *b = *state;

    for (size_t i = 0; i < 2; i++) {
        struct results r = {.n_exact = 0};
        char *bad = replaced(bench, &other[i]);

        assert_non_null(bad);
        assert_int_equal(read_text(b, bench, strlen(bench), 0, &r), FSDP_OK);
        assert_int_equal(read_text(b, bad, strlen(bad), 0, &r),
                         FSDP_ERR_FORMAT);
        assert_non_null(strstr(b->error.message, other[i].why));
        results_release(&r);
        free(bad);
    }
}

static void damage_does_no_harm(void **state)
{
    struct track_bench *b = *state;
    const char *const files[] = {bench, custom, NULL};
    char report[4000];
    uint64_t random = 1;
    uint32_t refused = 0;

    make_report(report, sizeof(report));
    for (uint32_t k = 0; k < 3; k++) {
        const char *good = files[k] ? files[k] : report;
        size_t n = strlen(good);

        for (uint32_t i = 0; i < 300; i++) {
            struct results r = {.n_exact = 0};
            char *bad = strdup(good);
            size_t bytes = i % 2 == 0 ? n : n * i / 300;

            assert_non_null(bad);
            random = random * UINT64_C(6364136223846793005) + 1;
            bad[(random >> 33) % n] = (char)(random >> 25);
            refused += read_text(b, bad, bytes, 'l', &r) != FSDP_OK ? 1 : 0;
            results_release(&r);
            free(bad);
        }
    }
    assert_true(refused > 500);
}

static void dates(void **state)
{
    int64_t t = 0;

    (void)state;
    assert_true(results_date("1970-01-02T00:00:00Z", &t));
    assert_int_equal(t, 86400);
    assert_true(results_date("1970-01-01T02:00:00.25+01:30", &t));
    assert_int_equal(t, 1800);
    assert_true(results_date("1970-01-01T00:00:00-00:30", &t));
    assert_int_equal(t, 1800);
    assert_false(results_date("1970-01-01", &t));
    assert_false(results_date("1970-13-01T00:00:00Z", &t));
    assert_false(results_date("1970-01-01T00:00:00Zx", &t));
    assert_false(results_date("1970-01-01T00:00:00+1:30", &t));
    assert_false(results_date("", &t));
}

#define TEST(f) \
    cmocka_unit_test_setup_teardown(f, track_set_up, track_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_files),
        TEST(bad_bench_files),
        TEST(bad_reports),
        TEST(bad_custom_files),
        TEST(files_that_disagree),
        TEST(damage_does_no_harm),
        TEST(dates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
