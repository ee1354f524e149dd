/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_save.c - a checkpoint from the place that is made for it to the
 * name by which it is found. What is collective is at the beginning and at the
 * end; in between each rank writes by itself, on any thread.
 */
#include "checkpoint_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OWN_FILES = CHECKPOINT_MAX_BOXES + 2,
    /* What a rank tells of its files at a time, within 4096 bytes. */
    TOLD_FILES = 32,
};
#define FILE_BYTES_MOST ((uint64_t)5000000000)

struct extra {
    char *name; /* of the tensor: "extra.RRRRR.NAME" */
    unsigned char *data;
    uint64_t bytes;
};

struct checkpoint_saving {
    struct checkpoint_place place;
    const struct checkpoint_table *table;
    struct checkpoint_source source;
    struct checkpoint_manifest manifest; /* but for tensors and files */
    struct checkpoint_state state;
    struct checkpoint_full full;
    uint32_t form, rank, world, shard;
    bool alone; /* rank 0 writes everything */
    bool owner; /* of the first replica */
    struct extra *extra;
    uint32_t n_extras;
    struct checkpoint_file *file; /* that this rank wrote */
    uint32_t n_files;
    int status;
    char why[CHECKPOINT_WHY_BYTES];
};

static int out_of_memory(char *why)
{
    return checkpoint_refuse(why, FSDP_ERR_NOMEM, "out of memory");
}

/* ---- The beginning ------------------------------------------------------ */

int checkpoint_add_extra(struct checkpoint_saving *s, uint32_t rank,
                         const char *name, const void *data, uint64_t bytes)
{
    struct extra *x = realloc(s->extra, (s->n_extras + 1u) * sizeof *x);

    if (!x) {
        return out_of_memory(s->why);
    }
    s->extra = x;
    x += s->n_extras;
    x->name = malloc(strlen(name) + 24);
    x->data = malloc(bytes + 1);
    x->bytes = bytes;
    if (!x->name || !x->data) {
        free(x->name);
        free(x->data);
        return out_of_memory(s->why);
    }
    (void)sprintf(x->name, "extra.%05u.%s", rank, name);
    if (bytes > 0) {
        memcpy(x->data, data, bytes);
    }
    s->n_extras++;
    return FSDP_OK;
}

static int add_extras(struct checkpoint_saving *s, const struct fsdp_save *save)
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

static int prepare(struct checkpoint_saving *s,
                   const struct checkpoint_request *r)
{
    static const char *const form[] = {"full", "sharded", "local"};
    const struct fsdp_save *save = r->save;
    struct checkpoint_manifest *m = &s->manifest;

    if (save->form > FSDP_SAVE_LOCAL || !save->directory ||
        r->env->world > CHECKPOINT_MAX_WORLD) {
        return checkpoint_refuse(s->why, FSDP_ERR_INVALID,
                                 "a save has a form of 0 to %d, a directory "
                                 "and a world of up to %d ranks",
                                 FSDP_SAVE_LOCAL, CHECKPOINT_MAX_WORLD);
    }
    s->table = r->table;
    s->source = r->source;
    s->state = r->state;
    s->form = save->form;
    s->rank = r->env->rank;
    s->world = r->env->world;
    s->shard = r->shards ? s->rank % r->shards : 0;
    s->owner = s->rank < r->shards;
    s->alone = save->form == FSDP_SAVE_FULL && save->rank0_only;
    m->world = r->world;
    m->shards = r->shards;
    m->replicas = r->replicas;
    (void)snprintf(m->form, sizeof m->form, "%s", form[save->form]);
    (void)snprintf(m->layout, sizeof m->layout, "%s", r->layout);
    (void)snprintf(m->optimizer, sizeof m->optimizer, "%s", r->optimizer);
    FSDP_TRY(add_extras(s, save));
    if (save->form == FSDP_SAVE_FULL) {
        uint64_t most = save->size > offsetof(struct fsdp_save, file_bytes)
                            ? save->file_bytes
                            : 0;
        FSDP_TRY(checkpoint_full_plan(r->table, most ? most : FILE_BYTES_MOST,
                                      &s->full, s->why));
    }
    s->file = calloc(s->full.n + (size_t)OWN_FILES, sizeof *s->file);
    return s->file ? FSDP_OK : out_of_memory(s->why);
}

