/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_testing.h - a run made up for tests of the judge: two cases of two
 * ranks, their records in memory, and a handful of requirements that are easy
 * to satisfy and to break. Test only.
 */
#ifndef FSDP_CTS_JUDGE_TESTING_H
#define FSDP_CTS_JUDGE_TESTING_H

#include "judge/judge.h"
#include "judge/oracle/expect_testing.h"

enum {
    TESTING_CASES = 2,
    TESTING_STEPS = 3,
    /* this loss is found at an element that p1 does not have */
    TESTING_BEYOND = 3,
    /* Indices of the table below. */
    TESTING_SURVIVES = 0, /* MUST */
    TESTING_LOSS,         /* MUST; needs survives: the first loss is 1 */
    TESTING_FINITE,       /* MUST; needs loss: all losses are finite */
    TESTING_RING,         /* MUST; needs finite: applies under the ring fold */
    TESTING_LAST,         /* MUST; needs ring: the last loss is 1 */
    TESTING_PEAK,         /* SHOULD; claim strict-memory */
    TESTING_N
};

struct testing_run {
    struct judge_input in;
    struct testing_model model;
    struct run_case c[TESTING_CASES];
    struct record record[TESTING_CASES], baseline;
    bool missing[TESTING_CASES], malformed[TESTING_CASES];
    bool no_baseline, no_model;
    uint32_t n_next;
};

/* A run in which all is well: judged as it stands, the verdict is
 * CONFORMANT. */
void testing_run_make(struct testing_run *run);
void testing_run_release(struct testing_run *run);

/* Makes such a run for a test; it is *state. */
#define TESTING_RUN(test) \
    cmocka_unit_test_setup_teardown(test, testing_set_up, testing_tear_down)
int testing_set_up(void **state);
int testing_tear_down(void **state);
/* Judges the run; the caller releases the result. testing_check_item checks
 * what the result says of a requirement in a case. */
struct judge_result testing_judged(const struct testing_run *run);
void testing_check_item(const struct judge_result *r, uint32_t c, uint32_t q,
                        uint32_t outcome, uint32_t blocked_by);

/* The table of requirements, NULL-ended; a test may change its own copy. */
extern const struct requirement *const testing_requirements[TESTING_N + 1];

#endif
