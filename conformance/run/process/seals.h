/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seals.h - the state of each case's folder when the case had ended, so that
 * what is changed there later does not pass for what the case showed. It is
 * used where no namespace keeps engines away from the folder (isolate.h).
 *
 * A seal is what the file system says of the files: their names, numbers, sizes
 * and the time of the last change, which programs cannot set.
 */
#ifndef FSDP_CTS_SEALS_H
#define FSDP_CTS_SEALS_H

#include <stdint.h>

struct seal {
    char *folder;
    uint64_t state;
};

struct seals {
    struct seal *seal;
    uint32_t n;
};

/* Seals a folder as it is now. NOMEM. IO: the machine cannot look at it (its
 * descriptors are used up, say). No engine has done that, but nobody can vouch
 * for the record: its case.json is removed, so that it is not judged, and a
 * line on stderr says why. */
int seals_add(struct seals *s, const char *folder);
/* Looks at all sealed folders again, when no engine runs any more. If a folder
 * has changed, or the machine can no longer look at it, its case.json is
 * removed, and a line on stderr says which of the two it was. Returns the
 * number of such folders. */
uint32_t seals_check(const struct seals *s);
void seals_release(struct seals *s);

#endif
