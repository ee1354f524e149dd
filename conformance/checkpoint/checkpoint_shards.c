/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_shards.c - the sharded form: what one rank owns, in separate files
 * that PyTorch's distributed checkpoint can read. Its form has boxes of
 * tensors, and each file only one box of a tensor; a run of a flat parameter is
 * up to 2 n_dims - 1 boxes, the largest of which goes into the first file.
 */
#include "checkpoint_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A box, and the slice that it is part of; whole entries are numbered behind
 * the slices. */
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
    const struct checkpoint_source *from = x->source;

    x->chunk =
        calloc((size_t)from->n * CHECKPOINT_MAX_BOXES + from->n_whole + 1,
               sizeof(*x->chunk));
    if (!x->chunk) {
        return checkpoint_no_memory(why);
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
    for (uint32_t i = 0; i < from->n_whole; i++) {
        const uint32_t entry = from->whole[i].entry;
        const uint64_t n = x->table->entry[entry].numel;
        if (n > 0 && x->table->entry[entry].name) {
            x->chunk[x->n++] =
                (struct chunk){entry, from->n + i, 0, {.shape = {n}, .n = n}};
        }
    }
    qsort(x->chunk, x->n, sizeof(*x->chunk), compare_chunk);
    for (uint32_t i = 0; i < x->n; i++) {
        bool more = i > 0 && x->chunk[i - 1].entry == x->chunk[i].entry;
        x->chunk[i].file = more ? x->chunk[i - 1].file + 1 : 0;
        if (x->chunk[i].file >= x->files) {
            x->files = x->chunk[i].file + 1;
        }
    }
    return FSDP_OK;
}

char *checkpoint_sharding_info(const struct safetensors_tensor *t, uint32_t n,
                               const struct checkpoint_box *const *box)
{
    json_t *all = json_object();
    size_t bytes;
    char *text = NULL;

    for (uint32_t i = 0; all && i < n; i++) {
        json_t *offsets = json_array();
        for (uint32_t d = 0; d < t[i].n_dims; d++) {
            uint64_t at = box ? box[i]->offset[d] : 0;
            (void)json_array_append_new(offsets, json_integer((json_int_t)at));
        }
        if (json_array_size(offsets) != t[i].n_dims ||
            json_object_set_new(all, t[i].name,
                                json_pack("{s:O}", "saved_offsets", offsets)) !=
                0) {
            json_decref(all);
            all = NULL;
        }
        json_decref(offsets);
    }
    bytes = all ? json_dumpb(all, NULL, 0, JSON_COMPACT | JSON_SORT_KEYS) : 0;
    text = bytes ? malloc(bytes + 1) : NULL;
    if (text) {
        (void)json_dumpb(all, text, bytes, JSON_COMPACT | JSON_SORT_KEYS);
        text[bytes] = '\0';
    }
    json_decref(all);
    return text;
}

static int add_chunk(struct shards *x, const struct chunk *c,
                     struct checkpoint_stream *stream, char *why)
{
    uint64_t from;

    if (c->slice >= x->source->n) {
        return checkpoint_stream_add(
            stream, x->source->whole[c->slice - x->source->n].data,
            c->box.n * checkpoint_element_bytes(&x->table->entry[c->entry]),
            why);
    }
    from = c->box.first - x->source->slice[c->slice].first;
    for (uint64_t done = 0; done < c->box.n;) {
        size_t room;
        /* Heads are multiples of 8 bytes, and wider elements come first: floats
         * are aligned. */
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

/* The tensors of a file of this rank, their boxes, and which chunks they are.
 */
struct planned {
    struct safetensors_tensor *tensor;
    const struct checkpoint_box **box;
    uint32_t *chunk_of;
    uint32_t n;
};

static int plan_file(const struct shards *x, uint32_t file, struct planned *out,
                     char *why)
{
    size_t room = x->n + (size_t)1;

    out->tensor = calloc(room, sizeof(*out->tensor));
    out->box = calloc(room, sizeof(const struct checkpoint_box *));
    out->chunk_of = calloc(room, sizeof(*out->chunk_of));
    if (!out->tensor || !out->box || !out->chunk_of) {
        return checkpoint_no_memory(why);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        const struct chunk *c = &x->chunk[i];
        const struct checkpoint_entry *e = &x->table->entry[c->entry];
        struct safetensors_tensor *t = &out->tensor[out->n];
        if (c->file != file) {
            continue;
        }
        *t = (struct safetensors_tensor){
            .name = e->name,
            .dtype = checkpoint_dtype_name(e->dtype),
            .n_dims = e->n_dims,
            .data = x, /* the data are written later */
            .bytes = c->box.n * checkpoint_element_bytes(e)};
        memcpy(t->shape, c->box.shape, sizeof(c->box.shape));
        out->box[out->n] = &c->box;
        out->chunk_of[out->n++] = i;
    }
    return FSDP_OK;
}

static int write_file(struct shards *x, uint32_t file, uint32_t shard,
                      int directory, struct checkpoint_file *out, char *why)
{
    char name[CHECKPOINT_FILE_NAME_BYTES];
    const struct safetensors_report report = {name, why, CHECKPOINT_WHY_BYTES};
    struct safetensors_plan plan = {0};
    struct planned p = {0};
    int status = plan_file(x, file, &p, why);
    char *info = status == FSDP_OK
                     ? checkpoint_sharding_info(p.tensor, p.n, p.box)
                     : NULL;
    const struct safetensors_meta meta[] = {
        {CHECKPOINT_DCP_INFO, info}, {"DCP_VERSION", "1.0"}, {"format", "pt"}};

    snprintf(name, sizeof(name), "shard-%05u-model-%05u-of-%05u.safetensors",
             shard + 1, file + 1, x->files);
    if (!info) {
        status = checkpoint_no_memory(why);
    }
    if (status == FSDP_OK) {
        status = safetensors_plan_make(&plan, p.tensor, p.n, meta, 3, &report);
    }
    if (status == FSDP_OK && p.tensor && p.chunk_of) {
        status = write_planned(x, &plan, p.tensor, p.chunk_of, directory, name,
                               out, why);
    }
    safetensors_plan_free(&plan);
    free(p.chunk_of);
    free(p.box);
    free(p.tensor);
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
