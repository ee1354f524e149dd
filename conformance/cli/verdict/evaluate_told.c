/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_told.c - see evaluate_told.h. */
#include "cli/verdict/evaluate_told.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_BYTES = 1 << 16
};

/* NULL: there is none. */
static char *read_text(const char *records, const char *id)
{
    char path[4096];
    struct stat s;
    char *text = NULL;
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof(path), "%.3000s/%s/" RECORD_TOLD, records, id);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) {
        text = malloc(MAX_BYTES + 1);
    }
    if (text) {
        n = read(fd, text, MAX_BYTES);
    }
    (void)close(fd);
    if (n <= 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

void evaluate_told(const struct evaluate_input *e, const struct judge_result *r)
{
    for (uint32_t c = 0; c < r->n_cases; c++) {
        struct judge_case *one = &r->cases[c];
        uint32_t q;

        if (!judge_first_cause_of(r, c, &q)) {
            continue;
        }
        free(one->told);
        one->told = read_text(e->records, one->id);
        for (uint32_t i = 0; i < e->n_others && !one->told; i++) {
            one->told = read_text(e->others[i].records, one->id);
        }
    }
}
