/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_memory.c - see page_memory.h. The kinds of the engine are piled up, as
 * the bound is about their sum; activations are the model's, often far more,
 * and have a strip and a scale of their own.
 */
#include "judge/draw/page_memory.h"

#include "judge/draw/page_plot.h"
#include "record/record.h"
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
    {FSDP_BUFFER, "buffers"},
    {FSDP_OPTIM, "optimizer"},
    {FSDP_GRAD_SHARD, "sharded gradients"},
    {FSDP_PARAM_FULL, "unsharded units"},
    {FSDP_GRAD_FULL, "unsharded gradients"},
    {FSDP_STAGING, "staging"},
};
enum {
    N_PILED = sizeof(piled) / sizeof(piled[0])
};

/* A plot on its way. */
struct memory_frame {
    const struct memory_plot *m;
    struct plot p;
    uint32_t peak; /* moment */
};

/* The sum of the first k kinds of the pile at a moment. */
static double pile(const struct judge_moment *m, uint32_t k)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < k; i++) {
        sum += (double)m->live[piled[i].kind];
    }
    return sum;
}

/* A moment is as wide as any other: from i to i + 1. */
static double left(const struct memory_frame *s, uint32_t i)
{
    return PLOT_LEFT + (double)(PLOT_RIGHT - PLOT_LEFT) * i / s->m->n;
}

static double height(const struct memory_frame *s, double value)
{
    return PLOT_BOTTOM -
           (PLOT_BOTTOM - AREA_TOP) * value / (s->p.high > 0 ? s->p.high : 1);
}

/* Draws the kinds up to and with number k, down to the axis. Lower ones are
 * drawn over it later, so that every kind has one edge. */
static void area(const struct memory_frame *s, uint32_t k)
{
    const struct memory_plot *m = s->m;
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];
    char last[PAGE_NUMBER_BYTES] = "";

    fprintf(m->f, "<path class=\"area k%u\" d=\"M%d %d", piled[k].kind,
            PLOT_LEFT, PLOT_BOTTOM);
    for (uint32_t i = 0; i < m->n; i++) {
        (void)page_at(height(s, pile(&m->moment[i], k + 1)), y);
        if (strcmp(y, last) != 0) {
            if (i > 0) {
                fprintf(m->f, "H%s", page_at(left(s, i), x));
            }
            fprintf(m->f, "V%s", y);
            memcpy(last, y, sizeof(last));
        }
    }
    fprintf(m->f, "H%dV%dZ\"/>\n", PLOT_RIGHT, PLOT_BOTTOM);
}

static void activations(const struct memory_frame *s)
{
    const struct memory_plot *m = s->m;
    FILE *out = s->m->f;
    double most = 0.0;
    char text[PAGE_NUMBER_BYTES];
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];
    char last[PAGE_NUMBER_BYTES] = "";

    for (uint32_t i = 0; i < m->n; i++) {
        double now = (double)m->moment[i].live[FSDP_ACTIVATION];

        most = now > most ? now : most;
    }
    if (!(most > 0.0)) {
        return;
    }
    fprintf(out, "<path class=\"area k6\" d=\"M%d %dV%d", PLOT_LEFT,
            STRIP_BOTTOM, STRIP_BOTTOM);
    for (uint32_t i = 0; i < m->n; i++) {
        double now = (double)m->moment[i].live[FSDP_ACTIVATION] / most;

        (void)page_at(STRIP_BOTTOM - (STRIP_BOTTOM - 12) * now, y);
        if (strcmp(y, last) != 0) {
            fprintf(out, "H%sV%s", page_at(left(s, i), x), y);
            memcpy(last, y, sizeof(last));
        }
    }
    fprintf(out, "H%dV%dZ\"/>", PLOT_RIGHT, STRIP_BOTTOM);
    fprintf(out,
            "<g class=\"axis\"><text x=\"%d\" y=\"9\">activations (the "
            "model&#39;s), to %s</text></g>\n",
            PLOT_LEFT, page_bytes(most, text));
}

