/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_map.c - a tensor that failed, as a map: a row for each rank, a
 * column for each few elements, and a colour for how far these are off. A rank
 * has only the columns of its shard, so that one sees where that is.
 */
#include "judge/compare/compare.h"
#include "judge/draw/page_plot.h"
#include "judge/report/report_html_records.h"

#include <fsdp/arith/bits.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 128,
    ROWS = 16,
    MAP_LEFT = 44,
    ROW = 15,
    LOW_BITS = 8 /* differences below are of the last places */
};

/* The worst difference among the elements of a cell. */
enum cell {
    CELL_NONE = 0, /* not of this rank */
    CELL_EQUAL,
    CELL_LOW, /* bits of the last places differ */
    CELL_HIGH /* others do */
};

struct map {
    const struct html_view *v;
    const struct finding *f;
    uint32_t stage;
    uint64_t numel, each; /* elements of a column */
    uint32_t columns, rows;
    uint8_t cell[ROWS][COLUMNS];
    uint64_t off, seen; /* elements */
};

static void put_cell(struct map *m, uint32_t row, uint64_t element,
                     uint32_t what)
{
    uint8_t *cell = &m->cell[row][element / m->each];

    if (what > *cell) {
        *cell = (uint8_t)what;
    }
}

/* Marks where part `got` differs; `want` has the whole parameter. */
static void compare_part(struct map *m, uint32_t row, const float *got,
                         const float *want, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t off =
            fsdp_f32_bits(got[i]) ^ fsdp_f32_bits(want[first + i]);

        m->seen++;
        m->off += off != 0 ? 1 : 0;
        put_cell(m, row, first + i,
                 off == 0               ? CELL_EQUAL
                 : off >> LOW_BITS == 0 ? CELL_LOW
                                        : CELL_HIGH);
    }
}

/* The whole parameter in the unsharded run; NULL: there is nothing to compare
 * with. Local gradients are each rank's own. */
static const float *wanted(const struct map *m, uint32_t k)
{
    const struct record *b = m->v->expect.baseline;
    const uint32_t of = m->stage == RECORD_LOCAL_GRADIENT ? k : 0;
    const struct record_rank *rank = b ? compare_rank(b, of) : NULL;
    const struct finding *f = m->f;
    const struct record_tensor *t =
        !rank ? NULL
              : record_find(rank, m->stage, (uint32_t)f->step,
                            f->microbatch < 0 ? 0 : (uint32_t)f->microbatch,
                            (uint32_t)f->parameter, 0);

    return t && t->n == m->numel ? t->data : NULL;
}

static bool row_of(struct map *m, uint32_t k)
{
    const struct finding *f = m->f;
    const struct record_rank *rank = compare_rank(m->v->record, k);
    const float *want = wanted(m, k);
    uint32_t first = 0;
    uint32_t n;

    if (!want || !rank) {
        return false;
    }
    n = record_parts(rank, m->stage, (uint32_t)f->step,
                     f->microbatch < 0 ? 0 : (uint32_t)f->microbatch,
                     (uint32_t)f->parameter, &first);
    for (uint32_t i = first; i < first + n; i++) {
        const struct record_tensor *t = &rank->tensor[i];

        if (t->first <= m->numel && t->n <= m->numel - t->first) {
            compare_part(m, k, t->data, want, t->first, t->n);
        }
    }
    return n > 0;
}

static bool load_map(struct map *m)
{
    const struct fsdp_model *model = m->v->expect.model;
    bool any = false;

    while (m->stage < RECORD_N_STAGES &&
           strcmp(record_stage_name(m->stage), m->f->stage) != 0) {
        m->stage++;
    }
    if (m->stage == RECORD_N_STAGES || m->f->step < 0 || m->f->parameter < 0 ||
        m->f->parameter >= model->n_parameters) {
        return false;
    }
    m->numel = fsdp_numel(model, (uint32_t)m->f->parameter);
    m->each = (m->numel + COLUMNS - 1) / COLUMNS;
    m->rows = m->v->record->n_ranks < ROWS ? m->v->record->n_ranks : ROWS;
    if (m->numel == 0) {
        return false;
    }
    m->columns = (uint32_t)((m->numel + m->each - 1) / m->each);
    for (uint32_t k = 0; k < m->rows; k++) {
        any = row_of(m, k) || any;
    }
    return any;
}

