/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_steps.c - memory over one step, by kind: which unit made the peak, and
 * how far it is from the bound. The kinds of the engine are piled up, as the
 * bound is about their sum; activations are the model's, often far more, and
 * have a strip and a scale of their own.
 */
#include "tools/track/page_internal.h"

#include "record/record.h"
#include <stdlib.h>
#include <string.h>

enum {
    STRIP_TOP = 0,     /* of activations */
    STRIP_BOTTOM = 26, /* the plot proper begins below it */
    AREA_TOP = 36,
    SPANS_MOST = 400
};

/* From below to above. */
static const struct {
    uint32_t kind;
    const char *name;
} piled[] = {
    {FSDP_PARAM_SHARD, "shards"},
    {FSDP_OPTIM, "optimizer"},
    {FSDP_GRAD_SHARD, "sharded gradients"},
    {FSDP_PARAM_FULL, "unsharded units"},
    {FSDP_GRAD_FULL, "unsharded gradients"},
    {FSDP_STAGING, "staging"},
};
enum {
    N_PILED = sizeof(piled) / sizeof(piled[0])
};

struct steps {
    struct page *page;
    struct figures figures;
    struct plot p;
    uint32_t peak; /* moment */
};

/* All kinds of the pile up to number k, at a moment. */
static double pile(const struct figures_moment *m, uint32_t k)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < k; i++) {
        sum += (double)m->live[piled[i].kind];
    }
    return sum;
}

/* A moment is as wide as any other: from i to i + 1. */
static double left(const struct steps *s, uint32_t i)
{
    return PLOT_LEFT +
           (double)(PLOT_RIGHT - PLOT_LEFT) * i / s->figures.n_moments;
}

static double height(const struct steps *s, double value)
{
    return PLOT_BOTTOM -
           (PLOT_BOTTOM - AREA_TOP) * value / (s->p.high > 0 ? s->p.high : 1);
}

static void area(const struct steps *s, uint32_t k)
{
    const struct figures *f = &s->figures;
    FILE *out = s->page->f;
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];
    char last[PAGE_NUMBER_BYTES] = "";

    (void)fprintf(out, "<path class=\"area k%u\" d=\"M%d %s", piled[k].kind,
                  PLOT_LEFT, page_at(height(s, pile(&f->moment[0], k)), y));
    for (uint32_t i = 0; i < f->n_moments; i++) {
        (void)page_at(height(s, pile(&f->moment[i], k + 1)), y);
        if (strcmp(y, last) != 0) {
            (void)fprintf(out, "H%sV%s", page_at(left(s, i), x), y);
            memcpy(last, y, sizeof(last));
        }
    }
    (void)fprintf(out, "H%d", PLOT_RIGHT);
    last[0] = '\0';
    for (uint32_t i = f->n_moments; i-- > 0;) {
        (void)page_at(height(s, pile(&f->moment[i], k)), y);
        if (strcmp(y, last) != 0) {
            (void)fprintf(out, "H%sV%s", page_at(left(s, i + 1), x), y);
            memcpy(last, y, sizeof(last));
        }
    }
    (void)fprintf(out, "H%dZ\"/>\n", PLOT_LEFT);
}

static void activations(const struct steps *s)
{
    const struct figures *f = &s->figures;
    FILE *out = s->page->f;
    double most = 0.0;
    char text[PAGE_NUMBER_BYTES];
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];
    char last[PAGE_NUMBER_BYTES] = "";

    for (uint32_t i = 0; i < f->n_moments; i++) {
        double now = (double)f->moment[i].live[FSDP_ACTIVATION];

        most = now > most ? now : most;
    }
    if (!(most > 0.0)) {
        return;
    }
    (void)fprintf(out, "<path class=\"area k6\" d=\"M%d %dV%d", PLOT_LEFT,
                  STRIP_BOTTOM, STRIP_BOTTOM);
    for (uint32_t i = 0; i < f->n_moments; i++) {
        double now = (double)f->moment[i].live[FSDP_ACTIVATION] / most;

        (void)page_at(STRIP_BOTTOM - (STRIP_BOTTOM - 12) * now, y);
        if (strcmp(y, last) != 0) {
            (void)fprintf(out, "H%sV%s", page_at(left(s, i), x), y);
            memcpy(last, y, sizeof(last));
        }
    }
    (void)fprintf(out, "H%dV%dZ\"/>", PLOT_RIGHT, STRIP_BOTTOM);
    (void)fprintf(out,
                  "<g class=\"axis\"><text x=\"%d\" y=\"9\">activations (the "
                  "model&#39;s), to %s</text></g>\n",
                  PLOT_LEFT, page_bytes(most, text));
}

