/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_page_test.c - the page and the exports of small histories: that they
 * say what the history says, and that no name in it can break their form.
 */
#include "judge/draw/page_text.h"
#include "testing/unit_testing.h"
#include "tools/track/page.h"
#include "tools/track/strict.h"
#include "tools/track/track_export.h"
#include "tools/track/track_testing.h"

static char *text_of(struct track_bench *b, int format)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);

    assert_non_null(f);
    if (format < 0) {
        assert_int_equal(page_write(b->h, 0, NULL, f, &b->error), FSDP_OK);
    } else {
        assert_int_equal(
            track_export(b->h, (enum track_format)format, 0, f, &b->error),
            FSDP_OK);
    }
    assert_int_equal(fclose(f), 0);
    return text;
}

static void add(struct track_bench *b, uint32_t commit, uint64_t gathers,
                uint64_t peak, double speed)
{
    const struct track_made m = {gathers, peak, speed, NULL, commit};

    assert_int_equal(track_add(b, &m, NULL), commit);
}

static void has(const char *text, const char *what)
{
    if (!strstr(text, what)) {
        fail_msg("there is no '%s'", what);
    }
}

static uint32_t times(const char *text, const char *what)
{
    uint32_t n = 0;

    for (; (text = strstr(text, what)); text++) {
        n++;
    }
    return n;
}

static void a_page(void **state)
{
    struct track_bench *b = *state;
    uint32_t run = 1;
    char *page;

    for (; run <= 25; run++) {
        add(b, run, 80, run < 25 ? 1000 : 1024, 1000.0 + run % 5);
    }
    for (; run <= 30; run++) {
        add(b, run, 80, 1024, 900.0 + run % 5);
    }
    page = text_of(b, -1);
    has(page, "<li class=\"worse\"><b>2</b>regressions</li>");
    has(page, "peak.engine");
    has(page, "1\xe2\x80\xaf"
              "000 &#8594; <b>1\xe2\x80\xaf"
              "024</b> bytes");
    has(page, "aria-labelledby=\"t1 d1\"");
    has(page, "<title id=\"t1\">");
    has(page, "Content-Security-Policy\" content=\"default-src 'none'");
    has(page, "prefers-color-scheme:");
    has(page, "class=\"change worse\"");
    has(page, "-10.0 %");
    assert_int_equal(times(page, "<details class=\"case\""), 2);
    assert_int_equal(times(page, "<svg"), 2);
    assert_int_equal(times(page, "</svg>"), 2);
    assert_int_equal(times(page, "http"), 1); /* http-equiv */
    assert_int_equal(times(page, "src="), 0);
    free(page);
}

/* Names come from files of others. */
static void hostile_names(void **state)
{
    static const char evil[] = "</title><script>alert('1')</script>\"&";
    struct track_bench *b = *state;
    const struct track_made m = {80, 1000, 100.0, evil, 1};
    struct fsdp_error error = {0};
    struct results r;
    int64_t run;
    bool again;
    char *page;

    track_make(&r, &m);
    snprintf(r.exact[0].name, sizeof(r.exact[0].name), "%s", evil);
    snprintf(r.exact[0].engine, sizeof(r.exact[0].engine), "%s", evil);
    snprintf(r.timed[0].name, sizeof(r.timed[0].name), "%s", evil);
    snprintf(r.timed[0].unit, sizeof(r.timed[0].unit), "</svg><b>");
    free(r.exact[0].text);
    r.exact[0].text = strdup(
        "{\"steps\":1,\"figures\":{\"peak.engine\":7},\"bound\":5,\"timeline\":"
        "{\"step\":0,\"units\":[\"</desc><b>\"],\"moments\":[[\"pre-forward\","
        "0,[1,2,0,0,0,0,9]]]}}");
    assert_int_equal(history_add(b->h, &r, &run, &again, &error), FSDP_OK);
    results_release(&r);
    page = text_of(b, -1);
    assert_int_equal(times(page, "<script>"), 1); /* the page's own */
    assert_int_equal(times(page, "<b>alert"), 0);
    assert_int_equal(times(page, "</svg><b>"), 0);
    assert_int_equal(times(page, "</desc><b>"), 0);
    has(page, "&lt;/desc&gt;&lt;b&gt;");
    has(page, "&#39;1&#39;");
    free(page);
    page = text_of(b, TRACK_CSV);
    has(page, "\"</title><script>alert('1')</script>\"\"&\"");
    free(page);
    page = text_of(b, TRACK_CUSTOM_SMALLER);
    has(page, "alert('1')</script>\\\"&");
    free(page);
}

