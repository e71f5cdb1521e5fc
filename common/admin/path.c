/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/path.h"

#include <string.h>
#include <sys/socket.h>

enum cv_err cv_admin_path(const char *path, struct sockaddr_un *ret, struct cv_why *why) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t n = strlen(path);
  if (n == 0 || n >= sizeof(address.sun_path)) {
    return cv_fail(why, CV_ERR_LIMIT, "%s: the path of a socket has 1 to %zu bytes", path,
                   sizeof(address.sun_path) - 1);
  }
  memcpy(address.sun_path, path, n + 1);
  *ret = address;
  return CV_OK;
}
