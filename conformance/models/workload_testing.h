/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_testing.h - runs a workload without an engine, for tests: weights
 * and gradients are plain arrays, the device is the reference one.
 */
#ifndef FSDP_CTS_WORKLOAD_TESTING_H
#define FSDP_CTS_WORKLOAD_TESTING_H

#include "workload.h"

/* The reference device (ref/device.h), which these tests are linked with. It is
 * declared here, as nothing in this folder includes a file of an engine. */
int ref_device_open(struct fsdp_device *out);

struct trial {
    struct workload_model *model;
    struct fsdp_device device;
    struct fsdp_error error;
    struct workload_run *run;
    float **weight;
    float **grad;
    uint64_t live_bytes; /* of activations; peak_bytes: the most at once */
    uint64_t peak_bytes;
    uint64_t live[512]; /* bytes of each live range */
    void *live_at[512];
    uint32_t allocations;
    uint32_t fail_after; /* allocations; 0: none fails */
    uint32_t tried;
};

/* Describes and opens a workload; returns what opening returned. */
int trial_try(struct trial *t, const char *workload,
              const struct workload_config *config, uint32_t fail_after);
/* Describes, opens, and fills in the initial weights; fails the test if that
 * fails. */
void trial_open(struct trial *t, const char *workload,
                const struct workload_config *config);
void trial_close(struct trial *t);

/* One pass of a sequence; gradients are NaN before it. Returns the loss. */
float trial_pass(struct trial *t, uint32_t sequence, uint32_t rank,
                 uint32_t step, uint32_t microbatch);

/* The suite's text; the test fails if it is not to be found. */
const char *trial_text(uint64_t *bytes);

#endif
