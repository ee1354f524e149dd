/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_runs.c - the plots over commits: memory, which is a staircase as exact
 * figures are, and what was timed, with its spread and its change points.
 */
#include "tools/track/page_internal.h"

#include "tools/track/median.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARKS_MOST = 24, /* of one line */
    BAND_MOST = 110  /* columns of the spread: about one in three pixels */
};

/* The commits at both ends and in the middle. */
static void commit_labels(struct page *page, const struct plot *p,
                          const int64_t *run, uint32_t n)
{
    static const char *const anchor[] = {"start", "middle", "end"};
    char at[PAGE_NUMBER_BYTES];
    char date[PAGE_NUMBER_BYTES];

    fprintf(p->f, "<g class=\"axis\">");
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t i = k == 0 ? 0 : k == 1 ? (n - 1) / 2 : n - 1;
        const struct history_run *r = track_run(&page->v, run[i]);

        if (!r || (n < 2 && k > 0) || (n < 5 && k == 1)) {
            continue;
        }
        fprintf(p->f, "<text x=\"%s\" y=\"%d\" text-anchor=\"%s\">",
                page_at(plot_x(p, i), at), PLOT_BOTTOM + 15, anchor[k]);
        fprintf(p->f, "%.8s</text>", r->commit);
        fprintf(p->f,
                "<text x=\"%s\" y=\"%d\" text-anchor=\"%s\" "
                "class=\"date\">%s</text>",
                at, PLOT_BOTTOM + 28, anchor[k], page_date(r->date, date));
    }
    fprintf(p->f, "</g>\n");
}

static uint32_t index_of(const int64_t *run, uint32_t n, int64_t id)
{
    uint32_t i = 0;

    while (i + 1 < n && run[i] < id) {
        i++;
    }
    return i;
}

/* A line across the plot where something was accepted. */
static void accepted_marks(struct page *page, const struct plot *p,
                           const struct history_series *s, const char *figure,
                           const int64_t *run, uint32_t n)
{
    char at[PAGE_NUMBER_BYTES];

    for (uint32_t i = 0; i < page->v.n_accepted; i++) {
        const struct history_accepted *a = &page->v.accepted[i];

        if (!track_accepts(a, s, figure) || n == 0 || a->run < run[0]) {
            continue;
        }
        fprintf(p->f, "<path class=\"accepted\" d=\"M%s %dV%d\"><title>",
                page_at(plot_x(p, index_of(run, n, a->run)), at), PLOT_TOP,
                PLOT_BOTTOM);
        fprintf(p->f, "accepted at run %" PRId64 ": ", a->run);
        page_escape(p->f, a->reason);
        fprintf(p->f, "</title></path>");
    }
}

/* ---- Memory ---- */

static const struct {
    const char *figure, *name, *css;
} lines[] = {
    {"peak.engine", "all of the engine", "k-all"},
    {"peak.param-full", "unsharded units", "k1"},
    {"peak.grad-full", "unsharded gradients", "k3"},
    {"peak.param-shard", "shards", "k0"},
    {"peak.optim", "optimizer", "k4"},
};
enum {
    N_LINES = sizeof(lines) / sizeof(lines[0])
};

struct memory_series {
    int64_t *run; /* [n] */
    double (*value)[N_LINES];
    uint32_t n;
};

static int load_memory(struct page *page, const struct history_series *s,
                       struct memory_series *m)
{
    struct history_exact *x = NULL;
    struct figures f = {.n = 0};
    int status = history_exact(page->h, s->id, &x, &m->n, page->error);

    m->run = calloc(m->n + 1u, sizeof(*m->run));
    m->value = calloc(m->n + 1u, sizeof(*m->value));
    if (status == FSDP_OK && (!m->run || !m->value)) {
        free(x);
        return record_fail(page->error, FSDP_ERR_NOMEM, "track",
                           "out of memory");
    }
    for (uint32_t i = 0; i < m->n && status == FSDP_OK; i++) {
        m->run[i] = x[i].run;
        if (i > 0 && x[i].bundle == x[i - 1].bundle) {
            memcpy(m->value[i], m->value[i - 1], sizeof(*m->value));
            continue;
        }
        status = history_bundle(page->h, x[i].bundle, &f, page->error);
        for (uint32_t k = 0; k < N_LINES && status == FSDP_OK; k++) {
            const uint64_t *v = figures_find(&f, lines[k].figure);

            m->value[i][k] = v ? (double)*v : 0.0;
        }
        figures_release(&f);
    }
    free(x);
    return status;
}

