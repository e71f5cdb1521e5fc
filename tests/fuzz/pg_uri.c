/* SPDX-License-Identifier: Apache-2.0 */
/* The URI of a PostgreSQL database: an accepted one has user, hosts and database, no password, and either TLS with a
 * verified server, or a socket with an owner and nothing that belongs to a network. */
#include "common/pg/uri.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void check(const struct cv_pg_uri *uri) {
  const char *files[CV_PG_URI_FILES];
  bool is_local = cv_pg_uri_is_local(uri);
  CV_REQUIRE(uri->user[0] != '\0' && uri->host[0] != '\0' && uri->database[0] != '\0');
  CV_REQUIRE((uri->peer[0] != '\0') == is_local);
  CV_REQUIRE(is_local ? uri->sslmode[0] == '\0' && uri->passfile[0] == '\0' && uri->key[0] == '\0'
                      : strcmp(uri->sslmode, "verify-full") == 0 && uri->rootcert[0] != '\0');
  CV_REQUIRE(uri->addresses > 0 && uri->addresses <= CV_PG_URI_HOSTS);
  CV_REQUIRE(cv_pg_uri_files(uri, files) <= CV_PG_URI_FILES);
  for (size_t i = 0; i < uri->addresses; i++) {
    const char *at = uri->address[i];
    CV_REQUIRE(is_local ? at[0] == '/' : strrchr(at, ':') != NULL && at[0] != '/' && at[0] != '@');
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
