/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store/postgres_schema.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/before.h"

enum { LOCK_TRIES = 20, LOCK_AGAIN_MS = 50 };

/* Sealed values do not compress: EXTERNAL. A chunk is a little more than half a page, so it stays in its row. What
 * changes at each commit has room on its page, and is vacuumed often. */
static const char step_1[] =
    "CREATE SCHEMA crowdveil;"
    "CREATE TABLE crowdveil.version (one integer PRIMARY KEY CHECK (one = 1), schema bigint NOT NULL,"
    "  image bigint NOT NULL);"
    "CREATE TABLE crowdveil.meta (one integer PRIMARY KEY CHECK (one = 1), store bytea NOT NULL, term bigint NOT NULL,"
    "  last_commit bigint NOT NULL, last_hash bytea NOT NULL, prior_hash bytea NOT NULL, campaigns bigint NOT NULL,"
    "  releases bigint NOT NULL, tokens bigint NOT NULL, promised_micro bigint NOT NULL, code bytea NOT NULL,"
    "  disputed text) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,"
    "  autovacuum_vacuum_cost_delay = 0);"
    "CREATE TABLE crowdveil.term (number bigint PRIMARY KEY, id bytea NOT NULL UNIQUE, holder text NOT NULL,"
    "  address text NOT NULL, commit_before bigint NOT NULL, first_commit bigint NOT NULL, hash_before bytea NOT NULL,"
    "  system_id bigint NOT NULL, timeline bigint NOT NULL, code bytea NOT NULL,"
    "  began timestamptz NOT NULL DEFAULT now());"
    "CREATE TABLE crowdveil.campaign (id bigint PRIMARY KEY, image bytea NOT NULL, code bytea NOT NULL, state bytea,"
    "  state_code bytea, standings bytea, standings_code bytea);"
    "CREATE TABLE crowdveil.plan (campaign bigint, number bigint, image bytea NOT NULL, code bytea NOT NULL,"
    "  PRIMARY KEY (campaign, number));"
    "CREATE TABLE crowdveil.release (campaign bigint, number bigint, image bytea NOT NULL, code bytea NOT NULL,"
    "  PRIMARY KEY (campaign, number));"
    "CREATE TABLE crowdveil.ledger (campaign bigint, arm bigint, image bytea NOT NULL, code bytea NOT NULL,"
    "  PRIMARY KEY (campaign, arm));"
    "CREATE TABLE crowdveil.recovery (number bigint PRIMARY KEY, image bytea NOT NULL, code bytea NOT NULL);"
    "CREATE TABLE crowdveil.ended (campaign bigint PRIMARY KEY, image bytea NOT NULL, code bytea NOT NULL);"
    "CREATE TABLE crowdveil.journal (made bigint, campaign bigint, term bigint NOT NULL, sealed bytea NOT NULL,"
    "  PRIMARY KEY (made, campaign));"
    "CREATE TABLE crowdveil.chunk (campaign bigint, kind bigint, number bigint, made bigint NOT NULL,"
    "  term bigint NOT NULL, sealed bytea NOT NULL, PRIMARY KEY (campaign, kind, number))"
    "  WITH (toast_tuple_target = 8160);"
    "CREATE TABLE crowdveil.wrapped_key (campaign bigint, use bigint, master bytea NOT NULL, wrapped bytea NOT NULL,"
    "  PRIMARY KEY (campaign, use));"
    "ALTER TABLE crowdveil.journal ALTER COLUMN sealed SET STORAGE EXTERNAL;"
    "ALTER TABLE crowdveil.chunk ALTER COLUMN sealed SET STORAGE EXTERNAL;"
    "ALTER TABLE crowdveil.journal SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,"
    "  autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0,"
    "  toast.autovacuum_vacuum_threshold = 20000, toast.autovacuum_vacuum_cost_delay = 0);"
    "ALTER TABLE crowdveil.chunk SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,"
    "  autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0,"
    "  toast.autovacuum_vacuum_threshold = 20000, toast.autovacuum_vacuum_cost_delay = 0);";

static const char *const steps[] = {step_1};
_Static_assert(CV_COUNT(steps) == CV_POSTGRES_SCHEMA, "a step each");

/* What the brokers' role may do: no broker ever deletes the row of the fence, or changes a term. */
static const struct {
  const char *rights, *on;
} grants[] = {
    {"USAGE", "SCHEMA crowdveil"},
    {"SELECT", "ALL TABLES IN SCHEMA crowdveil"},
    {"INSERT, UPDATE", "crowdveil.meta"},
    {"INSERT", "crowdveil.term, crowdveil.recovery"},
    {"INSERT, UPDATE, DELETE",
     "crowdveil.campaign, crowdveil.ledger, crowdveil.ended, crowdveil.chunk, crowdveil.wrapped_key"},
    {"INSERT, DELETE", "crowdveil.plan, crowdveil.release, crowdveil.journal"},
};

