/* SPDX-License-Identifier: Apache-2.0 */
/* page_frame.c - see page_frame.h. */
#include "judge/draw/page_frame.h"
#include "judge/draw/page_assets.h"

void page_begin(FILE *f)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
        "\n<meta name=\"viewport\" content=\"width=device-width,"
        "initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        "'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        "<title>",
        f);
}

void page_begin_body(FILE *f)
{
    fprintf(f,
            "</title>\n<style>\n%s%s\n</style>\n</head>\n<body>\n"
            "<main>\n",
            fsdp_cts_plot_css, fsdp_cts_page_css);
}

void page_put_tools(FILE *f, const char *words, const char *changed,
                    unsigned int n)
{
    fprintf(f,
            "<div class=\"tools\"><input id=\"q\" type=\"search\" "
            "placeholder=\"%s\" aria-label=\"show those with these "
            "words\"><button id=\"changed\" aria-pressed=\"false\">%s"
            "</button><button id=\"open\" aria-pressed=\"false\">open all"
            "</button><span id=\"shown\" class=\"dim\" role=\"status\">%u"
            "</span></div>\n",
            words, changed, n);
}

void page_end(FILE *f)
{
    fprintf(f, "</main>\n<script>%s</script>\n</body>\n</html>\n",
            fsdp_cts_page_js);
}
