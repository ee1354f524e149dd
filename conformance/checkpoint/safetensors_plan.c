/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_plan.c - the head of a file to be written, and the order of its
 * data.  Everything the caller says is checked here, before a file is touched.
 */
#include "safetensors_internal.h"

#include <fsdp/status.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TENSOR "tensor \"%.200s\": "

static int refuse_memory(const struct safetensors_report *report)
{
    return safetensors_refuse(report, FSDP_ERR_NOMEM, "out of memory");
}

/* The bytes of the UTF-8 sequence at P, or 0 if there is none (see RFC 3629).
 */
static size_t sequence_bytes(const unsigned char *p)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = p[0] < 0x80             ? 1
                     : (p[0] & 0xe0) == 0xc0 ? 2
                     : (p[0] & 0xf0) == 0xe0 ? 3
                     : (p[0] & 0xf8) == 0xf0 ? 4
                                             : 0;
    uint32_t code = n <= 1 ? p[0] : p[0] & (0x7fU >> n);

    for (size_t i = 1; i < n; i++) {
        /* Also stops at the text's end. */
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (p[i] & 0x3fU);
    }
    if (code < least[n] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    return n;
}

/*
 * Jansson refuses text that is not UTF-8 as well, but in the way in which it
 * also reports a lack of memory.
 */
static int check_text(const struct safetensors_report *report, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p != '\0') {
        const size_t n = sequence_bytes(p);

        if (n == 0) {
            return safetensors_refuse(report, FSDP_ERR_INVALID,
                                      "\"%.200s\" is not UTF-8", text);
        }
        p += n;
    }
    return FSDP_OK;
}

static int check_tensor(const struct safetensors_report *report,
                        const struct safetensors_tensor *tensor, int *rank)
{
    const char *wrong;
    uint64_t bytes = 0;

    if (!tensor->name || !tensor->dtype) {
        return safetensors_refuse(report, FSDP_ERR_INVALID,
                                  "a tensor's name or dtype is NULL");
    }
    if (strcmp(tensor->name, SAFETENSORS_METADATA) == 0) {
        return safetensors_refuse(report, FSDP_ERR_INVALID,
                                  TENSOR "the name is reserved", tensor->name);
    }
    *rank = safetensors_dtype_rank(tensor->dtype);
    if (*rank < 0) {
        return safetensors_refuse(report, FSDP_ERR_INVALID,
                                  TENSOR "unknown dtype \"%.40s\"",
                                  tensor->name, tensor->dtype);
    }
    if (tensor->n_dims > SAFETENSORS_MAX_DIMS) {
        return safetensors_refuse(
            report, FSDP_ERR_INVALID,
            TENSOR "%" PRIu32 " dimensions, at most %d expected", tensor->name,
            tensor->n_dims, (int)SAFETENSORS_MAX_DIMS);
    }
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->shape[i] > INT64_MAX) {
            return safetensors_refuse(report, FSDP_ERR_INVALID,
                                      TENSOR "shape[%" PRIu32 "] is too large",
                                      tensor->name, i);
        }
    }
    wrong = safetensors_size(*rank, tensor->n_dims, tensor->shape, &bytes);
    if (wrong) {
        return safetensors_refuse(report, FSDP_ERR_INVALID, TENSOR "%s",
                                  tensor->name, wrong);
    }
    if (bytes != tensor->bytes) {
        return safetensors_refuse(report, FSDP_ERR_INVALID,
                                  TENSOR "%" PRIu64 " bytes, dtype and shape "
                                         "come to %" PRIu64,
                                  tensor->name, tensor->bytes, bytes);
    }
    if (!tensor->data && bytes > 0) {
        return safetensors_refuse(report, FSDP_ERR_INVALID,
                                  TENSOR "the data is NULL", tensor->name);
    }
    return check_text(report, tensor->name);
}

static int compare_slot(const void *a, const void *b)
{
    const struct safetensors_slot *const left = a;
    const struct safetensors_slot *const right = b;

    if (left->rank != right->rank) {
        return left->rank > right->rank ? -1 : 1;
    }
    return strcmp(left->tensor->name, right->tensor->name);
}

static int plan_slots(struct safetensors_plan *plan,
                      const struct safetensors_tensor *t, size_t n,
                      const struct safetensors_report *report)
{
    plan->slots = calloc(n > 0 ? n : 1, sizeof(*plan->slots));
    if (!plan->slots) {
        return refuse_memory(report);
    }
    for (size_t i = 0; i < n; i++) {
        const int status = check_tensor(report, &t[i], &plan->slots[i].rank);

        if (status != FSDP_OK) {
            return status;
        }
        plan->slots[i].tensor = &t[i];
    }
    plan->n = n;
    qsort(plan->slots, n, sizeof(*plan->slots), compare_slot);
    return FSDP_OK;
}

static int compare_pair(const void *a, const void *b)
{
    const struct safetensors_meta *const *const left = a;
    const struct safetensors_meta *const *const right = b;

    return strcmp((*left)->key, (*right)->key);
}

