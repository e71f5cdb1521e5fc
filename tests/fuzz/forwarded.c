/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in X-Forwarded-For, in Forwarded and in form_proxy, one a line; an empty line: the header is absent. */
#include "common/admin/forwarded.h"

#include "tests/fuzz/fuzz.h"

static char *next_line(char **at) {
  char *line = *at, *end = strchr(line, '\n');
  *at = end == NULL ? line + strlen(line) : end + 1;
  if (end != NULL) {
    *end = '\0';
  }
  return *line == '\0' ? NULL : line;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  char *text = fuzz_text(bytes, n), *at = text;
  const char *x_forwarded_for = next_line(&at), *forwarded = next_line(&at), *list = next_line(&at);
  struct cv_proxies proxies;
  struct cv_ip ip, alone;
  struct cv_why why = {.text = ""};
  if (cv_forwarded_read(x_forwarded_for, forwarded, &ip)) {
    CV_REQUIRE(x_forwarded_for != NULL || forwarded != NULL);
    /* nothing before the last comma counts */
    const char *comma = x_forwarded_for == NULL ? NULL : strrchr(x_forwarded_for, ',');
    CV_REQUIRE(comma == NULL || (cv_forwarded_read(comma + 1, NULL, &alone) && memcmp(&ip, &alone, sizeof(ip)) == 0));
  }
  if (cv_proxies_read(list == NULL ? "" : list, &proxies, &why) == CV_OK) {
    CV_REQUIRE(proxies.count > 0 && cv_proxies_have(&proxies, &proxies.ip[proxies.count - 1]));
  } else {
    fuzz_line(why.text);
  }
  free(text);
  return 0;
}
