/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a broker's PostgreSQL database, in the schema `crowdveil`, and how they are made. */
#ifndef CV_BROKER_STORE_POSTGRES_SCHEMA_H
#define CV_BROKER_STORE_POSTGRES_SCHEMA_H

#include "common/pg/pg.h"

enum {
  CV_POSTGRES_SCHEMA = 1, /* the version of the tables */
  CV_POSTGRES_IMAGE = 2,  /* the version of what is in their rows; an earlier one is of a program before 0.3.0 */
};
/* The advisory lock of the active broker, and of whoever changes the schema. */
#define CV_POSTGRES_LOCK "7165916604736894313"

CV_MUST_USE enum cv_err cv_postgres_try_lock(struct cv_pg *pg, bool *ret_is_ours, struct cv_why *why);
/* For a command: tries for a second, since the server ends the session of a process that has ended a little later.
 * CV_ERR_STATE: a broker is active. */
CV_MUST_USE enum cv_err cv_postgres_lock(struct cv_pg *pg, struct cv_why *why);

/* Whether this program can read and write the tables as they are. CV_ERR_NOT_FOUND: there are none; CV_ERR_VERSION. */
CV_MUST_USE enum cv_err cv_postgres_schema_check(struct cv_pg *pg, struct cv_why *why);
/*
 * Makes the tables, or those of an older version into those of this one, in one transaction, and permits `user` to use
 * them; `pg` is a session of the database's owner. *ret_from is the version before; 0: there was none. CV_ERR_STATE
 * while a broker is active, CV_ERR_VERSION.
 */
CV_MUST_USE enum cv_err cv_postgres_schema_migrate(struct cv_pg *pg, const char *user, unsigned *ret_from,
                                                   struct cv_why *why);

#endif
