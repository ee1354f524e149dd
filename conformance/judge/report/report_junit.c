/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_junit.c - the same items as JUnit XML, for CI systems: a test suite
 * for each requirement, a test case for each case that it was judged by. A case
 * that could not be judged is an error there, because these systems show
 * skipped tests as if all were well.
 */
#include "judge/report/report_internal.h"

#include "judge/report/markup.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

static void put_escaped(FILE *f, const char *s)
{
    char clean[REPORT_LINE_BYTES];

    for (s = report_printable(s, clean); *s != '\0'; s++) {
        markup_put(f, *s);
    }
}

static void put_attribute(FILE *f, const char *name, const char *value)
{
    fprintf(f, " %s=\"", name);
    put_escaped(f, value);
    fputc('"', f);
}

/* The element of JUnit for an outcome; NULL: it is a pass. */
static const char *element_of(uint32_t outcome)
{
    switch (outcome) {
    case JUDGE_PASS:
        return NULL;
    case JUDGE_FAIL:
        return "failure";
    case JUDGE_BLOCKED:
    case JUDGE_SKIP:
    case JUDGE_NOT_CLAIMED:
        return "skipped";
    default:
        return "error";
    }
}

struct tally {
    uint32_t tests, failures, errors, skipped;
};

static void count_one(uint32_t outcome, struct tally *t)
{
    const char *element = element_of(outcome);

    t->tests++;
    t->failures += element && element[0] == 'f' ? 1 : 0;
    t->errors += element && element[0] == 'e' ? 1 : 0;
    t->skipped += element && element[0] == 's' ? 1 : 0;
}

static void count(const struct judge_result *r, uint32_t q, struct tally *t)
{
    for (uint32_t c = 0; c < r->n_cases; c++) {
        if (report_shows(r, c, q)) {
            count_one(judge_item_at(r, c, q)->outcome, t);
        }
    }
}

static void put_tally(FILE *f, const struct tally *t)
{
    fprintf(f,
            " tests=\"%" PRIu32 "\" failures=\"%" PRIu32 "\" errors=\"%" PRIu32
            "\" skipped=\"%" PRIu32 "\"",
            t->tests, t->failures, t->errors, t->skipped);
}

/* "comm.order", or "impl comm.order" */
static void put_name(FILE *f, const char *attribute, const char *engine,
                     const char *id)
{
    fprintf(f, " %s=\"", attribute);
    if (engine) {
        put_escaped(f, engine);
        fputc(' ', f);
    }
    put_escaped(f, id);
    fputc('"', f);
}

/* A test case; `rerun` may be empty, `told` NULL. */
struct one {
    const char *engine, *id, *text, *name, *why, *rerun, *told;
    uint32_t outcome;
    uint64_t milliseconds; /* 0: has no time */
};

/* Writes seconds in the form that these systems expect. */
static void put_time(FILE *f, uint64_t milliseconds)
{
    fprintf(f, " time=\"%" PRIu64 ".%03" PRIu64 "\"", milliseconds / 1000,
            milliseconds % 1000);
}

static void put_told(FILE *f, const char *at)
{
    char line[REPORT_LINE_BYTES];

    if (!at) {
        return;
    }
    fputs("      <system-out>", f);
    while (report_told_line(&at, line)) {
        put_escaped(f, line);
        fputc('\n', f);
    }
    fputs("</system-out>\n", f);
}

static void put_one(FILE *f, const struct one *one)
{
    const char *element = element_of(one->outcome);

    fputs("    <testcase", f);
    put_name(f, "classname", one->engine, one->id);
    put_attribute(f, "name", one->name);
    if (one->milliseconds > 0) {
        put_time(f, one->milliseconds);
    }
    if (!element) {
        fputs("/>\n", f);
        return;
    }
    fprintf(f, ">\n      <%s", element);
    put_attribute(f, "message", one->why);
    if (element[0] != 's') {
        put_attribute(f, "type", judge_outcome_name(one->outcome));
        fputc('>', f);
        put_escaped(f, one->text);
        if (one->rerun[0] != '\0') {
            fputs("\nrerun: ", f);
            put_escaped(f, one->rerun);
        }
        fprintf(f, "</%s>\n", element);
        put_told(f, one->told);
        fputs("    </testcase>\n", f);
    } else {
        fputs("/>\n    </testcase>\n", f);
    }
}

/* A case was played once for all requirements. Its time is given to the
 * requirement that asks whether it came to its end. */
static uint64_t time_of(const struct judge_result *r, uint32_t c, uint32_t q)
{
    return strcmp(r->requirement[q]->id, REQUIREMENT_RUN) == 0
               ? report_milliseconds(&r->cases[c])
               : 0;
}

static uint64_t time_of_all(const struct judge_result *r, uint32_t q)
{
    uint64_t sum = 0;

    for (uint32_t c = 0; c < r->n_cases; c++) {
        sum += report_shows(r, c, q) ? time_of(r, c, q) : 0;
    }
    return sum;
}

