/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_header.c - the header of a safetensors file.  It is hostile
 * until all of it has been checked: first the JSON, then each entry by itself,
 * then that the entries together cover the data exactly.
 */
#include "safetensors_internal.h"

#include <fsdp/status.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How a tensor is named in a refusal; a name can be megabytes long. */
#define TENSOR "tensor \"%.200s\": "

/* A tensor and where the header places it. */
struct entry {
    struct safetensors_tensor tensor;
    uint64_t begin;
    uint64_t end;
};

static bool read_extent(const json_t *value, uint64_t *extent)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *extent = (uint64_t)json_integer_value(value);
    return true;
}

static int read_dtype(const struct safetensors_report *report,
                      const json_t *value, struct entry *entry, int *rank)
{
    const char *const name = entry->tensor.name;

    if (!json_is_string(value)) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  TENSOR "dtype is missing or not a string",
                                  name);
    }
    *rank = safetensors_dtype_rank(json_string_value(value));
    if (*rank < 0) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  TENSOR "unknown dtype \"%.40s\"", name,
                                  json_string_value(value));
    }
    entry->tensor.dtype = safetensors_dtype_name(*rank);
    return FSDP_OK;
}

static int read_shape(const struct safetensors_report *report,
                      const json_t *value, struct entry *entry)
{
    const char *const name = entry->tensor.name;
    const size_t n = json_array_size(value);

    if (!json_is_array(value)) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  TENSOR "shape is missing or not an array",
                                  name);
    }
    if (n > SAFETENSORS_MAX_DIMS) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  TENSOR "%zu dimensions, at most %d expected",
                                  name, n, (int)SAFETENSORS_MAX_DIMS);
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_extent(json_array_get(value, i), &entry->tensor.shape[i])) {
            return safetensors_refuse(
                report, FSDP_ERR_FORMAT,
                TENSOR "shape[%zu] is not an integer of at least 0", name, i);
        }
    }
    entry->tensor.n_dims = (uint32_t)n;
    return FSDP_OK;
}

static int read_offsets(const struct safetensors_report *report,
                        const json_t *value, struct entry *entry)
{
    const char *const name = entry->tensor.name;

    if (!json_is_array(value) || json_array_size(value) != 2) {
        return safetensors_refuse(
            report, FSDP_ERR_FORMAT,
            TENSOR "data_offsets is missing or not an array of 2", name);
    }
    if (!read_extent(json_array_get(value, 0), &entry->begin) ||
        !read_extent(json_array_get(value, 1), &entry->end)) {
        return safetensors_refuse(
            report, FSDP_ERR_FORMAT,
            TENSOR "data_offsets are not integers of at least 0", name);
    }
    if (entry->begin > entry->end) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  TENSOR "data_offsets begin at %" PRIu64
                                         ", past their end %" PRIu64,
                                  name, entry->begin, entry->end);
    }
    return FSDP_OK;
}

static int read_entry(const struct safetensors_report *report, const char *name,
                      json_t *value, struct entry *entry)
{
    struct safetensors_tensor *const tensor = &entry->tensor;
    const char *field;
    const char *wrong;
    json_t *ignored;
    int rank = -1;
    int status;

    tensor->name = name;
    if (!json_is_object(value)) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  TENSOR "its entry is not an object", name);
    }
    json_object_foreach(value, field, ignored)
    {
        if (strcmp(field, "dtype") != 0 && strcmp(field, "shape") != 0 &&
            strcmp(field, "data_offsets") != 0) {
            return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                      TENSOR "unknown field \"%.40s\"", name,
                                      field);
        }
    }
    status = read_dtype(report, json_object_get(value, "dtype"), entry, &rank);
    if (status == FSDP_OK) {
        status = read_shape(report, json_object_get(value, "shape"), entry);
    }
    if (status == FSDP_OK) {
        status =
            read_offsets(report, json_object_get(value, "data_offsets"), entry);
    }
    if (status != FSDP_OK) {
        return status;
    }
    wrong =
        safetensors_size(rank, tensor->n_dims, tensor->shape, &tensor->bytes);
    if (wrong) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT, TENSOR "%s", name,
                                  wrong);
    }
    if (entry->end - entry->begin != tensor->bytes) {
        return safetensors_refuse(
            report, FSDP_ERR_FORMAT,
            TENSOR "data_offsets span %" PRIu64
                   " bytes, dtype and shape come to %" PRIu64,
            name, entry->end - entry->begin, tensor->bytes);
    }
    return FSDP_OK;
}

