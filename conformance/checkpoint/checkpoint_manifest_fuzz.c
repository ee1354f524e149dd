/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_manifest_fuzz.c - feeds the reader of manifests bytes without
 * mercy, from memory: as they are, or, behind a B, as the body of a manifest,
 * which is signed here, as few mutations would hit their own hash. A manifest
 * that is accepted must be sound, and come back the same when it is written
 * again.
 *
 * Build with clang -fsanitize=fuzzer,address,undefined (ci/fuzz).
 */
#include "checkpoint_internal.h"
#include "fuzzing.h"
#include "json_mutation.h"

#include <stdlib.h>
#include <string.h>

static void require_sound(const struct checkpoint_manifest *m)
{
    require(m->world > 0 && m->world <= CHECKPOINT_MAX_WORLD);
    require(m->shards * m->replicas == m->world);
    for (uint32_t i = 0; i < m->n_files; i++) {
        require(checkpoint_plain_name(m->file[i].name));
        require(!strchr(m->file[i].name, '/'));
        require(i == 0 || strcmp(m->file[i - 1].name, m->file[i].name) < 0);
    }
    for (uint32_t i = 0; i < m->table.n; i++) {
        const struct checkpoint_entry *e = &m->table.entry[i];
        uint64_t numel = 1;

        require(e->name && e->n_dims <= FSDP_MAX_DIMS);
        for (uint32_t d = 0; d < e->n_dims; d++) {
            require(!__builtin_mul_overflow(numel, e->shape[d], &numel));
        }
        require(numel == e->numel && numel < UINT64_MAX / sizeof(float));
    }
}

static void check_manifest(const char *text, size_t bytes)
{
    struct checkpoint_manifest m;
    struct checkpoint_manifest again;
    char why[CHECKPOINT_WHY_BYTES] = "";
    char *image;
    size_t n = 0;
    int status = checkpoint_manifest_parse(text, bytes, &m, why);

    if (status != FSDP_OK) {
        require(status == FSDP_ERR_FORMAT && why[0] != '\0');
        require(!m.file && !m.table.entry);
        return;
    }
    require_sound(&m);
    image = checkpoint_manifest_text(&m, &n);
    require(image != NULL);
    require(checkpoint_manifest_parse(image, n, &again, why) == FSDP_OK);
    require(again.n_files == m.n_files && again.table.n == m.table.n);
    require(m.n_files == 0 ||
            memcmp(again.file, m.file, m.n_files * sizeof(*m.file)) == 0);
    checkpoint_manifest_release(&again);
    checkpoint_manifest_release(&m);
    free(image);
}

/* {"checkpoint":BODY,"sha256":"..."}, the hash being that of the body. */
static void check_body(const char *text, size_t bytes)
{
    static char image[1 << 16];
    static const char before[] = "{\"checkpoint\":";
    static const char between[] = ",\"sha256\":\"";
    json_t *body = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    unsigned char sha[CHECKPOINT_SHA_BYTES];
    char hex[2 * CHECKPOINT_SHA_BYTES + 1];
    char *to = stpcpy(image, before);
    size_t n;

    if (!body) {
        return; /* check_manifest is for such texts */
    }
    n = json_dumpb(body, to, sizeof(image) - 256,
                   JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(body);
    if (n == 0 || n > sizeof(image) - 256) {
        return;
    }
    checkpoint_hash(to, n, sha);
    checkpoint_hex(sha, hex);
    to = stpcpy(to + n, between);
    to = stpcpy(to, hex);
    to = stpcpy(to, "\"}");
    check_manifest(image, (size_t)(to - image));
}

/* NOLINTNEXTLINE(readability-identifier-naming) */
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t bytes, size_t room,
                               unsigned seed)
{
    return json_mutate(p, bytes, room, seed, bytes > 0 && p[0] == 'B');
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t bytes)
{
    const char *text = (const char *)p;

    if (bytes > 0 && p[0] == 'B') {
        check_body(text + 1, bytes - 1);
    } else {
        check_manifest(text, bytes);
    }
    return 0;
}
