/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/uverr.h"

#include <uv.h>

enum cv_err cv_uv_err(int status) {
  switch (status) {
    case UV_ENOMEM:
      return CV_ERR_NOMEM;
    case UV_EINVAL:
      return CV_ERR_INVALID;
    case UV_EADDRINUSE:
    case UV_EEXIST:
      return CV_ERR_EXISTS;
    case UV_EACCES:
    case UV_EPERM:
      return CV_ERR_DENIED;
    case UV_ENOENT:
    case UV_EADDRNOTAVAIL:
    case UV_EAI_NONAME:
    case UV_EAI_NODATA:
      return CV_ERR_NOT_FOUND;
    case UV_EMFILE:
    case UV_ENFILE:
      return CV_ERR_LIMIT;
    case UV_EOF:
    case UV_ECONNRESET:
    case UV_EPIPE:
    case UV_ECANCELED:
      return CV_ERR_CLOSED;
    default:
      return CV_ERR_IO;
  }
}

enum cv_err cv_uv_fail(struct cv_why *why, int status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  cv_why_vset(why, fmt, args);
  va_end(args);
  cv_why_because(why, uv_strerror(status));
  return cv_uv_err(status);
}
