/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sandbox/needs.h"

#include <arpa/inet.h>

#include "common/base/address.h"

bool cv_sandbox_dials(const struct cv_sandbox_needs *needs) {
  bool any = false;
  for (size_t i = 0; i < CV_SANDBOX_DIALS; i++) {
    any = any || needs->dials[i] != NULL;
  }
  return any;
}

bool cv_sandbox_dials_here(const struct cv_sandbox_needs *needs) {
  bool any = false;
  for (size_t i = 0; i < CV_SANDBOX_DIALS; i++) {
    any = any || (needs->dials[i] != NULL && needs->dials[i][0] == '/');
  }
  return any;
}

static bool has_name(const char *dials) {
  struct cv_addresses addresses = {0};
  unsigned char ip[sizeof(struct in6_addr)];
  bool any = false;
  if (dials == NULL || cv_addresses_parse(dials, &addresses, NULL) != CV_OK) {
    return false;
  }
  for (size_t i = 0; i < addresses.count; i++) {
    const char *host = addresses.address[i].host;
    any = any || (inet_pton(AF_INET, host, ip) != 1 && inet_pton(AF_INET6, host, ip) != 1);
  }
  return any;
}

bool cv_sandbox_looks_up(const struct cv_sandbox_needs *needs) {
  bool any = false;
  for (size_t i = 0; i < CV_SANDBOX_DIALS; i++) {
    any = any || has_name(needs->dials[i]);
  }
  return any;
}
