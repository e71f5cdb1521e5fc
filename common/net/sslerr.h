/* SPDX-License-Identifier: Apache-2.0 */
/* Maps OpenSSL's errors; only this module reads OpenSSL's error queue. */
#ifndef CV_NET_SSLERR_H
#define CV_NET_SSLERR_H

#include "common/base/err.h"

/* The reason for a code X509_V_ERR_...: "certificate expired". Never NULL. */
const char *cv_x509_reason(int code);
/* The result of cv_ssl_reason() if the other side expects another name or key than those in our certificate. */
extern const char cv_ssl_other_name[];
/* A short reason for the last failed TLS call; empties the error queue. Never NULL. */
const char *cv_ssl_reason(void);
/* Writes "<what>: <OpenSSL's reason>" and returns CV_ERR_CRYPTO, or CV_ERR_NOMEM if that is the reason; empties the
 * error queue. */
CV_MUST_USE enum cv_err cv_ssl_fail(struct cv_why *why, const char *fmt, ...) CV_PRINTF(2, 3);

#endif
