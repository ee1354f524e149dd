/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_memory.h - what requirements on memory share: comparing peaks, and
 * what is live at rest, with the oracle's; and the trade of memory for
 * all-gathers.
 */
#ifndef FSDP_CTS_COMPARE_MEMORY_H
#define FSDP_CTS_COMPARE_MEMORY_H

#include "judge/compare/compare.h"

/* Peaks that have a closed form. */
enum compare_peaks {
    COMPARE_PEAK_UNSHARDED = 0,  /* unsharded parameters alone */
    COMPARE_PEAK_PARAMETERS = 1, /* parameters, sharded and unsharded */
    COMPARE_PEAK_GRADIENTS = 2,  /* unsharded gradients alone */
    COMPARE_PEAK_TOTAL = 3,      /* all kinds but activations */
    COMPARE_N_PEAKS = 4,
};

/* The name of the peak in findings. */
const char *compare_peak_stage(uint32_t peak);
uint64_t compare_peak_recorded(const struct record_memory *m, uint32_t peak);
uint64_t compare_peak_expected(const struct expect *e, uint32_t peak);

/* Whether rank k's peak is the expected one, to the byte. compare_spoil_peak
 * does the least damage to that: it adds 1 to the last rank's peak. */
bool compare_peak(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t peak, struct finding *f);
bool compare_spoil_peak(const struct expect *e, struct record *r,
                        uint32_t peak);

/* The name of an enum fsdp_kind: "parameter shard", "staging". */
const char *compare_kind_of_bytes(uint32_t kind);

/* Whether the live bytes of each kind are those that rest. Activations are not
 * looked at: they are the model's, and another requirement's. The finding is at
 * the place `at`, with the kind as its stage; `at` without a step means behind
 * `shard`. */
bool compare_rest(const struct expect *e, const struct record_rest *got,
                  struct finding at, struct finding *f);

/* Whether rank k has fewer unsharded bytes at once, and makes more all-gathers
 * in a step, than in the record of the case that `change` makes of this one;
 * `other` is how a finding names that case: "with one unit". */
bool compare_trade_off(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, void (*change)(struct run_case *c),
                       const char *other, struct finding *f);
bool compare_spoil_trade_off(const struct expect *e, struct record *r,
                             void (*change)(struct run_case *c));

#endif
