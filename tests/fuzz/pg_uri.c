/* SPDX-License-Identifier: Apache-2.0 */
/* The URI of a PostgreSQL database: an accepted one has user, hosts and database, no password, and TLS with a verified
 * server unless all hosts are this machine. */
#include "common/pg/uri.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void check(const struct cv_pg_uri *uri) {
  const char *files[CV_PG_URI_FILES];
  bool is_verified = strcmp(uri->sslmode, "verify-full") == 0;
  CV_REQUIRE(uri->user[0] != '\0' && uri->host[0] != '\0' && uri->database[0] != '\0');
  CV_REQUIRE(is_verified ? uri->rootcert[0] != '\0' : strcmp(uri->sslmode, "disable") == 0);
  CV_REQUIRE(uri->addresses > 0 && uri->addresses <= CV_PG_URI_HOSTS);
  CV_REQUIRE(cv_pg_uri_files(uri, files) <= CV_PG_URI_FILES);
  for (size_t i = 0; i < uri->addresses; i++) {
    const char *at = uri->address[i];
    CV_REQUIRE(strrchr(at, ':') != NULL && at[0] != '/' && at[0] != '@');
    bool is_ipv4 = strncmp(at, "127.", 4) == 0 && at[strspn(at, "0123456789.")] == ':';
    CV_REQUIRE(is_verified || is_ipv4 || strncmp(at, "[::1]:", 6) == 0 || strncmp(at, "localhost:", 10) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  char *text = fuzz_text(bytes, n);
  struct cv_pg_uri uri;
  struct cv_why why = {.text = ""};
  if (cv_pg_uri_parse(text, &uri, &why) == CV_OK) {
    check(&uri);
  } else {
    fuzz_line(why.text);
  }
  free(text);
  return 0;
}
