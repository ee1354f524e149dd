/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_save.c - a save from the place that is made for it to the last
 * file of a rank. Collective calls are at the beginning and at the end
 * (checkpoint_publish.c); in between each rank writes by itself, on any thread.
 */
#include "checkpoint_saving.h"

#include <fsdp/arith/cast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_FILES = CHECKPOINT_MAX_BOXES + 2
};
#define FILE_BYTES_MOST ((uint64_t)5000000000)

/* Copies the whole entries, as the caller may change them once the save has
 * begun. */
static int copy_wholes(struct checkpoint_saving *s)
{
    const struct checkpoint_whole *from = s->source.whole;
    const uint32_t n = s->source.n_whole;

    s->source.n_whole = 0;
    s->source.whole = s->whole = calloc(n + (size_t)1, sizeof(*s->whole));
    for (uint32_t i = 0; s->whole && i < n; i++) {
        const struct checkpoint_entry *e = &s->table->entry[from[i].entry];
        const uint64_t bytes = e->numel * checkpoint_element_bytes(e);
        void *data = malloc(bytes + 1);

        if (!data) {
            return checkpoint_no_memory(s->why);
        }
        memcpy(data, from[i].data, bytes);
        s->whole[i] = (struct checkpoint_whole){from[i].entry, data};
        s->source.n_whole++;
    }
    return s->whole ? FSDP_OK : checkpoint_no_memory(s->why);
}

static bool is_in(const struct checkpoint_entry *e, uint32_t what)
{
    return (what & (e->is_state    ? FSDP_SAVE_STATES
                    : e->is_buffer ? FSDP_SAVE_BUFFERS
                                   : FSDP_SAVE_PARAMETERS)) != 0;
}

static int check_parts(uint32_t form, uint32_t what, uint32_t dtype, char *why)
{
    if (what > 2 * FSDP_SAVE_EXTRA - 1) {
        return checkpoint_refuse(why, FSDP_ERR_INVALID,
                                 "what is saved is bits up to %d, not %u",
                                 FSDP_SAVE_EXTRA, what);
    }
    if (dtype != FSDP_DTYPE_NONE &&
        (!fsdp_is_float(dtype) || form != FSDP_SAVE_FULL)) {
        return checkpoint_refuse(why, FSDP_ERR_INVALID,
                                 "parameters are saved as F32, in the full "
                                 "form as BF16 or F16, too, not %u in form %u",
                                 dtype, form);
    }
    return FSDP_OK;
}

/* Makes the table of a save of parts: entries that are left out have no name,
 * as have states of frozen parameters; and parameters may be rounded. */
static int take_parts(struct checkpoint_saving *s,
                      const struct checkpoint_table *all, uint32_t what,
                      uint32_t dtype)
{
    s->table = all;
    if (what == 0 && dtype == FSDP_DTYPE_NONE) {
        return FSDP_OK;
    }
    s->parts.entry = calloc(all->n + (size_t)1, sizeof(*s->parts.entry));
    if (!s->parts.entry) {
        return checkpoint_no_memory(s->why);
    }
    s->parts.n = all->n;
    for (uint32_t i = 0; i < all->n; i++) {
        struct checkpoint_entry *e = &s->parts.entry[i];

        *e = all->entry[i];
        if (what != 0 && !is_in(e, what)) {
            e->name = NULL;
        }
        if (dtype != FSDP_DTYPE_NONE && !e->is_state && !e->is_buffer) {
            e->dtype = dtype;
            e->is_rounded = true;
        }
    }
    s->table = &s->parts;
    return FSDP_OK;
}

bool checkpoint_saves(const struct checkpoint_saving *s, uint32_t entry)
{
    return s->table->entry[entry].name != NULL;
}