static void bound(const struct steps *s)
{
    char y[PAGE_NUMBER_BYTES];
    char text[PAGE_NUMBER_BYTES];
    double at = height(s, (double)s->figures.bound);

    (void)fprintf(s->page->f, "<g class=\"bound\"><path d=\"M%d %sH%d\"/>",
                  PLOT_LEFT, page_at(at, y), PLOT_RIGHT);
    (void)fprintf(s->page->f, "<text x=\"%d\" y=\"%s\">bound %s</text></g>\n",
                  PLOT_LEFT + 4, page_at(at - 3, y),
                  page_bytes((double)s->figures.bound, text));
}

static const char *unit_name(const struct figures *f,
                             const struct figures_moment *m)
{
    return m->unit < f->n_units ? f->unit[m->unit] : "";
}

/* Which part of a step a point belongs to. */
static uint32_t phase_of(uint32_t point)
{
    switch (point) {
    case FSDP_BEGIN:
    case FSDP_PRE_FORWARD:
    case FSDP_POST_FORWARD:
        return 0;
    case RECORD_POINT_STEP:
    case RECORD_POINT_ZERO_GRAD:
        return 2;
    default:
        return 1;
    }
}

/* A row below the plot: forward, backward, optimizer. */
static void phases(const struct steps *s)
{
    static const char *const name[] = {"forward", "backward", "step"};
    const struct figures *f = &s->figures;
    FILE *out = s->page->f;
    char x[PAGE_NUMBER_BYTES];
    char width[PAGE_NUMBER_BYTES];

    for (uint32_t i = 0; i < f->n_moments;) {
        uint32_t phase = phase_of(f->moment[i].point);
        uint32_t end = i + 1;
        double room;

        while (end < f->n_moments && phase_of(f->moment[end].point) == phase) {
            end++;
        }
        room = left(s, end) - left(s, i);
        (void)fprintf(out,
                      "<rect class=\"phase p%u\" x=\"%s\" y=\"%d\" "
                      "width=\"%s\" height=\"15\"/>",
                      phase, page_at(left(s, i), x), PLOT_BOTTOM + 3,
                      page_at(room - 1, width));
        if (room > 7.0 * (double)strlen(name[phase])) {
            (void)fprintf(out,
                          "<text class=\"in-phase\" x=\"%s\" y=\"%d\" "
                          "text-anchor=\"middle\">%s</text>",
                          page_at(left(s, i) + room / 2, x), PLOT_BOTTOM + 14,
                          name[phase]);
        }
        i = end;
    }
    (void)fprintf(out, "\n");
}

static void say_moment(const struct steps *s, const struct figures_moment *m)
{
    const char *unit = unit_name(&s->figures, m);
    FILE *out = s->page->f;
    char text[PAGE_NUMBER_BYTES];

    (void)fprintf(out, "%s", record_point_name(m->point));
    if (unit[0] != '\0') {
        (void)fprintf(out, " of unit ");
        page_escape(out, unit);
    }
    (void)fprintf(out, ": %s", page_bytes(pile(m, N_PILED), text));
    for (uint32_t k = 0; k < N_PILED; k++) {
        if (m->live[piled[k].kind] > 0) {
            (void)fprintf(out, ", %s %s", piled[k].name,
                          page_bytes((double)m->live[piled[k].kind], text));
        }
    }
}

/* What a pointer is told: the fullest moment of a unit's turn. */
static void spans(const struct steps *s)
{
    const struct figures *f = &s->figures;
    char x[PAGE_NUMBER_BYTES];
    char width[PAGE_NUMBER_BYTES];
    uint32_t n = 0;

    (void)fprintf(s->page->f, "<g class=\"spans\">");
    for (uint32_t i = 0; i < f->n_moments && n < SPANS_MOST; n++) {
        const struct figures_moment *first = &f->moment[i];
        const struct figures_moment *most = first;
        uint32_t end = i;

        while (end < f->n_moments && f->moment[end].unit == first->unit &&
               phase_of(f->moment[end].point) == phase_of(first->point)) {
            if (pile(&f->moment[end], N_PILED) > pile(most, N_PILED)) {
                most = &f->moment[end];
            }
            end++;
        }
        (void)fprintf(s->page->f,
                      "<rect x=\"%s\" y=\"%d\" width=\"%s\" height=\"%d\">"
                      "<title>",
                      page_at(left(s, i), x), AREA_TOP,
                      page_at(left(s, end) - left(s, i), width),
                      PLOT_BOTTOM - AREA_TOP);
        say_moment(s, most);
        (void)fprintf(s->page->f, "</title></rect>");
        i = end;
    }
    (void)fprintf(s->page->f, "</g>\n");
}

