/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_failures.c - what is wrong, for people: each different failure once
 * and in full, with the cases that share it; twenty are enough to begin with,
 * unless all are asked for.
 */
#include "judge/report/report_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum {
    MAX_SHOWN = 20,
    MAX_ALSO = 3
};

static bool is_failure(const struct judge_result *r, uint32_t c, uint32_t q)
{
    uint32_t outcome = judge_item_at(r, c, q)->outcome;

    return r->reported[q] && (outcome == JUDGE_FAIL || outcome == JUDGE_ERROR ||
                              outcome == JUDGE_TIMEOUT);
}

static void put_failure(FILE *f, const struct judge_result *r, uint32_t c,
                        uint32_t q, const struct report_meta *meta)
{
    const struct judge_item *item = judge_item_at(r, c, q);
    const struct requirement *requirement = r->requirement[q];
    const struct finding *found = &item->detail->finding;
    char line[REPORT_LINE_BYTES];
    char clean[REPORT_LINE_BYTES];
    char value[REPORT_VALUE_BYTES];

    (void)fprintf(f, "%s %s (%s): %s\n", judge_outcome_name(item->outcome),
                  requirement->id, requirement->must != 0 ? "MUST" : "SHOULD",
                  requirement->text);
    (void)fprintf(f, "  case   %s\n", r->cases[c].id);
    report_place(item->detail, line);
    if (line[0] != '\0') {
        (void)fprintf(f, "  where  %s\n", report_printable(line, clean));
    }
    if (report_has_values(found)) {
        (void)fprintf(f, "  got    %s\n",
                      report_value(found->form, found->got, value));
        (void)fprintf(f, "  want   %s\n",
                      report_value(found->form, found->want, value));
    }
    /* How ranks ended is longer than a note. */
    (void)fprintf(f, "  what   %s\n",
                  report_printable(item->outcome == JUDGE_FAIL
                                       ? found->note
                                       : r->cases[c].reason,
                                   clean));
    if (meta->rerun != NULL) {
        (void)fprintf(
            f, "  rerun  %s\n",
            report_printable(report_rerun(meta, &r->cases[c], line), clean));
    }
}

void report_failure(const struct judge_result *r, uint32_t c, uint32_t q,
                    const struct report_meta *meta, FILE *out)
{
    put_failure(out, r, c, q, meta);
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && strncmp(s, word, n) == 0;
}

/* The next word that is the same in every case: none with a digit in it, and
 * no name, which stands behind "of" or "unit". Its length; 0: there is none.
 * What stands behind a semicolon is commentary. */
static size_t next_word(const char **at)
{
    bool name = false;

    for (;;) {
        const char *s = *at + strspn(*at, " ");
        size_t n = strcspn(s, " ;");
        bool skip = name;

        if (n == 0) {
            return 0;
        }
        for (size_t i = 0; i < n; i++) {
            skip = skip || isdigit((unsigned char)s[i]) != 0;
        }
        name = is_word(s, n, "of") || is_word(s, n, "unit");
        *at = skip || name ? s + n : s;
        if (!skip && !name) {
            return n;
        }
    }
}

/* Whether two notes say the same of different places. */
static bool same_words(const char *a, const char *b)
{
    for (;;) {
        size_t n = next_word(&a);
        size_t m = next_word(&b);

        if (n != m || strncmp(a, b, n) != 0) {
            return false;
        }
        if (n == 0) {
            return true;
        }
        a += n;
        b += m;
    }
}

static bool same_failure(const struct judge_result *r, uint32_t c, uint32_t d,
                         uint32_t q)
{
    const struct judge_item *x = judge_item_at(r, c, q);
    const struct judge_item *y = judge_item_at(r, d, q);
    const char *a;
    const char *b;

    if (x->outcome != y->outcome || !is_failure(r, d, q) || x->detail == NULL ||
        y->detail == NULL) {
        return false; /* what passed has no detail */
    }
    a = x->detail->finding.stage;
    b = y->detail->finding.stage;
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0 &&
           same_words(x->detail->finding.note, y->detail->finding.note);
}

/* Whether q fails in case c, and has not failed so in an earlier case. */
static bool is_new(const struct judge_result *r, uint32_t c, uint32_t q)
{
    if (!is_failure(r, c, q)) {
        return false;
    }
    for (uint32_t d = 0; d < c; d++) {
        if (same_failure(r, c, d, q)) {
            return false;
        }
    }
    return true;
}

/* The cases after c in which q fails as it does there. */
static void put_also(FILE *f, const struct judge_result *r, uint32_t c,
                     uint32_t q)
{
    uint32_t total = 0;
    uint32_t shown = 0;

    for (uint32_t d = c + 1; d < r->n_cases; d++) {
        total += same_failure(r, c, d, q) ? 1 : 0;
    }
    if (total == 0) {
        return;
    }
    (void)fprintf(f, "  and %" PRIu32 " more case%s:", total,
                  total > 1 ? "s" : "");
    for (uint32_t d = c + 1; d < r->n_cases && shown < MAX_ALSO; d++) {
        if (same_failure(r, c, d, q)) {
            (void)fprintf(f, "%s %s", shown > 0 ? "," : "", r->cases[d].id);
            shown++;
        }
    }
    (void)fputs(total > shown ? ", ...\n" : "\n", f);
}

/* The case in which q fails in its n-th way, from 0; n_cases: none. */
static uint32_t nth_failure(const struct judge_result *r, uint32_t q,
                            uint32_t n)
{
    uint32_t c = 0;

    for (; c < r->n_cases; c++) {
        if (is_new(r, c, q) && n-- == 0) {
            break;
        }
    }
    return c;
}

/* Shows the n-th failure of every requirement of a level, causes first. */
static uint32_t put_round(FILE *f, const struct judge_result *r,
                          const struct report_meta *meta, const uint32_t *order,
                          uint32_t level, uint32_t n, uint32_t room)
{
    uint32_t shown = 0;

    for (uint32_t i = 0; i < r->n_requirements && shown < room; i++) {
        uint32_t q = order[i];
        uint32_t c = r->n_cases;

        if (r->requirement[q]->level == level) {
            c = nth_failure(r, q, n);
        }
        if (c < r->n_cases) {
            put_failure(f, r, c, q, meta);
            put_also(f, r, c, q);
            shown++;
        }
    }
    return shown;
}

/* The lowest level first, and every requirement once before any twice: what
 * is wrong first is most likely the cause of the rest. */
void report_failures(FILE *f, const struct judge_result *r,
                     const struct report_meta *meta, const uint32_t *order)
{
    uint32_t total = 0;
    uint32_t different = 0;
    uint32_t shown = 0;
    uint32_t room;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        for (uint32_t c = 0; c < r->n_cases; c++) {
            total += is_failure(r, c, q) ? 1 : 0;
            different += is_new(r, c, q) ? 1 : 0;
        }
    }
    room = meta->verbose ? different : MAX_SHOWN;
    for (uint32_t n = 0; shown < different && shown < room; n++) {
        for (uint32_t l = 0; l < N_LEVELS; l++) {
            shown += put_round(f, r, meta, order, l, n, room - shown);
        }
    }
    if (different > shown) {
        (void)fprintf(f, "and %" PRIu32 " different failures more: %s\n",
                      different - shown,
                      meta->report != NULL ? meta->report
                                           : "--verbose, or --report FILE");
    }
    (void)fputs(total > 0 ? "\n" : "", f);
}
