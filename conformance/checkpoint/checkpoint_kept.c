/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_kept.c - the state that the caller saved of its own, as a rank of
 * the same world or of another one gets it back.
 */
#include "checkpoint_opened.h"

#include <stdlib.h>
#include <string.h>

static int add_tensor(struct checkpoint_kept *k, const char *name,
                      uint64_t bytes, unsigned char **data)
{
    char **names = realloc(k->name, (k->n + (size_t)1) * sizeof(*names));
    unsigned char **all;
    uint64_t *sizes;

    if (!names) {
        return FSDP_ERR_NOMEM;
    }
    k->name = names;
    all = realloc(k->data, (k->n + (size_t)1) * sizeof(*all));
    if (!all) {
        return FSDP_ERR_NOMEM;
    }
    k->data = all;
    sizes = realloc(k->bytes, (k->n + (size_t)1) * sizeof(*sizes));
    if (!sizes) {
        return FSDP_ERR_NOMEM;
    }
    k->bytes = sizes;
    names[k->n] = strdup(name);
    all[k->n] = calloc(1, bytes + 1);
    sizes[k->n] = bytes;
    if (!names[k->n] || !all[k->n]) {
        free(names[k->n]);
        free(all[k->n]);
        return FSDP_ERR_NOMEM;
    }
    *data = all[k->n++];
    return FSDP_OK;
}

static int add_text(struct checkpoint_kept *k, const char *name,
                    const char *text)
{
    const size_t bytes = strlen(text); /* without its end */
    unsigned char *data;

    FSDP_TRY(add_tensor(k, name, bytes, &data));
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (unsigned char)text[i];
    }
    return FSDP_OK;
}

/* Keeps those items of a saved rank whose names are not there yet. */
static int keep_rank(struct checkpoint *c, uint32_t rank,
                     struct checkpoint_kept *out, char *why)
{
    struct checkpoint_extra x;

    for (uint32_t i = 0; checkpoint_extra_at(c, i, &x); i++) {
        const void *known;
        uint64_t bytes;
        unsigned char *data;
        if (x.rank != rank ||
            checkpoint_kept_find(out, x.name, &known, &bytes)) {
            continue;
        }
        if (add_tensor(out, x.name, x.bytes, &data) != FSDP_OK) {
            return checkpoint_no_memory(why);
        }
        FSDP_TRY(checkpoint_extra_read(c, i, data, why));
    }
    return FSDP_OK;
}

int checkpoint_keep(struct checkpoint *c, uint32_t rank, uint32_t world,
                    struct checkpoint_kept *out, char *why)
{
    int status = FSDP_OK;

    *out = (struct checkpoint_kept){0};
    if (add_text(out, "checkpoint.path", checkpoint_path(c)) != FSDP_OK ||
        add_text(out, "checkpoint.reason", checkpoint_reason(c)) != FSDP_OK ||
        add_text(out, "checkpoint.missing", c->missing ? c->missing : "") !=
            FSDP_OK ||
        add_text(out, "checkpoint.unexpected",
                 c->unexpected ? c->unexpected : "") != FSDP_OK) {
        status = checkpoint_no_memory(why);
    }
    if (status == FSDP_OK && checkpoint_manifest_of(c)->world == world) {
        status = keep_rank(c, rank, out, why);
    } else if (status == FSDP_OK) {
        status = keep_rank(c, 0, out, why);
    }
    if (status != FSDP_OK) {
        checkpoint_kept_release(out);
    }
    return status;
}

bool checkpoint_kept_find(const struct checkpoint_kept *kept, const char *name,
                          const void **data, uint64_t *bytes)
{
    for (uint32_t i = 0; i < kept->n; i++) {
        if (strcmp(kept->name[i], name) == 0) {
            *data = kept->data[i];
            *bytes = kept->bytes[i];
            return true;
        }
    }
    return false;
}

void checkpoint_kept_release(struct checkpoint_kept *kept)
{
    for (uint32_t i = 0; i < kept->n; i++) {
        free(kept->name[i]);
        free(kept->data[i]);
    }
    free(kept->name);
    free(kept->data);
    free(kept->bytes);
    *kept = (struct checkpoint_kept){0};
}
