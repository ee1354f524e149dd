/* SPDX-License-Identifier: Apache-2.0 */
/* report_html_peaks.c - bars: the most that each rank held, by kind. */
#include "judge/compare/compare.h"
#include "judge/draw/page_plot.h"
#include "judge/report/report_html_records.h"

enum {
    BAR_LEFT = 44,
    BAR_RIGHT = 330, /* numbers stand behind it */
    BAR = 15,
    RANKS_SHOWN = 16
};

static double width(uint64_t bytes, uint64_t most)
{
    return (double)(BAR_RIGHT - BAR_LEFT) * (double)bytes / (double)most;
}

static void bar(const struct html *h, const struct record_memory *m, uint32_t k,
                uint64_t most)
{
    char at[PAGE_NUMBER_BYTES];
    char text[PAGE_NUMBER_BYTES];

    fprintf(h->f,
            "<text x=\"0\" y=\"%u\">rank %u</text><rect class=\"k0\" "
            "x=\"%d\" y=\"%u\" width=\"%s\" height=\"%d\"><title>each "
            "alone:",
            k * BAR + 11, k, BAR_LEFT, k * BAR + 1,
            page_at(width(m->peak_engine, most), at), BAR - 3);
    for (uint32_t kind = 0; kind < FSDP_N_KINDS; kind++) {
        if (m->peak[kind] > 0) {
            fprintf(h->f, " %s %s", record_kind_name(kind),
                    page_bytes((double)m->peak[kind], text));
        }
    }
    fprintf(h->f, "</title></rect><text x=\"%d\" y=\"%u\">%s</text>\n",
            BAR_RIGHT + 6, k * BAR + 11,
            page_bytes((double)m->peak_engine, text));
}

void html_peaks(struct html *h, const struct html_view *v)
{
    const struct record *r = v->record;
    const uint32_t n = r->n_ranks < RANKS_SHOWN ? r->n_ranks : RANKS_SHOWN;
    const uint64_t bound = v->expect.peak_engine;
    const uint32_t id = ++h->n_ids;
    uint64_t most = bound;
    char at[PAGE_NUMBER_BYTES];
    char text[PAGE_NUMBER_BYTES];

    for (uint32_t k = 0; k < n; k++) {
        if (r->rank[k].present && r->rank[k].memory.peak_engine > most) {
            most = r->rank[k].memory.peak_engine;
        }
    }
    if (most == 0) {
        return;
    }
    fprintf(h->f,
            "<figure><figcaption>Most that each rank held</figcaption>\n"
            "<svg viewBox=\"0 0 %d %u\" role=\"img\" "
            "aria-labelledby=\"t%u\"><title id=\"t%u\">Peaks of all that "
            "the engine holds; the bound is %s</title><g "
            "class=\"peaks\">\n",
            PLOT_WIDTH, n * BAR + 16, id, id, page_bytes((double)bound, text));
    for (uint32_t k = 0; k < n; k++) {
        if (r->rank[k].present) {
            bar(h, &r->rank[k].memory, k, most);
        }
    }
    fprintf(h->f, "</g><g class=\"bound\"><path d=\"M%s 0V%u\"/>",
            page_at(BAR_LEFT + width(bound, most), at), n * BAR);
    fprintf(h->f,
            "<text x=\"%s\" y=\"%u\" text-anchor=\"end\">bound %s</text>"
            "</g></svg></figure>\n",
            at, n * BAR + 12, text);
}