static double column_x(const struct map *m, double i)
{
    return MAP_LEFT + (double)(PLOT_RIGHT - MAP_LEFT) * i / m->columns;
}

/* Draws neighbours of one colour as one box. */
static void draw_row(const struct html *h, const struct map *m, uint32_t k)
{
    static const char *const css[] = {"", "equal", "low", "high"};
    char at[PAGE_NUMBER_BYTES];

    fprintf(h->f, "<text x=\"0\" y=\"%u\">rank %u</text>", k * ROW + 11, k);
    for (uint32_t i = 0, end = 0; i < m->columns; i = end) {
        const uint32_t what = m->cell[k][i];

        for (end = i + 1; end < m->columns && m->cell[k][end] == what; end++) {
        }
        if (what != CELL_NONE) {
            fprintf(h->f, "<rect class=\"%s\" x=\"%s\" y=\"%u\"", css[what],
                    page_at(column_x(m, i), at), k * ROW + 1);
            fprintf(h->f, " width=\"%s\" height=\"%d\"/>",
                    page_at(column_x(m, end) - column_x(m, i), at), ROW - 2);
        }
    }
    fputs("\n", h->f);
}

/* Where the finding is. */
static void draw_this(const struct html *h, const struct map *m)
{
    const struct finding *f = m->f;
    char at[PAGE_NUMBER_BYTES];
    uint64_t column;

    if (f->element < 0 || (uint64_t)f->element >= m->numel || f->rank < 0 ||
        f->rank >= m->rows) {
        return;
    }
    column = (uint64_t)f->element / m->each;
    fprintf(h->f, "<rect class=\"this\" x=\"%s\" y=\"%u\"",
            page_at(column_x(m, (double)column) - 1, at),
            (uint32_t)f->rank * ROW);
    fprintf(h->f,
            " width=\"%s\" height=\"%d\"><title>element %lld</title>"
            "</rect>",
            page_at(column_x(m, 1) - MAP_LEFT + 2, at), ROW,
            (long long)f->element);
}

static void draw_map(struct html *h, const struct map *m, const char *parameter)
{
    const uint32_t id = ++h->n_ids;

    fputs("<figure><figcaption>Where ", h->f);
    page_escape(h->f, parameter);
    fprintf(h->f,
            " differs: %s, step %lld</figcaption>\n<svg class=\"map\" "
            "viewBox=\"0 0 %d %u\" role=\"img\" aria-labelledby=\"t%u\">"
            "<title id=\"t%u\">%llu of %llu elements differ in bits from "
            "the unsharded run</title>\n",
            m->f->stage, (long long)m->f->step, PLOT_WIDTH, m->rows * ROW + 14,
            id, id, (unsigned long long)m->off, (unsigned long long)m->seen);
    for (uint32_t k = 0; k < m->rows; k++) {
        draw_row(h, m, k);
    }
    draw_this(h, m);
    fprintf(h->f,
            "<text x=\"%d\" y=\"%u\">element 0</text><text x=\"%d\" "
            "y=\"%u\" text-anchor=\"end\">%llu</text></svg>",
            MAP_LEFT, m->rows * ROW + 11, PLOT_RIGHT, m->rows * ROW + 11,
            (unsigned long long)m->numel - 1);
    fprintf(h->f,
            "<ul class=\"legend\"><li><i class=\"equal\"></i>the same "
            "bits</li><li><i class=\"low\"></i>the last %d bits</li><li>"
            "<i class=\"high\"></i>others too</li></ul><p "
            "class=\"peak-text\">%llu of %llu elements, %llu to a "
            "column.</p></figure>\n",
            LOW_BITS, (unsigned long long)m->off, (unsigned long long)m->seen,
            (unsigned long long)m->each);
}

void html_map(struct html *h, const struct html_view *v)
{
    const struct judge_result *r = h->part[v->part].result;
    struct map *m = calloc(1, sizeof(*m));
    const struct judge_item *item;
    uint32_t q = 0;

    if (m && judge_first_cause_of(r, v->index, &q)) {
        item = judge_item_at(r, v->index, q);
        m->v = v;
        m->f = &item->detail->finding;
        if (m->f->stage && load_map(m)) {
            draw_map(h, m, item->detail->parameter);
        }
    }
    free(m);
}
