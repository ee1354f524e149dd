/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strict.h - JSON from outside, which is read by tables of fields
 * (record_fields.h) as strictly as records are.
 */
#ifndef FSDP_CTS_STRICT_H
#define FSDP_CTS_STRICT_H

#include "record/record_internal.h"

/* The root of a text, or of a line of JSON Lines; NULL: refused. */
json_t *strict_load(struct record_json *j, const char *text, size_t bytes);

#endif
