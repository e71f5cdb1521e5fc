/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pg/uri.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static enum cv_err keep(const PQconninfoOption *option, char *to, size_t size, struct cv_why *why) {
  return snprintf(to, size, "%s", option->val) < (int)size
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "%s is too long; expected at most %zu bytes", option->keyword, size - 1);
}

/* Takes one parameter; those that libpq knows and this list does not are refused. */
static enum cv_err take(const PQconninfoOption *option, struct cv_pg_uri *uri, struct cv_why *why) {
  const struct {
    const char *name;
    char *to;
    size_t size;
  } known[] = {
      {"host", uri->host, sizeof(uri->host)},
      {"port", uri->port, sizeof(uri->port)},
      {"user", uri->user, sizeof(uri->user)},
      {"dbname", uri->database, sizeof(uri->database)},
      {"sslmode", uri->sslmode, sizeof(uri->sslmode)},
      {"sslrootcert", uri->rootcert, sizeof(uri->rootcert)},
      {"sslcert", uri->cert, sizeof(uri->cert)},
      {"sslkey", uri->key, sizeof(uri->key)},
      {"passfile", uri->passfile, sizeof(uri->passfile)},
      {"requirepeer", uri->peer, sizeof(uri->peer)},
  };
  for (size_t i = 0; i < CV_COUNT(known); i++) {
    if (strcmp(option->keyword, known[i].name) == 0) {
      return keep(option, known[i].to, known[i].size, why);
    }
  }
  return strcmp(option->keyword, "password") == 0
             ? cv_fail(why, CV_ERR_INVALID, "a password in the text; expected passfile=FILE")
             : cv_fail(why, CV_ERR_INVALID,
                       "parameter %s; expected sslmode, sslrootcert, sslcert, sslkey, passfile or "
                       "requirepeer",
                       option->keyword);
}

/* The i-th element of a list with commas; "" beyond its end. */
static void element(const char *list, size_t i, char *to, size_t size) {
  const char *at = list;
  for (; i > 0 && at != NULL; i--) {
    at = strchr(at, ',');
    at = at == NULL ? NULL : at + 1;
  }
  int n = at == NULL ? 0 : (int)strcspn(at, ",");
  (void)snprintf(to, size, "%.*s", n, at == NULL ? "" : at);
}

static size_t elements(const char *list) {
  size_t n = 1;
  for (; *list != '\0'; list++) {
    n += *list == ',';
  }
  return n;
}

/* Fills the addresses. One port, or none, is that of every host. */
static enum cv_err spread(struct cv_pg_uri *uri, struct cv_why *why) {
  size_t hosts = elements(uri->host), ports = elements(uri->port);
  if (hosts > CV_PG_URI_HOSTS) {
    return cv_fail(why, CV_ERR_INVALID, "%zu hosts; expected at most %d", hosts, CV_PG_URI_HOSTS);
  }
  for (size_t i = 0; i < hosts; i++) {
    char *host = uri->host_of[i], *port = uri->port_of[i];
    element(uri->host, i, host, sizeof(uri->host_of[i]));
    element(uri->port, ports == 1 ? 0 : i, port, sizeof(uri->port_of[i]));
    (void)snprintf(port + strlen(port), sizeof(uri->port_of[i]) - strlen(port), "%s", port[0] == '\0' ? "5432" : "");
    if (host[0] == '\0' || host[0] == '@' || (host[0] == '/') != (uri->host[0] == '/')) {
      return cv_fail(why, CV_ERR_INVALID, "host \"%s\"; expected names or addresses for TCP, or a socket's folder",
                     host);
    }
    (void)snprintf(uri->address[i], sizeof(uri->address[i]),
                   host[0] == '/'              ? "%s/.s.PGSQL.%s"
                   : strchr(host, ':') == NULL ? "%s:%s"
                                               : "[%s]:%s",
                   host, port);
  }
  uri->addresses = hosts;
  return CV_OK;
}

