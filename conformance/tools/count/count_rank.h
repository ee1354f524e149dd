/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_rank.h - one rank of a world that is not there: an engine plays a case
 * for it, by a communicator that sends nothing and a device that computes
 * nothing. What it asks for is noted as ever; tensors have no values.
 */
#ifndef FSDP_CTS_COUNT_RANK_H
#define FSDP_CTS_COUNT_RANK_H

#include "run/play/drive.h"

/* d->engine and d->device_engine are put aside for what computes nothing. Fills
 * *out, which is to be released whatever is returned: what the rank ended
 * with, and *error. One at a time: a process has one such device. */
int count_rank(const struct drive *d, uint32_t rank, struct record_rank *out,
               struct fsdp_error *error);

#endif