/* A change of the staircase, with what a pointer is told. */
static void memory_mark(struct page *page, const struct plot *p,
                        const struct memory_series *m, uint32_t i, uint32_t k)
{
    const struct history_run *r = track_run(&page->v, m->run[i]);
    double before = m->value[i - 1][k];
    double now = m->value[i][k];
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];

    fprintf(p->f,
            "<circle class=\"%s\" cx=\"%s\" cy=\"%s\" r=\"3.5\"><title>"
            "%s: %.0f to %.0f bytes at %.12s</title></circle>",
            now > before ? "worse" : "better", page_at(plot_x(p, i), x),
            page_at(plot_y(p, now), y), lines[k].name, before, now,
            r ? r->commit : "?");
}

static void memory_line(struct page *page, const struct plot *p,
                        const struct memory_series *m, uint32_t k)
{
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];
    uint32_t marks = 0;

    fprintf(p->f, "<path class=\"line %s\" d=\"M%d %s", lines[k].css, PLOT_LEFT,
            page_at(plot_y(p, m->value[0][k]), y));
    for (uint32_t i = 1; i < m->n; i++) {
        if (m->value[i][k] < m->value[i - 1][k] ||
            m->value[i][k] > m->value[i - 1][k]) {
            fprintf(p->f, "H%sV%s", page_at(plot_x(p, i), x),
                    page_at(plot_y(p, m->value[i][k]), y));
        }
    }
    fprintf(p->f, "H%d\"/>\n", PLOT_RIGHT);
    for (uint32_t i = m->n; i-- > 1 && marks < MARKS_MOST;) {
        if (m->value[i][k] < m->value[i - 1][k] ||
            m->value[i][k] > m->value[i - 1][k]) {
            memory_mark(page, p, m, i, k);
            marks++;
        }
    }
}

static void memory_legend(struct page *page, const struct memory_series *m)
{
    char text[PAGE_NUMBER_BYTES];
    char exact[PAGE_NUMBER_BYTES];

    fprintf(page->f, "<ul class=\"legend\">");
    for (uint32_t k = 0; k < N_LINES; k++) {
        double now = m->value[m->n - 1][k];

        if (now > 0.0) {
            fprintf(page->f,
                    "<li><i class=\"%s\"></i>%s <b title=\"%s bytes\">%s"
                    "</b></li>",
                    lines[k].css, lines[k].name,
                    page_count((uint64_t)now, exact), page_bytes(now, text));
        }
    }
    fprintf(page->f, "</ul></figure>\n");
}

int page_memory_plot(struct page *page, const struct history_series *s)
{
    struct memory_series m = {.n = 0};
    struct plot p = {.f = page->f, .bytes = true};
    char description[160];
    char from[PAGE_NUMBER_BYTES];
    char to[PAGE_NUMBER_BYTES];
    double most = 0.0;
    int status = load_memory(page, s, &m);

    if (status == FSDP_OK && m.n > 0) {
        for (uint32_t i = 0; i < m.n; i++) {
            for (uint32_t k = 0; k < N_LINES; k++) {
                most = m.value[i][k] > most ? m.value[i][k] : most;
            }
        }
        p.n = m.n;
        plot_range(&p, 0.0, most, true);
        snprintf(description, sizeof(description),
                 "Peak memory of the worst rank over %u runs: all of the "
                 "engine from %s to %s.",
                 m.n, page_bytes(m.value[0][0], from),
                 page_bytes(m.value[m.n - 1][0], to));
        plot_open(page->f, ++page->n_plots, "Peak memory over commits",
                  description);
        plot_grid(&p);
        commit_labels(page, &p, m.run, m.n);
        accepted_marks(page, &p, s, lines[0].figure, m.run, m.n);
        for (uint32_t k = N_LINES; k-- > 0;) {
            if (m.value[m.n - 1][k] > 0.0) {
                memory_line(page, &p, &m, k);
            }
        }
        plot_close(page->f);
        memory_legend(page, &m);
    }
    free(m.run);
    free(m.value);
    return status;
}

