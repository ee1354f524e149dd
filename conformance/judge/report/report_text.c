/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_text.c - the report for people: the failure to look at first, what
 * ran, what was asked of it, other failures in full, and at the end the line
 * that counts.
 */
#include "cases/case_claims.h"
#include "judge/judge_adapter.h"
#include "judge/report/progress.h"
#include "judge/report/report_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SHOWN = 20,
    MAX_LISTED = 20
};

static const char *or_unknown(const char *name)
{
    return name ? name : "?";
}

/* Whether an adapter does not claim to show this: what was not measured must
 * not be printed as a number. */
static bool lacks(const struct judge_result *r, const char *claim)
{
    return record_world_is_adapter(r->world) && !judge_claims(r, claim);
}

/* Writes the line of a case; its id says what the case is. */
static void put_case(FILE *f, const struct judge_result *r,
                     const struct judge_case *c)
{
    char peak[48] = "-";
    char counts[32] = "-";
    char loss[24] = "-";
    char off[32] = "-";

    if (c->has_losses) {
        snprintf(loss, sizeof(loss), "%.9g", (double)c->final_loss);
        snprintf(off, sizeof(off), "%" PRIu32 "/%" PRIu32, c->losses_off,
                 c->n_losses);
    }
    if (lacks(r, "f32-fma")) {
        snprintf(off, sizeof(off), "n/a");
    }
    if (c->has_counts) {
        snprintf(peak, sizeof(peak), "%" PRIu64 "/%" PRIu64, c->peak,
                 c->peak_expected);
        if (lacks(r, "live-bytes")) {
            snprintf(peak, sizeof(peak), "n/a");
        }
        snprintf(counts, sizeof(counts), "%" PRIu32 "/%" PRIu32, c->collectives,
                 c->collectives_expected);
    }
    fprintf(f, "%12s %7s %19s %9s %-11s %s\n", loss, off, peak, counts,
            c->outcome == JUDGE_PASS ? "judged"
                                     : judge_outcome_name(c->outcome),
            c->id);
}

/* Whether something is off, or failed, in case c. Cases that are not claimed
 * are counted elsewhere. */
static bool deviates(const struct judge_result *r, uint32_t c)
{
    const struct judge_case *const one = &r->cases[c];
    uint32_t failed;

    return one->outcome == JUDGE_PASS
               ? one->losses_off > 0 || judge_first_cause_of(r, c, &failed)
               : one->outcome != JUDGE_NOT_CLAIMED;
}

/* The text behind "the engine does not claim: ". */
static const char *lacking(const struct judge_case *c)
{
    const char *claim = strstr(c->reason, ": ");

    return claim ? claim + 2 : c->reason;
}

/* Writes the cases that are not claimed, by the first claim that each lacks. */
static void put_unclaimed(FILE *f, const struct judge_result *r)
{
    uint32_t listed = 0;

    for (uint32_t c = 0; c < r->n_cases; c++) {
        char clean[REPORT_LINE_BYTES];
        uint32_t n = 0;
        bool first = true;

        if (r->cases[c].outcome != JUDGE_NOT_CLAIMED) {
            continue;
        }
        for (uint32_t d = 0; d < r->n_cases; d++) {
            if (r->cases[d].outcome == JUDGE_NOT_CLAIMED &&
                strcmp(lacking(&r->cases[d]), lacking(&r->cases[c])) == 0) {
                first = first && d >= c;
                n++;
            }
        }
        if (first) {
            fprintf(f, "%s %s %" PRIu32,
                    listed++ > 0 ? "," : "not claimed, cases that need",
                    report_printable(lacking(&r->cases[c]), clean), n);
        }
    }
    fputs(listed > 0 ? " (--verbose lists them)\n" : "", f);
}

/* A few cases are all listed. Of many only those that deviate are, unless these
 * are many, too. */
