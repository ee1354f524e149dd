/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_manifest.c - manifest.json, which is written last: what the
 * checkpoint has, and size and SHA-256 of every file. It has a hash of itself,
 * so that no bit can turn unseen.
 */
#include "checkpoint_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_FILES = 1 << 16,
    MAX_TENSORS = 1 << 22
};

/* ---- Writing ------------------------------------------------------------ */

static json_t *tensors_json(const struct checkpoint_table *table)
{
    json_t *all = json_object();

    for (uint32_t i = 0; all && i < table->n; i++) {
        const struct checkpoint_entry *e = &table->entry[i];
        json_t *shape = json_array();
        if (!e->name) {
            json_decref(shape);
            continue;
        }
        for (uint32_t d = 0; d < e->n_dims; d++) {
            if (json_array_append_new(
                    shape, json_integer((json_int_t)e->shape[d])) != 0) {
                json_decref(shape);
                json_decref(all);
                return NULL;
            }
        }
        if (e->dtype != FSDP_DTYPE_NONE) {
            shape = json_pack("{s:s, s:o}", "dtype",
                              checkpoint_dtype_name(e->dtype), "shape", shape);
        }
        if (json_object_set_new(all, e->name, shape) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static json_t *files_json(const struct checkpoint_manifest *m)
{
    json_t *all = json_object();

    for (uint32_t i = 0; all && i < m->n_files; i++) {
        const struct checkpoint_file *f = &m->file[i];
        char hex[2 * CHECKPOINT_SHA_BYTES + 1];
        checkpoint_hex(f->sha256, hex);
        if (json_object_set_new(all, f->name,
                                json_pack("{s:I, s:s}", "bytes",
                                          (json_int_t)f->bytes, "sha256",
                                          hex)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* Writes JSON in the only form in which it is written here; the caller frees
 * the text. */
static char *canonical(const json_t *value, size_t *bytes)
{
    size_t n = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_SORT_KEYS);
    char *text = malloc(n + 1);

    *bytes = n;
    if (text && (n == 0 || json_dumpb(value, text, n,
                                      JSON_COMPACT | JSON_SORT_KEYS) != n)) {
        free(text);
        text = NULL;
    }
    if (text) {
        text[n] = '\0';
    }
    return text;
}

static char *sign(const json_t *body, size_t *bytes)
{
    static const char before[] = "{\"checkpoint\":";
    static const char between[] = ",\"sha256\":\"";
    unsigned char sha[CHECKPOINT_SHA_BYTES];
    char hex[2 * CHECKPOINT_SHA_BYTES + 1];
    size_t n;
    char *text = canonical(body, &n);
    char *all =
        text ? malloc(n + sizeof(before) + sizeof(between) + sizeof(hex) + 4)
             : NULL;

    if (all) {
        char *to = all;
        checkpoint_hash(text, n, sha);
        checkpoint_hex(sha, hex);
        to = stpcpy(to, before);
        memcpy(to, text, n);
        to = stpcpy(to + n, between);
        to = stpcpy(to, hex);
        to = stpcpy(to, "\"}\n");
        *bytes = (size_t)(to - all);
    }
    free(text);
    return all;
}

char *checkpoint_manifest_text(const struct checkpoint_manifest *m,
                               size_t *bytes)
{
    json_t *tensors = tensors_json(&m->table);
    json_t *files = files_json(m);
    json_t *body =
        tensors && files
            ? json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:O, s:O}",
                        "version", 1, "form", m->form, "layout", m->layout,
                        "optimizer", m->optimizer, "world",
                        (json_int_t)m->world, "shards", (json_int_t)m->shards,
                        "replicas", (json_int_t)m->replicas, "tensors", tensors,
                        "files", files)
            : NULL;
    char *text = body ? sign(body, bytes) : NULL;

    json_decref(body);
    json_decref(tensors);
    json_decref(files);
    return text;
}

/* ---- Reading ------------------------------------------------------------ */

static int malformed(char *why, const char *what)
{
    return checkpoint_refuse(why, FSDP_ERR_FORMAT, CHECKPOINT_MANIFEST ": %s",
                             what);
}

static bool read_text(const json_t *object, const char *key, char *to,
                      size_t room)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text || strlen(text) >= room) {
        return false;
    }
    memcpy(to, text, strlen(text) + 1);
    return true;
}

static bool read_count(const json_t *object, const char *key, uint64_t most,
                       uint64_t *to)
{
    const json_t *v = json_object_get(object, key);

    if (!json_is_integer(v) || json_integer_value(v) < 0 ||
        (uint64_t)json_integer_value(v) > most) {
        return false;
    }
    *to = (uint64_t)json_integer_value(v);
    return true;
}

/* A tensor that is not F32 is an object with its dtype and shape, any other
 * only its shape; sets *shape in both cases. */
static bool read_dtype(const json_t **shape, uint32_t *dtype)
{
    const json_t *o = *shape;
    const char *name = json_string_value(json_object_get(o, "dtype"));

    *dtype = FSDP_DTYPE_NONE;
    if (!json_is_object(o)) {
        return true;
    }
    *shape = json_object_get(o, "shape");
    *dtype = name ? checkpoint_dtype_of_name(name) : FSDP_DTYPE_NONE;
    return json_object_size(o) == 2 && *dtype > FSDP_DTYPE_F32;
}

static int read_tensors(const json_t *all, struct checkpoint_table *out,
                        char *why)
{
    void *i;

    if (!json_is_object(all) || json_object_size(all) > MAX_TENSORS) {
        return malformed(why, "tensors is no object");
    }
    for (i = json_object_iter((json_t *)all); i;
         i = json_object_iter_next((json_t *)all, i)) {
        const char *name = json_object_iter_key(i);
        const json_t *v = json_object_iter_value(i);
        uint64_t shape[FSDP_MAX_DIMS] = {0};
        uint32_t dtype;
        uint32_t k;
        size_t n;
        int status;

        if (!read_dtype(&v, &dtype)) {
            return malformed(why, "a tensor's dtype is none but F32, or has "
                                  "no shape");
        }
        n = json_array_size(v);
        if (!json_is_array(v) || n > FSDP_MAX_DIMS) {
            return malformed(why, "a tensor's shape is no list of up to 4");
        }
        for (size_t d = 0; d < n; d++) {
            const json_t *x = json_array_get(v, d);
            if (!json_is_integer(x) || json_integer_value(x) < 0) {
                return malformed(why, "an extent is no integer from 0");
            }
            shape[d] = (uint64_t)json_integer_value(x);
        }
        status = checkpoint_table_add(out, name, (uint32_t)n, shape,
                                      strncmp(name, "optim.", 6) == 0, &k);
        if (status == FSDP_ERR_INVALID) {
            return malformed(why, "a shape's product has over 60 bits");
        }
        if (status != FSDP_OK) {
            return checkpoint_refuse(why, status, "out of memory");
        }
        out->entry[k].dtype = dtype;
    }
    return FSDP_OK;
}

static bool read_hex(const char *hex, unsigned char sha[CHECKPOINT_SHA_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    if (!hex || strlen(hex) != (size_t)2 * CHECKPOINT_SHA_BYTES ||
        strspn(hex, digits) != (size_t)2 * CHECKPOINT_SHA_BYTES) {
        return false;
    }
    for (size_t i = 0; i < CHECKPOINT_SHA_BYTES; i++) {
        long high = strchr(digits, hex[2 * i]) - digits;
        long low = strchr(digits, hex[2 * i + 1]) - digits;
        sha[i] = (unsigned char)(16 * high + low);
    }
    return true;
}

static int compare_file(const void *a, const void *b)
{
    const struct checkpoint_file *left = a;
    const struct checkpoint_file *right = b;

    return strcmp(left->name, right->name);
}

static int read_files(const json_t *all, struct checkpoint_manifest *out,
                      char *why)
{
    void *i;

    if (!json_is_object(all) || json_object_size(all) > MAX_FILES) {
        return malformed(why, "files is no object");
    }
    out->file = calloc(json_object_size(all) + 1, sizeof(*out->file));
    if (!out->file) {
        return checkpoint_no_memory(why);
    }
    for (i = json_object_iter((json_t *)all); i;
         i = json_object_iter_next((json_t *)all, i)) {
        struct checkpoint_file *f = &out->file[out->n_files];
        const char *name = json_object_iter_key(i);
        const json_t *v = json_object_iter_value(i);
        if (!checkpoint_plain_name(name)) {
            return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                     CHECKPOINT_MANIFEST
                                     ": the file name \"%.80s\" is not plain: "
                                     "it could lead out of the checkpoint",
                                     name);
        }
        if (!json_is_object(v) || json_object_size(v) != 2 ||
            !read_count(v, "bytes", INT64_MAX, &f->bytes) ||
            !read_hex(json_string_value(json_object_get(v, "sha256")),
                      f->sha256)) {
            return malformed(why, "a file has not exactly bytes and sha256");
        }
        snprintf(f->name, sizeof(f->name), "%s", name);
        out->n_files++;
    }
    qsort(out->file, out->n_files, sizeof(*out->file), compare_file);
    return FSDP_OK;
}

static int read_body(const json_t *body, struct checkpoint_manifest *out,
                     char *why)
{
    uint64_t version;
    uint64_t world;
    uint64_t shards;
    uint64_t replicas;

    if (!json_is_object(body) || json_object_size(body) != 9) {
        return malformed(why, "checkpoint is no object of 9 fields");
    }
    if (!read_count(body, "version", INT64_MAX, &version) || version != 1) {
        return malformed(why, "version is not 1, the only one known here");
    }
    if (!read_text(body, "form", out->form, sizeof(out->form)) ||
        !read_text(body, "layout", out->layout, sizeof(out->layout)) ||
        !read_text(body, "optimizer", out->optimizer, sizeof(out->optimizer)) ||
        (strcmp(out->form, "full") != 0 && strcmp(out->form, "sharded") != 0 &&
         strcmp(out->form, "local") != 0)) {
        return malformed(why, "form, layout or optimizer is not known");
    }
    if (!read_count(body, "world", CHECKPOINT_MAX_WORLD, &world) ||
        !read_count(body, "shards", CHECKPOINT_MAX_WORLD, &shards) ||
        !read_count(body, "replicas", CHECKPOINT_MAX_WORLD, &replicas) ||
        world == 0 || shards * replicas != world) {
        return malformed(why, "world is not shards times replicas, 1 to 256");
    }
    out->world = (uint32_t)world;
    out->shards = (uint32_t)shards;
    out->replicas = (uint32_t)replicas;
    FSDP_TRY(read_tensors(json_object_get(body, "tensors"), &out->table, why));
    return read_files(json_object_get(body, "files"), out, why);
}

static int check_signature(const json_t *root,
                           unsigned char want[CHECKPOINT_SHA_BYTES], char *why)
{
    const json_t *body = json_object_get(root, "checkpoint");
    unsigned char got[CHECKPOINT_SHA_BYTES];
    size_t n;
    char *text;

    if (!json_is_object(root) || json_object_size(root) != 2 ||
        !json_is_object(body) ||
        !read_hex(json_string_value(json_object_get(root, "sha256")), want)) {
        return malformed(why, "it has not exactly checkpoint and sha256");
    }
    text = canonical(body, &n);
    if (!text) {
        return checkpoint_no_memory(why);
    }
    checkpoint_hash(text, n, got);
    free(text);
    return memcmp(want, got, sizeof(got)) == 0
               ? FSDP_OK
               : malformed(why, "its own SHA-256 is another: it was changed");
}

int checkpoint_manifest_parse(const char *text, size_t bytes,
                              struct checkpoint_manifest *out, char *why)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    int status;

    memset(out, 0, sizeof(*out));
    if (!root) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 CHECKPOINT_MANIFEST ": not JSON: %.100s",
                                 error.text);
    }
    status = check_signature(root, out->sha256, why);
    if (status == FSDP_OK) {
        status = read_body(json_object_get(root, "checkpoint"), out, why);
    }
    json_decref(root);
    if (status != FSDP_OK) {
        checkpoint_manifest_release(out);
    }
    return status;
}

void checkpoint_manifest_release(struct checkpoint_manifest *m)
{
    checkpoint_table_release(&m->table);
    free(m->file);
    memset(m, 0, sizeof(*m));
}
