/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_mutation.h - changes JSON text as text that stays JSON most of the time:
 * values are exchanged, doubled, dropped, replaced by awkward ones. Bytes that
 * are turned blindly are refused by the parser and show nothing of the reader
 * behind it. For the fuzzers (ci/fuzz), whose custom mutator it is.
 */
#ifndef FSDP_CTS_JSON_MUTATION_H
#define FSDP_CTS_JSON_MUTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* libFuzzer names both. NOLINTBEGIN(readability-identifier-naming) */
size_t LLVMFuzzerMutate(uint8_t *p, size_t bytes, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t bytes, size_t room,
                               unsigned seed);
/* NOLINTEND(readability-identifier-naming) */

enum {
    JSON_SPANS = 192
};

/* A value, or a key: bytes [at, end) of the text. */
struct json_span {
    size_t at, end;
};

static inline uint32_t json_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* The end of the string that begins at `at`. */
static inline size_t json_string_end(const uint8_t *p, size_t bytes, size_t at)
{
    for (at++; at < bytes && p[at] != '"'; at++) {
        at += p[at] == '\\';
    }
    return at < bytes ? at + 1 : bytes;
}

/* The end of the number or word that begins at `at`. */
static inline size_t json_word_end(const uint8_t *p, size_t bytes, size_t at)
{
    while (at < bytes && !memchr(",:]}[{\" \n\x1e", p[at], 10)) {
        at++;
    }
    return at;
}

/* Every string, word, list and object of the text. The byte 0x1e parts texts
 * that are one input. */
static inline uint32_t json_spans(const uint8_t *p, size_t bytes,
                                  struct json_span span[JSON_SPANS])
{
    uint32_t open[32];
    uint32_t depth = 0;
    uint32_t n = 0;
    size_t at = 0;

    while (at < bytes && n < JSON_SPANS) {
        if (p[at] == '{' || p[at] == '[') {
            if (depth < 32) {
                open[depth++] = n;
            }
            span[n++] = (struct json_span){at, bytes};
            at++;
        } else if (p[at] == '}' || p[at] == ']') {
            at++;
            if (depth > 0) {
                span[open[--depth]].end = at;
            }
        } else if (p[at] == '"') {
            size_t end = json_string_end(p, bytes, at);
            span[n++] = (struct json_span){at, end};
            at = end;
        } else if (memchr(",: \n\x1e", p[at], 5)) {
            at++;
        } else {
            size_t end = json_word_end(p, bytes, at);
            span[n++] = (struct json_span){at, end};
            at = end;
        }
    }
    return n;
}

/* Replaces [at, end) of the text by these bytes, which may be a part of it.
 * Returns the new length; the old one if the result does not fit. */
static inline size_t json_replace(uint8_t *p, size_t bytes, size_t room,
                                  struct json_span x, const void *with,
                                  size_t n)
{
    uint8_t kept[4096];

    if (n > sizeof(kept) || bytes - (x.end - x.at) + n > room) {
        return bytes;
    }
    if (n > 0) {
        memcpy(kept, with, n);
    }
    memmove(p + x.at + n, p + x.end, bytes - x.end);
    if (n > 0) {
        memcpy(p + x.at, kept, n);
    }
    return bytes - (x.end - x.at) + n;
}

/* Texts that readers may stumble over, and words of the formats. */
static const char *const json_values[] = {
    "0",
    "1",
    "-1",
    "-0",
    "2",
    "3",
    "4",
    "5",
    "8",
    "16",
    "20",
    "48",
    "68",
    "255",
    "256",
    "257",
    "65536",
    "65537",
    "4294967295",
    "4294967296",
    "1152921504606846975",
    "1152921504606846976",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "1e3",
    "0.5",
    "1E400",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[0]",
    "[1,1,1,1]",
    "[1,1,1,1,1]",
    "[2,2,2,2,2,2,2,2,2]",
    "[0,9223372036854775807]",
    "[4294967296,4294967296]",
    "[1073741824,1073741824]",
    "\"\"",
    "\"a\"",
    "\"b\"",
    "\"..\"",
    "\".\"",
    "\"../a\"",
    "\"a/b\"",
    "\".a\"",
    "\"a\\u0000\"",
    "\"\\ud800\"",
    "\"\xc3\xa9\"",
    "\"F32\"",
    "\"F64\"",
    "\"BF16\"",
    "\"I64\"",
    "\"U8\"",
    "\"full\"",
    "\"sharded\"",
    "\"local\"",
    "\"extra.00000.x\"",
    "\"extra.00512.x\"",
    "\"optim.step\"",
    "\"__metadata__\"",
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
    "{\"bytes\":0,\"sha256\":\"\"}",
    "{\"saved_offsets\":[0,0]}",
    "\"saved_offsets\"",
    "\"shape\"",
    "\"dtype\"",
    "\"data_offsets\"",
};

static inline size_t json_awkward(uint8_t *p, size_t bytes, size_t room,
                                  struct json_span x, uint64_t *random)
{
    const char *v = json_values[json_random(random, sizeof(json_values) /
                                                        sizeof(*json_values))];

    return json_replace(p, bytes, room, x, v, strlen(v));
}

/* A member or an element goes, with a comma beside it. */
static inline size_t json_drop(uint8_t *p, size_t bytes, size_t room,
                               struct json_span x)
{
    if (x.end < bytes && p[x.end] == ',') {
        x.end++;
    } else if (x.at > 0 && p[x.at - 1] == ',') {
        x.at--;
    }
    return json_replace(p, bytes, room, x, NULL, 0);
}