static void put_cases(FILE *f, const struct judge_result *r, bool verbose)
{
    const bool few = r->n_cases <= MAX_LISTED;
    uint32_t listed = 0;
    uint32_t right = 0;
    uint32_t off = 0;

    fprintf(f, "%12s %7s %19s %9s %-11s %s\n", "final loss", "off",
            "peak/oracle", "comm/want", "", "case");
    for (uint32_t c = 0; c < r->n_cases; c++) {
        const struct judge_case *one = &r->cases[c];
        const bool claimed = one->outcome != JUDGE_NOT_CLAIMED;

        if (verbose || (few && claimed) ||
            (deviates(r, c) && listed < MAX_LISTED)) {
            put_case(f, r, one);
            listed++;
        } else {
            off += deviates(r, c);
            right += claimed && !deviates(r, c);
        }
    }
    if (off > 0) {
        fprintf(f, "and %" PRIu32 " cases more that deviate\n", off);
    }
    if (right > 0) {
        fprintf(f,
                "and %" PRIu32 " cases without a deviation (--verbose "
                "lists them)\n",
                right);
    }
    if (!verbose) {
        put_unclaimed(f, r);
    }
    fputs("off: losses whose bits differ from the unsharded run's; "
          "peak/oracle: bytes of parameters;\n"
          "comm/want: collectives of the first step\n\n",
          f);
}

/* The greatest error of a passed item over its bound; 0: there is none. */
static double ratio_of(const struct judge_result *r, uint32_t q)
{
    double most = 0.0;

    for (uint32_t c = 0; c < r->n_cases; c++) {
        const struct judge_item *item = judge_item_at(r, c, q);

        if (item->outcome == JUDGE_PASS && item->detail &&
            item->detail->finding.ratio > most) {
            most = item->detail->finding.ratio;
        }
    }
    return most;
}

static void count_outcomes(const struct judge_result *r, uint32_t q,
                           uint32_t n[JUDGE_N_OUTCOMES])
{
    memset(n, 0, JUDGE_N_OUTCOMES * sizeof(*n));
    for (uint32_t c = 0; c < r->n_cases; c++) {
        n[judge_item_at(r, c, q)->outcome]++;
    }
}

static void put_requirement(FILE *f, const struct judge_result *r, uint32_t q,
                            const uint32_t n[JUDGE_N_OUTCOMES])
{
    fprintf(
        f, "%-36s %-6s %-8s %6u %6u %7u %11u %6u  %s\n", r->requirement[q]->id,
        r->requirement[q]->must != 0 ? "MUST" : "SHOULD",
        or_unknown(requirement_level_name(r->requirement[q]->level)),
        n[JUDGE_PASS], n[JUDGE_FAIL] + n[JUDGE_ERROR] + n[JUDGE_TIMEOUT],
        n[JUDGE_BLOCKED], n[JUDGE_NOT_CLAIMED],
        n[JUDGE_SKIP] + n[JUDGE_INCOMPLETE],
        judge_is_unproved(r, q) ? "unproved: nothing could be spoiled" : "");
    if (ratio_of(r, q) > 0.0) {
        fprintf(f, "%36s the greatest error is %.3g of its bound\n", "",
                ratio_of(r, q));
    }
}

static void put_requirements(FILE *f, const struct judge_result *r,
                             bool verbose)
{
    uint32_t not_asked = 0;

    fprintf(f, "%-36s %-6s %-8s %6s %6s %7s %11s %6s\n", "requirement", "",
            "level", "pass", "fail", "blocked", "not claimed", "open");
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        uint32_t n[JUDGE_N_OUTCOMES];

        if (!r->reported[q]) {
            continue;
        }
        count_outcomes(r, q, n);
        if (verbose ||
            n[JUDGE_NOT_CLAIMED] + n[JUDGE_NOT_APPLICABLE] < r->n_cases) {
            put_requirement(f, r, q, n);
        } else {
            not_asked++;
        }
    }
    if (not_asked > 0) {
        fprintf(f,
                "and %" PRIu32 " that nothing was asked of: not "
                "claimed, or about none of these cases\n",
                not_asked);
    }
    fputc('\n', f);
}

