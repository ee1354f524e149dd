/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate.c - changes one thing in a C source: lists what can be changed, or
 * prints the source with the n-th of these changes.
 *
 * It knows tokens, no types, so some mutants do not compile; who uses it
 * skips those. Whether `*` or `-` has one operand or two it tells by the
 * blanks that clang-format puts around binary operators.
 */
#include "c_tokens.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TO_BYTES = 160
};

struct mutation {
    const char *rule;
    size_t begin, end; /* what is replaced */
    char to[TO_BYTES];
};

struct source {
    char *text; /* n bytes and a '\0' */
    size_t n;
    struct tokens t;
    struct mutation *mutation;
    size_t n_mutations;
    bool failed; /* out of memory */
};

/* ---- Mutations --------------------------------------------------------- */

/* Tokens [first, last] become what format says. */
__attribute__((format(printf, 5, 6))) static void add(struct source *s,
                                                      const char *rule,
                                                      size_t first, size_t last,
                                                      const char *format, ...)
{
    struct mutation *grown =
        realloc(s->mutation, (s->n_mutations + 1) * sizeof(*grown));
    va_list arguments;
    int n;

    if (!grown) {
        s->failed = true;
        return;
    }
    s->mutation = grown;
    grown += s->n_mutations;
    grown->rule = rule;
    grown->begin = tokens_at(&s->t, first).begin;
    grown->end = tokens_at(&s->t, last).end;
    va_start(arguments, format);
    n = vsnprintf(grown->to, sizeof(grown->to), format, arguments);
    va_end(arguments);
    s->n_mutations += n >= 0 && (size_t)n < sizeof(grown->to);
}

/* Whether the operator at i stands between two operands. */
static bool is_binary(const struct source *s, size_t i)
{
    struct token t = tokens_at(&s->t, i);

    return t.begin > 0 && isspace((unsigned char)s->text[t.begin - 1]) &&
           isspace((unsigned char)s->text[t.end]);
}

static void operators(struct source *s, size_t i)
{
    static const char *const swap[][3] = {
        {"relation", "<", "<="},    {"relation", "<=", "<"},
        {"relation", ">", ">="},    {"relation", ">=", ">"},
        {"relation", "==", "!="},   {"relation", "!=", "=="},
        {"arithmetic", "+", "-"},   {"arithmetic", "-", "+"},
        {"arithmetic", "*", "/"},   {"arithmetic", "/", "*"},
        {"arithmetic", "%", "*"},   {"bits", "&", "|"},
        {"bits", "|", "&"},         {"bits", "^", "&"},
        {"bits", "<<", ">>"},       {"bits", ">>", "<<"},
        {"assignment", "+=", "-="}, {"assignment", "-=", "+="},
        {"assignment", "*=", "/="}, {"assignment", "/=", "*="},
        {"assignment", "|=", "&="}, {"assignment", "&=", "|="},
        {"increment", "++", "--"},  {"increment", "--", "++"},
        {"logic", "&&", "||"},      {"logic", "||", "&&"},
    };

    for (size_t k = 0; k < sizeof(swap) / sizeof(*swap); k++) {
        bool increments = strcmp(swap[k][0], "increment") == 0;
        if (tokens_is(&s->t, i, swap[k][1]) &&
            (increments || is_binary(s, i))) {
            add(s, swap[k][0], i, i, "%s", swap[k][2]);
        }
    }
    if (tokens_is(&s->t, i, "!")) {
        add(s, "not", i, i, "%s", "");
    }
    if (tokens_is(&s->t, i, "true") || tokens_is(&s->t, i, "false")) {
        add(s, "constant", i, i, "%s",
            tokens_is(&s->t, i, "true") ? "false" : "true");
    }
}

/* 0 <-> 1, n -> n + 1; of fractions only 0.0 and 1.0. */
static void constant(struct source *s, size_t i)
{
    struct token t = tokens_at(&s->t, i);
    char *suffix;
    unsigned long long n = strtoull(s->text + t.begin, &suffix, 0);
    int length = (int)(t.end - (size_t)(suffix - s->text));

    if (t.kind != TOKEN_NUMBER) {
        return;
    }
    if (tokens_is(&s->t, i, "0.0f") || tokens_is(&s->t, i, "1.0f")) {
        add(s, "constant", i, i, "%s",
            tokens_is(&s->t, i, "0.0f") ? "1.0f" : "0.0f");
    } else if (!memchr(s->text + t.begin, '.', t.end - t.begin)) {
        add(s, "constant", i, i, "%llu%.*s", n == 1 ? 0 : n + 1, length,
            suffix);
    }
}

/* The ';' that ends the statement that begins at i; n_tokens if the brackets
 * do not match. */
