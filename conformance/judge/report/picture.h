/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture.h - two drawings of one recorded step, as SVG: what is gathered and
 * reduced when, and how many weights rank 0 holds meanwhile. All numbers and
 * places come from the record; the windows and the bound come from the oracle.
 */
#ifndef FSDP_CTS_PICTURE_H
#define FSDP_CTS_PICTURE_H

#include "judge/oracle/expect.h"

#include <stdio.h>

/* The columns are the calls of the step, in their order; the rows are the units
 * of the first two ranks. INVALID: the record lacks something of the step, and
 * error says what. Errors of the stream are the caller's to see. */
int picture_step(FILE *f, const struct expect *e, const struct record *r,
                 struct fsdp_error *error);

/* The same as a part of a page that has the style of the classes: an <svg
 * class="step"> without ground and title. */
int picture_step_inside(FILE *f, const struct expect *e, const struct record *r,
                        struct fsdp_error *error);

/* Shards and gathered units stacked up, below the bound and the size of the
 * whole model. The same errors. */
int picture_memory(FILE *f, const struct expect *e, const struct record *r,
                   struct fsdp_error *error);

#endif
