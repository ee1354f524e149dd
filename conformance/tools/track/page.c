/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - the page: what changed, then every case. It is written from above
 * to below and holds one series at a time, so that a long history needs no
 * more memory than a short one.
 */
#include "tools/track/page.h"

#include "judge/draw/page_frame.h"
#include "judge/draw/page_memory.h"
#include "tools/track/page_internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPEN_MOST = 12,  /* changed cases that are open from the start */
    ROWS_MOST = 200, /* of the table of changes */
    RUNS_SHOWN = 20
};

/* The first letters of a commit, as a link if it is known where to. */
static void commit_link(struct page *page, const char *commit, int letters)
{
    if (page->commit_url) {
        fputs("<a href=\"", page->f);
        page_escape(page->f, page->commit_url);
        page_escape(page->f, commit);
        fputs("\">", page->f);
    }
    fprintf(page->f, "<code>%.*s</code>", letters, commit);
    fputs(page->commit_url ? "</a>" : "", page->f);
}

static void head(struct page *page)
{
    const struct history_run *r = &page->v.run[page->v.newest];
    char date[PAGE_NUMBER_BYTES];

    page_begin(page->f);
    fputs("fsdp-cts: memory and speed over commits", page->f);
    page_begin_body(page->f);
    fprintf(page->f,
            "<h1>Memory and speed over commits</h1>\n"
            "<p class=\"dim\">Run %" PRId64 " of ",
            r->id);
    commit_link(page, r->commit, 12);
    fprintf(page->f, ", %s, on ", page_date(r->date, date));
    page_escape(page->f, r->machine_text);
    fprintf(page->f, "; %u runs in the history.</p>\n", page->v.n_runs);
}

static void tile(struct page *page, const char *css, uint32_t n,
                 const char *what)
{
    fprintf(page->f, "<li class=\"%s\"><b>%u</b>%s</li>\n", n > 0 ? css : "", n,
            what);
}

static void tiles(struct page *page, uint32_t n_cases)
{
    const struct track_verdict *v = &page->v;
    const uint32_t worse = track_causes(v, true);
    const uint32_t better = track_causes(v, false);

    fprintf(page->f, "<ul class=\"tiles\">\n");
    tile(page, "worse", worse, worse == 1 ? "regression" : "regressions");
    tile(page, "better", better, better == 1 ? "improvement" : "improvements");
    tile(page, "", v->judged, "series compared");
    tile(page, "", v->began, "new");
    tile(page, "", v->n_gone, "gone");
    tile(page, "", n_cases, "cases");
    fprintf(page->f, "</ul>\n");
}

/* ---- What changed ---- */

static void run_cell(struct page *page, const char *label, int64_t id)
{
    const struct history_run *r = track_run(&page->v, id);
    char date[PAGE_NUMBER_BYTES];

    if (!r) {
        fprintf(page->f, "<td></td>");
        return;
    }
    fprintf(page->f, "<td class=\"run\" data-l=\"%s\">", label);
    commit_link(page, r->commit, 10);
    fprintf(page->f, " <br><span class=\"dim\">run %" PRId64 ", %s</span></td>",
            r->id, page_date(r->date, date));
}

/* Index of the case that a series belongs to. */
static uint32_t case_of(const struct page_case *cases, uint32_t n,
                        uint32_t series)
{
    uint32_t i = 0;

    while (i + 1 < n && cases[i + 1].first <= series) {
        i++;
    }
    return i;
}

static const char *value_text(const struct track_change *c, double value,
                              uint64_t exact, char out[PAGE_NUMBER_BYTES])
{
    return c->exact ? page_count(exact, out) : page_number(value, out);
}

static double percent_of(const struct track_change *c)
{
    return 100.0 * (c->after / c->before - 1.0);
}

/* One case of a group: its name, before and after. */
static void change_item(struct page *page, const struct track_change *c,
                        uint32_t index)
{
    const char *unit = c->exact ? figure_unit(c->figure) : "";
    char text[PAGE_NUMBER_BYTES];

    fprintf(page->f, "<li><a href=\"#case-%u\">", index);
    page_escape_name(page->f, page->v.series[c->series].name);
    fprintf(page->f, "</a> <span class=\"v\">%s",
            value_text(c, c->before, c->exact_before, text));
    fprintf(page->f, " &#8594; <b>%s</b> %s",
            value_text(c, c->after, c->exact_after, text), unit);
    if (c->before > 0.0) {
        fprintf(page->f, " (%+.2f&#8239;%%)", percent_of(c));
    }
    fprintf(page->f, "</span></li>\n");
}

