/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/datagram.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static enum cv_err set_address(const char *path, struct cv_datagram *to, struct cv_why *why) {
  size_t n = strlen(path);
  if ((path[0] != '/' && path[0] != '@') || n < 2 || n >= sizeof(to->address.sun_path)) {
    return cv_fail(why, CV_ERR_INVALID, "expected an absolute path or @NAME, of at most %zu bytes",
                   sizeof(to->address.sun_path) - 1);
  }
  to->address.sun_family = AF_UNIX;
  memcpy(to->address.sun_path, path, n);
  to->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
  if (path[0] == '@') {
    to->address.sun_path[0] = '\0'; /* an abstract address: it ends with its length */
  } else {
    to->length++;
  }
  return CV_OK;
}

enum cv_err cv_datagram_open(const char *path, struct cv_datagram *ret, struct cv_why *why) {
  const struct timeval wait = {.tv_usec = CV_DATAGRAM_WAIT_MS * 1000};
  struct cv_datagram made = {.fd = -1};
  CV_TRY(set_address(path, &made, why));
  made.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made.fd < 0) {
    return cv_fail(why, CV_ERR_IO, "cannot create a socket: %s", strerror(errno));
  }
  /* Connected, because the sandbox permits a send to an abstract address only on a connection from before. */
  if (connect(made.fd, (const struct sockaddr *)&made.address, made.length) != 0) {
    enum cv_err err = errno == EACCES ? CV_ERR_DENIED : errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO;
    (void)cv_fail(why, err, "%s: %s", path, strerror(errno));
    (void)close(made.fd);
    return err;
  }
  (void)setsockopt(made.fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  *ret = made;
  return CV_OK;
}

enum cv_err cv_datagram_send(struct cv_datagram *to, const void *bytes, size_t n) {
  int flags = MSG_NOSIGNAL | (to->is_slow ? MSG_DONTWAIT : 0);
  ssize_t sent = send(to->fd, bytes, n, flags);
  /* The receiver has gone; a new one may have bound the same address. */
  if (sent < 0 && (errno == ECONNREFUSED || errno == ENOTCONN || errno == ECONNRESET || errno == EDESTADDRREQ)) {
    sent = sendto(to->fd, bytes, n, flags, (const struct sockaddr *)&to->address, to->length);
  }
  if (sent >= 0) {
    to->is_slow = false;
    return CV_OK;
  }
  to->is_slow = errno == EAGAIN;
  return to->is_slow || errno == ENOBUFS ? CV_ERR_LIMIT : CV_ERR_CLOSED;
}
