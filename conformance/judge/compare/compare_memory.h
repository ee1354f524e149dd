/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_memory.h - what requirements on memory share: peaks against those
 * that the oracle expects, what is live at rest, and the trade of memory for
 * all-gathers.
 */
#ifndef FSDP_CTS_COMPARE_MEMORY_H
#define FSDP_CTS_COMPARE_MEMORY_H

#include "judge/compare/compare.h"

/* Peaks that have a closed form. */
enum compare_peaks {
    COMPARE_PEAK_UNSHARDED = 0,  /* unsharded parameters alone */
    COMPARE_PEAK_PARAMETERS = 1, /* sharded and not */
    COMPARE_PEAK_GRADIENTS = 2,  /* unsharded gradients alone */
    COMPARE_PEAK_TOTAL = 3,      /* all kinds but activations */
    COMPARE_N_PEAKS = 4,
};

/* What findings call it. */
const char *compare_peak_stage(uint32_t peak);
uint64_t compare_peak_recorded(const struct record_memory *m, uint32_t peak);
uint64_t compare_peak_expected(const struct expect *e, uint32_t peak);

/* Whether rank k's peak is the expected one, to the byte. And the least damage
 * to that: one more on the last rank. */
bool compare_peak(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t peak, struct finding *f);
bool compare_spoil_peak(const struct expect *e, struct record *r,
                        uint32_t peak);

/* "parameter shard", "staging": of enum fsdp_kind. */
const char *compare_kind_of_bytes(uint32_t kind);

/* Whether the live bytes of each kind are those at rest. Activations are the
 * model's, and another requirement's. `at` is the place; its stage
 * becomes the kind, and without a step it is that after `shard`. */
bool compare_rest(const struct expect *e, const struct record_rest *got,
                  struct finding at, struct finding *f);

/* Whether rank k has fewer unsharded bytes at once, and makes more all-gathers
 * in a step, than in the record of the case that `change` makes of this one;
 * `other` says what that is, "with one unit". */
bool compare_trade_off(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, void (*change)(struct run_case *c),
                       const char *other, struct finding *f);
bool compare_spoil_trade_off(const struct expect *e, struct record *r,
                             void (*change)(struct run_case *c));

#endif
