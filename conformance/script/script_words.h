/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_words.h - the words of a script's text: one table for each enum,
 * shared by the reader and the writer.
 */
#ifndef FSDP_CTS_SCRIPT_WORDS_H
#define FSDP_CTS_SCRIPT_WORDS_H

#include "script/script.h"

extern const char *const script_verb_words[SCRIPT_N_VERBS];
extern const char *const script_sync_words[3];   /* of enum script_sync */
extern const char *const script_ending_words[3]; /* of enum script_ending */
extern const char *const script_form_words[3];   /* of enum fsdp_save_form */
/* Words of enum fsdp_knob. */
enum {
    SCRIPT_N_KNOBS = 6
};
extern const char *const script_knob_words[SCRIPT_N_KNOBS];
/* Words of the bits of enum fsdp_save_part. */
enum {
    SCRIPT_N_PARTS = 4
};
extern const char *const script_part_words[SCRIPT_N_PARTS];
/* Words of enum script_source; a number has none and stands for itself. */
extern const char *const script_source_words[SCRIPT_N_SOURCES];
/* Words of enum script_edit_kind; those from ZERO on stand behind `set`. */
extern const char *const script_edit_words[SCRIPT_N_EDITS];

#endif