/* Rank 0 makes the place and tells the others its number. */
static int make_place(const struct fsdp_env *env, struct checkpoint_saving *s,
                      const char *directory)
{
    uint64_t all[CHECKPOINT_MAX_WORLD];
    int status = s->status;

    if (s->rank == 0 && status == FSDP_OK) {
        status = checkpoint_place_make(&s->place, directory, s->why);
    }
    if (s->rank == 0 && status == FSDP_OK && s->form == FSDP_SAVE_FULL) {
        status = checkpoint_full_create(&s->full, s->place.directory, s->why);
    }
    FSDP_TRY(checkpoint_agree(env, "checkpoint.save_begin", status, s->why));
    FSDP_TRY(env->exchange(env->exchange_self, &s->place.number,
                           sizeof s->place.number, all));
    if (s->rank != 0 && !s->alone) {
        status = checkpoint_place_join(&s->place, directory, all[0], s->why);
    }
    return checkpoint_agree(env, "checkpoint.save_begin", status, s->why);
}

int checkpoint_begin(const struct checkpoint_request *request,
                     struct checkpoint_saving **out)
{
    struct checkpoint_saving *s = calloc(1, sizeof *s);
    char why[CHECKPOINT_WHY_BYTES] = "out of memory";
    int status;

    *out = NULL;
    if (!s) {
        return checkpoint_agree(request->env, "checkpoint.save_begin",
                                FSDP_ERR_NOMEM, why);
    }
    s->place.parent = s->place.directory = -1;
    s->status = prepare(s, request);
    status = make_place(request->env, s, request->save->directory);
    if (status != FSDP_OK) {
        if (s->rank == 0) {
            checkpoint_place_remove(&s->place);
        }
        checkpoint_drop(s);
        return status;
    }
    s->status = FSDP_OK;
    *out = s;
    return FSDP_OK;
}

/* ---- What each rank writes ---------------------------------------------- */

