/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_frame.h - what every page begins and ends with: nothing may be fetched,
 * and style and script are in it.
 */
#ifndef FSDP_CTS_PAGE_FRAME_H
#define FSDP_CTS_PAGE_FRAME_H

#include <stdio.h>

/* Up to the title, whose text follows; and from there to the heading. */
void page_begin(FILE *f);
void page_begin_body(FILE *f);
/* A field for words, and buttons for cases that matter and for all of n. */
void page_put_tools(FILE *f, const char *words, const char *changed,
                    unsigned int n);
void page_end(FILE *f);

#endif
