/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - reads a safetensors file or a checkpoint, and says what is in it;
 * inspect_index.c does so for the files that an index names.
 */
#include "checkpoint/inspect_internal.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int inspect_refuse(char *why, int status, const char *path, const char *what)
{
    snprintf(why, INSPECT_WHY_BYTES, "%.600s: %.700s", path, what);
    return status;
}

static void hex_of(const unsigned char *sha, char hex[65])
{
    for (uint32_t i = 0; i < 32; i++) {
        snprintf(hex + (size_t)2 * i, 3, "%02x", sha[i]);
    }
}

static json_t *shape_json(uint32_t n_dims, const uint64_t *shape)
{
    json_t *out = json_array();

    for (uint32_t d = 0; d < n_dims; d++) {
        (void)json_array_append_new(out, json_integer((json_int_t)shape[d]));
    }
    return out;
}

int inspect_tensors(json_t *tensors, const struct safetensors_file *f,
                    const char *file)
{
    const struct safetensors_tensor *t;
    uint64_t at = 0;

    for (size_t i = 0; (t = safetensors_at(f, i)); i++) {
        unsigned char sha[EVP_MAX_MD_SIZE] = {0};
        char hex[65];
        const uint64_t end = at + t->bytes;
        json_t *o;
        (void)EVP_Digest(t->data, t->bytes, sha, NULL, EVP_sha256(), NULL);
        hex_of(sha, hex);
        o = json_pack("{s:s, s:s, s:o, s:[I, I], s:s}", "name", t->name,
                      "dtype", t->dtype, "shape",
                      shape_json(t->n_dims, t->shape), "data_offsets",
                      (json_int_t)at, (json_int_t)end, "sha256", hex);
        if (o && file) {
            (void)json_object_set_new(o, "file", json_string(file));
        }
        if (json_array_append_new(tensors, o) != 0) {
            return FSDP_ERR_NOMEM;
        }
        at = end;
    }
    return FSDP_OK;
}

int inspect_file(const char *path, json_t **out, char why[INSPECT_WHY_BYTES])
{
    struct safetensors_file *f;
    const struct safetensors_meta *m;
    json_t *tensors = json_array();
    json_t *meta = json_object();
    int status = safetensors_open(path, &f, why, INSPECT_WHY_BYTES);

    for (size_t i = 0; status == FSDP_OK && (m = safetensors_meta_at(f, i));
         i++) {
        (void)json_object_set_new(meta, m->key, json_string(m->value));
    }
    if (status == FSDP_OK) {
        status = inspect_tensors(tensors, f, NULL);
    }
    safetensors_close(f);
    *out = status == FSDP_OK
               ? json_pack("{s:s, s:O, s:O}", "format", "safetensors",
                           "metadata", meta, "tensors", tensors)
               : NULL;
    json_decref(meta);
    json_decref(tensors);
    return status == FSDP_OK && !*out
               ? inspect_refuse(why, FSDP_ERR_NOMEM, path, "out of memory")
               : status;
}

/* ---- A checkpoint ------------------------------------------------------- */

static json_t *checkpoint_json(struct checkpoint *c)
{
    const struct checkpoint_manifest *m = checkpoint_manifest_of(c);
    struct checkpoint_state state = checkpoint_state_of(c);
    json_t *files = json_array();
    json_t *tensors = json_array();
    json_t *extras = json_array();
    struct checkpoint_extra x;

    for (uint32_t i = 0; i < m->n_files; i++) {
        char hex[65];
        hex_of(m->file[i].sha256, hex);
        (void)json_array_append_new(
            files,
            json_pack("{s:s, s:I, s:s}", "name", m->file[i].name, "bytes",
                      (json_int_t)m->file[i].bytes, "sha256", hex));
    }
    for (uint32_t i = 0; i < m->table.n; i++) {
        const struct checkpoint_entry *e = &m->table.entry[i];
        (void)json_array_append_new(tensors,
                                    json_pack("{s:s, s:s, s:o}", "name",
                                              e->name, "dtype", "F32", "shape",
                                              shape_json(e->n_dims, e->shape)));
    }
    for (uint32_t i = 0; checkpoint_extra_at(c, i, &x); i++) {
        (void)json_array_append_new(
            extras, json_pack("{s:I, s:s, s:I}", "rank", (json_int_t)x.rank,
                              "name", x.name, "bytes", (json_int_t)x.bytes));
    }
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:o, "
        "s:o, s:o}",
        "format", "checkpoint", "path", checkpoint_path(c), "reason",
        checkpoint_reason(c), "form", m->form, "layout", m->layout, "optimizer",
        m->optimizer, "world", (json_int_t)m->world, "shards",
        (json_int_t)m->shards, "replicas", (json_int_t)m->replicas, "step",
        (json_int_t)state.step, "beta1_power", (double)state.power[0],
        "beta2_power", (double)state.power[1], "files", files, "extras", extras,
        "tensors", tensors);
}

static int inspect_checkpoint(const char *path, json_t **out,
                              char why[INSPECT_WHY_BYTES])
{
    char own[CHECKPOINT_WHY_BYTES] = "";
    struct checkpoint *c;
    int status = checkpoint_open(path, &c, own);

    if (status == FSDP_OK) {
        status = checkpoint_verify(c, 0, 1, own);
    }
    if (status != FSDP_OK) {
        checkpoint_close(c);
        return inspect_refuse(why, status, path, own);
    }
    *out = checkpoint_json(c);
    checkpoint_close(c);
    return *out ? FSDP_OK
                : inspect_refuse(why, FSDP_ERR_NOMEM, path, "out of memory");
}

int inspect_directory(const char *path, json_t **out,
                      char why[INSPECT_WHY_BYTES])
{
    char file[PATH_MAX];
    int n = snprintf(file, sizeof(file), "%s/manifest.json", path);

    if (n < 0 || (size_t)n >= sizeof(file)) {
        return inspect_refuse(why, FSDP_ERR_IO, path, "the path is too long");
    }
    if (access(file, F_OK) != 0 && inspect_has_index(path)) {
        return inspect_index_file(path, out, why);
    }
    return inspect_checkpoint(path, out, why);
}
