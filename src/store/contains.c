/* SPDX-License-Identifier: MIT */
/*
 * Containment of JSON. Comparing arrays costs the product of their lengths, and both sides may come
 * from outside, so there is a budget; what is not found within it is not contained.
 */
#include "store/contains.h"

#include <string.h>

enum { CONTAINS_STEPS_MAX = 4 << 20 };

static bool value_contains(yyjson_val *whole, yyjson_val *part, size_t *steps);

static bool numbers_equal(yyjson_val *a, yyjson_val *b)
{
    if (yyjson_is_uint(a) && yyjson_is_uint(b))
        return yyjson_get_uint(a) == yyjson_get_uint(b);
    if (yyjson_is_int(a) && yyjson_is_int(b))
        return yyjson_is_sint(a) && yyjson_is_sint(b) && yyjson_get_sint(a) == yyjson_get_sint(b);
    return yyjson_get_num(a) >= yyjson_get_num(b) && yyjson_get_num(a) <= yyjson_get_num(b);
}

static bool scalars_equal(yyjson_val *a, yyjson_val *b)
{
    if (yyjson_is_num(a) && yyjson_is_num(b))
        return numbers_equal(a, b);
    if (yyjson_get_type(a) != yyjson_get_type(b))
        return false;
    if (yyjson_is_str(a))
        return yyjson_get_len(a) == yyjson_get_len(b) &&
               memcmp(yyjson_get_str(a), yyjson_get_str(b), yyjson_get_len(a)) == 0;
    return yyjson_get_subtype(a) == yyjson_get_subtype(b);
}

static bool steps_take(size_t *steps, size_t count)
{
    if (*steps < count)
        return false;
    *steps -= count;
    return true;
}

static bool object_contains(yyjson_val *whole, yyjson_val *part, size_t *steps)
{
    yyjson_val *key, *value;
    size_t i, count;

    yyjson_obj_foreach(part, i, count, key, value)
    {
        yyjson_val *found;

        if (!steps_take(steps, yyjson_obj_size(whole) + 1))
            return false;
        found = yyjson_obj_getn(whole, yyjson_get_str(key), yyjson_get_len(key));
        if (!found || !value_contains(found, value, steps))
            return false;
    }
    return true;
}

static bool array_has(yyjson_val *whole, yyjson_val *wanted, size_t *steps)
{
    yyjson_val *value;
    size_t i, count;

    yyjson_arr_foreach(whole, i, count, value)
    {
        if (value_contains(value, wanted, steps))
            return true;
    }
    return false;
}

static bool array_contains(yyjson_val *whole, yyjson_val *part, size_t *steps)
{
    yyjson_val *value;
    size_t i, count;

    yyjson_arr_foreach(part, i, count, value)
    {
        if (!array_has(whole, value, steps))
            return false;
    }
    return true;
}

static bool value_contains(yyjson_val *whole, yyjson_val *part, size_t *steps)
{
    if (!steps_take(steps, 1))
        return false;
    if (yyjson_is_obj(whole) && yyjson_is_obj(part))
        return object_contains(whole, part, steps);
    if (yyjson_is_arr(whole) && yyjson_is_arr(part))
        return array_contains(whole, part, steps);
    return !yyjson_is_ctn(whole) && !yyjson_is_ctn(part) && scalars_equal(whole, part);
}

bool contains_json(yyjson_val *whole, yyjson_val *part)
{
    size_t steps = CONTAINS_STEPS_MAX;

    /* An array contains a scalar, at the top only. */
    if (yyjson_is_arr(whole) && !yyjson_is_ctn(part))
        return array_has(whole, part, &steps);
    return value_contains(whole, part, &steps);
}