static void put_unjudged(FILE *f, const struct judge_result *r)
{
    uint32_t total = 0;
    char clean[REPORT_LINE_BYTES];

    for (uint32_t c = 0; c < r->n_cases; c++) {
        uint32_t outcome = r->cases[c].outcome;

        if (outcome != JUDGE_INCOMPLETE && outcome != JUDGE_SKIP) {
            continue;
        }
        if (r->stopped[0] != '\0' && outcome == JUDGE_INCOMPLETE) {
            continue; /* the verdict's line counts them */
        }
        if (total < MAX_SHOWN) {
            fprintf(f, "%s %s: %s\n", judge_outcome_name(outcome),
                    r->cases[c].id,
                    report_printable(r->cases[c].reason, clean));
        }
        total++;
    }
    if (total > MAX_SHOWN) {
        fprintf(f, "and %" PRIu32 " cases more without a judgement\n",
                total - MAX_SHOWN);
    }
    fputs(total > 0 ? "\n" : "", f);
}

/* Which failure each blocked requirement waits for, and in how many cases. */
static void put_blocked(FILE *f, const struct judge_result *r)
{
    bool any = false;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        for (uint32_t by = 0; by < r->n_requirements; by++) {
            uint32_t n = 0;

            for (uint32_t c = 0; c < r->n_cases && r->reported[q]; c++) {
                const struct judge_item *item = judge_item_at(r, c, q);

                n += item->outcome == JUDGE_BLOCKED && item->blocked_by == by;
            }
            if (n > 0) {
                fprintf(f, "%s: blocked by %s in %" PRIu32 " case%s\n",
                        r->requirement[q]->id, r->requirement[by]->id, n,
                        n > 1 ? "s" : "");
                any = true;
            }
        }
    }
    fputs(any ? "\n" : "", f);
}

static void put_levels(FILE *f, const struct judge_result *r)
{
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        const uint32_t *n = r->level[l].count;
        uint32_t bad = n[JUDGE_FAIL] + n[JUDGE_ERROR] + n[JUDGE_TIMEOUT];

        if (n[JUDGE_PASS] + bad + n[JUDGE_BLOCKED] + n[JUDGE_INCOMPLETE] +
                n[JUDGE_SKIP] >
            0) {
            fprintf(f,
                    "level %-9s %6" PRIu32 " pass %6" PRIu32 " fail %6" PRIu32
                    " blocked %6" PRIu32 " open\n",
                    requirement_level_name(l), n[JUDGE_PASS], bad,
                    n[JUDGE_BLOCKED], n[JUDGE_INCOMPLETE] + n[JUDGE_SKIP]);
        }
    }
    fprintf(f, "right up to level: %s\n",
            r->highest_level >= 0
                ? or_unknown(requirement_level_name((uint32_t)r->highest_level))
                : "none");
}

static void put_verdict(FILE *f, const struct judge_result *r)
{
    char engine[REPORT_LINE_BYTES];
    char reason[REPORT_LINE_BYTES];

    static const char *const colours[] = {"\033[1;32m", "\033[1;31m",
                                          "\033[1;33m"};
    const bool colour = progress_has_colour(f);
    bool why = r->reason[0] != '\0';

    fprintf(f,
            "%s%s%s%s%s%s: %s, %" PRIu32 " of %" PRIu32
            " cases judged, %" PRIu32 " not claimed; %" PRIu32 " pass, %" PRIu32
            " fail, %" PRIu32 " blocked\n",
            colour ? colours[r->verdict] : "", judge_verdict_name(r->verdict),
            colour ? "\033[0m" : "", why ? " (" : "",
            report_printable(r->reason, reason), why ? ")" : "",
            report_printable(r->engine[0] != '\0' ? r->engine : "no engine",
                             engine),
            r->executed, r->expected, r->not_claimed, r->count[JUDGE_PASS],
            r->count[JUDGE_FAIL] + r->count[JUDGE_ERROR] +
                r->count[JUDGE_TIMEOUT],
            r->count[JUDGE_BLOCKED]);
}

