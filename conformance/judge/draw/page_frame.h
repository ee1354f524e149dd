/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_frame.h - the beginning and the end of every page. Style and script are
 * in the page: nothing may be fetched.
 */
#ifndef FSDP_CTS_PAGE_FRAME_H
#define FSDP_CTS_PAGE_FRAME_H

#include <stdio.h>

/* Writes the page up to its title, whose text the caller writes; then from
 * there up to the heading. */
void page_begin(FILE *f);
void page_begin_body(FILE *f);
/* A field for words to search, and buttons that show the cases that matter, or
 * all n. */
void page_put_tools(FILE *f, const char *words, const char *changed,
                    unsigned int n);
void page_end(FILE *f);

#endif
