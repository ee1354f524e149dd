/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_failures.c - what is wrong, for people: each different failure once
 * and in full, with the cases that share it; twenty are enough to begin with,
 * unless all are asked for.
 */
#include "judge/report/report_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SHOWN = 20,
    MAX_TOLD = 40, /* lines */
    MAX_ALSO = 3
};

static bool is_failure(const struct judge_result *r, uint32_t c, uint32_t q)
{
    return r->reported[q] && judge_is_failure(judge_item_at(r, c, q));
}

/* Writes the first lines of what the ranks printed and where they stood. */
static void put_told(FILE *f, const struct judge_result *r, uint32_t c,
                     uint32_t q, const struct report_meta *meta)
{
    const char *at = report_told(r, c, q);
    char line[REPORT_LINE_BYTES];
    uint32_t n = 0;

    while (at && (n < MAX_TOLD || meta->verbose) &&
           report_told_line(&at, line)) {
        fprintf(f, "  %s   %s\n", n++ == 0 ? "told" : "    ", line);
    }
    if (at && *at != '\0') {
        fputs("         ... (--verbose: all of it)\n", f);
    }
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

    fprintf(f, "%s %s (%s): %s\n", judge_outcome_name(item->outcome),
            requirement->id, requirement->must != 0 ? "MUST" : "SHOULD",
            requirement->text);
    fprintf(f, "  case   %s\n", r->cases[c].id);
    report_place(item->detail, line);
    if (line[0] != '\0') {
        fprintf(f, "  where  %s\n", report_printable(line, clean));
    }
    if (report_has_values(found)) {
        fprintf(f, "  got    %s\n",
                report_value(found->form, found->got, value));
        fprintf(f, "  want   %s\n",
                report_value(found->form, found->want, value));
    }
    /* The reason says how ranks ended, for which a note is too short. */
    fprintf(f, "  what   %s\n",
            report_printable(item->outcome == JUDGE_FAIL ? found->note
                                                         : r->cases[c].reason,
                             clean));
    put_told(f, r, c, q, meta);
    if (meta->rerun) {
        fprintf(
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

/* Finds the next word that is the same in every case: not one with a digit, and
 * not a name, which stands behind "of" or "unit". Returns its length; 0: there
 * is none. Text behind a semicolon is commentary. */
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

/* Whether two notes say the same thing of different places. */
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

    if (x->outcome != y->outcome || !is_failure(r, d, q) || !x->detail ||
        !y->detail) {
        return false; /* what passed has no detail */
    }
    a = x->detail->finding.stage;
    b = y->detail->finding.stage;
    return strcmp(a ? a : "", b ? b : "") == 0 &&
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

/* The other cases in which q fails as it does in c. */
static void put_also(FILE *f, const struct judge_result *r, uint32_t c,
                     uint32_t q, const struct report_meta *meta)
{
    uint32_t total = 0;
    uint32_t shown = 0;

    for (uint32_t d = 0; d < r->n_cases; d++) {
        total += d != c && same_failure(r, c, d, q) ? 1 : 0;
    }
    if (total == 0) {
        return;
    }
    fprintf(f, "  and %" PRIu32 " more case%s:", total, total > 1 ? "s" : "");
    for (uint32_t d = 0; d < r->n_cases && shown < MAX_ALSO; d++) {
        if (d != c && same_failure(r, c, d, q)) {
            fprintf(f, "%s %s", shown > 0 ? "," : "", r->cases[d].id);
            shown++;
        }
    }
    fputs(total > shown ? ", ...\n" : "\n", f);
    if (total > shown && meta->report) {
        fprintf(f, "  all    fsdp-cts run --from %s --failed\n", meta->report);
    }
}

/* A failure that is unlike all others: the n-th one of its requirement, from
 * 0. */
struct different {
    const struct judge_result *r;
    uint32_t c, q, n;
};

/* Each requirement's first failure comes before any second one; causes
 * first. */
static int compare_different(const void *a, const void *b)
{
    const struct different *x = a;
    const struct different *y = b;

    if (x->n != y->n) {
        return x->n < y->n ? -1 : 1;
    }
    return judge_compare_causes(x->r, x->c, x->q, y->c, y->q);
}

/* All different failures, sorted; *n is their number. NULL: no memory. */
static struct different *list_different(const struct judge_result *r,
                                        uint32_t *n)
{
    struct different *list;
    size_t most = 1;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        for (uint32_t c = 0; c < r->n_cases; c++) {
            most += is_failure(r, c, q) ? 1 : 0;
        }
    }
    list = malloc(most * sizeof(*list));
    *n = 0;
    for (uint32_t q = 0; q < r->n_requirements && list; q++) {
        uint32_t nth = 0;

        for (uint32_t c = 0; c < r->n_cases; c++) {
            if (is_new(r, c, q)) {
                list[(*n)++] = (struct different){r, c, q, nth++};
            }
        }
    }
    if (list) {
        qsort(list, *n, sizeof(*list), compare_different);
    }
    return list;
}

static void put_with_others(FILE *f, const struct judge_result *r, uint32_t c,
                            uint32_t q, const struct report_meta *meta)
{
    put_failure(f, r, c, q, meta);
    put_also(f, r, c, q, meta);
}

void report_first_cause(FILE *f, const struct judge_result *r,
                        const struct report_meta *meta)
{
    uint32_t c;
    uint32_t q;

    if (judge_first_cause(r, &c, &q)) {
        fputs("look at this first:\n", f);
        put_with_others(f, r, c, q, meta);
        fputc('\n', f);
    }
}

int report_failures(FILE *f, const struct judge_result *r,
                    const struct report_meta *meta)
{
    uint32_t different;
    struct different *list = list_different(r, &different);
    uint32_t room = meta->verbose ? different : MAX_SHOWN;
    uint32_t shown = 1; /* the first cause stands at the top */
    uint32_t c = r->n_cases;
    uint32_t q = 0;

    if (!list) {
        return FSDP_ERR_NOMEM;
    }
    (void)judge_first_cause(r, &c, &q);
    for (uint32_t i = 0; i < different && shown < room; i++) {
        if (list[i].q != q || !same_failure(r, c, list[i].c, q)) {
            put_with_others(f, r, list[i].c, list[i].q, meta);
            shown++;
        }
    }
    if (different > shown) {
        fprintf(f, "and %" PRIu32 " different failures more: %s\n",
                different - shown,
                meta->report ? meta->report : "--verbose, or --report FILE");
    }
    fputs(different > 1 ? "\n" : "", f);
    free(list);
    return FSDP_OK;
}