/* Puts the N pairs, sorted, into OBJECT; a key twice is refused. */
static int put_pairs(json_t *object, const struct safetensors_meta **pairs,
                     size_t n, const struct safetensors_report *report)
{
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_meta *const pair = pairs[i];
        int status;

        if (i > 0 && strcmp(pairs[i - 1]->key, pair->key) == 0) {
            return safetensors_refuse(report, FSDP_ERR_INVALID,
                                      "metadata \"%.200s\" is given twice",
                                      pair->key);
        }
        status = check_text(report, pair->key);
        if (status == FSDP_OK) {
            status = check_text(report, pair->value);
        }
        if (status != FSDP_OK) {
            return status;
        }
        if (json_object_set_new(object, pair->key, json_string(pair->value)) !=
            0) {
            return refuse_memory(report);
        }
    }
    return FSDP_OK;
}

static int put_meta(json_t *root, const struct safetensors_meta *meta, size_t n,
                    const struct safetensors_report *report)
{
    const struct safetensors_meta **pairs;
    json_t *object;
    int status;

    if (n == 0) {
        return FSDP_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (!meta[i].key || !meta[i].value) {
            return safetensors_refuse(report, FSDP_ERR_INVALID,
                                      "a metadata key or value is NULL");
        }
    }
    object = json_object();
    if (json_object_set_new(root, SAFETENSORS_METADATA, object) != 0) {
        return refuse_memory(report);
    }
    pairs = calloc(n, sizeof(struct safetensors_meta *));
    if (!pairs) {
        return refuse_memory(report);
    }
    for (size_t i = 0; i < n; i++) {
        pairs[i] = &meta[i];
    }
    qsort(pairs, n, sizeof(struct safetensors_meta *), compare_pair);
    status = put_pairs(object, pairs, n, report);
    free(pairs);
    return status;
}

static json_t *make_entry(const struct safetensors_tensor *tensor,
                          uint64_t begin, uint64_t end)
{
    json_t *const shape = json_array();

    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        if (json_array_append_new(
                shape, json_integer((json_int_t)tensor->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    /* A NULL among the values makes the whole NULL, and frees the rest. */
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensor->dtype, "shape",
                     shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static int put_entries(json_t *root, struct safetensors_plan *plan,
                       const struct safetensors_report *report)
{
    uint64_t begin = 0;

    for (size_t i = 0; i < plan->n; i++) {
        const struct safetensors_tensor *const tensor = plan->slots[i].tensor;
        uint64_t end;

        if (json_object_get(root, tensor->name)) {
            return safetensors_refuse(report, FSDP_ERR_INVALID,
                                      TENSOR "is given twice", tensor->name);
        }
        if (__builtin_add_overflow(begin, tensor->bytes, &end) ||
            end > INT64_MAX) {
            return safetensors_refuse(report, FSDP_ERR_INVALID,
                                      TENSOR "ends past 2^63 bytes",
                                      tensor->name);
        }
        if (json_object_set_new(root, tensor->name,
                                make_entry(tensor, begin, end)) != 0) {
            return refuse_memory(report);
        }
        begin = end;
    }
    plan->data_bytes = begin;
    return FSDP_OK;
}

/*
 * The head is the length of the padded JSON, the JSON, and spaces.  The buffer
 * is ours because json_dumps(), short of memory to grow its own, leaves out a
 * part of the text and says nothing.
 */
static int plan_head(struct safetensors_plan *plan, const json_t *root,
                     const struct safetensors_report *report)
{
    const size_t used = json_dumpb(root, NULL, 0, JSON_COMPACT);
    const size_t padded = (used + 7) / 8 * 8;

    if (used == 0) {
        return refuse_memory(report);
    }
    if (padded > SAFETENSORS_HEADER_MAX) {
        return safetensors_refuse(report, FSDP_ERR_INVALID,
                                  "a header of %zu bytes, at most %d expected",
                                  padded, SAFETENSORS_HEADER_MAX);
    }
    plan->head_bytes = SAFETENSORS_LENGTH_BYTES + padded;
    plan->head = malloc(plan->head_bytes);
    if (!plan->head) {
        return refuse_memory(report);
    }
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) {
        plan->head[i] = (char)(padded >> (8 * i) & 0xff);
    }
    memset(plan->head + SAFETENSORS_LENGTH_BYTES, ' ', padded);
    if (json_dumpb(root, plan->head + SAFETENSORS_LENGTH_BYTES, padded,
                   JSON_COMPACT) != used) {
        return refuse_memory(report);
    }
    return FSDP_OK;
}

int safetensors_plan_make(struct safetensors_plan *plan,
                          const struct safetensors_tensor *t, size_t n,
                          const struct safetensors_meta *meta, size_t n_meta,
                          const struct safetensors_report *report)
{
    json_t *root;
    int status;

    *plan = (struct safetensors_plan){0};
    status = plan_slots(plan, t, n, report);
    if (status != FSDP_OK) {
        return status;
    }
    root = json_object();
    if (!root) {
        return refuse_memory(report);
    }
    /* Jansson writes the members of an object in the order of insertion. */
    status = put_meta(root, meta, n_meta, report);
    if (status == FSDP_OK) {
        status = put_entries(root, plan, report);
    }
    if (status == FSDP_OK) {
        status = plan_head(plan, root, report);
    }
    json_decref(root);
    return status;
}

void safetensors_plan_free(struct safetensors_plan *plan)
{
    free(plan->slots);
    free(plan->head);
    *plan = (struct safetensors_plan){0};
}