static enum cv_err read_version(struct cv_pg *pg, unsigned *ret_schema, unsigned *ret_image, struct cv_why *why) {
  PGresult *result = NULL;
  *ret_schema = *ret_image = 0;
  enum cv_err err = cv_pg_run(pg, "SELECT to_regclass('crowdveil.version') IS NOT NULL", NULL, &result, why);
  bool exists = err == CV_OK && cv_pg_int(result, 0, 0) != 0;
  PQclear(result);
  if (err != CV_OK || !exists) {
    return err;
  }
  result = NULL;
  err = cv_pg_run(pg, "SELECT schema, image FROM crowdveil.version", NULL, &result, why);
  if (err == CV_OK && PQntuples(result) == 1) {
    *ret_schema = (unsigned)cv_pg_int(result, 0, 0);
    *ret_image = (unsigned)cv_pg_int(result, 0, 1);
  }
  PQclear(result);
  return err;
}

static enum cv_err check_image(struct cv_pg *pg, unsigned schema, unsigned image, struct cv_why *why) {
  return image >= CV_POSTGRES_IMAGE ? CV_OK
                                    : cv_fail(why, CV_ERR_VERSION,
                                              "%s: tables of version %u.%u, " CV_BEFORE
                                              "; drop the schema crowdveil, and move the brokers' "
                                              "anchors and the seal key away together",
                                              cv_pg_where(pg), schema, image);
}

enum cv_err cv_postgres_schema_check(struct cv_pg *pg, struct cv_why *why) {
  unsigned schema, image;
  CV_TRY(read_version(pg, &schema, &image, why));
  if (schema == 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: no tables; expected --migrate to have made them", cv_pg_where(pg));
  }
  CV_TRY(check_image(pg, schema, image, why));
  return schema == CV_POSTGRES_SCHEMA && image == CV_POSTGRES_IMAGE
             ? CV_OK
             : cv_fail(why, CV_ERR_VERSION, "%s: tables of version %u.%u; expected %u.%u", cv_pg_where(pg), schema,
                       image, CV_POSTGRES_SCHEMA, CV_POSTGRES_IMAGE);
}

/* The name in quotes, as SQL takes it. */
static void quote(const char *name, char *to, size_t size) {
  size_t n = 0;
  to[n++] = '"';
  for (; *name != '\0' && n + 4 < size; name++) {
    to[n++] = *name;
    if (*name == '"') {
      to[n++] = '"';
    }
  }
  to[n++] = '"';
  to[n] = '\0';
}

enum cv_err cv_postgres_try_lock(struct cv_pg *pg, bool *ret_is_ours, struct cv_why *why) {
  PGresult *result = NULL;
  enum cv_err err = cv_pg_run(pg, "SELECT pg_try_advisory_lock(" CV_POSTGRES_LOCK ")", NULL, &result, why);
  *ret_is_ours = err == CV_OK && cv_pg_int(result, 0, 0) != 0;
  PQclear(result);
  return err;
}

enum cv_err cv_postgres_lock(struct cv_pg *pg, struct cv_why *why) {
  bool is_ours = false;
  CV_TRY(cv_postgres_try_lock(pg, &is_ours, why));
  for (int i = 0; i < LOCK_TRIES && !is_ours; i++) {
    (void)poll(NULL, 0, LOCK_AGAIN_MS);
    CV_TRY(cv_postgres_try_lock(pg, &is_ours, why));
  }
  return is_ours
             ? CV_OK
             : cv_fail(why, CV_ERR_STATE, "%s: a broker is active; expected it to be stopped first", cv_pg_where(pg));
}

static enum cv_err apply(struct cv_pg *pg, unsigned from, const char *user, struct cv_why *why) {
  char name[2 * 80], rest[512];
  for (unsigned i = from; i < CV_POSTGRES_SCHEMA; i++) {
    CV_TRY(cv_pg_script(pg, steps[i], why));
  }
  (void)snprintf(rest, sizeof(rest),
                 "INSERT INTO crowdveil.version VALUES (1, %u, %u)"
                 " ON CONFLICT (one) DO UPDATE SET schema = excluded.schema, image = excluded.image",
                 CV_POSTGRES_SCHEMA, CV_POSTGRES_IMAGE);
  CV_TRY(cv_pg_script(pg, rest, why));
  quote(user, name, sizeof(name));
  for (size_t i = 0; i < CV_COUNT(grants); i++) {
    (void)snprintf(rest, sizeof(rest), "GRANT %s ON %s TO %s", grants[i].rights, grants[i].on, name);
    CV_TRY(cv_pg_script(pg, rest, why));
  }
  return CV_OK;
}

enum cv_err cv_postgres_schema_migrate(struct cv_pg *pg, const char *user, unsigned *ret_from, struct cv_why *why) {
  unsigned image;
  CV_TRY(cv_postgres_lock(pg, why));
  CV_TRY(read_version(pg, ret_from, &image, why));
  CV_TRY(*ret_from == 0 ? CV_OK : check_image(pg, *ret_from, image, why));
  if (*ret_from > CV_POSTGRES_SCHEMA || image > CV_POSTGRES_IMAGE) {
    return cv_fail(why, CV_ERR_VERSION, "%s: tables of version %u.%u; expected at most %u.%u", cv_pg_where(pg),
                   *ret_from, image, CV_POSTGRES_SCHEMA, CV_POSTGRES_IMAGE);
  }
  /* The session ends after an error, and with it the transaction. */
  CV_TRY(cv_pg_script(pg, "BEGIN", why));
  CV_TRY(apply(pg, *ret_from, user, why));
  return cv_pg_script(pg, "COMMIT", why);
}
