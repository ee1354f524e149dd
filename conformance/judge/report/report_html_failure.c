/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_failure.c - one failure, in full: of what is compared in bits
 * each bit, beside the one it should have been.
 */
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

#include <inttypes.h>

enum {
    BIT = 11, /* how wide one is drawn */
    SIGN = 31,
    FRACTION = 23 /* bits of it; those above are exponent and sign */
};

/* A row of 32 bits; those that differ stand out. */
static void bits_row(const struct html *h, uint32_t y, const char *name,
                     uint32_t bits, uint32_t off)
{
    (void)fprintf(h->f, "<text x=\"0\" y=\"%u\">%s</text>", y + 11, name);
    for (uint32_t i = 0; i < 32; i++) {
        const uint32_t b = SIGN - i;
        /* A gap behind the sign and behind the exponent. */
        const uint32_t gap = (b < SIGN ? 4u : 0u) + (b < FRACTION ? 4u : 0u);

        (void)fprintf(h->f,
                      "<rect class=\"b%u%s\" x=\"%u\" y=\"%u\" width=\"%d\" "
                      "height=\"14\"/>",
                      bits >> b & 1, (off >> b & 1) != 0 ? " off" : "",
                      32 + i * BIT + gap, y, BIT - 1);
    }
}

static void bits(struct html *h, const struct finding *f)
{
    const uint32_t got = (uint32_t)f->got;
    const uint32_t want = (uint32_t)f->want;
    const uint32_t id = ++h->n_ids;
    uint32_t n = 0;

    for (uint32_t b = 0; b < 32; b++) {
        n += (got ^ want) >> b & 1;
    }
    (void)fprintf(h->f,
                  "<svg class=\"bits\" viewBox=\"0 0 400 46\" role=\"img\" "
                  "aria-labelledby=\"t%u\"><title id=\"t%u\">%u of 32 bits "
                  "differ</title>",
                  id, id, n);
    bits_row(h, 0, "got", got, got ^ want);
    bits_row(h, 17, "want", want, got ^ want);
    (void)fputs("<text x=\"32\" y=\"43\">&#177;</text><text x=\"47\" "
                "y=\"43\">exponent</text><text x=\"139\" y=\"43\">fraction"
                "</text></svg>",
                h->f);
}

static void row(const struct html *h, const char *name, const char *text)
{
    (void)fprintf(h->f, "<dt>%s</dt><dd>", name);
    page_escape(h->f, text);
    (void)fputs("</dd>\n", h->f);
}

static void values(struct html *h, const struct finding *f)
{
    char value[REPORT_VALUE_BYTES];

    if (!report_has_values(f)) {
        return;
    }
    row(h, "got", report_value(f->form, f->got, value));
    row(h, "want", report_value(f->form, f->want, value));
}

void html_failure(struct html *h, uint32_t part, uint32_t c, uint32_t q)
{
    const struct judge_result *r = h->part[part].result;
    const struct judge_item *item = judge_item_at(r, c, q);
    const struct requirement *asked = r->requirement[q];
    const struct finding *f = &item->detail->finding;
    char line[REPORT_LINE_BYTES];

    (void)fprintf(h->f,
                  "<p class=\"what\"><span class=\"tag worse\">%s</span> ",
                  judge_outcome_name(item->outcome));
    html_link_requirement(h, asked);
    (void)fprintf(h->f, " <span class=\"dim\">%s</span> ",
                  asked->must != 0 ? "MUST" : "SHOULD");
    page_escape(h->f, asked->text);
    (void)fputs("</p><dl>\n<dt>case</dt><dd>", h->f);
    html_link_case(h, part, c);
    (void)fputs("</dd>\n", h->f);
    if (report_place(item->detail, line)[0] != '\0') {
        row(h, "where", line);
    }
    values(h, f);
    row(h, "what", item->outcome == JUDGE_FAIL ? f->note : r->cases[c].reason);
    if (h->part[part].meta->rerun != NULL) {
        (void)fputs("<dt>rerun</dt><dd><code>", h->f);
        page_escape(h->f, report_rerun(h->part[part].meta, &r->cases[c], line));
        (void)fputs("</code></dd>\n", h->f);
    }
    (void)fputs("</dl>\n", h->f);
    if (f->form == FINDING_BITS) {
        bits(h, f);
    }
}
