/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_fuzz.c - the entry of a fuzzer (libFuzzer's, or any with that interface)
 * to the reader of records of a user's own model, and to their judge. One text
 * is the record of both ranks and of the unsharded run.
 */
#include "checkpoint/fuzzing.h"
#include "tools/check/own_judge.h"

#include <stdlib.h>
#include <string.h>

static void judge(struct own_set *s)
{
    struct own_result result;

    if (own_judge(s, &result) != FSDP_OK) {
        abort();
    }
    if (result.verdict == OWN_CONFORMANT && result.count[OWN_FAIL] > 0) {
        abort();
    }
    for (uint32_t i = 0; i < own_n_requirements; i++) {
        if (result.item[i].outcome == OWN_FAIL &&
            result.item[i].finding.text[0] == '\0') {
            abort(); /* a failure says why */
        }
    }
    own_result_release(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fsdp_error error = {0};
    struct own_record one[3];
    int status = FSDP_OK;

    memset(one, 0, sizeof(one));
    for (int i = 0; i < 3 && status == FSDP_OK; i++) {
        status =
            own_parse((const char *)data, bytes, "record", &one[i], &error);
    }
    if (status != FSDP_OK && error.message[0] == '\0') {
        abort(); /* a refusal says why */
    }
    if (status == FSDP_OK && one[0].world == 2) {
        struct own_set s = {.unsharded = one[0], .world = 2, .rank = &one[1]};

        judge(&s);
    }
    for (int i = 0; i < 3; i++) {
        own_record_release(&one[i]);
    }
    return 0;
}