int checkpoint_put(struct checkpoint_saving *s, uint32_t entry, uint64_t first,
                   uint64_t n, const float *data)
{
    const struct checkpoint_full_file *f;
    int fd;

    if (s->status != FSDP_OK || n == 0) {
        return s->status;
    }
    f = &s->full.file[s->full.file_of[entry]];
    fd = openat(s->place.directory, f->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    s->status =
        fd < 0 ? checkpoint_refuse_system(s->why, f->name, "cannot open")
               : checkpoint_pwrite(fd, f->name,
                                   s->full.at[entry] + first * sizeof *data,
                                   data, n * sizeof *data, s->why);
    if (fd >= 0 && close(fd) != 0 && s->status == FSDP_OK) {
        s->status = checkpoint_refuse_system(s->why, f->name, "cannot close");
    }
    return s->status;
}

static void put_slices(struct checkpoint_saving *s)
{
    float *buffer = malloc(CHECKPOINT_BUFFER * sizeof *buffer);

    if (!buffer) {
        s->status = out_of_memory(s->why);
    }
    for (uint32_t i = 0; s->status == FSDP_OK && i < s->source.n; i++) {
        const struct checkpoint_slice *x = &s->source.slice[i];
        uint64_t n;
        if (!s->table->entry[x->entry].name) {
            continue;
        }
        for (uint64_t at = 0; s->status == FSDP_OK && at < x->n; at += n) {
            n = x->n - at < CHECKPOINT_BUFFER ? x->n - at : CHECKPOINT_BUFFER;
            s->status = s->source.read(s->source.context, i, at, n, buffer);
            if (s->status != FSDP_OK) {
                (void)checkpoint_refuse(s->why, s->status,
                                        "the device does not give a shard");
            } else {
                (void)checkpoint_put(s, x->entry, x->first + at, n, buffer);
            }
        }
    }
    free(buffer);
}

/* Every rank wrote to these files; whoever flushes one, flushes its own. */
static void flush_full(struct checkpoint_saving *s)
{
    for (uint32_t i = 0; s->status == FSDP_OK && i < s->full.n; i++) {
        const char *name = s->full.file[i].name;
        int fd =
            openat(s->place.directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fsync(fd) != 0) {
            s->status = checkpoint_refuse_system(s->why, name, "cannot flush");
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
}

/* state-RRRRR.safetensors: the caller's own; of rank 0 also the step. */
static int write_state(struct checkpoint_saving *s)
{
    static const struct safetensors_meta meta[] = {{"format", "pt"}};
    char name[CHECKPOINT_FILE_NAME_BYTES];
    const struct safetensors_report report = {name, s->why,
                                              CHECKPOINT_WHY_BYTES};
    struct safetensors_tensor *t = calloc(s->n_extras + (size_t)4, sizeof *t);
    struct checkpoint_stream stream;
    struct safetensors_plan plan = {0};
    uint32_t n = 0;
    int status;

    (void)snprintf(name, sizeof name, "state-%05u.safetensors", s->rank + 1);
    if (!t) {
        return out_of_memory(s->why);
    }
    if (s->rank == 0) {
        t[n++] = (struct safetensors_tensor){.name = "optim.step",
                                             .dtype = "I64",
                                             .data = &s->state.step,
                                             .bytes = 8};
        t[n++] = (struct safetensors_tensor){.name = "optim.beta1_power",
                                             .dtype = "F32",
                                             .data = &s->state.power[0],
                                             .bytes = 4};
        t[n++] = (struct safetensors_tensor){.name = "optim.beta2_power",
                                             .dtype = "F32",
                                             .data = &s->state.power[1],
                                             .bytes = 4};
    }
    for (uint32_t i = 0; i < s->n_extras; i++) {
        t[n++] = (struct safetensors_tensor){.name = s->extra[i].name,
                                             .dtype = "U8",
                                             .n_dims = 1,
                                             .shape = {s->extra[i].bytes},
                                             .data = s->extra[i].data,
                                             .bytes = s->extra[i].bytes};
    }
    status = safetensors_plan_make(&plan, t, n, meta, 1, &report);
    if (status == FSDP_OK) {
        status =
            checkpoint_stream_open(&stream, s->place.directory, name, s->why);
        if (status == FSDP_OK) {
            status = checkpoint_stream_add(&stream, plan.head, plan.head_bytes,
                                           s->why);
        }
        for (size_t i = 0; status == FSDP_OK && i < plan.n; i++) {
            status = checkpoint_stream_add(&stream, plan.slots[i].tensor->data,
                                           plan.slots[i].tensor->bytes, s->why);
        }
        status = checkpoint_stream_close(&stream, status, &s->file[s->n_files],
                                         s->why);
        s->n_files += status == FSDP_OK;
    }
    safetensors_plan_free(&plan);
    free(t);
    return status;
}

void checkpoint_write(struct checkpoint_saving *s)
{
    bool writes = !s->alone || s->rank == 0;

    if (s->status != FSDP_OK || !writes) {
        return;
    }
    if (s->form == FSDP_SAVE_FULL) {
        if (s->owner && !s->alone) {
            put_slices(s);
        }
        if (s->owner) {
            flush_full(s);
        }
    } else if (s->owner && s->source.n > 0) {
        s->status = checkpoint_write_shards(s->place.directory, s->table,
                                            &s->source, s->shard, s->file,
                                            OWN_FILES - 1, &s->n_files, s->why);
    }
    if (s->status == FSDP_OK && (s->rank == 0 || s->n_extras > 0)) {
        s->status = write_state(s);
    }
}

/* ---- The end ------------------------------------------------------------ */

/* All slices are in their places: each rank hashes its share of the files. */
static int hash_full(struct checkpoint_saving *s)
{
    uint32_t of = s->alone ? 1 : s->world;

    for (uint32_t i = 0; i < s->full.n && (!s->alone || s->rank == 0); i++) {
        if (i % of == s->rank) {
            FSDP_TRY(checkpoint_hash_file(s->place.directory,
                                          s->full.file[i].name,
                                          &s->file[s->n_files], s->why));
            s->n_files++;
        }
    }
    for (uint32_t which = 0; which < 2 && s->rank == 0; which++) {
        bool wrote;
        struct checkpoint_file index;
        FSDP_TRY(checkpoint_full_index(&s->full, s->table, s->place.directory,
                                       which, &wrote, &index, s->why));
        if (wrote) {
            struct checkpoint_file *more =
                realloc(s->file, (s->n_files + (size_t)2) * sizeof *more);
            if (!more) {
                return out_of_memory(s->why);
            }
            s->file = more;
            s->file[s->n_files++] = index;
        }
    }
    return FSDP_OK;
}

struct told {
    uint32_t left; /* files not told yet, these included */
    struct checkpoint_file file[TOLD_FILES];
};

/* Rank 0 learns of all files. Collective. */
static int tell_files(const struct fsdp_env *env, struct checkpoint_saving *s)
{
    struct told mine;
    struct told *all = calloc(s->world, sizeof *all);
    uint32_t told = 0;
    bool more = true;
    int status = all ? FSDP_OK : out_of_memory(s->why);

    status = checkpoint_agree(env, "checkpoint.save_wait", status, s->why);
    while (all && more && status == FSDP_OK) {
        memset(&mine, 0, sizeof mine);
        mine.left = s->n_files - told;
        for (uint32_t i = 0; i < TOLD_FILES && told < s->n_files; i++) {
            mine.file[i] = s->file[told++];
        }
        status = env->exchange(env->exchange_self, &mine, sizeof mine, all);
        more = false;
        for (uint32_t r = 0; status == FSDP_OK && r < s->world; r++) {
            struct checkpoint_manifest *m = &s->manifest;
            uint32_t n = all[r].left < TOLD_FILES ? all[r].left : TOLD_FILES;
            struct checkpoint_file *to =
                realloc(m->file, (m->n_files + n + (size_t)1) * sizeof *to);
            more = more || all[r].left > TOLD_FILES;
            if (!to) {
                s->status = out_of_memory(s->why); /* told after the loop */
                continue;
            }
            m->file = to;
            memcpy(m->file + m->n_files, all[r].file, n * sizeof *to);
            m->n_files += n;
        }
    }
    free(all);
    return status;
}

static int publish(struct checkpoint_saving *s)
{
    struct checkpoint_manifest m = s->manifest;
    struct checkpoint_stream stream;
    struct checkpoint_file ignored;
    size_t bytes = 0;
    char *text;
    int status;

    m.table = *s->table;
    text = checkpoint_manifest_text(&m, &bytes);
    if (!text) {
        return out_of_memory(s->why);
    }
    status = checkpoint_stream_open(&stream, s->place.directory,
                                    CHECKPOINT_MANIFEST, s->why);
    if (status == FSDP_OK) {
        status = checkpoint_stream_add(&stream, text, bytes, s->why);
    }
    status = checkpoint_stream_close(&stream, status, &ignored, s->why);
    free(text);
    return status == FSDP_OK ? checkpoint_place_publish(&s->place, s->why)
                             : status;
}

static int finish(const struct fsdp_env *env, struct checkpoint_saving *s)
{
    static const char where[] = "checkpoint.save_wait";

    FSDP_TRY(checkpoint_agree(env, where, s->status, s->why));
    if (s->form == FSDP_SAVE_FULL) {
        s->status = hash_full(s);
        FSDP_TRY(checkpoint_agree(env, where, s->status, s->why));
    }
    FSDP_TRY(tell_files(env, s));
    if (s->rank == 0 && s->status == FSDP_OK) {
        s->status = publish(s);
    }
    return checkpoint_agree(env, where, s->status, s->why);
}

int checkpoint_finish(const struct fsdp_env *env, struct checkpoint_saving *s)
{
    int status = finish(env, s);

    if (status != FSDP_OK && s->rank == 0) {
        checkpoint_place_remove(&s->place);
    }
    checkpoint_drop(s);
    return status;
}

void checkpoint_cancel(struct checkpoint_saving *s)
{
    checkpoint_place_remove(&s->place);
    checkpoint_drop(s);
}

void checkpoint_drop(struct checkpoint_saving *s)
{
    if (!s) {
        return;
    }
    checkpoint_place_close(&s->place);
    checkpoint_full_release(&s->full);
    for (uint32_t i = 0; i < s->n_extras; i++) {
        free(s->extra[i].name);
        free(s->extra[i].data);
    }
    free(s->extra);
    free(s->file);
    free(s->manifest.file);
    free(s);
}