/* How much, over all cases of a group. */
static void change_range(struct page *page, const struct track_change *c,
                         uint32_t n)
{
    double low = percent_of(c);
    double high = low;

    for (uint32_t i = 1; i < n; i++) {
        double x = percent_of(&c[i]);

        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    fprintf(page->f, "<td class=\"n %s\" data-l=\"change\">",
            c->worse ? "worse" : "better");
    if (!(high < 1e9)) {
        fprintf(page->f, "from 0</td>");
    } else if (high - low < 0.005) {
        fprintf(page->f, "%+.2f&#8239;%%</td>", low);
    } else {
        fprintf(page->f, "%+.1f to %+.1f&#8239;%%</td>", low, high);
    }
}

/* Changes that are likely to have one cause are one row. */
static void change_row(struct page *page, const struct page_case *cases,
                       uint32_t n_cases, uint32_t first, uint32_t end)
{
    const struct track_change *c = &page->v.change[first];
    uint32_t n = end - first;

    fprintf(page->f,
            "<tr><td class=\"%s\">%s</td><td "
            "data-l=\"figure\">",
            c->worse ? "worse" : "better",
            c->worse ? "regression" : "improvement");
    page_escape(page->f, c->figure);
    fprintf(page->f, "</td><td data-l=\"engine\">");
    page_escape(page->f, page->v.series[c->series].engine);
    fprintf(page->f, "</td><td class=\"wide\">");
    if (n > 1) {
        fprintf(page->f, "<details><summary>%u cases</summary>", n);
    }
    fprintf(page->f, "<ul class=\"cases\">");
    for (uint32_t i = 0; i < n && i < ROWS_MOST; i++) {
        change_item(page, &c[i], case_of(cases, n_cases, c[i].series));
    }
    fprintf(page->f, "</ul>%s</td>", n > 1 ? "</details>" : "");
    change_range(page, c, n);
    run_cell(page, c->worse ? "last good" : "before", c->good);
    run_cell(page, c->worse ? "first bad" : "since", c->bad);
    fprintf(page->f, "</tr>\n");
}

static void changes(struct page *page, const struct page_case *cases,
                    uint32_t n)
{
    const struct track_verdict *v = &page->v;

    fprintf(page->f, "<h2 id=\"what-changed\">What changed</h2>\n");
    if (v->n_change == 0) {
        fprintf(page->f, "<p>Nothing: every exact figure is at its level, "
                         "and no change point stands.</p>\n");
        return;
    }
    fprintf(page->f,
            "<div class=\"scroll\"><table class=\"changes\"><thead><tr>"
            "<th></th><th>figure</th><th>engine</th><th>cases</th>"
            "<th class=\"n\">change</th><th>last before</th>"
            "<th>first with it</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < v->n_change;) {
        uint32_t end = track_same_cause(v, i);

        change_row(page, cases, n, i, end);
        i = end;
    }
    fprintf(page->f, "</tbody></table></div>\n");
}

static void accepted(struct page *page)
{
    const struct track_verdict *v = &page->v;
    char date[PAGE_NUMBER_BYTES];

    if (v->n_accepted == 0) {
        return;
    }
    fprintf(page->f,
            "<h2>Accepted changes</h2>\n<div class=\"scroll\"><table>"
            "<thead><tr><th>run</th><th>date</th><th>engine</th>"
            "<th>cases</th><th>figures</th><th>reason</th></tr></thead>"
            "<tbody>\n");
    for (uint32_t i = v->n_accepted; i-- > 0;) {
        const struct history_accepted *a = &v->accepted[i];

        fprintf(page->f, "<tr><td>%" PRId64 "</td><td>%s</td><td>", a->run,
                page_date(a->date, date));
        page_escape(page->f, a->engine);
        fprintf(page->f, "</td><td>");
        page_escape_name(page->f, a->name);
        fprintf(page->f, "</td><td>");
        page_escape(page->f, a->figure);
        fprintf(page->f, "</td><td>");
        page_escape(page->f, a->reason);
        fprintf(page->f, "</td></tr>\n");
    }
    fprintf(page->f, "</tbody></table></div>\n");
}

static void runs(struct page *page)
{
    const struct track_verdict *v = &page->v;
    char date[PAGE_NUMBER_BYTES];

    fprintf(page->f, "<h2>Runs</h2>\n<div class=\"scroll\"><table><thead><tr>"
                     "<th class=\"n\">run</th><th>commit</th><th>date</th>"
                     "<th>machine</th></tr></thead><tbody>\n");
    for (uint32_t i = v->n_runs; i-- > 0 && v->n_runs - i <= RUNS_SHOWN;) {
        const struct history_run *r = &v->run[i];

        fprintf(page->f, "<tr><td class=\"n\">%" PRId64 "</td><td>", r->id);
        commit_link(page, r->commit, 12);
        fprintf(page->f, "</td><td>%s</td><td>", page_date(r->date, date));
        page_escape(page->f, r->machine_text);
        fprintf(page->f, "</td></tr>\n");
    }
    fprintf(page->f, "</tbody></table></div>\n");
}

/* ---- Cases ---- */

/* Changes of speed come first, by the share that is lost; then changes of
 * counted figures, bytes or pieces, by how much they are. */
static double weight_of(const struct track_change *c)
{
    const double by =
        c->after > c->before ? c->after - c->before : c->before - c->after;

    return c->exact ? by : 1e18 * (1.0 + by / (1e-300 + c->before));
}

static struct page_case *find_cases(const struct page *page, uint32_t *n)
{
    const struct track_verdict *v = &page->v;
    struct page_case *all = calloc(v->n_series + 1u, sizeof(*all));

    *n = 0;
    for (uint32_t i = 0; all && i < v->n_series; i++) {
        const struct history_series *s = &v->series[i];

        if (i > 0 && s[-1].machine == s->machine &&
            strcmp(s[-1].engine, s->engine) == 0 &&
            strcmp(s[-1].name, s->name) == 0) {
            all[*n - 1].n++;
        } else {
            all[(*n)++] = (struct page_case){.first = i, .n = 1};
        }
    }
    for (uint32_t i = 0; all && i < v->n_change; i++) {
        struct page_case *c = &all[case_of(all, *n, v->change[i].series)];

        /* Changes begin with regressions: if it has one, those count. */
        if (v->change[i].worse || c->worse == 0) {
            const double weight = weight_of(&v->change[i]);

            c->weight = weight > c->weight ? weight : c->weight;
        }
        c->worse += v->change[i].worse ? 1 : 0;
        c->better += v->change[i].worse ? 0 : 1;
    }
    return all;
}

static void case_head(struct page *page, const struct page_case *c,
                      uint32_t index, bool open)
{
    const struct history_series *s = &page->v.series[c->first];

    fprintf(page->f, "<details class=\"case\" id=\"case-%u\" data-name=\"",
            index);
    page_escape(page->f, s->name);
    fprintf(page->f, " ");
    page_escape(page->f, s->engine);
    fprintf(page->f, "\"%s%s><summary><span class=\"name\">",
            c->worse + c->better > 0 ? " data-changed" : "",
            open ? " open" : "");
    page_escape_name(page->f, s->name);
    fprintf(page->f, "</span>");
    if (s->engine[0] != '\0') {
        fprintf(page->f, "<span class=\"tag\">");
        page_escape(page->f, s->engine);
        fprintf(page->f, "</span>");
    }
    if (c->worse > 0) {
        fprintf(page->f, "<span class=\"tag worse\">%u worse</span>", c->worse);
    }
    if (c->better > 0) {
        fprintf(page->f, "<span class=\"tag better\">%u better</span>",
                c->better);
    }
    fprintf(page->f, "</summary>\n<div class=\"plots\">\n");
}

/* A step of the newest run that has one. */
static int step_plot(struct page *page, const struct history_series *series)
{
    struct figures f = {.n = 0};
    struct history_exact *x = NULL;
    uint32_t n = 0;
    int status = history_exact(page->h, series->id, &x, &n, page->error);

    if (status == FSDP_OK && n > 0) {
        status = history_bundle(page->h, x[n - 1].bundle, &f, page->error);
        if (status == FSDP_OK && f.n_moments > 0) {
            memory_plot(&(struct memory_plot){.f = page->f,
                                              .moment = f.moment,
                                              .n = f.n_moments,
                                              .unit = (const char(*)[64])f.unit,
                                              .n_units = f.n_units,
                                              .step = (uint32_t)f.step,
                                              .has_bound = f.has_bound,
                                              .bound = f.bound},
                        ++page->n_plots);
        }
        figures_release(&f);
    }
    free(x);
    return status;
}

static int one_case(struct page *page, const struct page_case *c,
                    uint32_t index, bool open)
{
    case_head(page, c, index, open);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct history_series *s = &page->v.series[c->first + i];

        if (!s->exact) {
            FSDP_TRY(page_timed_plot(page, s));
            continue;
        }
        FSDP_TRY(page_memory_plot(page, s));
        FSDP_TRY(step_plot(page, s));
    }
    fprintf(page->f, "</div></details>\n");
    return FSDP_OK;
}

