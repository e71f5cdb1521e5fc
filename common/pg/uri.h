/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a PostgreSQL database is and how it is reached: `postgresql://USER@HOST[:PORT][,HOST[:PORT]]/DATABASE` with the
 * parameters sslmode, sslrootcert, sslcert, sslkey and passfile of libpq.
 *
 * The connection is TLS with a verified server (`sslmode=verify-full`, for which sslrootcert is required), unless all
 * hosts are loopback addresses and `sslmode=disable` says so. A password is never part of the text: it is in passfile.
 */
#ifndef CV_PG_URI_H
#define CV_PG_URI_H

#include "common/base/err.h"

enum { CV_PG_URI_HOSTS = 4, CV_PG_URI_FILES = 4 };

struct cv_pg_uri {
  char host[400], port[80]; /* lists with commas, as libpq takes them */
  char user[80], database[80];
  char sslmode[16];
  char rootcert[256], cert[256], key[256], passfile[256]; /* "": none */
  /* Each host alone, and HOST:PORT of it for the sandbox and for messages. */
  char host_of[CV_PG_URI_HOSTS][256], port_of[CV_PG_URI_HOSTS][12];
  char address[CV_PG_URI_HOSTS][300];
  size_t addresses;
};

/* CV_ERR_INVALID. */
CV_MUST_USE enum cv_err cv_pg_uri_parse(const char *text, struct cv_pg_uri *ret, struct cv_why *why);
/* The files that a connection reads, without those that are not named; returns how many. */
size_t cv_pg_uri_files(const struct cv_pg_uri *uri, const char *ret[CV_PG_URI_FILES]);

#endif
