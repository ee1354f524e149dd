/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_page.c - draws a plan as HTML with two pictures in it.
 */
#include "tools/plan/plan_page.h"
#include "record/record_internal.h"

#include "judge/report/markup.h"
#include "judge/report/report_file.h"
#include "tools/plan/plan_show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 1000,
    LEFT = 90,
    MEMORY_HEIGHT = 300,
    LANE = 34,
    MOST_COLUMNS = 900, /* moments that are drawn */
};

static const char style[] =
    "<style>:root{color-scheme:light dark}body{font:15px system-ui,sans-serif;"
    "max-width:1040px;margin:2em auto;padding:0 1em}svg{width:100%;height:auto;"
    "font:12px system-ui,sans-serif}svg text{fill:currentColor}"
    ".k0{fill:#4269d0}.k1{fill:#97bbf5}.k2{fill:#3ca951}.k3{fill:#a3dba8}"
    ".k4{fill:#9c6b4e}.k5{fill:#efb118}.k6{fill:#888}.k7{fill:#ff8ab7}.ahead{"
    "fill:#bbb}"
    ".f{fill:#4269d0}.b{fill:#6cc5b0}.o{fill:#9c6b4e}.g{fill:#efb118}"
    ".r{fill:#ff725c}.a{fill:#a463f2}line{stroke:currentColor}"
    ".limit{stroke:#e03131;stroke-dasharray:6 3}table{border-collapse:collapse}"
    "td,th{padding:2px 12px 2px 0;text-align:right}td:first-child,"
    "th:first-child{text-align:left}</style>\n";

static void put(FILE *f, const char *text)
{
    for (; *text != '\0'; text++) {
        markup_put(f, *text);
    }
}

static uint64_t sum_of(const struct plan_moment *m)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        sum += m->live[k];
    }
    return sum;
}

/* The fullest of the moments that a column stands for. */
static const struct plan_moment *column_of(const struct plan_bytes *b,
                                           uint32_t column, uint32_t columns)
{
    const uint32_t first =
        (uint32_t)((uint64_t)column * b->n_moments / columns);
    const uint32_t end =
        (uint32_t)((uint64_t)(column + 1) * b->n_moments / columns);
    const struct plan_moment *best = &b->moment[first];

    for (uint32_t i = first + 1; i < end; i++) {
        best = sum_of(&b->moment[i]) > sum_of(best) ? &b->moment[i] : best;
    }
    return best;
}

static void draw_line(FILE *f, const char *class, double y, const char *text,
                      uint64_t bytes)
{
    char size[PLAN_SIZE_BYTES];

    fprintf(f,
            "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
            "<text x=\"%d\" y=\"%.1f\">%s %s</text>\n",
            class, LEFT, WIDTH, y, y, LEFT + 4, y - 3.0, text,
            plan_size(bytes, size));
}

static void draw_memory(FILE *f, const struct plan_page *p)
{
    const struct plan_bytes *const b = &p->row->bytes;
    const uint64_t bound = b->peak_sum + p->activations;
    const uint64_t most = p->memory > bound ? p->memory : bound;
    const double scale = (MEMORY_HEIGHT - 20.0) / (double)(most > 0 ? most : 1);
    const uint32_t columns =
        b->n_moments < MOST_COLUMNS ? b->n_moments : MOST_COLUMNS;
    const double width = columns > 0 ? (double)(WIDTH - LEFT) / columns : 0.0;

    fprintf(f,
            "<h2>Memory of a rank over a step</h2>\n<svg role=\"img\" "
            "aria-label=\"live bytes by kind\" viewBox=\"0 0 %d %d\">\n",
            WIDTH, MEMORY_HEIGHT + 4);
    for (uint32_t i = 0; i < columns; i++) {
        const struct plan_moment *const m = column_of(b, i, columns);
        double y = MEMORY_HEIGHT;

        for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
            const double height = (double)m->live[k] * scale;

            y -= height;
            if (height > 0.05) {
                fprintf(f,
                        "<rect class=\"k%u\" x=\"%.2f\" y=\"%.1f\" "
                        "width=\"%.2f\" height=\"%.1f\"/>\n",
                        k, LEFT + i * width, y, width + 0.05, height);
            }
        }
    }
    draw_line(f, "bound", MEMORY_HEIGHT - (double)bound * scale,
              p->activations > 0 ? "peak, with activations," : "peak", bound);
    if (p->memory > 0) {
        draw_line(f, "limit", MEMORY_HEIGHT - (double)p->memory * scale,
                  "memory", p->memory);
    }
    fprintf(f, "</svg>\n<p>");
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        if (b->peak[k] > 0) {
            fprintf(f,
                    "<svg viewBox=\"0 0 10 10\" style=\"width:.8em;display:"
                    "inline\"><rect class=\"k%u\" width=\"10\" height=\"10\"/>"
                    "</svg> %s &nbsp; ",
                    k, record_kind_name(k));
        }
    }
    fprintf(f, "%s</p>\n",
            b->ahead > 0 ? "What running ahead may add is in the peak alone."
                         : "");
}

/* The class of a task: for its colour, and for what is shown to whoever points
 * at it. */
