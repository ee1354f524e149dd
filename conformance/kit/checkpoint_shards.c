/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_shards.c - the sharded form: what one rank owns, in files of its
 * own, so that PyTorch's distributed checkpoint reads them. Its form knows
 * boxes of tensors, one of each name in a file; a run of a flat parameter is
 * up to 2 n_dims - 1 boxes, the largest of which goes into the first file.
 */
#include "checkpoint_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A box, and the slice that it is part of. */
struct chunk {
    uint32_t entry, slice;
    uint32_t file; /* of this rank, from 0 */
    struct checkpoint_box box;
};

struct shards {
    const struct checkpoint_table *table;
    const struct checkpoint_source *source;
    struct chunk *chunk;
    uint32_t n, files;
};

static int compare_chunk(const void *a, const void *b)
{
    const struct chunk *x = a;
    const struct chunk *y = b;

    if (x->entry != y->entry) {
        return x->entry < y->entry ? -1 : 1;
    }
    if (x->box.n != y->box.n) {
        return x->box.n > y->box.n ? -1 : 1;
    }
    return x->box.first < y->box.first ? -1 : x->box.first > y->box.first;
}

/* Chunk k of its tensor, by size, goes into file k. */
static int make_chunks(struct shards *x, char *why)
{
    x->chunk = calloc((size_t)x->source->n * CHECKPOINT_MAX_BOXES + 1,
                      sizeof *x->chunk);
    if (!x->chunk) {
        return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < x->source->n; i++) {
        const struct checkpoint_slice *s = &x->source->slice[i];
        const struct checkpoint_entry *e = &x->table->entry[s->entry];
        struct checkpoint_box box[CHECKPOINT_MAX_BOXES];
        uint32_t n =
            e->name ? checkpoint_boxes(e->n_dims, e->shape, s->first, s->n, box)
                    : 0;
        for (uint32_t k = 0; k < n; k++) {
            x->chunk[x->n++] = (struct chunk){s->entry, i, 0, box[k]};
        }
    }
    qsort(x->chunk, x->n, sizeof *x->chunk, compare_chunk);
    for (uint32_t i = 0; i < x->n; i++) {
        bool more = i > 0 && x->chunk[i - 1].entry == x->chunk[i].entry;
        x->chunk[i].file = more ? x->chunk[i - 1].file + 1 : 0;
        if (x->chunk[i].file >= x->files) {
            x->files = x->chunk[i].file + 1;
        }
    }
    return FSDP_OK;
}

/* {"name":{"saved_offsets":[...]}, ...} for the chunks of one file. */
static char *sharding_info(const struct shards *x, uint32_t file)
{
    json_t *all = json_object();
    size_t n;
    char *text = NULL;

    for (uint32_t i = 0; all && i < x->n; i++) {
        const struct chunk *c = &x->chunk[i];
        const struct checkpoint_entry *e = &x->table->entry[c->entry];
        json_t *offsets;
        if (c->file != file) {
            continue;
        }
        offsets = json_array();
        for (uint32_t d = 0; d < e->n_dims; d++) {
            (void)json_array_append_new(
                offsets, json_integer((json_int_t)c->box.offset[d]));
        }
        if (json_array_size(offsets) != e->n_dims ||
            json_object_set_new(all, e->name,
                                json_pack("{s:O}", "saved_offsets", offsets)) !=
                0) {
            json_decref(all);
            all = NULL;
        }
        json_decref(offsets);
    }
    n = all ? json_dumpb(all, NULL, 0, JSON_COMPACT | JSON_SORT_KEYS) : 0;
    text = n ? malloc(n + 1) : NULL;
    if (text) {
        (void)json_dumpb(all, text, n, JSON_COMPACT | JSON_SORT_KEYS);
        text[n] = '\0';
    }
    json_decref(all);
    return text;
}

static int add_chunk(struct shards *x, const struct chunk *c,
                     struct checkpoint_stream *stream, char *why)
{
    uint64_t from = c->box.first - x->source->slice[c->slice].first;

