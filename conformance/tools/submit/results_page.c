/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_page.c - what results_table.c says, as a page for a browser: a column
 * for each implementation and release, a row for each requirement, and in it
 * what fails and whose it is. All that a submitter wrote is shown as text.
 */
#include "judge/draw/page_frame.h"
#include "judge/draw/page_text.h"
#include "tools/submit/results_table.h"

#include <string.h>

struct sheet {
    FILE *f;
    const struct results_entry *entry;
    uint32_t n;
};

static uint32_t failures(const uint32_t count[JUDGE_N_OUTCOMES])
{
    return count[JUDGE_FAIL] + count[JUDGE_ERROR] + count[JUDGE_TIMEOUT] +
           count[JUDGE_INCOMPLETE];
}

static const char *css_of(uint32_t pass, uint32_t fail, uint32_t blocked)
{
    return fail > 0      ? "worse"
           : blocked > 0 ? "open"
           : pass > 0    ? "better"
                         : "none";
}

static void cell(const struct sheet *s, const char *tag, uint32_t pass,
                 uint32_t fail, uint32_t blocked)
{
    fprintf(s->f, "<%s class=\"cell %s\">", tag, css_of(pass, fail, blocked));
    if (pass + fail + blocked == 0) {
        fputs("&#8211;", s->f);
    } else if (fail + blocked == 0) {
        fprintf(s->f, "%u", pass);
    } else {
        fprintf(s->f, "%u of %u", pass, pass + fail + blocked);
    }
    fprintf(s->f, "</%s>", tag);
}

/* ---- Implementations --------------------------------------------------- */

static void implementation(const struct sheet *s, uint32_t i)
{
    const struct submission_about *a = &s->entry[i].s->about;
    const struct judge_result *r = s->entry[i].r;

    fputs("<tr><td class=\"wide\">", s->f);
    page_escape(s->f, a->name);
    fputs("</td><td data-l=\"release\">", s->f);
    page_escape(s->f, a->release);
    fprintf(s->f, "</td><td data-l=\"cases\" class=\"n\">%u%s</td>",
            r->executed, s->entry[i].s->whole ? "" : " (a selection)");
    fprintf(s->f,
            "<td data-l=\"pass\" class=\"n\">%u</td><td data-l=\"fail\" "
            "class=\"n %s\">%u</td><td data-l=\"blocked\" class=\"n\">%u"
            "</td>",
            r->count[JUDGE_PASS], failures(r->count) > 0 ? "worse" : "",
            failures(r->count), r->count[JUDGE_BLOCKED]);
    fprintf(s->f, "<td><span class=\"tag %s\">%s</span>",
            r->verdict == JUDGE_CONFORMANT       ? "better"
            : r->verdict == JUDGE_NON_CONFORMANT ? "worse"
                                                 : "open",
            judge_verdict_name(r->verdict));
    if (r->verdict == JUDGE_UNDECIDED) {
        fputs("<br><span class=\"dim\">", s->f);
        page_escape(s->f, r->reason);
        fputs("</span>", s->f);
    }
    fputs("</td></tr>\n", s->f);
}

static void how(const struct sheet *s, uint32_t i)
{
    const struct submission_about *a = &s->entry[i].s->about;

    fputs("<dt>", s->f);
    page_escape(s->f, a->column);
    fputs("</dt><dd>", s->f);
    page_escape(s->f, a->hardware);
    for (uint32_t k = 0; k < a->n_software; k++) {
        fputs(k == 0 ? "; " : ", ", s->f);
        page_escape(s->f, a->software[k]);
    }
    fputs("; ", s->f);
    page_escape(s->f, a->made);
    fputs(": <code>", s->f);
    page_escape(s->f, a->command);
    fputs("</code> ", s->f);
    page_escape(s->f, a->notes);
    fputs("</dd>\n", s->f);
}

static void implementations(const struct sheet *s)
{
    fputs("<div class=\"scroll\"><table class=\"changes\"><thead><tr>"
          "<th>implementation</th><th>release</th><th class=\"n\">cases"
          "</th><th class=\"n\">pass</th><th class=\"n\">fail</th>"
          "<th class=\"n\">blocked</th><th>verdict</th></tr></thead>"
          "<tbody>\n",
          s->f);
    for (uint32_t i = 0; i < s->n; i++) {
        implementation(s, i);
    }
    fputs("</tbody></table></div>\n<details class=\"how\"><summary>How "
          "each was run</summary><dl>\n",
          s->f);
    for (uint32_t i = 0; i < s->n; i++) {
        how(s, i);
    }
    fputs("</dl></details>\n", s->f);
}

/* ---- Levels ------------------------------------------------------------ */

static void column_name(const struct sheet *s, uint32_t i)
{
    page_escape(s->f, s->entry[i].s->about.column);
    fputs("<br><span class=\"dim\">", s->f);
    page_escape(s->f, s->entry[i].s->about.release);
    fputs("</span>", s->f);
}

