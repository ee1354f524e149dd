/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - the hardware that a measurement belongs to. */
#include "tools/track/machine.h"

#include <glob.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text behind "name:" in the first line of a file that has it. */
static void value_of(const char *path, const char *name, char *out, size_t room)
{
    char line[512];
    FILE *f = fopen(path, "re");

    out[0] = '\0';
    while (f && out[0] == '\0' && fgets(line, sizeof(line), f)) {
        char *colon = strchr(line, ':');

        if (strncmp(line, name, strlen(name)) == 0 && colon) {
            colon += 1 + strspn(colon + 1, " \t");
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(out, room, "%s", colon);
        }
    }
    if (f) {
        (void)fclose(f);
    }
}

void machine_here(struct machine *out)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char memory[64];
    glob_t found;

    memset(out, 0, sizeof(*out));
    value_of("/proc/cpuinfo", "model name", out->cpu, sizeof(out->cpu));
    if (out->cpu[0] == '\0') {
        snprintf(out->cpu, sizeof(out->cpu), "unknown");
    }
    out->cores = cores > 0 ? (uint64_t)cores : 0;
    value_of("/proc/meminfo", "MemTotal", memory, sizeof(memory));
    out->memory_bytes = strtoull(memory, NULL, 10) * 1024; /* "16384 kB" */
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
        value_of(found.gl_pathv[0], "Model", out->gpu, sizeof(out->gpu));
        globfree(&found);
    }
}

void machine_text(const struct machine *m, char out[MACHINE_TEXT_BYTES])
{
    const uint64_t gib = UINT64_C(1) << 30;
    uint64_t memory =
        m->memory_bytes / gib + (m->memory_bytes % gib >= gib / 2);
    int n = snprintf(out, MACHINE_TEXT_BYTES, "%s", m->cpu);

    /* A machine that the user named has only a name. */
    if (m->cores > 0) {
        n += snprintf(out + n, MACHINE_TEXT_BYTES - (size_t)n,
                      ", %" PRIu64 " cores, %" PRIu64 " GiB", m->cores, memory);
    }
    if (m->gpu[0] != '\0') {
        snprintf(out + n, MACHINE_TEXT_BYTES - (size_t)n, ", %s", m->gpu);
    }
    for (char *c = out; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = ' ';
        }
    }
}

void track_digest(const void *data, uint64_t bytes,
                  char out[TRACK_DIGEST_BYTES])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];

    (void)SHA256(data, (size_t)bytes, sum);
    for (size_t i = 0; i < sizeof(sum); i++) {
        snprintf(out + 2 * i, 3, "%02x", sum[i]);
    }
}

void machine_hash(const char *text, char out[MACHINE_HASH_BYTES])
{
    char digest[TRACK_DIGEST_BYTES];

    track_digest(text, strlen(text), digest);
    snprintf(out, MACHINE_HASH_BYTES, "%.12s", digest);
}
