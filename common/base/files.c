/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files.h"

#include <sys/resource.h>

enum { OTHERS = 64 /* databases, logs, sockets of which there are few */ };

static unsigned reserved;

struct cv_files cv_files_reserve(unsigned n) {
  struct cv_files files = {.granted = n, .needed = (uint64_t)OTHERS + reserved + n};
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return files;
  }
  files.most = limit.rlim_max;
  if (limit.rlim_cur < files.needed) {
    struct rlimit more = {.rlim_cur = files.needed < files.most ? files.needed : files.most, .rlim_max = files.most};
    limit = setrlimit(RLIMIT_NOFILE, &more) == 0 ? more : limit;
  }
  uint64_t room = limit.rlim_cur > OTHERS + reserved ? limit.rlim_cur - OTHERS - reserved : 0;
  files.granted = room < n ? (unsigned)room : n;
  reserved += files.granted;
  return files;
}

void cv_files_release(const struct cv_files *files) {
  reserved -= files->granted;
}
