/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fuzz.c - the entry of a fuzzer (libFuzzer's, or any with that
 * interface) to the parsers of a record's JSON. The first byte says which:
 * case.json, or a rank's file in a case of that scenario.
 */
#include "record/record_internal.h"

#include <stdlib.h>
#include <string.h>

/* libFuzzer names it. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void fuzz_case(const char *text, size_t bytes)
{
    struct fsdp_error error = {0};
    struct record r;

    if (record_parse_case(text, bytes, "case.json", &r, &error) == FSDP_OK &&
        (case_check(&r.c) != NULL || r.n_ranks != r.c.ranks)) {
        abort();
    }
    record_release(&r);
}

static void fuzz_rank(uint32_t scenario, const char *text, size_t bytes)
{
    struct fsdp_error error = {0};
    struct record_rank r;
    struct run_case c;
    uint32_t n_tensors;
    int status;

    memset(&c, 0, sizeof(c));
    memset(&r, 0, sizeof(r));
    c.scenario = scenario;
    c.ranks = 2;
    c.microbatches = 2;
    c.steps = 3;
    status = record_parse_rank(text, bytes, "rank-0.json", &c, 0, &r,
                               &n_tensors, &error);
    if (status == FSDP_OK &&
        (r.n_steps > c.steps || r.shard_sequence >= r.n_sequences ||
         r.end_sequence >= r.n_sequences ||
         (r.status == FSDP_OK && case_trains(&c) && r.n_losses != 6))) {
        abort();
    }
    if (status != FSDP_OK && error.message[0] == '\0') {
        abort(); /* a refusal says why */
    }
    record_rank_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    if (data[0] % 9 == 0) {
        fuzz_case((const char *)data + 1, bytes - 1);
    } else {
        fuzz_rank(data[0] % 9 - 1, (const char *)data + 1, bytes - 1);
    }
    return 0;
}
