/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/host.h"

#include <string.h>
#include <strings.h>

#include "common/base/err.h"

/* True for an empty text, or a colon and at most five digits. */
static bool is_port(const char *text) {
  size_t digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;
  return text[0] == '\0' || (text[0] == ':' && digits <= 5 && text[1 + digits] == '\0');
}

bool cv_host_is_local(const char *host) {
  static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
  for (size_t i = 0; i < CV_COUNT(names); i++) {
    size_t n = strlen(names[i]);
    if (strncasecmp(host, names[i], n) == 0 && is_port(host + n)) {
      return true;
    }
  }
  return false;
}
