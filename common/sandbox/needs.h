/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CV_SANDBOX_NEEDS_H
#define CV_SANDBOX_NEEDS_H

#include <stdbool.h>

enum { CV_SANDBOX_READS = 10, CV_SANDBOX_DIALS = 6 };

/* What a daemon still needs after its start. All strings are borrowed; NULL means not needed. Listening sockets are
 * already open. */
struct cv_sandbox_needs {
  /*
   * Files that are read again after the start. Landlock permits reading everything below their folders, because a file
   * replaced by rename is a new file to the kernel. If a file is a symbolic link, the folder of its target is
   * permitted, too.
   */
  const char *reads[CV_SANDBOX_READS];
  const char *state;   /* folder in which the daemon creates, reads, writes and removes files */
  const char *socket;  /* Unix socket, removed at the end; the rule permits removing any file of its folder */
  bool listens;        /* a bound socket listens only later */
  const char *appends; /* file that may be created again in its folder, and appended to */
  /* HOST:PORT, or a list of them (base/address.h): TCP to these ports only; if a HOST is a name, also name
   * resolution. Or the path of a Unix socket, which permits all of them that the user may connect to. */
  const char *dials[CV_SANDBOX_DIALS];
};

/* True if `dials` has an address. */
bool cv_sandbox_dials(const struct cv_sandbox_needs *needs);
/* True if one of them is a Unix socket. */
bool cv_sandbox_dials_here(const struct cv_sandbox_needs *needs);
/* True if a host in `dials` is a name that must be resolved. */
bool cv_sandbox_looks_up(const struct cv_sandbox_needs *needs);

#endif
