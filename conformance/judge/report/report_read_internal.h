/* SPDX-License-Identifier: Apache-2.0 */
/* report_read_internal.h - shared by report_read*.c, and by nobody else. */
#ifndef FSDP_CTS_REPORT_READ_INTERNAL_H
#define FSDP_CTS_REPORT_READ_INTERNAL_H

#include "judge/report/report_internal.h"
#include "judge/report/report_read.h"
#include "record/record_internal.h"

/* A report on its way in. */
struct report_reader {
    struct record_json j;
    uint64_t line;
    struct report_part_kept *part;
    uint32_t room; /* for cases */
    uint32_t next; /* the requirement behind that of the item before */
    bool open;     /* between a header and its footer */
};

/* Refuses the line; returns false. */
__attribute__((format(printf, 2, 3))) bool
report_reader_refuse(struct report_reader *p, const char *format, ...);
/* One of the names that an outcome has. */
bool report_reader_outcome(struct report_reader *p, const json_t *line,
                           uint32_t *out);
/* The requirement with this id; n_requirements: refused. */
uint32_t report_reader_requirement(struct report_reader *p, const json_t *id);
/* A string that may be missing, then "". */
bool report_reader_text(struct report_reader *p, const json_t *line,
                        const char *key, char *out, size_t room);
/* A number that is there. */
bool report_reader_u64(struct report_reader *p, const json_t *line,
                       const char *key, uint64_t *out);
bool report_reader_u32(struct report_reader *p, const json_t *line,
                       const char *key, uint32_t *out);

/* report_read_item.c: a line of the type "item". */
bool report_reader_item(struct report_reader *p, const json_t *line);
/* Such a line of a check that passed, as report_jsonl.c writes it: nearly all
 * of a report, which is read in a quarter of the time when these are not read
 * as JSON. False: it is no such line, or has to be refused; nothing is taken.
 */
bool report_reader_passed(struct report_reader *p, const char *line, size_t n);

/* report_read_figures.c: a line of the type "figures", which loses its type and
 * its case. */
bool report_reader_figures(struct report_reader *p, json_t *line);

/* report_read_footer.c: a line of the type "footer". Refuses totals and a
 * verdict that do not follow from the items before it. */
bool report_reader_footer(struct report_reader *p, const json_t *line);

#endif
