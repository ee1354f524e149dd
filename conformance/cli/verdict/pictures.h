/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pictures.h - the drawings of `run --pictures`, of the record of one case.
 */
#ifndef FSDP_CTS_PICTURES_H
#define FSDP_CTS_PICTURES_H

#include "cases/case.h"
#include "models/text.h"

/* Writes step.svg and memory.svg into a folder, which is made if it is missing,
 * from what the case left below `records`. Each is written as file.partial and
 * renamed. IO: says which file; INVALID: the record has no step to draw; what
 * reading the record returns. */
int pictures_write(const char *records, const struct run_case *c,
                   const struct text *text, const char *folder,
                   struct fsdp_error *error);

#endif
