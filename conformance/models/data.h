/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - the kinds of data that a workload is trained on, and what it may
 * leave alone.
 */
#ifndef FSDP_CTS_DATA_H
#define FSDP_CTS_DATA_H

enum workload_data {
    WORKLOAD_NATURAL = 0,    /* order matters, and is specified */
    WORKLOAD_EXACT = 1,      /* every order of summation gives the same bits */
    WORKLOAD_REPLICATED = 2, /* every rank has the same batch */
};

/* Of a parameter that a pass leaves alone. The bits below it: no gradient of
 * it is asked for in microbatch 0, 1, ... */
enum {
    WORKLOAD_UNSEEN = 0x80u /* no forward asks for it */
};

#endif
