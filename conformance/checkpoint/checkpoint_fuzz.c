/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_fuzz.c - feeds the reader of a checkpoint's headers text without
 * mercy, from memory: behind an S as the headers of one or two shards, parted
 * by the byte 0x1e, behind anything else as the header of the file of state.
 * The manifest is right. Headers that are accepted must give every element
 * once.
 *
 * Build with clang -fsanitize=fuzzer,address,undefined (ci/fuzz).
 */
#include "checkpoint_opened.h"
#include "fuzzing.h"
#include "json_mutation.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FILES = 4,       /* two shards, two of state */
    ZEROS = 1 << 16, /* bytes of the file that data are read from */
};

static const char good_shard[] =
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[4,3],\"data_offsets\":[0,48]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[48,68]}}";
static const char good_state[] =
    "{\"optim.beta1_power\":{\"dtype\":\"F32\",\"shape\":[],"
    "\"data_offsets\":[8,12]},\"optim.beta2_power\":{\"dtype\":\"F32\","
    "\"shape\":[],\"data_offsets\":[12,16]},\"optim.step\":{\"dtype\":"
    "\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}";

static int zeros(void)
{
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("zeros", MFD_CLOEXEC);
        require(fd >= 0 && ftruncate(fd, ZEROS) == 0);
    }
    return fd;
}

/* Tensors "a" of 4 x 3 and "b" of 5, in two shards, and their state. */
static void make_manifest(struct checkpoint_manifest *m)
{
    static const char *const name[FILES] = {
        "shard-1.safetensors", "shard-2.safetensors", "state-00001.safetensors",
        "state-00002.safetensors"};
    static const uint64_t a[] = {4, 3};
    static const uint64_t b[] = {5};

    m->file = calloc(FILES, sizeof(*m->file));
    require(m->file != NULL);
    m->n_files = FILES;
    for (uint32_t i = 0; i < FILES; i++) {
        (void)strcpy(m->file[i].name, name[i]);
    }
    require(checkpoint_table_add(&m->table, "a", 2, a, false, NULL) == FSDP_OK);
    require(checkpoint_table_add(&m->table, "b", 1, b, false, NULL) == FSDP_OK);
}

/* The texts of two files, or of one. */
static int take(struct checkpoint *c, uint32_t file, const char *text,
                size_t bytes, char *why)
{
    const char *part = memchr(text, 0x1e, bytes);
    size_t n = part ? (size_t)(part - text) : bytes;

    if (n > 0) { /* else the file is left out */
        /* Few texts would fit a length that was fixed before. */
        c->manifest.file[file].bytes = n + json_data_end(text, n, ZEROS / 2);
        FSDP_TRY(checkpoint_take_header(c, file, zeros(), text, n, n, why));
    }
    return part
               ? take(c, file + 1, part + 1,
                      memchr(part + 1, 0x1e, bytes - n - 1) ? 0 : bytes - n - 1,
                      why)
               : FSDP_OK;
}

/* Whatever the runs are, each element must be in exactly one. */
static void require_whole(struct checkpoint *c)
{
    uint8_t times[2][12] = {{0}};

    for (uint32_t i = 0; i < c->n_runs; i++) {
        const struct checkpoint_run *x = &c->run[i];

        require(x->entry < 2 && x->file < 2);
        require(x->at + x->n * sizeof(float) <=
                c->manifest.file[x->file].bytes);
        require(x->first + x->n <= c->manifest.table.entry[x->entry].numel);
        for (uint64_t k = 0; k < x->n; k++) {
            times[x->entry][x->first + k]++;
        }
    }
    for (uint32_t k = 0; k < 12; k++) {
        require(times[0][k] == 1 && times[1][k] == (k < 5));
    }
    for (uint32_t i = 0; i < c->n_owns; i++) {
        require(c->own[i].rank < CHECKPOINT_MAX_WORLD);
        require(c->own[i].at + c->own[i].bytes <=
                c->manifest.file[c->own[i].file].bytes);
    }
}

/* A slice is read from as many runs as it takes. */
static void require_readable(struct checkpoint *c, char *why)
{
    float got[12];

    for (uint32_t i = 0; i < c->n_runs; i++) {
        if (c->run[i].file != 0) {
            return; /* one file is open, and no other is to be opened */
        }
    }
    c->fd = zeros();
    c->file = 0;
    require(checkpoint_read(c, "a", 0, 12, got, why) == FSDP_OK);
    require(checkpoint_read(c, "a", 5, 2, got, why) == FSDP_OK);
    require(checkpoint_read(c, "b", 1, 4, got, why) == FSDP_OK);
    require(checkpoint_read(c, "b", 3, 3, got, why) != FSDP_OK);
    require(checkpoint_read(c, "b", UINT64_MAX, 3, got, why) != FSDP_OK);
    require(checkpoint_read(c, "c", 0, 1, got, why) != FSDP_OK);
}

static void check(const char *text, size_t bytes, const char *state,
                  size_t state_bytes)
{
    struct checkpoint c = {.directory = -1, .fd = -1};
    char why[CHECKPOINT_WHY_BYTES] = "";
    int status;

    make_manifest(&c.manifest);
    status = take(&c, 0, text, bytes, why);
    if (status == FSDP_OK) {
        status = take(&c, 2, state, state_bytes, why);
    }
    if (status == FSDP_OK) {
        status = checkpoint_take_all(&c, why);
    }
    if (status == FSDP_OK) {
        require_whole(&c);
        require_readable(&c, why);
    } else {
        require(status == FSDP_ERR_FORMAT && why[0] != '\0');
    }
    checkpoint_forget(&c);
}

/* NOLINTNEXTLINE(readability-identifier-naming) */
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t bytes, size_t room,
                               unsigned seed)
{
    return json_mutate(p, bytes, room, seed, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t bytes)
{
    const char *text = (const char *)p;

    if (bytes > ZEROS / 2 || bytes == 0) {
        return 0;
    }
    if (p[0] == 'S') {
        check(text + 1, bytes - 1, good_state, sizeof(good_state) - 1);
    } else {
        check(good_shard, sizeof(good_shard) - 1, text + 1, bytes - 1);
    }
    return 0;
}
