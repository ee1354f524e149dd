/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_state.c - writes what is saved beside the tensors: a rank's own
 * state of the caller's, and on rank 0 the step and the running products.
 */
#include "checkpoint_saving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int checkpoint_add_extra(struct checkpoint_saving *s, uint32_t rank,
                         const char *name, const void *data, uint64_t bytes)
{
    struct checkpoint_saved_extra *x =
        realloc(s->extra, (s->n_extras + 1u) * sizeof(*x));

    if (!x) {
        return checkpoint_no_memory(s->why);
    }
    s->extra = x;
    x += s->n_extras;
    x->name = malloc(strlen(name) + 24);
    x->data = malloc(bytes + 1);
    x->bytes = bytes;
    if (!x->name || !x->data) {
        free(x->name);
        free(x->data);
        return checkpoint_no_memory(s->why);
    }
    sprintf(x->name, "extra.%05u.%s", rank, name);
    if (bytes > 0) {
        memcpy(x->data, data, bytes);
    }
    s->n_extras++;
    return FSDP_OK;
}

int checkpoint_add_extras(struct checkpoint_saving *s,
                          const struct fsdp_save *save)
{
    for (uint32_t i = 0; i < save->n_extra; i++) {
        if (!save->extra_name || !save->extra_name[i] || !save->extra_bytes ||
            !save->extra_data ||
            (!save->extra_data[i] && save->extra_bytes[i] > 0)) {
            return checkpoint_refuse(s->why, FSDP_ERR_INVALID,
                                     "the caller's own state %u has no name, "
                                     "no data or no length",
                                     i);
        }
        FSDP_TRY(checkpoint_add_extra(s, s->rank, save->extra_name[i],
                                      save->extra_data[i],
                                      save->extra_bytes[i]));
    }
    return FSDP_OK;
}

int checkpoint_add_own_steps(struct checkpoint_saving *s,
                             const struct checkpoint_request *r)
{
    s->own = calloc(r->n_own + (size_t)1, sizeof(*s->own));
    for (uint32_t i = 0; s->own && i < r->n_own; i++) {
        const size_t room =
            sizeof(CHECKPOINT_OWN_STEP) + strlen(r->own[i].parameter);
        char *name = malloc(room);

        if (!name) {
            return checkpoint_no_memory(s->why);
        }
        snprintf(name, room, CHECKPOINT_OWN_STEP "%s", r->own[i].parameter);
        s->own[s->n_own++] =
            (struct checkpoint_saved_steps){name, r->own[i].step};
    }
    return s->own ? FSDP_OK : checkpoint_no_memory(s->why);
}

void checkpoint_drop_own_steps(struct checkpoint_saving *s)
{
    for (uint32_t i = 0; i < s->n_own; i++) {
        free(s->own[i].name);
    }
    free(s->own);
}

/* Lists the tensors of the file; the caller frees the list. NULL: out of
 * memory. */
static struct safetensors_tensor *list(struct checkpoint_saving *s, uint32_t *n)
{
    struct safetensors_tensor *t =
        calloc((size_t)s->n_extras + s->n_own + 4, sizeof(*t));

    *n = 0;
    if (!t) {
        return NULL;
    }
    if (s->rank == 0) {
        t[(*n)++] = (struct safetensors_tensor){.name = "optim.step",
                                                .dtype = "I64",
                                                .data = &s->state.step,
                                                .bytes = 8};
        t[(*n)++] = (struct safetensors_tensor){.name = "optim.beta1_power",
                                                .dtype = "F32",
                                                .data = &s->state.power[0],
                                                .bytes = 4};
        t[(*n)++] = (struct safetensors_tensor){.name = "optim.beta2_power",
                                                .dtype = "F32",
                                                .data = &s->state.power[1],
                                                .bytes = 4};
    }
    for (uint32_t i = 0; s->rank == 0 && i < s->n_own; i++) {
        t[(*n)++] = (struct safetensors_tensor){.name = s->own[i].name,
                                                .dtype = "I64",
                                                .data = &s->own[i].step,
                                                .bytes = 8};
    }
    for (uint32_t i = 0; i < s->n_extras; i++) {
        t[(*n)++] = (struct safetensors_tensor){.name = s->extra[i].name,
                                                .dtype = "U8",
                                                .n_dims = 1,
                                                .shape = {s->extra[i].bytes},
                                                .data = s->extra[i].data,
                                                .bytes = s->extra[i].bytes};
    }
    return t;
}

static int write_planned(struct checkpoint_saving *s, const char *name,
                         const struct safetensors_plan *plan)
{
    struct checkpoint_stream stream;
    int status =
        checkpoint_stream_open(&stream, s->place.directory, name, s->why);

    if (status == FSDP_OK) {
        status = checkpoint_stream_add(&stream, plan->head, plan->head_bytes,
                                       s->why);
    }
    for (size_t i = 0; status == FSDP_OK && i < plan->n; i++) {
        status = checkpoint_stream_add(&stream, plan->slots[i].tensor->data,
                                       plan->slots[i].tensor->bytes, s->why);
    }
    status =
        checkpoint_stream_close(&stream, status, &s->file[s->n_files], s->why);
    s->n_files += status == FSDP_OK;
    return status;
}

int checkpoint_write_state(struct checkpoint_saving *s)
{
    char name[CHECKPOINT_FILE_NAME_BYTES];
    const struct safetensors_report report = {name, s->why,
                                              CHECKPOINT_WHY_BYTES};
    struct safetensors_plan plan = {0};
    uint32_t n = 0;
    struct safetensors_tensor *t = list(s, &n);
    /* PyTorch's consolidation expects this in every file that is beside a
     * shard. */
    bool shards = s->form != FSDP_SAVE_FULL;
    char *info = t && shards ? checkpoint_sharding_info(t, n, NULL) : NULL;
    const struct safetensors_meta meta[] = {
        {"format", "pt"}, {CHECKPOINT_DCP_INFO, info}, {"DCP_VERSION", "1.0"}};
    int status =
        t && (info || !shards) ? FSDP_OK : checkpoint_no_memory(s->why);

    snprintf(name, sizeof(name), "state-%05u.safetensors", s->rank + 1);
    if (status == FSDP_OK) {
        status =
            safetensors_plan_make(&plan, t, n, meta, shards ? 3 : 1, &report);
    }
    if (status == FSDP_OK) {
        status = write_planned(s, name, &plan);
    }
    safetensors_plan_free(&plan);
    free(info);
    free(t);
    return status;
}
