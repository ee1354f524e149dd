/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_failure.c - writes one failure in full. Where values are compared
 * in bits, each bit stands beside the one that it should have been.
 */
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

#include <inttypes.h>

enum {
    BIT = 11, /* how wide one is drawn */
    SIGN = 31,
    FRACTION = 23 /* bits of it; those above are exponent and sign */
};

/* Where bit b begins: there is a gap behind the sign and the exponent. */
static uint32_t bit_x(uint32_t b)
{
    return 32 + (SIGN - b) * BIT + (b < SIGN ? 4u : 0u) +
           (b < FRACTION ? 4u : 0u);
}

/* Draws the bits that are set, as strokes that are as wide as a bit. */
static void strokes(const struct html *h, const char *css, uint32_t y,
                    uint32_t set)
{
    if (set == 0) {
        return;
    }
    fprintf(h->f, "<path class=\"%s\" d=\"", css);
    for (uint32_t b = 32; b-- > 0;) {
        if ((set >> b & 1) != 0) {
            fprintf(h->f, "M%u %uv14", bit_x(b) + BIT / 2, y);
        }
    }
    fputs("\"/>", h->f);
}

void html_define_bits(const struct html *h)
{
    fputs("<symbol id=\"bits\" viewBox=\"0 0 400 46\">", h->f);
    for (uint32_t y = 0; y < 34; y += 17) {
        fprintf(h->f, "<text x=\"0\" y=\"%u\">%s</text>", y + 11,
                y == 0 ? "got" : "want");
        for (uint32_t b = 32; b-- > 0;) {
            fprintf(h->f,
                    "<rect x=\"%u\" y=\"%u\" width=\"%d\" "
                    "height=\"14\"/>",
                    bit_x(b), y, BIT - 1);
        }
    }
    fputs("<text x=\"32\" y=\"43\">&#177;</text><text x=\"47\" "
          "y=\"43\">exponent</text><text x=\"139\" y=\"43\">fraction"
          "</text></symbol>\n",
          h->f);
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
    fprintf(h->f,
            "<svg class=\"bits\" viewBox=\"0 0 400 46\" role=\"img\" "
            "aria-labelledby=\"t%u\"><title id=\"t%u\">%u of 32 bits "
            "differ</title><use href=\"#bits\"/>",
            id, id, n);
    strokes(h, "off", 0, got ^ want);
    strokes(h, "off", 17, got ^ want);
    strokes(h, "on", 0, got & ~(got ^ want));
    strokes(h, "on", 17, want & ~(got ^ want));
    strokes(h, "on off", 0, got & ~want);
    strokes(h, "on off", 17, want & ~got);
    fputs("</svg>", h->f);
}

static void row(const struct html *h, const char *name, const char *text)
{
    fprintf(h->f, "<dt>%s</dt><dd>", name);
    page_escape(h->f, text);
    fputs("</dd>\n", h->f);
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

/* Writes what the ranks of the case printed, and where they stood. */
static void told(const struct html *h, const char *at)
{
    char line[REPORT_LINE_BYTES];

    if (!at) {
        return;
    }
    fputs("<dt>told</dt><dd><pre>", h->f);
    while (report_told_line(&at, line)) {
        page_escape(h->f, line);
        fputc('\n', h->f);
    }
    fputs("</pre></dd>\n", h->f);
}

void html_failure(struct html *h, uint32_t part, uint32_t c, uint32_t q)
{
    const struct judge_result *r = h->part[part].result;
    const struct judge_item *item = judge_item_at(r, c, q);
    const struct requirement *asked = r->requirement[q];
    const struct finding *f = &item->detail->finding;
    char line[REPORT_LINE_BYTES];

    fprintf(h->f, "<p class=\"what\"><span class=\"tag worse\">%s</span> ",
            judge_outcome_name(item->outcome));
    fputs(html_is_new_failure(h, part, c, q)
              ? "<span class=\"tag open\">new</span> "
              : "",
          h->f);
    html_link_requirement(h, asked);
    fprintf(h->f, " <span class=\"dim\">%s</span> ",
            asked->must != 0 ? "MUST" : "SHOULD");
    page_escape(h->f, asked->text);
    fputs("</p><dl>\n<dt>case</dt><dd>", h->f);
    html_link_case(h, part, c);
    fputs("</dd>\n", h->f);
    if (report_place(item->detail, line)[0] != '\0') {
        row(h, "where", line);
    }
    values(h, f);
    row(h, "what", item->outcome == JUDGE_FAIL ? f->note : r->cases[c].reason);
    told(h, report_told(r, c, q));
    if (h->part[part].meta->rerun) {
        fputs("<dt>rerun</dt><dd><code>", h->f);
        page_escape(h->f, report_rerun(h->part[part].meta, &r->cases[c], line));
        fputs("</code></dd>\n", h->f);
    }
    fputs("</dl>\n", h->f);
    if (f->form == FINDING_BITS) {
        bits(h, f);
    }
}
