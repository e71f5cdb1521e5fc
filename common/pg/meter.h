/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a server may send. libpq keeps whatever comes, and has no limit of its own. Over TLS the limit is exact.
 * Without TLS what waits is counted before each reading, so that a server that goes on sending meanwhile gets more in.
 */
#ifndef CV_PG_METER_H
#define CV_PG_METER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

struct cv_pg_meter {
  size_t room;  /* what it may still send */
  bool is_over; /* it has sent more: for good */
  bool is_tls;  /* the session's TLS counts */
};

/* From here on `bytes`. */
void cv_pg_meter_allow(struct cv_pg_meter *meter, size_t bytes);
/* To be called before libpq reads. False: it must not read. The meter has to outlive the session. */
bool cv_pg_meter_admits(struct cv_pg_meter *meter, PGconn *conn);

#endif