static int prepare(struct checkpoint_saving *s,
                   const struct checkpoint_request *r)
{
    static const char *const form[] = {"full", "sharded", "local"};
    const struct fsdp_save *save = r->save;
    struct checkpoint_manifest *m = &s->manifest;
    const uint32_t what =
        save->size > offsetof(struct fsdp_save, what) ? save->what : 0;
    const uint32_t asked =
        save->size > offsetof(struct fsdp_save, dtype) ? save->dtype : 0;
    const uint32_t dtype = asked == FSDP_DTYPE_F32 ? FSDP_DTYPE_NONE : asked;

    if (save->form > FSDP_SAVE_LOCAL || !save->directory ||
        r->env->world > CHECKPOINT_MAX_WORLD) {
        return checkpoint_refuse(s->why, FSDP_ERR_INVALID,
                                 "a save has a form of 0 to %d, a directory "
                                 "and a world of up to %d ranks",
                                 FSDP_SAVE_LOCAL, CHECKPOINT_MAX_WORLD);
    }
    FSDP_TRY(check_parts(save->form, what, dtype, s->why));
    FSDP_TRY(take_parts(s, r->table, what, dtype));
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
    snprintf(m->form, sizeof(m->form), "%s", form[save->form]);
    snprintf(m->layout, sizeof(m->layout), "%s", r->layout);
    snprintf(m->optimizer, sizeof(m->optimizer), "%s", r->optimizer);
    FSDP_TRY(copy_wholes(s));
    if (what == 0 || (what & FSDP_SAVE_EXTRA) != 0) {
        FSDP_TRY(checkpoint_add_extras(s, save));
    }
    FSDP_TRY(checkpoint_add_own_steps(s, r));
    if (save->form == FSDP_SAVE_FULL) {
        uint64_t most = save->size > offsetof(struct fsdp_save, file_bytes)
                            ? save->file_bytes
                            : 0;
        FSDP_TRY(checkpoint_full_plan(s->table, most ? most : FILE_BYTES_MOST,
                                      &s->full, s->why));
    }
    s->file = calloc(s->full.n + (size_t)OWN_FILES, sizeof(*s->file));
    return s->file ? FSDP_OK : checkpoint_no_memory(s->why);
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
                           sizeof(s->place.number), all));
    if (s->rank != 0 && !s->alone) {
        status = checkpoint_place_join(&s->place, directory, all[0], s->why);
    }
    return checkpoint_agree(env, "checkpoint.save_begin", status, s->why);
}

int checkpoint_begin(const struct checkpoint_request *request,
                     struct checkpoint_saving **out)
{
    struct checkpoint_saving *s = calloc(1, sizeof(*s));
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
        checkpoint_cancel(s);
        return status;
    }
    s->status = FSDP_OK;
    *out = s;
    return FSDP_OK;
}

void checkpoint_write(struct checkpoint_saving *s)
{
    bool writes = !s->alone || s->rank == 0;

    if (s->status != FSDP_OK || !writes) {
        return;
    }
    if (s->form == FSDP_SAVE_FULL) {
        if (s->owner && !s->alone) {
            checkpoint_put_slices(s);
        }
        if (s->rank == 0) {
            checkpoint_put_wholes(s);
        }
        if (s->owner) {
            checkpoint_flush_full(s);
        }
    } else if (s->owner && s->source.n + s->source.n_whole > 0) {
        s->status = checkpoint_write_shards(s->place.directory, s->table,
                                            &s->source, s->shard, s->file,
                                            OWN_FILES - 1, &s->n_files, s->why);
    }
    if (s->status == FSDP_OK && (s->rank == 0 || s->n_extras > 0)) {
        s->status = checkpoint_write_state(s);
    }
}

void checkpoint_fail(struct checkpoint_saving *s, int status, const char *why)
{
    if (s->status == FSDP_OK && status != FSDP_OK) {
        s->status = checkpoint_refuse(s->why, status, "%s", why);
    }
}

void checkpoint_cancel(struct checkpoint_saving *s)
{
    if (s->rank == 0) {
        checkpoint_place_remove(&s->place);
    }
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
    checkpoint_drop_own_steps(s);
    for (uint32_t i = 0; i < s->source.n_whole; i++) {
        free((void *)s->whole[i].data);
    }
    free(s->whole);
    free(s->parts.entry);
    free(s->file);
    free(s->manifest.file);
    free(s);
}