static void put_case(FILE *f, const struct judge_result *r, uint32_t c,
                     uint32_t q, const struct report_meta *meta,
                     const char *engine)
{
    char why[REPORT_LINE_BYTES];
    char rerun[REPORT_LINE_BYTES];
    const struct one one = {.engine = engine,
                            .id = r->requirement[q]->id,
                            .text = r->requirement[q]->text,
                            .name = r->cases[c].id,
                            .why = report_why(r, c, q, why),
                            .rerun = report_rerun(meta, &r->cases[c], rerun),
                            .told = report_told(r, c, q),
                            .outcome = judge_item_at(r, c, q)->outcome,
                            .milliseconds = time_of(r, c, q)};

    put_one(f, &one);
}

/* Writes the drawn scripts as a suite of one test case, which belongs to no
 * requirement. */
static void put_drawn(FILE *f, const struct judge_result *r,
                      const struct report_meta *meta, const char *engine)
{
    const struct judge_drawn *d = &r->drawn;
    char why[REPORT_LINE_BYTES];
    char rerun[REPORT_LINE_BYTES];
    const struct one one = {.engine = engine,
                            .id = REPORT_DRAWN_ID,
                            .text = REPORT_DRAWN_TEXT,
                            .name = d->first[0] != '\0' ? d->first : "all",
                            .why = report_drawn_why(d, why),
                            .rerun = report_drawn_rerun(meta, d, rerun),
                            .outcome = report_drawn_outcome(d)};
    struct tally t = {0};

    if (d->wanted) {
        count_one(one.outcome, &t);
        fputs("  <testsuite", f);
        put_name(f, "name", engine, one.id);
        put_tally(f, &t);
        fputs(">\n", f);
        put_one(f, &one);
        fputs("  </testsuite>\n", f);
    }
}

/* engine: NULL if there is only one. */
static void put_suite(FILE *f, const struct judge_result *r, uint32_t q,
                      const struct report_meta *meta, const char *engine)
{
    const struct requirement *requirement = r->requirement[q];
    struct tally t = {0};
    time_t started = (time_t)meta->started;
    struct tm utc;
    char stamp[32];

    count(r, q, &t);
    if (t.tests == 0) {
        return;
    }
    fputs("  <testsuite", f);
    put_name(f, "name", engine, requirement->id);
    put_tally(f, &t);
    if (time_of_all(r, q) > 0) {
        put_time(f, time_of_all(r, q));
    }
    if (meta->started > 0 && gmtime_r(&started, &utc) &&
        strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc) > 0) {
        put_attribute(f, "timestamp", stamp);
    }
    fputs(">\n    <properties>\n      <property name=\"requirement\"", f);
    put_attribute(f, "value", requirement->text);
    fprintf(f,
            "/>\n      <property name=\"strength\" value=\"%s\"/>\n"
            "      <property name=\"verdict\" value=\"%s\"/>\n"
            "    </properties>\n",
            requirement->must != 0 ? "MUST" : "SHOULD",
            judge_verdict_name(r->verdict));
    for (uint32_t c = 0; c < r->n_cases; c++) {
        if (report_shows(r, c, q)) {
            put_case(f, r, c, q, meta, engine);
        }
    }
    fputs("  </testsuite>\n", f);
}

/* "ref" or "ref, impl" */
static void put_engines(FILE *f, const struct report_part *part, uint32_t n)
{
    fputs(" name=\"", f);
    for (uint32_t i = 0; i < n; i++) {
        fputs(i > 0 ? ", " : "", f);
        put_escaped(f, part[i].result->engine);
    }
    fputc('"', f);
}

int report_junit_all(const struct report_part *part, uint32_t n,
                     const char *path, struct fsdp_error *error)
{
    struct report_file file;
    struct tally t = {0};
    uint64_t milliseconds = 0;
    int status = report_file_open(&file, path, error);

    if (status != FSDP_OK) {
        return status;
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t q = 0; q < part[i].result->n_requirements; q++) {
            count(part[i].result, q, &t);
            milliseconds += time_of_all(part[i].result, q);
        }
        if (part[i].result->drawn.wanted) {
            count_one(report_drawn_outcome(&part[i].result->drawn), &t);
        }
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", file.f);
    put_engines(file.f, part, n);
    put_tally(file.f, &t);
    if (milliseconds > 0) {
        put_time(file.f, milliseconds);
    }
    fputs(">\n", file.f);
    for (uint32_t i = 0; i < n; i++) {
        const struct judge_result *r = part[i].result;

        for (uint32_t q = 0; q < r->n_requirements; q++) {
            put_suite(file.f, r, q, part[i].meta, n > 1 ? r->engine : NULL);
        }
        put_drawn(file.f, r, part[i].meta, n > 1 ? r->engine : NULL);
    }
    fputs("</testsuites>\n", file.f);
    return report_file_close(&file, FSDP_OK);
}

int report_junit(const struct judge_result *r, const struct report_meta *meta,
                 const char *path, struct fsdp_error *error)
{
    const struct report_part part = {r, meta};

    return report_junit_all(&part, 1, path, error);
}
