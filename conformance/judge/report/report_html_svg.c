/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html_svg.c - writes each drawing of a page as a file: the text between
 * <svg> and </svg> of a figure, with a background and a style.
 */
#include "judge/draw/page_assets.h"
#include "judge/report/report_html_records.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 8,
    BOTH = 2 * MARGIN
};

/* A figure that is being written into a file. */
struct canvas {
    const char *folder;
    int status;
    struct fsdp_error *error;
    char *text;
    size_t n;
};

/* The beginning of the figure's <svg>, and in *end its end; NULL: there is
 * none. */
static const char *find_svg(const struct canvas *c, const char **end)
{
    const char *begin = c->n > 0 ? strstr(c->text, "<svg ") : NULL;

    *end = begin ? strstr(begin, "</svg>") : NULL;
    return *end ? begin : NULL;
}

/* The attributes, with a margin: letters begin at the very edge of a figure. */
static void put_attributes(FILE *f, const char *from, const char *to)
{
    static const char origin[] = "viewBox=\"0 0 ";
    const char *box = strstr(from, origin);
    unsigned long width;
    unsigned long height;
    char *end;

    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" ", f);
    if (!box || box > to) {
        (void)fwrite(from, 1, (size_t)(to - from), f);
        fputc('>', f);
        return;
    }
    width = strtoul(box + strlen(origin), &end, 10) + BOTH;
    height = strtoul(end, &end, 10) + BOTH;
    (void)fwrite(from, 1, (size_t)(box - from), f);
    fprintf(f, "viewBox=\"-%d -%d %lu %lu\"", MARGIN, MARGIN, width, height);
    end++; /* the quote behind it */
    (void)fwrite(end, 1, (size_t)(to - end), f);
    fprintf(f,
            ">\n<style>\n%s</style>\n<rect class=\"ground\" x=\"-%d\" "
            "y=\"-%d\" width=\"%lu\" height=\"%lu\" rx=\"6\"/>\n",
            fsdp_cts_plot_css, MARGIN, MARGIN, width, height);
}

static int write_svg(const struct canvas *c, const char *name)
{
    const char *end;
    const char *svg = find_svg(c, &end);
    const char *inside = svg ? strchr(svg, '>') : NULL;
    char path[REPORT_PATH_BYTES];
    struct report_file file;
    int status;

    if (!inside) {
        return FSDP_OK;
    }
    snprintf(path, sizeof(path), "%.4000s/%s.svg", c->folder, name);
    status = report_file_open(&file, path, c->error);
    if (status == FSDP_OK) {
        put_attributes(file.f, svg + strlen("<svg "), inside);
        (void)fwrite(inside + 1, 1, (size_t)(end - inside) - 1, file.f);
        fputs("</svg>\n", file.f);
    }
    return report_file_close(&file, status);
}

/* Has one figure drawn into memory, and writes it as a file. */
static void begin_figure(struct html *h, struct canvas *c)
{
    h->n_ids = 0;
    h->f = open_memstream(&c->text, &c->n);
    if (!h->f) {
        c->status = FSDP_ERR_NOMEM;
    }
}

static void finish(struct html *h, struct canvas *c, const char *name)
{
    if (h->f && fclose(h->f) == 0 && c->status == FSDP_OK) {
        c->status = write_svg(c, name);
    }
    free(c->text);
    c->text = NULL;
    c->n = 0;
}

static const struct {
    const char *name;
    void (*draws)(struct html *h, const struct html_view *v);
} of_records[] = {{"curve", html_curve},
                  {"collectives", html_collectives},
                  {"peaks", html_peaks},
                  {"map", html_map}};

int report_svg(const struct report_page *page, const char *folder,
               struct fsdp_error *error)
{
    struct html h = {.part = page->part, .n = 1, .source = page->source};
    struct canvas canvas = {.folder = folder, .error = error};
    const struct judge_result *r = page->part[0].result;
    uint32_t c = 0;
    uint32_t q;

    (void)judge_first_cause(r, &c, &q);
    begin_figure(&h, &canvas);
    if (canvas.status == FSDP_OK) {
        html_staircase(&h, r);
        finish(&h, &canvas, "levels");
    }
    for (size_t i = 0; i <= sizeof(of_records) / sizeof(of_records[0]) &&
                       canvas.status == FSDP_OK && c < r->n_cases;
         i++) {
        begin_figure(&h, &canvas);
        if (canvas.status == FSDP_OK && i == 0) {
            html_draw_memory(&h, 0, c);
        } else if (canvas.status == FSDP_OK && h.source) {
            canvas.status = html_look(&h, 0, c, of_records[i - 1].draws, error);
        }
        finish(&h, &canvas, i == 0 ? "case-memory" : of_records[i - 1].name);
    }
    return canvas.status;
}
