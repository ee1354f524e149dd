/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - the text that the gpt workload learns: the one that ships with the
 * suite (fixtures/text/), or a file of the user's.
 */
#ifndef FSDP_CTS_TEXT_H
#define FSDP_CTS_TEXT_H

#include <fsdp/status.h>

struct text {
    const char *bytes;
    uint64_t n;
    char *owned; /* what text_release frees; NULL: the built-in text */
};

/* path = NULL: the built-in text. IO: not readable; INVALID: too short to
 * learn from (says how many bytes are needed). */
int text_load(const char *path, struct text *out, struct fsdp_error *error);
void text_release(struct text *text);

#endif
