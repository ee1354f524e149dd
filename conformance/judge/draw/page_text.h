/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_text.h - words and numbers of pages. Text that comes from outside (a
 * history, a report, a record) must go through page_escape, because a case may
 * have any name.
 */
#ifndef FSDP_CTS_PAGE_TEXT_H
#define FSDP_CTS_PAGE_TEXT_H

#include <stdint.h>
#include <stdio.h>

enum {
    PAGE_NUMBER_BYTES = 48
};

/* Writes text between tags, or in a quoted attribute. Characters that cannot be
 * seen are named, as [U+202E]; bytes that are not UTF-8 become "?". */
void page_escape(FILE *f, const char *text);
/* The same, but a long name may be broken at its dots. */
void page_escape_name(FILE *f, const char *text);

/* "29.1 KiB", "512 B" */
const char *page_bytes(double bytes, char out[PAGE_NUMBER_BYTES]);
/* "12.3k" */
const char *page_number(double x, char out[PAGE_NUMBER_BYTES]);
/* "1 234 567": all digits, in groups */
const char *page_count(uint64_t x, char out[PAGE_NUMBER_BYTES]);
/* "2026-11-21" */
const char *page_date(int64_t seconds, char out[PAGE_NUMBER_BYTES]);
/* A coordinate with at most one decimal, as short as it can be. */
const char *page_at(double x, char out[PAGE_NUMBER_BYTES]);

#endif
