/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_testing.h - models for tests of the judge, built by hand from short
 * texts, and the oracle's collectives as a text that a person can check.
 * Test only.
 */
#ifndef FSDP_CTS_EXPECT_TESTING_H
#define FSDP_CTS_EXPECT_TESTING_H

#include "judge/oracle/expect.h"

enum {
    TESTING_MODULES = 8,
    TESTING_PARAMETERS = 8,
    TESTING_POINTS = 64,
    TESTING_TEXT = 512
};

struct testing_model {
    struct fsdp_model model;
    struct fsdp_units units;
    const char *name[TESTING_MODULES];
    uint32_t unit_of_module[TESTING_MODULES];
    int32_t parent[TESTING_MODULES];
    uint32_t parameter_module[TESTING_PARAMETERS];
    uint64_t shape[TESTING_PARAMETERS][FSDP_MAX_DIMS];
    uint32_t n_dims[TESTING_PARAMETERS], dtype[TESTING_PARAMETERS];
    uint32_t parameter_flags[TESTING_PARAMETERS];
    int32_t alias[TESTING_PARAMETERS];
    struct fsdp_sequence sequence[2];
    const struct fsdp_sequence *sequences[2];
    uint32_t point[2][TESTING_POINTS], module[2][TESTING_POINTS];
};

/*
 * units: one character for each module, its unit or '-'. parameters:
 * "module:numel" for each, separated by spaces. train, eval: points as "F1 f1
 * B1 b1 R1 r1" (forward, backward, recompute; upper case PRE, lower case POST;
 * module).
 */
void testing_model(struct testing_model *t, const char *units,
                   const char *parameters, const char *train, const char *eval);

/* The multi-layer perceptron of ref/miniature.c: leaves 1..4 below module 0,
 * 512, 1024, 512 and 128 elements, a unit each. */
void testing_mlp(struct testing_model *t);

/* A case of K ranks in R replicas: one microbatch a step, SGD, fold RANK. */
struct run_case testing_case(uint32_t strategy, uint32_t ranks,
                             uint32_t replicas);

/* A sequence as "A0 R0 L0": all-gather, reduce-scatter or all-reduce, and the
 * unit. "?" is a collective whose other fields are not as they should be. */
const char *testing_sequence(const struct expect *e,
                             const struct record_sequence *s,
                             char text[TESTING_TEXT]);

/* What must be computed for a case; peaks are in elements. end NULL: there is
 * nothing behind the last step. `resting` and `full` are of parameters. */
struct testing_wanted {
    const char *step, *end;
    uint64_t resting, full, grads, staging, engine;
};
void testing_check(const struct testing_model *t, const struct run_case *c,
                   const struct testing_wanted *want);

/* What is expected of a case, and two records of it, for tests of functions
 * that compare them. The setup of a test opens a fixture, gives it a model and
 * a case, and calls fixture_make, which makes the rest; the ranks of the
 * records are still empty. */
struct fixture {
    struct testing_model t;
    struct run_case c;
    struct expect e;
    struct record r, baseline;
};
struct fixture *fixture_open(void **state);
void fixture_make(struct fixture *x);
int fixture_close(void **state);
#define FIXTURE_TEST(name, setup) \
    cmocka_unit_test_setup_teardown(name, setup, fixture_close)

struct finding;
/* Whether the record r is as the requirement with this id asks. */
bool fixture_holds(const struct fixture *x, const char *id, struct finding *f);

#endif