bool cv_pg_uri_is_local(const struct cv_pg_uri *uri) {
  return uri->host[0] == '/';
}

static enum cv_err check_local(struct cv_pg_uri *uri, struct cv_why *why) {
  if (uri->sslmode[0] != '\0' || uri->rootcert[0] != '\0' || uri->cert[0] != '\0' || uri->key[0] != '\0') {
    return cv_fail(why, CV_ERR_INVALID, "TLS at a socket; expected no sslmode, sslrootcert, sslcert and sslkey");
  }
  if (uri->passfile[0] != '\0') {
    return cv_fail(why, CV_ERR_INVALID,
                   "passfile at a socket, which has no TLS; expected none: the server knows the system's user (peer)");
  }
  if (uri->peer[0] == '\0') {
    (void)snprintf(uri->peer, sizeof(uri->peer), "postgres");
  }
  return CV_OK;
}

static enum cv_err check_remote(struct cv_pg_uri *uri, struct cv_why *why) {
  if (uri->peer[0] != '\0') {
    return cv_fail(why, CV_ERR_INVALID, "requirepeer over a network; expected it with a socket's folder only");
  }
  if (uri->sslmode[0] != '\0' && strcmp(uri->sslmode, "verify-full") != 0) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "sslmode %s; expected verify-full, or a socket's folder as the host if the server is on this machine",
        uri->sslmode);
  }
  (void)snprintf(uri->sslmode, sizeof(uri->sslmode), "verify-full");
  return uri->rootcert[0] != '\0' ? CV_OK
                                  : cv_fail(why, CV_ERR_INVALID,
                                            "no sslrootcert; expected the file of the CA that signed the server's "
                                            "certificate");
}

static enum cv_err check(struct cv_pg_uri *uri, struct cv_why *why) {
  if (uri->user[0] == '\0' || uri->host[0] == '\0' || uri->database[0] == '\0') {
    return cv_fail(why, CV_ERR_INVALID, "no %s; expected postgresql://USER@HOST:PORT/DATABASE",
                   uri->user[0] == '\0'   ? "user"
                   : uri->host[0] == '\0' ? "host"
                                          : "database");
  }
  CV_TRY(spread(uri, why));
  return cv_pg_uri_is_local(uri) ? check_local(uri, why) : check_remote(uri, why);
}

enum cv_err cv_pg_uri_parse(const char *text, struct cv_pg_uri *ret, struct cv_why *why) {
  struct cv_pg_uri uri = {.addresses = 0};
  char *said = NULL;
  if (strncmp(text, "postgresql://", strlen("postgresql://")) != 0) {
    return cv_fail(why, CV_ERR_INVALID, "\"%.80s\"; expected postgresql://USER@HOST:PORT/DATABASE", text);
  }
  PQconninfoOption *options = PQconninfoParse(text, &said);
  if (options == NULL) {
    enum cv_err err =
        cv_fail(why, CV_ERR_INVALID, "%.*s", said == NULL ? 0 : (int)strcspn(said, "\n"), said == NULL ? "" : said);
    PQfreemem(said);
    return err;
  }
  enum cv_err err = CV_OK;
  for (const PQconninfoOption *option = options; option->keyword != NULL && err == CV_OK; option++) {
    err = option->val == NULL ? CV_OK : take(option, &uri, why);
  }
  PQconninfoFree(options);
  CV_TRY(err);
  CV_TRY(check(&uri, why));
  *ret = uri;
  return CV_OK;
}

size_t cv_pg_uri_files(const struct cv_pg_uri *uri, const char *ret[CV_PG_URI_FILES]) {
  const char *const all[] = {uri->rootcert, uri->cert, uri->key, uri->passfile};
  size_t n = 0;
  if (cv_pg_uri_is_local(uri)) {
    ret[n++] = "/etc/passwd"; /* the number of `peer` */
  }
  for (size_t i = 0; i < CV_COUNT(all); i++) {
    if (all[i][0] != '\0') {
      ret[n++] = all[i];
    }
  }
  return n;
}