/* ---- What was timed ---- */

struct timed_series {
    struct history_timed *t;
    int64_t *run;
    double *median;
    uint32_t n, n_changes;
    struct edivisive_change *change;
};

static int load_timed(struct page *page, const struct history_series *s,
                      struct timed_series *m)
{
    const struct track_points *known = &page->v.points[s - page->v.series];
    int status = history_timed(page->h, s->id, &m->t, &m->n, page->error);

    if (status != FSDP_OK) {
        return status;
    }
    m->run = calloc(m->n + 1u, sizeof(*m->run));
    m->median = calloc(m->n + 1u, sizeof(*m->median));
    if (!m->run || !m->median) {
        return record_fail(page->error, FSDP_ERR_NOMEM, "track",
                           "out of memory");
    }
    for (uint32_t i = 0; i < m->n; i++) {
        m->run[i] = m->t[i].run;
        m->median[i] = m->t[i].median;
    }
    /* Judging has found them already, if it went to the end of the series. */
    if (known->known && page->v.newest + 1 == page->v.n_runs) {
        m->n_changes = known->n;
        m->change = calloc(known->n + 1u, sizeof(*m->change));
        if (m->change) {
            memcpy(m->change, known->change, known->n * sizeof(*m->change));
        }
        status = m->change ? FSDP_OK : FSDP_ERR_NOMEM;
    } else {
        /* The caller releases m: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        status = edivisive_changes(m->median, m->n, &edivisive_defaults,
                                   &m->change, &m->n_changes);
    }
    return status == FSDP_OK ? FSDP_OK
                             : record_fail(page->error, status, "track", "%s",
                                           fsdp_status_text(status));
}

static double highest_of(const struct timed_series *m, uint32_t from,
                         uint32_t end)
{
    double value = m->t[from].p90;

    for (uint32_t i = from; i < end; i++) {
        value = fmax(value, m->t[i].p90);
    }
    return value;
}

static double lowest_of(const struct timed_series *m, uint32_t from,
                        uint32_t end)
{
    double value = m->t[from].p10;

    for (uint32_t i = from; i < end; i++) {
        value = fmin(value, m->t[i].p10);
    }
    return value;
}

/* From p10 up to p90 and back, of a few runs a column. */
static void timed_band(const struct plot *p, const struct timed_series *m)
{
    uint32_t columns = m->n < BAND_MOST ? m->n : BAND_MOST;
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];

    fprintf(p->f, "<path class=\"band\" d=\"");
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t c = 0; c < columns; c++) {
            uint32_t k = side == 0 ? c : columns - 1 - c;
            uint32_t from = (uint32_t)((uint64_t)k * m->n / columns);
            uint32_t end = (uint32_t)((uint64_t)(k + 1) * m->n / columns);
            uint32_t at = columns > 1 ? k * (m->n - 1) / (columns - 1) : 0;
            double value =
                side == 0 ? highest_of(m, from, end) : lowest_of(m, from, end);

            fprintf(p->f, "%c%s %s", side + c == 0 ? 'M' : 'L',
                    page_at(plot_x(p, at), x), page_at(plot_y(p, value), y));
        }
    }
    fprintf(p->f, "Z\"/>");
}

static void timed_line(const struct plot *p, const struct timed_series *m)
{
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];
    double at_x = round(10.0 * plot_x(p, 0)) / 10.0;
    double at_y = round(10.0 * plot_y(p, m->median[0])) / 10.0;

    fprintf(p->f, "<path class=\"line median\" d=\"M%s %s",
            page_at(plot_x(p, 0), x), page_at(plot_y(p, m->median[0]), y));
    for (uint32_t i = 1; i < m->n; i++) {
        /* Steps are shorter to write than places; what they are rounded by
         * is made good by the next. */
        double to_x = round(10.0 * plot_x(p, i)) / 10.0;
        double to_y = round(10.0 * plot_y(p, m->median[i])) / 10.0;

        fprintf(p->f, "l%s %s", page_at(to_x - at_x, x),
                page_at(to_y - at_y, y));
        at_x = to_x;
        at_y = to_y;
    }
    fprintf(p->f, "\"/>");
    if (m->n == 1) {
        fprintf(p->f,
                "<circle class=\"median\" cx=\"%s\" cy=\"%s\" "
                "r=\"3.5\"/>",
                page_at(plot_x(p, 0), x), page_at(plot_y(p, m->median[0]), y));
    }
}

