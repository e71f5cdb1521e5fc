/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/identity.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  char *uri = fuzz_text(bytes, n);
  struct cv_identity identity;
  struct cv_why why = {.text = ""};
  if (cv_identity_parse(uri, &identity, &why) == CV_OK) {
    char again[CV_NAME_BYTES + 32];
    (void)snprintf(again, sizeof(again), "crowdveil:%s/%s", cv_role_text(identity.role), identity.name);
    CV_REQUIRE(strcmp(again, uri) == 0 && identity.first <= identity.last);
  } else {
    fuzz_line(why.text);
  }
  free(uri);
  return 0;
}
