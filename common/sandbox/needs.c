/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sandbox/needs.h"

#include <arpa/inet.h>

#include "common/net/address.h"

bool cv_sandbox_looks_up(const struct cv_sandbox_needs *needs) {
  struct cv_address address;
  unsigned char ip[sizeof(struct in6_addr)];
  return needs->dials != NULL && cv_address_parse(needs->dials, &address, NULL) == CV_OK &&
         inet_pton(AF_INET, address.host, ip) != 1 && inet_pton(AF_INET6, address.host, ip) != 1;
}
