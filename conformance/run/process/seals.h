/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seals.h - the state of each case's folder when the case had ended, so that
 * what is changed there later does not pass for what the case showed. For
 * where no namespace keeps engines away from it (isolate.h).
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

/* Seals a folder as it is now. NOMEM; IO where the machine cannot look at it
 * (its descriptors are used up, say). No engine has done that, but the record
 * cannot be vouched for: it loses its case.json, so that it is not judged, and
 * a line on stderr says why. */
int seals_add(struct seals *s, const char *folder);
/* Looks at all of them again, when nothing of any engine runs any more. A
 * folder that has changed, and one that the machine cannot look at any more,
 * lose their case.json, and a line on stderr says which of the two it is.
 * Returns how many there are. */
uint32_t seals_check(const struct seals *s);
void seals_release(struct seals *s);

#endif