static int compare_meta(const void *a, const void *b)
{
    const struct safetensors_meta *const left = a;
    const struct safetensors_meta *const right = b;

    return strcmp(left->key, right->key);
}

static int read_meta(const struct safetensors_report *report,
                     struct safetensors_file *file)
{
    json_t *const object = json_object_get(file->root, SAFETENSORS_METADATA);
    const char *key;
    json_t *value;

    if (!object) {
        return FSDP_OK;
    }
    if (!json_is_object(object)) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  SAFETENSORS_METADATA " is not an object");
    }
    file->meta = calloc(json_object_size(object) + 1, sizeof(*file->meta));
    if (!file->meta) {
        return safetensors_refuse(report, FSDP_ERR_NOMEM, "out of memory");
    }
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value)) {
            return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                      SAFETENSORS_METADATA
                                      ": the value of \"%.200s\" is not a "
                                      "string",
                                      key);
        }
        file->meta[file->n_meta].key = key;
        file->meta[file->n_meta].value = json_string_value(value);
        file->n_meta++;
    }
    qsort(file->meta, file->n_meta, sizeof(*file->meta), compare_meta);
    return FSDP_OK;
}

static int compare_place(const void *a, const void *b)
{
    const struct entry *const left = a;
    const struct entry *const right = b;

    if (left->begin != right->begin) {
        return left->begin < right->begin ? -1 : 1;
    }
    if (left->end != right->end) {
        return left->end < right->end ? -1 : 1;
    }
    return strcmp(left->tensor.name, right->tensor.name);
}

/* ENTRIES, sorted by place, must cover the data with no hole or overlap. */
static int check_cover(const struct safetensors_report *report,
                       const struct entry *entries, size_t n,
                       uint64_t data_bytes)
{
    uint64_t end = 0;

    for (size_t i = 0; i < n; i++) {
        if (entries[i].begin != end) {
            return safetensors_refuse(
                report, FSDP_ERR_FORMAT,
                TENSOR "begins at %" PRIu64 ", %s: the data before it "
                       "ends at %" PRIu64,
                entries[i].tensor.name, entries[i].begin,
                entries[i].begin < end ? "an overlap" : "after a hole", end);
        }
        end = entries[i].end;
    }
    if (end != data_bytes) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  "the tensors end at %" PRIu64
                                  ", the data has %" PRIu64 " bytes",
                                  end, data_bytes);
    }
    return FSDP_OK;
}

static int compare_name(const void *a, const void *b)
{
    const struct safetensors_tensor *const *const left = a;
    const struct safetensors_tensor *const *const right = b;

    return strcmp((*left)->name, (*right)->name);
}

