/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's errors as ours: the only place that reads its error queue. */
#ifndef CV_NET_SSLERR_H
#define CV_NET_SSLERR_H

#include "common/base/err.h"

/* Why a certificate was not accepted, from X509_V_ERR_...: "certificate expired". Never NULL. */
const char *cv_x509_reason(int code);
/* What cv_ssl_reason() says where the other side has been told another name than the one in our certificate. */
extern const char cv_ssl_other_name[];
/* What the last failed TLS call was about, in a few words; empties the error queue. Never NULL. */
const char *cv_ssl_reason(void);
/* "<what>: <OpenSSL's words>" and CV_ERR_CRYPTO, CV_ERR_NOMEM if that is what they say; empties the error queue. */
CV_MUST_USE enum cv_err cv_ssl_fail(struct cv_why *why, const char *fmt, ...) CV_PRINTF(2, 3);

#endif
