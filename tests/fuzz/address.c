/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:PORT, and the Host of a request: an accepted address is read back as it was written. */
#include "common/net/address.h"

#include "common/admin/host.h"
#include "tests/fuzz/fuzz.h"

static void check_host(const char *text) {
  if (cv_host_is_local(text)) {
    const char *port = strrchr(text, ':');
    CV_REQUIRE(port == NULL || port[strspn(port + 1, "0123456789]") + 1] == '\0');
    CV_REQUIRE(strspn(text, "localhostLOCALHOST127.[]:0123456789") == strlen(text));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  char *text = fuzz_text(bytes, n);
  struct cv_address address;
  struct cv_why why = {.text = ""};
  if (cv_address_parse(text, &address, &why) == CV_OK) {
    char again[300];
    bool bracketed = text[0] == '[';
    (void)snprintf(again, sizeof(again), bracketed ? "[%s]:%s" : "%s:%s", address.host, address.port);
    CV_REQUIRE(strcmp(again, text) == 0 && atol(address.port) <= 65535);
    CV_REQUIRE(cv_text_is_clean(address.host, strlen(address.host)) && strchr(address.host, ' ') == NULL);
  } else {
    fuzz_line(why.text);
  }
  check_host(text);
  free(text);
  return 0;
}