static const char *machine_of(const struct page *page, int64_t machine)
{
    for (uint32_t i = page->v.n_runs; i-- > 0;) {
        if (page->v.run[i].machine == machine) {
            return page->v.run[i].machine_text;
        }
    }
    return "unknown machine";
}

struct order {
    const struct page *page;
    const struct page_case *cases;
};

/* By machine; then regressions, improvements and the rest, each by weight. */
static int by_weight(const void *a, const void *b, void *context)
{
    const struct order *o = context;
    const struct page_case *x = &o->cases[*(const uint32_t *)a];
    const struct page_case *y = &o->cases[*(const uint32_t *)b];
    const int64_t m = o->page->v.series[x->first].machine;
    const int64_t k = o->page->v.series[y->first].machine;
    int order = (m > k) - (m < k);

    order = order != 0 ? order : (y->worse > 0) - (x->worse > 0);
    order =
        order != 0 ? order : (y->weight > x->weight) - (y->weight < x->weight);
    return order != 0 ? order : (x > y) - (x < y);
}

static uint32_t *order_of(const struct page *page,
                          const struct page_case *cases, uint32_t n)
{
    struct order context = {page, cases};
    uint32_t *order = calloc(n + 1u, sizeof(*order));

    for (uint32_t i = 0; order && i < n; i++) {
        order[i] = i;
    }
    if (order && n > 1) {
        qsort_r(order, n, sizeof(*order), by_weight, &context);
    }
    return order;
}

