/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_drawn.c - puts the scripts that were drawn beside the cases into a
 * report as one more requirement. Programs that look only at items would
 * otherwise miss a script that fails.
 */
#include "judge/report/report_internal.h"

#include <inttypes.h>
#include <string.h>

uint32_t report_drawn_outcome(const struct judge_drawn *d)
{
    return d->failed > 0    ? JUDGE_FAIL
           : d->incomplete  ? JUDGE_INCOMPLETE
           : d->played == 0 ? JUDGE_NOT_CLAIMED
                            : JUDGE_PASS;
}

bool report_drawn_is_finding(const struct judge_result *r)
{
    return r->drawn.wanted && r->drawn.failed > 0;
}

const char *report_drawn_why(const struct judge_drawn *d,
                             char out[REPORT_LINE_BYTES])
{
    char first[REPORT_LINE_BYTES];

    switch (report_drawn_outcome(d)) {
    case JUDGE_FAIL:
        snprintf(out, REPORT_LINE_BYTES,
                 "%" PRIu32 " of %" PRIu32 " drawn scripts fail, first: %s",
                 d->failed, d->played, report_printable(d->first, first));
        break;
    case JUDGE_INCOMPLETE:
        snprintf(out, REPORT_LINE_BYTES, "drawn scripts without a verdict");
        break;
    case JUDGE_NOT_CLAIMED:
        snprintf(out, REPORT_LINE_BYTES, "the engine does not claim scripts");
        break;
    default:
        out[0] = '\0';
    }
    return out;
}

/* Options stand before --case. A data seed is left out: it is the cases', and a
 * drawn script has its own. */
const char *report_drawn_rerun(const struct report_meta *meta,
                               const struct judge_drawn *d,
                               char out[REPORT_LINE_BYTES])
{
    static const char last[] = " --case";
    const size_t most = REPORT_LINE_BYTES - JUDGE_SCRIPT_ID_BYTES - 16;
    const char *rerun = meta->rerun ? meta->rerun : "";
    const char *seed = strstr(rerun, " --seed ");
    size_t n = strnlen(rerun, most);

    while (n > 0 && rerun[n - 1] == ' ') {
        n--;
    }
    n -= n >= strlen(last) &&
                 strncmp(rerun + n - strlen(last), last, strlen(last)) == 0
             ? strlen(last)
             : 0;
    if (seed &&
        strspn(seed + 8, "0123456789") + 8 == (size_t)(rerun + n - seed)) {
        n = (size_t)(seed - rerun);
    }
    snprintf(out, REPORT_LINE_BYTES, "%.*s%s%s", (int)n, rerun,
             n > 0 ? " --script " : "", n > 0 ? d->first : "");
    return out;
}
