/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzzing.h - what every fuzzer has: its entry, and how it ends when something
 * must not be. For libFuzzer (ci/fuzz), or any with that interface.
 */
#ifndef FSDP_CTS_FUZZING_H
#define FSDP_CTS_FUZZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* libFuzzer names it. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Not assert(), which a release build would drop. */
static inline void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

#endif
