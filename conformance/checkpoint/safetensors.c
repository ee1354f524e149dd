/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.c - the dtypes of the format, the size of a tensor, and the
 * wording of a refusal: what the reader and the writer must agree on.
 */
#include "safetensors_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * The order is part of the format's reference: it is how a writer sorts.  It
 * grows with the alignment, so sorting downwards leaves no gap.
 */
static const struct {
    char name[12];
    unsigned bits;
} dtypes[] = {
    {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
    {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
    {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},
    {"I64", 64},    {"U64", 64},
};

int safetensors_dtype_rank(const char *dtype)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (strcmp(dtypes[i].name, dtype) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *safetensors_dtype_name(int rank)
{
    return dtypes[rank].name;
}

unsigned safetensors_dtype_bits(const char *dtype)
{
    const int rank = safetensors_dtype_rank(dtype);

    return rank < 0 ? 0 : dtypes[rank].bits;
}

const char *safetensors_size(int rank, uint32_t n_dims, const uint64_t *shape,
                             uint64_t *bytes)
{
    uint64_t elements = 1;
    uint64_t bits;
    bool empty = false;

    /*
     * A zero must not hide an overflow in the other extents: a consumer may
     * well multiply them, say for strides.
     */
    for (uint32_t i = 0; i < n_dims; i++) {
        if (shape[i] == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(elements, shape[i], &elements)) {
            return "the product of the shape overflows 64 bits";
        }
    }
    if (__builtin_mul_overflow(elements, dtypes[rank].bits, &bits)) {
        return "the bits of the shape overflow 64 bits";
    }
    if (empty) {
        bits = 0;
    }
    if (bits % 8 != 0) {
        return "the elements do not fill whole bytes";
    }
    *bytes = bits / 8;
    return NULL;
}

int safetensors_refuse(const struct safetensors_report *report, int status,
                       const char *format, ...)
{
    char *const why = report->why;
    const size_t room = report->why_bytes;
    va_list arguments;
    int used;

    if (room == 0) {
        return status;
    }
    used = snprintf(why, room, "%s: ", report->path);
    if (used >= 0 && (size_t)used < room) {
        va_start(arguments, format);
        (void)vsnprintf(why + used, room - (size_t)used, format, arguments);
        va_end(arguments);
    }
    /*
     * Names come from the file.  A line break or an escape sequence in one
     * would forge lines in a log, and a UTF-8 sequence may have been cut.
     */
    for (char *c = why; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return status;
}
