/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_full.c - the full form: whole tensors, parameters and buffers in
 * model.safetensors, states in optimizer.safetensors; or several files with the
 * Hugging Face index, where one would be too large. The files are made at their
 * full length, and the owner of a slice writes it to its place.
 */
#include "checkpoint_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const stem[] = {"model", "optimizer"};

static int compare_entries(const void *a, const void *b)
{
    const struct checkpoint_entry *const *x = a;
    const struct checkpoint_entry *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* The entries sorted by name, so that the same tensors make the same files,
 * whatever order the table has. NULL: out of memory. */
static const struct checkpoint_entry **
sort_entries(const struct checkpoint_table *table, uint32_t *n)
{
    const struct checkpoint_entry **out =
        calloc(table->n + (size_t)1, sizeof(struct checkpoint_entry *));

    *n = 0;
    for (uint32_t i = 0; out && i < table->n; i++) {
        if (table->entry[i].name) {
            out[(*n)++] = &table->entry[i];
        }
    }
    if (out) {
        qsort(out, *n, sizeof(struct checkpoint_entry *), compare_entries);
    }
    return out;
}

/* Deals the tensors of one kind, by name, to files of up to `most`
 * bytes; a larger tensor has a file of its own. Returns how many. */
static uint32_t deal(const struct checkpoint_table *table,
                     const struct checkpoint_entry *const *sorted,
                     uint32_t n_sorted, bool states, uint64_t most,
                     uint32_t first, uint32_t *file_of, uint64_t *total)
{
    uint32_t n = 0;
    uint64_t used = 0;

    *total = 0;
    for (uint32_t i = 0; i < n_sorted; i++) {
        uint64_t bytes = sorted[i]->numel * checkpoint_element_bytes(sorted[i]);
        if (sorted[i]->is_state != states) {
            continue;
        }
        if (n == 0 || (used > 0 && used + bytes > most)) {
            n++;
            used = 0;
        }
        file_of[sorted[i] - table->entry] = first + n - 1;
        used += bytes;
        *total += bytes;
    }
    return n;
}

static int plan_file(struct checkpoint_full *f, uint32_t k,
                     const struct checkpoint_table *table, char *why)
{
    static const float nothing;
    static const struct safetensors_meta meta[] = {{"format", "pt"}};
    struct checkpoint_full_file *x = &f->file[k];
    const struct safetensors_report report = {x->name, why,
                                              CHECKPOINT_WHY_BYTES};
    uint32_t *entry = calloc(table->n + (size_t)1, sizeof(*entry));
    uint64_t at;
    int status;

    x->tensor = calloc(table->n + (size_t)1, sizeof(*x->tensor));
    if (!x->tensor || !entry) {
        free(entry);
        return checkpoint_no_memory(why);
    }
    for (uint32_t i = 0; i < table->n; i++) {
        const struct checkpoint_entry *e = &table->entry[i];
        if (e->name && f->file_of[i] == k) {
            entry[x->n] = i;
            x->tensor[x->n] = (struct safetensors_tensor){
                .name = e->name,
                .dtype = checkpoint_dtype_name(e->dtype),
                .n_dims = e->n_dims,
                .data = &nothing, /* it comes slice by slice */
                .bytes = e->numel * checkpoint_element_bytes(e)};
            memcpy(x->tensor[x->n++].shape, e->shape, sizeof(e->shape));
        }
    }
    status = safetensors_plan_make(&x->plan, x->tensor, x->n, meta, 1, &report);
    at = x->plan.head_bytes;
    for (size_t i = 0; status == FSDP_OK && i < x->plan.n; i++) {
        f->at[entry[x->plan.slots[i].tensor - x->tensor]] = at;
        at += x->plan.slots[i].tensor->bytes;
    }
    free(entry);
    return status;
}

int checkpoint_full_plan(const struct checkpoint_table *table, uint64_t most,
                         struct checkpoint_full *out, char *why)
{
    const struct checkpoint_entry **sorted;
    uint32_t n_sorted;
    uint32_t n[2];
    int status = FSDP_OK;

    *out = (struct checkpoint_full){0};
    out->file_of = calloc(table->n + (size_t)1, sizeof(*out->file_of));
    out->at = calloc(table->n + (size_t)1, sizeof(*out->at));
    sorted = sort_entries(table, &n_sorted);
    if (!out->file_of || !out->at || !sorted) {
        free(sorted);
        return checkpoint_no_memory(why);
    }
    n[0] = deal(table, sorted, n_sorted, false, most, 0, out->file_of,
                &out->total[0]);
    n[1] = deal(table, sorted, n_sorted, true, most, n[0], out->file_of,
                &out->total[1]);
    free(sorted);
    out->file = calloc(n[0] + n[1] + (size_t)1, sizeof(*out->file));
    if (!out->file) {
        return checkpoint_no_memory(why);
    }
    for (uint32_t which = 0; which < 2; which++) {
        for (uint32_t i = 0; status == FSDP_OK && i < n[which]; i++) {
            char *name = out->file[out->n].name;
            snprintf(name, CHECKPOINT_FILE_NAME_BYTES,
                     n[which] == 1 ? "%s.safetensors"
                                   : "%s-%05u-of-%05u.safetensors",
                     stem[which], i + 1, n[which]);
            status = plan_file(out, out->n, table, why);
            out->n++;
        }
    }
    return status;
}

void checkpoint_full_release(struct checkpoint_full *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        safetensors_plan_free(&f->file[i].plan);
        free(f->file[i].tensor);
    }
    free(f->file);
    free(f->file_of);
    free(f->at);
    *f = (struct checkpoint_full){0};
}

