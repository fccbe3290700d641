/* SPDX-License-Identifier: MIT */
/* Threads for the resources that hang on them. */
#pragma once

#include "api/api-internal.h"

/* The thread of the path; answers 404 or 422. */
int thread_get(struct http_request *req, struct store_thread *ret);

yyjson_mut_val *thread_format(struct http_request *req, yyjson_mut_doc *doc,
                              const struct store_thread *t);