/* It is there twice: `x` or "key": x, whatever is in front of it. */
static inline size_t json_double(uint8_t *p, size_t bytes, size_t room,
                                 struct json_span x)
{
    uint8_t twice[2048];
    size_t n = x.end - x.at;

    if (n + 1 > sizeof(twice)) {
        return bytes;
    }
    twice[0] = ',';
    memcpy(twice + 1, p + x.at, n);
    return json_replace(p, bytes, room, (struct json_span){x.end, x.end}, twice,
                        n + 1);
}

/* From a key to the end of its value, where it is a key. */
static inline struct json_span json_member(const uint8_t *p, size_t bytes,
                                           const struct json_span *span,
                                           uint32_t n, uint32_t i)
{
    struct json_span x = span[i];

    if (i + 1 < n && x.end < bytes && p[x.end] == ':') {
        x.end = span[i + 1].end;
    }
    return x;
}

static inline size_t json_digit(uint8_t *p, size_t bytes, struct json_span x,
                                uint64_t *random)
{
    size_t at = x.at + json_random(random, (uint32_t)(x.end - x.at));

    p[at] = p[at] >= '0' && p[at] <= '9'
                ? (uint8_t)('0' + json_random(random, 10))
                : (uint8_t)(p[at] ^ 1u << json_random(random, 7));
    return bytes;
}

static inline size_t json_change(uint8_t *p, size_t bytes, size_t room,
                                 uint64_t *random);

/* A string may be JSON itself, with its quotes escaped: what is in it is
 * changed likewise. */
static inline size_t json_inner(uint8_t *p, size_t bytes, size_t room,
                                struct json_span x, uint64_t *random)
{
    uint8_t plain[1024];
    uint8_t escaped[2 * sizeof(plain) + 2];
    size_t n = 0;
    size_t m = 0;

    if (p[x.at] != '"' || x.end - x.at < 4 || x.end - x.at > sizeof(plain)) {
        return LLVMFuzzerMutate(p, bytes, room);
    }
    for (size_t i = x.at + 1; i + 1 < x.end; i++) {
        i += p[i] == '\\' && p[i + 1] == '"' && i + 2 < x.end;
        plain[n++] = p[i];
    }
    n = json_change(plain, n, sizeof(plain), random);
    escaped[m++] = '"';
    for (size_t i = 0; i < n; i++) {
        if (plain[i] == '"') {
            escaped[m++] = '\\';
        }
        escaped[m++] = plain[i];
    }
    escaped[m++] = '"';
    return json_replace(p, bytes, room, x, escaped, m);
}

/* One change of the text; the new length. */
static inline size_t json_change(uint8_t *p, size_t bytes, size_t room,
                                 uint64_t *random)
{
    struct json_span span[JSON_SPANS];
    uint32_t n = json_spans(p, bytes, span);
    uint32_t i = n ? json_random(random, n) : 0;
    uint32_t k = n ? json_random(random, n) : 0;
    struct json_span x = n ? span[i] : (struct json_span){0, 0};
    struct json_span member = n ? json_member(p, bytes, span, n, i) : x;

    if (n == 0) {
        return LLVMFuzzerMutate(p, bytes, room);
    }
    switch (json_random(random, 10)) {
    case 0:
    case 1:
        return json_awkward(p, bytes, room, x, random);
    case 2:
        return json_replace(p, bytes, room, x, p + span[k].at,
                            span[k].end - span[k].at);
    case 3:
        return json_drop(p, bytes, room, member);
    case 4:
        return json_double(p, bytes, room, member);
    case 5:
        member = json_member(p, bytes, span, n, k);
        return json_double(p, bytes, room, member);
    case 6:
        return json_digit(p, bytes, x, random);
    default:
        return LLVMFuzzerMutate(p, bytes, room);
    }
}

/* A mutator: up to three changes of the text behind the first `skipped` bytes;
 * now and then libFuzzer's own of all. */
static inline size_t json_mutate(uint8_t *p, size_t bytes, size_t room,
                                 unsigned seed, size_t skipped)
{
    uint64_t random = seed;
    uint32_t times = 1 + json_random(&random, 3);

    if (bytes < 2 || room < bytes || json_random(&random, 32) == 0) {
        return LLVMFuzzerMutate(p, bytes, room);
    }
    while (times-- > 0 && bytes > 1) {
        bytes = skipped + json_change(p + skipped, bytes - skipped,
                                      room - skipped, &random);
    }
    return bytes;
}

/* The furthest end below `most` that a header of safetensors gives to data. */
static inline size_t json_data_end(const char *text, size_t bytes, size_t most)
{
    static const char key[] = "\"data_offsets\":[";
    size_t end = 0;

    for (size_t i = 0; i + sizeof(key) < bytes; i++) {
        size_t n = 0;
        if (memcmp(text + i, key, sizeof(key) - 1) != 0) {
            continue;
        }
        for (i += sizeof(key) - 1; i < bytes && text[i] != ']'; i++) {
            bool digit = text[i] >= '0' && text[i] <= '9';
            n = digit && n < most ? 10 * n + (size_t)(text[i] - '0') : 0;
        }
        end = n > end && n < most ? n : end;
    }
    return end;
}

#endif
