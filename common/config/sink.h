/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written through a buffer, and the reason if that fails: a stream forgets it, and by the time of
 * fclose() errno is another call's.
 */
#ifndef CV_CONFIG_SINK_H
#define CV_CONFIG_SINK_H

#include <stdio.h>

/* Creates or empties the file. fclose() fails, with errno of the first failure, unless everything was written. NULL,
 * with errno: it cannot be opened. The stream has no fileno(). */
FILE *cv_sink_open(const char *path);
/* The same of an open descriptor, which it takes, also on failure. */
FILE *cv_sink_of(int fd);

#endif