int checkpoint_full_create(const struct checkpoint_full *f, int directory,
                           char *why)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const struct checkpoint_full_file *x = &f->file[i];
        int fd =
            openat(directory, x->name,
                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        int status =
            fd < 0 ? checkpoint_refuse_system(why, x->name, "cannot create")
                   : checkpoint_pwrite(fd, x->name, 0, x->plan.head,
                                       x->plan.head_bytes, why);
        if (status == FSDP_OK &&
            ftruncate(fd, (off_t)(x->plan.head_bytes + x->plan.data_bytes)) !=
                0) {
            status = checkpoint_refuse_system(why, x->name, "cannot lengthen");
        }
        if (fd >= 0 && close(fd) != 0 && status == FSDP_OK) {
            status = checkpoint_refuse_system(why, x->name, "cannot close");
        }
        FSDP_TRY(status);
    }
    return FSDP_OK;
}

static json_t *index_json(const struct checkpoint_full *f,
                          const struct checkpoint_table *table, uint32_t which)
{
    json_t *map = json_object();
    json_t *root;

    for (uint32_t i = 0; map && i < table->n; i++) {
        const struct checkpoint_entry *e = &table->entry[i];
        if (e->name && e->is_state == (which == 1) &&
            json_object_set_new(
                map, e->name, json_string(f->file[f->file_of[i]].name)) != 0) {
            json_decref(map);
            return NULL;
        }
    }
    root = json_pack("{s:{s:I}, s:O}", "metadata", "total_size",
                     (json_int_t)f->total[which], "weight_map", map);
    json_decref(map);
    return root;
}

int checkpoint_full_index(const struct checkpoint_full *f,
                          const struct checkpoint_table *table, int directory,
                          uint32_t which, bool *wrote,
                          struct checkpoint_file *out, char *why)
{
    char name[CHECKPOINT_FILE_NAME_BYTES];
    struct checkpoint_stream stream;
    json_t *root;
    char *text = NULL;
    size_t n = 0;
    int status;

    *wrote = false;
    snprintf(name, sizeof(name), "%s-", stem[which]);
    for (uint32_t i = 0; i < f->n; i++) {
        *wrote = *wrote || strncmp(f->file[i].name, name, strlen(name)) == 0;
    }
    if (!*wrote) {
        return FSDP_OK;
    }
    root = index_json(f, table, which);
    n = root ? json_dumpb(root, NULL, 0, JSON_COMPACT | JSON_SORT_KEYS) : 0;
    text = n ? malloc(n + 1) : NULL;
    if (text) {
        (void)json_dumpb(root, text, n, JSON_COMPACT | JSON_SORT_KEYS);
        text[n] = '\n';
    }
    json_decref(root);
    if (!text) {
        return checkpoint_no_memory(why);
    }
    snprintf(name, sizeof(name), "%s.safetensors.index.json", stem[which]);
    status = checkpoint_stream_open(&stream, directory, name, why);
    if (status == FSDP_OK) {
        status = checkpoint_stream_add(&stream, text, n + 1, why);
    }
    status = checkpoint_stream_close(&stream, status, out, why);
    free(text);
    return status;
}
