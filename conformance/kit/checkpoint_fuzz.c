/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_fuzz.c - feeds the reader of checkpoints bytes without mercy: as a
 * manifest; as the body of one, which is signed here, as few mutations would
 * hit their own hash; and as the header of a shard, in a checkpoint whose
 * manifest is right. What is accepted must be sound.
 *
 * Build with clang -fsanitize=fuzzer,address,undefined (ci/fuzz).
 */
#include "checkpoint_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* libFuzzer names it. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t bytes);

/* Not assert(), which a release build would drop. */
static void require(bool condition)
{
    if (!condition) {
        abort();
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
        require(m.file == NULL && m.table.entry == NULL);
        return;
    }
    for (uint32_t i = 0; i < m.n_files; i++) {
        require(checkpoint_plain_name(m.file[i].name));
        require(strchr(m.file[i].name, '/') == NULL);
    }
    image = checkpoint_manifest_text(&m, &n);
    require(image != NULL);
    require(checkpoint_manifest_parse(image, n, &again, why) == FSDP_OK);
    require(again.n_files == m.n_files && again.table.n == m.table.n);
    checkpoint_manifest_release(&again);
    checkpoint_manifest_release(&m);
    free(image);
}

static void check_body(const char *text, size_t bytes)
{
    json_t *body = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    unsigned char sha[CHECKPOINT_SHA_BYTES];
    char hex[2 * CHECKPOINT_SHA_BYTES + 1];
    json_t *root;
    char *canonical;
    char *image;

    if (!body) {
        return;
    }
    canonical = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    require(canonical != NULL);
    checkpoint_hash(canonical, strlen(canonical), sha);
    checkpoint_hex(sha, hex);
    root = json_pack("{s:O, s:s}", "checkpoint", body, "sha256", hex);
    image = json_dumps(root, JSON_COMPACT);
    require(image != NULL);
    check_manifest(image, strlen(image));
    free(image);
    free(canonical);
    json_decref(root);
    json_decref(body);
}

#ifndef CHECKPOINT_FUZZ_NO_FILES /* files cost most of the time */

/* ---- A checkpoint, in memory ----------------------------------------------
 */

static char directory[64];

static void write_file(const char *name, const void *head, size_t head_bytes,
                       const void *p, size_t bytes)
{
    char path[160];
    uint64_t length = bytes;
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0);
    if (head) {
        require(write(fd, &length, sizeof length) == sizeof length);
    }
    require(write(fd, p, bytes) == (ssize_t)bytes);
    if (head) {
        require(write(fd, head, head_bytes) == (ssize_t)head_bytes);
    }
    (void)close(fd);
}

static void remove_directory(void)
{
    static const char *const name[] = {"manifest.json", "shard.safetensors",
                                       "state-00001.safetensors"};
    char path[160];

    for (uint32_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, name[i]);
        (void)unlink(path);
    }
    (void)rmdir(directory);
}

static void make_directory(void)
{
    static const char state[] =
        "{\"optim.beta1_power\":{\"dtype\":\"F32\",\"shape\":[],"
        "\"data_offsets\":[8,12]},\"optim.beta2_power\":{\"dtype\":\"F32\","
        "\"shape\":[],\"data_offsets\":[12,16]},\"optim.step\":{\"dtype\":"
        "\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}";
    static const char data[16];

    (void)strcpy(directory, "/dev/shm/checkpoint_fuzz.XXXXXX");
    require(mkdtemp(directory) != NULL);
    write_file("state-00001.safetensors", data, sizeof data, state,
               sizeof state - 1);
    (void)atexit(remove_directory);
}

/* Tensors "a" of 4 x 3 and "b" of 5, in one file with this header. */
static void check_shard(const char *header, size_t bytes)
{
    static const float data[17];
    static const uint64_t a[] = {4, 3};
    static const uint64_t b[] = {5};
    struct checkpoint_manifest m = {.form = "sharded",
                                    .layout = "flat",
                                    .optimizer = "sgd",
                                    .world = 1,
                                    .shards = 1,
                                    .replicas = 1,
                                    .n_files = 2};
    struct checkpoint_file file[2];
    char why[CHECKPOINT_WHY_BYTES] = "";
    struct checkpoint *c;
    size_t n = 0;
    char *text;
    int at = -1;

    if (!directory[0]) {
        make_directory();
    }
    write_file("shard.safetensors", data, sizeof data, header, bytes);
    at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(at >= 0);
    require(checkpoint_hash_file(at, "shard.safetensors", &file[0], why) ==
            FSDP_OK);
    require(checkpoint_hash_file(at, "state-00001.safetensors", &file[1],
                                 why) == FSDP_OK);
    (void)close(at);
    m.file = file;
    require(checkpoint_table_add(&m.table, "a", 2, a, false, NULL) == FSDP_OK);
    require(checkpoint_table_add(&m.table, "b", 1, b, false, NULL) == FSDP_OK);
    text = checkpoint_manifest_text(&m, &n);
    require(text != NULL);
    write_file("manifest.json", NULL, 0, text, n);
    free(text);
    checkpoint_table_release(&m.table);
    if (checkpoint_open(directory, &c, why) == FSDP_OK) {
        float got[12];
        require(checkpoint_verify(c, 0, 1, why) == FSDP_OK);
        require(checkpoint_read(c, "a", 0, 12, got, why) == FSDP_OK);
        require(checkpoint_read(c, "b", 0, 5, got, why) == FSDP_OK);
        for (uint32_t i = 0; i < 12; i++) {
            require(got[i] == 0.0f);
        }
        require(checkpoint_read(c, "b", 3, 3, got, why) != FSDP_OK);
        checkpoint_close(c);
    } else {
        require(why[0] != '\0' && c == NULL);
    }
}

#endif

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t bytes)
{
    const char *text = (const char *)p;

    /* The first byte says what the rest is. */
#ifndef CHECKPOINT_FUZZ_NO_FILES
    if (bytes > 0 && p[0] == 'S') {
        check_shard(text + 1, bytes - 1);
        return 0;
    }
#endif
    if (bytes > 0 && p[0] == 'B') {
        check_body(text + 1, bytes - 1);
    } else {
        check_manifest(text, bytes);
    }
    return 0;
}
