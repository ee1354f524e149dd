/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_fuzz.c - feeds the reader bytes without mercy.  What it accepts
 * must be sound, and must survive the writer and the reader again unchanged.
 *
 * Build with clang -fsanitize=fuzzer,address,undefined.
 */
#include "fuzzing.h"
#include "safetensors_internal.h"

#include <fsdp/status.h>
#include <stdlib.h>
#include <string.h>

static void require_same(const struct safetensors_tensor *a,
                         const struct safetensors_tensor *b)
{
    require(a != NULL);
    require(b != NULL);
    require(a->name != NULL);
    require(strcmp(a->name, b->name) == 0);
    require(strcmp(a->dtype, b->dtype) == 0);
    require(a->n_dims == b->n_dims);
    require(memcmp(a->shape, b->shape, sizeof(a->shape)) == 0);
    require(a->bytes == b->bytes);
    require(memcmp(a->data, b->data, a->bytes) == 0);
}

/* The tensors of FILE, in the order of the file, which must fill the data. */
static struct safetensors_tensor *
copy_tensors(const struct safetensors_file *file, const uint8_t *end)
{
    const size_t n = safetensors_count(file);
    struct safetensors_tensor *const copy = calloc(n + 1, sizeof(*copy));

    require(copy != NULL);
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *const tensor = safetensors_at(file, i);
        const uint8_t *const next =
            i + 1 < n ? safetensors_at(file, i + 1)->data : end;

        require((const uint8_t *)tensor->data + tensor->bytes == next);
        require(safetensors_find(file, tensor->name) == tensor);
        copy[i] = *tensor;
    }
    require(!safetensors_at(file, n));
    return copy;
}

static struct safetensors_meta *copy_meta(const struct safetensors_file *file,
                                          size_t *n)
{
    struct safetensors_meta *copy;

    *n = 0;
    while (safetensors_meta_at(file, *n)) {
        (*n)++;
    }
    copy = calloc(*n + 1, sizeof(*copy));
    require(copy != NULL);
    for (size_t i = 0; i < *n; i++) {
        copy[i] = *safetensors_meta_at(file, i);
        require(safetensors_meta(file, copy[i].key) == copy[i].value);
    }
    return copy;
}

/* The bytes the writer would write. */
static uint8_t *assemble(const struct safetensors_tensor *t, size_t n,
                         const struct safetensors_meta *meta, size_t n_meta,
                         size_t *bytes)
{
    const struct safetensors_report silent = {"", NULL, 0};
    struct safetensors_plan plan;
    uint8_t *image;

    require(safetensors_plan_make(&plan, t, n, meta, n_meta, &silent) ==
            FSDP_OK);
    image = malloc(plan.head_bytes + plan.data_bytes);
    require(image != NULL);
    memcpy(image, plan.head, plan.head_bytes);
    *bytes = plan.head_bytes;
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *const tensor = plan.slots[i].tensor;

        memcpy(image + *bytes, tensor->data, tensor->bytes);
        *bytes += tensor->bytes;
    }
    require(*bytes == plan.head_bytes + plan.data_bytes);
    safetensors_plan_free(&plan);
    return image;
}

static void check_round_trip(const struct safetensors_file *file,
                             const uint8_t *end)
{
    const size_t n = safetensors_count(file);
    struct safetensors_tensor *const t = copy_tensors(file, end);
    struct safetensors_file *again;
    struct safetensors_meta *meta;
    size_t bytes = 0;
    size_t n_meta = 0;
    uint8_t *image;

    meta = copy_meta(file, &n_meta);
    image = assemble(t, n, meta, n_meta, &bytes);
    require(safetensors_open_memory(image, bytes, &again, NULL, 0) == FSDP_OK);
    require(safetensors_count(again) == n);
    for (size_t i = 0; i < n; i++) {
        require_same(&t[i], safetensors_find(again, t[i].name));
    }
    for (size_t i = 0; i < n_meta; i++) {
        require(strcmp(safetensors_meta(again, meta[i].key), meta[i].value) ==
                0);
    }
    require(!safetensors_meta_at(again, n_meta));
    safetensors_close(again);
    free(image);
    free(meta);
    free(t);
}

static void check_file(const uint8_t *p, size_t bytes)
{
    struct safetensors_file *file;
    char why[256] = "";
    const int status =
        safetensors_open_memory(p, bytes, &file, why, sizeof(why));

    if (status == FSDP_OK) {
        require(why[0] == '\0');
        check_round_trip(file, p + bytes);
        safetensors_close(file);
    } else {
        require(status == FSDP_ERR_FORMAT && !file);
        require(why[0] != '\0');
    }
}

/*
 * The input as a header up to its first NUL and data after it, under a length
 * that fits: few mutations would otherwise keep the length right.
 */
static void check_framed(const uint8_t *p, size_t bytes)
{
    const uint8_t *const nul = bytes > 0 ? memchr(p, 0, bytes) : NULL;
    const size_t header = !nul ? bytes : (size_t)(nul - p);
    const size_t data = !nul ? 0 : bytes - header - 1;
    const size_t all = SAFETENSORS_LENGTH_BYTES + header + data;
    uint8_t *const image = calloc(1, all);

    require(image != NULL);
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) {
        image[i] = (uint8_t)((uint64_t)header >> (8 * i) & 0xff);
    }
    if (header > 0) {
        memcpy(image + SAFETENSORS_LENGTH_BYTES, p, header);
    }
    if (data > 0) {
        memcpy(image + SAFETENSORS_LENGTH_BYTES + header, nul + 1, data);
    }
    check_file(image, all);
    free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t bytes)
{
    check_file(p, bytes);
    check_framed(p, bytes);
    return 0;
}
