/* SPDX-License-Identifier: Apache-2.0 */
/* report_html_curve.c - the loss over steps, beside the unsharded run's. */
#include "judge/draw/page_plot.h"
#include "judge/judge_internal.h"
#include "judge/report/report_html_records.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <stdlib.h>

enum {
    LOSSES_MOST = 512
};

struct curve {
    struct plot p;
    uint32_t n;
    uint32_t asked; /* the case has so many */
    uint32_t off;   /* the first that differs in bits; n: none does */
    float got[LOSSES_MOST], want[LOSSES_MOST];
};

static void load_curve(const struct html_view *v, struct curve *c)
{
    const struct expect *e = &v->expect;

    c->asked = v->c->c.steps * case_losses_a_step(&v->c->c);
    while (c->n < c->asked && c->n < LOSSES_MOST &&
           judge_fold_loss(e, v->record, c->n, &c->got[c->n]) &&
           judge_fold_loss(e, e->baseline, c->n, &c->want[c->n])) {
        c->n++;
    }
    while (c->off < c->n &&
           fsdp_f32_bits(c->got[c->off]) == fsdp_f32_bits(c->want[c->off])) {
        c->off++;
    }
}

static void range(struct curve *c)
{
    double low = INFINITY;
    double high = -INFINITY;

    for (uint32_t i = 0; i < 2 * c->n; i++) {
        const double x = (double)(i < c->n ? c->got[i] : c->want[i - c->n]);

        if (isfinite(x)) {
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
    }
    /* A curve that diverges presses the rest flat: no plot could show both. */
    plot_range(&c->p, low < high ? low : 0.0, low < high ? high : 1.0, false);
}

/* Draws a line of losses; values that are not finite leave a gap. */
static void line(const struct curve *c, const char *css, const float *x)
{
    const char *command = "M";
    char at[PAGE_NUMBER_BYTES];

    fprintf(c->p.f, "<path class=\"%s\" d=\"", css);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!isfinite(x[i])) {
            command = "M";
            continue;
        }
        fprintf(c->p.f, "%s%s", command, page_at(plot_x(&c->p, i), at));
        fprintf(c->p.f, " %s", page_at(plot_y(&c->p, (double)x[i]), at));
        command = "L";
    }
    fputs("\"/>\n", c->p.f);
}

static void first_off(const struct curve *c, uint32_t each)
{
    const double x = plot_x(&c->p, c->off);
    const bool right = x > PLOT_LEFT + 0.6 * (PLOT_RIGHT - PLOT_LEFT);
    char at[PAGE_NUMBER_BYTES];

    if (c->off == c->n) {
        return;
    }
    fprintf(c->p.f, "<path class=\"first-off\" d=\"M%s %dV%d\"/>",
            page_at(x, at), PLOT_TOP, PLOT_BOTTOM);
    fprintf(c->p.f,
            "<text class=\"off\" x=\"%s\" y=\"%d\"%s>differs from step "
            "%u on</text>\n",
            page_at(right ? x - 4 : x + 4, at), PLOT_TOP + 8,
            right ? " text-anchor=\"end\"" : "", c->off / each);
}

/* Says in words what is to be seen; of a run that ended early, in its
 * beginning. */
static void say(const struct curve *c, uint32_t each, char *words, size_t bytes)
{
    if (c->off < c->n) {
        snprintf(words, bytes,
                 "The first that differs from the unsharded run's is of "
                 "step %u: %.9g, expected %.9g.",
                 c->off / each, (double)c->got[c->off],
                 (double)c->want[c->off]);
    } else if (c->n < c->asked) {
        snprintf(words, bytes,
                 "The first %u of %u losses have the bits of the "
                 "unsharded run's; the others are not shown.",
                 c->n, c->asked);
    } else {
        snprintf(words, bytes,
                 "Every loss has the bits of the unsharded run's.");
    }
}

static void draw_curve(struct html *h, struct curve *c, uint32_t each)
{
    char words[160];

    say(c, each, words, sizeof(words));
    plot_open(h->f, ++h->n_ids, "Loss over steps", words);
    plot_grid(&c->p);
    fputs("<g class=\"curve\">", h->f);
    line(c, "want", c->want);
    line(c, "got", c->got);
    first_off(c, each);
    fprintf(h->f,
            "</g><g class=\"axis\"><text x=\"%d\" y=\"%d\">step 0</text>"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%u</text></g>",
            PLOT_LEFT, PLOT_BOTTOM + 15, PLOT_RIGHT, PLOT_BOTTOM + 15,
            (c->n - 1) / each);
    plot_close(h->f);
    fprintf(h->f,
            "<ul class=\"legend\"><li><i class=\"got\"></i>this engine"
            "</li><li><i class=\"want\"></i>unsharded</li></ul>"
            "<p class=\"peak-text\">%s</p></figure>\n",
            words);
}

void html_curve(struct html *h, const struct html_view *v)
{
    struct curve *c = calloc(1, sizeof(*c));

    if (c && v->expect.baseline) {
        c->p.f = h->f;
        load_curve(v, c);
        if (c->n > 0) {
            c->p.n = c->n;
            range(c);
            draw_curve(h, c, case_losses_a_step(&v->c->c));
        }
    }
    free(c);
}
