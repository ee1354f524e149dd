/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_page.h - the page of `report --html`: finds the records that it draws.
 */
#ifndef FSDP_CTS_REPORT_PAGE_H
#define FSDP_CTS_REPORT_PAGE_H

#include "cli/verdict/evaluate.h"
#include "judge/report/report_read.h"

/* Writes a->html and a->pictures, where they are given, from these engines'
 * reports, with the records in a->records, and compared with the report
 * a->against, if those are given. Returns an exit code, after a line on stderr
 * if it is not 0: OUTPUT: a file could not be written; INCOMPLETE: no memory,
 * or it could not be made otherwise; BAD_DATA: there are no records, or there
 * is no earlier report, of some engine. */
int report_page_write(const struct arguments *a,
                      const struct evaluate_result *of, uint32_t n);

#endif
