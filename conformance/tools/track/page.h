/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - a history as one HTML page that needs no network and no other
 * file: what changed, and for each case memory and speed over commits, and
 * memory over a step.
 */
#ifndef FSDP_CTS_PAGE_H
#define FSDP_CTS_PAGE_H

#include "tools/track/history.h"

#include <stdio.h>

/* run: the page says what changed in it; 0: in the newest. commit_url: what the
 * address of a commit's page begins with, the commit is behind it; NULL:
 * commits are no links. IO: a write failed. FORMAT, NOMEM, as track_judge. */
int page_write(struct history *h, int64_t run, const char *commit_url,
               FILE *out, struct fsdp_error *error);

#endif