static const char *class_of(const struct schedule_task *t)
{
    if (t->stream != SCHEDULE_COMPUTE) {
        return t->kind == FSDP_ALL_GATHER       ? "g"
               : t->kind == FSDP_REDUCE_SCATTER ? "r"
                                                : "a";
    }
    return t->point == FSDP_END           ? "o"
           : t->point == FSDP_PRE_FORWARD ? "f"
                                          : "b";
}

static void draw_task(FILE *f, const struct plan_page *p,
                      const struct schedule_task *t, struct plan_span span,
                      double scale)
{
    fprintf(f,
            "<rect class=\"%s\" x=\"%.3f\" y=\"%u\" width=\"%.3f\" "
            "height=\"%d\"><title>",
            class_of(t), LEFT + span.start * scale, 8 + LANE * t->stream,
            fmax((span.end - span.start) * scale, 0.05), LANE - 8);
    if (t->stream != SCHEDULE_COMPUTE) {
        fprintf(f, "%s of unit %u", record_collective_name(t->kind), t->unit);
    } else if (t->point == FSDP_END) {
        fprintf(f, "optimizer");
    } else {
        put(f, p->model->model.module_name[t->module]);
        fprintf(f, ", %s", record_point_name(t->point) + 4); /* "pre-" */
    }
    fprintf(f, ": %.4g ms from %.4g ms</title></rect>\n",
            1e3 * (span.end - span.start), 1e3 * span.start);
}

static void draw_time(FILE *f, const struct plan_page *p,
                      const struct schedule *s)
{
    static const char *const lane[] = {"compute", "shard links",
                                       "replica links"};
    const struct plan_time *const t = &p->row->time;
    const double scale = t->seconds > 0.0 ? (WIDTH - LEFT) / t->seconds : 0.0;

    fprintf(f, "<h2>A step on ");
    put(f, p->cluster);
    fprintf(f,
            ": %.4g ms</h2>\n<svg role=\"img\" aria-label=\"when compute "
            "and links are busy\" viewBox=\"0 0 %d %d\">\n",
            1e3 * t->seconds, WIDTH, LANE * SCHEDULE_N_STREAMS + 8);
    for (uint32_t i = 0; i < SCHEDULE_N_STREAMS; i++) {
        fprintf(f, "<text x=\"0\" y=\"%u\">%s</text>\n", 26 + LANE * i,
                lane[i]);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (t->span[i].end > t->span[i].start) {
            draw_task(f, p, &s->task[i], t->span[i], scale);
        }
    }
    fprintf(f,
            "</svg>\n<p>blue: forward; green: backward; brown: optimizer; "
            "yellow: all-gather; red: reduce-scatter; violet: all-reduce. "
            "Compute %.4g ms; communication takes %.4g ms from it, and %.4g ms "
            "are waited.</p>\n",
            1e3 * t->compute, 1e3 * t->contended, 1e3 * t->exposed);
}

static void draw_table(FILE *f, const struct plan_page *p)
{
    const struct plan_bytes *const b = &p->row->bytes;

    fprintf(f, "<table><tr><th>bytes a rank</th><th>at rest</th><th>at the "
               "peak</th><th>most of it</th></tr>\n");
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        if (b->peak[k] > 0) {
            fprintf(f,
                    "<tr><td>%s</td><td>%" PRIu64 "</td><td>%" PRIu64
                    "</td><td>%" PRIu64 "</td></tr>\n",
                    record_kind_name(k), b->rest.live[k], b->fullest.live[k],
                    b->peak[k]);
        }
    }
    fprintf(f,
            "<tr><td>all</td><td>%" PRIu64 "</td><td>%" PRIu64
            "</td><td></td></tr></table>\n",
            b->rest_sum, b->peak_sum);
}

static void draw(FILE *f, const struct plan_page *p, const struct schedule *s)
{
    const struct run_case *const c = &p->row->c;
    char dtypes[PLAN_DTYPES_BYTES];

    fprintf(f,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    put(f, p->model->name);
    fprintf(f, "</title>\n%s</head><body>\n<h1>", style);
    put(f, p->model->name);
    fprintf(f,
            ", %s</h1>\n<p>%" PRIu64 " parameters in %u units; %u ranks in %u "
            "replicas; %s, %s; %s; a step sends %" PRIu64
            " bytes a rank.</p>\n",
            case_strategy_name(c->strategy), p->model->elements,
            p->ask->units->n_units, c->ranks, c->replicas,
            case_layout_name(c->layout), case_optimizer_name(c->optimizer),
            plan_dtypes(c, dtypes), p->row->bytes.sent_sum);
    draw_memory(f, p);
    if (s) {
        draw_time(f, p, s);
    }
    draw_table(f, p);
    fprintf(f, "</body></html>\n");
}

static int write_to(const struct plan_page *p, const struct schedule *s,
                    const char *path, struct fsdp_error *error)
{
    struct report_file file;

    FSDP_TRY(report_file_open(&file, path, error));
    draw(file.f, p, s);
    return report_file_close(&file, FSDP_OK);
}

int plan_page_write(const struct plan_page *p, const char *path,
                    struct fsdp_error *error)
{
    struct schedule s = {.n = 0};
    int status = FSDP_OK;

    if (p->cluster) {
        status = schedule_make(p->ask, &s, error);
    }
    if (status == FSDP_OK) {
        status = write_to(p, p->cluster ? &s : NULL, path, error);
    }
    schedule_release(&s);
    return status;
}