static size_t statement_end(const struct source *s, size_t i)
{
    while (i < s->t.n_tokens && !tokens_is(&s->t, i, ";")) {
        if (tokens_is(&s->t, i, "}")) {
            return s->t.n_tokens;
        }
        i = tokens_is(&s->t, i, "(") || tokens_is(&s->t, i, "[") ||
                    tokens_is(&s->t, i, "{")
                ? tokens_closing(&s->t, i) + 1
                : i + 1;
    }
    return i < s->t.n_tokens ? i : s->t.n_tokens;
}

/* Behind an lvalue as a->b[i].c, *p, that begins at i. */
static size_t lvalue_end(const struct source *s, size_t i)
{
    static const char *const no[] = {"if",     "for",  "while",   "do",
                                     "switch", "case", "default", "return",
                                     "sizeof", "goto", "else",    NULL};

    while (tokens_is(&s->t, i, "*")) {
        i++;
    }
    if (tokens_at(&s->t, i).kind != TOKEN_WORD || tokens_is_any(&s->t, i, no)) {
        return s->t.n_tokens;
    }
    for (i++;;) {
        if (tokens_is(&s->t, i, "[")) {
            i = tokens_closing(&s->t, i) + 1;
        } else if (tokens_is(&s->t, i, "->") || tokens_is(&s->t, i, ".")) {
            i += 2;
        } else {
            return i;
        }
    }
}

/* A call, an assignment, a jump, that goes. */
static void statement(struct source *s, size_t i)
{
    static const char *const sets[] = {
        "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--", NULL};
    static const char *const before[] = {";", "{", "}", ":", NULL};
    size_t end;
    size_t last;

    if (tokens_is(&s->t, i, "break") || tokens_is(&s->t, i, "continue")) {
        add(s, "jump", i, i, "%s", "");
        return;
    }
    if (!tokens_is_any(&s->t, i - 1, before)) {
        return;
    }
    end = lvalue_end(s, i);
    last = statement_end(s, i);
    if (end >= s->t.n_tokens || last >= s->t.n_tokens) {
        return;
    }
    if (tokens_is(&s->t, end, "(") && tokens_closing(&s->t, end) + 1 == last) {
        add(s, "call", i, last, "%s", ";");
    } else if (tokens_is_any(&s->t, end, sets)) {
        add(s, "statement", i, last, "%s", ";");
    }
}

static void conditions_and_returns(struct source *s, size_t i)
{
    /* The constant rule has true and 1; 0 has nowhere to go. */
    static const char *const no[] = {"FSDP_OK", "0",    "1",
                                     "false",   "true", NULL};
    size_t last;

    if (tokens_is(&s->t, i, "if") && tokens_is(&s->t, i + 1, "(")) {
        last = tokens_closing(&s->t, i + 1);
        if (last < s->t.n_tokens) {
            add(s, "condition", i + 1, last, "%s", "(0)");
            add(s, "condition", i + 1, last, "%s", "(1)");
        }
    } else if (tokens_is(&s->t, i, "return")) {
        last = statement_end(s, i);
        if (last < s->t.n_tokens && last > i + 1 &&
            !(last == i + 2 && tokens_is_any(&s->t, i + 1, no))) {
            add(s, "result", i, last, "%s", "return 0;");
        }
    }
}

/* f(.., a, b, ..) -> f(.., b, a, ..); what a type forbids does not compile. */
static void arguments(struct source *s, size_t i)
{
    static const char *const before[] = {"(", ",", NULL};
    static const char *const after[] = {")", ",", NULL};
    struct token a = tokens_at(&s->t, i);
    struct token b = tokens_at(&s->t, i + 2);
    int n_a = (int)(a.end - a.begin);
    int n_b = (int)(b.end - b.begin);
    bool same = n_a == n_b &&
                memcmp(s->text + a.begin, s->text + b.begin, (size_t)n_a) == 0;

    if (a.kind == TOKEN_WORD && b.kind == TOKEN_WORD && !same &&
        tokens_is(&s->t, i + 1, ",") && tokens_is_any(&s->t, i - 1, before) &&
        tokens_is_any(&s->t, i + 3, after)) {
        add(s, "arguments", i, i + 2, "%.*s, %.*s", n_b, s->text + b.begin, n_a,
            s->text + a.begin);
    }
}

static void find(struct source *s)
{
    size_t depth = 0; /* of parentheses: a for loop's head has no statements */

    for (size_t i = 0; i < s->t.n_tokens; i++) {
        depth += tokens_is(&s->t, i, "(");
        depth -= tokens_is(&s->t, i, ")") && depth > 0;
        operators(s, i);
        constant(s, i);
        if (depth == 0) {
            statement(s, i);
        }
        conditions_and_returns(s, i);
        arguments(s, i);
    }
}

/* ---- In and out -------------------------------------------------------- */

