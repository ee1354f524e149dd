/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_fuzz.c - feeds the reader of Hugging Face indexes text without mercy.
 * An input is an index and, behind the byte 0x1e, the header of one of the
 * files that it may name; the others are right. If it is accepted, every tensor
 * of the index is in the file that the index says.
 *
 * Build with clang -fsanitize=fuzzer,address,undefined (ci/fuzz).
 */
#include "checkpoint/fuzzing.h"
#include "checkpoint/inspect.h"
#include "checkpoint/json_mutation.h"
#include "checkpoint/safetensors_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MOST_DATA = 4096,
    WHERE_BYTES = 64,
};

static char where[WHERE_BYTES];

static void write_file(const char *name, const char *header, size_t bytes)
{
    static const char zeros[MOST_DATA];
    char path[WHERE_BYTES + 64];
    unsigned char length[SAFETENSORS_LENGTH_BYTES];
    size_t data = json_data_end(header, bytes, MOST_DATA);
    FILE *f;

    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) {
        length[i] = (unsigned char)((uint64_t)bytes >> (8 * i) & 0xff);
    }
    snprintf(path, sizeof(path), "%s/%s", where, name);
    f = fopen(path, "wb");
    require(f != NULL);
    require(fwrite(length, 1, sizeof(length), f) == sizeof(length));
    require(bytes == 0 || fwrite(header, 1, bytes, f) == bytes);
    require(data == 0 || fwrite(zeros, 1, data, f) == data);
    require(fclose(f) == 0);
}

static void clean_up(void)
{
    static const char *const name[] = {"a.safetensors", "b.safetensors",
                                       "x.safetensors"};
    char path[WHERE_BYTES + 64];

    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", where, name[i]);
        (void)unlink(path);
    }
    (void)rmdir(where);
}

/* A folder with two files that are right. */
static void make_folder(void)
{
    static const char a[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4,3],\"data_offsets\":"
        "[0,48]},\"b\":{\"dtype\":\"F32\",\"shape\":[5],"
        "\"data_offsets\":[48,68]}}";
    static const char b[] = "{\"c\":{\"dtype\":\"F32\",\"shape\":[],"
                            "\"data_offsets\":[0,4]}}";

    snprintf(where, sizeof(where), "/tmp/inspect-fuzz-XXXXXX");
    require(mkdtemp(where) != NULL);
    require(atexit(clean_up) == 0);
    write_file("a.safetensors", a, sizeof(a) - 1);
    write_file("b.safetensors", b, sizeof(b) - 1);
}

/* Each tensor of the index must be listed once, with the file that the index
 * names. */
static void require_listed(const json_t *out, const char *text, size_t bytes)
{
    json_t *index = json_loadb(text, bytes, 0, NULL);
    const json_t *tensors = json_object_get(out, "tensors");
    const char *name;
    const json_t *file;

    require(json_is_array(tensors));
    json_object_foreach(json_object_get(index, "weight_map"), name, file)
    {
        uint32_t times = 0;
        size_t i;
        const json_t *t;

        json_array_foreach(tensors, i, t)
        {
            times += json_equal(json_object_get(t, "file"), file) &&
                     strcmp(json_string_value(json_object_get(t, "name")),
                            name) == 0;
        }
        require(times == 1);
    }
    json_decref(index);
}

static void require_sound(const json_t *out)
{
    char *text = json_dumps(out, JSON_COMPACT);
    json_t *again =
        text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    size_t i;
    const json_t *t;

    require(again && json_equal(again, out));
    json_array_foreach(json_object_get(out, "tensors"), i, t)
    {
        const json_t *at = json_object_get(t, "data_offsets");
        size_t k;
        const json_t *extent;

        require(json_integer_value(json_array_get(at, 0)) >= 0);
        require(json_integer_value(json_array_get(at, 0)) <=
                json_integer_value(json_array_get(at, 1)));
        json_array_foreach(json_object_get(t, "shape"), k, extent)
        {
            require(json_integer_value(extent) >= 0);
        }
    }
    json_decref(again);
    free(text);
}

/* NOLINTNEXTLINE(readability-identifier-naming) */
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t bytes, size_t room,
                               unsigned seed)
{
    return json_mutate(p, bytes, room, seed, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t bytes)
{
    const char *text = (const char *)p;
    const char *part = bytes ? memchr(text, 0x1e, bytes) : NULL;
    size_t n = part ? (size_t)(part - text) : bytes;
    char why[INSPECT_WHY_BYTES] = "";
    json_t *out = NULL;
    int status;

    if (!where[0]) {
        make_folder();
    }
    write_file("x.safetensors", part ? part + 1 : "{}",
               part ? bytes - n - 1 : 2);
    status = inspect_index(where, text, n, &out, why);
    if (status == FSDP_OK) {
        require_listed(out, text, n);
        require_sound(out);
    } else {
        require(status == FSDP_ERR_FORMAT || status == FSDP_ERR_IO);
        require(!out && why[0] != '\0');
    }
    json_decref(out);
    return 0;
}
