/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_names.c - the names of numbers in records of a user's own model, and the
 * elements of a tensor whose values are kept.
 */
#include "tools/check/own_record.h"

#include <stddef.h>

/* ---- Names ---- */

#define NAMED(function, ...)                                        \
    const char *function(uint32_t i)                                \
    {                                                               \
        static const char *const name[] = {__VA_ARGS__};            \
        return i < sizeof(name) / sizeof(name[0]) ? name[i] : NULL; \
    }
NAMED(own_role_name, "rank", "unsharded")
NAMED(own_how_name, "returned", "raised", "hung", "stopped", "signalled",
      "exited")
NAMED(own_dtype_name, "f32", "bf16", "f16", "f64", "i64", "i32", "u8", "bool",
      "none")
NAMED(own_event_name, "forward", "forward-end", "backward", "all-gather",
      "reduce-scatter", "all-reduce", "end", "backward-end")

uint32_t own_dtype_bytes(uint32_t dtype)
{
    static const uint32_t bytes[] = {4, 2, 2, 8, 8, 4, 1, 1, 0};

    return dtype <= OWN_NO_DTYPE ? bytes[dtype] : 0;
}

/* ---- Places ---- */

uint32_t own_places(uint64_t n)
{
    return n < OWN_SAMPLES ? (uint32_t)n : OWN_SAMPLES;
}

uint64_t own_place(uint64_t n, uint32_t i)
{
    return n <= OWN_SAMPLES ? i : i * (n - 1) / (OWN_SAMPLES - 1);
}

uint32_t own_places_before(uint64_t n, uint64_t at)
{
    uint32_t i = 0;

    while (i < own_places(n) && own_place(n, i) < at) {
        i++;
    }
    return i;
}