static void peak(const struct steps *s)
{
    const struct figures_moment *m = &s->figures.moment[s->peak];
    double x = (left(s, s->peak) + left(s, s->peak + 1)) / 2;
    double y = height(s, pile(m, N_PILED));
    char a[PAGE_NUMBER_BYTES];
    char b[PAGE_NUMBER_BYTES];

    (void)fprintf(s->page->f, "<path class=\"peak\" d=\"M%s %sl-5 -8h10z\"/>\n",
                  page_at(x, a), page_at(y, b));
}

static void grid(const struct steps *s)
{
    double step = plot_step(&s->p);
    char text[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];

    (void)fprintf(s->page->f, "<g class=\"axis\">");
    for (uint32_t i = 0; i * step <= s->p.high + 0.5 * step; i++) {
        double value = i * step;

        (void)fprintf(s->page->f, "<path d=\"M%d %sH%d\"/>", PLOT_LEFT,
                      page_at(height(s, value), y), PLOT_RIGHT);
        (void)fprintf(s->page->f,
                      "<text x=\"%d\" y=\"%s\" class=\"y\">%s</text>",
                      PLOT_LEFT - 5, page_at(height(s, value) + 3.5, y),
                      page_bytes(value, text));
    }
    (void)fprintf(s->page->f, "</g>\n");
}

static void legend(const struct steps *s)
{
    const struct figures_moment *m = &s->figures.moment[s->peak];
    FILE *out = s->page->f;
    char text[PAGE_NUMBER_BYTES];

    (void)fprintf(out, "<ul class=\"legend\">");
    for (uint32_t k = N_PILED; k-- > 0;) {
        bool any = false;

        for (uint32_t i = 0; i < s->figures.n_moments && !any; i++) {
            any = s->figures.moment[i].live[piled[k].kind] > 0;
        }
        if (any) {
            (void)fprintf(out, "<li><i class=\"k%u\"></i>%s <b>%s</b></li>",
                          piled[k].kind, piled[k].name,
                          page_bytes((double)m->live[piled[k].kind], text));
        }
    }
    (void)fprintf(out, "</ul><p class=\"peak-text\">&#9660; fullest at ");
    say_moment(s, m);
    (void)fprintf(out, "</p></figure>\n");
}

static void draw(struct steps *s)
{
    const struct figures *f = &s->figures;
    const char *unit;
    double most = f->has_bound ? (double)f->bound : 0.0;
    char text[PAGE_NUMBER_BYTES];
    char title[80];
    char description[240];

    for (uint32_t i = 0; i < f->n_moments; i++) {
        double now = pile(&f->moment[i], N_PILED);

        most = now > most ? now : most;
        s->peak = now > pile(&f->moment[s->peak], N_PILED) ? i : s->peak;
    }
    s->p.bytes = true;
    plot_range(&s->p, 0.0, most, true);
    unit = unit_name(f, &f->moment[s->peak]);
    (void)snprintf(title, sizeof(title), "Memory over step %u, rank 0",
                   (unsigned)f->step);
    (void)snprintf(description, sizeof(description),
                   "Live bytes by kind at %u points of a step. Fullest, %s, at "
                   "%s%s%s; the bound is %s.",
                   f->n_moments,
                   page_bytes(pile(&f->moment[s->peak], N_PILED), text),
                   record_point_name(f->moment[s->peak].point),
                   unit[0] != '\0' ? " of unit " : "", unit,
                   f->has_bound ? "drawn as a line" : "unknown");
    plot_open(s->page, title, description);
    grid(s);
    for (uint32_t k = 0; k < N_PILED; k++) {
        area(s, k);
    }
    activations(s);
    phases(s);
    if (f->has_bound) {
        bound(s);
    }
    peak(s);
    spans(s);
    plot_close(s->page);
    legend(s);
}

int page_step_plot(struct page *page, const struct history_series *series)
{
    struct steps s = {.page = page};
    struct history_exact *x = NULL;
    uint32_t n = 0;
    int status = history_exact(page->h, series->id, &x, &n, page->error);

    if (status == FSDP_OK && n > 0) {
        status =
            history_bundle(page->h, x[n - 1].bundle, &s.figures, page->error);
        if (status == FSDP_OK && s.figures.n_moments > 0) {
            draw(&s);
        }
        figures_release(&s.figures);
    }
    free(x);
    return status;
}