static void bound(const struct memory_frame *s)
{
    char y[PAGE_NUMBER_BYTES];
    char text[PAGE_NUMBER_BYTES];
    double at = height(s, (double)s->m->bound);

    fprintf(s->m->f, "<g class=\"bound\"><path d=\"M%d %sH%d\"/>", PLOT_LEFT,
            page_at(at, y), PLOT_RIGHT);
    fprintf(s->m->f, "<text x=\"%d\" y=\"%s\">bound %s</text></g>\n",
            PLOT_LEFT + 4, page_at(at - 3, y),
            page_bytes((double)s->m->bound, text));
}

static const char *unit_name(const struct memory_plot *m, uint32_t unit)
{
    return unit < m->n_units ? m->unit[unit] : "";
}

/* The part of a step that a point belongs to. */
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

/* Draws a row below the plot: forward, backward, optimizer. */
static void phases(const struct memory_frame *s)
{
    static const char *const name[] = {"forward", "backward", "step"};
    const struct memory_plot *m = s->m;
    FILE *out = s->m->f;
    char x[PAGE_NUMBER_BYTES];
    char width[PAGE_NUMBER_BYTES];

    for (uint32_t i = 0; i < m->n;) {
        uint32_t phase = phase_of(m->moment[i].point);
        uint32_t end = i + 1;
        double room;

        while (end < m->n && phase_of(m->moment[end].point) == phase) {
            end++;
        }
        room = left(s, end) - left(s, i);
        fprintf(out,
                "<rect class=\"phase p%u\" x=\"%s\" y=\"%d\" "
                "width=\"%s\" height=\"15\"/>",
                phase, page_at(left(s, i), x), PLOT_BOTTOM + 3,
                page_at(room - 1, width));
        if (room > 7.0 * (double)strlen(name[phase])) {
            fprintf(out,
                    "<text class=\"in-phase\" x=\"%s\" y=\"%d\" "
                    "text-anchor=\"middle\">%s</text>",
                    page_at(left(s, i) + room / 2, x), PLOT_BOTTOM + 14,
                    name[phase]);
        }
        i = end;
    }
    fprintf(out, "\n");
}

static void say_moment(const struct memory_plot *m,
                       const struct judge_moment *at)
{
    const char *unit = unit_name(m, at->unit);
    char text[PAGE_NUMBER_BYTES];

    fprintf(m->f, "%s", record_point_name(at->point));
    if (unit[0] != '\0') {
        fprintf(m->f, " of unit ");
        page_escape(m->f, unit);
    }
    fprintf(m->f, ": %s", page_bytes(pile(at, N_PILED), text));
    for (uint32_t k = 0; k < N_PILED; k++) {
        if (at->live[piled[k].kind] > 0) {
            fprintf(m->f, ", %s %s", piled[k].name,
                    page_bytes((double)at->live[piled[k].kind], text));
        }
    }
}

/* What a pointer is shown: the fullest moment of each unit's turn. */
static void spans(const struct memory_frame *s)
{
    const struct memory_plot *m = s->m;
    char x[PAGE_NUMBER_BYTES];
    uint32_t n = 0;

    fprintf(s->m->f, "<g class=\"spans\">");
    for (uint32_t i = 0; i < m->n && n < SPANS_MOST; n++) {
        const struct judge_moment *first = &m->moment[i];
        const struct judge_moment *most = first;
        uint32_t end = i;

        while (end < m->n && m->moment[end].unit == first->unit &&
               phase_of(m->moment[end].point) == phase_of(first->point)) {
            if (pile(&m->moment[end], N_PILED) > pile(most, N_PILED)) {
                most = &m->moment[end];
            }
            end++;
        }
        fprintf(s->m->f, "<path d=\"M%s %dV%d", page_at(left(s, i), x),
                AREA_TOP, PLOT_BOTTOM);
        fprintf(s->m->f, "H%sV%dZ\"><title>", page_at(left(s, end), x),
                AREA_TOP);
        say_moment(m, most);
        fprintf(s->m->f, "</title></path>");
        i = end;
    }
    fprintf(s->m->f, "</g>\n");
}

static void peak(const struct memory_frame *s)
{
    const struct judge_moment *m = &s->m->moment[s->peak];
    double x = (left(s, s->peak) + left(s, s->peak + 1)) / 2;
    double y = height(s, pile(m, N_PILED));
    char a[PAGE_NUMBER_BYTES];
    char b[PAGE_NUMBER_BYTES];

    fprintf(s->m->f, "<path class=\"peak\" d=\"M%s %sl-5 -8h10z\"/>\n",
            page_at(x, a), page_at(y, b));
}

