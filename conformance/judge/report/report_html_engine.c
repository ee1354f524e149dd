/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_engine.c - the top of the page: of each engine its verdict, in
 * numbers and as a staircase of levels, and the failure to look at first.
 */
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

enum {
    STAIR_LEFT = 4,
    STAIR_RIGHT = 396,
    STAIR_STEP = 13, /* how much a level begins behind the one below */
    STAIR_HEIGHT = 22
};

/* Colours of a verdict, and of a level. */
static const char *css_of(uint32_t verdict)
{
    return verdict == JUDGE_CONFORMANT       ? "better"
           : verdict == JUDGE_NON_CONFORMANT ? "worse"
                                             : "open";
}

static void tile(const struct html *h, const char *css, uint32_t n,
                 const char *what)
{
    fprintf(h->f, "<li class=\"%s\"><b>%u</b>%s</li>\n", n > 0 ? css : "", n,
            what);
}

static uint32_t failures(const uint32_t count[JUDGE_N_OUTCOMES])
{
    return count[JUDGE_FAIL] + count[JUDGE_ERROR] + count[JUDGE_TIMEOUT];
}

static uint32_t unjudged(const uint32_t count[JUDGE_N_OUTCOMES])
{
    return count[JUDGE_INCOMPLETE] + count[JUDGE_SKIP];
}

static void tiles(const struct html *h, const struct judge_result *r)
{
    fputs("<ul class=\"tiles\">\n", h->f);
    fprintf(h->f, "<li><b>%u of %u</b>cases judged</li>\n", r->executed,
            r->expected);
    tile(h, "better", r->count[JUDGE_PASS], "pass");
    tile(h, "worse", failures(r->count), "fail");
    tile(h, "", r->count[JUDGE_BLOCKED], "blocked");
    tile(h, "open", unjudged(r->count), "open");
    tile(h, "", r->not_claimed, "cases not claimed");
    fputs("</ul>\n", h->f);
}

/* What one level came to, in a word that is also its colour. */
static const char *level_css(const uint32_t *n)
{
    return failures(n) > 0        ? "worse"
           : n[JUDGE_BLOCKED] > 0 ? "blocked"
           : unjudged(n) > 0      ? "open"
           : n[JUDGE_PASS] > 0    ? "better"
                                  : "none";
}

static void stair(const struct html *h, const struct judge_result *r,
                  uint32_t level)
{
    const uint32_t *n = r->level[level].count;
    const uint32_t x = STAIR_LEFT + STAIR_STEP * level;
    const uint32_t y = STAIR_HEIGHT * (N_LEVELS - 1 - level);

    fprintf(h->f,
            "<g class=\"stair %s\"><rect x=\"%u\" y=\"%u\" width=\"%u\" "
            "height=\"%d\"/><text x=\"%u\" y=\"%u\">%u %s</text>"
            "<text class=\"n\" x=\"%d\" y=\"%u\">",
            level_css(n), x, y + 1, STAIR_RIGHT - x, STAIR_HEIGHT - 2, x + 8,
            y + 15, level, requirement_level_name(level), STAIR_RIGHT - 8,
            y + 15);
    if (n[JUDGE_PASS] + failures(n) + n[JUDGE_BLOCKED] + unjudged(n) == 0) {
        fputs("not asked", h->f);
    } else {
        fprintf(h->f, "%u pass", n[JUDGE_PASS]);
    }
    if (failures(n) > 0) {
        fprintf(h->f, ", %u fail", failures(n));
    }
    if (n[JUDGE_BLOCKED] > 0) {
        fprintf(h->f, ", %u blocked", n[JUDGE_BLOCKED]);
    }
    if (unjudged(n) > 0) {
        fprintf(h->f, ", %u open", unjudged(n));
    }
    fputs("</text></g>\n", h->f);
}

void html_staircase(struct html *h, const struct judge_result *r)
{
    const char *highest =
        r->highest_level < 0
            ? "none"
            : requirement_level_name((uint32_t)r->highest_level);
    const uint32_t id = ++h->n_ids;

    fprintf(h->f,
            "<figure class=\"stairs\"><figcaption>Right up to level: "
            "%s</figcaption>\n<svg viewBox=\"0 0 400 %d\" role=\"img\" "
            "aria-labelledby=\"t%u\"><title id=\"t%u\">The levels, each "
            "of which builds on those below it; right up to level: "
            "%s</title>\n",
            highest, STAIR_HEIGHT * N_LEVELS, id, id, highest);
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        stair(h, r, l);
    }
    fputs("</svg></figure>\n", h->f);
}

static void first_cause(struct html *h, uint32_t part)
{
    const struct judge_result *r = h->part[part].result;
    uint32_t c;
    uint32_t q;

    if (!judge_first_cause(r, &c, &q)) {
        return;
    }
    fputs("<div class=\"first\"><h3>Look at this first</h3>\n", h->f);
    html_failure(h, part, c, q);
    html_alike(h, part);
    fprintf(h->f,
            "<p><a class=\"go\" href=\"#c%u-%u\">all of this "
            "case</a></p></div>\n",
            part, c);
}

void html_engine_section(struct html *h, uint32_t part)
{
    const struct judge_result *r = h->part[part].result;

    fprintf(h->f, "<section aria-labelledby=\"e%u\"><h2 id=\"e%u\">", part,
            part);
    page_escape(h->f, html_engine(r));
    fputs(" <span class=\"dim\">", h->f);
    page_escape(h->f, r->engine_version);
    fputs("</span> ", h->f);
    fprintf(h->f, "<span class=\"tag verdict %s\">%s</span></h2>\n",
            css_of(r->verdict), judge_verdict_name(r->verdict));
    if (r->reason[0] != '\0') {
        fputs("<p>", h->f);
        page_escape(h->f, r->reason);
        fputs("</p>\n", h->f);
    }
    tiles(h, r);
    fputs("<div class=\"sides\">\n", h->f);
    html_staircase(h, r);
    first_cause(h, part);
    fputs("</div></section>\n", h->f);
}
