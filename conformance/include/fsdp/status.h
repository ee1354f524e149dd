/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - what every function of the contract returns, and where the
 * detail of a failure goes.
 *
 * A function returns FSDP_OK (0) or a negative status. The numbers are
 * pinned: they travel in records. The sentence that says what is wrong, where
 * and what would be right goes into the rank's `struct fsdp_error`.
 */
#ifndef FSDP_STATUS_H
#define FSDP_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FSDP_STATUS_MAP(X)                                         \
    X(OK, 0, "ok")                                                 \
    X(ERR_INVALID, -1, "invalid argument or call out of sequence") \
    X(ERR_UNSUPPORTED, -2, "not claimed by this engine")           \
    X(ERR_NOMEM, -3, "out of memory")                              \
    X(ERR_IO, -4, "input or output failed")                        \
    X(ERR_FORMAT, -5, "malformed data")                            \
    X(ERR_MISMATCH, -6, "ranks or versions disagree")              \
    X(ERR_COMM, -7, "a collective failed")                         \
    X(ERR_DEVICE, -8, "the device failed")                         \
    X(ERR_TIMEOUT, -9, "no progress in time")                      \
    X(ERR_ABORTED, -10, "another rank failed first")               \
    X(ERR_INTERNAL, -11, "a bug")

enum fsdp_status {
#define X(name, value, text) FSDP_##name = (value),
    FSDP_STATUS_MAP(X)
#undef X
};

/*
 * The detail of the first failure of one rank. The caller owns it and zeroes
 * it; whoever fails first fills it, later writers leave it alone. `native` is
 * the code of the library below (errno, cudaError_t, ncclResult_t, MPI).
 */
struct fsdp_error {
    int32_t status;
    int32_t rank;
    int32_t native;
    char where[32];
    char message[216];
};

/* The sentence of a status; "unknown status" for a number not in the list. */
static inline const char *fsdp_status_text(int32_t status)
{
    switch (status) {
#define X(name, value, text) \
case value:                  \
    return text;
        FSDP_STATUS_MAP(X)
#undef X
    default:
        return "unknown status";
    }
}

/* Hands a failure on to the caller. It hides a return, and is the only
 * macro here that does. */
#define FSDP_TRY(expr)                 \
    do {                               \
        int fsdp_try_status_ = (expr); \
        if (fsdp_try_status_ != 0)     \
            return fsdp_try_status_;   \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
