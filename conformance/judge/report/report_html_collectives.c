/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_collectives.c - the collectives of a step in their order, those
 * that are expected above those that were seen. Position is order, not time.
 */
#include "judge/compare/compare.h"
#include "judge/draw/page_plot.h"
#include "judge/report/report_html_records.h"

enum {
    SHOWN = 120, /* of a step */
    LANE_LEFT = 36,
    LANE_HEIGHT = 24,
    LETTER = 11 /* a box that is as wide has its unit's number */
};

struct lanes {
    const struct html_view *v;
    const struct record_sequence *want, *got;
    uint32_t rank, step;
    bool differ;
    double width; /* of a box */
};

static const char *css_of(uint32_t kind)
{
    static const char *const css[FSDP_N_COLLECTIVES] = {
        [FSDP_ALL_GATHER] = "k0", [FSDP_REDUCE_SCATTER] = "k3",
        [FSDP_ALL_REDUCE] = "k4", [FSDP_BROADCAST] = "k1",
        [FSDP_BARRIER] = "k5",
    };

    return kind < FSDP_N_COLLECTIVES && css[kind] ? css[kind] : "k5";
}

static bool same(const struct record_collective *a,
                 const struct record_collective *b)
{
    return a->kind == b->kind && a->dim == b->dim && a->dtype == b->dtype &&
           a->unit == b->unit && a->n == b->n;
}

static bool differ(const struct record_sequence *a,
                   const struct record_sequence *b)
{
    bool equal = a->n == b->n;

    for (uint32_t i = 0; i < a->n && equal; i++) {
        equal = same(&a->c[i], &b->c[i]);
    }
    return !equal;
}

/* What rank k communicated in a step; NULL: that is not recorded. */
static const struct record_sequence *seen(const struct record *r, uint32_t k,
                                          uint32_t step)
{
    const struct record_rank *rank = compare_rank(r, k);

    if (!rank || step >= rank->n_steps ||
        rank->step_sequence[step] >= rank->n_sequences) {
        return NULL;
    }
    return &rank->sequence[rank->step_sequence[step]];
}

/* The first step and rank in which they differ; else the very first. */
static void choose(struct lanes *l)
{
    const struct html_view *v = l->v;

    l->got = seen(v->record, 0, 0);
    for (uint32_t step = 0; step < v->c->c.steps && !l->differ; step++) {
        for (uint32_t k = 0; k < v->record->n_ranks && !l->differ; k++) {
            const struct record_sequence *s = seen(v->record, k, step);

            if (s && differ(s, l->want)) {
                l->got = s;
                l->rank = k;
                l->step = step;
                l->differ = true;
            }
        }
    }
}

static void box(const struct html *h, const struct lanes *l,
                const struct record_sequence *s, uint32_t i, uint32_t y)
{
    const struct record_sequence *other = s == l->want ? l->got : l->want;
    const struct record_collective *c = &s->c[i];
    const bool off = i >= other->n || !same(c, &other->c[i]);
    const double x = LANE_LEFT + l->width * i;
    char words[COMPARE_WORDS_BYTES];
    char at[PAGE_NUMBER_BYTES];

    compare_collective_words(&l->v->expect, c, words);
    fprintf(h->f, "<rect class=\"%s%s\" x=\"%s\" y=\"%u\"", css_of(c->kind),
            off ? " off" : "", page_at(x, at), y);
    fprintf(h->f,
            " width=\"%s\" height=\"18\"><title>%u: ", page_at(l->width, at),
            i + 1);
    page_escape(h->f, words);
    fprintf(h->f, ", %llu elements</title></rect>", (unsigned long long)c->n);
    if (l->width >= LETTER && c->unit != FSDP_NO_UNIT) {
        fprintf(h->f, "<text class=\"in\" x=\"%s\" y=\"%u\">%u</text>",
                page_at(x + l->width / 2, at), y + 12, c->unit);
    }
}

static void lane(const struct html *h, const struct lanes *l, const char *name,
                 const struct record_sequence *s, uint32_t y)
{
    fprintf(h->f, "<g class=\"lane\"><text x=\"0\" y=\"%u\">%s</text>", y + 12,
            name);
    for (uint32_t i = 0; i < s->n && i < SHOWN; i++) {
        box(h, l, s, i, y);
    }
    fputs("</g>\n", h->f);
}

static void legend(const struct html *h, const struct lanes *l)
{
    fputs("<ul class=\"legend\">", h->f);
    for (uint32_t kind = 0; kind < FSDP_N_COLLECTIVES; kind++) {
        uint32_t want = 0;
        uint32_t got = 0;

        for (uint32_t i = 0; i < l->want->n; i++) {
            want += l->want->c[i].kind == kind ? 1 : 0;
        }
        for (uint32_t i = 0; i < l->got->n; i++) {
            got += l->got->c[i].kind == kind ? 1 : 0;
        }
        if (want + got > 0) {
            fprintf(h->f, "<li><i class=\"%s\"></i>%s <b>%u</b> of %u</li>",
                    css_of(kind), record_collective_name(kind), got, want);
        }
    }
    fputs("</ul>", h->f);
}

static void draw_lanes(struct html *h, struct lanes *l)
{
    const bool strict = compare_case_strict(&l->v->expect);
    const uint32_t n = l->want->n > l->got->n ? l->want->n : l->got->n;
    const uint32_t id = ++h->n_ids;

    l->width = (double)(PLOT_RIGHT - LANE_LEFT) / (n < SHOWN ? n : SHOWN);
    l->width = l->width < 22 ? l->width : 22;
    fprintf(h->f,
            "<figure><figcaption>Collectives of step %u, rank %u"
            "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-labelledby=\"t%u\"><title id=\"t%u\">%u collectives, "
            "%u expected</title>\n",
            l->step, l->rank, PLOT_WIDTH, 2 * LANE_HEIGHT, id, id, l->got->n,
            l->want->n);
    lane(h, l, "want", l->want, 2);
    lane(h, l, "got", l->got, 2 + LANE_HEIGHT);
    fputs("</svg>", h->f);
    legend(h, l);
    fprintf(h->f,
            "<p class=\"peak-text\">In their order, each with its "
            "unit's number%s. %s</p></figure>\n",
            n > SHOWN ? ", the first of them" : "",
            !l->differ ? "Every rank and step has what is expected."
            : strict   ? "Outlined: what is not what the other has "
                         "there."
                       : "The engine may run ahead, so that another "
                         "order can be right.");
}

void html_collectives(struct html *h, const struct html_view *v)
{
    struct lanes l = {.v = v, .want = &v->expect.step};

    if (v->expect.n_events > 0) {
        return; /* a script: each action has its own */
    }
    choose(&l);
    if (l.got && l.got->n + l.want->n > 0) {
        draw_lanes(h, &l);
    }
}