static void grid(const struct memory_frame *s)
{
    double step = plot_step(&s->p);
    char text[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];

    fprintf(s->m->f, "<g class=\"axis\">");
    for (uint32_t i = 0; i * step <= s->p.high + 0.5 * step; i++) {
        double value = i * step;

        fprintf(s->m->f, "<path d=\"M%d %sH%d\"/>", PLOT_LEFT,
                page_at(height(s, value), y), PLOT_RIGHT);
        fprintf(s->m->f, "<text x=\"%d\" y=\"%s\" class=\"y\">%s</text>",
                PLOT_LEFT - 5, page_at(height(s, value) + 3.5, y),
                page_bytes(value, text));
    }
    fprintf(s->m->f, "</g>\n");
}

static bool has_kind(const struct memory_plot *m, uint32_t kind)
{
    bool any = false;

    for (uint32_t i = 0; i < m->n && !any; i++) {
        any = m->moment[i].live[kind] > 0;
    }
    return any;
}

static uint32_t fullest(const struct memory_plot *m)
{
    uint32_t most = 0;

    for (uint32_t i = 1; i < m->n; i++) {
        if (pile(&m->moment[i], N_PILED) > pile(&m->moment[most], N_PILED)) {
            most = i;
        }
    }
    return most;
}

void memory_plot_legend(const struct memory_plot *m)
{
    const struct judge_moment *at = &m->moment[fullest(m)];
    char text[PAGE_NUMBER_BYTES];

    fprintf(m->f, "<ul class=\"legend\">");
    for (uint32_t k = N_PILED; k-- > 0;) {
        if (has_kind(m, piled[k].kind)) {
            fprintf(m->f, "<li><i class=\"k%u\"></i>%s <b>%s</b></li>",
                    piled[k].kind, piled[k].name,
                    page_bytes((double)at->live[piled[k].kind], text));
        }
    }
    fprintf(m->f, "</ul><p class=\"peak-text\">&#9660; fullest at ");
    say_moment(m, at);
    fprintf(m->f, "</p>");
}

void memory_plot_words(const struct memory_plot *m,
                       char title[MEMORY_PLOT_TITLE_BYTES],
                       char words[MEMORY_PLOT_WORDS_BYTES])
{
    const struct judge_moment *at = &m->moment[fullest(m)];
    const char *unit = unit_name(m, at->unit);
    char text[PAGE_NUMBER_BYTES];
    char most[PAGE_NUMBER_BYTES] = "unknown";

    if (m->has_bound) {
        (void)page_bytes((double)m->bound, most);
    }
    snprintf(title, MEMORY_PLOT_TITLE_BYTES, "Memory over step %u, %.120s",
             m->step, m->whose ? m->whose : "rank 0");
    snprintf(words, MEMORY_PLOT_WORDS_BYTES,
             "Live bytes by kind at %u points of a step. Fullest, %s, at "
             "%s%s%.64s; the bound is %s.",
             m->n, page_bytes(pile(at, N_PILED), text),
             record_point_name(at->point), unit[0] != '\0' ? " of unit " : "",
             unit, most);
}

void memory_plot_draw(const struct memory_plot *m)
{
    struct memory_frame s = {
        .m = m, .p = {.f = m->f, .bytes = true}, .peak = fullest(m)};
    const double held = pile(&m->moment[s.peak], N_PILED);
    const double most = m->has_bound ? (double)m->bound : 0.0;

    plot_range(&s.p, 0.0, held > most ? held : most, true);
    grid(&s);
    for (uint32_t k = N_PILED; k-- > 0;) {
        if (has_kind(m, piled[k].kind)) {
            area(&s, k);
        }
    }
    activations(&s);
    phases(&s);
    if (m->has_bound) {
        bound(&s);
    }
    peak(&s);
    spans(&s);
}

void memory_plot(const struct memory_plot *m, uint32_t id)
{
    char title[MEMORY_PLOT_TITLE_BYTES];
    char words[MEMORY_PLOT_WORDS_BYTES];

    memory_plot_words(m, title, words);
    plot_open(m->f, id, title, words);
    memory_plot_draw(m);
    plot_close(m->f);
    memory_plot_legend(m);
    fprintf(m->f, "</figure>\n");
}
