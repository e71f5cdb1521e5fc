/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The people who may open the form: a file with a line `NUMBER TOKEN` a person. Person 1 is the first worker of the
 * gateway's certificate, and so on: a person keeps its number, and with it what it has given. Lines that begin with #
 * are comments. Whoever has a token can answer as that person, so the file must be closed to others.
 */
#ifndef CV_WORKER_INVITED_H
#define CV_WORKER_INVITED_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/rng.h"
#include "common/page/door.h"

enum { CV_INVITED_MAX = 10000 };

struct cv_invitation {
  uint64_t number; /* from 1 */
  char token[CV_DOOR_TOKEN_MOST + 1];
};

struct cv_invited {
  struct cv_invitation *person; /* owned; by number, each number and each token once */
  size_t people;
};

/* CV_ERR_IO, CV_ERR_INVALID with file and line, CV_ERR_DENIED if others may read the file, CV_ERR_LIMIT or
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_invited_read(const char *path, struct cv_invited *ret, struct cv_why *why);
void cv_invited_fini(struct cv_invited *invited);
/* Appends `more` people with new tokens and the next numbers to the file, which is created with mode 0600 if it does
 * not exist; *ret has all. */
CV_MUST_USE enum cv_err cv_invited_add(const char *path, uint64_t more, struct cv_rng *rng, struct cv_invited *ret,
                                       struct cv_why *why);

#endif