static bool read_source(const char *path, struct source *s)
{
    FILE *f = fopen(path, "rb");
    size_t room = 0;
    size_t n = 1;

    while (f && n > 0) {
        char *grown;
        room = s->n + 65536;
        grown = realloc(s->text, room + 1);
        if (!grown) {
            break;
        }
        s->text = grown;
        n = fread(s->text + s->n, 1, room - s->n, f);
        s->n += n;
        s->text[s->n] = '\0';
    }
    if (!f || n > 0 || ferror(f)) {
        perror(path);
        s->failed = true;
    }
    if (f) {
        fclose(f);
    }
    return !s->failed;
}

/* On one line, and not all of it if it is long. */
static void print_short(const char *text, size_t n)
{
    size_t shown = 0;

    for (size_t i = 0; i < n && shown < 60; i++) {
        bool blank = isspace((unsigned char)text[i]);
        if (!blank || (i + 1 < n && !isspace((unsigned char)text[i + 1]))) {
            putchar(blank ? ' ' : text[i]);
            shown++;
        }
    }
    printf("%s", shown == 60 ? "..." : "");
}

/* FNV-1a over n bytes, blanks left out. */
static uint32_t hash(uint32_t h, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isspace((unsigned char)text[i])) {
            h = (h ^ (unsigned char)text[i]) * 16777619u;
        }
    }
    return h;
}

/*
 * A number that stays when other lines come or go: a hash of the mutation, its
 * line up to it and from it on, and the line before. The mutations with the
 * lowest of these are a sample that an edit of the source hardly changes.
 */
static uint32_t key_of(const struct source *s, const struct mutation *m,
                       size_t line_before, size_t line_begin)
{
    size_t rest = strcspn(s->text + m->begin, "\n");
    uint32_t h = 2166136261u;

    h = hash(h, s->text + line_before, line_begin - line_before);
    h = hash(h, s->text + line_begin, m->begin - line_begin);
    h = hash(h, m->rule, strlen(m->rule) + 1);
    h = hash(h, s->text + m->begin, rest);
    h = hash(h, m->to, strlen(m->to) + 1);
    /* Of FNV the low bits are good, and the lowest numbers are taken. */
    h = (h ^ h >> 16) * 2246822507u;
    h = (h ^ h >> 13) * 3266489909u;
    return h ^ h >> 16;
}

static void list(const struct source *s)
{
    size_t i = 0;
    size_t line = 1;
    size_t line_before = 0;
    size_t line_begin = 0;

    for (size_t k = 0; k < s->n_mutations; k++) {
        const struct mutation *m = &s->mutation[k];
        for (; i < m->begin; i++) {
            if (s->text[i] == '\n') {
                line++;
                line_before = line_begin;
                line_begin = i + 1;
            }
        }
        printf("%zu %08x %zu:%zu %s ", k + 1,
               (unsigned)key_of(s, m, line_before, line_begin), line,
               m->begin - line_begin + 1, m->rule);
        print_short(s->text + m->begin, m->end - m->begin);
        printf(" -> %s\n", m->to[0] ? m->to : "(nothing)");
    }
}

/* Lines stay where they are: the compiler's reports fit both sources. */
static void print_mutant(const struct source *s, const struct mutation *m)
{
    fwrite(s->text, 1, m->begin, stdout);
    fputs(m->to, stdout);
    for (size_t i = m->begin; i < m->end; i++) {
        if (s->text[i] == '\n') {
            putchar('\n');
        }
    }
    fwrite(s->text + m->end, 1, s->n - m->end, stdout);
}

static int usage(void)
{
    fputs("usage: mutate --list FILE    N KEY LINE:COLUMN RULE FROM -> TO\n"
          "       mutate FILE N         FILE with mutation N\n",
          stderr);
    return 64;
}

int main(int argc, char **argv)
{
    struct source s = {0};
    bool lists = argc == 3 && strcmp(argv[1], "--list") == 0;
    unsigned long long n = 0;
    char *end = NULL;
    int status = 0;

    if (argc != 3) {
        return usage();
    }
    if (!lists) {
        n = strtoull(argv[2], &end, 10);
        if (n == 0 || *end) {
            return usage();
        }
    }
    if (read_source(argv[lists ? 2 : 1], &s)) {
        s.failed = !tokens_cut(s.text, s.n, &s.t);
        find(&s);
    }
    if (s.failed || (!lists && n > s.n_mutations)) {
        fputs("mutate: no such mutation, or out of memory\n", stderr);
        status = 65;
    } else if (lists) {
        list(&s);
    } else {
        print_mutant(&s, &s.mutation[n - 1]);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        status = 65;
    }
    free(s.text);
    free(s.t.token);
    free(s.mutation);
    return status;
}