    for (uint64_t done = 0; done < c->box.n;) {
        size_t room;
        /* Heads are multiples of 8 bytes: floats are aligned. */
        void *to = checkpoint_stream_room(stream, &room);
        uint64_t n = room / sizeof(float);
        int status;
        n = c->box.n - done < n ? c->box.n - done : n;
        status =
            x->source->read(x->source->context, c->slice, from + done, n, to);
        if (status != FSDP_OK) {
            return checkpoint_refuse(why, status,
                                     "the device does not give a shard");
        }
        FSDP_TRY(checkpoint_stream_filled(stream, n * sizeof(float), why));
        done += n;
    }
    return FSDP_OK;
}

static int write_planned(struct shards *x, const struct safetensors_plan *plan,
                         const struct safetensors_tensor *tensor,
                         const uint32_t *chunk_of, int directory,
                         const char *name, struct checkpoint_file *out,
                         char *why)
{
    struct checkpoint_stream stream;
    int status = checkpoint_stream_open(&stream, directory, name, why);

    if (status == FSDP_OK) {
        status =
            checkpoint_stream_add(&stream, plan->head, plan->head_bytes, why);
    }
    for (size_t i = 0; status == FSDP_OK && i < plan->n; i++) {
        size_t k = (size_t)(plan->slots[i].tensor - tensor);
        status = add_chunk(x, &x->chunk[chunk_of[k]], &stream, why);
    }
    return checkpoint_stream_close(&stream, status, out, why);
}

static int write_file(struct shards *x, uint32_t file, uint32_t shard,
                      int directory, struct checkpoint_file *out, char *why)
{
    char name[CHECKPOINT_FILE_NAME_BYTES];
    char *info = sharding_info(x, file);
    const struct safetensors_meta meta[] = {
        {CHECKPOINT_DCP_INFO, info}, {"DCP_VERSION", "1.0"}, {"format", "pt"}};
    struct safetensors_tensor *t = calloc(x->n + (size_t)1, sizeof *t);
    uint32_t *chunk_of = calloc(x->n + (size_t)1, sizeof *chunk_of);
    const struct safetensors_report report = {name, why, CHECKPOINT_WHY_BYTES};
    struct safetensors_plan plan = {0};
    int status = FSDP_OK;
    uint32_t n = 0;

    (void)snprintf(name, sizeof name,
                   "shard-%05u-model-%05u-of-%05u.safetensors", shard + 1,
                   file + 1, x->files);
    if (!info || !t || !chunk_of) {
        status = checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; status == FSDP_OK && t && chunk_of && i < x->n; i++) {
        const struct chunk *c = &x->chunk[i];
        if (c->file == file) {
            t[n] = (struct safetensors_tensor){
                .name = x->table->entry[c->entry].name,
                .dtype = "F32",
                .n_dims = x->table->entry[c->entry].n_dims,
                .data = x, /* it comes from the source */
                .bytes = c->box.n * sizeof(float)};
            memcpy(t[n].shape, c->box.shape, sizeof c->box.shape);
            chunk_of[n++] = i;
        }
    }
    if (status == FSDP_OK) {
        status = safetensors_plan_make(&plan, t, n, meta, 3, &report);
    }
    if (status == FSDP_OK && t && chunk_of) {
        status =
            write_planned(x, &plan, t, chunk_of, directory, name, out, why);
    }
    safetensors_plan_free(&plan);
    free(chunk_of);
    free(t);
    free(info);
    return status;
}

int checkpoint_write_shards(int directory, const struct checkpoint_table *table,
                            const struct checkpoint_source *source,
                            uint32_t shard, struct checkpoint_file *file,
                            uint32_t room, uint32_t *n, char *why)
{
    struct shards x = {.table = table, .source = source};
    int status = make_chunks(&x, why);

    if (status == FSDP_OK && x.files > room - *n) {
        status = checkpoint_refuse(why, FSDP_ERR_UNSUPPORTED,
                                   "a rank owns a tensor in %u boxes, up to "
                                   "%u are served",
                                   x.files, room - *n);
    }
    for (uint32_t i = 0; status == FSDP_OK && i < x.files; i++) {
        status = write_file(&x, i, shard, directory, &file[*n], why);
        *n += status == FSDP_OK;
    }
    free(x.chunk);
    return status;
}
