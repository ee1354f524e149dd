/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help_pages.c - asks each command for its --help and reads the options there:
 * a command's options are described in one place, whichever way it parses them.
 */
#include "cli/line/help_pages.h"
#include "cli/line/arguments.h"
#include "cli/line/exit_codes.h"
#include "cli/line/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- What a command says ---- */

/* The --help of a command, in a file at its beginning; NULL: it could not be
 * read. */
static FILE *ask(const struct command *c)
{
    char name[32];
    char option[] = "--help";
    char *words[] = {name, option, NULL};
    FILE *said = tmpfile();
    const int out = said ? dup(STDOUT_FILENO) : -1;

    snprintf(name, sizeof(name), "%s", c->name);
    fflush(stdout);
    if (out < 0 || dup2(fileno(said), STDOUT_FILENO) < 0) {
        if (said) {
            fclose(said);
        }
        return NULL;
    }
    c->run(2, words);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    rewind(said);
    return said;
}

struct option_said {
    char name[64];  /* without dashes */
    char text[512]; /* the text behind the option, and on the lines below */
};

/* Takes the lines that go on with an option's text. */
static void take_text(FILE *said, struct option_said *o)
{
    char line[1024];
    long at = ftell(said);

    while (fgets(line, sizeof(line), said) && strspn(line, " ") > 8) {
        const size_t n = strlen(o->text);

        line[strcspn(line, "\n")] = '\0';
        snprintf(o->text + n, sizeof(o->text) - n, "%s%s", n > 0 ? " " : "",
                 line + strspn(line, " "));
        at = ftell(said);
    }
    (void)fseek(said, at, SEEK_SET);
}

/* The next option: "  --name VALUE  text". */
static bool next_option(FILE *said, struct option_said *o)
{
    char line[1024];

    while (fgets(line, sizeof(line), said)) {
        const char *at = line + strspn(line, " ");
        const char *text;
        size_t n;

        line[strcspn(line, "\n")] = '\0';
        if (at == line || strncmp(at, "--", 2) != 0) {
            continue;
        }
        at += 2;
        n = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
        text = strstr(at, "  ");
        snprintf(o->name, sizeof(o->name), "%.*s", (int)n, at);
        snprintf(o->text, sizeof(o->text), "%.500s",
                 text ? text + strspn(text, " ") : "");
        if (n > 0) {
            take_text(said, o);
            return true;
        }
    }
    return false;
}

/* ---- Shells ---- */

/* Prints text in single quotes; `colon`: with a colon that is not zsh's own as
 * zsh wants it. */
static void quoted(const char *text, const char *quote, bool colon)
{
    for (; *text; text++) {
        if (*text == '\'') {
            printf("%s", quote);
        } else {
            printf("%s%c", colon && *text == ':' ? "\\" : "", *text);
        }
    }
}

static void begin_form(const char *form, const struct command *all, int n)
{
    if (strcmp(form, "bash") == 0) {
        printf("_fsdp_cts()\n{\n    local words='");
        for (int i = 0; i < n; i++) {
            printf("%s%s", all[i].help ? all[i].name : "",
                   all[i].help ? " " : "");
        }
        printf("'\n    if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
               "        case ${COMP_WORDS[1]} in\n");
    } else if (strcmp(form, "zsh") == 0) {
        printf("#compdef fsdp-cts\n_fsdp_cts()\n{\n    local -a words_\n"
               "    words_=(");
        for (int i = 0; i < n; i++) {
            if (all[i].help) {
                printf("\n        '%s:", all[i].name);
                quoted(all[i].help, "'\\''", true);
                printf("'");
            }
        }
        printf(
            ")\n    if (( CURRENT > 2 )); then\n        case $words[2] in\n");
    }
}

static void command(const char *form, const struct command *c, FILE *said)
{
    const bool bash = strcmp(form, "bash") == 0;
    struct option_said o;

    if (strcmp(form, "fish") == 0) {
        printf("complete -c fsdp-cts -n __fish_use_subcommand -f -a %s -d '",
               c->name);
        quoted(c->help, "\\'", false);
        printf("'\n");
        while (next_option(said, &o)) {
            printf("complete -c fsdp-cts -n '__fish_seen_subcommand_from %s' "
                   "-l %s -d '",
                   c->name, o.name);
            quoted(o.text, "\\'", false);
            printf("'\n");
        }
        return;
    }
    printf(bash ? "        %s) words='" : "        %s) words_=(", c->name);
    while (next_option(said, &o)) {
        if (bash) {
            printf("--%s ", o.name);
        } else {
            printf("\n            '--%s:", o.name);
            quoted(o.text, "'\\''", true);
            printf("'");
        }
    }
    printf(bash ? "' ;;\n" : ") ;;\n");
}

static void end(const char *form)
{
    if (strcmp(form, "bash") == 0) {
        printf("        *) words= ;;\n        esac\n    fi\n"
               "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
               "\"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
               "complete -o default -F _fsdp_cts fsdp-cts\n");
    } else if (strcmp(form, "zsh") == 0) {
        printf("        *) words_=() ;;\n        esac\n    fi\n"
               "    _describe 'fsdp-cts' words_ || _files\n}\n"
               /* If zsh loads the file by its name, the function is called
                * here; if it is sourced, it is not. */
               "if [[ $funcstack[1] = _fsdp-cts ]]; then\n"
               "    _fsdp_cts \"$@\"\n"
               "else\n"
               "    compdef _fsdp_cts fsdp-cts\n"
               "fi\n");
    }
}

/* ---- The manual ---- */

static void roff(const char *line)
{
    printf("%s", *line == '.' || *line == '\'' ? "\\&" : "");
    for (; *line; line++) {
        printf(*line == '\\' ? "\\e" : *line == '-' ? "\\-" : "%c", *line);
    }
}

static void section(const struct command *c, FILE *said)
{
    char line[1024];

    printf(".SS %s\n", c->name);
    roff(c->help);
    printf(".\n.PP\n.nf\n");
    while (fgets(line, sizeof(line), said) &&
           strcmp(line, "exit codes:\n") != 0) {
        roff(line);
    }
    printf(".fi\n");
}

static void begin_page(void)
{
    printf(".TH FSDP\\-CTS 1 \"\" \"fsdp-cts %s\"\n.SH NAME\n"
           "fsdp\\-cts \\- conformance tests for Fully Sharded Data Parallel\n"
           ".SH SYNOPSIS\n.B fsdp\\-cts\n.I COMMAND\n[\\fIOPTION\\fR ...]\n"
           ".SH COMMANDS\n",
           version_text());
}

static void end_page(void)
{
    printf(".SH EXIT STATUS\n");
    for (int i = 0; i < N_EXIT_CODES; i++) {
        printf(".TP\n.B %d\n", exit_codes[i].code);
        roff(exit_codes[i].text);
        printf("\n");
    }
}

bool help_pages(const char *form, const struct command *all, int n, int *code)
{
    static const char *const forms[] = {"bash", "zsh", "fish", "man"};
    const bool page = strcmp(form, "man") == 0;
    bool known = false;

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        known = known || strcmp(forms[i], form) == 0;
    }
    if (!known) {
        return false;
    }
    *code = 0;
    page ? begin_page() : begin_form(form, all, n);
    for (int i = 0; i < n; i++) {
        FILE *said = all[i].help ? ask(&all[i]) : NULL;

        if (said) {
            page ? section(&all[i], said) : command(form, &all[i], said);
            fclose(said);
        } else if (all[i].help) {
            *code = EXIT_OUTPUT;
        }
    }
    page ? end_page() : end(form);
    return true;
}