static void levels(const struct sheet *s)
{
    fputs("<h2>By level</h2>\n<p class=\"dim\">Of what a MUST asks: "
          "how much passes.</p>\n<div class=\"scroll\"><table "
          "class=\"matrix\"><thead><tr><th>level</th>",
          s->f);
    for (uint32_t i = 0; i < s->n; i++) {
        fputs("<th>", s->f);
        column_name(s, i);
        fputs("</th>", s->f);
    }
    fputs("</tr></thead><tbody>\n", s->f);
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        fprintf(s->f, "<tr><th scope=\"row\">%u %s</th>", l,
                requirement_level_name(l));
        for (uint32_t i = 0; i < s->n; i++) {
            const uint32_t *n = s->entry[i].r->level[l].count;

            cell(s, "td", n[JUDGE_PASS], failures(n), n[JUDGE_BLOCKED]);
        }
        fputs("</tr>\n", s->f);
    }
    fputs("</tbody></table></div>\n", s->f);
}

/* ---- Requirements ------------------------------------------------------ */

/* What fails of a requirement in one implementation. */
static void why(const struct sheet *s, uint32_t i, const char *id)
{
    const struct explanations *x = s->entry[i].x;

    for (uint32_t k = 0; k < x->n; k++) {
        if (strcmp(x->of[k].requirement, id) != 0) {
            continue;
        }
        fputs("<dt>", s->f);
        page_escape(s->f, s->entry[i].s->about.column);
        fprintf(s->f,
                "</dt><dd><span class=\"tag open\">%s</span> %u: "
                "<code>",
                explanation_whose_text(x->of[k].whose), x->of[k].n);
        page_escape(s->f, x->of[k].cases);
        fputs("</code><br>", s->f);
        page_escape(s->f, x->of[k].why);
        fputs("</dd>\n", s->f);
    }
}

static bool is_asked(const struct sheet *s, const char *id, bool *fails)
{
    bool any = false;

    *fails = false;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct results_cell c = results_cell(s->entry[i].r, id);

        any = any || c.pass + c.fail + c.blocked > 0;
        *fails = *fails || c.fail > 0;
    }
    return any;
}

/* Words by which a search finds a requirement: which implementations fail it,
 * and whose fault that is. */
static void words(const struct sheet *s, const struct requirement *q)
{
    fprintf(s->f, "%s %s", q->id, requirement_level_name(q->level));
    for (uint32_t i = 0; i < s->n; i++) {
        const struct explanations *x = s->entry[i].x;
        bool named = false;

        for (uint32_t k = 0; k < x->n; k++) {
            if (strcmp(x->of[k].requirement, q->id) == 0) {
                fprintf(s->f, " %s", explanation_whose_name(x->of[k].whose));
                if (!named) {
                    fputc(' ', s->f);
                    page_escape(s->f, s->entry[i].s->about.column);
                }
                named = true;
            }
        }
    }
}

static void requirement(const struct sheet *s, const struct requirement *q,
                        bool fails)
{
    fputs("<details class=\"case\" data-name=\"", s->f);
    words(s, q);
    fprintf(s->f,
            "\" id=\"r-%s\"%s><summary><span class=\"name\">"
            "<code>%s</code></span>",
            q->id, fails ? " data-changed" : "", q->id);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct results_cell c = results_cell(s->entry[i].r, q->id);

        fputs("<span class=\"of\"><span class=\"dim\">", s->f);
        page_escape(s->f, s->entry[i].s->about.column);
        fputs("</span> ", s->f);
        cell(s, "span", c.pass, c.fail, c.blocked);
        fputs("</span>", s->f);
    }
    fprintf(s->f, "</summary><div class=\"body\"><p>%s, level %s: ",
            q->must != 0 ? "MUST" : "SHOULD", requirement_level_name(q->level));
    page_escape(s->f, q->text);
    fputs("</p>\n<dl class=\"why\">\n", s->f);
    for (uint32_t i = 0; i < s->n; i++) {
        why(s, i, q->id);
    }
    fputs("</dl></div></details>\n", s->f);
}

static void requirements(const struct sheet *s)
{
    const struct judge_result *r = s->entry[0].r;
    uint32_t n = 0;
    bool fails;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        n += is_asked(s, r->requirement[q]->id, &fails) ? 1 : 0;
    }
    fputs("<h2>By requirement</h2>\n<p class=\"dim\">Cases that pass, of "
          "those that were judged; what fails says whose it is.</p>\n",
          s->f);
    page_put_tools(s->f, "words of a requirement, an implementation, theirs",
                   "failures only", n);
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        for (uint32_t q = 0; q < r->n_requirements; q++) {
            if (r->requirement[q]->level == l &&
                is_asked(s, r->requirement[q]->id, &fails)) {
                requirement(s, r->requirement[q], fails);
            }
        }
    }
}

int results_page(const struct results_entry *entry, uint32_t n, FILE *out)
{
    const struct sheet s = {out, entry, n};

    page_begin(out);
    fputs("fsdp-cts: implementations and requirements", out);
    page_begin_body(out);
    fputs("<h1>Implementations and requirements</h1>\n<p "
          "class=\"dim\">Each was judged again when this was made, by "
          "the records that it came with.</p>\n",
          out);
    implementations(&s);
    levels(&s);
    requirements(&s);
    page_end(out);
    return ferror(out) == 0 ? FSDP_OK : FSDP_ERR_IO;
}
