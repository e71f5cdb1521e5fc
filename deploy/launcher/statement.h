/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a campaign's ledger as a table, CSV or JSON, with a description of the guarantee. */
#ifndef CV_LAUNCHER_STATEMENT_H
#define CV_LAUNCHER_STATEMENT_H

#include <stdio.h>

#include "deploy/launcher/exposure.h"
#include "proto/codec/order.h"

/* Prints a table. `exposure` is that of the campaign's data; NULL: unknown. */
void cv_launcher_statement_print(const struct cv_statement *statement, const struct cv_exposure *exposure, FILE *to);
/* Writes CSV with a header line: arm, releases, tokens, spent_micro, lost_micro, left_micro, limit_micro. */
void cv_launcher_statement_write_csv(const struct cv_statement *statement, FILE *to);
/* Writes one JSON object on one line; its key `data` is the exposure. CV_ERR_IO or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_launcher_statement_write_json(const struct cv_statement *statement,
                                                         const struct cv_exposure *exposure, FILE *to);

#endif
