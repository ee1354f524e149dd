/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_page.h - the page of `report --html`: finds the records that it draws.
 */
#ifndef FSDP_CTS_REPORT_PAGE_H
#define FSDP_CTS_REPORT_PAGE_H

#include "cli/evaluate.h"

/* Writes a->html, of these engines' reports, with what is in a->records, if
 * that is given. An exit code, after a line on stderr where it is not 0:
 * INCOMPLETE, it could not be written; BAD_DATA, there are no records of some
 * engine. */
int report_page_write(const struct arguments *a,
                      const struct evaluate_result *of, uint32_t n);

#endif
