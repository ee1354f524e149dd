/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_rank.h - one rank of a world whose other ranks do not exist: an engine
 * plays a case for it, with a communicator that sends nothing and a device that
 * computes nothing. Its calls are recorded as always; tensors have no values.
 */
#ifndef FSDP_CTS_COUNT_RANK_H
#define FSDP_CTS_COUNT_RANK_H

#include "run/play/drive.h"

/* Wraps d->engine and d->device_engine, so that their device computes nothing.
 * Fills *out, which is to be released whatever is returned: what the rank ended
 * with, and *error. One at a time: a process has one such device. */
int count_rank(const struct drive *d, uint32_t rank, struct record_rank *out,
               struct fsdp_error *error);

#endif