/* Says what the kernel refused to ranks, if it did so in every case. */
static void put_isolation(FILE *f, const struct judge_result *r)
{
    char isolation[REPORT_LINE_BYTES];

    if (r->isolation[0] != '\0') {
        fprintf(f, "ranks were isolated: %s\n",
                report_printable(r->isolation, isolation));
    }
}

/* Says what sampled records do not show. */
static void put_sampled(FILE *f, const struct judge_result *r)
{
    char unasked[REPORT_LINE_BYTES];

    if (r->sampled.of > 0) {
        fprintf(f,
                "sampled: whole parameters of %" PRIu32 " of %" PRIu32
                " ranks; not asked, as it needs those of all: %s\n",
                r->sampled.ranks, r->sampled.of,
                report_printable(r->sampled.unasked, unasked));
    }
}

/* Says that only the first collectives of a case were checked for what they
 * carry. */
static void put_followed(FILE *f, const struct judge_result *r)
{
    if (r->followed.cases > 0) {
        fprintf(f,
                "what collectives carry was asked of the first %" PRIu32
                " of %" PRIu32 ", in %" PRIu32 " cases that have more\n",
                r->followed.known, r->followed.of, r->followed.cases);
    }
}

static void put_drawn(FILE *f, const struct judge_result *r)
{
    const struct judge_drawn *d = &r->drawn;

    if (d->played > 0) {
        fprintf(f,
                "drawn: %" PRIu32 " scripts, --script-seed %" PRIu32
                "; %" PRIu32 " fail\n",
                d->played, d->seed, d->failed);
    }
}

/* Names claims that are not known: a misspelt one is never tested, and looks as
 * if nothing were claimed. */
static void put_unknown_claims(FILE *f, const struct judge_result *r)
{
    bool first = true;

    for (uint32_t i = 0; i < r->n_claims; i++) {
        char claim[sizeof(r->claim[i]) + 1] = "";
        char clean[REPORT_LINE_BYTES];

        memcpy(claim, r->claim[i], sizeof(r->claim[i]));
        if (!claim_is_known(claim)) {
            fprintf(f, "%s '%s'",
                    first ? "claims that are none, and were not tested:" : ",",
                    report_printable(claim, clean));
            first = false;
        }
    }
    fputs(first ? "" : "\n", f);
}

/* Says how much less a verdict means because records are an adapter's. */
static void put_evidence(FILE *f, const struct judge_result *r)
{
    static const char *const evidence[] = {"live-bytes", "wire", "process",
                                           "answers"};
    bool first = true;

    if (!record_world_is_adapter(r->world)) {
        return;
    }
    fprintf(f, "records of an adapter: %s",
            judge_claims(r, "f32-fma")
                ? "bits compared"
                : "an arithmetic of its own, bounds in place of bits");
    for (size_t i = 0; i < sizeof(evidence) / sizeof(evidence[0]); i++) {
        if (!judge_claims(r, evidence[i])) {
            fprintf(f, "%s%s", first ? "; not shown: " : ", ", evidence[i]);
            first = false;
        }
    }
    fputc('\n', f);
}

int report_text(const struct judge_result *r, const struct report_meta *meta,
                FILE *out)
{
    report_first_cause(out, r, meta);
    if (!meta->brief || meta->verbose) {
        put_cases(out, r, meta->verbose);
    }
    put_requirements(out, r, meta->verbose);
    FSDP_TRY(report_failures(out, r, meta));
    put_unjudged(out, r);
    if (meta->brief) {
        put_blocked(out, r);
    }
    if (!meta->brief || meta->verbose) {
        put_levels(out, r);
    }
    put_unknown_claims(out, r);
    put_evidence(out, r);
    put_isolation(out, r);
    put_sampled(out, r);
    put_followed(out, r);
    put_drawn(out, r);
    put_verdict(out, r);
    return fflush(out) == 0 && ferror(out) == 0 ? FSDP_OK : FSDP_ERR_IO;
}
