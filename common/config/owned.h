/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a message may quote a file. Whoever writes a campaign names a data file by its path, and a program that has
 * more rights than the reader of its messages (root, sudo) would tell the reader what is in a file of others.
 */
#ifndef CV_CONFIG_OWNED_H
#define CV_CONFIG_OWNED_H

#include "common/base/err.h"

/*
 * True if the program has no rights but those of the user who started it: that user could read the file itself. With
 * more rights (root, sudo) the file must be that user's own, and `named_in`, the file that names it (NULL: the user
 * did), must have the same owner.
 */
bool cv_owned_may_quote(const char *path, const char *named_in);
/* Passes `err` on, of reading that file; where the message may not quote the file, only the place stays in it. */
CV_MUST_USE enum cv_err cv_owned_tell(const char *path, const char *named_in, enum cv_err err, struct cv_why *why);

#endif