/* The median between two change points. */
static double level_of(const struct timed_series *m, uint32_t i)
{
    uint32_t from = i > 0 ? m->change[i - 1].begin : 0;
    uint32_t end = i < m->n_changes ? m->change[i].begin : m->n;

    return median_of(m->median + from, end - from);
}

static void timed_levels(const struct plot *p, const struct timed_series *m)
{
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];
    char to[PAGE_NUMBER_BYTES];

    for (uint32_t i = 0; i <= m->n_changes; i++) {
        uint32_t from = i > 0 ? m->change[i - 1].begin : 0;
        uint32_t end = i < m->n_changes ? m->change[i].begin : m->n;

        fprintf(p->f, "<path class=\"level\" d=\"M%s %sH%s\"/>",
                page_at(plot_x(p, from), x),
                page_at(plot_y(p, level_of(m, i)), y),
                page_at(plot_x(p, end - 1), to));
    }
}

static void timed_changes(struct page *page, const struct plot *p,
                          const struct history_series *s,
                          const struct timed_series *m)
{
    char x[PAGE_NUMBER_BYTES];
    char y[PAGE_NUMBER_BYTES];

    for (uint32_t i = 0; i < m->n_changes; i++) {
        const struct edivisive_change *c = &m->change[i];
        const struct history_run *r = track_run(&page->v, m->run[c->begin]);
        double before = level_of(m, i);
        double after = level_of(m, i + 1);
        double at = plot_x(p, c->begin);
        bool right = at > 320;

        fprintf(p->f,
                "<g class=\"change %s\"><path d=\"M%s %dV%d\"/>"
                "<text x=\"%s\" y=\"%d\" text-anchor=\"%s\">%+.1f %%"
                "</text><title>%.4g to %.4g at %.12s, chance %.2g"
                "</title></g>",
                (after > before) == s->higher ? "better" : "worse",
                page_at(at, x), PLOT_TOP, PLOT_BOTTOM,
                page_at(at + (right ? -4 : 4), y), PLOT_TOP + 9,
                right ? "end" : "start", 100.0 * (after / before - 1.0), before,
                after, r ? r->commit : "?", c->chance);
    }
}

int page_timed_plot(struct page *page, const struct history_series *s)
{
    struct timed_series m = {.n = 0};
    struct plot p = {.f = page->f};
    char title[96];
    char description[200];
    char text[PAGE_NUMBER_BYTES];
    int status = load_timed(page, s, &m);

    if (status == FSDP_OK && m.n > 0) {
        double low = m.t[0].p10;
        double high = m.t[0].p90;

        for (uint32_t i = 0; i < m.n; i++) {
            low = m.t[i].p10 < low ? m.t[i].p10 : low;
            high = m.t[i].p90 > high ? m.t[i].p90 : high;
        }
        p.n = m.n;
        plot_range(&p, low, high, false);
        snprintf(title, sizeof(title), "%s over commits", s->unit);
        snprintf(description, sizeof(description),
                 "Medians of %u runs with 10 to 90 %% of their samples; "
                 "%u change points; %s is better; now %s.",
                 m.n, m.n_changes, s->higher ? "higher" : "lower",
                 page_number(m.median[m.n - 1], text));
        plot_open(page->f, ++page->n_plots, title, description);
        plot_grid(&p);
        commit_labels(page, &p, m.run, m.n);
        timed_band(&p, &m);
        timed_line(&p, &m);
        accepted_marks(page, &p, s, s->unit, m.run, m.n);
        timed_levels(&p, &m);
        timed_changes(page, &p, s, &m);
        plot_close(page->f);
        fprintf(page->f,
                "<ul class=\"legend\"><li><i class=\"median\"></i>median "
                "<b>%s</b></li><li><i class=\"band\"></i>10 to 90 %%</li>"
                "<li><i class=\"level\"></i>level</li><li>%s is "
                "better</li></ul></figure>\n",
                page_number(m.median[m.n - 1], text),
                s->higher ? "higher" : "lower");
    }
    free(m.t);
    free(m.run);
    free(m.median);
    free(m.change);
    return status;
}
