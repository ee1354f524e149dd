/* SPDX-License-Identifier: Apache-2.0 */
/* report_html.c - see report_html.h. */
#include "judge/report/report_html.h"

#include "judge/draw/page_frame.h"
#include "judge/draw/page_text.h"
#include "judge/report/report_html_internal.h"

#include <inttypes.h>
#include <stdlib.h>

struct html_counts html_count_case(const struct judge_result *r, uint32_t c)
{
    struct html_counts n = {{0}, 0};

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (r->reported[q]) {
            n.of[judge_item_at(r, c, q)->outcome]++;
            n.failures += judge_is_failure(judge_item_at(r, c, q)) ? 1 : 0;
        }
    }
    return n;
}

struct html_counts html_count_requirement(const struct judge_result *r,
                                          uint32_t q)
{
    struct html_counts n = {{0}, 0};

    for (uint32_t c = 0; c < r->n_cases && r->reported[q]; c++) {
        n.of[judge_item_at(r, c, q)->outcome]++;
        n.failures += judge_is_failure(judge_item_at(r, c, q)) ? 1 : 0;
    }
    return n;
}

void html_link_requirement(const struct html *h, const struct requirement *q)
{
    fprintf(h->f, "<a href=\"#r-%s\"><code>%s</code></a>", q->id, q->id);
}

void html_link_case(const struct html *h, uint32_t part, uint32_t c)
{
    fprintf(h->f, "<a href=\"#c%u-%u\">", part, c);
    page_escape_name(h->f, h->part[part].result->cases[c].id);
    fputs("</a>", h->f);
}

const char *html_engine(const struct judge_result *r)
{
    return r->engine[0] != '\0' ? r->engine : "no engine";
}

static void head(const struct html *h)
{
    const struct report_meta *m = h->part[0].meta;
    char date[PAGE_NUMBER_BYTES];

    page_begin(h->f);
    fputs("fsdp-cts: ", h->f);
    for (uint32_t i = 0; i < h->n; i++) {
        fputs(i > 0 ? ", " : "", h->f);
        page_escape(h->f, html_engine(h->part[i].result));
    }
    page_begin_body(h->f);
    fputs("<h1>What the suite found</h1>\n<p class=\"dim\">", h->f);
    if (m->suite_version) {
        fputs("fsdp-cts ", h->f);
        page_escape(h->f, m->suite_version);
    }
    if (m->ended > 0) {
        fprintf(h->f, ", %s", page_date(m->ended, date));
    }
    fputs(". <a href=\"#failed\">what failed</a> &middot; "
          "<a href=\"#cases\">cases</a> &middot; "
          "<a href=\"#requirements\">what is asked</a>",
          h->f);
    fputs(h->n_mutants > 0 ? " &middot; <a href=\"#kills\">kill matrix</a>"
                           : "",
          h->f);
    fputs(h->against ? " &middot; <a href=\"#against\">since the "
                       "earlier run</a></p>\n"
                     : "</p>\n",
          h->f);
}

static int write_all(struct html *h)
{
    int status = html_find_pictures(h);

    if (status == FSDP_OK) {
        head(h);
        for (uint32_t i = 0; i < h->n; i++) {
            html_engine_section(h, i);
        }
        status = html_against(h);
        html_what_failed(h);
        html_define_pictures(h);
        html_cases(h);
        html_requirements(h);
        status = status == FSDP_OK ? html_kills(h) : status;
        page_end(h->f);
    }
    free(h->picture);
    return status;
}

int report_html(const struct report_page *page, const char *path,
                struct fsdp_error *error)
{
    struct report_file file;
    struct html h = {.part = page->part,
                     .n = page->n,
                     .source = page->source,
                     .against = page->against,
                     .mutant = page->mutant,
                     .n_mutants = page->n_mutants};
    int status = report_file_open(&file, path, error);

    if (status == FSDP_OK) {
        h.f = file.f;
        status = write_all(&h);
    }
    return report_file_close(&file, status);
}
