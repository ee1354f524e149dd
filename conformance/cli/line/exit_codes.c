/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_codes.c - the exit codes of commands. docs/interpreting.md says more of
 * each verdict.
 */
#include "cli/line/exit_codes.h"
#include "cli/line/arguments.h"

const struct exit_code exit_codes[N_EXIT_CODES] = {
    {EXIT_CONFORMANT, "conformant, or all of a selection passed; or the "
                      "command has done its work"},
    {EXIT_NOT_CONFORMANT, "not conformant; other commands: the command failed"},
    {EXIT_INCOMPLETE, "incomplete: no verdict; with --strict any selection"},
    {EXIT_USAGE, "usage error: nothing was done"},
    {EXIT_BAD_DATA, "bad data: records, a report or a bundle cannot be read"},
    {EXIT_OUTPUT, "what was asked for could not be written"},
    {EXIT_SKIPPED, "skipped: nothing of a selection is claimed, or all of it "
                   "is blocked"},
};

void exit_codes_print(FILE *to)
{
    fprintf(to, "\nexit codes:\n");
    for (int i = 0; i < N_EXIT_CODES; i++) {
        fprintf(to, "  %2d  %s\n", exit_codes[i].code, exit_codes[i].text);
    }
}
