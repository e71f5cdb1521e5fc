/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sandbox/needs.h"

#include <arpa/inet.h>

#include "common/net/address.h"

bool cv_sandbox_dials(const struct cv_sandbox_needs *needs) {
  bool any = false;
  for (size_t i = 0; i < CV_SANDBOX_DIALS; i++) {
    any = any || needs->dials[i] != NULL;
  }
  return any;
}

static bool is_name(const char *dials) {
  struct cv_address address;
  unsigned char ip[sizeof(struct in6_addr)];
  return dials != NULL && cv_address_parse(dials, &address, NULL) == CV_OK &&
         inet_pton(AF_INET, address.host, ip) != 1 && inet_pton(AF_INET6, address.host, ip) != 1;
}

bool cv_sandbox_looks_up(const struct cv_sandbox_needs *needs) {
  bool any = false;
  for (size_t i = 0; i < CV_SANDBOX_DIALS; i++) {
    any = any || is_name(needs->dials[i]);
  }
  return any;
}
