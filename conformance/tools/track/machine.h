/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - the machine that measured: its hardware, in words, and a short
 * hash of that. Times of different hardware are never compared.
 */
#ifndef FSDP_CTS_MACHINE_H
#define FSDP_CTS_MACHINE_H

#include <fsdp/status.h>

enum {
    MACHINE_PART_BYTES = 128,
    MACHINE_TEXT_BYTES = 320,
    MACHINE_HASH_BYTES = 13,
    TRACK_DIGEST_BYTES = 65
};

struct machine {
    char cpu[MACHINE_PART_BYTES], gpu[MACHINE_PART_BYTES]; /* gpu: "": none */
    uint64_t cores, memory_bytes;
};

/* Describes this machine. Unknown parts are "unknown" or 0. */
void machine_here(struct machine *out);
/* "Xeon, 8 cores, 16 GiB", the memory to the nearest GiB: a kernel that keeps
 * more of it for itself does not make other hardware. */
void machine_text(const struct machine *m, char out[MACHINE_TEXT_BYTES]);
void machine_hash(const char *text, char out[MACHINE_HASH_BYTES]);

/* SHA-256, in hexadecimal digits. */
void track_digest(const void *data, uint64_t bytes,
                  char out[TRACK_DIGEST_BYTES]);

#endif
