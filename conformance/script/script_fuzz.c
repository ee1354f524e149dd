/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_fuzz.c - the entry of a fuzzer (libFuzzer's, or any with that
 * interface) to scripts: their text, whether they are legal, and the ids of
 * drawn ones.
 */
#include "checkpoint/fuzzing.h"
#include "script/script_mask.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_PLAYED = 4096, /* actions that are judged */
};

/* A refusal says why, and nothing else does. */
static void check_answer(int status, int refusal,
                         const struct fsdp_error *error)
{
    if ((status != FSDP_OK && status != refusal) ||
        (status != FSDP_OK &&
         (error->status != status || error->message[0] == '\0'))) {
        abort();
    }
}

static bool is_long(const struct script *s)
{
    struct script_walk w = script_begin(s);
    uint32_t n = 0;

    while (script_next(&w) && n < MOST_PLAYED) {
        n++;
    }
    return n == MOST_PLAYED;
}

/* What is written is read as the same, which is written again alike. */
static void check_text(const struct script *s)
{
    struct fsdp_error error = {0};
    struct script again;
    char *text = script_text(s);
    char *other;

    if (!text || script_parse(text, &again, &error) != FSDP_OK ||
        again.n_actions != s->n_actions) {
        abort();
    }
    other = script_text(&again);
    if (!other || strcmp(text, other) != 0) {
        abort();
    }
    free(text);
    free(other);
    script_release(&again);
}

static void check_legal(const struct script *s)
{
    static const uint32_t lengths[2] = {8, 4};
    struct fsdp_error error = {0};

    check_answer(script_legal(s, NULL, &error), FSDP_ERR_INVALID, &error);
    error = (struct fsdp_error){0};
    check_answer(script_legal(s, lengths, &error), FSDP_ERR_INVALID, &error);
}

/* A drawn script, or what is kept of it, is always legal. */
static void check_id(const char *id)
{
    struct fsdp_error error = {0};
    struct script s;
    int status = script_of_id(id, &s, NULL, NULL, &error);

    check_answer(status, FSDP_ERR_FORMAT, &error);
    if (status == FSDP_OK) {
        if (s.n_actions > 0) {
            check_text(&s);
        }
        if (script_legal(&s, NULL, &error) != FSDP_OK) {
            abort();
        }
    }
    script_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fsdp_error error = {0};
    struct script s;
    char *text = malloc(bytes + 1);
    int status;

    if (!text) {
        return 0;
    }
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    status = script_parse(text, &s, &error);
    check_answer(status, FSDP_ERR_FORMAT, &error);
    if (status == FSDP_OK) {
        check_text(&s);
        if (!is_long(&s)) {
            check_legal(&s);
        }
    }
    script_release(&s);
    check_id(text);
    free(text);
    return 0;
}
