/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_inspect.c - prints what is in a safetensors file, a checkpoint, or a
 * folder with a Hugging Face index: names, types, shapes, places, hashes.
 */
#include "checkpoint/inspect.h"
#include "cli/commands.h"
#include "cli/line/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: fsdp-cts inspect [--json] FILE|DIR\n\n"
    "FILE: a safetensors file: every tensor's name, type, shape, place and\n"
    "SHA-256. DIR: its newest complete checkpoint, and why it is that one, "
    "its\n"
    "files, which are verified, and its tensors; or, without a manifest, the\n"
    "files of a Hugging Face index. What is not sound is refused: exit 65.\n\n"
    "examples:\n"
    "  fsdp-cts inspect model.safetensors\n"
    "  fsdp-cts inspect --json checkpoints/\n\n";

struct options {
    bool json, help;
};

static const struct option_row rows[] = {
    {"json", NULL, 0, "print JSON", option_flag,
     .at = offsetof(struct options, json)},
    {"help", NULL, 0, "this text", option_flag,
     .at = offsetof(struct options, help)},
};
static const struct option_table table = OPTION_TABLE(rows);

static void print_shape(const json_t *shape)
{
    printf("[");
    for (size_t i = 0; i < json_array_size(shape); i++) {
        printf("%s%" JSON_INTEGER_FORMAT, i ? ", " : "",
               json_integer_value(json_array_get(shape, i)));
    }
    printf("]");
}

/* Names come from files: a character that is not printable ASCII is shown as
 * ?. */
static void print_text(const char *text)
{
    for (; text && *text; text++) {
        putchar(*text >= ' ' && *text <= '~' ? *text : '?');
    }
}

static void print_tensors(const json_t *tensors)
{
    size_t i;
    const json_t *t;

    json_array_foreach((json_t *)tensors, i, t)
    {
        const json_t *at = json_object_get(t, "data_offsets");
        const char *sha = json_string_value(json_object_get(t, "sha256"));
        printf("  ");
        print_text(json_string_value(json_object_get(t, "name")));
        printf("  %s ", json_string_value(json_object_get(t, "dtype")));
        print_shape(json_object_get(t, "shape"));
        if (at) {
            printf("  at ");
            print_shape(at);
        }
        printf("%s%s\n", sha ? "  " : "", sha ? sha : "");
    }
}

static void print_text_form(const json_t *root)
{
    const char *key;
    const json_t *v;

    json_object_foreach((json_t *)root, key, v)
    {
        if (json_is_string(v)) {
            printf("%s: ", key);
            print_text(json_string_value(v));
            printf("\n");
        } else if (json_is_integer(v)) {
            printf("%s: %" JSON_INTEGER_FORMAT "\n", key,
                   json_integer_value(v));
        } else if (json_is_real(v)) {
            printf("%s: %.9g\n", key, json_real_value(v));
        }
    }
    if (json_object_get(root, "files")) {
        size_t i;
        printf("files:\n");
        json_array_foreach(json_object_get(root, "files"), i, v)
        {
            printf("  %s  %" JSON_INTEGER_FORMAT " bytes  %s\n",
                   json_string_value(json_object_get(v, "name")),
                   json_integer_value(json_object_get(v, "bytes")),
                   json_string_value(json_object_get(v, "sha256")));
        }
    }
    printf("tensors:\n");
    print_tensors(json_object_get(root, "tensors"));
}

int command_inspect(int argc, char **argv)
{
    struct options o = {.json = false};
    char why[INSPECT_WHY_BYTES] = "";
    struct stat about;
    json_t *root = NULL;
    int rest;
    int status = options_read(&table, argc, argv, &o, &rest);

    if (status != 0) {
        return status;
    }
    if (o.help) {
        fputs(usage, stdout);
        options_help(&table);
        return 0;
    }
    if (argc - rest != 1) {
        return option_refuse("inspect takes one FILE or DIR");
    }
    status = stat(argv[rest], &about) == 0 && S_ISDIR(about.st_mode)
                 ? inspect_directory(argv[rest], &root, why)
                 : inspect_file(argv[rest], &root, why);
    if (status == FSDP_OK && o.json) {
        status = json_dumpf(root, stdout, JSON_INDENT(1)) == 0 ? FSDP_OK
                                                               : FSDP_ERR_IO;
        printf("\n");
    } else if (status == FSDP_OK) {
        print_text_form(root);
    }
    json_decref(root);
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", why);
        return EXIT_BAD_DATA;
    }
    return 0;
}
