/* SPDX-License-Identifier: Apache-2.0 */
/* report_read_internal.h - what the files report_read*.c share. */
#ifndef FSDP_CTS_REPORT_READ_INTERNAL_H
#define FSDP_CTS_REPORT_READ_INTERNAL_H

#include "judge/report/report_internal.h"
#include "judge/report/report_read.h"
#include "record/record_internal.h"

/* A report that is being read. */
struct report_reader {
    struct record_json j;
    uint64_t line;
    struct report_part_kept *part;
    uint32_t room; /* how many cases there is room for */
    /* the index of the requirement behind that of the last item */
    uint32_t next;
    bool open; /* a header was read, and not yet its footer */
};

/* Refuses the line; returns false. */
__attribute__((format(printf, 2, 3))) bool
report_reader_refuse(struct report_reader *p, const char *format, ...);
/* Reads the line's outcome, which must be one of the known names. */
bool report_reader_outcome(struct report_reader *p, const json_t *line,
                           uint32_t *out);
/* The index of the requirement with this id; n_requirements: refused. */
uint32_t report_reader_requirement(struct report_reader *p, const json_t *id);
/* Reads a string; it may be missing, and then is "". */
bool report_reader_text(struct report_reader *p, const json_t *line,
                        const char *key, char *out, size_t room);
/* Reads a number, which must be there. */
bool report_reader_u64(struct report_reader *p, const json_t *line,
                       const char *key, uint64_t *out);
bool report_reader_u32(struct report_reader *p, const json_t *line,
                       const char *key, uint32_t *out);

/* report_read_item.c: reads a line of the type "item". */
bool report_reader_item(struct report_reader *p, const json_t *line);
/* Reads such a line of a check that passed, if it stands exactly as
 * report_jsonl.c writes it. Nearly all of a report are such lines, and it is
 * read in a quarter of the time if they are not parsed as JSON. False: it is no
 * such line, or must be refused; nothing was taken. */
bool report_reader_passed(struct report_reader *p, const char *line, size_t n);

/* report_read_figures.c: reads a line of the type "figures", and removes type
 * and case from it. */
bool report_reader_figures(struct report_reader *p, json_t *line);

/* report_read_footer.c: reads a line of the type "footer". Refuses totals and a
 * verdict that do not follow from the items before it. */
bool report_reader_footer(struct report_reader *p, const json_t *line);

#endif
