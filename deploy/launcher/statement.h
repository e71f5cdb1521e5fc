/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign's ledger as people and programs read it, with the guarantee in words. */
#ifndef CV_LAUNCHER_STATEMENT_H
#define CV_LAUNCHER_STATEMENT_H

#include <stdio.h>

#include "deploy/launcher/exposure.h"
#include "proto/codec/order.h"

/* A table for a person. `exposure` is of the campaign's data, as far as the file is at hand, else NULL. */
void cv_statement_print(const struct cv_statement *statement, const struct cv_exposure *exposure, FILE *to);
/* With a line of headings: arm, releases, tokens, spent_micro, lost_micro, left_micro, limit_micro. */
void cv_statement_write_csv(const struct cv_statement *statement, FILE *to);
/* One JSON object on one line, `data` being the exposure. CV_ERR_IO or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_statement_write_json(const struct cv_statement *statement,
                                                const struct cv_exposure *exposure, FILE *to);

#endif
