/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_plot.c - see page_plot.h. Readers who cannot see a plot have it in
 * words; the viewBox is about as wide as a phone, so that letters stay
 * readable.
 */
#include "judge/draw/page_plot.h"

#include <math.h>

/* The next round number: for bytes a power of two, else 1, 2 or 5 times a power
 * of ten. */
static double round_step(double rough, bool bytes)
{
    double power;

    if (!(rough > 0.0)) {
        return 1.0;
    }
    if (bytes) {
        return exp2(ceil(log2(rough)));
    }
    power = pow(10.0, floor(log10(rough)));
    rough /= power;
    return power * (rough <= 1.0   ? 1.0
                    : rough <= 2.0 ? 2.0
                    : rough <= 5.0 ? 5.0
                                   : 10.0);
}

void plot_range(struct plot *p, double low, double high, bool from_zero)
{
    double step;

    if (from_zero) {
        low = 0.0;
    }
    if (!(high > low)) {
        high = low + (low > 0.0 ? 0.02 * low : 1.0);
        low = from_zero ? 0.0 : low - 0.02 * low;
    }
    step = round_step((high - low) / 4.0, p->bytes);
    p->low = floor(low / step) * step;
    p->high = ceil(high / step) * step;
}

double plot_step(const struct plot *p)
{
    return round_step((p->high - p->low) / 5.0, p->bytes);
}

double plot_x(const struct plot *p, double i)
{
    double last = p->n > 1 ? (double)(p->n - 1) : 1.0;

    return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * i / last;
}

double plot_y(const struct plot *p, double value)
{
    return PLOT_BOTTOM -
           (PLOT_BOTTOM - PLOT_TOP) * (value - p->low) / (p->high - p->low);
}

static const char *plot_value(const struct plot *p, double value,
                              char out[PAGE_NUMBER_BYTES])
{
    return p->bytes ? page_bytes(value, out) : page_number(value, out);
}

void plot_open(FILE *f, uint32_t id, const char *title, const char *description)
{
    fprintf(f, "<figure><figcaption>");
    page_escape(f, title);
    fprintf(f,
            "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-labelledby=\"t%u d%u\"><title id=\"t%u\">",
            PLOT_WIDTH, PLOT_HEIGHT, id, id, id);
    page_escape(f, title);
    fprintf(f, "</title><desc id=\"d%u\">", id);
    page_escape(f, description);
    fprintf(f, "</desc>\n");
}

void plot_grid(const struct plot *p)
{
    double step = plot_step(p);
    char text[PAGE_NUMBER_BYTES];
    char at[PAGE_NUMBER_BYTES];

    fprintf(p->f, "<g class=\"axis\">");
    for (uint32_t i = 0; p->low + i * step <= p->high + step / 2; i++) {
        double v = p->low + i * step;

        fprintf(p->f, "<path d=\"M%d %sH%d\"/>", PLOT_LEFT,
                page_at(plot_y(p, v), at), PLOT_RIGHT);
        fprintf(p->f, "<text x=\"%d\" y=\"%s\" class=\"y\">%s</text>",
                PLOT_LEFT - 5, page_at(plot_y(p, v) + 3.5, at),
                plot_value(p, v, text));
    }
    fprintf(p->f, "</g>\n");
}

void plot_close(FILE *f)
{
    fputs("</svg>", f);
}
