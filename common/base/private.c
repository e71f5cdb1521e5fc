/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum cv_err cv_private_check(int fd, const char *path, struct cv_why *why) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  return (info.st_mode & (S_IRWXG | S_IRWXO)) == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED, "%s is open to others than its owner; expected mode 0600", path);
}
