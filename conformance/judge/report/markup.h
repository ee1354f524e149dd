/* SPDX-License-Identifier: Apache-2.0 */
/*
 * markup.h - text in XML and HTML, between tags and in quoted attributes: five
 * characters have a meaning there.
 */
#ifndef FSDP_CTS_MARKUP_H
#define FSDP_CTS_MARKUP_H

#include <stdio.h>

/* The character, or the entity that stands for it. */
static inline void markup_put(FILE *f, char c)
{
    switch (c) {
    case '&':
        fputs("&amp;", f);
        break;
    case '<':
        fputs("&lt;", f);
        break;
    case '>':
        fputs("&gt;", f);
        break;
    case '"':
        fputs("&quot;", f);
        break;
    case '\'':
        fputs("&#39;", f); /* old HTML has no &apos; */
        break;
    default:
        fputc(c, f);
        break;
    }
}

#endif
