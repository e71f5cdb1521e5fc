/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a PostgreSQL database is and how it is reached. Over a network, which loopback is, too:
 *
 *   postgresql://USER@HOST[:PORT][,HOST[:PORT]]/DATABASE?sslrootcert=FILE, and sslcert, sslkey and passfile of libpq
 *
 * The connection is TLS with a verified server, always; a password is told only with channel binding. It is never part
 * of the text, but in passfile. Without TLS there is the socket of a server on this machine:
 *
 *   postgresql://USER@%2FFOLDER[:PORT]/DATABASE[?requirepeer=OWNER]
 *
 * The process that listens there must be that of the system's user OWNER (postgres). No password is ever told to it: it
 * knows its peer by the system's user.
 */
#ifndef CV_PG_URI_H
#define CV_PG_URI_H

#include <stdbool.h>

#include "common/base/err.h"

enum { CV_PG_URI_HOSTS = 4, CV_PG_URI_FILES = 4 };

struct cv_pg_uri {
  char host[400], port[80]; /* lists with commas, as libpq takes them */
  char user[80], database[80];
  char sslmode[16];
  char rootcert[256], cert[256], key[256], passfile[256]; /* "": none */
  char peer[80];                                          /* who owns the server of a socket; "": over a network */
  /* Each host alone, and HOST:PORT of it, or the path of its socket, for messages. */
  char host_of[CV_PG_URI_HOSTS][256], port_of[CV_PG_URI_HOSTS][12];
  char address[CV_PG_URI_HOSTS][300];
  size_t addresses;
};

/* CV_ERR_INVALID. */
CV_MUST_USE enum cv_err cv_pg_uri_parse(const char *text, struct cv_pg_uri *ret, struct cv_why *why);
/* Whether it is the socket of a server on this machine. */
bool cv_pg_uri_is_local(const struct cv_pg_uri *uri);
/* The files that a connection reads, without those that are not named; returns how many. */
size_t cv_pg_uri_files(const struct cv_pg_uri *uri, const char *ret[CV_PG_URI_FILES]);

#endif
