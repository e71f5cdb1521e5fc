/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/bind.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/address.h"

static bool is_loopback(const struct sockaddr *address) {
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
  }
  return address->sa_family == AF_INET &&
         ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
}

static enum cv_err listen_at(const struct addrinfo *at, const char *what, const char *text, int *ret,
                             unsigned *ret_port, struct cv_why *why) {
  struct sockaddr_storage own;
  socklen_t own_n = sizeof(own);
  const int yes = 1;
  int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, (struct sockaddr *)&own, &own_n) != 0) {
    enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: cannot listen on %s: %s", what, text, strerror(errno));
    if (fd >= 0) {
      (void)close(fd);
    }
    return err;
  }
  *ret = fd;
  *ret_port = cv_sockaddr_port((const struct sockaddr *)&own);
  return CV_OK;
}

enum cv_err cv_page_bind(const char *what, const char *text, bool anywhere, int *ret_socket, unsigned *ret_port,
                         struct cv_why *why) {
  static const struct addrinfo hints = {
      .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  struct cv_address address;
  struct addrinfo *found = NULL;
  if (cv_address_parse(text, &address, why) != CV_OK) {
    cv_why_prefix(why, "%s", what);
    return CV_ERR_FORMAT;
  }
  int status = getaddrinfo(address.host, address.port, &hints, &found);
  if (status != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot find host %s: %s", what, address.host, gai_strerror(status));
  }
  enum cv_err err = CV_OK;
  if (!anywhere && !is_loopback(found->ai_addr)) {
    err = cv_fail(why, CV_ERR_INVALID,
                  "%s: %s is not an address of this machine alone; expected 127.0.0.1:PORT, or %s_hosts with the "
                  "names by which others may open the page",
                  what, text, what);
  }
  err = err == CV_OK ? listen_at(found, what, text, ret_socket, ret_port, why) : err;
  freeaddrinfo(found);
  return err;
}