static int all_cases(struct page *page, const struct page_case *cases,
                     uint32_t n)
{
    uint32_t *order = order_of(page, cases, n);
    int status = order ? FSDP_OK : FSDP_ERR_NOMEM;
    uint32_t open = 0;
    int64_t machine = -1;

    fputs("<h2 id=\"cases\">Cases</h2>\n", page->f);
    page_put_tools(page->f, "words of a case, an engine", "changed only", n);
    for (uint32_t i = 0; i < n && status == FSDP_OK; i++) {
        const struct page_case *c = &cases[order[i]];
        bool changed = c->worse + c->better > 0;

        if (page->v.series[c->first].machine != machine) {
            machine = page->v.series[c->first].machine;
            fprintf(page->f, "<h3>");
            page_escape(page->f, machine_of(page, machine));
            fprintf(page->f, "</h3>\n");
        }
        status = one_case(page, c, order[i],
                          (changed && open < OPEN_MOST) || n <= 3);
        open += changed ? 1 : 0;
    }
    free(order);
    return status;
}

static int write_all(struct page *page)
{
    uint32_t n = 0;
    struct page_case *cases = find_cases(page, &n);
    int status;

    if (!cases) {
        return record_fail(page->error, FSDP_ERR_NOMEM, "track",
                           "out of memory");
    }
    head(page);
    tiles(page, n);
    changes(page, cases, n);
    accepted(page);
    status = all_cases(page, cases, n);
    runs(page);
    page_end(page->f);
    free(cases);
    return status;
}

int page_write(struct history *h, int64_t run, const char *commit_url,
               FILE *out, struct fsdp_error *error)
{
    struct page page = {
        .f = out, .h = h, .error = error, .commit_url = commit_url};
    int status = track_judge(h, run, &edivisive_defaults, &page.v, error);

    if (status == FSDP_OK) {
        status = write_all(&page);
    }
    track_verdict_release(&page.v);
    return status == FSDP_OK && ferror(out) != 0
               ? record_fail(error, FSDP_ERR_IO, "track",
                             "cannot write the page")
               : status;
}
