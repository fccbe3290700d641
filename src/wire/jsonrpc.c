/* SPDX-License-Identifier: MIT */
/* JSON-RPC messages. What is wrong with a message is told with its id, where it has a readable one.
 */
#include "wire/jsonrpc.h"

#include "base/str.h"

static bool id_is_valid(yyjson_val *id)
{
    return yyjson_is_int(id) || (yyjson_is_str(id) && yyjson_get_len(id) <= JSONRPC_ID_MAX);
}

static int shape_check(yyjson_val *root, struct jsonrpc_message *ret, struct error *reterr)
{
    yyjson_val *method = yyjson_obj_get(root, "method"), *id = yyjson_obj_get(root, "id");

    if (yyjson_is_arr(root))
        return error_set(reterr, ERR_INVALID, "batches are not supported");
    if (!yyjson_is_obj(root))
        return error_set(reterr, ERR_INVALID, "a message is a JSON object");
    if (id && id_is_valid(id))
        ret->id = id;
    if (!str_eq(json_get_str(root, "jsonrpc", ""), "2.0"))
        return error_set(reterr, ERR_INVALID, "\"jsonrpc\" is not \"2.0\"");
    if (id && !ret->id && (method || !yyjson_is_null(id)))
        return error_set(reterr, ERR_INVALID, "\"id\" is no string or integer");
    if (method && (!yyjson_is_str(method) || yyjson_get_len(method) > JSONRPC_METHOD_MAX ||
                   strlen(yyjson_get_str(method)) != yyjson_get_len(method)))
        return error_set(reterr, ERR_INVALID, "\"method\" is no name");
    return 0;
}

static int request_fill(yyjson_val *root, struct jsonrpc_message *ret, struct error *reterr)
{
    ret->method = yyjson_get_str(yyjson_obj_get(root, "method"));
    ret->params = yyjson_obj_get(root, "params");
    ret->kind = ret->id ? JSONRPC_REQUEST : JSONRPC_NOTIFICATION;
    if (ret->params && !yyjson_is_obj(ret->params)) {
        ret->params = NULL;
        return error_set(reterr, ERR_INVALID, "\"params\" is no object");
    }
    return 0;
}

static int response_fill(yyjson_val *root, struct jsonrpc_message *ret, struct error *reterr)
{
    ret->kind = JSONRPC_RESPONSE;
    ret->result = yyjson_obj_get(root, "result");
    ret->error = yyjson_obj_get(root, "error");
    if (!ret->result == !ret->error)
        return error_set(reterr, ERR_INVALID,
                         "neither a request (\"method\") nor a response (\"result\" or \"error\")");
    return 0;
}

int jsonrpc_parse(const char *text, size_t len, yyjson_doc **ret_doc, struct jsonrpc_message *ret,
                  int *ret_code, struct error *reterr)
{
    yyjson_val *root;
    int r;

    *ret = (struct jsonrpc_message){};
    *ret_code = JSONRPC_PARSE_ERROR;
    if ((r = json_parse(text, len, ret_doc, reterr)) < 0)
        return r;
    root = yyjson_doc_get_root(*ret_doc);
    *ret_code = JSONRPC_INVALID_REQUEST;
    if ((r = json_keys_check(*ret_doc, reterr)) < 0 || (r = shape_check(root, ret, reterr)) < 0)
        return r;
    if (!yyjson_obj_get(root, "method"))
        return response_fill(root, ret, reterr);
    *ret_code = JSONRPC_INVALID_PARAMS;
    return request_fill(root, ret, reterr);
}

int jsonrpc_format_error(yyjson_val *id, const struct jsonrpc_fault *fault, struct buf *ret)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *error = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "jsonrpc", "2.0");
    if (id)
        yyjson_mut_obj_add_val(doc, root, "id", yyjson_val_mut_copy(doc, id));
    else
        yyjson_mut_obj_add_null(doc, root, "id");
    yyjson_mut_obj_add_int(doc, error, "code", fault->code);
    yyjson_mut_obj_add_strcpy(doc, error, "message", fault->message);
    if (fault->data)
        yyjson_mut_obj_add_val(doc, error, "data", yyjson_mut_val_mut_copy(doc, fault->data));
    yyjson_mut_obj_add_val(doc, root, "error", error);
    return json_mut_write(doc, ret, NULL);
}