/* This program reads its own exports again, to the letter. */
static void exports_and_back(void **state)
{
    struct track_bench *b = *state;
    struct results r = {.n_exact = 0};
    int64_t run = 0;
    bool again = false;
    char *smaller;
    char *bigger;
    char *text;
    FILE *f;

    add(b, 1, 80, UINT64_C(1) << 52, 123.25);
    smaller = text_of(b, TRACK_CUSTOM_SMALLER);
    bigger = text_of(b, TRACK_CUSTOM_BIGGER);
    has(smaller, "\"unit\": \"bytes\"");
    has(smaller, "\"value\": 4503599627370496");
    has(bigger, "\"value\": 123.25");
    assert_null(strstr(smaller, "tokens/s"));
    for (uint32_t i = 0; i < 2; i++) {
        f = fopen(b->file, "w");
        assert_non_null(f);
        assert_true(fputs(i == 0 ? smaller : bigger, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(results_read(b->file, 0, &r, &b->error), FSDP_OK);
    }
    strcpy(r.commit, "c0000002");
    strcpy(r.machine.cpu, "Machine A");
    assert_int_equal(history_add(b->h, &r, &run, &again, &b->error), FSDP_OK);
    results_release(&r);
    text = text_of(b, TRACK_CUSTOM_SMALLER);
    assert_string_equal(text, smaller);
    free(text);
    text = text_of(b, TRACK_CUSTOM_BIGGER);
    assert_string_equal(text, bigger);
    free(text);
    assert_int_equal(track_look(b), FSDP_OK);
    assert_int_equal(b->v.judged, 2); /* the same series */
    free(smaller);
    free(bigger);
}

static void bencher(void **state)
{
    struct track_bench *b = *state;
    json_t *o;
    char *text;
    double value = 0;
    double low = 0;

    add(b, 1, 80, 1000, 100.0);
    text = text_of(b, TRACK_BENCHER);
    o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    assert_int_equal(json_unpack(o, "{s:{s:{s:F, s:F}}}", "step.a.mine mine",
                                 "tokens-per-s", "value", &value, "lower_value",
                                 &low),
                     0);
    assert_true(value == 100.0 && low == 98.0);
    assert_int_equal(json_unpack(o, "{s:{s:{s:F}}}", "a.case mine",
                                 "collectives-all-gather", "value", &value),
                     0);
    assert_true(value == 80.0);
    json_decref(o);
    free(text);
    text = text_of(b, TRACK_CSV);
    has(text, "1,\"c0000001\",\"1970-01-02T00:00:00Z\",\"Machine A\",\"mine\","
              "\"a.case\",\"peak.engine\",\"bytes\",lower,1000,,\r\n");
    free(text);
}

/* An empty list would be an error to programs that read it. */
static void nothing_to_export(void **state)
{
    struct track_bench *b = *state;
    FILE *f = fopen("/dev/null", "w");

    assert_non_null(f);
    add(b, 1, 80, 1000, 0);
    assert_int_equal(track_export(b->h, TRACK_CUSTOM_BIGGER, 0, f, &b->error),
                     FSDP_ERR_FORMAT);
    assert_non_null(strstr(b->error.message, "nothing for gab-bigger"));
    assert_int_equal(fclose(f), 0);
}

UNIT_TEST(numbers)
{
    char text[PAGE_NUMBER_BYTES];

    assert_string_equal(page_bytes(0, text), "0 B");
    assert_string_equal(page_bytes(1023, text), "1023 B");
    assert_string_equal(page_bytes(29844, text), "29.14 KiB");
    assert_string_equal(page_count(7, text), "7");
    assert_string_equal(page_count(1234567, text), "1\xe2\x80\xaf"
                                                   "234\xe2\x80\xaf"
                                                   "567");
    assert_string_equal(page_at(12.04, text), "12");
    assert_string_equal(page_at(-0.26, text), "-0.3");
    assert_string_equal(page_number(51956, text), "51.96k");
    assert_string_equal(page_date(86400, text), "1970-01-02");
}

#define TEST(f) \
    cmocka_unit_test_setup_teardown(f, track_set_up, track_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page),  TEST(hostile_names),     TEST(exports_and_back),
        TEST(bencher), TEST(nothing_to_export), TEST(numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
