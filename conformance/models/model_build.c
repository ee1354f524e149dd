/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_build.c - modules, parameters and buffers as they are added, and what
 * is checked about each of them.
 */
#include "model_build_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int model_build_fail(struct model_build *b, int status, const char *format, ...)
{
    va_list arguments;

    if (b->status == FSDP_OK) {
        va_start(arguments, format);
        vsnprintf(b->message, sizeof(b->message), format, arguments);
        va_end(arguments);
        b->status = status;
    }
    return b->status;
}

void *model_build_alloc(struct model_build *b, size_t n, size_t bytes)
{
    struct build_chunk *chunk = NULL;

    if (bytes == 0 || n <= (SIZE_MAX - sizeof(*chunk)) / bytes) {
        chunk = calloc(1, sizeof(*chunk) + n * bytes);
    }
    if (!chunk) {
        model_build_fail(b, FSDP_ERR_NOMEM,
                         "no memory for the model's description");
        return NULL;
    }
    chunk->next = b->chunks;
    b->chunks = chunk;
    return chunk->data;
}

const char *model_build_string(struct model_build *b, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = model_build_alloc(b, n, 1);

    if (copy) {
        memcpy(copy, text, n);
    }
    return copy;
}

struct model_build *model_build_create(void)
{
    struct model_build *b = calloc(1, sizeof(*b));

    if (b) {
        b->modules.last = &b->modules.first;
        b->parameters.last = &b->parameters.first;
        b->buffers.last = &b->buffers.first;
    }
    return b;
}

void model_build_destroy(struct model_build *b)
{
    struct build_chunk *next;

    if (!b) {
        return;
    }
    for (struct build_chunk *chunk = b->chunks; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(b);
}

const char *model_build_message(const struct model_build *b)
{
    return b->message;
}

static const struct build_node *build_find(const struct build_list *list,
                                           const char *name)
{
    const struct build_node *node = list->first;

    while (node && strcmp(node->name, name) != 0) {
        node = node->next;
    }
    return node;
}

/* Copies *node to the end of a list; its index, or a negative status. */
static int32_t build_append(struct model_build *b, struct build_list *list,
                            const struct build_node *node)
{
    struct build_node *copy;

    if (list->n >= INT32_MAX) {
        return model_build_fail(b, FSDP_ERR_INVALID, "%s: too many",
                                node->name);
    }
    copy = model_build_alloc(b, 1, sizeof(*copy));
    if (!copy) {
        return b->status;
    }
    *copy = *node;
    copy->next = NULL;
    copy->name = model_build_string(b, node->name);
    if (node->class_name) {
        copy->class_name = model_build_string(b, node->class_name);
    }
    if (b->status != FSDP_OK) {
        return b->status;
    }
    *list->last = copy;
    list->last = &copy->next;
    return (int32_t)list->n++;
}

int model_build_open(struct model_build *b, const char *name)
{
    if (b->status == FSDP_OK && b->finished) {
        return model_build_fail(b, FSDP_ERR_INVALID,
                                "%s: the model is finished",
                                name ? name : "(no name)");
    }
    if (b->status == FSDP_OK && !name) {
        return model_build_fail(b, FSDP_ERR_INVALID, "a name is missing");
    }
    return b->status;
}

int32_t model_build_module(struct model_build *b, const char *name,
                           const char *class_name, int32_t parent)
{
    const struct build_node node = {
        .name = name, .class_name = class_name, .owner = parent, .alias = -1};

    FSDP_TRY(model_build_open(b, name));
    if (!class_name) {
        return model_build_fail(b, FSDP_ERR_INVALID, "module %s has no class",
                                name);
    }
    if (build_find(&b->modules, name)) {
        return model_build_fail(b, FSDP_ERR_INVALID, "module %s: a second one",
                                name);
    }
    if (b->modules.n == 0 ? parent != -1
                          : parent < 0 || (uint32_t)parent >= b->modules.n) {
        return model_build_fail(
            b, FSDP_ERR_INVALID,
            "module %s: parent %d is none of the %u before it", name,
            (int)parent, (unsigned)b->modules.n);
    }
    return build_append(b, &b->modules, &node);
}

/* Parameters and buffers share the names of a checkpoint. */
static int32_t build_tensor(struct model_build *b, struct build_list *list,
                            const struct build_node *node)
{
    uint64_t numel = 1;
    uint64_t bytes = fsdp_dtype_bytes(node->dtype);

    if (node->owner < 0 || (uint32_t)node->owner >= b->modules.n) {
        return model_build_fail(b, FSDP_ERR_INVALID,
                                "%s: there is no module %d", node->name,
                                (int)node->owner);
    }
    if (build_find(&b->parameters, node->name) ||
        build_find(&b->buffers, node->name)) {
        return model_build_fail(b, FSDP_ERR_INVALID, "%s: a second one",
                                node->name);
    }
    if (bytes == 0) {
        return model_build_fail(b, FSDP_ERR_INVALID, "%s: %u is no dtype",
                                node->name, (unsigned)node->dtype);
    }
    for (uint32_t d = 0; d < node->n_dims; d++) {
        /* Extents beside a 0 must not overflow either: an engine may multiply
         * them. */
        if (node->shape[d] != 0 && numel > INT64_MAX / bytes / node->shape[d]) {
            return model_build_fail(b, FSDP_ERR_INVALID, "%s: too large",
                                    node->name);
        }
        numel *= node->shape[d] != 0 ? node->shape[d] : 1;
    }
    return build_append(b, list, node);
}

int32_t model_build_parameter(struct model_build *b, const char *name,
                              int32_t module, uint32_t dtype, uint32_t flags,
                              uint32_t n_dims, const uint64_t *shape)
{
    struct build_node node = {.name = name,
                              .owner = module,
                              .alias = -1,
                              .dtype = dtype,
                              .flags = flags,
                              .n_dims = n_dims};

    FSDP_TRY(model_build_open(b, name));
    if (n_dims > FSDP_MAX_DIMS || (n_dims > 0 && !shape)) {
        return model_build_fail(b, FSDP_ERR_INVALID, "%s: %u dimensions", name,
                                (unsigned)n_dims);
    }
    for (uint32_t d = 0; d < n_dims; d++) {
        node.shape[d] = shape[d];
    }
    return build_tensor(b, &b->parameters, &node);
}

int32_t model_build_tied(struct model_build *b, const char *name,
                         int32_t module, int32_t original)
{
    const struct build_node *other;
    struct build_node node;

    FSDP_TRY(model_build_open(b, name));
    if (original < 0 || (uint32_t)original >= b->parameters.n) {
        return model_build_fail(b, FSDP_ERR_INVALID,
                                "%s: there is no parameter %d", name,
                                (int)original);
    }
    other = b->parameters.first;
    for (int32_t i = 0; i < original; i++) {
        other = other->next;
    }
    if (other->alias >= 0) {
        return model_build_fail(b, FSDP_ERR_INVALID, "%s: %s is tied itself",
                                name, other->name);
    }
    node = *other;
    node.name = name;
    node.owner = module;
    node.alias = original;
    return build_tensor(b, &b->parameters, &node);
}

int32_t model_build_buffer(struct model_build *b, const char *name,
                           int32_t module, uint32_t dtype, uint32_t flags,
                           uint64_t numel)
{
    const struct build_node node = {.name = name,
                                    .owner = module,
                                    .alias = -1,
                                    .dtype = dtype,
                                    .flags = flags,
                                    .n_dims = 1,
                                    .shape = {numel}};

    FSDP_TRY(model_build_open(b, name));
    return build_tensor(b, &b->buffers, &node);
}
