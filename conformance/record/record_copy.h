/* SPDX-License-Identifier: Apache-2.0 */
/* record_copy.h - a record of one's own, to spoil. */
#ifndef FSDP_CTS_RECORD_COPY_H
#define FSDP_CTS_RECORD_COPY_H

#include "record/record.h"

/* Copies everything; `record_release` frees it. NOMEM leaves *out empty. */
int record_copy(const struct record *from, struct record *out);

#endif