static int keep_entries(const struct safetensors_report *report,
                        const struct entry *entries,
                        struct safetensors_file *file)
{
    file->tensors = calloc(file->n + 1, sizeof(*file->tensors));
    file->by_name = calloc(file->n + 1, sizeof(struct safetensors_tensor *));
    if (!file->tensors || !file->by_name) {
        return safetensors_refuse(report, FSDP_ERR_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < file->n; i++) {
        file->tensors[i] = entries[i].tensor;
        file->by_name[i] = &file->tensors[i];
    }
    qsort(file->by_name, file->n, sizeof(struct safetensors_tensor *),
          compare_name);
    return FSDP_OK;
}

static int read_entries(const struct safetensors_report *report,
                        uint64_t data_bytes, struct safetensors_file *file)
{
    const size_t room = json_object_size(file->root);
    struct entry *const entries = calloc(room + 1, sizeof(*entries));
    int status = FSDP_OK;
    const char *name;
    json_t *value;

    if (!entries) {
        return safetensors_refuse(report, FSDP_ERR_NOMEM, "out of memory");
    }
    json_object_foreach(file->root, name, value)
    {
        if (strcmp(name, SAFETENSORS_METADATA) == 0) {
            continue;
        }
        status = read_entry(report, name, value, &entries[file->n]);
        if (status != FSDP_OK) {
            goto out;
        }
        file->n++;
    }
    qsort(entries, file->n, sizeof(*entries), compare_place);
    status = check_cover(report, entries, file->n, data_bytes);
    if (status == FSDP_OK) {
        status = keep_entries(report, entries, file);
    }
out:
    free(entries);
    return status;
}

/*
 * A minus outside a string: no number of a header has one, but the parser
 * turns -0 into a plain 0.
 */
static bool has_minus(const char *text, size_t bytes)
{
    bool in_string = false;

    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"') {
            in_string = !in_string;
        } else if (text[i] == '\\') {
            i++;
        } else if (text[i] == '-' && !in_string) {
            return true;
        }
    }
    return false;
}

/*
 * Jansson 2.14 ignores it when its token buffer cannot grow, and then reads
 * and writes past that buffer's end.  So first see that there is more memory
 * to be had than the header should take: an entry of some 90 bytes makes about
 * 900 bytes of values, and the longest of tokens takes 4 times its length.
 * Another thread may still take that memory meanwhile.
 */
static bool has_memory(size_t header_bytes)
{
    /* Volatile, or the compiler leaves out the pair of calls. */
    void *volatile const probe = malloc(header_bytes * 16);
    const bool found = probe != NULL;

    free(probe);
    return found;
}

static int parse_json(const struct safetensors_report *report, const char *text,
                      size_t bytes, struct safetensors_file *file)
{
    json_error_t error = {.position = 0};

    if (text[0] != '{') {
        return safetensors_refuse(
            report, FSDP_ERR_FORMAT,
            "the header begins with byte 0x%02x, '{' expected",
            (unsigned)(unsigned char)text[0]);
    }
    if (!has_memory(bytes)) {
        return safetensors_refuse(report, FSDP_ERR_NOMEM, "out of memory");
    }
    file->root = json_loadb(
        text, bytes, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
    if (!file->root) {
        /* Jansson words every fault of the text, but not a lack of memory. */
        if (error.text[0] == '\0') {
            return safetensors_refuse(report, FSDP_ERR_NOMEM, "out of memory");
        }
        return safetensors_refuse(
            report, FSDP_ERR_FORMAT,
            "the header is not JSON as the format has it: %s (byte %d)",
            error.text, error.position);
    }
    for (size_t i = (size_t)error.position; i < bytes; i++) {
        if (text[i] != ' ') {
            return safetensors_refuse(
                report, FSDP_ERR_FORMAT,
                "byte 0x%02x at %zu after the header's JSON, spaces expected",
                (unsigned)(unsigned char)text[i], i);
        }
    }
    return FSDP_OK;
}

int safetensors_read_header(const struct safetensors_report *report,
                            const char *text, size_t bytes, uint64_t data_bytes,
                            struct safetensors_file *file)
{
    int status = parse_json(report, text, bytes, file);

    if (status == FSDP_OK) {
        status = read_meta(report, file);
    }
    if (status == FSDP_OK) {
        status = read_entries(report, data_bytes, file);
    }
    if (status == FSDP_OK && has_minus(text, bytes)) {
        status = safetensors_refuse(
            report, FSDP_ERR_FORMAT,
            "the header has the number -0, integers of at least 0 expected");
    }
    return status;
}
