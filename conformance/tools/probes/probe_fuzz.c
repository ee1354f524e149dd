/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_fuzz.c - the entry of a fuzzer (libFuzzer's, or any with that
 * interface) to the reader of probes' logs, and to what is done with one.
 */
#include "checkpoint/fuzzing.h"
#include "tools/probes/probe.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct probe_verdict verdict;
    static struct probe_expect expect = {.n_units = 2,
                                         .unit = {10, 7},
                                         .replicas = 1,
                                         .dtype = PROBE_F32,
                                         .reduce_dtype = PROBE_F32,
                                         .reshard = true,
                                         .shards = true,
                                         .sync = "s",
                                         .steps = 1};
    struct fsdp_error error = {0};
    struct probe_log_file log;
    struct probe_counts counts;
    int status =
        probe_log_parse((const char *)data, bytes, "log", &log, &error);

    if (status != FSDP_OK && error.message[0] == '\0') {
        abort(); /* a refusal says why */
    }
    if (status == FSDP_OK) {
        struct probe_logs logs = {.n = 1, .log = &log};
        uint64_t calls = 0;
        if (probe_count_calls(&log, 0, log.n_calls, &counts) == FSDP_OK) {
            for (uint32_t i = 0; i < counts.n; i++) {
                calls += counts.count[i].calls;
            }
            if (calls < log.n_calls) {
                abort();
            }
        }
        probe_counts_release(&counts);
        for (int in_steps = 1; in_steps >= 0; in_steps--) {
            expect.in_steps = in_steps == 1;
            if (probe_judge(&logs, &expect, 1000, &verdict) != FSDP_OK) {
                abort();
            }
        }
        if (!probe_source_is_memory(log.source) && !log.ended &&
            !verdict.incomplete) {
            abort(); /* a log without its end is never judged whole */
        }
    }
    probe_log_release(&log);
    return 0;
}
