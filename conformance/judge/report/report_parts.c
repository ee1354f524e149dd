/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_parts.c - what the reports share: the words for values, places and
 * reasons.
 */
#include "judge/report/report_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

const char *report_printable(const char *in, char out[REPORT_LINE_BYTES])
{
    size_t n = 0;

    while (in && in[n] != '\0' && n + 1 < REPORT_LINE_BYTES) {
        bool printable = in[n] >= ' ' && in[n] <= '~';

        out[n] = (char)(printable ? in[n] : '?');
        n++;
    }
    out[n] = '\0';
    return out;
}

const char *report_value(uint32_t form, uint64_t value,
                         char out[REPORT_VALUE_BYTES])
{
    uint32_t bits = (uint32_t)value;
    float x;

    memcpy(&x, &bits, sizeof(x));
    if (form == FINDING_BITS) {
        snprintf(out, REPORT_VALUE_BYTES, "0x%08" PRIx32 " (%.9g)", bits,
                 (double)x);
    } else {
        snprintf(out, REPORT_VALUE_BYTES, "%" PRIu64 "%s", value,
                 form == FINDING_BYTES ? " bytes" : "");
    }
    return out;
}

const char *report_form_name(uint32_t form)
{
    static const char *const names[] = {"text", "bits", "count", "bytes",
                                        "missing"};

    return form < sizeof(names) / sizeof(names[0]) ? names[form] : NULL;
}

bool report_has_values(const struct finding *f)
{
    return f->form == FINDING_BITS || f->form == FINDING_COUNT ||
           f->form == FINDING_BYTES;
}

bool report_shows(const struct judge_result *r, uint32_t c, uint32_t q)
{
    return r->reported[q] &&
           judge_item_at(r, c, q)->outcome != JUDGE_NOT_APPLICABLE;
}

const char *report_rerun(const struct report_meta *meta,
                         const struct judge_case *c,
                         char out[REPORT_LINE_BYTES])
{
    size_t most = REPORT_LINE_BYTES - CASE_ID_BYTES - 1;
    size_t n;

    out[0] = '\0';
    if (meta->rerun) {
        n = strnlen(meta->rerun, most);
        while (n > 0 && meta->rerun[n - 1] == ' ') {
            n--;
        }
        snprintf(out, REPORT_LINE_BYTES, "%.*s %s", (int)n, meta->rerun, c->id);
    }
    return out;
}

uint64_t report_milliseconds(const struct judge_case *c)
{
    return c->seconds > 0.0 && c->seconds < 1e9
               ? (uint64_t)(c->seconds * 1e3 + 0.5)
               : 0;
}

const char *report_told(const struct judge_result *r, uint32_t c, uint32_t q)
{
    uint32_t first;

    return r->cases[c].told && judge_first_cause_of(r, c, &first) && first == q
               ? r->cases[c].told
               : NULL;
}

bool report_told_line(const char **at, char out[REPORT_LINE_BYTES])
{
    char line[REPORT_LINE_BYTES];
    const size_t n = strcspn(*at, "\n");

    if (**at == '\0') {
        return false;
    }
    snprintf(line, sizeof(line), "%.*s",
             (int)(n < sizeof(line) ? n : sizeof(line) - 1), *at);
    (void)report_printable(line, out);
    *at += n + ((*at)[n] == '\n' ? 1 : 0);
    return true;
}

static void append(char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;

    va_start(list, format);
    vsnprintf(text + used, REPORT_LINE_BYTES - used, format, list);
    va_end(list);
}

static void append_index(char *text, const char *what, int64_t index)
{
    if (index >= 0) {
        append(text, "%s%s %" PRId64, text[0] != '\0' ? ", " : "", what, index);
    }
}

const char *report_place(const struct judge_detail *d,
                         char out[REPORT_LINE_BYTES])
{
    const struct finding *f = &d->finding;

    out[0] = '\0';
    if (f->stage) {
        append(out, "%s", f->stage);
    }
    append_index(out, "step", f->step);
    append_index(out, "microbatch", f->microbatch);
    append_index(out, "unit", f->unit);
    if (d->unit[0] != '\0') {
        append(out, " (%s)", d->unit);
    }
    append_index(out, "rank", f->rank);
    if (d->parameter[0] != '\0') {
        append(out, ", %s", d->parameter);
    }
    append_index(out, "element", f->element);
    append_index(out, "flat", f->flat);
    append_index(out, "shard", f->shard);
    append_index(out, "local", f->local);
    return out;
}

const char *report_why(const struct judge_result *r, uint32_t c, uint32_t q,
                       char out[REPORT_LINE_BYTES])
{
    const struct judge_item *item = judge_item_at(r, c, q);
    const struct finding *f = item->detail ? &item->detail->finding : NULL;
    char place[REPORT_LINE_BYTES];
    char got[REPORT_VALUE_BYTES];
    char want[REPORT_VALUE_BYTES];

    out[0] = '\0';
    if (item->outcome == JUDGE_PASS || item->outcome == JUDGE_NOT_APPLICABLE) {
        return out;
    }
    if (item->outcome == JUDGE_BLOCKED) {
        append(out, "blocked by %s", r->requirement[item->blocked_by]->id);
    } else if (f) {
        append(out, "%s", report_place(item->detail, place));
        append(out, "%s%s", f->note[0] != '\0' && out[0] != '\0' ? ": " : "",
               f->note);
        if (report_has_values(f)) {
            append(out, "; got %s, want %s", report_value(f->form, f->got, got),
                   report_value(f->form, f->want, want));
        }
    } else if (r->requirement[q]->claim && item->outcome == JUDGE_NOT_CLAIMED &&
               r->cases[c].outcome != JUDGE_NOT_CLAIMED) {
        append(out, "the engine does not claim %s", r->requirement[q]->claim);
    } else {
        append(out, "%s", r->cases[c].reason);
    }
    memcpy(place, out, sizeof(place));
    return report_printable(place, out);
}
